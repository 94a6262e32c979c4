// Look-up of one caller: its limits, why it is blocked, override and reset.

let shown = null;

/** Looks up a caller that is shown elsewhere on the page. */
function lookUp(subject) {
  const [dimension, value] = Object.entries(subject)[0] ?? ['user', ''];
  byId('dimension').value = dimension;
  byId('value').value = value;
  byId('request').value = '';
  // A tier that was chosen for another caller does not apply.
  byId('tier').value = '';
  byId('lookup').scrollIntoView();
  return find(subject);
}

async function find(subject) {
  const body = { subject };
  if (byId('tier').value) body.tier = byId('tier').value;
  if (byId('request').value.trim()) body.request = byId('request').value.trim();
  byId('lookup-problem').textContent = '';
  try {
    showFound(await request('lookup', body));
  } catch (problem) {
    byId('found').replaceChildren();
    showMessage(byId('lookup-problem'), problem.message);
    if (problem.status === 401) signOut(problem.message);
  }
}

byId('lookup-form').addEventListener('submit', (event) => {
  event.preventDefault();
  find({ [byId('dimension').value.trim()]: byId('value').value });
});

function showFound(data) {
  shown = data;
  const chip = data.exempt ? ['mind', 'not counted'] : data.blocked ? ['stop', 'blocked'] : ['go', 'not blocked'];
  const who = Object.entries(data.subject).map(([name, value]) => `${name} ${value}`).join(', ');
  const order = (limit) => (limit.blocked ? 2 : 0) + (limit.limit ? limit.used / limit.limit : Number(limit.limit === 0));
  const touched = data.limits.filter((limit) => limit.used > 0 || limit.blocked || limit.overridden);
  touched.sort((one, other) => order(other) - order(one));
  const others = data.limits.filter((limit) => !touched.includes(limit));
  const notes = notesOn(data);
  byId('found').replaceChildren(make('div', { class: 'found-caller', id: 'found-caller', tabindex: -1, role: 'group', 'aria-label': `${isolated(who)}: ${chip[1]}` },
    make('div', { class: 'found-caller-head' },
      make('h2', {}, who), make('span', { class: `chip ${chip[0]}` }, chip[1]),
      make('span', { class: 'chip' }, `tier ${data.tier}${data.tier_assumed ? ', assumed' : ''}`),
      data.degraded ? make('span', { class: 'chip mind' }, 'counts of this process only') : null),
    make('ul', { class: 'because' }, ...data.because.map((sentence) => make('li', {}, sentence.replace(/\b\d{4,}(?= days)/, (days) => count(Number(days)))))),
    ...notes.map((note) => make('p', { class: 'muted' }, note)),
    touched.length ? make('ul', { class: 'limits', 'aria-label': 'Limits in use' }, ...touched.map((limit) => limitRow(limit, data))) : null,
    others.length ? make('details', {}, make('summary', {}, plural(others.length, 'limit that is', 'limits that are') + ' untouched'),
      make('ul', { class: 'limits' }, ...others.map((limit) => limitRow(limit, data)))) : null,
    data.explanation ? make('details', { open: true }, make('summary', {}, `How ${data.explanation.request} is counted`), make('pre', {}, data.explanation.text)) : null,
    setLimit(data, touched[0] ?? data.limits[0]),
    make('div', { class: 'actions', 'data-changes': '' },
      ...data.overrides.map((of) => removeButton(of, `Remove ${quotaText(of.limit)} for ${of.rule}`)),
      make('button', { type: 'button', class: 'danger', id: 'reset', on: { click: () => reset(data, who) } }, 'Reset counters'))));
  byId('found-caller').focus({ preventScroll: true });
}

/** Returns what the numbers depend on and do not show. */
function notesOn(data) {
  const notes = [];
  const since = data.limits.filter((limit) => limit.blocked && limit.blocked_since).map((limit) => limit.blocked_since).sort()[0];
  if (since && !data.exempt) notes.push(`Blocked since ${precise(since)}, ${span(between(since, data.timestamp))} ago.`);
  if (data.tier_assumed) notes.push('The tier is assumed: no denial of this caller in the past hour is known here, and its token may name another tier. Choose a tier to see its limits.');
  if (data.ip_limits_omitted) notes.push(`${plural(data.ip_limits_omitted, 'limit')} per IP ${data.ip_limits_omitted === 1 ? 'is' : 'are'} not listed. Look up the IP to see ${data.ip_limits_omitted === 1 ? 'it' : 'them'}.`);
  return notes;
}

