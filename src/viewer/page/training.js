// How the training goes: asked for once a second, shown as figures and curves; pause, save and stop.

const WORDS = {
  training: 'training', paused: 'paused', saving: 'saving', finished: 'finished', stopped: 'stopped', viewing: 'viewing',
};
const MOST_METRICS = 20000; // that come in one answer
let state = null, metrics = [], evaluations = [], nextMetric = 0, silence = 0, said = '', stopping = false;
let curves;

function clock(seconds) {
  const s = Math.round(seconds), two = (x) => String(x).padStart(2, '0');
  return s < 3600 ? `${Math.floor(s / 60)}:${two(s % 60)}` :
    `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
}

const known = (x, text) => (typeof x === 'number' && Number.isFinite(x) ? text(x) : '–');

function showState() {
  const live = scene.mode === 'train';
  const word = WORDS[state.state] || state.state;
  $('run-state').textContent = word;
  $('run-step').textContent = `step ${known(state.step, (x) => x.toLocaleString('en'))}`;
  $('dot').className = state.state;
  $('training-state').textContent = scene.mode === 'view' ? 'a finished run, as it was recorded' : word;
  $('t-step').textContent = known(state.step, (x) => x.toLocaleString('en'));
  $('t-time').textContent = known(state.seconds, clock);
  $('t-rate').textContent = known(live && state.steps_per_second, (x) => x.toFixed(x < 10 ? 2 : 1));
  $('t-psnr').textContent = known(state.psnr, (x) => `${x.toFixed(2)}`);
  $('t-loss').textContent = known(state.loss, (x) => x.toExponential(1));
  $('t-share').textContent = known(live && state.share, (x) => `${(100 * x).toFixed(1)} %`);
  const can = state.can || {}, paused = state.state === 'paused';
  $('pause').textContent = paused ? 'Resume' : 'Pause';
  $('pause').disabled = !can.pause;
  $('save').disabled = !can.save;
  $('stop').disabled = !can.stop;
  if (state.message && state.message !== said)
    notice(state.message, 8000);
  said = state.message;
}

function showCurves() {
  if (settings.panel !== 'training')
    return;
  curves.psnr.set(metrics.map((m) => [m[0], m[3]]), evaluations.map((e) => [e[0], e[1]]));
  curves.loss.set(metrics.map((m) => [m[0], m[2]]), []);
}

// One look at the server.
async function look() {
  const answer = await ask('/api/state', { from: nextMetric });
  const more = answer.next - nextMetric >= MOST_METRICS;
  if (answer.next < nextMetric)
    metrics = []; // another run in this folder: its own come from the first on
  metrics.push(...answer.metrics);
  nextMetric = answer.next;
  evaluations = answer.evaluations;
  const before = training;
  state = answer;
  training = state.state === 'training' || state.state === 'saving';
  showState();
  showCurves();
  if (state.end) {
    showEnd(state.end);
    return;
  }
  if (training && !before)
    pump();
  if (more)
    await look();
}

// What has come of the training stays there, as does the last picture: the program ends now.
function showEnd(text) {
  ended = true;
  notice(text);
  $('training-state').textContent = text;
  $('dot').className = '';
  $('run-state').textContent = 'the program has ended';
  for (const id of ['pause', 'save', 'stop'])
    $(id).disabled = true;
}

// Gone after a training: it has ended, and its program with it. Otherwise the frames' requests say so.
function unanswered() {
  const over = stopping || (state && ['finished', 'stopped', 'saving'].includes(state.state));
  if (++silence < 3)
    return;
  ended = over;
  if (!over)
    notice('The program does not answer, or has ended; trying again');
  $('dot').className = '';
  $('run-state').textContent = over ? 'the program has ended' : 'no answer';
  if (over)
    notice('The training has ended, and the program with it. The picture is the last one.');
  for (const id of ['pause', 'save', 'stop'])
    $(id).disabled = true;
}

async function watch() {
  while (!ended) {
    if (!document.hidden) {
      try {
        await look();
        if (silence >= 3 && !ended) {
          notice('');
          pump();
        }
        silence = 0;
      } catch (error) {
        if (error.status === 403)
          trouble(error);
        else
          unanswered();
      }
    }
    await sleep(scene.mode === 'train' || !state ? 1000 : 5000);
  }
}

async function control(action, words) {
  try {
    await tell('/api/control', { action });
    stopping ||= action === 'stop';
    notice(words, 3000);
    await look();
  } catch (error) {
    notice(`Not done: ${error.message}`, 6000);
  }
}

function startTraining() {
  curves = { psnr: new Curve('psnr', 'c1', false), loss: new Curve('loss', 'c3', true) };
  $('pause').onclick = () => (state && state.state === 'paused' ? control('resume', 'Training goes on') : control('pause', 'Paused'));
  $('save').onclick = () => control('save', 'Saving a checkpoint');
  $('stop').onclick = () => $('confirm').showModal();
  $('confirm').onclose = () => {
    if ($('confirm').returnValue === 'stop')
      control('stop', 'Saving and stopping');
    $('confirm').returnValue = '';
  };
  on('panel', showCurves);
  watch();
}
