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
    byId('lookup-problem').textContent = visible(problem.message);
    if (problem.status === 401) signOut(problem.message);
  }
}

byId('lookup-form').addEventListener('submit', (event) => {
  event.preventDefault();
  find({ [byId('dimension').value.trim()]: byId('value').value });
});

function showFound(told) {
  shown = told;
  const chip = told.exempt ? ['mind', 'not counted'] : told.blocked ? ['stop', 'blocked'] : ['go', 'not blocked'];
  const who = Object.entries(told.subject).map(([name, value]) => `${name} ${value}`).join(', ');
  const order = (limit) => (limit.blocked ? 2 : 0) + (limit.limit ? limit.used / limit.limit : 0);
  const touched = told.limits.filter((limit) => limit.used > 0 || limit.blocked || limit.overridden);
  touched.sort((one, other) => order(other) - order(one));
  const others = told.limits.filter((limit) => !touched.includes(limit));
  byId('found').replaceChildren(make('div', { class: 'verdict', id: 'verdict', tabindex: -1, role: 'group', 'aria-label': `${isolated(who)}: ${chip[1]}` },
    make('div', { class: 'verdict-head' },
      make('h2', {}, who), make('span', { class: `chip ${chip[0]}` }, chip[1]),
      make('span', { class: 'chip' }, `tier ${told.tier}${told.tier_known ? '' : ', if no other is known'}`),
      told.degraded ? make('span', { class: 'chip mind' }, 'counts of this process only') : null),
    make('ul', { class: 'because' }, ...told.because.map((sentence) => make('li', {}, sentence))),
    touched.length ? make('ul', { class: 'limits', 'aria-label': 'Limits in use' }, ...touched.map((limit) => standing(limit, told))) : null,
    others.length ? make('details', {}, make('summary', {}, plural(others.length, 'limit that is', 'limits that are') + ' untouched'),
      make('ul', { class: 'limits' }, ...others.map((limit) => standing(limit, told)))) : null,
    told.explanation ? make('details', { open: true }, make('summary', {}, `How ${told.explanation.request} is counted`), make('pre', {}, told.explanation.text)) : null,
    setLimit(told, touched[0] ?? told.limits[0]),
    make('div', { class: 'actions' },
      ...told.overrides.map((of) => removeButton(of, `Remove ${of.limit} for ${of.rule}`)),
      make('button', { type: 'button', class: 'danger', id: 'reset', on: { click: () => reset(told, who) } }, 'Reset counters'))));
  byId('verdict').focus({ preventScroll: true });
}

function standing(limit, told) {
  const used = limit.limit === null ? 0 : limit.limit === 0 ? 1 : limit.used / limit.limit;
  const kind = limit.blocked ? 'stop' : used >= 0.8 ? 'mind' : 'go';
  const rest = limit.limit === null ? 'unlimited' : limit.limit === 0 ? 'blocked' : `${count(limit.used)} of ${count(limit.limit)}`;
  const when = limit.reset_at && limit.used > 0
    ? ` · ${limit.blocked ? 'admitted' : 'resets'} in ${span(limit.retry_after ?? between(told.timestamp, limit.reset_at))}` : '';
  return make('li', {},
    make('span', {}, make('code', { class: 'mono' }, limit.policy), ' ',
      limit.overridden ? make('span', { class: 'chip mind' }, 'override') : null, ' ',
      limit.mode === 'dry-run' ? make('span', { class: 'chip' }, 'dry run') : null),
    make('span', { class: 'tail' }, rest + when),
    bar(used, kind));
}

/** Creates the form that sets an override for the caller. */
function setLimit(told, first) {
  const rules = [...new Set(told.limits.map((limit) => limit.rule))];
  const present = (rule) => told.limits.filter((limit) => limit.rule === rule).map((limit) => limit.quota).join(', ');
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
      const set = await request('overrides', { subject: told.subject, rule: rule.value, limit: limit.value.trim(), until: end });
      notify(`${isolated(set.counter)} now has ${set.limit} under ${set.rule}.`);
      await Promise.all([find(told.subject), refreshControl()]);
    } catch (refused) {
      problem.textContent = visible(refused.message);
    }
  };
  return make('form', { class: 'act', id: 'override-form', autocomplete: 'off', on: { submit } },
    make('h3', {}, 'Set another limit'),
    make('div', { class: 'fields' },
      make('p', { class: 'field wide' }, make('label', { for: 'override-rule' }, 'Rule ', hint), rule),
      make('p', { class: 'field wide' }, make('label', { for: 'override-limit' }, 'Limit'), limit),
      make('p', { class: 'field wide' }, make('label', { for: 'override-until' }, 'Until ', make('span', { class: 'muted' }, '(default: no end)')), until),
      make('p', { class: 'field action' }, make('button', { type: 'submit', class: 'primary' }, 'Set limit'))),
    make('datalist', { id: 'limit-words' }, make('option', { value: 'unlimited' }), make('option', { value: 'blocked' })),
    problem);
}

async function reset(told, who) {
  const yes = await confirmed(`Reset all counters of ${isolated(who)}? Their limits start at zero.`, 'Reset');
  if (!yes) return;
  try {
    await request('reset', { subject: told.subject });
    notify(`The counters of ${isolated(who)} are reset.`);
    await find(told.subject);
  } catch (problem) {
    notify(problem.message);
  }
}

function removeButton(of, text) {
  const remove = async () => {
    const yes = await confirmed(`Remove the override ${of.limit} of ${isolated(of.counter)} under ${of.rule}?`, 'Remove');
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
  return make('button', { type: 'button', class: text === 'Remove' ? 'small' : null, 'aria-label': `Remove the override of ${isolated(of.counter)} under ${of.rule}`, on: { click: remove } }, text);
}
