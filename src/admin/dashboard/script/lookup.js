// One caller: how all their limits stand, why they are blocked, and what can be done about it.

let shown = null;

/** Looks somebody up who was named elsewhere on the page. */
function lookUp(subject) {
  const [dimension, value] = Object.entries(subject)[0] ?? ['user', ''];
  byId('dimension').value = dimension;
  byId('value').value = value;
  byId('request').value = '';
  // What was chosen for somebody else says nothing of this one.
  byId('tier').value = '';
  byId('lookup').scrollIntoView();
  return find(subject);
}

async function find(subject) {
  const whom = { subject };
  if (byId('tier').value) whom.tier = byId('tier').value;
  if (byId('request').value.trim()) whom.request = byId('request').value.trim();
  byId('lookup-problem').textContent = '';
  try {
    showFound(await ask('lookup', whom));
  } catch (problem) {
    byId('found').replaceChildren();
    byId('lookup-problem').textContent = problem.message;
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
  byId('found').replaceChildren(make('div', { class: 'verdict', id: 'verdict', tabindex: -1, role: 'group', 'aria-label': `${who}: ${chip[1]}` },
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
      make('button', { type: 'button', class: 'danger', id: 'reset', on: { click: () => reset(told, who) } }, 'Forget what was counted'))));
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

/** The form that sets another limit for the one who is shown. */
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
      const set = await ask('overrides', { subject: told.subject, rule: rule.value, limit: limit.value.trim(), until: end });
      say(`${set.counter} now has ${set.limit} under ${set.rule}.`);
      await Promise.all([find(told.subject), refreshControl()]);
    } catch (refused) {
      problem.textContent = refused.message;
    }
  };
  return make('form', { class: 'act', id: 'override-form', autocomplete: 'off', on: { submit } },
    make('h3', {}, 'Set another limit'),
    make('div', { class: 'fields' },
      make('p', { class: 'field wide' }, make('label', { for: 'override-rule' }, 'Rule ', hint), rule),
      make('p', { class: 'field wide' }, make('label', { for: 'override-limit' }, 'Limit'), limit),
      make('p', { class: 'field wide' }, make('label', { for: 'override-until' }, 'Until ', make('span', { class: 'muted' }, '(else for good)')), until),
      make('p', { class: 'field action' }, make('button', { type: 'submit', class: 'primary' }, 'Set limit'))),
    make('datalist', { id: 'limit-words' }, make('option', { value: 'unlimited' }), make('option', { value: 'blocked' })),
    problem);
}

async function reset(told, who) {
  const yes = await confirmed(`Forget everything that was counted for ${who}? Their limits start from nothing.`, 'Forget');
  if (!yes) return;
  try {
    await ask('reset', { subject: told.subject });
    say(`What was counted for ${who} is forgotten.`);
    await find(told.subject);
  } catch (problem) {
    say(problem.message);
  }
}

function removeButton(of, text) {
  const remove = async () => {
    const yes = await confirmed(`Remove the limit ${of.limit} that was set for ${of.counter} under ${of.rule}?`, 'Remove');
    if (!yes) return;
    try {
      await ask('overrides/remove', { subject: of.subject, rule: of.rule });
      say(`The limit for ${of.counter} under ${of.rule} is removed.`);
      await refreshControl();
      if (shown) await find(shown.subject);
    } catch (problem) {
      say(problem.message);
    }
  };
  return make('button', { type: 'button', class: text === 'Remove' ? 'small' : null, 'aria-label': `Remove the limit of ${of.counter} under ${of.rule}`, on: { click: remove } }, text);
}
