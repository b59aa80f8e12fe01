// State and functions that all scripts of the page share: elements, settings, layout, events, requests, messages.

const $ = (id) => document.getElementById(id);
const token = new URLSearchParams(location.search).get('token') || '';
const client = Array.from(crypto.getRandomValues(new Uint8Array(8)), (b) => b.toString(16).padStart(2, '0')).join('');
const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)');
const dark = matchMedia('(prefers-color-scheme: dark)');
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

let scene; // the answer of /api/scene
const camera = { position: [0, 0, 0], axes: [[1, 0, 0], [0, 1, 0], [0, 0, 1]], distance: 1, fov: 45 };
const settings = {
  map: 'rgb', background: 'white', time: 0, mode: 'orbit', resolution: 1,
  cropOn: false, crop: [], cameras: true, panel: null,
};

// ---- layout: the principal point is the centre of the area that panels leave free ----

const stage = { W: 1, H: 1, x: 0, y: 0 }; // size of the picture and position of its principal point, pixels
const free = { W: 1, H: 1 }; // largest area around the principal point that no panel covers
const BAR = 58; // height of the bar at the bottom of a narrow window
const isNarrow = () => innerWidth <= 640;

function measure() {
  const open = settings.panel !== null, panels = $('panels').getBoundingClientRect(), narrow = isNarrow();
  const right = open && !narrow ? panels.left : innerWidth, top = narrow ? 100 : 0;
  stage.W = innerWidth;
  stage.H = narrow ? Math.max(open ? panels.top + 14 : innerHeight - BAR, 120) : innerHeight;
  stage.x = right / 2;
  stage.y = narrow && stage.H > 300 ? (top + stage.H) / 2 : stage.H / 2;
  free.W = right;
  free.H = 2 * (stage.H - stage.y);
  $('stage').style.height = `${stage.H}px`;
}

// ---- events: 'camera', 'picture' (any other parameter of a frame), 'overlay', 'panel', 'frame', 'refined' ----

const listeners = {};
function on(name, listener) {
  (listeners[name] ||= []).push(listener);
}
function emit(name, value) {
  for (const listener of listeners[name] || [])
    listener(value);
}

// ---- the server ----

const address = (path, parameters) => path + '?' + new URLSearchParams({ token, ...parameters });

class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function fetched(path, parameters, options) {
  const response = await fetch(address(path, parameters), { cache: 'no-store', ...options });
  if (!response.ok) {
    const answer = await response.json().catch(() => ({}));
    throw new Refused(response.status, answer.error || `${response.status} ${response.statusText}`);
  }
  return response;
}

const getJson = async (path, parameters) => (await fetched(path, parameters)).json();
const postJson = async (path, body) => (await fetched(path, {}, {
  method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body),
})).json();

// ---- messages ----

let noticeTimer;
// Shows a line at the bottom for `ms` milliseconds; without `ms` until notice('').
function notice(text, ms) {
  clearTimeout(noticeTimer);
  $('notice').textContent = text;
  $('notice').hidden = !text;
  if (ms)
    noticeTimer = setTimeout(() => notice(''), ms);
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function cover(title, text) {
  $('cover-title').textContent = title;
  $('cover-text').textContent = text;
  $('cover').hidden = false;
}

function download(name, blob) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Copies by the clipboard API, which exists on 127.0.0.1 and under https; else by execCommand.
async function copy(text) {
  if (navigator.clipboard && window.isSecureContext) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch { /* not allowed: use execCommand */ }
  }
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  return done;
}

async function copyCommand(id) {
  notice(await copy($(id).textContent) ? 'Copied' : 'Not copied: the browser does not allow it', 2500);
}

// Makes buttons a radio group with arrow keys. Returns a function that checks one of them.
function choice(buttons, choose) {
  const pick = (chosen) => buttons.forEach((button) => {
    button.setAttribute('aria-checked', button === chosen);
    button.tabIndex = button === chosen ? 0 : -1;
  });
  buttons.forEach((button, i) => {
    button.onclick = () => choose(button);
    button.onkeydown = (event) => {
      const way = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!way)
        return;
      event.preventDefault();
      const next = buttons[(i + way + buttons.length) % buttons.length];
      next.focus();
      choose(next);
    };
  });
  return pick;
}

function icon(name) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const use = document.createElementNS('http://www.w3.org/2000/svg', 'use');
  use.setAttribute('href', '#i-' + name);
  svg.append(use);
  return svg;
}
