// Draws lines over the picture: training cameras, the crop box, the path, the path's frame, and the axes.

const colors = {}; // the style sheet's, by name
let hovered = null; // the view under the pointer
let frusta = [];    // [{view, points: [[x, y]], distance}] as drawn last

function readColors() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['c1', 'c2', 'c3', 'mark', 'ink', 'faint', 'paper', 'panel', 'line', 'bad'])
    colors[name] = style.getPropertyValue('--' + name).trim();
}

// Draws a line of world points, clipped at the camera's near plane.
function worldLine(context, points, closed) {
  const near = camera.distance * 1e-3, count = points.length;
  context.beginPath();
  for (let i = 0; i + (closed ? 0 : 1) < count; i++) {
    let a = points[i], b = points[(i + 1) % count];
    const za = -dot(subtract(a, camera.position), camera.axes[2]);
    const zb = -dot(subtract(b, camera.position), camera.axes[2]);
    if (za < near && zb < near)
      continue;
    const cut = (p, q, zp, zq) => add(p, subtract(q, p), (near - zp) / (zq - zp));
    if (za < near)
      a = cut(a, b, za, zb);
    else if (zb < near)
      b = cut(b, a, zb, za);
    const p = project(camera, a, stage), q = project(camera, b, stage);
    context.moveTo(p[0], p[1]);
    context.lineTo(q[0], q[1]);
  }
  context.stroke();
}

// Draws a line with a halo, visible on any picture.
function haloed(context, color, width, draw) {
  context.strokeStyle = 'rgba(255,255,255,.55)';
  context.lineWidth = width + 2;
  draw();
  context.strokeStyle = color;
  context.lineWidth = width;
  draw();
}

// ---- training cameras ----

// Returns the apex and four corners of a camera's frustum of the given depth, at a pose.
function frustum(view, pose, depth) {
  const at = fromPose(pose, 0, 1), corner = (x, y) => add(add(add(at.position, at.axes[2], -depth),
    at.axes[0], (x - view.center_x) / view.focal_x * depth), at.axes[1], (view.center_y - y) / view.focal_y * depth);
  return [at.position, corner(0, 0), corner(view.width, 0), corner(view.width, view.height), corner(0, view.height)];
}

// Colours that are visible on light and dark pictures in both themes.
const LINES = { train: '#2f6fe0', val: '#2a9a55', test: '#d76a12', path: '#d76a12', box: '#d0307a' };
const splitColor = (split) => LINES[split] || LINES.train;

// Returns the frustum of a view at a pose as it is drawn; null: too near, or behind the viewing camera.
function drawnFrustum(view, pose, size) {
  const world = frustum(view, pose, size), points = world.map((p) => project(camera, p, stage));
  const distance = length(subtract(world[0], camera.position));
  const fade = clamp((distance / size - 0.5) / 2, 0, 1); // near the viewing camera
  return points.some((p) => p[2] < size * 0.05) || fade === 0 ? null : { view, points, distance, fade };
}

function strokeFrustum(context, points) {
  context.beginPath();
  for (const i of [1, 2, 3, 4]) {
    const next = i % 4 + 1;
    context.moveTo(points[0][0], points[0][1]);
    context.lineTo(points[i][0], points[i][1]);
    context.lineTo(points[next][0], points[next][1]);
  }
  context.stroke();
}

// Draws the poses of the scene of refined views, which cannot be selected.
function drawScenePoses(context, size) {
  context.globalAlpha = 0.4;
  for (const view of scene.views.filter(isRefined)) {
    const drawn = drawnFrustum(view, view.scenePose, size);
    context.strokeStyle = splitColor(view.split);
    context.lineWidth = 0.8;
    if (drawn)
      strokeFrustum(context, drawn.points);
  }
}

function drawCameras(context) {
  const size = settings.cameraSize * scene.distance * clamp(0.5 / Math.sqrt(scene.views.length), 0.02, 0.08);
  drawScenePoses(context, size);
  frusta = scene.views.map((view) => drawnFrustum(view, view.pose, size)).filter(Boolean);
  frusta.sort((a, b) => b.distance - a.distance);
  for (const { view, points, distance, fade } of frusta) {
    const chosen = view === hovered || view === picked;
    const faint = settings.panel === 'path' ? 0.45 : 1; // fainter than the path
    context.globalAlpha = chosen ? fade : fade * faint * clamp(1.3 - 0.3 * distance / scene.distance, 0.35, 0.95);
    haloed(context, splitColor(view.split), chosen ? 2.2 : 1.2, () => strokeFrustum(context, points));
    if (chosen) {
      context.fillStyle = splitColor(view.split);
      context.globalAlpha = 0.22 * fade;
      context.beginPath();
      for (const i of [1, 2, 3, 4])
        context.lineTo(points[i][0], points[i][1]);
      context.fill();
    }
  }
  context.globalAlpha = 1;
  const label = frusta.find(({ view }) => view === hovered);
  if (label)
    drawLabel(context, label.view.name, label.points);
}

function drawLabel(context, text, points) {
  context.font = '13px system-ui, sans-serif';
  const width = context.measureText(text).width + 16;
  const x = clamp(points.reduce((sum, p) => sum + p[0], 0) / points.length - width / 2, 6, stage.W - width - 6);
  const y = Math.max(Math.min(...points.map((p) => p[1])) - 32, 6);
  context.fillStyle = colors.panel;
  context.globalAlpha = 0.94;
  context.beginPath();
  context.roundRect(x, y, width, 24, 6);
  context.fill();
  context.globalAlpha = 1;
  context.fillStyle = colors.ink;
  context.fillText(text, x + 8, y + 16.5);
}

