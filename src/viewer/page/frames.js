// Requests one frame at a time, coarse while something moves and refined when the camera is still. Until the next frame
// arrives, the last one is reprojected to the current camera.

const STILL_MS = 160;   // ms without a change after which the camera is still
const MAX_SIDE = 1920;  // most pixels of a request along the longer side
let shown = null;       // {bitmap, camera, layout, key, refined, still}
let movingShare = 0;    // share of the requested width that the last picture of the moving camera has
let outstanding = null; // {still, controller}
let frameLoopRuns = false, failures = 0, ended = false, interruptPause = () => {};
// As in the last answer of /api/state: whether a training goes on, whether no frames are rendered, the model's step.
let training = false, programBusy = false, modelStep = -1;
let pictureLost = false;

const busy = () => held.size > 0 || flight || previewing() || timePlaying();

function frameParameters() {
  const ratio = Math.min(devicePixelRatio || 1, 2) * settings.resolution;
  const scale = Math.min(ratio, MAX_SIDE / Math.max(stage.W, stage.H));
  const parameters = {
    pose: poseOf(camera).join(','), fov: camera.fov.toPrecision(6),
    width: Math.max(8, Math.round(stage.W * scale)), height: Math.max(8, Math.round(stage.H * scale)),
    center: `${(stage.x / stage.W).toFixed(5)},${(stage.y / stage.H).toFixed(5)}`,
    map: settings.map, background: settings.background, time: settings.time.toPrecision(5), lens: 'perspective',
    ...mapParameters(),
  };
  if (settings.cropOn)
    parameters.crop = settings.crop.join(',');
  return parameters;
}

// Handles a change of the camera or of a setting: aborts a request for a refined frame and sends a new request.
function pictureChanged() {
  lastMove = performance.now();
  emit('refined', 0);
  if (outstanding && outstanding.still)
    outstanding.controller.abort();
  interruptPause();
  frameLoop();
}

async function receiveFrame(response, key, sent) {
  const number = (name) => Number(response.headers.get(name));
  const blob = await response.blob(), height = number('X-Height'), width = number('X-Width');
  const bitmap = await createImageBitmap(blob, 0, 0, width, height);
  const second = sent.maps > 1 ? await createImageBitmap(blob, 0, height, width, height) : null; // below the first
  if (shown)
    shown.bitmap.close();
  if (shown && shown.second)
    shown.second.close();
  shown = {
    bitmap, second, camera: sent.camera, layout: sent.layout, key, still: sent.still, refined: number('X-Refined'),
    step: number('X-Step'),
  };
  if (!sent.still)
    movingShare = width / sent.width;
  emit('frame', {
    width, height, step: number('X-Step'), ms: number('X-Milliseconds'),
  });
  if (JSON.stringify(frameParameters()) === key)
    emit('refined', shown.refined);
  wake();
}

// Shows an error and returns the ms to wait before the next request, longer after each further error.
function showError(error) {
  if (error.status === 409)
    return 50;
  if (error.status === 403) {
    ended = true;
    cover('The program was restarted', 'Open the address that it printed: the token has changed.');
    return 0;
  }
  failures = Math.min(failures + 1, 6);
  if (error.status)
    notice(sentence(error.message));
  else if (failures > 1)
    notice('The program does not answer; trying again');
  return 250 * 2 ** failures;
}

// Handles the answer that there is no new frame yet. A final picture that was sent, but is not shown, was lost with an
// aborted request: a coarse frame makes the program send it again.
function noFrame(key, refinedShare) {
  emit('refined', refinedShare);
  pictureLost = refinedShare >= 1 && !(shown && shown.key === key && shown.refined > 0.99);
}

async function requestFrame(parameters, key, still) {
  const begin = performance.now(), sent = {
    camera: copyOf(camera), layout: { ...stage }, maps: parameters.second === 'none' ? 1 : 2, still, width: parameters.width,
  };
  outstanding = { still, controller: new AbortController() };
  try {
    const response = await fetched('/api/frame', { ...parameters, still: still ? 1 : 0, client },
      { signal: outstanding.controller.signal });
    if (response.status === 200)
      await receiveFrame(response, key, sent);
    else if (JSON.stringify(frameParameters()) === key)
      noFrame(key, Number(response.headers.get('X-Refined')));
    if (response.status !== 200 && performance.now() - begin < 300)
      await sleep(700); // answered at once
    if (failures > 0 && !ended)
      notice('');
    failures = 0;
    return 0;
  } catch (error) {
    return error.name === 'AbortError' || ended ? 0 : showError(error);
  } finally {
    outstanding = null;
  }
}

