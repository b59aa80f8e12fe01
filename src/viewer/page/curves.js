// Draws curves by step: logged values faint, smoothed values strong, evaluations of held-out views as rings, other
// parts of the loss as thin lines.

const SMOOTH = 0.03; // share of a curve's points in an average

// Returns about `count` round numbers between low and high.
function ticks(low, high, count) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((x) => x * power).find((x) => x >= raw * 0.999);
  const all = [];
  for (let x = Math.ceil(low / step - 1e-9) * step; x <= high + step * 1e-6; x += step)
    all.push(Math.abs(x) < step * 1e-6 ? 0 : x);
  return all;
}

// Returns powers of ten between low and high; where there are few, also 3 times, or 2 and 5 times, the powers.
function logTicks(low, high) {
  const factors = Math.log10(high / low) > 2.2 ? [1] : Math.log10(high / low) > 1.1 ? [1, 3] : [1, 2, 5], all = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    for (const factor of factors)
      if (factor * 10 ** power >= low && factor * 10 ** power <= high)
        all.push(factor * 10 ** power);
  return all;
}

const steps = (x) => (x >= 1e6 ? `${+(x / 1e6).toPrecision(3)}M` : x >= 1e4 ? `${+(x / 1e3).toPrecision(3)}k` : `${x}`);
const plain = (x) => (x > 0 && x < 1e-3 ? x.toExponential(0) : String(+x.toPrecision(3)));

// Averages groups of points, to at most `most` points, so that the time to draw does not grow with the run.
function thinned(points, most) {
  if (points.length <= most)
    return points;
  const size = points.length / most;
  return Array.from({ length: most }, (_, i) => {
    const part = points.slice(Math.floor(i * size), Math.floor((i + 1) * size));
    return [part[part.length - 1][0], part.reduce((sum, p) => sum + p[1], 0) / part.length];
  });
}

// Returns the exponential moving average, with a bias correction as in Adam.
function smoothed(points) {
  const keep = 1 - 1 / Math.max(1, SMOOTH * points.length);
  let mean = 0, weight = 0;
  return points.map(([x, y]) => {
    mean = keep * mean + (1 - keep) * y;
    weight = keep * weight + (1 - keep);
    return [x, mean / weight];
  });
}

class Curve {
  constructor(id, color, logarithmic) {
    Object.assign(this, { canvas: $('curve-' + id), at: $(id + '-at'), color, logarithmic, raw: [], dots: [], parts: [], hoverX: null });
    this.canvas.onpointermove = (event) => { this.hoverX = event.offsetX; this.draw(); };
    this.canvas.onpointerleave = this.canvas.onblur = () => { this.hoverX = null; this.draw(); };
    this.canvas.onkeydown = (event) => this.key(event);
  }

  // points, dots: lists of [step, value]; dots are evaluations. parts: such lists of the other parts of the loss.
  set(points, dots, parts = []) {
    const good = ([, y]) => Number.isFinite(y) && (!this.logarithmic || y > 0);
    this.raw = thinned(points.filter(good), 600);
    this.line = smoothed(this.raw);
    this.dots = dots.filter(good);
    this.parts = parts.map((part) => smoothed(thinned(part.filter(good), 600)));
    this.draw();
  }

  key(event) {
    const by = { ArrowLeft: -8, ArrowRight: 8 }[event.key];
    if (!by)
      return;
    event.preventDefault();
    event.stopPropagation();
    this.hoverX = clamp((this.hoverX ?? this.canvas.clientWidth / 2) + by, 0, this.canvas.clientWidth);
    this.draw();
  }

  // Returns the limits of the y axis: they contain all smoothed values and dots, and the middle 90 % of the raw values.
  limits() {
    const values = [...this.line, ...this.dots, ...this.parts.flat()].map((p) => p[1]);
    const sorted = this.raw.map((p) => p[1]).sort((a, b) => a - b);
    values.push(sorted[Math.floor(sorted.length * 0.05)], sorted[Math.floor(sorted.length * 0.95)]);
    let low = Math.min(...values.filter(Number.isFinite)), high = Math.max(...values.filter(Number.isFinite));
    if (this.logarithmic)
      return [low / 1.15, high * 1.15];
    const margin = Math.max((high - low) * 0.06, 0.05);
    return [low - margin, high + margin];
  }

