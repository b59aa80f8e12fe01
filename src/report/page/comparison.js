// Fills the comparison of runs: measures with differences against one run, curves, quality by view, settings.

const { runs } = data;
runs.forEach((run, i) => Object.assign(run, { css: `r${i + 1}` }));
let reference = runs[0]; // differences are against this run

const named = (run) => [swatch(run.css), run.name];
const others = () => runs.filter((run) => run !== reference);
const comparable = (run) => run.scene !== '' && run.scene === reference.scene;

function mean(run, column) {
  const values = logged(run, column).y.filter(Number.isFinite);
  return values.length > 0 ? values.reduce((sum, y) => sum + y, 0) / values.length : NaN;
}

// ---- measures ----

const WINDOW = 0.1; // training PSNR is a mean over this last share of the time: single lines of the log are noisy
const ROUNDED = 1.001; // tolerance of times, which are rounded in the files
// Training time that all runs have reached; NaN if that of any run is unknown.
const equalTime = runs.map(secondsOf).reduce((least, seconds) => (Number.isFinite(seconds) ? Math.min(least, seconds) : NaN), Infinity);

// Interpolates between the evaluations before and after the time; NaN where one is missing.
function testPsnrAt(run, seconds) {
  const { y, seconds: at } = evaluated(run, 'psnr'), known = at.map((t, i) => [t, y[i]]).filter(([t]) => Number.isFinite(t));
  const after = known.findIndex(([t]) => t >= seconds), [t1, y1] = known[after] ?? [NaN, NaN];
  const [t0, y0] = (after < 0 ? known.at(-1) : known[after - 1]) ?? [NaN, NaN];
  if (after < 0)
    return ROUNDED * t0 >= seconds ? y0 : NaN;
  return t1 > t0 ? y0 + (seconds - t0) / (t1 - t0) * (y1 - y0) : t1 <= ROUNDED * seconds ? y1 : NaN;
}

function trainPsnrAt(run, seconds) {
  const { y, seconds: at = [] } = logged(run, 'psnr');
  const part = y.filter((psnr, i) => Number.isFinite(psnr) && at[i] > (1 - WINDOW) * seconds && at[i] <= ROUNDED * seconds);
  return part.length > 0 ? part.reduce((sum, psnr) => sum + psnr, 0) / part.length : NaN;
}

function mostMemory(run) {
  const { y, high } = logged(run, 'gpu_memory_bytes');
  return (high ?? y).filter(Number.isFinite).reduce((most, bytes) => Math.max(most, bytes), -Infinity) / MIB;
}

const either = (a, b) => (Number.isFinite(a) ? a : b);
const sampling = (run, key) => number(get(run.summary, 'sampling'), key);
const rays = (run) => mean(run, 'rays_per_second');
const digits = (count) => (x) => fixed(x, count);
const reachedAt = (level) => (run) => number(levels(run).find((one) => one.psnr === level), 'seconds');
const LEVELS = [...new Set(runs.flatMap((run) => levels(run).map((level) => level.psnr)))].sort((a, b) => a - b);

// [name, value(run), format, better]. better: 1: high, -1: low, 0: neither.
const RESULTS = [
  ['PSNR, dB', (run) => number(run.summary, 'psnr'), digits(2), 1],
  ['SSIM', (run) => number(run.summary, 'ssim'), digits(4), 1],
  ['Steps', stepsOf, grouped, 0],
  ['Time', secondsOf, duration, 0],
  ['Steps/s', (run) => stepsOf(run) / secondsOf(run), quantity, 1],
  ['Step, ms', (run) => 1000 * secondsOf(run) / stepsOf(run), quantity, -1],
  ['Samples/s', (run) => mean(run, 'samples_per_second'), quantity, 1],
  ['Memory, MiB', mostMemory, digits(0), -1],
  ...LEVELS.map((level) => [`Reached ${level} dB after`, reachedAt(level), duration, -1]),
];
const SAMPLES = [
  ['Samples per ray', (run) => either(sampling(run, 'evaluated_per_ray'), mean(run, 'marched_per_second') / rays(run)), digits(1), 0],
  ['Live', (run) => either(sampling(run, 'live_per_ray'), mean(run, 'samples_per_second') / rays(run)), digits(1), 0],
  ['Empty, %', (run) => 100 * sampling(run, 'empty_share'), digits(1), 0],
  ['Not live, %', (run) => 100 * sampling(run, 'behind_share'), digits(1), 0],
  ['Rays/s', (run) => either(sampling(run, 'rays_per_second'), rays(run)), quantity, 1],
  ['Test PSNR, dB', (run) => testPsnrAt(run, equalTime), digits(2), 1],
  ['Training PSNR, dB', (run) => trainPsnrAt(run, equalTime), digits(2), 1],
];
const GRADIENTS = [
  ['Skipped steps', skippedOf, grouped, -1],
  ['Skipped, %', (run) => 100 * skippedOf(run) / stepsOf(run), digits(1), -1],
  ['Underflowed, %', (run) => 100 * mean(run, 'underflowed'), digits(2), -1],
  ['Gradient norm', (run) => mean(run, 'grad_norm'), quantity, 0],
  ['Idle, %', (run) => 100 * mean(run, 'idle_share'), digits(1), -1],
];

