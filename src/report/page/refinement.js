// Completes the page of a refinement of cameras: charts of quality and movements, the table of views.

const views = list(data, 'views'), seeds = list(data, 'seeds');
const pair = (object, key) => [0, 1].map((i) => (Number.isFinite(get(object, key)?.[i]) ? object[key][i] : NaN));
const change = ([before, after]) => after - before;

// Returns a number with its sign; what rounds to 0 is +0.
function signed(x, digits) {
  const zero = Math.abs(x) <= 0.5 * 10 ** -digits;
  return Number.isFinite(x) ? (x > 0 || zero ? '+' : '') + fixed(zero ? 0 : x, digits) : '–';
}

// ---- drawings ----

// Returns a figure that draws itself again when its width changes. draw(width): its elements.
function drawing(id, title, legend, label, height, draw) {
  const svg = makeSvg('svg', { class: 'plot', role: 'img', 'aria-label': label });
  const figure = make('figure', { class: 'chart', id }, make('figcaption', {}, make('h3', {}, title), make('span', { class: 'legend' }, ...legend)), svg);
  new ResizeObserver(() => {
    const width = svg.clientWidth;
    if (width === 0 || width === figure.drawn)
      return;
    figure.drawn = width;
    fill(svg, { viewBox: `0 0 ${width} ${height}` }, []);
    svg.replaceChildren(...draw(width));
  }).observe(figure);
  return figure;
}

const words = (css, x, y, text) => makeSvg('text', { class: css, x: x.toFixed(1), y: y.toFixed(1) }, text);

// Returns a chart with a row for each seed and for their mean. rows: [{name, value, css, marks(span, dot)}], value: a text.
// range: values that the axis holds. more(x, bottom): elements behind the rows. null: no value is known.
function rowChart(id, title, legend, rows, range, more = () => []) {
  const TOP = 24, ROW = 26, bottom = TOP + ROW * rows.length, known = range.filter(Number.isFinite);
  const least = Math.min(...known), most = Math.max(...known);
  const margin = 0.08 * Math.max(1e-3, 1e-3 * Math.max(Math.abs(least), Math.abs(most)), most - least), low = least - margin, high = most + margin;
  if (known.length === 0 || !Number.isFinite(high - low))
    return null;
  const label = `${title}. ${rows.map(({ name, value }) => `${name}: ${value}`).join('; ')}`;
  return drawing(id, title, legend, label, bottom + 24, (width) => {
    const left = 20 + 6.6 * Math.max(...rows.map(({ name }) => name.length)), right = width - 20 - 6.2 * Math.max(...rows.map(({ value }) => value.length));
    const x = (value) => left + (right - left) * (value - low) / (high - low), ticks = linearTicks(low, high, Math.max(2, Math.floor((right - left) / 70)));
    const seen = (...values) => values.every((value) => Number.isFinite(value));
    return [
      ...ticks.flatMap(({ value, label: tick }) => [makeSvg('path', { class: 'grid', d: `M${x(value).toFixed(1)} ${TOP}V${bottom}` }),
        words('x', x(value), bottom + 17, tick)]),
      ...(rows.length > 1 ? [makeSvg('path', { class: 'axis', d: `M0 ${bottom - ROW}H${width}` })] : []),
      ...more(x, TOP, bottom),
      ...rows.flatMap(({ name, value, css, marks }, i) => {
        const y = TOP + ROW * (i + 0.5);
        const span = (from, to, of) => (seen(from, to) ? [makeSvg('path', { class: `curve ${of}`, d: `M${x(from).toFixed(1)} ${y}H${x(to).toFixed(1)}` })] : []);
        const dot = (at, of) => (seen(at) ? [makeSvg('circle', { class: `dot ${of}`, cx: x(at).toFixed(1), cy: y, r: 4.5 })] : []);
        return [words(`y ${css}`, left - 12, y + 3.8, name), ...marks(span, dot), words(`y ${css}`, width - 2, y + 3.8, value)];
      })];
  });
}

