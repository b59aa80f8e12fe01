// Fills the report of a run.

const [run] = data.runs, { summary } = run;

// ---- header ----

// Returns the PSNR and the SSIM of the end of the run, else of the last evaluation, with captions.
function quality() {
  const psnr = number(summary, 'psnr'), ssim = number(summary, 'ssim'), views = number(summary, 'views');
  const last = list(summary, 'evaluations').findLast((e) => Number.isFinite(number(e, 'psnr')));
  const also = [['psnr_aligned', 'at aligned poses'], ['psnr_quadratic', 'colours corrected'], ['background_psnr', 'background alone']]
    .filter(([key]) => Number.isFinite(number(summary, key))).map(([key, name]) => `${name}: ${fixed(summary[key], 2)} dB`);
  if (Number.isFinite(number(summary, 'floaters')))
    also.push(`opacity of floaters: ${fixed(100 * summary.floaters, 3)} %`);
  if (Number.isFinite(number(summary, 'depth_error')))
    also.push(`median error of depths: ${fixed(100 * summary.depth_error, 2)} %`);
  if (Number.isFinite(psnr))
    return { psnr, ssim, caption: [`mean of ${Number.isFinite(views) ? views : 'the'} test views`, ...also].join('; '),
      ssimCaption: `${text(summary, 'background') ?? 'unknown'} background, ${text(summary, 'color_space') ?? 'unknown colour space'}` };
  const caption = last ? `a few test views at ${Number.isFinite(number(last, 'step')) ? `step ${last.step}` : 'an unknown step'}` : 'not measured';
  return { psnr: number(last, 'psnr'), ssim: number(last, 'ssim'), caption: [caption, ...also].join('; '), ssimCaption: caption };
}

function tile(label, value, unit, more) {
  return make('div', { class: 'tile' }, make('dt', {}, label),
    make('dd', { class: 'value' }, value, ...(unit && value !== '–' ? [' ', make('small', {}, unit)] : [])), make('dd', { class: 'more' }, more));
}

function tiles() {
  const { psnr, ssim, caption, ssimCaption } = quality(), steps = stepsOf(run), seconds = secondsOf(run), skipped = skippedOf(run);
  const reached = levels(run), viewCount = number(reached.at(-1), 'views');
  const made = [
    tile('Test PSNR', fixed(psnr, 2), 'dB', caption),
    tile('Test SSIM', fixed(ssim, 4), '', Number.isFinite(ssim) ? ssimCaption : 'not measured'),
    tile('Steps', grouped(steps), '', Number.isFinite(skipped) ? `${skipped} skipped (overflow)${skipped > 0 && steps > 0 ? `, ${fixed(100 * skipped / steps, 1)} %` : ''}` : ''),
    tile('Training time', duration(seconds), '', Number.isFinite(steps / seconds) ? `${quantity(steps / seconds)} steps/s` : 'not recorded'),
  ];
  if (reached.length > 0)
    made.push(tile('Reached', `${reached.at(-1).psnr}`, 'dB', reached.map((level) => `${level.psnr} dB after ${duration(number(level, 'seconds'))}`).join('; ') +
      (Number.isFinite(viewCount) ? `, on ${viewCount} test views` : '')));
  const sampling = get(summary, 'sampling'), parallel = get(summary, 'parallel'), share = number(parallel, 'exchange_share');
  if (Number.isFinite(number(sampling, 'evaluated_per_ray')))
    made.push(tile('Samples per ray', fixed(sampling.evaluated_per_ray, 1), '', `${text(sampling, 'kind') ?? 'sampling'}: ` + [
      ...(Number.isFinite(number(sampling, 'empty_share')) ? [`${fixed(100 * sampling.empty_share, 1)} % of steps skipped`] : []),
      `${fixed(number(sampling, 'live_per_ray'), 1)} live`, `${quantity(number(sampling, 'rays_per_second'))} rays/s`].join(', ')));
  if (Number.isFinite(number(parallel, 'ranks')))
    made.push(tile('Ranks', grouped(parallel.ranks), '', Number.isFinite(share) ?
      `${fixed(100 * share, 1)} % of the time in all-reduces, ${quantity(number(parallel, 'exchange_bytes'))}B per step` : ''));
  const memory = lastFinite(logged(run, 'gpu_memory_bytes').y);
  made.push(tile('Precision', known(run, 'precision', 'path') ?? '–', '', known(run, 'device', 'device') ?? 'device not recorded'),
    tile('Device memory', fixed(memory / MIB, 0), 'MiB', Number.isFinite(memory) ? 'held at the last log line' : 'not recorded'));
  return make('dl', { class: 'tiles' }, ...made);
}

