// Completes the page of a certificate: trainings, speed, device, errors.

const tests = list(data, 'parts').flatMap((part) => list(part, 'tests').map((test) => ({ part: text(part, 'part') ?? '', test })));
const testsOf = (part) => tests.filter((one) => one.part === part).map(({ test }) => test);
const word = (name, of) => ({ name, css: '', text: (row) => of(row) ?? '', value: (row) => of(row) ?? '' });
const numeric = (name, of, digits, unit = '') =>
  ({ name, text: (row) => (Number.isFinite(of(row)) ? fixed(of(row), digits) + unit : '–'), value: of });

// Returns the table of a training's passes with its heading.
function passes(test) {
  const ms = (pass) => number(pass, 'milliseconds'), predicted = (pass) => number(pass, 'floor_milliseconds'), path = text(test, 'path') ?? '';
  return [make('h3', {}, `Passes of ${path}`), table(`Passes of ${path}`, [word('Pass', (pass) => text(pass, 'name')), numeric('Measured', ms, 3, ' ms'),
    numeric('Predicted floor', predicted, 3, ' ms'), numeric('× floor', (pass) => ms(pass) / predicted(pass), 1),
    word('Bound by', (pass) => text(pass, 'bound'))], list(test, 'passes'))];
}

function addTrainings() {
  const trainings = testsOf('trainings'), of = (key) => (test) => number(test, key);
  if (trainings.length === 0)
    return;
  section('trainings', 'Trainings of the bundled scene', table('Trainings', [word('Precision', (test) => text(test, 'test')),
    word('Backend', (test) => text(test, 'path')), numeric('PSNR', of('psnr'), 2, ' dB'), numeric('Floor', of('floor'), 2, ' dB'),
    numeric('Skipped steps', of('skipped_steps'), 0), numeric('Time', of('seconds'), 1, ' s')], trainings),
  ...trainings.filter((test) => list(test, 'passes').length > 0).flatMap(passes));
}

function addSpeed() {
  const bench = list(data, 'parts').find((part) => text(part, 'part') === 'bench'), results = list(get(bench, 'bench'), 'results');
  const rate = (result) => number(result, 'rate');
  if (results.length === 0)
    return;
  section('bench', 'Speed (vknerf bench)', table('Speed', [word('Suite', (result) => text(result, 'suite')), word('Case', (result) => text(result, 'case')),
    word('Backend', (result) => text(result, 'path')), { name: 'Rate', value: rate,
      text: (result) => (rate(result) > 0 ? quantity(rate(result)) + (text(result, 'unit') ?? '') : text(result, 'fault') ?? '–') }], results));
}

// Shows what vknerf info says of the device.
function addDevice() {
  const shown = (x) => (Array.isArray(x) ? x.filter((item) => typeof item === 'string').join(', ') : x === true ? 'yes' : x === false ? 'no' :
    typeof x === 'string' || Number.isFinite(x) ? String(x) : null);
  section('device', 'Device', facts(Object.entries(get(data, 'device') ?? {}).map(([name, value]) => [name, shown(value)])));
}

function addErrors() {
  const figures = tests.flatMap(({ part, test }) => list(test, 'figures').map((figure) => ({ part, test: text(test, 'test'), figure })));
  const of = (key) => ({ figure }) => text(figure, key), ulps = (key) => ({ figure }) => number(figure, key);
  if (figures.length === 0)
    return;
  section('errors', 'Errors', make('p', {}, 'Largest errors relative to the size of each quantity, in units of the last place of its precision (f32: 2',
    make('sup', {}, '-23'), ', f16: 2', make('sup', {}, '-10'), ').'), table('Errors', [word('Part', (row) => row.part), word('Test', (row) => row.test),
    word('Quantity', of('what')), word('Backend', of('backend')), word('Precision', of('precision')), numeric('Error', ulps('error_ulps'), 2),
    numeric('Tolerance', ulps('tolerance_ulps'), 2)], figures));
}

addTrainings();
addSpeed();
addDevice();
addErrors();
addContents();