  draw() {
    const W = this.canvas.clientWidth, H = this.canvas.clientHeight;
    if (W === 0)
      return;
    const context = fitCanvas(this.canvas, W, H);
    context.clearRect(0, 0, W, H);
    context.font = '11px system-ui, sans-serif';
    if (this.raw.length + this.dots.length === 0) {
      context.fillStyle = colors.faint;
      context.fillText('nothing logged yet', 8, H / 2);
      return;
    }
    const [low, high] = this.limits(), last = Math.max(...[...this.raw, ...this.dots].map((p) => p[0]), 1);
    const scale = this.logarithmic ? Math.log : (y) => y, left = 38, bottom = H - 18, right = W - 8, top = 6;
    const x = (step) => left + step / last * (right - left);
    const y = (value) => bottom - (scale(value) - scale(low)) / (scale(high) - scale(low)) * (bottom - top);
    this.axes(context, { x, y, low, high, last, left, right, bottom });
    const stroke = (points, width, alpha, color = this.color) => {
      context.globalAlpha = alpha;
      context.lineWidth = width;
      context.strokeStyle = colors[color];
      context.beginPath();
      points.forEach((p) => context.lineTo(x(p[0]), clamp(y(p[1]), top - 4, bottom)));
      context.stroke();
      context.globalAlpha = 1;
    };
    context.lineJoin = 'round';
    stroke(this.raw, 1, 0.28);
    stroke(this.line, 1.8, 1);
    this.parts.forEach((part, i) => stroke(part, 1, 1, ['c2', 'c1', 'mark'][i]));
    for (const [step, value] of this.dots) {
      context.beginPath();
      context.arc(x(step), y(value), 3.2, 0, 7);
      context.fillStyle = colors.panel;
      context.fill();
      context.strokeStyle = colors.c2;
      context.lineWidth = 1.8;
      context.stroke();
    }
    this.readOut(context, x, y, bottom);
  }

  axes(context, { x, y, low, high, last, left, right, bottom }) {
    context.lineWidth = 1;
    context.strokeStyle = colors.line;
    context.fillStyle = colors.faint;
    context.textAlign = 'right';
    for (const tick of this.logarithmic ? logTicks(low, high) : ticks(low, high, 4)) {
      context.beginPath();
      context.moveTo(left, Math.round(y(tick)) + 0.5);
      context.lineTo(right, Math.round(y(tick)) + 0.5);
      context.stroke();
      context.fillText(plain(tick), left - 6, y(tick) + 3.5);
    }
    const across = ticks(0, last, 4);
    for (const tick of across) {
      context.textAlign = x(tick) > right - 14 ? 'right' : 'center';
      context.fillText(steps(tick), Math.min(x(tick), right), bottom + 14);
    }
    context.textAlign = 'left';
  }

  // Shows the value at the pointer, else the last value.
  readOut(context, x, y, bottom) {
    const points = this.line.length ? this.line : this.dots;
    let point = points[points.length - 1];
    if (this.hoverX !== null) {
      point = points.reduce((best, p) => (Math.abs(x(p[0]) - this.hoverX) < Math.abs(x(best[0]) - this.hoverX) ? p : best));
      context.strokeStyle = colors.faint;
      context.beginPath();
      context.moveTo(x(point[0]), 6);
      context.lineTo(x(point[0]), bottom);
      context.stroke();
      context.beginPath();
      context.arc(x(point[0]), y(point[1]), 3, 0, 7);
      context.fillStyle = colors[this.color];
      context.fill();
    }
    const value = this.logarithmic ? point[1].toExponential(2) : point[1].toFixed(2);
    this.at.textContent = this.hoverX === null ? value : `${value} at step ${point[0].toLocaleString('en')}`;
  }
}
