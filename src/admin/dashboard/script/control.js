// Overrides, maintenance and policy.

async function refreshControl() {
  const { overrides } = await request('overrides');
  fill(byId('overrides'), JSON.stringify(overrides), () => {
    if (overrides.length === 0) return [empty('None. Look up a caller to set one.')];
    return [table(['Caller', 'Limit', ''], overrides.map((of) => [
      make('td', {}, make('code', { class: 'mono' }, of.counter), make('small', {}, `${of.rule} · ${of.until ? `until ${moment(of.until)}` : 'no end'}`)),
      make('td', {}, make('code', { class: 'mono' }, of.limit)),
      make('td', { class: 'number' }, removeButton(of, 'Remove')),
    ]))];
  });
}

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

let policyVersion = null;

/** Fetches the policy if its status has changed. */
async function refreshPolicy(status) {
  const version = JSON.stringify(status);
  if (version === policyVersion) return;
  const data = await request('policy');
  policyVersion = version;
  showPolicy(data);
}

function showPolicy({ status, policy }) {
  byId('policy-version').textContent = `Version ${status.version}`;
  byId('policy-since').textContent = `loaded ${moment(status.since)}` + (status.failures ? ` · ${plural(status.failures, 'failed reload')}` : '');
  byId('policy-problem').hidden = !status.problem;
  byId('policy-problem').replaceChildren(make('p', { class: 'problem' }, 'The last reload failed:'), make('pre', {}, status.problem ?? ''));
  byId('policy-warnings').hidden = policy.warnings.length === 0;
  byId('policy-warnings').replaceChildren(...policy.warnings.map((warning) => make('li', {}, make('code', { class: 'mono' }, warning.path), ` ${warning.text}`)));
  const tiers = policy.tiers.map((tier) => tier.name);
  const chosen = byId('tier').value;
  byId('tier').replaceChildren(make('option', { value: '' }, 'as known here'), ...tiers.map((name) => make('option', { value: name, selected: name === chosen }, name)));
  const routes = (rule) => policy.endpoints.filter((endpoint) => endpoint.rules.includes(rule.name)).map((endpoint) => endpoint.route);
  const rows = policy.rules.map((rule) => [
    make('td', {}, make('code', { class: 'mono' }, rule.name), ' ', rule.mode === 'dry-run' ? make('span', { class: 'chip' }, 'dry run') : null,
      make('small', {}, rule.kind === 'global' ? `global, ${rule.callers}` : rule.kind === 'always-on' ? 'every request' : routes(rule).join(', ') || 'no endpoint')),
    make('td', {}, rule.per),
    ...tiers.map((tier) => make('td', { class: 'number' }, make('code', { class: 'mono' }, rule.limits[tier].join(', ')))),
  ]);
  byId('rules').replaceChildren(rows.length ? table(['Rule', 'Per', ...tiers], rows, tiers.map((_, index) => index + 2)) : empty('There are no rules: nothing is limited.'));
  const { roles, networks, routes: exempt, subjects } = policy.exempt;
  const parts = [[roles, 'roles'], [networks, 'networks'], [exempt, 'routes']].filter(([list]) => list.length).map(([list, name]) => `${name} ${list.join(', ')}`);
  if (subjects) parts.push(plural(subjects, 'subject'));
  byId('exempt').textContent = parts.length ? visible(`Exempt: ${parts.join('; ')}.`) : 'There are no exemptions.';
}

byId('reload').addEventListener('click', async (event) => {
  event.target.disabled = true;
  try {
    const status = await request('reload', {});
    notify(`Version ${status.version} of the policy is loaded.`);
  } catch (problem) {
    notify(problem.status === 422 ? 'The policy was not replaced. The errors are shown below.' : problem.message);
  }
  event.target.disabled = false;
  await refresh();
});
