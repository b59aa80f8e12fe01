// A camera path: keyframes and the curve through them, computed as in src/scene/camera_path_keyframes.c.

const MOST_KEYS = 500; // keyframes of a path of another program
const LEAST_ANGLE = 1, LARGEST_ANGLE = 175; // degrees of a keyframe's field of view
const path = {
  keys: [], // {position, look_at, up, fov, time, thumb}
  seconds: 6, fps: 24, loop: false, width: 1920, height: 1080, name: 'path',
};
let preview = null; // {begin} while the preview runs, {at: true} while the slider is dragged

const previewing = () => preview !== null;

// Returns each keyframe's values that the curve interpolates.
const pathValues = () => path.keys.map((key) => [...key.position, ...key.look_at, ...unit(key.up), key.fov, key.time]);

const frameCount = () => Math.max(1, Math.round(path.seconds * path.fps));

// Returns the path's camera and time at t in 0..1. The last frame of an open path is at 1; the last frame of a loop is
// one frame before 1, where the loop is at its start again.
function pathAt(t) {
  const loop = path.loop && path.keys.length > 1;
  const v = splineAt(pathValues(), loop, t * (loop ? path.keys.length : path.keys.length - 1));
  const position = v.slice(0, 3), back = subtract(position, v.slice(3, 6));
  const axes = lookAlong(length(back) > 0 ? back : camera.axes[2], v.slice(6, 9));
  return {
    position, axes, distance: Math.max(length(back), scene.distance * 1e-3),
    fov: fitted(clamp(v[9], LEAST_ANGLE, LARGEST_ANGLE), path.width / path.height), time: clamp(v[10], 0, 1),
  };
}

// Returns the current view within the path's frame as a keyframe. A camera without roll gets the scene's up: the curve
// between such keyframes then has no roll either.
function keyframeOfView() {
  const upright = lookAlong(camera.axes[2], scene.up), hasNoRoll = dot(upright[1], camera.axes[1]) > 0.99999;
  const aspect = path.width / path.height;
  return {
    position: camera.position.slice(), look_at: pivotOf(camera),
    up: hasNoRoll ? unit(scene.up) : camera.axes[1].slice(),
    fov: clamp(unfitted(camera.fov, aspect), LEAST_ANGLE, LARGEST_ANGLE), time: settings.time,
    thumb: thumbnail(aspect),
  };
}

function cameraOfKey(key) {
  const back = subtract(key.position, key.look_at);
  return {
    position: key.position.slice(), axes: lookAlong(back, key.up), distance: length(back),
    fov: fitted(key.fov, path.width / path.height),
  };
}

// Returns the JSON for `vknerf render --path`. Positions are not rounded, since a scene may be far from the origin.
function pathFile() {
  const round = (x) => +x.toPrecision(8);
  return {
    seconds: path.seconds, fps: path.fps, loop: path.loop, width: path.width, height: path.height,
    keyframes: path.keys.map((key) => ({
      position: key.position, look_at: key.look_at, up: key.up.map(round), fov: round(key.fov),
      ...(scene.dynamic ? { time: round(key.time) } : {}),
    })),
  };
}

// Parses the JSON of pathFile; throws an Error that names the field. A keyframe inherits missing fields from the
// previous one.
function readPathFile(json) {
  const number = (value, name, low, high) => {
    if (typeof value !== 'number' || !(value >= low && value <= high))
      throw new Error(`${name}: not a number from ${low} to ${high}`);
    return value;
  };
  const vector = (value, name) => {
    if (!Array.isArray(value) || value.length !== 3)
      throw new Error(`${name}: not 3 numbers`);
    return value.map((x) => number(x, name, -1e9, 1e9));
  };
  if (!json || !Array.isArray(json.keyframes) || json.keyframes.length === 0)
    throw new Error('no keyframes in it');
  const fps = json.fps === undefined ? 24 : number(json.fps, 'fps', 0.01, 1000);
  let before = { up: unit(scene.up), fov: scene.fov, time: 0 };
  const keys = json.keyframes.map((key, i) => {
    const where = `keyframes[${i}].`;
    before = {
      position: vector(key.position, where + 'position'), look_at: vector(key.look_at, where + 'look_at'),
      up: key.up === undefined ? before.up : unit(vector(key.up, where + 'up')),
      fov: key.fov === undefined ? before.fov : number(key.fov, where + 'fov', LEAST_ANGLE, LARGEST_ANGLE),
      time: key.time === undefined ? before.time : number(key.time, where + 'time', 0, 1), thumb: '',
    };
    if (length(subtract(before.position, before.look_at)) === 0)
      throw new Error(where + 'look_at: equals position');
    if (length(before.up) === 0)
      throw new Error(where + 'up: is 0 0 0');
    return before;
  });
  const seconds = json.frames === undefined ? number(json.seconds, 'seconds', 1e-3, 1e6) :
    number(json.frames, 'frames', 1, 1e6) / fps;
  const aspect = path.width / path.height, size = (value, name) => number(value, name, 1, 65536);
  const { width, height } = json;
  return {
    keys, fps, seconds, loop: json.loop === true,
    width: width !== undefined ? size(width, 'width') : height !== undefined ? Math.round(height * aspect) : path.width,
    height: height !== undefined ? size(height, 'height') : width !== undefined ? Math.round(width / aspect) : path.height,
  };
}