const pause = (ms) => Promise.race([sleep(ms), new Promise((done) => { interruptPause = done; })]);

// Requests coarse frames while something moves, refined ones while the camera is still, and new ones when the model has
// changed; ends when the picture is final. The last picture stays while the program is busy.
async function frameLoop() {
  if (frameLoopRuns || !scene)
    return;
  frameLoopRuns = true;
  let last = '';
  while (!document.hidden && !ended && !programBusy) {
    const parameters = frameParameters(), key = JSON.stringify(parameters), sinceMove = performance.now() - lastMove;
    const still = sinceMove >= STILL_MS && !busy() && !pictureLost;
    pictureLost = false;
    if (!still && sinceMove < STILL_MS && key === last && shown && shown.key === key) {
      await pause(clamp(STILL_MS - sinceMove, 8, STILL_MS));
      continue;
    }
    if (still && shown && shown.key === key && shown.refined >= 1 && shown.step === modelStep) {
      emit('refined', 1);
      break;
    }
    last = key;
    const wait = await requestFrame(parameters, key, still);
    if (wait > 0)
      await sleep(wait);
  }
  frameLoopRuns = false;
}

// ---- drawing ----

// Returns the affine map that reprojects the shown frame to the current camera, exact for the plane through the pivot;
// null when the distortion is too large.
function reprojection() {
  const from = shown.camera, pivot = pivotOf(from), reach = from.distance * 0.25;
  const points = [pivot, add(pivot, from.axes[0], reach), add(pivot, from.axes[1], reach)];
  const a = points.map((p) => project(from, p, shown.layout)), b = points.map((p) => project(camera, p, stage));
  if (b.some((p) => p[2] < camera.distance * 0.02))
    return null;
  const ax = a[1][0] - a[0][0], ay = a[2][1] - a[0][1]; // the points differ along one image axis each
  const m = [(b[1][0] - b[0][0]) / ax, (b[1][1] - b[0][1]) / ax, (b[2][0] - b[0][0]) / ay, (b[2][1] - b[0][1]) / ay];
  const area = m[0] * m[3] - m[1] * m[2];
  if (!(area > 0.1 && area < 10))
    return null;
  return [...m, b[0][0] - m[0] * a[0][0] - m[2] * a[0][1], b[0][1] - m[1] * a[0][0] - m[3] * a[0][1]];
}

function fitCanvas(canvas, W, H) {
  const ratio = devicePixelRatio || 1, w = Math.round(W * ratio), h = Math.round(H * ratio);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

function drawPicture() {
  const { W, H } = stage, context = fitCanvas($('picture'), W, H);
  context.fillStyle = settings.map === 'rgb' ? settings.background : '#000';
  context.fillRect(0, 0, W, H);
  if (!shown)
    return;
  const m = reprojection();
  context.save();
  if (m)
    context.transform(...m);
  context.imageSmoothingQuality = 'high';
  context.drawImage(shown.bitmap, 0, 0, m ? shown.layout.W : W, m ? shown.layout.H : H);
  context.restore();
  if (showsSurface())
    context.drawImage(drawSurface(), 0, 0, W, H);
  drawSecond(context, m);
}

// Saves the shown frame as a PNG file in its original size.
function savePicture(name) {
  if (!shown)
    return;
  const canvas = document.createElement('canvas');
  canvas.width = shown.bitmap.width;
  canvas.height = shown.bitmap.height;
  canvas.getContext('2d').drawImage(shown.bitmap, 0, 0);
  canvas.toBlob((blob) => download(name, blob), 'image/png');
}

// Returns a small JPEG of the area that a path's frame shows, for a keyframe.
function thumbnail(aspect) {
  if (!shown)
    return '';
  const canvas = document.createElement('canvas'), { width, height } = shown.bitmap;
  const [x, y, w, h] = guide(aspect), sx = width / stage.W, sy = height / stage.H;
  canvas.width = 96;
  canvas.height = Math.round(clamp(96 / aspect, 16, 192));
  canvas.getContext('2d').drawImage(shown.bitmap, x * sx, y * sy, w * sx, h * sy, 0, 0,
    canvas.width, canvas.height);
  return canvas.toDataURL('image/jpeg', 0.7);
}