// Returns a difference with its sign, coloured unless it is shown as zero or neither sign is better.
function signed(by, format, better) {
  const shown = Number.isFinite(by) ? format(Math.abs(by)) : '–', same = /^[–0.:]+$/.test(shown);
  return make('span', { class: same || better === 0 ? 'same' : by * better > 0 ? 'better' : 'worse' }, same ? shown : (by > 0 ? '+' : '−') + shown);
}

const difference = (value, run, format, better) => signed(comparable(run) ? value(run) - value(reference) : NaN, format, better);

// The best value among runs of one scene; NaN when all are equal.
function best(value, better, scene) {
  const values = runs.filter((run) => run.scene === scene).map(value).filter(Number.isFinite);
  const [low, high] = [Math.min, Math.max].map((of) => values.reduce((a, b) => of(a, b), values[0]));
  return better === 0 || !(low < high) ? NaN : better > 0 ? high : low;
}

// Returns a table of measures: a row per measure; a column per run, and one of differences for all but the reference.
// texts: [name, text(run)], rows without differences.
function measureTable(label, texts, measures) {
  const shown = measures.filter(([, value]) => runs.some((run) => Number.isFinite(value(run))));
  const rows = [...texts.map(([name, word]) => ({ name, word })), ...shown.map(([name, value, format, better]) => ({ name, value, format, better }))];
  const cell = (run) => (row) => {
    if (row.word)
      return row.word(run) ?? '–';
    const value = row.value(run), text = Number.isFinite(value) ? row.format(value) : '–';
    return value === best(row.value, row.better, run.scene) ? make('b', {}, text) : text;
  };
  return table(label, [{ name: 'Measure', text: (row) => row.name }, ...[reference, ...others()].flatMap((run) => [
    { head: named(run), text: cell(run) },
    ...(run === reference ? [] : [{ name: 'difference', text: (row) => (row.word ? '' : difference(row.value, run, row.format, row.better)) }])])], rows);
}

const status = (run) => text(run.summary, 'status') ?? (run.summary ? null : 'unfinished');

function addMeasures() {
  const machine = [['Device', (run) => known(run, 'device', 'device')], ['Driver', (run) => known(run, 'driver', 'driver')]];
  const one = machine.every(([, of]) => runs.every((run) => of(run) === of(reference))); // all runs used one machine
  section('results', 'Results', measureTable('Results', [['Precision', backend], ...(one ? [] : machine), ['Status', status]], RESULTS),
    ...(one ? [facts(machine.map(([name, of]) => [name, of(reference)]))] : []));
  section('samples', 'Samples and equal time', measureTable('Samples', [['Sampling', (run) => text(get(run.summary, 'sampling'), 'kind') ??
    text(get(run.config, 'march'), 'sampling')]], SAMPLES), make('p', {}, 'Samples per ray: samples that the field is evaluated at. Live: samples ' +
    'with a gradient. Empty: share of a ray’s steps that the occupancy grid skips.' + (Number.isFinite(equalTime) ?
    ` PSNR: after ${duration(equalTime)} of training, which all runs have reached; of test views only between two evaluations.` : '')));
  section('gradients', 'Gradients and idle time', measureTable('Gradients', [['Precision', backend]], GRADIENTS), make('p', {},
    'Skipped: steps whose loss or gradient was not finite. Underflowed: gradients of activations that became zero in f16. Idle: time in ' +
    'which the device ran no step. All but skipped steps are means over the log.'));
}

// ---- curves ----

function addCharts() {
  const two = digits(2), exact = (x) => String(+x.toPrecision(7)), share = (x) => `${+(100 * x).toPrecision(3)} %`;
  const boxes = [chartBox(), chartBox()];
  const add = (box, id, title, options, curve) => addChart(boxes[box], id, { title, hideRaw: true, smooth: !options.stepwise, ...options }, runs.map(curve));
  const column = (key) => (run) => logged(run, key, run.name, run.css);
  const unusual = (key, usual) => (run) => (runs.some((one) => differs(logged(one, key), usual)) ? column(key)(run) : column(null)(run));
  add(0, 'loss', 'Loss of training rays', { logarithmic: true }, column('loss'));
  for (const [name, key] of PARTS)
    add(0, key, name === 'coarse field' ? 'Loss of the coarse field' : `${name[0].toUpperCase()}${name.slice(1)} loss`, { logarithmic: true }, column(key));
  add(0, 'psnr', 'PSNR of training rays', { unit: 'dB', format: two }, column('psnr'));
  add(0, 'test-psnr', 'PSNR of test views', { unit: 'dB', format: two }, (run) => evaluated(run, 'psnr', run.name, run.css));
  add(0, 'test-ssim', 'SSIM of test views', { format: digits(4) }, (run) => evaluated(run, 'ssim', run.name, run.css));
  add(1, 'grad-norm', 'Gradient norm', { logarithmic: true }, column('grad_norm'));
  add(1, 'loss-scale', 'Loss scale', { logarithmic: true, stepwise: true, format: exact }, unusual('loss_scale', 1));
  add(1, 'skipped-steps', 'Skipped steps', { fromZero: true, stepwise: true, format: exact }, unusual('skipped_steps', 0));
  add(1, 'underflowed', 'Gradients that underflowed in f16', { fromZero: true, format: share }, unusual('underflowed', 0));
  add(1, 'idle-share', 'Idle time of the device', { fromZero: true, format: share }, column('idle_share'));
  add(1, 'throughput', 'Live samples', { unit: '/s', fromZero: true }, column('samples_per_second'));
  add(1, 'rays', 'Rays', { unit: '/s', fromZero: true }, column('rays_per_second'));
  section('convergence', 'Convergence', boxes[0].choice, boxes[0].box);
  boxes[1].choice.querySelectorAll('input').forEach((input) => (input.name = 'Axis of speed'));
  section('speed', 'Precision and throughput', boxes[1].choice, boxes[1].box);
}

