// The policy and the settings that apply beside it.

let policyVersion = null;

/** Fetches the policy if its status has changed. */
async function refreshPolicy(status) {
  const version = JSON.stringify(status);
  if (version === policyVersion) return;
  const data = await request('policy');
  policyVersion = version;
  showPolicy(data);
}

/** Fills a select with names. The first option stays selected unless another one was. */
function offer(select, names, first) {
  const chosen = select.value;
  const option = (name) => make('option', { value: name, selected: name === chosen }, name);
  select.replaceChildren(...(first === undefined ? [] : [make('option', { value: '' }, first)]), ...names.map(option));
}

function showPolicy({ status, policy, settings }) {
  byId('policy-version').textContent = `Version ${count(status.version)}`;
  byId('policy-since').textContent = `loaded ${moment(status.since)}` + (status.failures ? ` · ${plural(status.failures, 'failed reload')}` : '');
  byId('policy-problem').hidden = !status.problem;
  byId('policy-problem').replaceChildren(make('p', { class: 'problem' }, 'The last reload failed:'), make('pre', {}, status.problem ?? ''));
  byId('policy-warnings').hidden = policy.warnings.length === 0;
  byId('policy-warnings').replaceChildren(...policy.warnings.map((warning) => make('li', {}, code(warning.path), ' ', ...marked(warning.text))));
  offer(byId('tier'), policy.tiers.map((tier) => tier.name), 'as known here');
  offer(byId('new-rule'), [...new Set(policy.rules.map((rule) => rule.name))]);
  showSettings(policy, settings);
  showRules(policy);
}

const HEADERS = { legacy: ['X-RateLimit-*'], ietf: ['RateLimit', 'RateLimit-Policy'], both: ['X-RateLimit-*', 'RateLimit', 'RateLimit-Policy'], none: [] };

/** Returns names in monospace, separated by commas. */
const codes = (names) => names.flatMap((name, index) => (index ? [', ', code(name)] : [code(name)]));

function showSettings(policy, settings) {
  const { roles, networks, routes, subjects } = policy.exempt;
  const list = (items, none) => (items.length ? make('ul', {}, ...items.map((item) => make('li', {}, ...item))) : none);
  const exempt = [['roles', roles], ['networks', networks], ['routes', routes]].filter(([, names]) => names.length).map(([kind, names]) => [`${kind} `, ...codes(names)]);
  if (subjects) exempt.push([plural(subjects, 'caller')]);
  const headers = codes(HEADERS[settings.headers] ?? [settings.headers]);
  const hasReset = settings.headers === 'legacy' || settings.headers === 'both';
  const facts = [
    ['Tiers', policy.tiers.flatMap((tier, index) => [index ? ', ' : '', code(tier.name), ` ×${tier.multiplier}${tier.default ? ' (default)' : ''}`])],
    ['Warning', [settings.warn_at > 1 ? 'never' : `from ${percent(settings.warn_at)} of a limit on`]],
    ['Headers', headers.length ? [...headers, hasReset ? `, reset in ${settings.reset === 'unix-seconds' ? 'Unix seconds' : 'seconds from now'}` : ''] : ['none']],
    ['Identity', [list(settings.identity.map(marked), 'no source: every caller is counted by IP')]],
    ['Wrong credentials', [settings.on_invalid_credentials === 'reject' ? 'rejected with 401' : 'counted by IP, as without credentials']],
    ['Exempt', [list(exempt, 'nothing')]],
  ];
  byId('settings').replaceChildren(...facts.map(([name, values]) => make('div', {}, make('dt', {}, name), make('dd', {}, ...values))));
}

function showRules(policy) {
  const tiers = policy.tiers.map((tier) => tier.name);
  const routes = (rule) => policy.endpoints.filter((endpoint) => endpoint.rules.includes(rule.name)).map((endpoint) => endpoint.route);
  const scope = (rule) => {
    if (rule.kind === 'global') return [`global, ${rule.callers}`];
    if (rule.kind === 'always-on') return ['every request'];
    const of = routes(rule);
    return of.length ? codes(of) : ['no endpoint'];
  };
  const quotas = (rule) => Object.values(rule.limits).flat();
  const algorithms = (rule) => [...new Set(quotas(rule).map(algorithmOf).filter((name) => name !== null))];
  const chip = (text) => make('span', { class: 'chip' }, text);
  const rows = policy.rules.map((rule) => [
    make('td', {}, code(rule.name), ' ', rule.mode === 'dry-run' ? chip('dry run') : null, rule.quiet ? chip('reported only in denials') : null, make('small', {}, ...scope(rule))),
    make('td', {}, code(rule.per)),
    make('td', { class: 'algorithm' }, algorithms(rule).join(', ') || '–'),
    ...tiers.map((tier) => make('td', { class: 'number' }, ...rule.limits[tier].map((quota) => make('code', { class: 'mono quota' }, quotaText(quota))))),
  ]);
  byId('rules').replaceChildren(rows.length
    ? stacking(table(['Rule', 'Per', 'Algorithm', ...tiers], rows, tiers.map((_, index) => index + 3)))
    : empty('There are no rules: nothing is limited.'));
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
