// Overview: totals, timeline, endpoints, offenders, alerts.

/** Returns the name of an endpoint. `*` is everything that matches no endpoint of the policy. */
const named = (endpoint) => (endpoint === '*' ? 'everything else' : endpoint);

function showOverview(data) {
  byId('since').textContent = `since ${moment(data.since)} · ${plural(data.totals.allowed + data.totals.denied, 'request')} counted`;
  showHeadline(data);
  showStrip(data);
  const spans = timeline.period === 'hour' ? data.last_hour : data.last_day;
  const key = JSON.stringify([timeline.period, spans, byId('timeline').clientWidth]);
  if (byId('timeline').dataset.key !== key) {
    byId('timeline').dataset.key = key;
    drawTimeline(spans, data.since);
    byId('timeline-table').replaceChildren(...timelineTable(spans));
  }
  showEndpoints(data);
  showOffenders(data);
  showAlerts(data);
  const known = data.endpoints.filter((endpoint) => endpoint.average_remaining !== null);
  known.sort((one, other) => one.average_remaining - other.average_remaining);
  fill(byId('gauges'), JSON.stringify(known.slice(0, 12)), () =>
    known.length ? known.slice(0, 12).map(gauge) : [make('li', { class: 'none' }, empty('There were no requests in the past hour.'))]);
  byId('gauges').classList.toggle('is-empty', known.length === 0);
}

function showHeadline(data) {
  const day = data.denied_last_day, before = data.denied_the_day_before;
  byId('denied-day').textContent = count(day);
  const change = byId('denied-change');
  change.className = 'detail';
  if (before === null) change.textContent = 'No day before to compare with yet';
  else if (before === 0) change.textContent = day ? 'None the day before' : 'None the day before either';
  else {
    const by = (day - before) / before;
    change.textContent = `${by > 0 ? '+' : by < 0 ? '−' : '±'}${Math.abs(by) < 0.005 ? '0\u00a0%' : percent(Math.abs(by))} from the day before`;
    change.classList.add(by > 0 ? 'worse' : 'better');
  }
  const worst = data.endpoints.find((endpoint) => endpoint.denied_last_day > 0);
  fill(byId('worst-endpoint'), worst?.name ?? '', () => [worst ? code(named(worst.name)) : 'None']);
  byId('worst-share').textContent = worst
    ? `${plural(worst.denied_last_day, 'denial')}, ${percent(worst.denied_share)} of all`
    : 'No request was denied';
  const share = data.ordinary_denied;
  byId('ordinary').textContent = share === null ? '–' : percent(share);
  byId('ordinary').classList.toggle('worse', share !== null && share > 0.005);
  byId('ordinary-detail').textContent = share === null ? 'No requests in the past hour' : 'Estimated share, past hour. Target: below 0.5\u00a0%';
}

function showStrip(data) {
  const { totals, retries, violators } = data;
  const values = [
    ['Allowed', count(totals.allowed)],
    ['Denied', count(totals.denied)],
    ['Exempt', count(totals.exempt)],
    ['Warned', count(totals.warned)],
    ['Callers denied, 1 h', `${violators.exact ? '' : '≈ '}${count(violators.count)}`],
    ['Retry success', retries.success === null ? '–' : percent(retries.success)],
    ['Wrong credentials', count(totals.invalid_credentials)],
  ];
  if (totals.would_deny) values.push(['Dry-run denials', count(totals.would_deny)]);
  if (totals.store_failures) values.push(['Store failures', count(totals.store_failures)]);
  fill(byId('strip'), JSON.stringify(values), () =>
    values.map(([name, value]) => make('div', {}, make('dt', {}, name), make('dd', {}, value))));
}

function showEndpoints(data) {
  const worst = data.endpoints.filter((endpoint) => endpoint.denied_last_day > 0).slice(0, 10);
  fill(byId('endpoints'), JSON.stringify(worst), () => {
    if (worst.length === 0) return [make('li', { class: 'none' }, empty('No endpoint has denied a request.'))];
    const most = worst[0].denied_last_day;
    return worst.map((endpoint) => make('li', {},
      code(named(endpoint.name)),
      make('span', { class: 'count' }, count(endpoint.denied_last_day)),
      bar(endpoint.denied_last_day / most, 'stop')));
  });
}

