// The path panel: keyframes, duration and size, undo, saved paths, and the video.

const SIZES = [[1920, 1080], [1280, 720], [3840, 2160], [1080, 1920], [1080, 1080]]; // presets of a video
const MOST_UNDO = 100, GROUP_MS = 1000; // changes of a group within this time are undone together
const changes = { done: [], undone: [], now: '', group: '', at: 0 };
let savedPath = ''; // the content of the saved path with this name, as this page has saved or loaded it

const isSaved = () => JSON.stringify(pathFile()) === savedPath;

function keyButton(act, i, title, name) {
  const button = document.createElement('button');
  button.className = 'icon';
  button.title = title;
  button.dataset.act = act;
  button.setAttribute('aria-label', `${title}: keyframe ${i + 1}`);
  button.append(icon(name));
  return button;
}

const KEY_FIELDS = { fov: 'Field of view in degrees', time: 'Time of the scene' };

// Makes the field of a keyframe's number.
function keyField(name, key, i, unitText, low, high) {
  const label = document.createElement('label'), input = document.createElement('input');
  Object.assign(input, { type: 'number', min: low, max: high, step: 'any', value: +key[name].toFixed(name === 'fov' ? 1 : 3) });
  input.dataset.field = name;
  input.setAttribute('aria-label', `${KEY_FIELDS[name]}: keyframe ${i + 1}`);
  input.title = KEY_FIELDS[name];
  input.onchange = () => {
    if (input.value !== '' && input.checkValidity())
      key[name] = Number(input.value);
    pathChanged();
  };
  label.append(input, unitText);
  return label;
}

function keyRow(key, i) {
  const row = document.createElement('li'), go = document.createElement('button'), image = document.createElement('img');
  const text = document.createElement('span'), tools = document.createElement('span');
  row.dataset.i = i;
  go.className = 'key-go';
  go.dataset.act = 'go';
  go.title = 'Go to this keyframe';
  go.setAttribute('aria-label', `Go to keyframe ${i + 1}`);
  image.alt = '';
  if (key.thumb)
    image.src = key.thumb;
  text.textContent = `${i + 1}`;
  go.append(image, text);
  const more = document.createElement('span');
  more.className = 'key-more';
  more.append(keyField('fov', key, i, '°', LEAST_ANGLE, LARGEST_ANGLE));
  if (scene.dynamic)
    more.append(keyField('time', key, i, 't', 0, 1));
  tools.className = 'key-tools';
  tools.append(keyButton('up', i, 'Move earlier', 'up'), keyButton('down', i, 'Move later', 'down'),
    keyButton('update', i, 'Replace with the current view', 'update'), keyButton('delete', i, 'Delete', 'delete'));
  row.append(go, more, tools);
  tools.children[0].disabled = i === 0;
  tools.children[1].disabled = i === path.keys.length - 1;
  return row;
}

// ---- undo ----

const undoable = () => JSON.stringify({ ...path, name: undefined });

// Records a change, so that it can be undone. Changes of the same `group` in a row are one change; a drag begins a group.
function recordChange(group) {
  const now = undoable(), at = performance.now();
  if (now === changes.now)
    return;
  const joins = group && group === changes.group && (group === 'drag' || at - changes.at < GROUP_MS);
  if (changes.now && !joins)
    changes.done.push(changes.now);
  changes.done.splice(0, changes.done.length - MOST_UNDO);
  changes.undone = [];
  Object.assign(changes, { now, group, at });
}

function stepHistory(from, to) {
  if (from.length === 0)
    return;
  to.push(changes.now);
  changes.now = from.pop();
  changes.group = '';
  Object.assign(path, JSON.parse(changes.now));
  selectKey(Math.min(selectedKey, path.keys.length - 1));
  pathChanged();
}

const undo = () => stepHistory(changes.done, changes.undone);
const redo = () => stepHistory(changes.undone, changes.done);

function historyKey(event) {
  const key = event.key.toLowerCase(), isRedo = key === 'y' || (key === 'z' && event.shiftKey);
  if (!(event.ctrlKey || event.metaKey) || !['z', 'y'].includes(key) || settings.panel !== 'path' ||
      document.querySelector('dialog[open]') || event.target.closest('input:not([type=range], [type=checkbox])'))
    return;
  event.preventDefault();
  (isRedo ? redo : undo)();
}

// ---- changes ----

