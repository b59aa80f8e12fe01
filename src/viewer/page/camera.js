// Moves the camera: orbit, fly, animated flights between views, and the URL fragment that stores a view.

let lastMove = -Infinity; // performance.now() of the last change of the picture
let flight = null;        // {from, to, begin, ms}
let homeView;

const pivotOf = (c) => add(c.position, c.axes[2], -c.distance);
const copyOf = (c) => ({ ...c, position: c.position.slice(), axes: c.axes.map((axis) => axis.slice()) });
// Returns the 3 x 4 pose, row by row, as in the protocol and in transforms.json.
const poseOf = (c) => [0, 1, 2].flatMap((i) => [c.axes[0][i], c.axes[1][i], c.axes[2][i], c.position[i]]);

function fromPose(pose, fov, distance) {
  const column = (j) => [pose[j], pose[4 + j], pose[8 + j]];
  return { position: column(3), axes: [0, 1, 2].map((j) => unit(column(j))), fov, distance };
}

function setCamera(to) {
  Object.assign(camera, copyOf(to));
  lastMove = performance.now();
  emit('camera');
}

function moved() {
  lastMove = performance.now();
  flight = null;
  emit('camera');
}

// ---- interactive movements ----

// Reduces the roll by `strength` (0 to 1), unless the camera looks along the scene's up.
function level(strength) {
  const up = unit(scene.up);
  if (Math.abs(dot(camera.axes[2], up)) > 0.995)
    return;
  const q = slerp(toQuaternion(camera.axes), toQuaternion(lookAlong(camera.axes[2], up)), strength);
  camera.axes = fromQuaternion(q);
}

// Rotates about the pivot, or about the camera itself: `yaw` about up, `pitch` about the camera's right, in radians.
function turn(yaw, pitch, aboutSelf) {
  const up = unit(scene.up), pivot = pivotOf(camera);
  const rotate = (v, axis, angle) => turned(v, axis, angle);
  const steep = Math.acos(clamp(dot(camera.axes[2], up), -1, 1)); // 0: looks straight down
  const limit = radians(1);
  const limitedPitch = clamp(steep + pitch, Math.min(limit, steep), Math.max(Math.PI - limit, steep)) - steep;
  const axis = camera.axes[0];
  camera.axes = camera.axes.map((v) => unit(rotate(rotate(v, axis, limitedPitch), up, yaw)));
  level(0.15);
  if (!aboutSelf)
    camera.position = add(pivot, camera.axes[2], camera.distance);
  moved();
}

// Pans in the plane of the pivot; dx and dy are shares of the picture's height.
function pan(dx, dy) {
  const scale = 2 * Math.tan(radians(camera.fov) / 2) * camera.distance;
  camera.position = add(add(camera.position, camera.axes[0], -dx * scale), camera.axes[1], dy * scale);
  moved();
}

// Scales the distance to the point of the pivot's plane that is at (x, y) of the picture.
function zoom(factor, x, y) {
  const reach = scene.distance, wanted = clamp(camera.distance * factor, reach * 1e-3, reach * 100);
  const ray = direction(camera, x, y, stage);
  if (settings.mode === 'fly') {
    camera.position = add(camera.position, ray, (1 - factor) * reach * 0.3);
  } else {
    const point = add(camera.position, ray, camera.distance / -dot(ray, camera.axes[2]));
    const step = wanted / camera.distance;
    camera.position = add(point, subtract(camera.position, point), step);
    camera.distance = wanted;
  }
  moved();
}

// Moves along the camera's axes, in units of scene.distance.
function walk(right, above, ahead) {
  const step = scene.distance;
  for (const [i, by] of [[0, right], [1, above], [2, -ahead]])
    camera.position = add(camera.position, camera.axes[i], by * step);
  moved();
}

// Turns the camera to a point, which becomes the pivot.
function lookAt(point) {
  const back = subtract(camera.position, point);
  if (length(back) > scene.distance * 1e-3)
    flyTo({ ...copyOf(camera), axes: lookAlong(back, scene.up), distance: length(back) }, 350);
}

// ---- flights ----

