// The training panel: polls the state once a second, shows figures and curves; pause, save and stop.

const WORDS = {
  training: 'training', paused: 'paused', saving: 'saving', finished: 'finished', stopped: 'stopped', viewing: 'viewing',
};
const MOST_METRICS = 20000; // most log lines in one answer, as in state.c
let state = null, metrics = [], evaluations = [], nextMetric = 0, missedPolls = 0, lastMessage = '', stopping = false;
let curves;

function clock(seconds) {
  const s = Math.round(seconds), two = (x) => String(x).padStart(2, '0');
  return s < 3600 ? `${Math.floor(s / 60)}:${two(s % 60)}` :
    `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
}

const formatted = (x, text) => (typeof x === 'number' && Number.isFinite(x) ? text(x) : '–');

function showState() {
  const live = scene.mode === 'train';
  const word = WORDS[state.state] || state.state;
  $('run-state').textContent = word;
  $('run-step').textContent = `step ${formatted(state.step, (x) => x.toLocaleString('en'))}`;
  $('dot').className = state.state;
  $('training-state').textContent = scene.mode === 'view' ? 'recorded run' : word;
  $('t-step').textContent = formatted(state.step, (x) => x.toLocaleString('en'));
  $('t-time').textContent = formatted(state.seconds, clock);
  $('t-rate').textContent = formatted(live && state.steps_per_second, (x) => x.toFixed(x < 10 ? 2 : 1));
  $('t-psnr').textContent = formatted(state.psnr, (x) => `${x.toFixed(2)}`);
  $('t-loss').textContent = formatted(state.loss, (x) => x.toExponential(1));
  $('t-share').textContent = formatted(live && state.share, (x) => `${(100 * x).toFixed(1)} %`);
  const can = state.can || {}, paused = state.state === 'paused';
  $('pause').textContent = paused ? 'Resume' : 'Pause';
  $('pause').disabled = !can.pause;
  $('save').disabled = !can.save;
  $('stop').disabled = !can.stop;
  if (state.message && state.message !== lastMessage)
    notice(state.message, 8000);
  lastMessage = state.message;
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
  const before = training;
  state = answer;
  training = state.state === 'training' || state.state === 'saving';
  showState();
  showCurves();
  if (state.poses !== posesVersion)
    await readPoses();
  if (state.end) {
    showEnd(state.end);
    return;
  }
  if (training && !before)
    frameLoop();
  if (more)
    await pollState();
}

// Shows the result of the training. The program ends now; the last picture stays.
function showEnd(text) {
  ended = true;
  notice(text);
  $('training-state').textContent = text;
  $('dot').className = '';
  $('run-state').textContent = 'the program has ended';
  for (const id of ['pause', 'save', 'stop'])
    $(id).disabled = true;
}

// Handles a poll without an answer. The third in a row is reported, after a training as the end of the program.
function noteMissedPoll() {
  const over = stopping || (state && ['finished', 'stopped', 'saving'].includes(state.state));
  if (++missedPolls < 3)
    return;
  ended = over;
  if (!over)
    notice('The program does not answer, or has ended; trying again');
  $('dot').className = '';
  $('run-state').textContent = over ? 'the program has ended' : 'no answer';
  if (over)
    notice('The training and the program have ended. The picture is the last frame.');
  for (const id of ['pause', 'save', 'stop'])
    $(id).disabled = true;
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
          noteMissedPoll();
      }
    }
    await sleep(scene.mode === 'train' || !state ? 1000 : 5000);
  }
}

async function control(action, message) {
  try {
    await postJson('/api/control', { action });
    stopping ||= action === 'stop';
    notice(message, 3000);
    await pollState();
  } catch (error) {
    notice(`Failed: ${error.message}`, 6000);
  }
}

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
  on('panel', showCurves);
  pollLoop();
}
