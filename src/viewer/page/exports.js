// The export panel: a mesh, points or splats, with an estimate of size and time before and the command's progress after.

const FORMATS = { mesh: ['glb', 'ply', 'obj'], points: ['ply'], splats: ['ply'] };
// Bytes per vertex with its two triangles, per point, and per splat, as the files have them.
const BYTES = { mesh: { glb: 56, ply: 53, obj: 160 }, points: { ply: 27 }, splats: { ply: 248 } };
const exporting = { kind: 'mesh', name: 'object', resolution: 256, count: 100000, texture: false, all: false };
let startedExport = null; // {key, units} of the running export
let showKind;

// Records of earlier exports of this run, and of the last exports of any run.
const recordNames = () => [`vknerf exports ${scene.run}`, 'vknerf exports'];

// Returns the records of a name: {kind.format: {units, size, seconds}}.
function exportRecords(name) {
  try {
    return JSON.parse(localStorage.getItem(name) || '{}');
  } catch {
    return {};
  }
}

// Returns the numbers of voxels along the edges of the exported box.
function voxels() {
  const box = settings.cropOn ? settings.crop : scene.box, edges = [0, 1, 2].map((i) => box[i + 3] - box[i]);
  return edges.map((edge) => Math.max(1, Math.round(exporting.resolution * edge / Math.max(...edges))));
}

// Returns what the command has to do, which its time is proportional to: voxels, points or splats.
const exportUnits = () => (exporting.kind === 'mesh' ? voxels().reduce((a, b) => a * b) : exporting.count);
const exportFormat = () => $('export-format').value;
const exportKey = () => `${exporting.kind}.${exportFormat()}${exporting.texture ? '.texture' : ''}`;

// Returns sentences about size and time, with the way they are estimated.
function estimate() {
  const [x, y, z] = voxels(), units = exportUnits();
  const [own, other] = recordNames().map((name) => exportRecords(name)[exportKey()]), record = own || other;
  const isMesh = exporting.kind === 'mesh';
  const surface = x * y + y * z + z * x; // a surface like that of a box: vertices grow as the square of the resolution
  const growth = record && (isMesh ? (units / record.units) ** (2 / 3) : units / record.units);
  const size = record ? record.size * growth : (isMesh ? surface : units) * BYTES[exporting.kind][exportFormat()];
  const what = isMesh ? `${x} × ${y} × ${z} voxels${settings.cropOn ? ' in the crop box' : ' at most'}` :
    `${units.toLocaleString('en')} ${exporting.kind}`;
  const seconds = record ? `${secondsText(record.seconds * units / record.units)}` : 'unknown';
  const how = record ? `scaled from the last export of this kind${own ? '' : ', of another run'}` :
    'size from the number of ' + (isMesh ? 'voxels on a closed surface' : exporting.kind) + '; time after the first export';
  return { main: `${what}: about ${bytesText(Math.round(size))}, time ${seconds}`, how };
}

function showExport() {
  const isMesh = exporting.kind === 'mesh', formats = FORMATS[exporting.kind];
  if ([...$('export-format').options].map((option) => option.value).join() !== formats.join())
    $('export-format').replaceChildren(...formats.map((format) => new Option('.' + format, format)));
  $('export-resolution').parentNode.hidden = !isMesh;
  $('export-count').parentNode.hidden = isMesh;
  $('export-texture-row').hidden = !isMesh || exportFormat() !== 'glb';
  exporting.texture = !$('export-texture-row').hidden && $('export-texture').checked;
  $('export-all-row').hidden = settings.cropOn;
  $('export-box').textContent = settings.cropOn ? `In the crop box of the view panel: ${cropText()}` :
    'The crop box is off: the object that most training views look at, if there is one.';
  const { main, how } = estimate();
  $('export-estimate').textContent = main;
  $('export-how').textContent = `Estimated: ${how}.`;
}

async function startExport(event) {
  event.preventDefault();
  const { kind, name, resolution, count, texture, all } = exporting;
  const body = { start: kind, name, format: exportFormat() };
  if (kind === 'mesh')
    Object.assign(body, { resolution, texture });
  else
    body.count = count;
  if (scene.dynamic)
    body.time = settings.time;
  if (settings.cropOn)
    body.crop = cropNumbers();
  else if (all)
    body.all = true;
  const begun = { key: exportKey(), units: exportUnits() };
  if (await startTask(body))
    startedExport = begun;
}

function recordExport({ kind, state, size, seconds }) {
  const started = startedExport;
  startedExport = null;
  if (!started || kind === 'video' || state !== 'done')
    return;
  try {
    for (const name of recordNames())
      localStorage.setItem(name, JSON.stringify({
        ...exportRecords(name), [started.key]: { units: started.units, size, seconds },
      }));
  } catch { /* full or not allowed: no estimate of time */ }
  showExport();
}

function exportNumber(name) {
  $('export-' + name).value = exporting[name];
  $('export-' + name).oninput = (event) => {
    const isValid = event.target.checkValidity() && event.target.value !== '';
    event.target.classList.toggle('wrong', !isValid);
    if (isValid)
      exporting[name] = Number(event.target.value);
    showExport();
  };
}

function startExports() {
  const buttons = ['mesh', 'points', 'splats'].map((kind) => $('export-' + kind));
  showKind = choice(buttons, (button) => {
    exporting.kind = button.id.replace('export-', '');
    showKind(button);
    showExport();
  });
  showKind(buttons[0]);
  exportNumber('resolution');
  exportNumber('count');
  $('export-name').oninput = (event) => { exporting.name = event.target.value; };
  $('export-format').onchange = $('export-texture').onchange = showExport;
  $('export-all').onchange = (event) => { exporting.all = event.target.checked; };
  $('export-form').onsubmit = startExport;
  on('panel', showExport);
  on('picture', () => settings.panel === 'export' && showExport());
  taskEnded.push(recordExport);
  showExport();
}
