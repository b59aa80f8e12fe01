// Commands that the program runs for the page, one at a time: videos and exports. Shows their progress and results.

const TASK_MS = 400;        // between polls of a running command
let task = { state: 'none' }, followed = false, closedTask = 0;
const taskEnded = [];       // called with each task that has ended, also by an error

const running = () => task.state === 'running';

function bytesText(size) {
  const power = size > 0 ? clamp(Math.floor(Math.log10(size) / 3), 0, 4) : 0;
  return power === 0 ? `${size} bytes` : `${(size / 1000 ** power).toFixed(1)} ${['', 'kB', 'MB', 'GB', 'TB'][power]}`;
}

const secondsText = (seconds) => (seconds < 10 ? `${seconds.toFixed(1)} s` : clock(seconds));

// Asks a question. Returns whether the user has answered it by the button `yes`.
function ask(title, text, yes) {
  $('ask-title').textContent = title;
  $('ask-text').textContent = text;
  $('ask-yes').textContent = yes;
  $('ask').returnValue = '';
  $('ask').showModal();
  return new Promise((answer) => {
    $('ask').onclose = () => answer($('ask').returnValue === 'yes');
  });
}

// Sends a request that is refused with status 409 if a file exists, then asks whether to overwrite the file. Returns the
// answer, or null if the user has not agreed.
async function postAsking(path, body, what) {
  try {
    return await postJson(path, body);
  } catch (error) {
    if (error.status !== 409 || !/exists$/.test(error.message))
      throw error;
    if (!await ask(`Overwrite ${what}?`, `${sentence(error.message)}.`, 'Overwrite'))
      return null;
    return postJson(path, { ...body, overwrite: true });
  }
}

// Starts a command and follows it. Returns whether it has started.
async function startTask(body) {
  try {
    const answer = await postAsking('/api/task', body, body.name);
    if (answer) {
      task = answer;
      followTask();
    }
    return Boolean(answer);
  } catch (error) {
    notice(`Not started: ${error.message}`, 8000);
    return false;
  }
}

async function followTask() {
  showTask();
  if (followed)
    return;
  followed = true;
  const wasRunning = running();
  while (running()) {
    await sleep(TASK_MS);
    try {
      task = await getJson('/api/task');
    } catch (error) {
      if (error.status === 403)
        break;
    }
    showTask();
  }
  followed = false;
  if (wasRunning && !running())
    taskEnded.forEach((call) => call(task));
}

function taskText() {
  const left = task.share > 0.02 ? task.seconds * (1 / task.share - 1) : NaN;
  const done = task.kind === 'video' ? 'rendered' : 'exported';
  return {
    running: `${sentence(task.what)}${task.share > 0 ? ` · ${Math.round(100 * task.share)} %` : ''}` +
      (left >= 0 ? ` · ${secondsText(left)} left` : ` · ${secondsText(task.seconds)}`),
    done: `${bytesText(task.size)}, ${done} in ${secondsText(task.seconds)}`,
    failed: sentence(task.message || task.what), cancelled: 'Cancelled',
  }[task.state];
}

function showTask() {
  const isShown = task.state !== 'none' && task.number !== closedTask, isDone = task.state === 'done';
  $('task').hidden = !isShown;
  for (const id of ['path-video', 'export-start'])
    $(id).disabled = running() || $(id).dataset.off === '1';
  if (!isShown)
    return;
  const name = task.name.split('/').pop();
  $('task-name').textContent = name;
  $('task-name').title = task.file;
  $('task-text').textContent = taskText();
  $('task-bar').hidden = !running();
  $('task-bar').value = task.share;
  $('task-cancel').hidden = !running();
  $('task-close').hidden = running();
  $('task-download').hidden = !isDone;
  $('task-play').hidden = !isDone || task.kind !== 'video';
  $('task-command').textContent = task.command;
  if (isDone) {
    $('task-download').href = address('/api/file', { name: task.name });
    $('task-download').download = name;
  }
}

// Plays a video, or shows an animated picture.
function playTask() {
  const isVideo = !task.name.endsWith('.gif'), source = address('/api/file', { name: task.name, number: task.number });
  $('player-title').textContent = task.name.split('/').pop();
  $('player-video').hidden = !isVideo;
  $('player-image').hidden = isVideo;
  (isVideo ? $('player-video') : $('player-image')).src = source;
  $('player').showModal();
}

// ---- results ----

function resultRow({ name, size }) {
  const row = document.createElement('li'), link = document.createElement('a'), bytes = document.createElement('small');
  link.href = address('/api/file', { name });
  link.download = link.textContent = name.split('/').pop();
  link.title = `Download ${name}`;
  bytes.textContent = bytesText(size);
  row.append(link, bytes);
  return row;
}

// Lists the videos and exports of the run and returns their names; runs without a folder have none.
async function listResults() {
  const { files } = await getJson('/api/file').catch(() => ({ files: [] }));
  files.sort((a, b) => a.name.localeCompare(b.name));
  $('results').replaceChildren(...files.map(resultRow));
  $('results-title').hidden = files.length === 0;
  return files.map(({ name }) => name);
}

function startTasks() {
  $('task-cancel').onclick = () => postJson('/api/task', { cancel: true }).catch(
    (error) => notice(`Not cancelled: ${error.message}`, 6000));
  $('task-close').onclick = () => {
    closedTask = task.number;
    showTask();
    $('picture').focus();
  };
  $('task-play').onclick = playTask;
  $('task-copy').onclick = () => copyCommand('task-command');
  $('player').onclose = () => $('player-video').pause();
  taskEnded.push(listResults);
  getJson('/api/task').then((answer) => {
    task = answer;
    closedTask = running() ? 0 : task.number || 0;
    followTask();
  }).catch(() => {});
}