function fillHeader() {
  document.querySelector('header').append(tiles(), facts([
    ['Scene', scenePath(run)], ['Background', text(summary, 'background')], ['Colour space', text(summary, 'color_space')],
    ['Backend', backend(run)], ['Gradient sums', text(summary, 'gradient_sums')], ['Changed defaults', text(summary, 'policy')],
    ['Device', known(run, 'device', 'device')], ['Driver', known(run, 'driver', 'driver')]]));
}

// ---- curves ----

function addCurves() {
  const charts = chartBox(), curve = (column, name, css = 'c1') => logged(run, column, name, css);
  const add = (id, title, options, ...curves) => addChart(charts, id, { title, ...options }, curves);
  const usual = (column, value) => (differs(curve(column), value) ? column : null);
  const two = (x) => x.toFixed(2), four = (x) => x.toFixed(4), exact = (x) => String(+x.toPrecision(7));
  const share = (x) => `${+(100 * x).toPrecision(3)} %`;
  add('psnr', 'PSNR', { unit: 'dB', format: two, smooth: true }, curve('psnr', 'training rays'), evaluated(run, 'psnr', 'test views', 'mark'));
  add('ssim', 'SSIM', { format: four }, evaluated(run, 'ssim', 'test views', 'mark'));
  const timed = inOrder(list(summary, 'per_view').filter((view) => Number.isFinite(number(view, 'time'))), (view) => view.time, 1);
  const byTime = (name, css, ...keys) => ({ name, css, dots: true, x: timed.map((view) => view.time),
    y: timed.map((view) => keys.map((key) => number(view, key)).find(Number.isFinite) ?? NaN) });
  add('psnr-by-time', "PSNR by the view's time", { unit: 'dB', format: two, hideLast: true, xName: 'time' }, byTime('test views', 'mark', 'psnr'),
    ...(Number.isFinite(number(summary, 'background_psnr')) ? [byTime('background alone', 'c2', 'background_psnr', 'blank_psnr')] : []));
  add('loss', 'Loss', { logarithmic: true, smooth: true }, curve('loss', 'training rays'),
    ...PARTS.map(([name, column], i) => curve(column, name, ['c2', 'c3', 'mark'][i])));
  add('learning-rate', 'Learning rate', { logarithmic: true }, curve('learning_rate', 'learning rate'));
  add('grad-norm', 'Gradient norm', { logarithmic: true, smooth: true }, curve('grad_norm', 'unscaled gradient'));
  add('loss-scale', 'Loss scale', { logarithmic: true, stepwise: true, format: exact }, curve(usual('loss_scale', 1), 'loss scale'));
  add('skipped-steps', 'Skipped steps', { fromZero: true, stepwise: true, format: exact }, curve(usual('skipped_steps', 0), 'since the start'));
  add('underflowed', 'Gradients that underflowed in f16', { fromZero: true, smooth: true, format: share }, curve(usual('underflowed', 0), 'share'));
  add('throughput', 'Throughput', { unit: '/s', fromZero: true, smooth: true }, curve('samples_per_second', 'live samples'),
    curve('rays_per_second', 'rays', 'c2'), curve('marched_per_second', 'marched samples', 'c3'));
  section('training', 'Training', ...(charts.all.length > 0 ? [charts.choice, charts.box] : [absent('metrics.jsonl holds no line yet.')]));
}

// ---- test views ----

