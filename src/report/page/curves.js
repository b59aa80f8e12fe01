// Draws curves as SVG figures with axes, a legend that shows the values at the pointer, and a description for screen
// readers. The viewer and the reports share this file.

const FEW_POINTS = 16; // curves with fewer points are not smoothed, and each point has a dot
const MOST_POINTS = 1000; // of a curve; longer ones are averaged in groups

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes))
    element.setAttribute(name, value);
  element.append(...children);
  return element;
}
// Return a new element of HTML or SVG with its attributes and children. Children are elements or texts.
const make = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
const makeSvg = (name, attributes = {}, ...children) =>
  fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);

// ---- numbers ----

// Returns three digits and a prefix: "29.7 k".
function quantity(x) {
  if (!Number.isFinite(x))
    return '–';
  let prefix = 0;
  for (; Math.abs(x) >= 999.5 && prefix < 6; prefix++)
    x /= 1000;
  const size = Math.abs(x), digits = size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return (size >= 999.5 || (size < 1e-4 && size > 0) ? x.toExponential(2) : size < 0.0995 ? String(+x.toPrecision(3)) : x.toFixed(digits)) +
    (prefix ? ' ' + 'kMGTPE'[prefix - 1] : '');
}

// Returns "3:20", "1:03:20" or "3 d 4 h".
function duration(seconds) {
  if (!(seconds >= 0 && seconds < 1e10))
    return '–';
  const whole = Math.round(seconds), two = (x) => String(x).padStart(2, '0');
  const s = two(whole % 60), m = Math.floor(whole / 60) % 60, h = Math.floor(whole / 3600);
  return h >= 48 ? `${Math.floor(h / 24)} d ${h % 24} h` : h > 0 ? `${h}:${two(m)}:${s}` : `${m}:${s}`;
}

const grouped = (x) => (Number.isFinite(x) ? Math.round(x).toLocaleString('en').replaceAll(',', '\u202f') : '–');

// ---- ticks ----

// Returns the smallest of 1, 2 and 5 times a power of ten that is at least `rough`.
function roundStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((x) => x * (1 + 1e-9) >= rough / power);
}

// Returns a value with the prefix of the axis: none below 10 000, then k, M and so on.
function axisLabel(value, digits, largest) {
  let prefix = 0;
  if (largest >= 1e4)
    while (largest / 1000 ** prefix >= 1000 && prefix < 6)
      prefix++;
  const shown = digits + 3 * prefix;
  return value === 0 ? '0' : shown > 4 || largest / 1000 ** prefix >= 1e6 ? String(+value.toPrecision(5)) :
    (value / 1000 ** prefix).toFixed(Math.max(shown, 0)) + ' kMGTPE'[prefix].trim();
}

// Returns about `wanted` multiples of a round step between low and high: [{value, label}].
function linearTicks(low, high, wanted) {
  const step = roundStep((high - low) / wanted), digits = -Math.floor(Math.log10(step) + 1e-9), all = [];
  const first = Math.ceil(low / step - 1e-6), count = Math.min(Math.floor(high / step + 1e-6) - first + 1, 24);
  for (let i = 0; i < count; i++) {
    const value = first + i === 0 ? 0 : (first + i) * step;
    all.push({ value, label: axisLabel(value, digits, Math.max(Math.abs(low), Math.abs(high))) });
  }
  return all;
}

// Returns powers of ten between low and high: every k-th where there are many; where there are few, also 2 and 5 times
// the powers, or linear ticks if these are more.
function logTicks(low, high, wanted) {
  const decades = Math.log10(high / low), factors = decades * 3 <= wanted + 1 ? [1, 2, 5] : [1];
  const stride = factors.length > 1 ? 1 : Math.max(Math.ceil(decades / wanted - 1e-9), 1), all = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    for (const factor of power % stride === 0 ? factors : []) {
      const value = Number(`${factor}e${power}`);
      if (value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9))
        all.push({ value, label: power < -4 || power > 17 ? `${factor}e${power}` : axisLabel(value, Math.max(-power, 0), value) });
    }
  const linear = all.length < 3 ? linearTicks(low, high, 6) : [];
  return linear.length > all.length ? linear : all;
}

// ---- series ----

// Returns the mean over a centred window of about 1/40 of the series. The window is narrower near the ends, so that it
// stays symmetric. Values that are not finite are left out, and stay.
function smoothed(values) {
  const widest = Math.min(Math.floor(values.length / 80) + 2, 250);
  return values.map((value, i) => {
    const half = Math.min(widest, i, values.length - 1 - i);
    const part = values.slice(i - half, i + half + 1).filter(Number.isFinite);
    return Number.isFinite(value) ? part.reduce((sum, y) => sum + y, 0) / part.length : NaN;
  });
}

