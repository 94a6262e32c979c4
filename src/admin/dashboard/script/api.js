// Talks to the API. The token is kept for this tab only, and goes nowhere but into a header.

const BASE = `${location.pathname.replace(/\/+$/, '')}/api/`;
const TOKEN = 'tollgate-token';

class Refused extends Error {
  constructor(status, message, wait) {
    super(message);
    this.status = status;
    this.wait = wait;
  }
}

const stored = {
  get token() { try { return sessionStorage.getItem(TOKEN); } catch { return this.kept; } },
  set token(token) {
    this.kept = token;
    try {
      if (token) sessionStorage.setItem(TOKEN, token); else sessionStorage.removeItem(TOKEN);
    } catch { /* Then it is kept until the page is left. */ }
  },
};

/** What the API answers; refuses with its own words, or says that nobody answers. */
async function ask(path, body) {
  const headers = {};
  if (stored.token) headers.Authorization = `Bearer ${stored.token}`;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const options = { headers, cache: 'no-store', credentials: 'same-origin', signal: AbortSignal.timeout(15000) };
  if (body !== undefined) Object.assign(options, { method: 'POST', body: JSON.stringify(body) });
  let response;
  try {
    response = await fetch(BASE + path, options);
  } catch {
    throw new Refused(0, 'The server does not answer.');
  }
  const answer = await response.json().catch(() => null);
  if (response.ok && answer !== null) return answer;
  const message = answer?.error?.message ?? `The server answered ${response.status}, and nothing that can be read.`;
  throw new Refused(response.status, message, Number(response.headers.get('retry-after')) || undefined);
}