// Adds the table of all test views. Sorting it sorts the pictures, too.
function addViews() {
  const part = document.getElementById('views');
  main.append(part);
  part.querySelectorAll('.view').forEach(addSlider);
  const per = list(summary, 'per_view'), views = per.length > 0 ? per : list(summary, 'pictures');
  if (views.length === 0)
    return;
  const name = (view) => text(view, 'name') ?? `view ${views.indexOf(view)}`, image = (view) => text(view, 'image') ?? '–';
  const numeric = (title, key, digits) => ({ name: title, text: (view) => fixed(number(view, key), digits), value: (view) => number(view, key) });
  const columns = [{ name: 'View', text: name, value: name }];
  if (views.some((view) => text(view, 'image')))
    columns.push({ name: 'Image', text: image, value: image, css: 'text' });
  columns.push(...[numeric('PSNR, dB', 'psnr', 2), numeric('SSIM', 'ssim', 4), numeric('Aligned PSNR, dB', 'psnr_aligned', 2),
    numeric('Corrected PSNR, dB', 'psnr_quadratic', 2), numeric('Background PSNR, dB', 'background_psnr', 2), numeric('Time', 'time', 3)]
    .filter((column, i) => i < 2 || views.some((view) => Number.isFinite(column.value(view)))));
  const figures = [...part.querySelectorAll('.views > .view')], box = part.querySelector('.views');
  const sorted = (all) => {
    const places = new Map(all.map((view, i) => [name(view), i]));
    box?.append(...inOrder(figures, (figure) => places.get(figure.querySelector('h3').textContent) ?? NaN, 1));
  };
  document.getElementById('per-view').replaceWith(table('Test views', columns, views, sorted));
}

// ---- passes, memory ----

function addPasses() {
  const passes = list(summary, 'passes'), profile = get(summary, 'profile');
  if (passes.length === 0)
    return;
  const at = (key) => (pass) => number(pass, key), ms = at('milliseconds'), floor = at('floor_milliseconds'), share = at('share');
  const largest = Math.max(...passes.map(share).filter(Number.isFinite)), work = passes.some((pass) => Number.isFinite(number(pass, 'flops')));
  const rate = (key) => (pass) => (number(pass, key) > 0 && ms(pass) > 0 ? pass[key] / (1e6 * ms(pass)) : NaN);
  const column = (name, value, digits, unit = '') => ({ name, value, text: (pass) => fixed(value(pass), digits) + (Number.isFinite(value(pass)) ? unit : '') });
  const name = (pass) => text(pass, 'name') ?? 'unnamed', bound = (pass) => text(pass, 'bound') ?? '';
  const columns = [{ name: 'Pass', text: name, value: name },
    { name: 'Of the largest', css: 'bars', text: (pass) => bar(share(pass) / largest, share(pass) * floor(pass) / ms(pass) / largest) },
    column('Share', (pass) => 100 * share(pass), 1, ' %'), column('Per step', ms, 3, ' ms'),
    ...(work ? [column('GFLOP/s', rate('flops'), 1), column('GB/s', rate('bytes'), 1), column('Gatomic/s', rate('atomics'), 2),
      column('Floor', floor, 3, ' ms'), column('× floor', (pass) => ms(pass) / floor(pass), 1), { name: 'Bound by', text: bound, value: bound, css: 'text' }] : [])];
  const of = (key, digits, unit, scale = 1) => (Number.isFinite(number(profile, key)) ? (digits === 0 ? grouped(profile[key]) : fixed(scale * profile[key], digits)) + unit : null);
  const busy = passes.map(ms).reduce((a, b) => a + b, 0), idle = [number(profile, 'idle_milliseconds'), number(profile, 'period_idle_milliseconds')];
  const part = (x) => (Number.isFinite(x / (busy + idle[0] + idle[1])) ? `${fixed(100 * x / (busy + idle[0] + idle[1]), 2)} %` : null);
  const made = section('passes', 'Time of a step by pass', table('Passes', columns, passes));
  made.classList.toggle('work', work);
  if (work)
    made.append(facts([['device idle between passes', part(idle[0])], ['between update intervals of 16 steps', part(idle[1])],
      ['steps timed', of('steps', 0, '')], ['rays per step', of('rays', 0, '')], ['marched samples', of('marched_samples', 0, '')],
      ['live samples', of('live_samples', 0, '')], ['peaks measured in this run', of('peak_flops_per_second', 1, ' GFLOP/s', 1e-9)],
      ['memory copy', of('peak_bytes_per_second', 1, ' GB/s', 1e-9)], ['atomics', of('peak_atomics_per_second', 2, ' G/s', 1e-9)]]),
    make('p', { class: 'kind' }, 'The dark part of a bar is the floor: the time that the pass’s arithmetic, memory traffic or atomics would take at ' +
      'the device’s peak. GB/s counts all loads and stores, whether caches serve them or not. trace.json opens in ui.perfetto.dev.'));
}

