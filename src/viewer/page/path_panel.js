// The path panel: keyframes, duration and size, saving and loading.

function keyButton(act, i, title, name) {
  const button = document.createElement('button');
  button.className = 'icon';
  button.title = title;
  button.dataset.act = act;
  button.setAttribute('aria-label', `${title}: keyframe ${i + 1}`);
  button.append(icon(name));
  return button;
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
  more.textContent = `${key.fov.toFixed(0)}°` + (scene.dynamic ? ` · t ${key.time.toFixed(2)}` : '');
  tools.className = 'key-tools';
  tools.append(keyButton('up', i, 'Move earlier', 'up'), keyButton('down', i, 'Move later', 'down'),
    keyButton('update', i, 'Replace with the current view', 'update'), keyButton('delete', i, 'Delete', 'delete'));
  row.append(go, more, tools);
  tools.children[0].disabled = i === 0;
  tools.children[1].disabled = i === path.keys.length - 1;
  return row;
}

// Updates the list, the fields, the draft and the curve in the picture after every change.
function pathChanged() {
  $('keys').replaceChildren(...path.keys.map(keyRow));
  $('keys-hint').hidden = path.keys.length > 0;
  $('path-scrub-row').hidden = path.keys.length < 2;
  $('path-saved').hidden = true;
  for (const name of ['seconds', 'fps', 'width', 'height', 'name'])
    if (document.activeElement !== $('path-' + name))
      $('path-' + name).value = typeof path[name] === 'number' ? +path[name].toFixed(3) : path[name];
  $('path-loop').checked = path.loop;
  for (const id of ['path-save', 'path-download', 'path-clear', 'path-play'])
    $(id).disabled = path.keys.length === 0;
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

async function savePath(event) {
  event.preventDefault();
  try {
    const answer = await postJson('/api/path', { name: path.name, path: pathFile() });
    $('path-command').textContent = answer.command;
    $('path-saved').hidden = false;
    $('path-saved').scrollIntoView({ block: 'nearest' });
    notice(`Saved as ${answer.file}`, 4000);
  } catch (error) {
    notice(`Not saved: ${error.message}`, 8000);
  }
}

async function loadPath(event) {
  const [file] = event.target.files;
  event.target.value = '';
  if (!file)
    return;
  try {
    Object.assign(path, readPathFile(JSON.parse(await file.text())));
    const name = file.name.replace(/\.json$/i, '').replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64);
    path.name = name || path.name;
    pathChanged();
    flyTo(cameraOfKey(path.keys[0]));
  } catch (error) {
    notice(`${file.name}: ${error.message}`, 8000);
  }
}

// Stores a field's value if it is valid, else marks the field as wrong.
function pathField(name, isInteger) {
  $('path-' + name).oninput = (event) => {
    const value = Number(event.target.value);
    if (!event.target.checkValidity() || !(value > 0))
      return event.target.classList.add('wrong');
    event.target.classList.remove('wrong');
    path[name] = isInteger ? Math.round(value) : value;
    pathChanged();
  };
}

function startPath() {
  path.width = scene.width;
  path.height = scene.height;
  readDraft();
  for (const name of ['seconds', 'fps'])
    pathField(name, false);
  for (const name of ['width', 'height'])
    pathField(name, true);
  $('path-loop').onchange = (event) => {
    path.loop = event.target.checked;
    pathChanged();
  };
  $('path-name').oninput = (event) => {
    if (event.target.checkValidity())
      path.name = event.target.value;
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
  $('path-form').onsubmit = savePath;
  $('path-copy').onclick = () => copyCommand('path-command');
  $('path-download').onclick = () => download(`${path.name}.json`,
    new Blob([JSON.stringify(pathFile(), null, 2) + '\n'], { type: 'application/json' }));
  $('path-load').onclick = () => $('path-file').click();
  $('path-file').onchange = loadPath;
  $('path-clear').onclick = () => {
    path.keys = [];
    pathChanged();
  };
  pathChanged();
}
