// The crop box: its limits and rotation in the view panel, its handles in the picture, and the command that exports it.
// settings.crop has the low corner, the high corner, and the degrees by which the box is rotated about its centre.

// Returns the first crop box: the whole box of an object; of a room the part around the focus point, because the handles
// of the whole box are not in view.
const firstBox = () => [...scene.box.map((limit, i) => {
  const at = clamp(scene.look_at[i % 3], scene.box[i % 3], scene.box[i % 3 + 3]), reach = scene.distance / 2;
  return i < 3 ? Math.max(limit, at - reach) : Math.min(limit, at + reach);
}), 0, 0, 0];

const wholeBox = () => [...scene.box, 0, 0, 0];
const sceneSpan = (axis) => scene.box[axis + 3] - scene.box[axis];
const leastEdge = (axis) => sceneSpan(axis) * 1e-3;

function cropChanged() {
  settings.cropOn = true;
  showCrop();
  emit('picture');
}

// Sets a limit or, from the seventh number on, an angle.
function setCrop(i, value) {
  const low = i % 3, high = low + 3, crop = settings.crop;
  const within = i < 6 ? clamp(value, scene.box[low], scene.box[high]) : clamp(value, -180, 180);
  crop[i] = i < 3 ? Math.min(within, crop[high] - leastEdge(low)) :
    i < 6 ? Math.max(within, crop[low] + leastEdge(low)) : within;
  cropChanged();
}

// Formats a limit with enough digits for 1/10000 of the scene's edge, wherever the box lies, or an angle.
const limitText = (i) =>
  String(+settings.crop[i].toFixed(i < 6 ? clamp(Math.ceil(4 - Math.log10(sceneSpan(i % 3))), 0, 20) : 2));

// Returns the numbers of --crop and of requests for commands: without the angles if all are 0.
const cropNumbers = () => settings.crop.slice(0, settings.crop.slice(6).some(Boolean) ? 9 : 6);

function cropText() {
  const texts = settings.crop.map((_, i) => limitText(i));
  return texts.slice(0, texts.slice(6).some(Number) ? 9 : 6).join(',');
}

function showCrop() {
  $('crop-on').checked = settings.cropOn;
  $('crop-export').hidden = !settings.cropOn;
  $('crop-command').textContent =
    `vknerf export ${scene.run_word} --mesh object.ply --crop=${cropText()}`;
  $('crop-reset').disabled = wholeBox().every((x, i) => x === settings.crop[i]);
  for (const input of $('crop').querySelectorAll('input')) {
    const i = Number(input.dataset.i), shownValue = input.type === 'range' ? settings.crop[i] : limitText(i);
    if (document.activeElement !== input || input.type === 'range')
      input.value = shownValue;
  }
  for (const row of $('crop').querySelectorAll('[data-axis]')) {
    const axis = Number(row.dataset.axis), span = sceneSpan(axis);
    const share = (i) => clamp((settings.crop[i] - scene.box[axis]) / span, 0, 1); // a rotated box may reach further
    row.style.setProperty('--low', share(axis));
    row.style.setProperty('--high', share(axis + 3));
  }
}

function cropInput(type, i) {
  const input = document.createElement('input'), axis = i % 3, end = ['from', 'to', 'rotation'][Math.floor(i / 3)];
  Object.assign(input, { type, step: i < 6 ? 'any' : 1, className: end });
  if (type === 'range') // a number field's rounded value may exceed the limits
    Object.assign(input, i < 6 ? { min: scene.box[axis], max: scene.box[axis + 3] } : { min: -180, max: 180 });
  input.dataset.i = i;
  input.setAttribute('aria-label', `Crop ${'XYZ'[axis]} ${end}`);
  input[type === 'range' ? 'oninput' : 'onchange'] = () => {
    if (input.value !== '' && Number.isFinite(Number(input.value)))
      setCrop(i, Number(input.value));
    else
      showCrop(); // restores the previous value
  };
  return input;
}

function addCropRow(text, ...inputs) {
  const row = document.createElement('div'), name = document.createElement('span');
  row.className = 'crop-row';
  name.textContent = text;
  row.append(name, ...inputs);
  $('crop').append(row);
  return row;
}

function startCrop() {
  for (const axis of [0, 1, 2]) {
    const slider = document.createElement('div');
    slider.className = 'double';
    slider.append(cropInput('range', axis), cropInput('range', axis + 3));
    const row = addCropRow('XYZ'[axis], cropInput('number', axis), slider, cropInput('number', axis + 3));
    row.dataset.axis = axis;
  }
  for (const axis of [0, 1, 2]) {
    const row = addCropRow(`${'XYZ'[axis]}°`, cropInput('range', axis + 6), cropInput('number', axis + 6));
    row.title = `Rotation about ${'XYZ'[axis]} through the box's centre, in degrees`;
  }
  $('crop-copy').onclick = () => copyCommand('crop-command');
  startHandles();
  $('crop-on').onchange = (event) => toggleCrop(event.target.checked);
  $('crop-reset').onclick = () => {
    settings.crop = wholeBox();
    showCrop();
    emit('picture');
  };
}