// Returns a curve with at most MOST_POINTS points: means of groups, and their least and largest values.
function thinned(curve) {
  const count = curve.x.length, size = count / MOST_POINTS;
  if (count <= MOST_POINTS)
    return curve;
  const thin = { ...curve, x: [], y: [], low: [], high: [], seconds: curve.seconds && [] };
  for (let i = 0; i < MOST_POINTS; i++) {
    const begin = Math.floor(i * size), end = Math.floor((i + 1) * size), part = curve.y.slice(begin, end).filter(Number.isFinite);
    thin.x.push(curve.x[end - 1]);
    thin.seconds?.push(curve.seconds[end - 1]);
    thin.y.push(part.length ? part.reduce((sum, y) => sum + y, 0) / part.length : NaN);
    thin.low.push(Math.min(...part));
    thin.high.push(Math.max(...part));
  }
  return thin;
}

// Returns the index of the value in an ascending list that is next to x.
function nearest(list, x) {
  return list.reduce((best, at, i) => (Math.abs(at - x) < Math.abs(list[best] - x) ? i : best), 0);
}

const lastFinite = (values) => values.findLast(Number.isFinite) ?? NaN;

// ---- charts ----

// A line in the colour of a CSS class, for legends.
const swatch = (css) => makeSvg('svg', { class: 'swatch', viewBox: '0 0 20 8', 'aria-hidden': 'true' },
  makeSvg('path', { class: `curve ${css}`, d: 'M1 4H19' }));

class Chart {
  // Fills an empty <figure>. Options, all but the title with defaults: title, unit ("dB"), format (of values), height,
  // xName, logarithmic, fromZero (the axis begins at 0), smooth (over the faint values), hideRaw, stepwise (a value
  // holds until the next point), bySeconds (axis of training time), hideLast (of the legend).
  constructor(figure, options) {
    Object.assign(this, { figure, unit: '', format: quantity, height: 250, xName: 'step', curves: [], at: null }, options);
    this.legend = make('span', { class: 'legend' });
    this.svg = makeSvg('svg', { class: 'plot', role: 'img', tabindex: 0 });
    this.absent = make('p', { class: 'absent', hidden: '' }, 'Not recorded in this run.');
    figure.classList.add('chart');
    figure.append(make('figcaption', {}, make('h3', {}, this.title), this.legend), this.svg, this.absent);
    this.svg.onpointermove = this.svg.onpointerdown = (event) => this.point(event.offsetX);
    this.svg.onpointerleave = () => this.point(null);
    this.svg.onblur = () => {
      this.legend.removeAttribute('aria-live');
      this.point(null);
    };
    this.svg.onkeydown = (event) => this.key(event);
    new ResizeObserver(() => this.svg.clientWidth !== this.width && this.draw()).observe(figure);
  }

  // curves: [{name, css, x, y, seconds, low, high, dots}]. css: class of the colour. x: ascending, as many as y. low,
  // high: extremes of the values that y averages. seconds: training time of each point. dots: marks, and no smoothing.
  set(curves) {
    const some = curves.filter((curve) => curve.y.some(Number.isFinite));
    this.curves = some.map((curve) => {
      const thin = thinned(curve), smooth = this.smooth && !curve.dots && thin.x.length >= FEW_POINTS;
      return { ...thin, line: smooth ? smoothed(thin.y) : thin.y, isSmooth: smooth };
    });
    this.legend.replaceChildren(...this.curves.map((curve) => make('span', {}, swatch(curve.css), curve.name, ' ', make('b'))));
    this.legend.append(make('span', { class: 'at' }));
    this.draw();
  }

  positions(curve) {
    return this.bySeconds && curve.seconds ? curve.seconds : curve.x;
  }

  // Moves the cursor to `across` pixels; null: away.
  point(across) {
    this.at = across === null || !this.scale ? null : this.scale.toStep(across);
    this.showValues();
  }

  key(event) {
    const by = { ArrowLeft: -8, ArrowRight: 8 }[event.key];
    if (!by || !this.scale)
      return;
    event.preventDefault();
    event.stopPropagation();
    this.legend.setAttribute('aria-live', 'polite');
    const { left, right, x } = this.scale;
    this.point(Math.min(Math.max((this.at === null ? (by > 0 ? left : right) : x(this.at)) + by, left), right));
  }

