// Sign-in and polling: every two seconds, less often while the server does not answer, not at all
// while the page is hidden.

const EVERY = 2000;
const AT_MOST = 30000;
let next, wait = EVERY, last = null, controlAt = 0;

function pulse(state, text) {
  byId('pulse').hidden = false;
  byId('pulse').dataset.state = state;
  byId('pulse-text').textContent = text;
}

function showSignedIn(yes) {
  document.querySelectorAll('[data-signed-in]').forEach((element) => { element.hidden = !yes; });
  byId('leave').hidden = !yes || !stored.token;
  byId('sign-in').hidden = yes;
}

function signOut(message) {
  clearTimeout(next);
  stored.token = null;
  last = null;
  policyVersion = null;
  byId('banners').replaceChildren();
  delete byId('banners').dataset.key;
  byId('found').replaceChildren();
  byId('pulse').hidden = true;
  byId('sign-in-problem').textContent = message ?? '';
  showSignedIn(false);
  byId('token').focus();
}

async function refresh() {
  clearTimeout(next);
  const { token } = stored;
  try {
    const data = await request('statistics');
    // The user may have signed out meanwhile.
    if (stored.token !== token) return;
    wait = EVERY;
    document.body.dataset.role = data.role;
    showSignedIn(true);
    pulse('live', 'Live');
    showOverview(data);
    showBanners(data);
    showMaintenance(data.maintenance);
    last = data;
    await refreshPolicy(data.policy);
    // Other operators may have set overrides.
    if (Date.now() - controlAt > 10000) {
      controlAt = Date.now();
      await refreshControl();
    }
  } catch (problem) {
    if (stored.token !== token) return;
    if (problem.status === 401) return signOut(problem.message);
    if (problem.status === 429) return signOut(problem.message);
    wait = Math.min(wait * 2, AT_MOST);
    const isRefused = problem instanceof ApiError;
    // The response may be of another version of the server. Old values must not seem live.
    if (!isRefused) reportError(problem);
    pulse('gone', `No answer${isRefused ? '' : ' that can be shown'}, again in ${span(wait / 1000)}`);
    if (last) {
      const message = isRefused ? problem.message : 'The response cannot be shown. Reload the page.';
      delete byId('banners').dataset.key;
      byId('banners').replaceChildren(make('p', { class: 'banner bad' }, make('strong', {}, message), make('span', {}, `What is below is from ${new Date(last.at).toLocaleTimeString()}.`)));
    }
  }
  schedule();
}

function schedule() {
  clearTimeout(next);
  if (document.hidden) return pulse('idle', 'Paused');
  next = setTimeout(refresh, wait);
}

document.addEventListener('visibilitychange', () => {
  if (!byId('sign-in').hidden) return;
  if (document.hidden) schedule(); else refresh();
});

byId('sign-in-form').addEventListener('submit', (event) => {
  event.preventDefault();
  stored.token = byId('token').value.trim();
  byId('token').value = '';
  refresh().then(() => { if (last) byId('content').focus(); });
});
byId('leave').addEventListener('click', () => signOut());

document.querySelectorAll('[data-period]').forEach((button) => button.addEventListener('click', () => {
  timeline.period = button.dataset.period;
  timeline.at = null;
  document.querySelectorAll('[data-period]').forEach((other) => other.setAttribute('aria-pressed', String(other === button)));
  if (last) showOverview(last);
}));
new ResizeObserver(() => { if (last) showOverview(last); }).observe(byId('timeline'));

const THEMES = { '': 'as the system', light: 'light', dark: 'dark' };
function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
  byId('theme').setAttribute('aria-label', `Colours: ${THEMES[theme]}`);
  byId('theme').title = `Colours: ${THEMES[theme]}`;
  try { localStorage.setItem('tollgate-theme', theme); } catch { /* Without storage it is kept until the page is closed. */ }
}
byId('theme').addEventListener('click', () => {
  const order = Object.keys(THEMES);
  const now = document.documentElement.dataset.theme ?? '';
  setTheme(order[(order.indexOf(now) + 1) % order.length]);
});
let theme = '';
try { theme = localStorage.getItem('tollgate-theme') ?? ''; } catch { /* Without storage the colours are those of the system. */ }
setTheme(theme in THEMES ? theme : '');

const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    document.querySelectorAll('.views a').forEach((link) => {
      if (link.hash === `#${entry.target.id}`) link.setAttribute('aria-current', 'true');
      else link.removeAttribute('aria-current');
    });
  }
}, { rootMargin: '-30% 0px -60% 0px' });
document.querySelectorAll('main section[id]:not(#sign-in)').forEach((section) => watcher.observe(section));

// Without a token the API answers 401, unless it is open.
if (stored.token || document.documentElement.dataset.access === 'open') refresh(); else signOut();