function segmentDistance(x, y, a, b) {
  const dx = b[0] - a[0], dy = b[1] - a[1], size = dx * dx + dy * dy;
  const t = size > 0 ? clamp(((x - a[0]) * dx + (y - a[1]) * dy) / size, 0, 1) : 0;
  return Math.hypot(x - a[0] - t * dx, y - a[1] - t * dy);
}

// Returns the view whose frustum's lines are nearest to a pixel, within `reach` pixels; of equally near ones the closest.
// Without such lines, returns the view whose photograph is at the pixel.
function cameraAt(x, y, reach) {
  let best = null, least = reach;
  if (!settings.cameras)
    return null;
  for (const { view, points } of frusta) {
    for (const i of [1, 2, 3, 4]) {
      const distance = Math.min(segmentDistance(x, y, points[0], points[i]),
        segmentDistance(x, y, points[i], points[i % 4 + 1]));
      if (distance <= least) { // later frusta are closer to the viewing camera
        least = distance;
        best = view;
      }
    }
  }
  return best || photoAt(x, y);
}

// ---- boxes, paths, axes ----

const showsBox = () => settings.cropOn && settings.panel === 'view' && !previewing();

function drawBox(context) {
  const corner = (i) => handleAt([i & 1 ? 1 : -1, i & 2 ? 1 : -1, i & 4 ? 1 : -1]);
  haloed(context, LINES.box, 1.3, () => {
    for (let i = 0; i < 8; i++)
      for (const bit of [1, 2, 4])
        if (!(i & bit))
          worldLine(context, [corner(i), corner(i | bit)], false);
  });
}

function drawPath(context) {
  if (path.keys.length === 0)
    return;
  const values = pathValues(), segments = path.loop && values.length > 1 ? values.length : values.length - 1;
  const line = [];
  for (let i = 0; i <= segments * 24; i++)
    line.push(splineAt(values, path.loop, i / 24).slice(0, 3));
  haloed(context, LINES.path, 2, () => worldLine(context, line, false));
  values.forEach((value, i) => {
    const [x, y, z] = project(camera, value, stage);
    if (z < camera.distance * 1e-3 || length(subtract(value, camera.position)) < scene.distance * 0.01)
      return;
    context.beginPath();
    context.arc(x, y, 8, 0, 7);
    context.fillStyle = LINES.path;
    context.fill();
    context.strokeStyle = context.fillStyle = '#fff';
    context.lineWidth = 1.5;
    context.stroke();
    context.font = '600 10px system-ui, sans-serif';
    context.textAlign = 'center';
    context.fillText(i + 1, x, y + 3.5);
    context.textAlign = 'start';
  });
}

// Returns the largest rectangle of the given aspect ratio in the free area: x, y, width, height.
function guide(aspect) {
  const w = Math.min(free.W, free.H * aspect), h = w / aspect;
  return [stage.x - w / 2, stage.y - h / 2, w, h];
}

function drawGuide(context, [x, y, w, h]) {
  context.fillStyle = 'rgba(20,24,30,.28)';
  context.beginPath();
  context.rect(0, 0, stage.W, stage.H);
  context.rect(x, y, w, h);
  context.fill('evenodd');
  context.strokeStyle = 'rgba(255,255,255,.8)';
  context.lineWidth = 1;
  context.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
}

function drawAxes(context) {
  const x0 = 38, y0 = stage.H - (isNarrow() && settings.panel ? 46 : 74) - (scene.dynamic && isNarrow() ? 50 : 0), size = 18;
  const axes = [0, 1, 2].map((i) => ({
    name: 'XYZ'[i], color: ['#d5493f', '#3f9b4b', '#3b78d8'][i],
    x: camera.axes[0][i], y: -camera.axes[1][i], z: camera.axes[2][i],
  })).sort((a, b) => a.z - b.z);
  for (const axis of axes) {
    const x = x0 + axis.x * size, y = y0 + axis.y * size;
    haloed(context, axis.color, 2, () => {
      context.beginPath();
      context.moveTo(x0, y0);
      context.lineTo(x, y);
      context.stroke();
    });
    context.beginPath();
    context.arc(x, y, 7, 0, 7);
    context.fillStyle = axis.color;
    context.fill();
    context.font = '600 9px system-ui, sans-serif';
    context.fillStyle = '#fff';
    context.textAlign = 'center';
    context.fillText(axis.name, x, y + 3.2);
    context.textAlign = 'start';
  }
}

function drawOverlay() {
  const context = fitCanvas($('overlay'), stage.W, stage.H);
  context.clearRect(0, 0, stage.W, stage.H);
  context.lineCap = context.lineJoin = 'round';
  frusta = [];
  if (!scene)
    return;
  showDivider();
  const editing = settings.panel === 'path';
  if (editing)
    drawGuide(context, guide(path.width / path.height));
  if (settings.cameras && !previewing())
    drawCameras(context);
  placePhotos();
  if (previewing())
    return;
  if (showsBox())
    drawBox(context);
  if (editing)
    drawPath(context);
  drawAxes(context);
}
