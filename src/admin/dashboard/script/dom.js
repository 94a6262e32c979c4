// Elements and text. Values of the server become text, never markup.

const byId = (id) => document.getElementById(id);

const escaped = (character) => `\\u{${character.codePointAt(0).toString(16)}}`;

/** Escapes control and format characters, which would hide or reorder text. */
const visible = (text, keepLines = false) => text.replace(
  /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2067\u206a-\u206f\ufeff]/g,
  (character) => (keepLines && '\n\t'.includes(character) ? character : escaped(character)));

/** A name inside a sentence: escaped, and isolated from the direction of the text around it. */
const isolated = (name) => `\u2068${visible(name).replace(/[\u2068\u2069]/g, escaped)}\u2069`;

/** Creates an element with attributes and children; `undefined` and `null` are left out. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === 'on') Object.entries(value).forEach(([event, act]) => element.addEventListener(event, act));
    else if (key === 'aria-label') element.setAttribute(key, visible(value));
    else element.setAttribute(key, value === true ? '' : value);
  }
  const present = children.filter((child) => child !== undefined && child !== null);
  element.append(...present.map((child) => (typeof child === 'string' ? visible(child, name === 'pre') : child)));
  return element;
}

/** Creates an element of a drawing. */
function draw(name, attributes = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Creates a bar that is filled to a part from 0 to 1. */
function bar(part, kind) {
  const filled = part > 0 ? Math.max(part * 100, 1) : 0;
  return draw('svg', { 'aria-hidden': 'true', preserveAspectRatio: 'none' },
    draw('rect', { class: 'track', width: '100%', height: '100%' }),
    draw('rect', { class: `fill-${kind}`, width: `${Math.min(filled, 100)}%`, height: '100%', rx: 3 }));
}

/** Creates a name in monospace. It may wrap at a separator, and only there if that is enough. */
function code(text) {
  const parts = text.split(/(?<=[:=,@?&])|(?<=[^\s/])(?=\/)/);
  return make('code', { class: 'mono' }, ...parts.flatMap((part, index) => (index ? [make('wbr'), part] : [part])));
}

/** Returns text in which the parts in backticks are names. */
const marked = (text) => text.split('`').map((part, index) => (index % 2 ? code(part) : part));

/** Shows a message of the server in an element. */
function showMessage(element, text) {
  element.replaceChildren(...marked(text).map((part) => (typeof part === 'string' ? visible(part) : part)));
}

const empty = (text) => make('p', { class: 'empty' }, text);

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const count = (number) => whole.format(number);
const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** Formats a quota of the server: `5000/1h, token-bucket, burst 20` as `5,000/1h, burst 20`. */
const quotaText = (quota) => quota.replace(/^\d+|(?<=burst )\d+/g, (digits) => count(Number(digits))).replace(/, [a-z]+-[a-z]+/, '');

/** Returns the algorithm of a quota of the server; `null` if it counts nothing. */
function algorithmOf(quota) {
  if (!/^\d/.test(quota)) return null;
  return /, ([a-z]+-[a-z]+)/.exec(quota)?.[1] ?? 'sliding-window';
}

function percent(share) {
  const hundredths = share * 100;
  if (hundredths > 0 && hundredths < 0.1) return '<\u00a00.1\u00a0%';
  return `${hundredths < 10 ? hundredths.toFixed(1).replace(/\.0$/, '') : Math.round(hundredths)}\u00a0%`;
}

const clock = (text) => new Date(text).toLocaleTimeString([], { hour: 'numeric', minute: '2-digit' });
const precise = (text) => new Date(text).toLocaleTimeString([], { hour: 'numeric', minute: '2-digit', second: '2-digit' });
const moment = (text) => new Date(text).toLocaleString([], { dateStyle: 'medium', timeStyle: 'short' });

/** Formats a duration: `12 s`, `5 min`, `3 h`, `2 days`. */
function span(seconds) {
  if (seconds < 60) return `${Math.max(0, Math.ceil(seconds))} s`;
  if (seconds < 3600) return `${Math.ceil(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.round(seconds / 360) / 10} h`;
  return plural(Math.ceil(seconds / 86400), 'day');
}

/** Returns the seconds from one instant of the server to another. */
const between = (from, to) => (new Date(to) - new Date(from)) / 1000;

let silence;
/** Shows a message for six seconds. */
function notify(text) {
  byId('said').textContent = visible(text);
  clearTimeout(silence);
  silence = setTimeout(() => { byId('said').textContent = ''; }, 6000);
}

/** Requests confirmation of something that cannot be undone. */
function confirmed(question, yes) {
  const dialog = byId('confirm');
  byId('confirm-text').textContent = visible(question);
  byId('confirm-yes').textContent = yes;
  dialog.returnValue = 'no';
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), { once: true });
  });
}

/** Replaces the children of an element if their key has changed. A focused button keeps the focus. */
function fill(element, key, children) {
  if (element.dataset.key === key) return;
  element.dataset.key = key;
  const held = element.contains(document.activeElement) ? document.activeElement.ariaLabel : null;
  element.replaceChildren(...children());
  if (held) [...element.querySelectorAll('button')].find((button) => button.ariaLabel === held)?.focus({ preventScroll: true });
}