// ---- test views ----

// Adds a table of PSNR and its differences for each scene.
function addViewTables() {
  const scenes = [...new Set(runs.map((run) => run.scene))], tables = [];
  for (const scene of scenes) {
    const its = runs.filter((run) => run.scene === scene), first = its.includes(reference) ? reference : its[0];
    const views = its.map((run) => [run, new Map([...list(run.summary, 'pictures'), ...list(run.summary, 'per_view')]
      .filter((view) => text(view, 'name')).map((view) => [view.name, view]))]).sort(([a], [b]) => (b === first) - (a === first));
    const rows = [...new Set(views.flatMap(([, of]) => [...of.keys()]))];
    if (rows.length === 0)
      continue;
    const psnr = (of) => (row) => number(of.get(row), 'psnr'), base = psnr(views[0][1]);
    tables.push(table(`Test views of ${scene || 'an unknown scene'}`, [{ name: scenes.length > 1 && scene ? `View of ${scene}` : 'View', text: (row) => row, value: (row) => row },
      ...views.flatMap(([run, of]) => [{ head: named(run), text: (row) => fixed(psnr(of)(row), 2), value: psnr(of) },
        ...(run === first || scene === '' ? [] : [{ name: 'difference', text: (row) => signed(psnr(of)(row) - base(row), digits(2), 1),
          value: (row) => psnr(of)(row) - base(row) }])])], rows));
  }
  section('per-view', 'PSNR by test view, dB', ...(tables.length > 0 ? tables : [absent('None of the runs has test views.')]));
}

function addPictures() {
  const part = document.getElementById('views');
  main.append(part);
  part.querySelectorAll('.view').forEach(addSlider);
}

// ---- settings ----

function addSettings() {
  const hidden = ['device', 'driver', 'path', 'command', 'resumed_with']; // in the results, or different in every run
  const all = runs.map((run) => new Map(leaves(run.config).filter(([key]) => !hidden.includes(key.split('.')[0]))));
  const rows = [...new Set(all.flatMap((settings) => [...settings.keys()]))].filter((key) => new Set(all.map((settings) => settings.get(key))).size > 1);
  section('settings', 'Settings that differ', rows.length === 0 ? make('p', {}, 'The runs have the same settings.') :
    table('Settings', [{ name: 'Setting', text: (key) => key }, ...runs.map((run, i) => ({ head: named(run), css: 'text', text: (key) => all[i].get(key) ?? '–' }))], rows));
}

// ---- header ----

// Says what keeps figures from being comparable.
function warnings() {
  const scenes = [...new Set(runs.map((run) => run.scene || 'unknown'))], said = [];
  if (scenes.length > 1)
    said.push(`The runs are of different scenes: ${scenes.join(', ')}. Differences are between runs of one scene only.`);
  const views = (run) => ['background', 'color_space', 'views'].map((key) => get(run.summary, key)).join();
  if (scenes.some((scene) => new Set(runs.filter((run) => (run.scene || 'unknown') === scene && run.summary).map(views)).size > 1))
    said.push('The test views of the runs differ in number, background or colour space: their PSNR and SSIM are not of the same pictures.');
  return said.map((words) => note(words));
}

function addSections() {
  addMeasures();
  addCharts();
  addViewTables();
  addPictures();
  addSettings();
}

function addReference() {
  const select = make('select', { id: 'reference' }, ...runs.map((run, i) => make('option', { value: i }, run.name)));
  select.onchange = () => {
    reference = runs[select.value];
    addMeasures();
    addViewTables();
    for (const id of ['results', 'samples', 'gradients', 'convergence', 'speed', 'per-view', 'views', 'settings'])
      main.append(document.getElementById(id)); // the sections' order
  };
  document.querySelector('header').append(...warnings(), make('p', { class: 'reference' }, make('label', { for: 'reference' }, 'Differences against '), select));
}

document.getElementById('figures').remove(); // the table of results shows the same
addReference();
addSections();
addContents();