  // Returns the limits of the axis. They contain all lines and dots, and the middle 90 % of the values under a smooth
  // line: a single huge loss must not flatten the curve.
  limits() {
    const shown = (y) => Number.isFinite(y) && (!this.logarithmic || y > 0), values = [];
    for (const curve of this.curves) {
      values.push(...curve.line.filter(shown));
      const sorted = curve.isSmooth && !this.hideRaw ? curve.y.filter(shown).sort((a, b) => a - b) : [];
      values.push(...[0.05, 0.95].map((share) => sorted[Math.floor(sorted.length * share)]).filter(shown));
    }
    if (values.length === 0)
      return null;
    let low = values.reduce((a, b) => Math.min(a, b)), high = values.reduce((a, b) => Math.max(a, b));
    if (this.logarithmic) {
      const missing = Math.max(4 / (high / low), 1) ** 0.5, margin = Math.max((high / low) ** 0.04, 1);
      return [low / missing / margin, high * missing * margin];
    }
    low = this.fromZero ? Math.min(low, 0) : low;
    const missing = Math.max((Math.max(Math.abs(low), Math.abs(high)) * 1e-3 || 1) - (high - low), 0) / 2;
    const step = roundStep((high - low + 2 * missing) / 6);
    return [Math.floor((low - missing) / step + 1e-6) * step, Math.ceil((high + missing) / step - 1e-6) * step];
  }

  draw() {
    const limits = this.limits();
    this.absent.hidden = limits !== null;
    this.svg.style.display = limits ? '' : 'none';
    this.width = this.svg.clientWidth;
    if (!limits || this.width === 0)
      return;
    const [low, high] = limits, height = this.height, log = this.logarithmic ? Math.log : (y) => y;
    const timed = !this.bySeconds && this.curves[0].seconds?.some(Number.isFinite);
    const left = 46, right = this.width - 12, top = 8, bottom = height - (timed ? 36 : 21);
    const last = Math.max(...this.curves.map((curve) => lastFinite(this.positions(curve))).filter(Number.isFinite)) || 1;
    const x = (at) => left + (right - left) * at / last;
    const y = (value) => bottom - (bottom - top) * (log(value) - log(low)) / (log(high) - log(low));
    this.scale = { x, y, left, right, top, bottom, last, toStep: (across) => (across - left) / (right - left) * last };
    fill(this.svg, { viewBox: `0 0 ${this.width} ${height}`, 'aria-label': this.description() }, []);
    this.cursor = makeSvg('g');
    this.svg.replaceChildren(...this.yAxis(low, high), ...this.xAxis(timed), ...this.curves.flatMap((curve) => this.path(curve)), this.cursor);
    this.showValues();
  }

  yAxis(low, high) {
    const { y, left, right } = this.scale, ticks = this.logarithmic ? logTicks(low, high, 7) : linearTicks(low, high, 6);
    return ticks.flatMap(({ value, label }) => [
      makeSvg('path', { class: 'grid', d: `M${left} ${y(value).toFixed(1)}H${right}` }),
      makeSvg('text', { class: 'y', x: left - 6, y: (y(value) + 3.8).toFixed(1) }, label)]);
  }

  // Draws as many ticks as fit without overlapping labels; under steps the training time.
  xAxis(timed) {
    const { x, right, left, bottom, last } = this.scale, curve = this.curves[0];
    const time = (step) => (timed ? this.clock(timeAt(curve, step), lastFinite(curve.seconds)) : '');
    const clock = this.bySeconds && last > 180; // else the axis is in seconds
    let ticks;
    for (let wanted = 8; wanted > 0; wanted--) {
      ticks = clock ? clockTicks(last, wanted) : linearTicks(0, last, wanted);
      const longest = Math.max(...ticks.map(({ value, label }) => Math.max(label.length, time(value).length)));
      if (ticks.length < 2 || x(ticks[1].value) - x(ticks[0].value) >= (longest + 2) * 6.6)
        break;
    }
    const text = (css, at, up, label) => makeSvg('text', { class: css, x: Math.min(at, right).toFixed(1), y: bottom + up }, label);
    return [makeSvg('path', { class: 'axis', d: `M${left} ${bottom}H${right}` }),
      text('y faint', left - 20, 15, this.bySeconds && !clock ? 's' : this.bySeconds ? 'time' : this.xName),
      ...(timed ? [text('y faint', left - 20, 30, 'time')] : []),
      ...ticks.flatMap(({ value, label }) => {
        const end = x(value) > right - 14 ? 'y' : 'x';
        return [makeSvg('path', { class: 'axis', d: `M${x(value).toFixed(1)} ${bottom}v4` }), text(end, x(value) + (end === 'y' ? 8 : 0), 15, label),
          ...(timed ? [text(`${end} faint`, x(value) + (end === 'y' ? 8 : 0), 30, time(value))] : [])];
      })];
  }