function flyTo(to, ms = 700) {
  if (reducedMotion.matches)
    return setCamera(to);
  flight = { from: copyOf(camera), to: copyOf(to), begin: performance.now(), ms };
  wake();
}

// Advances the flight by a frame; false when there is none.
function flightStep(now) {
  if (!flight)
    return false;
  const { from, to, begin, ms } = flight, t = clamp((now - begin) / ms, 0, 1);
  const s = t < 1 ? t * t * (3 - 2 * t) : 1;
  if (t === 1) {
    setCamera(to);
    flight = null;
  } else {
    setCamera({
      axes: fromQuaternion(slerp(toQuaternion(from.axes), toQuaternion(to.axes), s)),
      position: add(times(from.position, 1 - s), to.position, s),
      distance: mix(from.distance, to.distance, s), fov: mix(from.fov, to.fov, s),
    });
  }
  return true;
}

// ---- the first view ----

// Returns a camera at the first training camera's position that looks at the focus point. A narrow window gets a wider
// field of view, so that it shows as much of the scene.
function firstView() {
  const view = scene.views[0];
  let back = [1, 1, 0.7], position;
  if (view) {
    const pose = view.scenePose || view.pose; // the first view stays where it is while poses are refined
    position = [pose[3], pose[7], pose[11]];
    back = subtract(position, scene.look_at);
  }
  if (!(length(back) > 0))
    back = [1, 1, 0.7];
  if (!position)
    position = add(scene.look_at, unit(back), scene.distance);
  const distance = Math.max(length(subtract(position, scene.look_at)), scene.distance * 0.05);
  return { position, axes: lookAlong(back, scene.up), distance, fov: fitted(scene.fov, scene.width / scene.height) };
}

// Converts the vertical field of view of a picture with the given aspect ratio to the stage's field of view with which
// the whole picture fits the free area, and back.
const fitted = (fov, aspect) => Math.min(degrees(2 * Math.atan(Math.tan(radians(fov) / 2) * fit(aspect))), 170);
const unfitted = (fov, aspect) => degrees(2 * Math.atan(Math.tan(radians(fov) / 2) / fit(aspect)));
const fit = (aspect) => Math.max(1, aspect * free.H / free.W) * stage.H / free.H;

// ---- the URL fragment (after #) that stores the view ----

const short = (x) => String(+x.toPrecision(6)); // not for positions, since a scene may be far from the origin

function viewAddress() {
  const parts = {
    pose: poseOf(camera).join(','), distance: short(camera.distance), fov: short(camera.fov),
    map: settings.map, background: settings.background,
  };
  if (scene.dynamic)
    parts.time = short(settings.time);
  addMapsToAddress(parts);
  addPhotosToAddress(parts);
  if (settings.cropOn)
    parts.crop = settings.crop.join(',');
  return '#' + Object.entries(parts).map(([name, value]) => `${name}=${value}`).join('&');
}

function readAddress() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const numbers = (name, count) => {
    const all = (parts.get(name) || '').split(',').map(Number);
    return all.length === count && all.every(Number.isFinite) && parts.get(name) ? all : null;
  };
  const pose = numbers('pose', 12), [distance] = numbers('distance', 1) || [scene.distance];
  const [fov] = numbers('fov', 1) || [scene.fov], [time] = numbers('time', 1) || [0];
  const crop = numbers('crop', 9) || (numbers('crop', 6) && [...numbers('crop', 6), 0, 0, 0]);
  if (scene.maps.includes(parts.get('map')))
    settings.map = parts.get('map');
  if (backgrounds().includes(parts.get('background')))
    settings.background = parts.get('background');
  settings.time = clamp(time, 0, 1);
  readMapsOfAddress(parts, numbers);
  readPhotosOfAddress(parts, numbers);
  if (crop) {
    settings.crop = crop.map((x, i) => (i < 6 ? x : clamp(x, -180, 180)));
    settings.cropOn = true;
  }
  if (!pose)
    return false;
  setCamera(fromPose(pose, clamp(fov, 1, 150), Math.max(distance, scene.distance * 1e-3)));
  return true;
}

let addressTimer;
function keepAddress() {
  clearTimeout(addressTimer);
  addressTimer = setTimeout(() => history.replaceState(null, '', viewAddress()), 400);
}