// ---- quality by seed ----

function qualityCharts() {
  const mean = (k) => seeds.reduce((sum, seed) => sum + pair(seed, 'psnr')[k], 0) / seeds.length;
  const difference = number(data, 'difference'), noise = number(data, 'noise'), several = seeds.length > 1;
  const rows = [...seeds.map((seed) => ({ name: text(seed, 'name') ?? '–', psnr: pair(seed, 'psnr'), css: '' })),
    ...(several ? [{ name: 'mean', psnr: [mean(0), mean(1)], css: 'strong' }] : [])];
  const values = rowChart('psnr', 'PSNR of test views', [make('span', {}, swatch('before'), 'before'), make('span', {}, swatch('after'), 'after, dB')],
    rows.map((row) => ({ ...row, value: row.psnr.map((x) => fixed(x, 2)).join(' → '),
      marks: (span, dot) => [...span(...row.psnr, 'after'), ...dot(row.psnr[0], 'before'), ...dot(row.psnr[1], 'after')] })), seeds.flatMap((seed) => pair(seed, 'psnr')));
  const all = [...seeds.map((seed) => change(pair(seed, 'psnr'))), difference, difference - 2 * noise, difference + 2 * noise].filter(Number.isFinite);
  const side = 0.2 * Math.max(...all.map(Math.abs)); // for the words beside 0
  const differences = rowChart('difference', 'Difference, after − before',
    [make('span', {}, Number.isFinite(noise) ? 'dB; bars: mean ± 1 and ± 2 times its noise' : 'dB; the noise is unknown')],
    rows.map((row) => (row.css ? { ...row, value: signed(difference, 2) + (Number.isFinite(noise) ? ` ± ${fixed(noise, 2)}` : ''),
      marks: (span, dot) => [...span(difference - 2 * noise, difference + 2 * noise, 'after'), ...span(difference - noise, difference + noise, 'after range'),
        ...dot(difference, 'after')] } :
      { ...row, value: signed(change(row.psnr), 2), marks: (span, dot) => [...span(0, change(row.psnr), 'after raw'), ...dot(change(row.psnr), 'after')] })),
    all.length > 0 ? [...all, -side, side] : [], (x, top, bottom) => [makeSvg('path', { class: 'axis zero', d: `M${x(0).toFixed(1)} ${top - 8}V${bottom}` }),
      words('y faint', x(0) - 8, top - 8, '← worse'), words('faint', x(0) + 8, top - 8, 'better →')]);
  const trainings = document.getElementById('seeds'), charts = [values ?? absent('There is no PSNR of test views.'), ...(values && differences ? [differences] : [])];
  main.prepend(trainings);
  trainings.append(make('div', { class: 'charts' }, ...(seeds.length > 0 ? charts : [])));
}

// ---- movements ----

