// Panels, shortcuts, the drawing loop, and the start of the page.

// ---- panels ----

function showPanel(name, open) {
  if (!open && settings.panel === null)
    return; // without `open`, only replaces an open panel
  settings.panel = name;
  for (const button of document.querySelectorAll('#rail button'))
    button.setAttribute('aria-expanded', button.dataset.panel === name);
  for (const section of document.querySelectorAll('#panels section'))
    section.hidden = section.id !== 'panel-' + name;
  document.body.classList.toggle('open', name !== null);
  try {
    sessionStorage.setItem('vknerf panel', name || '');
  } catch { /* not allowed */ }
  emit('panel');
  layoutChanged();
}

function layoutChanged() {
  const before = JSON.stringify(stage);
  measure();
  emit(JSON.stringify(stage) === before ? 'overlay' : 'picture');
}

const togglePanel = (name) => showPanel(settings.panel === name ? null : name, true);

function startPanels() {
  for (const button of document.querySelectorAll('#rail button'))
    button.onclick = () => togglePanel(button.dataset.panel);
  $('home').onclick = goHome;
  $('save-picture').onclick = saveShownPicture;
  $('copy-view').onclick = copyView;
  $('open-help').onclick = () => $('help').showModal();
  $('help').onclick = (event) => {
    if (event.target === $('help'))
      $('help').close(); // a click outside the dialog's content
  };
  let last = null;
  try {
    last = sessionStorage.getItem('vknerf panel');
  } catch { /* not allowed */ }
  const first = innerWidth > 900 ? 'training' : null;
  showPanel(last === null ? first : last || null, true);
}

// ---- actions of buttons and keys ----

function goHome() {
  stopPreview();
  flyTo(firstView());
}

function saveShownPicture() {
  const name = scene.run.split('/').filter(Boolean).pop() || 'vknerf';
  savePicture(`${name}_${settings.map}_${shown ? shown.bitmap.width : 0}x${shown ? shown.bitmap.height : 0}.png`);
}

async function copyView() {
  history.replaceState(null, '', viewAddress());
  notice(await copy(location.href) ? 'Copied the address of this view' : 'Not copied: the address bar has the link to this view', 3000);
}

function shortcut(key, event) {
  const map = scene.maps[Number(key) - 1];
  const actions = {
    h: goHome, f: () => setMode(settings.mode === 'fly' ? 'orbit' : 'fly'),
    b: () => setBackground(backgrounds()[(backgrounds().indexOf(settings.background) + 1) % backgrounds().length]),
    c: () => setCameras(!settings.cameras), x: () => toggleCrop(!settings.cropOn),
    ',': () => stepCamera(-1), '.': () => stepCamera(1), k: addKey, p: playPath,
    ' ': () => scene.dynamic && playTime(!playStart), i: saveShownPicture, l: copyView, v: () => togglePanel('view'),
    t: () => togglePanel('training'), '?': () => $('help').showModal(), escape: () => showPanel(null, true),
    '+': () => zoom(0.9, stage.x, stage.y), '=': () => zoom(0.9, stage.x, stage.y),
    '-': () => zoom(1 / 0.9, stage.x, stage.y),
  };
  const action = map ? () => setMap(map) : actions[key];
  if (!action)
    return;
  event.preventDefault();
  action();
}

// ---- drawing: only while something changes ----

let awake = false, lastTick = 0;
function wake() {
  if (awake)
    return;
  awake = true;
  requestAnimationFrame(tick);
}

function tick(now) {
  const dt = clamp((now - lastTick) / 1000, 0, 0.1);
  lastTick = now;
  awake = false;
  const moving = [keysStep(dt), flightStep(now), previewStep(now), timeStep(now)].some(Boolean);
  drawPicture();
  drawOverlay();
  placeHandles();
  placeBlend();
  if (moving)
    wake();
  else
    lastTick = now + 1e9; // makes dt 0 in the first frame after a pause
}

function showRefined(share) {
  const bar = $('progress');
  bar.style.setProperty('--done', share);
  bar.classList.toggle('done', share >= 1);
  bar.setAttribute('aria-valuenow', Math.round(100 * share));
}

function showFrame({ width, height, step, ms }) {
  $('readout').textContent = `${width} × ${height} · ${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms` +
    (training ? ` · step ${step.toLocaleString('en')}` : '');
  $('start').hidden = true;
}

function themeChanged() {
  readColors();
  wake();
}

// ---- start ----

// Shows what the program does until there is a first picture.
function showStart({ activity, activity_done: done, activity_total: total }) {
  $('start-progress').hidden = false;
  $('start-text').textContent = sentence(activity || 'rendering the first picture');
  if (activity && total > 0) {
    $('start-progress').max = total;
    $('start-progress').value = done;
  } else {
    $('start-progress').removeAttribute('value');
  }
}

// Waits until the program has opened the run; a training that fails before that ends the program.
async function readScene() {
  for (;;) {
    try {
      const answer = await getJson('/api/state');
      showStart(answer);
      if (answer.state !== 'opening')
        return await getJson('/api/scene');
      if (answer.end) {
        cover('The program has ended', answer.end);
        throw new Error(answer.end);
      }
    } catch (error) {
      if (error.status === 403)
        showError(error);
      if (error.status === 403 || !$('cover').hidden)
        throw error;
      $('start-progress').hidden = true;
      $('start-text').textContent = error.status ? sentence(error.message) : 'The program does not answer; trying again';
    }
    await sleep(400);
  }
}

async function begin() {
  readColors();
  scene = await readScene();
  settings.background = scene.background;
  settings.crop = firstBox();
  measure();
  setCamera(firstView());
  const hasView = readAddress();
  const name = scene.run.split('/').filter(Boolean).pop() || scene.run;
  $('run-name').textContent = name;
  $('run-name').title = scene.run;
  document.title = `${name} – vknerf`;
  on('camera', () => { pictureChanged(); keepAddress(); wake(); });
  on('picture', () => { pictureChanged(); keepAddress(); wake(); });
  on('overlay', wake);
  on('frame', showFrame);
  on('refined', showRefined);
  startView();
  startCameras();
  startPath();
  startExports();
  startTasks();
  startSurface();
  startPanels();
  startTraining();
  listenForInput();
  document.body.classList.remove('starting');
  setCamera(hasView ? camera : firstView()); // again: the open panel has changed the layout
  dark.addEventListener('change', themeChanged);
  addEventListener('resize', layoutChanged);
  new ResizeObserver(layoutChanged).observe($('panels'));
  addEventListener('hashchange', () => {
    readAddress();
    showSettings();
  });
  document.addEventListener('visibilitychange', () => { interruptPause(); frameLoop(); });
}

begin();