// Returns the path through the cameras of another program's path, as the server has read it: {cameras: [[pose, fov,
// time]], fps, width, height}. Takes few keyframes that follow all cameras closely.
function pathOfCameras({ cameras, fps, width, height }) {
  const keyOf = (v) => {
    const at = fromPose(v.slice(0, 12), 0, 1);
    return {
      position: at.position, look_at: add(at.position, at.axes[2], -scene.distance), up: at.axes[1],
      fov: clamp(v[12], LEAST_ANGLE, LARGEST_ANGLE), time: clamp(v[13], 0, 1), thumb: '',
    };
  };
  const all = cameras.map(keyOf), last = all.length - 1;
  const values = (key) => [...key.position, ...key.look_at, ...key.up, key.fov];
  const tolerance = 2e-3 * scene.distance;
  const evenly = (count) => Array.from({ length: count }, (_, i) => all[Math.round(i / (count - 1) * last)]);
  let keys = all.length > MOST_KEYS ? evenly(MOST_KEYS) : all;
  for (let count = 2; count < keys.length; count = Math.ceil(count * 1.25)) {
    const some = evenly(count), points = some.map(values);
    const follows = all.every((key, i) => {
      const at = splineAt(points, false, i / last * (count - 1));
      return [0, 3].every((from) => length(subtract(at.slice(from, from + 3), values(key).slice(from, from + 3))) < tolerance) &&
        Math.abs(at[9] - key.fov) < 0.1;
    });
    if (follows) {
      keys = some;
      break;
    }
  }
  const rate = fps > 0 ? fps : 24;
  return { keys, fps: rate, seconds: cameras.length / rate, loop: false, width, height };
}

// ---- the draft in sessionStorage, which survives a reload of the page ----

const draftName = () => `vknerf path ${scene.run}`;

function keepDraft() {
  try {
    sessionStorage.setItem(draftName(), JSON.stringify(path));
  } catch { /* full or not allowed: the draft is lost on reload */ }
}

function readDraft() {
  try {
    Object.assign(path, JSON.parse(sessionStorage.getItem(draftName()) || '{}'));
  } catch { /* no readable draft */ }
}

// ---- preview ----

function showPathAt(t) {
  const at = pathAt(t);
  if (scene.dynamic)
    setTime(at.time);
  $('path-scrub').value = t;
  $('path-scrub-value').textContent = `${(t * path.seconds).toFixed(1)} s`;
  flight = null;
  setCamera(at);
}

// Advances the preview; false when it does not run. Shows exactly the frames that will be rendered.
function previewStep(now) {
  if (!preview || preview.begin === undefined)
    return false;
  const count = frameCount(), loop = path.loop && path.keys.length > 1, frame = (now - preview.begin) / 1000 * path.fps;
  if (frame >= count && !path.loop) {
    showPathAt(1);
    stopPreview();
    return false;
  }
  const i = Math.floor(frame) % count;
  showPathAt(loop || count === 1 ? i / count : i / (count - 1));
  return true;
}

function stopPreview() {
  if (!preview)
    return;
  preview = null;
  showPlaying();
  emit('overlay');
  interruptPause();
  frameLoop();
}

function playPath() {
  if (preview)
    return stopPreview();
  if (path.keys.length === 0)
    return notice('No keyframes yet', 2500);
  showPanel('path', true);
  preview = { begin: performance.now() };
  showPlaying();
  wake();
}

function showPlaying() {
  const button = $('path-play');
  button.setAttribute('aria-pressed', previewing());
  button.replaceChildren(icon(preview ? 'pause' : 'play'), Object.assign(document.createElement('span'),
    { textContent: preview ? 'Stop' : 'Preview' }));
}