// Returns a histogram of the views' movements in pixels, of equal bins of their logarithm.
function histogram() {
  const DECADE = 8, MOST = 40, TOP = 24, HEIGHT = 130, LEFT = 44; // bins of a decade; most bins: smaller movements are left out
  const known = views.filter((view) => number(view, 'pixels') >= 0), moved = known.map((view) => view.pixels).filter((pixels) => pixels > 0);
  const bin = (pixels) => Math.floor(Math.max(-1e6, Math.log10(pixels) * DECADE));
  if (moved.length === 0)
    return absent('No view has moved.');
  const last = bin(moved.reduce((a, b) => Math.max(a, b))), first = Math.max(last - MOST + 1, Math.min(bin(moved.reduce((a, b) => Math.min(a, b))), last - DECADE + 1));
  const bins = Array.from({ length: last - first + 1 }, () => ({ views: 0, limited: 0 }));
  for (const view of known.filter(({ pixels }) => bin(pixels) >= first)) {
    bins[bin(view.pixels) - first].views++;
    bins[bin(view.pixels) - first].limited += view.limited ? 1 : 0;
  }
  const most = Math.max(...bins.map((one) => one.views)), smaller = known.filter(({ pixels }) => bin(pixels) < first).length, bottom = TOP + HEIGHT;
  const edge = (i) => 10 ** ((first + i) / DECADE), three = (x) => String(+x.toPrecision(3));
  return drawing('movements', 'Movements of views', [make('span', {}, 'number of views by movement in pixels'),
    ...(smaller > 0 ? [make('span', {}, `${smaller} moved less`)] : [])], 'Number of views by movement in pixels', bottom + 24, (width) => {
    const x = (at) => LEFT + (width - LEFT - 10) * at / bins.length, y = (count) => bottom - HEIGHT * count / most;
    const rect = (css, i, from, to) => makeSvg('rect', { class: css, x: (x(i) + 0.5).toFixed(1), y: y(to).toFixed(1), width: (x(i + 1) - x(i) - 1).toFixed(1),
      height: (y(from) - y(to)).toFixed(1) });
    return [
      ...linearTicks(0, most, 4).filter(({ value }) => Number.isInteger(value)).flatMap(({ value }) => [
        makeSvg('path', { class: 'grid', d: `M${LEFT} ${y(value).toFixed(1)}H${width - 10}` }), words('y', LEFT - 7, y(value) + 3.8, String(value))]),
      ...logTicks(edge(0), edge(bins.length), Math.max(2, Math.floor(width / 70))).flatMap(({ value, label }) => {
        const at = x(Math.log10(value) * DECADE - first);
        return [makeSvg('path', { class: 'axis', d: `M${at.toFixed(1)} ${bottom}v4` }), words('x', at, bottom + 17, label)];
      }),
      ...bins.flatMap((one, i) => (one.views === 0 ? [] : [makeSvg('g', { class: 'bars' },
        makeSvg('title', {}, `${three(edge(i))} to ${three(edge(i + 1))} pixels: ${one.views} view${one.views === 1 ? '' : 's'}, ${one.limited} at the limit`),
        rect('after', i, one.limited, one.views), rect('limited', i, 0, one.limited))]))];
  });
}

// ---- views ----

function addViews() {
  const MOST = 1000, psnr = (k) => (view) => (view.psnr ? pair(view, 'psnr')[k] : NaN), gain = (view) => (view.psnr ? change(pair(view, 'psnr')) : NaN);
  const numeric = (name, value, show) => ({ name, value, text: (view) => (Number.isFinite(value(view)) ? show(value(view)) : '–') });
  const of = (key) => (view) => number(view, key), two = (x) => fixed(x, 2);
  const why = (view) => [text(view, 'why'), view.keeps === true ? 'keeps its camera' : ''].filter(Boolean).join(': ');
  const columns = [{ name: 'Image', text: (view) => text(view, 'image') ?? '–', value: (view) => text(view, 'image') ?? '' },
    { name: 'Split', css: '', text: (view) => text(view, 'split') ?? '–', value: (view) => text(view, 'split') ?? '' }, numeric('Pixels', of('pixels'), two),
    { name: 'Remark', css: '', text: (view) => make('span', { class: 'limited' }, why(view)), value: why }, numeric('Degrees', of('degrees'), (x) => fixed(x, 3)), numeric('Distance*', of('distance'), quantity),
    numeric('Fit†', of('fit'), two), numeric('PSNR before', psnr(0), two), numeric('PSNR after', psnr(1), two), numeric('Difference', gain, (x) => signed(x, 2))];
  section('views', 'Movement of each view', table('Views', columns, views.slice(0, MOST)), make('p', {}, make('small', {},
    '* in the dataset\'s units. † PSNR of the field that has refined the view, at the refined pose, in dB.' +
    (views.length > MOST ? ` ${views.length - MOST} views that have moved less are left out.` : ''))));
}

document.querySelectorAll('.view').forEach(addSlider);
qualityCharts();
document.getElementById('advice').prepend(histogram());
addViews();
addContents();
