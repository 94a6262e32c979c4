// Overrides and maintenance.

async function refreshControl() {
  const { overrides } = await request('overrides');
  fill(byId('overrides'), JSON.stringify(overrides), () => {
    if (overrides.length === 0) return [empty('None. Every caller has the limits of the policy.')];
    return [stacking(table(['Caller', 'Rule', 'Limit', 'Until', 'Action'], overrides.map((of) => [
      make('td', {}, code(of.counter)),
      make('td', {}, code(of.rule)),
      make('td', {}, code(quotaText(of.limit))),
      make('td', { class: 'until' }, of.until ? moment(of.until) : 'no end'),
      make('td', { class: 'number' }, removeButton(of, 'Remove')),
    ])))];
  });
}

/** Returns the limit that was typed, as the API reads it: without thousands separators. */
const quotaOf = (typed) => typed.trim().replace(/(?<=\d),(?=\d{3})/g, '');

// The form for a new override. Each error of the API names a field, and is shown beside it.
const FIELDS = { 'rule name': 'new-rule', end: 'new-until', ip: 'new-value', subject: 'new-value' };

function showProblem(id, text) {
  for (const field of ['new-value', 'new-rule', 'new-limit', 'new-until']) {
    const isWrong = field === id;
    showMessage(byId(`${field}-problem`), isWrong ? text : '');
    if (isWrong) byId(field).setAttribute('aria-invalid', 'true'); else byId(field).removeAttribute('aria-invalid');
  }
  if (id) byId(id).focus();
}

byId('new-kind').addEventListener('change', () => {
  const isQuota = byId('new-kind').value === 'quota';
  byId('new-limit').disabled = !isQuota;
  byId('new-limit').required = isQuota;
});

byId('new-override').addEventListener('submit', async (event) => {
  event.preventDefault();
  showProblem(null);
  byId('new-override-problem').textContent = '';
  const kind = byId('new-kind').value, until = byId('new-until').value;
  const body = {
    subject: { [byId('new-dimension').value.trim()]: byId('new-value').value.trim() },
    rule: byId('new-rule').value,
    limit: kind === 'quota' ? quotaOf(byId('new-limit').value) : kind,
    until: until ? new Date(until).toISOString() : null,
  };
  try {
    const set = await request('overrides', body);
    notify(`${isolated(set.counter)} now has ${quotaText(set.limit)} under ${set.rule}.`);
    event.target.reset();
    byId('new-kind').dispatchEvent(new Event('change'));
    await refreshControl();
    if (shown) await find(shown.subject);
  } catch (problem) {
    if (problem.status === 401) return signOut(problem.message);
    if (problem.status === 422) showProblem(FIELDS[problem.field] ?? 'new-limit', problem.message);
    else showMessage(byId('new-override-problem'), problem.message);
  }
});

function showMaintenance({ active, until, by }) {
  const state = byId('maintenance-state');
  state.textContent = active ? `off until ${moment(until)}` : 'limits are on';
  state.className = `chip ${active ? 'mind' : 'go'}`;
  byId('maintenance-off').hidden = !active || by === 'policy';
  byId('maintenance-on').textContent = active ? 'Change' : 'Switch off';
}

async function setMaintenance(until) {
  try {
    showMaintenance(await request('maintenance', { until }));
    notify(until ? `All limits are off until ${moment(until)}.` : 'Limits are on again.');
    refresh();
  } catch (problem) {
    notify(problem.message);
  }
}

byId('maintenance-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const chosen = byId('maintenance-for');
  const words = chosen.selectedOptions[0].textContent;
  if (await confirmed(`Switch all limits off for ${words}? No request is limited until then.`, 'Switch off')) {
    setMaintenance(new Date(Date.now() + chosen.value * 60000).toISOString());
  }
});
byId('maintenance-off').addEventListener('click', () => setMaintenance(null));