function addMemory() {
  const all = list(summary, 'buffers').map((buffer) => ({ name: text(buffer, 'name') ?? 'unnamed', bytes: Math.max(number(buffer, 'bytes'), 0) || 0 }));
  const total = all.reduce((sum, { bytes }) => sum + bytes, 0);
  if (!(total > 0))
    return;
  const small = all.filter(({ bytes }) => bytes < 1e-3 * total), shown = all.filter(({ bytes }) => bytes >= 1e-3 * total);
  if (small.length > 1)
    shown.push({ name: `${small.length} buffers below 0.1 %`, bytes: small.reduce((sum, { bytes }) => sum + bytes, 0) });
  else
    shown.push(...small);
  const largest = shown.reduce((most, { bytes }) => Math.max(most, bytes), 0), bytes = (buffer) => buffer.bytes;
  section('memory', 'Device memory by buffer', table('Memory', [{ name: 'Buffer', text: (b) => b.name, value: (b) => b.name },
    { name: 'Of the largest', css: 'bars', text: (b) => bar(b.bytes / largest) },
    { name: 'Share', text: (b) => `${fixed(100 * b.bytes / total, 1)} %`, value: bytes },
    { name: 'Size', text: (b) => `${fixed(b.bytes / MIB, 3)} MiB`, value: bytes }], shown));
}

// ---- exposures, configuration, command ----

function addExposures() {
  const MOST = 100; // stops; numbers beyond are damaged
  const views = list(run.appearance, 'views'), within = (x) => (Math.abs(x) <= MOST ? x : NaN), charts = chartBox();
  const curve = (name, css, value) => ({ name, css, dots: true, x: views.map((_, i) => i), y: views.map((view) => within(value(view))) });
  const gain = (i) => (view) => (Number.isFinite(get(view, 'white_balance')?.[i]) ? view.white_balance[i] : NaN);
  addChart(charts, 'exposures', { title: 'Exposures of training images, in stops about the mean', format: (x) => x.toFixed(2), hideLast: true, xName: 'image' },
    [curve('exposure', 'c3', (view) => number(view, 'exposure')), curve('in the image file', 'mark', (view) => number(view, 'exposure_in_file')),
      curve('gain of red', 'c2', gain(0)), curve('gain of blue', 'c1', gain(1))]);
  if (charts.all.length > 0)
    section('appearance', 'Exposure and white balance', charts.box);
}

function addConfiguration() {
  const groups = new Map();
  for (const [key, value] of Object.entries(run.config).filter(([name]) => name !== 'command')) {
    const rows = leaves(value, key), group = rows.length === 1 && rows[0][0] === key ? 'general' : key;
    groups.set(group, [...(groups.get(group) ?? []), ...rows]);
  }
  const inFront = [...groups].sort(([a], [b]) => (b === 'general') - (a === 'general'));
  section('configuration', 'Configuration', make('div', { class: 'config' }, ...inFront.map(([group, rows]) => make('table', {}, make('caption', {}, group),
    make('tbody', {}, ...rows.map(([key, value]) => make('tr', {}, make('th', { scope: 'row' }, key), make('td', {}, value))))))));
}

function addCommand() {
  const command = get(run.config, 'command'), quoted = (x) => (/^[\w\-+=./:,@%]+$/.test(x) ? x : `'${x.replaceAll("'", "'\\''")}'`);
  const line = Array.isArray(command) ? command.map((x) => (typeof x === 'string' ? quoted(x) : '?')).join(' ') : command;
  section('command', 'To reproduce', typeof line === 'string' ? make('pre', {}, line) : absent('config.json does not hold the command.'));
}

document.getElementById('figures').remove(); // the tiles show the same
fillHeader();
addCurves();
if (document.getElementById('formed'))
  main.append(document.getElementById('formed'));
addViews();
addExposures();
addPasses();
addMemory();
addConfiguration();
addCommand();
addContents();
