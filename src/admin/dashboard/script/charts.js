// Charts: the timeline, with pointer, keyboard and table, and gauges.

/** Returns a round number that is at least the largest value, and the number of grid steps. */
function scale(largest) {
  if (largest <= 4) return { top: Math.max(largest, 1), steps: Math.max(largest, 1) };
  const rough = largest / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((by) => by * power).find((by) => by >= rough && Number.isInteger(by)) ?? power * 10;
  const steps = Math.ceil(largest / step);
  return { top: steps * step, steps };
}

const timeline = { period: 'hour', at: null, spans: [] };

function drawTimeline(spans, since) {
  const box = byId('timeline');
  const { width, height } = box.getBoundingClientRect();
  if (width < 40) return;
  timeline.spans = spans;
  const most = Math.max(...spans.map((span) => span.denied));
  const isIdle = spans.every((span) => span.denied + span.allowed === 0);
  const { top, steps } = scale(most);
  const left = 14 + count(top).length * 7, right = 8, over = 10, under = 24;
  const x = (index) => left + (width - left - right) * (spans.length === 1 ? 0.5 : index / (spans.length - 1));
  const y = (denied) => over + (height - over - under) * (1 - denied / top);
  const total = spans.reduce((sum, span) => sum + span.denied, 0);
  const words = `${plural(total, 'denial')} in the past ${timeline.period}` + (most ? `, at most ${count(most)} in ${timeline.period === 'hour' ? 'a minute' : 'a quarter of an hour'}` : '') + '. Arrow keys go through it.';
  const svg = draw('svg', { role: 'img', tabindex: 0, 'aria-label': words, width, height });
  for (let step = 0; step <= (most > 0 ? steps : 0); step += 1) {
    const value = top / steps * step;
    svg.append(draw('line', { class: 'grid', x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    svg.append(draw('text', { x: left - 8, y: y(value) + 4, 'text-anchor': 'end' }, count(value)));
  }
  // The time before the layer was built has no data, which is not the same as 0.
  const first = Math.max(0, spans.findLastIndex((span) => new Date(span.from) <= new Date(since)));
  if (first > 0) {
    svg.append(draw('rect', { class: 'before', x: left, y: over, width: Math.max(0, x(first) - left), height: height - over - under, rx: 4 }));
    if (most > 0 && x(first) - left > 170) svg.append(draw('text', { x: left + 12, y: over + 20 }, `Not counting before ${clock(since)}`));
  }
  const labels = width < 300 ? 2 : width < 480 ? 3 : 6;
  for (let label = 0; label < labels; label += 1) {
    const index = spans.length - 1 - Math.round(spans.length * label / labels);
    const anchor = label === 0 ? 'end' : 'middle';
    svg.append(draw('text', { x: x(index), y: height - 6, 'text-anchor': anchor }, clock(spans[index].from)));
  }
  if (most > 0) {
    // The last bucket is not over yet. Joined to the others, it would look like a fall.
    const last = spans.length - 1, over = spans.slice(first, last);
    const points = over.map((span, index) => `${x(first + index).toFixed(1)} ${y(span.denied).toFixed(1)}`);
    if (over.length > 1) {
      svg.append(draw('path', { class: 'area', d: `M${x(first)} ${y(0)}L${points.join('L')}L${x(last - 1)} ${y(0)}Z` }));
      svg.append(draw('path', { class: 'line', d: `M${points.join('L')}` }));
    } else if (over.length === 1) {
      svg.append(draw('circle', { class: 'dot', cx: x(first), cy: y(over[0].denied), r: 4 }));
    }
    if (spans[last].denied > 0) {
      svg.append(draw('line', { class: 'line-now', x1: x(last), x2: x(last), y1: y(0), y2: y(spans[last].denied) }));
      svg.append(draw('circle', { class: 'dot-now', cx: x(last), cy: y(spans[last].denied), r: 4 }));
    }
  }
  const hadFocus = box.contains(document.activeElement);
  box.replaceChildren(svg);
  if (isIdle) box.append(empty(first > 0 ? `Counting since ${clock(since)}. There were no requests yet.` : `There were no requests in the past ${timeline.period}.`));
  else if (most === 0) box.append(empty(`No request was denied in the past ${timeline.period}.`));
  follow(box, svg, { x, y, left, right, width, height, over, under });
  if (hadFocus) svg.focus();
}

/** Shows the bucket at the pointer or the keyboard cursor. */
function follow(box, svg, at) {
  const { spans } = timeline;
  const mark = draw('g', { 'aria-hidden': 'true' });
  const tip = make('div', { class: 'tip', role: 'status', hidden: true });
  svg.append(mark);
  box.append(tip);
  const show = (index) => {
    timeline.at = index;
    mark.replaceChildren();
    tip.hidden = index === null;
    if (index === null) return;
    const span = spans[index], x = at.x(index);
    mark.append(
      draw('line', { class: 'cursor', x1: x, x2: x, y1: at.over, y2: at.height - at.under }),
      draw('circle', { class: 'dot', cx: x, cy: at.y(span.denied), r: 5 }));
    tip.textContent = `${clock(span.from)} · ${count(span.denied)} denied, ${count(span.allowed)} allowed${index === spans.length - 1 ? ' so far' : ''}`;
    const room = at.width - tip.offsetWidth;
    tip.style.transform = `translate(${Math.max(0, Math.min(room, x - tip.offsetWidth / 2))}px, -8px)`;
  };
  const nearest = (event) => {
    const share = (event.clientX - box.getBoundingClientRect().left - at.left) / (at.width - at.left - at.right);
    return Math.max(0, Math.min(spans.length - 1, Math.round(share * (spans.length - 1))));
  };
  svg.addEventListener('pointermove', (event) => show(nearest(event)));
  svg.addEventListener('pointerleave', () => show(null));
  svg.addEventListener('blur', () => { if (svg.isConnected) show(null); });
  svg.addEventListener('keydown', (event) => {
    const last = spans.length - 1, now = timeline.at ?? last;
    const to = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last, Escape: null }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    show(to === null ? null : Math.max(0, Math.min(last, to)));
  });
  if (timeline.at !== null && timeline.at < spans.length) show(timeline.at);
}

function timelineTable(spans) {
  const rows = [...spans].reverse().filter((span) => span.denied || span.allowed);
  if (rows.length === 0) return [empty('There were no requests.')];
  return [table(['From', 'Denied', 'Allowed'], rows.map((span) => [
    make('td', {}, moment(span.from)),
    make('td', { class: 'number' }, count(span.denied)),
    make('td', { class: 'number' }, count(span.allowed)),
  ]), [1, 2])];
}

function table(heads, rows, numbers = []) {
  const head = heads.map((text, index) => make('th', { scope: 'col', class: numbers.includes(index) ? 'number' : null },
    text === 'Action' ? make('span', { class: 'unseen' }, text) : text));
  return make('table', {}, make('thead', {}, make('tr', {}, ...head)),
    make('tbody', {}, ...rows.map((cells) => make('tr', {}, ...cells))));
}

/** Makes a table one that becomes a list of rows on a phone. Roles keep it a table for screen readers. */
function stacking(element) {
  const heads = [...element.querySelectorAll('th')].map((head) => head.textContent);
  const roles = { table: [element], rowgroup: element.querySelectorAll('thead, tbody'), row: element.querySelectorAll('tr'), columnheader: element.querySelectorAll('th'), cell: element.querySelectorAll('td') };
  for (const [role, elements] of Object.entries(roles)) elements.forEach((of) => of.setAttribute('role', role));
  element.classList.add('stacking');
  element.querySelectorAll('td').forEach((cell) => {
    const head = heads[cell.cellIndex];
    if (cell.cellIndex > 0 && head !== 'Action') cell.prepend(make('span', { class: 'head', 'aria-hidden': 'true' }, head));
  });
  return element;
}

/** Creates a half circle that is filled to the remaining share. */
function gauge(endpoint) {
  const left = endpoint.average_remaining;
  const kind = left < 0.2 ? 'stop' : left < 0.5 ? 'mind' : '';
  const arc = 'M13 64A43 43 0 0 1 99 64';
  const svg = draw('svg', { viewBox: '0 0 112 70', 'aria-hidden': 'true' },
    draw('path', { class: 'gauge-track', d: arc }),
    draw('path', { class: `gauge-value ${kind}`, d: arc, pathLength: 100, 'stroke-dasharray': `${left < 0.005 ? 0.001 : left * 100} 200` }),
    draw('text', { x: 56, y: 60 }, percent(left)));
  const meter = make('div', { role: 'meter', 'aria-valuemin': 0, 'aria-valuemax': 100, 'aria-valuenow': Math.round(left * 100), 'aria-label': `${isolated(named(endpoint.name))}: ${percent(left)} left` }, svg);
  return make('li', {}, meter, code(named(endpoint.name)));
}
