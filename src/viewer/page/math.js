// Vectors, rotations, splines and projections, as in the C sources.

const add = (a, b, s = 1) => [a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2]];
const subtract = (a, b) => add(a, b, -1);
const times = (a, s) => [a[0] * s, a[1] * s, a[2] * s];
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const length = (a) => Math.hypot(a[0], a[1], a[2]);
const unit = (a) => (length(a) > 0 ? times(a, 1 / length(a)) : a);
const cross = (a, b) => [
  a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const UNITS = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
const clamp = (x, low, high) => Math.min(Math.max(x, low), high);
const mix = (a, b, t) => a + (b - a) * t;
const radians = (degrees) => degrees * Math.PI / 180;
const degrees = (angle) => angle * 180 / Math.PI;

// Rotates v about a unit axis by an angle (Rodrigues).
function turned(v, axis, angle) {
  const c = Math.cos(angle), s = Math.sin(angle);
  return add(add(times(v, c), cross(axis, v), s), axis, dot(axis, v) * (1 - c));
}

// Returns a camera's axes right, up, back for a view direction -back: look_along() of src/scene/vectors.c.
function lookAlong(back, up) {
  const axis = unit(back);
  let right = cross(up, axis);
  if (length(right) < 1e-6 * length(up))
    right = cross(Math.abs(axis[0]) < 0.5 ? [1, 0, 0] : [0, 1, 0], axis);
  right = unit(right);
  return [right, cross(axis, right), axis];
}

// Convert axes to a quaternion (x, y, z, w) and back (Shepperd 1978).
function toQuaternion([r, a, b]) {
  const trace = r[0] + a[1] + b[2];
  let q;
  if (trace > 0)
    q = [a[2] - b[1], b[0] - r[2], r[1] - a[0], 1 + trace];
  else if (r[0] > a[1] && r[0] > b[2])
    q = [1 + r[0] - a[1] - b[2], a[0] + r[1], b[0] + r[2], a[2] - b[1]];
  else if (a[1] > b[2])
    q = [a[0] + r[1], 1 + a[1] - r[0] - b[2], b[1] + a[2], b[0] - r[2]];
  else
    q = [b[0] + r[2], b[1] + a[2], 1 + b[2] - r[0] - a[1], r[1] - a[0]];
  const size = Math.hypot(...q);
  return q.map((x) => x / size);
}

function fromQuaternion([x, y, z, w]) {
  return [
    [1 - 2 * (y * y + z * z), 2 * (x * y + z * w), 2 * (x * z - y * w)],
    [2 * (x * y - z * w), 1 - 2 * (x * x + z * z), 2 * (y * z + x * w)],
    [2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)]];
}

function slerp(p, q, t) {
  let cosine = p.reduce((sum, x, i) => sum + x * q[i], 0);
  const sign = cosine < 0 ? -1 : 1;
  cosine = Math.min(cosine * sign, 1);
  const angle = Math.acos(cosine), sine = Math.sin(angle);
  const [a, b] = sine < 1e-6 ? [1 - t, t] : [Math.sin((1 - t) * angle) / sine, Math.sin(t * angle) / sine];
  const mixed = p.map((x, i) => a * x + b * sign * q[i]), size = Math.hypot(...mixed);
  return mixed.map((x) => x / size);
}

// spline_at() of src/scene/spline.c for uniformly spaced points: cubic Hermite segments whose tangent at a point is the
// slope between its neighbours (Catmull and Rom 1974), one-sided at the ends of an open curve.
function splineAt(points, loop, time) {
  const count = points.length, last = count - 1;
  if (count < 2)
    return points[0].slice();
  const segment = clamp(Math.floor(time), 0, (loop ? count : last) - 1);
  const tangent = (i, c) => {
    const before = i > 0 ? i - 1 : loop ? last : 0, after = i < last || loop ? i + 1 : last;
    const span = after - (i === 0 && loop ? -1 : before);
    return (points[after % count][c] - points[before][c]) / span;
  };
  const next = (segment + 1) % count, t = time - segment, t2 = t * t, t3 = t2 * t;
  return points[0].map((_, c) =>
    (2 * t3 - 3 * t2 + 1) * points[segment][c] + (t3 - 2 * t2 + t) * tangent(segment, c) +
    (3 * t2 - 2 * t3) * points[next][c] + (t3 - t2) * tangent(next, c));
}

// The last parameter of the next two functions is the layout: height H and principal point x, y, in page pixels.

// Projects a world point: [x, y, distance along the viewing axis].
function project(camera, point, { H, x, y }) {
  const to = subtract(point, camera.position), z = -dot(to, camera.axes[2]);
  const scale = H / 2 / Math.tan(radians(camera.fov) / 2) / z;
  return [x + dot(to, camera.axes[0]) * scale, y - dot(to, camera.axes[1]) * scale, z];
}

// Returns the unit direction of a pixel's ray.
function direction(camera, column, row, { H, x, y }) {
  const scale = Math.tan(radians(camera.fov) / 2) * 2 / H;
  return unit(add(add(times(camera.axes[0], (column - x) * scale), camera.axes[1], (y - row) * scale),
    camera.axes[2], -1));
}