function limitRow(limit, data) {
  const used = limit.limit === null ? 0 : limit.limit === 0 ? 1 : limit.used / limit.limit;
  const kind = limit.blocked ? 'stop' : used >= 0.8 ? 'mind' : 'go';
  const rest = limit.limit === null ? 'unlimited' : limit.limit === 0 ? 'blocked' : `${count(limit.used)} of ${count(limit.limit)}`;
  const when = limit.reset_at && (limit.used > 0 || limit.blocked)
    ? ` · ${limit.blocked ? 'admitted' : 'resets'} in ${span(limit.retry_after ?? between(data.timestamp, limit.reset_at))}` : '';
  return make('li', {},
    make('span', {}, code(limit.policy), ' ',
      limit.overridden ? make('span', { class: 'chip mind' }, 'override') : null, ' ',
      limit.mode === 'dry-run' ? make('span', { class: 'chip' }, 'dry run') : null),
    make('span', { class: 'tail' }, rest + when),
    bar(used, kind));
}

/** Creates the form that sets an override for the caller. */
function setLimit(data, first) {
  const present = (rule) => data.limits.filter((limit) => limit.rule === rule).map((limit) => quotaText(limit.quota)).join(', ');
  const rules = [...new Set(data.limits.map((limit) => limit.rule))];
  const hint = make('span', { class: 'muted' });
  const rule = make('select', { id: 'override-rule' }, ...rules.map((name) => make('option', { value: name, selected: name === first?.rule }, name)));
  const limit = make('input', { id: 'override-limit', required: true, placeholder: '20/hour', list: 'limit-words', autocapitalize: 'off', spellcheck: 'false' });
  const until = make('input', { id: 'override-until', type: 'datetime-local' });
  const problem = make('p', { class: 'problem', role: 'alert' });
  const update = () => { hint.textContent = `now ${present(rule.value)}`; };
  rule.addEventListener('change', update);
  update();
  const submit = async (event) => {
    event.preventDefault();
    problem.textContent = '';
    const end = until.value ? new Date(until.value).toISOString() : null;
    try {
      const set = await request('overrides', { subject: data.subject, rule: rule.value, limit: quotaOf(limit.value), until: end });
      notify(`${isolated(set.counter)} now has ${quotaText(set.limit)} under ${set.rule}.`);
      await Promise.all([find(data.subject), refreshControl()]);
    } catch (refused) {
      showMessage(problem, refused.message);
    }
  };
  return make('form', { class: 'act', id: 'override-form', 'data-changes': '', autocomplete: 'off', on: { submit } },
    make('h3', {}, 'Set another limit'),
    make('div', { class: 'fields' },
      make('p', { class: 'field wide' }, make('label', { for: 'override-rule' }, 'Rule ', hint), rule),
      make('p', { class: 'field wide' }, make('label', { for: 'override-limit' }, 'Limit'), limit),
      make('p', { class: 'field wide' }, make('label', { for: 'override-until' }, 'Until ', make('span', { class: 'muted' }, '(default: no end)')), until),
      make('p', { class: 'field action' }, make('button', { type: 'submit', class: 'primary' }, 'Set limit'))),
    make('datalist', { id: 'limit-words' }, make('option', { value: 'unlimited' }), make('option', { value: 'blocked' })),
    problem);
}

async function reset(data, who) {
  const yes = await confirmed(`Reset all counters of ${isolated(who)}? Their limits start at zero.`, 'Reset');
  if (!yes) return;
  try {
    await request('reset', { subject: data.subject });
    notify(`The counters of ${isolated(who)} are reset.`);
    await find(data.subject);
  } catch (problem) {
    notify(problem.message);
  }
}

function removeButton(of, text) {
  const remove = async () => {
    const yes = await confirmed(`Remove the override ${quotaText(of.limit)} of ${isolated(of.counter)} under ${of.rule}?`, 'Remove');
    if (!yes) return;
    try {
      await request('overrides/remove', { subject: of.subject, rule: of.rule });
      notify(`The override of ${isolated(of.counter)} under ${of.rule} is removed.`);
      await refreshControl();
      if (shown) await find(shown.subject);
    } catch (problem) {
      notify(problem.message);
    }
  };
  return make('button', { type: 'button', 'data-changes': '', class: text === 'Remove' ? 'small' : null, 'aria-label': text === 'Remove' ? `Remove the override of ${isolated(of.counter)} under ${of.rule}` : null, on: { click: remove } }, text);
}
