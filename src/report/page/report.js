// What all report pages share: reading of the page's data, tables that sort, sliders between pictures, sections. Files of
// a run may hold anything: a value of another type than expected counts as missing.

const data = JSON.parse(document.getElementById('data').textContent);
const main = document.querySelector('main');

const isObject = (x) => typeof x === 'object' && x !== null && !Array.isArray(x);
const get = (object, key) => (isObject(object) && Object.hasOwn(object, key) ? object[key] : undefined);
const number = (object, key) => (Number.isFinite(get(object, key)) ? object[key] : NaN);
const text = (object, key) => (typeof get(object, key) === 'string' ? object[key] : null);
const list = (object, key) => (Array.isArray(get(object, key)) ? object[key].filter(isObject) : []);
const fixed = (x, digits) => (Number.isFinite(x) ? x.toFixed(digits) : '–');
const MIB = 1024 * 1024;

// ---- sections ----

// Returns a section. One of the page's static content with this id is emptied and reused.
function section(id, title, ...children) {
  const made = document.getElementById(id) ?? make('section', { id });
  made.replaceChildren(make('h2', {}, title), ...children);
  main.append(made);
  return made;
}

// Adds the list of contents, after all sections.
function addContents() {
  const links = [...main.querySelectorAll('section')].map((part) => make('a', { href: `#${part.id}` }, part.querySelector('h2').textContent));
  main.before(make('nav', { 'aria-label': 'Contents' }, ...links));
}

const note = (...words) => make('p', { class: 'note' }, ...words);
const absent = (words) => make('p', { class: 'absent' }, words);

// Returns a list of facts: [[name, value]], without the unknown ones.
function facts(pairs) {
  const known = pairs.filter(([, value]) => value !== null && value !== undefined && value !== '–');
  return make('dl', { class: 'facts' }, ...known.map(([name, value]) => make('div', {}, make('dt', {}, name), make('dd', {}, value))));
}

// ---- tables ----

// Returns a table in a box that scrolls. columns: [{name, head, text, value, css}]. text(row): what a cell shows; value(row): the
// number or text by which the column sorts; a table sorts if a column has one. The first column names the rows.
// sorted(rows): called after each sorting.
function table(label, columns, rows, sorted) {
  const body = make('tbody');
  const show = (all) => body.replaceChildren(...all.map((row) => make('tr', {}, ...columns.map((column, i) =>
    (i === 0 ? make('th', { scope: 'row' }, column.text(row)) : make('td', { class: column.css ?? 'number' }, column.text(row)))))));
  const heads = columns.map((column, i) => {
    const head = make('th', { scope: 'col', class: i === 0 ? '' : column.css ?? 'number' }, ...[column.head ?? column.name].flat());
    if (column.value) {
      const button = make('button', { type: 'button' }, ...head.childNodes);
      head.append(button);
      head.setAttribute('aria-sort', 'none');
      button.onclick = () => {
        const way = head.ariaSort === 'ascending' ? -1 : 1;
        heads.forEach((other) => other.ariaSort && other.setAttribute('aria-sort', 'none'));
        head.setAttribute('aria-sort', way > 0 ? 'ascending' : 'descending');
        const all = inOrder(rows, column.value, way);
        show(all);
        sorted?.(all);
      };
    }
    return head;
  });
  show(rows);
  return make('div', { class: 'wide', tabindex: 0, role: 'region', 'aria-label': label }, make('table', {}, make('thead', {}, make('tr', {}, ...heads)), body));
}

// Returns the rows sorted by numbers or texts, rows without a value last.
function inOrder(rows, value, way) {
  const has = (row) => typeof value(row) === 'string' || Number.isFinite(value(row));
  const compare = (a, b) => way * (typeof a === 'string' ? a.localeCompare(b, 'en', { numeric: true }) : a - b);
  return [...rows.filter(has).sort((a, b) => compare(value(a), value(b))), ...rows.filter((row) => !has(row))];
}