function showOffenders(data) {
  const worst = data.offenders.slice(0, 10);
  fill(byId('offenders'), JSON.stringify(worst), () => {
    if (worst.length === 0) return [empty('No caller was denied in the past hour.')];
    return [table(['Caller', 'Denied', 'Action'], worst.map((offender) => [
      make('td', {}, code(offender.counter),
        make('small', {}, code(offender.policy), ` · ${clock(offender.last_seen)}`)),
      make('td', { class: 'number' }, offender.at_least === offender.denied
        ? count(offender.denied) : `${count(offender.at_least)}–${count(offender.denied)}`),
      make('td', { class: 'number' }, whyButton(offender)),
    ]), [1])];
  });
}

/** Kinds of alerts whose list is open. The list is made anew when a value changes. */
const opened = new Set();

/** Shows one line for each kind of alert, so that many offenders do not push the statistics down. */
function showAlerts(data) {
  byId('alerts').hidden = data.alerts.length === 0;
  const kinds = [...new Set(data.alerts.map((alert) => alert.kind))];
  const all = kinds.map((kind) => data.alerts.filter((alert) => alert.kind === kind));
  fill(byId('alerts'), JSON.stringify(data.alerts), () => all.map((alerts) =>
    make('li', { class: 'alert', 'data-severity': alerts[0].severity },
      make('span', { class: 'chip' }, alerts[0].severity),
      ...(alerts.length > 1 ? alertGroup(alerts) : oneAlert(alerts[0])))));
}

/** Returns the sentence of an alert, with thousands separators. */
function alertText({ kind, value, threshold, addresses, text }) {
  const over = `more than ${count(threshold)}`;
  switch (kind) {
    case 'distributed_attack': return `${count(value)} requests from ${addresses.exact ? '' : 'about '}${count(addresses.count)} addresses were denied within ten minutes, ${over}`;
    case 'many_denials': return `${count(value)} requests were denied within an hour, ${over}`;
    case 'offender': return `${count(value)} requests of one caller were denied within an hour, ${over}`;
    default: return text.charAt(0).toUpperCase() + text.slice(1);
  }
}

function oneAlert(alert) {
  const about = alert.counter ? [': ', code(alert.counter)] : [];
  return [make('p', {}, alertText(alert), ...about, make('span', { class: 'muted' }, ` since ${clock(alert.since)}`)), whyButton(alert)];
}

function alertGroup(alerts) {
  const { kind, threshold } = alerts[0];
  const since = alerts.map((alert) => alert.since).reduce((one, other) => (one < other ? one : other));
  const row = (alert) => [
    make('td', {}, code(alert.counter ?? '')),
    make('td', { class: 'number' }, count(alert.value)),
    make('td', { class: 'number' }, whyButton(alert)),
  ];
  const list = make('details', { open: opened.has(kind) },
    make('summary', {}, `${count(alerts.length)} callers over ${count(threshold)} denials within an hour`,
      make('span', { class: 'muted' }, ` since ${clock(since)}`)),
    make('div', { class: 'scroll', role: 'region', tabindex: 0, 'aria-label': 'Callers with an alert' },
      table(['Caller', 'Denied', 'Action'], alerts.map(row), [1])));
  list.addEventListener('toggle', () => { if (list.open) opened.add(kind); else opened.delete(kind); });
  return [list];
}

/** Creates the button that looks up a caller. A subject that is too long for the API is `null`. */
function whyButton({ subject, counter }) {
  if (!subject) return make('span');
  return make('button', {
    type: 'button', class: 'small', 'aria-label': `Why is ${isolated(counter)} blocked?`,
    on: { click: () => lookUp(subject) },
  }, 'Why?');
}

/** Shows banners: store unavailable, maintenance, policy that was not reloaded. */
function showBanners(data) {
  const banners = [];
  if (!data.store.healthy) banners.push(['bad', 'The store is unavailable.',
    `Limits hold in this process only${data.store.since ? `, since ${clock(data.store.since)}` : ''}${data.store.why ? `: ${data.store.why}` : ''}. The values on this page are of this process.`]);
  if (data.maintenance.active) banners.push(['', 'All limits are off',
    `until ${moment(data.maintenance.until)}, ${data.maintenance.by === 'policy' ? 'set in the policy' : 'set by an operator'}. Nothing is counted.`]);
  if (data.policy.problem) banners.push(['bad', 'The policy file was rejected.', 'The previous policy still applies. See Policy for the errors.']);
  fill(byId('banners'), JSON.stringify(banners), () =>
    banners.map(([kind, title, text]) => make('p', { class: `banner ${kind}` }, make('strong', {}, title), make('span', {}, text))));
}