// Updates the list, the fields, the draft and the curve in the picture after every change.
function pathChanged(group) {
  recordChange(group);
  if (group !== 'drag') // the list would lose its focus, and its numbers do not change
    $('keys').replaceChildren(...path.keys.map(keyRow));
  selectKey(selectedKey < path.keys.length ? selectedKey : -1);
  $('keys-hint').hidden = path.keys.length > 0;
  $('path-scrub-row').hidden = path.keys.length < 2;
  for (const name of ['seconds', 'fps', 'width', 'height', 'name'])
    if (document.activeElement !== $('path-' + name))
      $('path-' + name).value = typeof path[name] === 'number' ? +path[name].toFixed(3) : path[name];
  $('path-size').value = `${path.width}x${path.height}`;
  if ($('path-size').selectedIndex < 0)
    $('path-size').value = '';
  $('path-loop').checked = path.loop;
  $('path-saved').hidden = !isSaved() || !$('path-command').textContent;
  for (const id of ['path-save', 'path-download', 'path-clear', 'path-play', 'path-video'])
    $(id).disabled = path.keys.length === 0 || (id === 'path-video' && running());
  $('path-video').dataset.off = path.keys.length === 0 ? '1' : '0';
  $('path-undo').disabled = changes.done.length === 0;
  $('path-redo').disabled = changes.undone.length === 0;
  const frames = frameCount();
  $('path-summary').textContent = path.keys.length > 0 ? `${frames} frame${frames === 1 ? '' : 's'}` : '';
  keepDraft();
  emit('overlay');
}

function addKey() {
  path.keys.push(keyframeOfView());
  pathChanged();
  showPanel('path', true);
  $('keys').lastChild.scrollIntoView({ block: 'nearest' });
  notice(`Keyframe ${path.keys.length}`, 1500);
}

function keyAction(event) {
  const button = event.target.closest('button'), row = event.target.closest('li');
  if (!button || !row)
    return;
  const i = Number(row.dataset.i), act = button.dataset.act, to = act === 'up' ? i - 1 : i + 1;
  if (act === 'go') {
    const key = path.keys[i];
    selectKey(i);
    if (scene.dynamic)
      setTime(key.time);
    return flyTo(cameraOfKey(key));
  }
  if (act === 'delete')
    path.keys.splice(i, 1);
  else if (act === 'update')
    path.keys[i] = keyframeOfView();
  else
    path.keys.splice(to, 0, path.keys.splice(i, 1)[0]);
  pathChanged();
  // Keeps the focus on the changed keyframe, or on the next one after a deletion.
  const focus = act === 'up' || act === 'down' ? to : Math.min(i, path.keys.length - 1);
  const next = $('keys').children[focus];
  if (next)
    (next.querySelector(`[data-act="${act}"]:not(:disabled)`) || next.querySelector('.key-go')).focus();
  else
    $('key-add').focus();
}

// ---- saved paths ----

// Saves the path; asks before it overwrites another one. Returns whether it is saved.
async function savePath() {
  const file = pathFile();
  try {
    const answer = await postAsking('/api/path', { name: path.name, path: file }, `the saved path “${path.name}”`);
    if (!answer)
      return false;
    savedPath = JSON.stringify(file);
    $('path-command').textContent = answer.command;
    $('path-saved').hidden = false;
    notice(`Saved as ${answer.file}`, 4000);
    listSaved();
    return true;
  } catch (error) {
    notice(`Not saved: ${error.message}`, 8000);
    return false;
  }
}

function savedRow(name) {
  const row = document.createElement('li'), open = document.createElement('button');
  open.textContent = name;
  open.dataset.act = 'open';
  open.title = 'Load this path';
  const remove = keyButton('delete', 0, 'Delete', 'delete');
  remove.setAttribute('aria-label', `Delete the saved path ${name}`);
  row.dataset.name = name;
  row.append(open, remove);
  return row;
}

// Lists the saved paths of the run; runs without a folder have none.
async function listSaved() {
  const { paths } = await getJson('/api/path').catch(() => ({ paths: [] }));
  $('path-list').replaceChildren(...paths.sort((a, b) => a.localeCompare(b)).map(savedRow));
  $('path-list-title').hidden = paths.length === 0;
}

function usePath(read, name) {
  Object.assign(path, read);
  path.name = name || path.name;
  selectedKey = -1;
  pathChanged();
  flyTo(cameraOfKey(path.keys[0]));
}

async function savedAction(event) {
  const button = event.target.closest('button'), row = event.target.closest('li');
  if (!button || !row)
    return;
  const { name } = row.dataset;
  try {
    if (button.dataset.act === 'open') {
      const answer = await getJson('/api/path', { name });
      $('path-command').textContent = '';
      usePath(answer.path ? readPathFile(answer.path) : pathOfCameras(answer), name);
      savedPath = answer.path ? JSON.stringify(pathFile()) : '';
    } else if (await ask(`Delete the saved path “${name}”?`, 'Its file is removed from the run.', 'Delete')) {
      await postJson('/api/path', { name, delete: true });
      savedPath = name === path.name ? '' : savedPath;
      pathChanged();
      await listSaved();
    }
  } catch (error) {
    notice(`${name}: ${error.message}`, 8000);
  }
}