function toggleCrop(crop) {
  settings.cropOn = crop;
  showCrop();
  emit('picture');
}

// ---- handles ----

// A handle is the middle of a face or a corner: for each axis -1 (low), 1 (high), or 0 (the middle).
let handles = []; // {element, sides}

// Returns the unit vectors along the box's edges: the axes, rotated about X, then Y, then Z.
const boxAxes = () => UNITS.map((axis) =>
  UNITS.reduce((v, about, i) => turned(v, about, radians(settings.crop[6 + i])), axis));

// Returns the box's point at a handle's sides.
function handleAt(sides) {
  const crop = settings.crop, center = [0, 1, 2].map((i) => mix(crop[i], crop[i + 3], 0.5));
  return boxAxes().reduce((at, axis, k) => add(at, axis, sides[k] * (crop[k + 3] - crop[k]) / 2), center);
}

// Moves a face by a distance along its axis, within the scene's box and above the opposite face, which stays.
function moveFace(k, side, distance) {
  const crop = settings.crop, axis = boxAxes()[k], edge = crop[k + 3] - crop[k];
  const middle = [0, 1, 2].map((i) => mix(scene.box[i], scene.box[i + 3], 0.5));
  const reach = axis.reduce((sum, x, i) => sum + Math.abs(x) * sceneSpan(i) / 2, 0);
  const outside = side * dot(subtract(handleAt(UNITS[k].map((x) => x * side)), middle), axis) - reach;
  const outwards = clamp(side * distance, leastEdge(k) - edge, Math.max(-outside, 0));
  for (const i of [0, 1, 2]) {
    const shift = side * axis[i] * outwards / 2, growth = i === k ? outwards / 2 : 0;
    crop[i] += shift - growth;
    crop[i + 3] += shift + growth;
  }
}

// Moves the faces at the handle to the point.
function moveHandle(sides, point) {
  const way = subtract(point, handleAt(sides));
  boxAxes().forEach((axis, k) => {
    if (sides[k])
      moveFace(k, sides[k], dot(way, axis));
  });
  cropChanged();
}

// Returns the point to which a pixel moves a handle: on the axis next to the pixel's ray or, without an axis, on the ray
// in the plane of the picture through the handle. Null where the ray is parallel to the axis or the plane.
function handlePoint(at, axis, x, y) {
  const ray = direction(camera, x, y, stage), from = subtract(at, camera.position);
  if (!axis) {
    const along = dot(from, camera.axes[2]) / dot(ray, camera.axes[2]);
    return along > 0 ? add(camera.position, ray, along) : null;
  }
  const cosine = dot(axis, ray), square = 1 - cosine * cosine;
  return square > 1e-4 ? add(at, axis, (cosine * dot(ray, from) - dot(axis, from)) / square) : null;
}

// Lets an element be dragged. `at` returns the handle's point, `axis` the axis that it moves along or null, `point` another
// point than handlePoint's for a pixel; `move` gets the new point and the present one.
function dragHandle(element, { at, axis, move, point: find = (x, y) => handlePoint(at(), axis(), x, y) }) {
  let grabbed = null; // from the pixel's point to the handle at the start of the drag
  element.addEventListener('pointerdown', (event) => {
    const point = find(event.clientX, event.clientY);
    element.setPointerCapture(event.pointerId);
    stopPreview();
    held.add('pointer');
    grabbed = point && subtract(at(), point);
  });
  element.addEventListener('pointermove', (event) => {
    const point = grabbed && find(event.clientX, event.clientY);
    if (point)
      move(add(point, grabbed), at());
  });
  const end = () => {
    grabbed = null;
    held.delete('pointer');
    emit('picture'); // in full size
  };
  element.addEventListener('pointerup', end);
  element.addEventListener('pointercancel', end);
  element.addEventListener('wheel', wheel, { passive: false });
}

// Arrow keys move a face by a hundredth of the scene's box, with shift by a tenth.
function keyHandle(event, sides) {
  const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
  if (!way)
    return;
  event.preventDefault();
  const step = way * (event.shiftKey ? 0.1 : 0.01), k = sides.findIndex(Boolean);
  moveHandle(sides, add(handleAt(sides), boxAxes()[k], step * sceneSpan(k)));
}

function addHandle(sides) {
  const element = document.createElement('div'), axis = sides.findIndex(Boolean);
  const isFace = sides.filter(Boolean).length === 1;
  element.className = isFace ? 'handle' : 'handle corner';
  if (isFace) {
    element.tabIndex = 0;
    element.setAttribute('role', 'slider');
    element.setAttribute('aria-label', `Face of the crop box, ${'XYZ'[axis]} ${sides[axis] < 0 ? 'from' : 'to'}`);
    element.setAttribute('aria-valuemin', scene.box[axis]);
    element.setAttribute('aria-valuemax', scene.box[axis + 3]);
    element.onkeydown = (event) => keyHandle(event, sides);
  }
  dragHandle(element, {
    at: () => handleAt(sides), axis: () => (isFace ? boxAxes()[axis] : null), move: (to) => moveHandle(sides, to),
  });
  $('handles').append(element);
  handles.push({ element, at: () => handleAt(sides), sides, axis });
}

