// The view panel: map, background, field of view, resolution, crop box, and the time of dynamic scenes.

const MAPS = { rgb: 'Colour', depth: 'Depth', normal: 'Normals', opacity: 'Opacity' };
let playStart = 0; // performance.now() at which the running playback was at time 0; 0: stopped
const timePlaying = () => playStart > 0;
let showMap, showBackground, showMode;

function setMap(map) {
  settings.map = map;
  showMap(document.querySelector(`#maps [data-map="${map}"]`));
  emit('picture');
}

function setBackground(background) {
  settings.background = background;
  showBackground($('background-' + background));
  emit('picture');
}

function setMode(mode) {
  settings.mode = mode;
  showMode($('mode-' + mode));
  $('picture').classList.toggle('fly', mode === 'fly');
}

function startMaps() {
  const buttons = scene.maps.filter((map) => MAPS[map]).map((map, i) => {
    const button = document.createElement('button');
    button.textContent = MAPS[map];
    button.dataset.map = map;
    button.title = `${MAPS[map]} (${i + 1})`;
    button.setAttribute('role', 'radio');
    return button;
  });
  $('maps').append(...buttons);
  showMap = choice(buttons, (button) => setMap(button.dataset.map));
}

// ---- crop box ----

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

// ---- time ----

function setTime(time) {
  settings.time = clamp(time, 0, 1);
  $('time').value = settings.time;
  $('time-value').textContent = settings.time.toFixed(2);
  emit('picture');
}

function playTime(run) {
  playStart = run ? performance.now() - settings.time * 4000 : 0;
  $('time-play').replaceChildren(icon(run ? 'pause' : 'play'));
  $('time-play').setAttribute('aria-label', run ? 'Stop the scene’s time' : 'Play the scene’s time');
  wake();
}

// Advances the time, 4 seconds from 0 to 1 in a loop; false when it is stopped.
function timeStep(now) {
  if (!playStart)
    return false;
  setTime((now - playStart) / 4000 % 1);
  return true;
}

function startTime() {
  $('timebar').hidden = !scene.dynamic;
  document.body.classList.toggle('dynamic', scene.dynamic);
  $('time').oninput = (event) => {
    playTime(false);
    setTime(Number(event.target.value));
  };
  $('time-play').onclick = () => playTime(!playStart);
}

// ---- the panel ----

// Updates the panel after settings were changed elsewhere.
function showSettings() {
  setMap(settings.map);
  setBackground(settings.background);
  setTime(settings.time);
  showCrop();
}

function showFov() {
  $('fov').value = camera.fov;
  $('fov-value').textContent = `${camera.fov.toFixed(camera.fov < 20 ? 1 : 0)}°`;
}

function startView() {
  const radios = (...ids) => ids.map($);
  showBackground = choice(radios('background-white', 'background-black'),
    (button) => setBackground(button.id.replace('background-', '')));
  showMode = choice(radios('mode-orbit', 'mode-fly'), (button) => setMode(button.id.replace('mode-', '')));
  $('fov').oninput = (event) => {
    camera.fov = Number(event.target.value);
    moved();
  };
  $('resolution').onchange = (event) => {
    settings.resolution = Number(event.target.value);
    emit('picture');
  };
  startMaps();
  startCrop();
  startTime();
  setMode('orbit');
  showSettings();
  on('camera', showFov);
}
