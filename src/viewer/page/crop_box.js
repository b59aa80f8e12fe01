// The crop box: its limits in the view panel, its handles in the picture, and the command that exports it.

// Returns the first crop box: the whole box of an object; of a room the part around the focus point, because the handles
// of the whole box are not in view.
const firstBox = () => scene.box.map((limit, i) => {
  const at = clamp(scene.look_at[i % 3], scene.box[i % 3], scene.box[i % 3 + 3]), reach = scene.distance / 2;
  return i < 3 ? Math.max(limit, at - reach) : Math.min(limit, at + reach);
});

const sameBox = () => settings.crop.every((x, i) => x === scene.box[i]);

function setCrop(i, value) {
  const low = i % 3, high = low + 3, crop = settings.crop, least = (scene.box[high] - scene.box[low]) * 1e-3;
  const within = clamp(value, scene.box[low], scene.box[high]);
  crop[i] = i < 3 ? Math.min(within, crop[high] - least) : Math.max(within, crop[low] + least);
  settings.cropOn = true;
  showCrop();
  emit('picture');
}

// Formats a limit with enough digits for 1/10000 of the box's edge, wherever the box lies.
function limitText(i) {
  const span = scene.box[i % 3 + 3] - scene.box[i % 3];
  return String(+settings.crop[i].toFixed(clamp(Math.ceil(4 - Math.log10(span)), 0, 20)));
}

function showCrop() {
  $('crop-on').checked = settings.cropOn;
  $('crop-export').hidden = !settings.cropOn;
  $('crop-command').textContent =
    `vknerf export ${scene.run_word} --mesh object.ply --crop=${settings.crop.map((_, i) => limitText(i)).join(',')}`;
  $('crop-reset').disabled = sameBox();
  for (const input of $('crop').querySelectorAll('input')) {
    const i = Number(input.dataset.i), shownValue = input.type === 'range' ? settings.crop[i] : limitText(i);
    if (document.activeElement !== input || input.type === 'range')
      input.value = shownValue;
  }
  for (const row of $('crop').children) {
    const axis = Number(row.dataset.axis), span = scene.box[axis + 3] - scene.box[axis];
    row.style.setProperty('--low', (settings.crop[axis] - scene.box[axis]) / span);
    row.style.setProperty('--high', (settings.crop[axis + 3] - scene.box[axis]) / span);
  }
}

function cropInput(type, i) {
  const input = document.createElement('input'), axis = i % 3, end = i < 3 ? 'from' : 'to';
  Object.assign(input, { type, step: 'any', className: end });
  if (type === 'range') // a number field's rounded value may exceed the limits
    Object.assign(input, { min: scene.box[axis], max: scene.box[axis + 3] });
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

function startCrop() {
  for (const axis of [0, 1, 2]) {
    const row = document.createElement('div'), name = document.createElement('span');
    const slider = document.createElement('div');
    row.dataset.axis = axis;
    row.className = 'crop-row';
    slider.className = 'double';
    name.textContent = 'XYZ'[axis];
    slider.append(cropInput('range', axis), cropInput('range', axis + 3));
    row.append(name, cropInput('number', axis), slider, cropInput('number', axis + 3));
    $('crop').append(row);
  }
  $('crop-copy').onclick = () => copyCommand('crop-command');
  startHandles();
  $('crop-on').onchange = (event) => toggleCrop(event.target.checked);
  $('crop-reset').onclick = () => {
    settings.crop = scene.box.slice();
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

const handleAt = (sides) => sides.map((side, i) =>
  mix(settings.crop[i], settings.crop[i + 3], (side + 1) / 2));

// Moves the limits at the handle to the point.
function moveHandle(sides, point) {
  sides.forEach((side, i) => {
    if (side)
      setCrop(side < 0 ? i : i + 3, point[i]);
  });
}

// Returns the point to which a pixel moves a handle: on the face's axis next to the pixel's ray, or on the ray in the
// plane of the picture through the corner. Null where the ray is parallel to the axis or the plane.
function handlePoint(sides, x, y) {
  const at = handleAt(sides), ray = direction(camera, x, y, stage), from = subtract(at, camera.position);
  const axis = sides.filter(Boolean).length > 1 ? null : sides.map(Math.abs);
  if (!axis) {
    const along = dot(from, camera.axes[2]) / dot(ray, camera.axes[2]);
    return along > 0 ? add(camera.position, ray, along) : null;
  }
  const cosine = dot(axis, ray), square = 1 - cosine * cosine;
  return square > 1e-4 ? add(at, axis, (cosine * dot(ray, from) - dot(axis, from)) / square) : null;
}

function dragHandle(element, sides) {
  let grabbed = null; // from the pixel's point to the handle at the start of the drag
  element.addEventListener('pointerdown', (event) => {
    const point = handlePoint(sides, event.clientX, event.clientY);
    element.setPointerCapture(event.pointerId);
    stopPreview();
    held.add('pointer');
    grabbed = point && subtract(handleAt(sides), point);
  });
  element.addEventListener('pointermove', (event) => {
    const point = grabbed && handlePoint(sides, event.clientX, event.clientY);
    if (point)
      moveHandle(sides, add(point, grabbed));
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

// Arrow keys move a face by a hundredth of the whole box, with shift by a tenth.
function keyHandle(event, sides) {
  const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
  if (!way)
    return;
  event.preventDefault();
  const step = way * (event.shiftKey ? 0.1 : 0.01);
  moveHandle(sides, handleAt(sides).map((x, i) => x + step * (scene.box[i + 3] - scene.box[i])));
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
  dragHandle(element, sides);
  $('handles').append(element);
  handles.push({ element, sides, axis });
}

function startHandles() {
  for (let i = 0; i < 27; i++) {
    const sides = [i % 3 - 1, Math.floor(i / 3) % 3 - 1, Math.floor(i / 9) - 1];
    if ([1, 3].includes(sides.filter(Boolean).length))
      addHandle(sides);
  }
}

// Places the handles over the picture, where the box is drawn.
function placeHandles() {
  const isShown = showsBox();
  $('handles').hidden = !isShown;
  for (const { element, sides, axis } of isShown ? handles : []) {
    const [x, y, z] = project(camera, handleAt(sides), stage);
    element.hidden = z < camera.distance * 1e-3;
    element.style.transform = `translate(${x}px, ${y}px)`;
    element.setAttribute('aria-valuenow', limitText(sides[axis] < 0 ? axis : axis + 3));
  }
}