  // Returns the lines and dots of a curve.
  path(curve) {
    const { x, y, top, bottom } = this.scale, at = this.positions(curve), few = curve.x.length < FEW_POINTS && !this.hideRaw;
    const height = (value) => Math.min(Math.max(y(value), top - 4), bottom);
    const isShown = (i, values) => Number.isFinite(at[i]) && Number.isFinite(values[i]) && !(this.logarithmic && values[i] <= 0);
    const line = (css, ...rows) => {
      let d = '', drawing = false;
      for (let i = 0; i < at.length; i++) {
        for (const values of rows) {
          const shown = isShown(i, values);
          if (shown)
            d += drawing ? (this.stepwise ? `H${x(at[i]).toFixed(1)}V${height(values[i]).toFixed(1)}` : `L${x(at[i]).toFixed(1)} ${height(values[i]).toFixed(1)}`) :
              `M${x(at[i]).toFixed(1)} ${height(values[i]).toFixed(1)}`;
          drawing = shown;
        }
      }
      return makeSvg('path', { class: `curve ${css} ${curve.css}`, d });
    };
    const dots = curve.dots || few ? at.flatMap((_, i) => (isShown(i, curve.y) ?
      [makeSvg('circle', { class: `dot ${curve.css}`, cx: x(at[i]).toFixed(1), cy: height(curve.y[i]).toFixed(1), r: curve.dots ? 3.4 : 2.6 })] : [])) : [];
    const raw = curve.isSmooth && !this.hideRaw ? [curve.low ? line('raw', curve.low, curve.high) : line('raw', curve.y)] : [];
    return [...raw, line('', curve.line), ...dots];
  }

  // Shows the values at the cursor, else the last values.
  showValues() {
    if (!this.scale)
      return;
    const { x, y, top, bottom } = this.scale, marks = [], values = this.legend.querySelectorAll('b');
    let first = null;
    this.curves.forEach((curve, k) => {
      const at = this.positions(curve), i = this.at === null ? -1 : nearest(at, this.at);
      const value = i < 0 ? lastFinite(curve.y) : curve.line[i];
      values[k].textContent = this.hideLast && i < 0 ? '' : this.text(value);
      if (i >= 0 && Number.isFinite(value) && !(this.logarithmic && value <= 0))
        marks.push(makeSvg('circle', { class: `dot ${curve.css}`, cx: x(at[i]), cy: Math.min(Math.max(y(value), top), bottom), r: 3 }));
      first ??= i < 0 ? null : { at: at[i], step: curve.x[i], seconds: curve.seconds?.[i], longest: lastFinite(curve.seconds ?? []) };
    });
    if (first)
      marks.unshift(makeSvg('path', { class: 'axis', d: `M${x(first.at).toFixed(1)} ${top}V${bottom}` }));
    const when = first && [`${this.xName} ${Number.isInteger(first.step) ? grouped(first.step) : +first.step.toPrecision(4)}`,
      ...(Number.isFinite(first.seconds) ? [this.clock(first.seconds, first.longest)] : [])];
    this.legend.lastChild.textContent = first ? when.join(' · ') : '';
    this.cursor.replaceChildren(...marks);
  }

  // Returns a time; of short trainings with tenths of a second.
  clock(seconds, longest) {
    return Number.isFinite(seconds) && longest < 10 ? `${seconds.toFixed(1)} s` : duration(seconds);
  }

  text(value) {
    const text = Number.isFinite(value) ? this.format(value) : '–';
    return text === '–' || !this.unit ? text : this.unit.startsWith('/') ? text + this.unit : `${text} ${this.unit}`;
  }

  description() {
    const parts = this.curves.map((curve) => {
      const values = curve.y.filter(Number.isFinite), [low, high] = [Math.min, Math.max].map((of) => values.reduce((a, b) => of(a, b)));
      return `${curve.name}: lowest ${this.text(low)}, highest ${this.text(high)}, last ${this.text(lastFinite(curve.y))}.`;
    });
    return `${this.title} against ${this.bySeconds ? 'training time' : this.xName}. ${this.logarithmic ? 'Logarithmic' : 'Linear'} axis. ${parts.join(' ')}`;
  }
}

// Returns the training time at a step, interpolated from 0 at step 0; NaN after the last point.
function timeAt(curve, step) {
  const i = curve.x.findIndex((x, at) => x >= step && Number.isFinite(curve.seconds[at]));
  const before = curve.seconds.findLastIndex((seconds, at) => (i < 0 || at < i) && curve.x[at] <= step && Number.isFinite(seconds));
  const [x0, t0] = before < 0 ? [0, 0] : [curve.x[before], curve.seconds[before]];
  if (i < 0)
    return step <= x0 ? t0 : NaN;
  return curve.x[i] > x0 ? t0 + (step - x0) / (curve.x[i] - x0) * (curve.seconds[i] - t0) : curve.seconds[i];
}

// Returns ticks at round times: [{value in seconds, label}].
function clockTicks(last, wanted) {
  const units = [60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
  const step = units.find((unit) => last / unit <= wanted) ?? 86400 * roundStep(last / 86400 / wanted);
  return Array.from({ length: Math.floor(last / step + 1e-6) + 1 }, (_, i) => ({ value: i * step, label: duration(i * step) }));
}
