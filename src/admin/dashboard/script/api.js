// Client of the API. The token is kept for this tab only and is sent in a header only.

const BASE = `${location.pathname.replace(/\/+$/, '')}/api/`;
const TOKEN = 'tollgate-token';

class ApiError extends Error {
  constructor(status, message, field) {
    super(message);
    this.status = status;
    this.field = field;
  }
}

const stored = {
  get token() { try { return sessionStorage.getItem(TOKEN); } catch { return this.kept; } },
  set token(token) {
    this.kept = token;
    try {
      if (token) sessionStorage.setItem(TOKEN, token); else sessionStorage.removeItem(TOKEN);
    } catch { /* Without storage it is kept until the page is closed. */ }
  },
};

/** Sends a request and returns its JSON. Throws an `ApiError` with the message of the server. */
async function request(path, body) {
  const headers = {};
  if (stored.token) headers.Authorization = `Bearer ${stored.token}`;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const options = { headers, cache: 'no-store', credentials: 'same-origin', signal: AbortSignal.timeout(15000) };
  if (body !== undefined) Object.assign(options, { method: 'POST', body: JSON.stringify(body) });
  let response;
  try {
    response = await fetch(BASE + path, options);
  } catch {
    throw new ApiError(0, 'The server does not answer.');
  }
  const answer = await response.json().catch(() => null);
  if (response.ok && answer !== null) return answer;
  const message = answer?.error?.message ?? `The server answered ${response.status}, without readable JSON.`;
  throw new ApiError(response.status, message, answer?.error?.details?.field);
}
