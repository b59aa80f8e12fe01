// The view panel: map, background, field of view, resolution, and the time of dynamic scenes.

const MAPS = { rgb: 'Colour', depth: 'Depth', normal: 'Normals', opacity: 'Opacity' };
let playStart = 0; // performance.now() at which the running playback was at time 0; 0: stopped
const timePlaying = () => playStart > 0;
let showMap, showBackground, showMode;

function setMap(map) {
  settings.map = map;
  showDivider();
  showRange();
  showMap(document.querySelector(`#maps [data-map="${map}"]`));
  emit('picture');
}

// The default is the sky of runs that have one.
function backgrounds() {
  return scene.background === 'default' ? ['default', 'white', 'black'] : ['white', 'black'];
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
  showMaps();
  showPhotos();
  showCrop();
}

function showFov() {
  $('fov').value = camera.fov;
  $('fov-value').textContent = `${camera.fov.toFixed(camera.fov < 20 ? 1 : 0)}°`;
}

function startView() {
  const radios = (...ids) => ids.map($);
  $('background-default').hidden = !backgrounds().includes('default');
  showBackground = choice(radios(...backgrounds().map((name) => 'background-' + name)),
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
  startMapSettings();
  startCrop();
  startTime();
  setMode('orbit');
  showSettings();
  on('camera', showFov);
}
