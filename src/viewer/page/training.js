// The training panel: polls the state once a second, shows figures and curves; pause, save and stop.

const MOST_METRICS = 20000; // most log lines in one answer, as in state.c
let state = null, metrics = [], evaluations = [], nextMetric = 0, missedPolls = 0, lastMessage = '';
let lastViews = '', sharing = false, ending = false;
let curves;

function clock(seconds) {
  const s = Math.round(seconds), two = (x) => String(x).padStart(2, '0');
  return s < 3600 ? `${Math.floor(s / 60)}:${two(s % 60)}` :
    `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
}

const formatted = (x, text) => (typeof x === 'number' && Number.isFinite(x) ? text(x) : '–');

const showNumber = (id, x, text) => { $(id).textContent = formatted(x, text); };
const power = (x) => (x >= 1e-2 && x < 1e5 ? String(+x.toPrecision(3)) : x.toExponential(1));

function showState() {
  const live = ['training', 'paused', 'saving'].includes(state.state), can = state.can || {};
  const stepText = formatted(state.step, (x) => x.toLocaleString('en'));
  $('run-state').textContent = state.state;
  $('run-step').textContent = `step ${stepText}`;
  $('dot').className = state.state;
  $('training-state').textContent = state.state === 'viewing' ? 'recorded run' : state.state;
  $('t-step').textContent = stepText;
  showNumber('t-time', state.seconds, clock);
  showNumber('t-eta', state.eta, clock);
  showNumber('t-rate', state.steps_per_second || null, (x) => x.toFixed(x < 10 ? 2 : 1));
  showNumber('t-psnr', state.psnr, (x) => x.toFixed(2));
  showNumber('t-loss', state.loss, (x) => x.toExponential(1));
  showNumber('t-learning-rate', state.learning_rate, power);
  showNumber('t-loss-scale', state.loss_scale, power);
  showNumber('t-share', state.share, (x) => `${(100 * x).toFixed(1)} %`);
  for (const element of document.querySelectorAll('.live'))
    element.hidden = !live;
  $('controls').hidden = !live && !can.end;
  $('pause').textContent = state.state === 'paused' ? 'Resume' : 'Pause';
  $('pause').disabled = !can.pause;
  $('pause').title = can.pause ? '' : 'A training with several ranks cannot be paused: the other ranks would wait';
  $('end').hidden = !can.end;
  for (const id of ['save', 'stop', 'end'])
    $(id).disabled = false; // after a lost connection
  showShare();
  if (state.message && state.message !== lastMessage)
    notice(state.message, 8000);
  lastMessage = state.message;
}

function showShare() {
  if (sharing)
    return; // the slider is being dragged
  $('share').value = Math.round(100 * state.share_limit);
  $('share-value').textContent = `${$('share').value} %`;
}

// Shows the result of a training that has ended, with the command to copy.
function showResult() {
  const text = state.end + (state.end_ssim === null ? '' : `, SSIM ${state.end_ssim.toFixed(4)}`);
  $('result').hidden = !state.end;
  $('result-text').textContent = text;
  $('result-command').textContent = state.command;
  $('result-command').hidden = $('result-copy').hidden = !state.command;
}

// Returns a button that goes to a held-out view, with the view's PSNR.
function errorButton([name, psnr], low, high) {
  const [, split, index] = /^([a-z]+)_(\d+)$/.exec(name) || [];
  const view = scene.views.find((other) => other.split === split && other.index === Number(index));
  const button = document.createElement('button'), bar = document.createElement('i');
  const label = document.createElement('span'), value = document.createElement('b');
  label.textContent = view ? `${view.name} · ${split}` : name;
  value.textContent = psnr.toFixed(2);
  bar.style.width = `${100 * (psnr - low + 1) / (high - low + 1)}%`; // to compare views: the lowest has a short bar
  button.title = view ? 'Go to this camera' : 'The scene is not there';
  button.disabled = !view;
  button.onclick = () => pickCamera(view);
  button.append(bar, label, value);
  return button;
}

function showErrors() {
  const text = JSON.stringify(state.views);
  $('errors').hidden = state.views.length === 0;
  if (text === lastViews)
    return; // keeps the focus
  lastViews = text;
  const views = state.views.slice().sort((a, b) => a[1] - b[1]), [low, high] = [views[0], views.at(-1)].map((view) => view?.[1]);
  $('error-list').replaceChildren(...views.map((view) => {
    const item = document.createElement('li');
    item.append(errorButton(view, low, high));
    return item;
  }));
}

function showCurves() {
  if (settings.panel !== 'training')
    return;
  const x = metrics.map((m) => m[0]), seconds = metrics.map((m) => m[1] ?? NaN);
  const logged = (name, css, column) => ({ name, css, x, seconds, y: metrics.map((m) => m[column] ?? NaN) });
  curves.psnr.set([logged('training rays', 'c1', 3),
    { name: 'held-out views', css: 'c2', dots: true, x: evaluations.map((e) => e[0]), y: evaluations.map((e) => e[1] ?? NaN) }]);
  curves.loss.set([logged('colours', 'c3', 2), logged('distortion', 'c2', 4), logged('interlevel', 'c1', 5),
    logged('coarse field', 'mark', 6)]);
}

// Polls the state once, and again while more log lines remain.
async function pollState() {
  const answer = await getJson('/api/state', { from: nextMetric });
  const more = answer.next - nextMetric >= MOST_METRICS;
  if (answer.next < nextMetric)
    metrics = []; // another run in this folder: the answer starts from its first line
  metrics.push(...answer.metrics);
  nextMetric = answer.next;
  evaluations = answer.evaluations;
  const wasBusy = programBusy;
  state = answer;
  training = state.state === 'training' || state.state === 'saving';
  programBusy = state.busy;
  modelStep = state.step;
  showState();
  showResult();
  showErrors();
  showCurves();
  if (!$('start').hidden)
    showStart(state);
  else if (programBusy)
    notice(sentence(state.activity));
  else if (wasBusy)
    notice(state.stays && settings.panel !== 'training' ? $('result-text').textContent : '', 12000);
  if (state.poses !== posesVersion)
    await readPoses();
  if (state.end && !state.stays)
    showEnd(state.end);
  else
    frameLoop(); // ends at once if the picture is final
  if (more)
    await pollState();
}

// Shows that the program has ended. The last picture stays.
function showEnd(text) {
  ended = true;
  notice(text);
  $('training-state').textContent = text;
  $('dot').className = '';
  $('run-state').textContent = 'the program has ended';
  $('controls').hidden = $('share-row').hidden = true;
}

// Handles a poll without an answer. The third in a row is reported, after a training as the end of the program.
function noteMissedPoll(error) {
  if (error.status === 503) // the text of a program that ends
    return showEnd(sentence(error.message));
  if (++missedPolls < 3)
    return;
  if (ending || (state && ['ending', 'finished', 'stopped', 'failed'].includes(state.state)))
    return showEnd('The program has ended. The picture is the last frame.');
  notice('The program does not answer, or has ended; trying again');
  $('dot').className = '';
  $('run-state').textContent = 'no answer';
  for (const button of $('controls').children)
    button.disabled = true;
}

async function pollLoop() {
  while (!ended) {
    if (!document.hidden) {
      try {
        await pollState();
        if (missedPolls >= 3 && !ended) {
          notice('');
          frameLoop();
        }
        missedPolls = 0;
      } catch (error) {
        if (error.status === 403)
          showError(error);
        else
          noteMissedPoll(error);
      }
    }
    // Soon after the start and while the program is busy, whose progress is shown.
    await sleep(!state || programBusy || !$('start').hidden ? 400 : state.state === 'viewing' ? 3000 : 1000);
  }
}

async function control(action, message, more = {}) {
  try {
    await postJson('/api/control', { action, ...more });
    ending ||= action === 'end';
    if (message)
      notice(message, 3000);
    await pollState();
  } catch (error) {
    notice(`Failed: ${error.message}`, 6000);
  }
}

// Saving shows the command that renders the path, which a change of the path hides.
const hasUnsavedKeys = () => path.keys.length > 0 && $('path-saved').hidden;

function startTraining() {
  curves = {
    psnr: new Chart($('curve-psnr'), { title: 'PSNR', unit: 'dB', format: (x) => x.toFixed(2), height: 150, smooth: true }),
    loss: new Chart($('curve-loss'), { title: 'Loss', format: (x) => x.toExponential(2), height: 150, smooth: true, logarithmic: true }),
  };
  $('pause').onclick = () => (state && state.state === 'paused' ? control('resume', 'Training resumed') : control('pause', 'Paused'));
  $('save').onclick = () => control('save', 'Saving a checkpoint');
  $('stop').onclick = () => $('confirm').showModal();
  $('confirm').onclose = () => {
    if ($('confirm').returnValue === 'stop')
      control('stop', 'Saving and stopping');
    $('confirm').returnValue = '';
  };
  $('share').oninput = () => {
    sharing = true;
    $('share-value').textContent = `${$('share').value} %`;
  };
  $('share').onchange = () => {
    sharing = false;
    control('share', '', { share: Number($('share').value) / 100 });
  };
  $('result-copy').onclick = () => copyCommand('result-command');
  $('end').onclick = () => (hasUnsavedKeys() ? $('confirm-end').showModal() : control('end', 'Ending the program'));
  $('confirm-end').onclose = () => {
    if ($('confirm-end').returnValue === 'end')
      control('end', 'Ending the program');
    $('confirm-end').returnValue = '';
  };
  on('panel', showCurves);
  pollLoop();
}