async function loadPath(event) {
  const [file] = event.target.files;
  event.target.value = '';
  if (!file)
    return;
  try {
    const json = JSON.parse(await file.text()), isOwn = json && json.keyframes && !(json.keyframes[0] || {}).matrix;
    const read = isOwn && !json.camera_path ? readPathFile(json) :
      pathOfCameras(await postJson('/api/path', { convert: true, path: json }));
    usePath(read, file.name.replace(/\.json$/i, '').replace(/[\\/:*?"<>|]/g, '_').slice(0, 60));
  } catch (error) {
    notice(`${file.name}: ${error.message}`, 8000);
  }
}

// ---- the video ----

// Saves the path if it has changed, and renders it with the background, the exposure and the crop box of the view.
async function renderVideo() {
  const body = {
    start: 'video', name: path.name, format: $('video-format').value, map: $('video-map').value,
    supersample: Number($('video-rays').value), background: settings.background, exposure: settings.exposure,
  };
  if (settings.cropOn)
    body.crop = cropNumbers();
  if (!$('path-form').reportValidity())
    return;
  if (!isSaved() && !await savePath())
    return;
  await startTask(body);
}

async function clearPath() {
  const count = path.keys.length;
  if (!await ask('Clear the path?', `Its ${count} keyframe${count === 1 ? '' : 's'} can be brought back by Undo.`, 'Clear'))
    return;
  path.keys = [];
  pathChanged();
}

// Stores a field's value if it is valid, else marks the field as wrong.
function pathField(name, isInteger) {
  $('path-' + name).oninput = (event) => {
    const value = Number(event.target.value);
    if (!event.target.checkValidity() || !(value > 0))
      return event.target.classList.add('wrong');
    event.target.classList.remove('wrong');
    path[name] = isInteger ? Math.round(value) : value;
    pathChanged(name);
  };
}

function startPath() {
  $('path-size').append(new Option('other', ''), ...SIZES.map(([w, h]) => new Option(`${w} × ${h}`, `${w}x${h}`)));
  if (!SIZES.some(([w, h]) => w === scene.width && h === scene.height))
    $('path-size').append(new Option(`${scene.width} × ${scene.height}, as the photographs`, `${scene.width}x${scene.height}`));
  $('video-map').append(...scene.maps.map((map) => new Option(MAPS[map].toLowerCase(), map)));
  startGizmo();
  readDraft();
  for (const name of ['seconds', 'fps'])
    pathField(name, false);
  for (const name of ['width', 'height'])
    pathField(name, true);
  $('path-loop').onchange = (event) => {
    path.loop = event.target.checked;
    pathChanged();
  };
  $('path-size').onchange = (event) => {
    if (event.target.value)
      [path.width, path.height] = event.target.value.split('x').map(Number);
    pathChanged();
  };
  $('path-name').oninput = (event) => {
    if (event.target.checkValidity())
      path.name = event.target.value;
    savedPath = ''; // another name is another file
    $('path-saved').hidden = true;
    keepDraft();
  };
  $('key-add').onclick = addKey;
  $('keys').onclick = keyAction;
  $('path-play').onclick = playPath;
  $('path-scrub').oninput = (event) => {
    preview = { at: true };
    showPlaying();
    showPathAt(Number(event.target.value));
  };
  $('path-scrub').onchange = stopPreview;
  $('keys').addEventListener('focusin', (event) => {
    const row = event.target.closest('li');
    if (row)
      selectKey(Number(row.dataset.i));
  });
  $('path-form').onsubmit = (event) => {
    event.preventDefault();
    savePath();
  };
  $('path-undo').onclick = undo;
  $('path-redo').onclick = redo;
  addEventListener('keydown', historyKey);
  $('path-list').onclick = savedAction;
  $('path-video').onclick = renderVideo;
  $('path-copy').onclick = () => copyCommand('path-command');
  $('path-download').onclick = () => download(`${path.name}.json`,
    new Blob([JSON.stringify(pathFile(), null, 2) + '\n'], { type: 'application/json' }));
  $('path-load').onclick = () => $('path-file').click();
  $('path-file').onchange = loadPath;
  $('path-clear').onclick = clearPath;
  pathChanged();
  listSaved();
}