function startHandles() {
  for (let i = 0; i < 27; i++) {
    const sides = [i % 3 - 1, Math.floor(i / 3) % 3 - 1, Math.floor(i / 9) - 1];
    if ([1, 3].includes(sides.filter(Boolean).length))
      addHandle(sides);
  }
  [0, 1, 2].forEach(addRing);
}

// ---- rings: rotate the box about the dataset's axes through its centre ----

const boxCenter = () => [0, 1, 2].map((i) => mix(settings.crop[i], settings.crop[i + 3], 0.5));
const ringRadius = () => 0.55 * Math.hypot(...[0, 1, 2].map((i) => settings.crop[i + 3] - settings.crop[i]));

// Returns the unit vector from the centre to the handle of the ring about an axis: it turns with the box.
function ringDirection(k) {
  const across = (v) => subtract(v, times(UNITS[k], v[k])), axes = boxAxes();
  const [a, b] = [1, 2].map((i) => across(axes[(k + i) % 3]));
  return unit(length(a) > 0.1 ? a : b);
}

const ringAt = (k) => add(boxCenter(), ringDirection(k), ringRadius());

// Sets the angles about X, then Y, then Z that make these axes of the box.
function setBoxAxes([x, y, z]) {
  const isLocked = Math.abs(x[2]) > 0.99999; // looks along Z: X and Z turn about the same axis
  const angles = [
    isLocked ? Math.atan2(-z[1], y[1]) : Math.atan2(y[2], z[2]), Math.asin(clamp(-x[2], -1, 1)),
    isLocked ? 0 : Math.atan2(x[1], x[0])];
  angles.forEach((angle, i) => { settings.crop[6 + i] = +degrees(angle).toFixed(3); });
  cropChanged();
}

const turnBox = (k, angle) => setBoxAxes(boxAxes().map((axis) => turned(axis, UNITS[k], angle)));

// Returns the point of the ring's plane at a pixel; null where the plane is seen from its edge.
function ringPoint(k, x, y) {
  const ray = direction(camera, x, y, stage), slope = ray[k];
  const along = (boxCenter()[k] - camera.position[k]) / slope;
  return Math.abs(slope) > 0.02 && along > 0 ? add(camera.position, ray, along) : null;
}

// Turns the box so that the ring's handle is in the direction of a point.
function turnTo(k, point) {
  const to = subtract(point, boxCenter()), from = ringDirection(k);
  turnBox(k, Math.atan2(dot(cross(from, to), UNITS[k]), dot(from, to)));
}

function addRing(k) {
  const element = document.createElement('div');
  element.className = 'handle ring';
  element.style.borderColor = AXIS_COLORS[k];
  element.tabIndex = 0;
  element.setAttribute('role', 'slider');
  element.setAttribute('aria-label', `Rotation of the crop box about ${'XYZ'[k]}`);
  element.setAttribute('aria-valuemin', -180);
  element.setAttribute('aria-valuemax', 180);
  element.onkeydown = (event) => {
    const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (!way)
      return;
    event.preventDefault();
    turnBox(k, radians(way * (event.shiftKey ? 10 : 1)));
  };
  dragHandle(element, { at: () => ringAt(k), axis: () => null, move: (to) => turnTo(k, to), point: (x, y) => ringPoint(k, x, y) });
  $('handles').append(element);
  handles.push({ element, at: () => ringAt(k), axis: k });
}

function drawRings(context) {
  const center = boxCenter(), radius = ringRadius();
  UNITS.forEach((axis, k) => {
    const u = UNITS[(k + 1) % 3], v = UNITS[(k + 2) % 3], steps = 72;
    const line = Array.from({ length: steps }, (_, i) =>
      add(add(center, u, radius * Math.cos(2 * Math.PI * i / steps)), v, radius * Math.sin(2 * Math.PI * i / steps)));
    context.globalAlpha = 0.55;
    haloed(context, AXIS_COLORS[k], 1, () => worldLine(context, line, true));
  });
  context.globalAlpha = 1;
}

// Places the handles over the picture, where the box is drawn.
function placeHandles() {
  const isShown = showsBox();
  $('handles').hidden = !isShown;
  for (const { element, at, sides, axis } of isShown ? handles : []) {
    const [x, y, z] = project(camera, at(), stage);
    element.hidden = z < camera.distance * 1e-3;
    element.style.transform = `translate(${x}px, ${y}px)`;
    element.setAttribute('aria-valuenow', !sides ? limitText(axis + 6) :
      clamp(limitText(sides[axis] < 0 ? axis : axis + 3), scene.box[axis], scene.box[axis + 3]));
  }
}