// A bar of a share, with a dark part for another share.
const bar = (share, floor) => makeSvg('svg', { class: 'bar', viewBox: '0 0 100 12', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
  makeSvg('rect', { width: (100 * share || 0).toFixed(2), height: 12 }),
  ...(floor > 0 ? [makeSvg('rect', { class: 'floor', width: (100 * Math.min(floor, share)).toFixed(2), height: 12 })] : []));

// ---- charts ----

const PARTS = [['distortion', 'distortion_loss'], ['interlevel', 'interlevel_loss'], ['coarse field', 'coarse_loss']];

// Returns a logged column of a run as a curve; y is empty if the run lacks it.
function logged(run, column, name, css) {
  const array = (of, key) => (Array.isArray(get(of, key)) ? of[key].map((y) => y ?? NaN) : undefined);
  const { metrics } = run;
  return { name, css, x: array(metrics, 'step') ?? [], y: array(metrics, column) ?? [], seconds: array(metrics, 'seconds'),
    low: array(metrics.low, column), high: array(metrics.high, column) };
}

// Returns a measure of the test views by evaluation.
function evaluated(run, key, name, css) {
  const same = (e) => (isObject(get(e, 'quick')) ? e.quick : e); // the final evaluation measures more views than the others
  const all = list(run.summary, 'evaluations').filter((e) => Number.isFinite(number(e, 'step')) && Number.isFinite(number(same(e), key)));
  return { name, css, dots: true, x: all.map((e) => e.step), y: all.map((e) => same(e)[key]), seconds: all.map((e) => number(e, 'seconds')) };
}

const differs = (curve, usual) => curve.y.some((y) => Number.isFinite(y) && y !== usual);

// Adds a chart to a list of charts, unless none of its curves has a value.
function addChart(charts, id, options, curves) {
  if (!curves.some((curve) => curve.y.some(Number.isFinite)))
    return;
  const figure = make('figure', { id });
  charts.box.append(figure);
  const chart = new Chart(figure, options);
  chart.set(curves);
  charts.all.push(chart);
}

// Returns a box of charts, and a choice of the axis: steps or training time.
function chartBox() {
  const charts = { box: make('div', { class: 'charts' }), all: [] };
  charts.choice = radios('Axis', [['by step', false], ['by training time', true]], (bySeconds) => {
    for (const chart of charts.all.filter((one) => one.curves.some((curve) => curve.seconds))) {
      chart.bySeconds = bySeconds;
      chart.draw();
    }
  });
  return charts;
}

// Returns a group of radio buttons: [[label, value]], the first one checked.
function radios(label, choices, choose) {
  return make('div', { class: 'choice', role: 'radiogroup', 'aria-label': label }, ...choices.map(([name, value], i) => {
    const input = make('input', { type: 'radio', name: label, ...(i === 0 ? { checked: '' } : {}) });
    input.onchange = () => choose(value);
    return make('label', {}, input, make('span', {}, name));
  }));
}

// ---- configuration ----

// Returns the leaves of a configuration as [key, text], with dots between keys. Lists of plain values are leaves.
function leaves(value, path = '') {
  const parts = Array.isArray(value) ? (value.some((x) => typeof x === 'object' && x !== null) ? [...value.entries()] : []) :
    isObject(value) ? Object.entries(value) : [];
  const shown = value === null ? 'default' : typeof value === 'string' ? value : JSON.stringify(value);
  return parts.length === 0 ? [[path, shown]] : parts.flatMap(([key, part]) => leaves(part, path ? `${path}.${key}` : String(key)));
}

// Returns a text of summary.json, else of config.json: a run that has just started has no summary.
const known = (run, inSummary, inConfig) => text(run.summary, inSummary) ?? text(run.config, inConfig);
const scenePath = (run) => text(run.summary, 'scene') ?? text(run.config, 'scene') ?? text(get(run.config, 'scene'), 'path');
const backend = (run) => text(run.summary, 'path') ?? known(run, 'precision', 'path');
// The log of an unfinished run is ahead of its summary.
const latest = (run, column, inSummary) =>
  [lastFinite(logged(run, column).y), number(run.summary, inSummary)].filter(Number.isFinite).reduce((a, b) => Math.max(a, b), -Infinity);
const stepsOf = (run) => latest(run, 'step', 'step');
const secondsOf = (run) => latest(run, 'seconds', 'seconds');
const skippedOf = (run) => latest(run, 'skipped_steps', 'skipped_steps');

// Returns [{psnr, step, seconds}]: when the test views first reached round levels of PSNR.
const levels = (run) => list(run.summary, 'reached').filter((level) => Number.isFinite(number(level, 'psnr')));

// ---- pictures ----

// Adds a slider between any two pictures of a view.
function addSlider(view) {
  const cells = [...view.querySelectorAll('.cell')].filter((cell) => cell.querySelector('img'));
  if (cells.length < 2)
    return;
  const name = view.querySelector('h3').textContent, stage = make('div', { class: 'stage' });
  const slider = make('input', { type: 'range', min: 0, max: 100, value: 50, 'aria-label': `${name}: share of the picture on the left` });
  const sides = ['left', 'right'].map((side, i) => {
    const select = make('select', { 'aria-label': `${name}: picture on the ${side}` },
      ...cells.map((cell, k) => make('option', { value: k }, cell.querySelector('span').firstChild.data.trim())));
    select.value = i;
    select.onchange = choose;
    return select;
  });
  function slide() {
    stage.style.setProperty('--at', `${slider.value}%`);
  }
  function choose() {
    stage.replaceChildren(...sides.map((side) => {
      const picture = cells[side.value].querySelector('img'), layer = picture.cloneNode();
      layer.draggable = false;
      layer.classList.toggle('crisp', picture.naturalWidth < 600);
      return layer;
    }));
  }
  slider.oninput = slide;
  stage.onpointerdown = stage.onpointermove = (event) => {
    if (!event.buttons)
      return;
    const bounds = stage.getBoundingClientRect();
    slider.value = 100 * (event.clientX - bounds.left) / bounds.width;
    slide();
  };
  Promise.all(cells.map((cell) => cell.querySelector('img').decode().catch(() => {}))).then(() => {
    choose();
    slide();
    view.querySelector('figcaption').after(make('div', { class: 'compare' }, stage, slider, make('div', { class: 'sides' }, ...sides)));
  });
}
