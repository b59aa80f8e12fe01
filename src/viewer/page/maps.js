// Maps: a second map beside the first one, colours and range of depths with a legend, exposure, and the values under the
// cursor, which the server measures by rays of its own.

Object.assign(settings, {
  second: 'none', divider: 0.5, palette: 'viridis', range: null, rangeAuto: true, exposure: 0,
});
const STEPS_PER_STOP = 10;     // of the exposure's slider
const RANGE_AGE = 8000;        // ms after which a training's range of depths is measured again
let rangeOf = '', rangeAt = 0; // the view and performance.now() of the measured range
let cursor = null;             // {x, y} of the pointer over the picture
let probing = false, probed = null; // {x, y, depth, opacity} of the last answer

const showsMap = (map) => settings.map === map || settings.second === map;
const shownRange = () => settings.range || [0, 2 * scene.distance];

// Returns the parameters of a frame that this file sets.
function mapParameters() {
  const parameters = { second: settings.second, palette: settings.palette, exposure: settings.exposure };
  if (settings.range)
    parameters.range = settings.range.join(',');
  return parameters;
}

// Formats a depth in metres if the length of a dataset unit is known, else in dataset units.
function depthText(depth) {
  const factor = scene.unit_length || 1, digits = clamp(3 - Math.ceil(Math.log10(shownRange()[1] * factor)), 0, 6);
  return (depth * factor).toFixed(digits);
}
const depthUnit = () => (scene.unit_length ? 'm' : 'units');

// ---- what a ray shows ----

// Returns {depth, opacity, color} of the ray through a pixel of the stage, or of the picture {near, far} without a pixel.
async function probe(x, y) {
  const { range, second, palette, ...view } = frameParameters();
  return getJson('/api/probe', x === undefined ? view : { ...view, pixel: `${x / stage.W},${y / stage.H}` });
}

// Measures the value under the cursor, one request at a time.
async function probeCursor() {
  if (probing || !cursor || !(showsMap('depth') || showsMap('opacity')) || held.has('pointer') || previewing())
    return;
  const { x, y } = cursor;
  probing = true;
  try {
    const answer = await probe(x, y);
    probed = cursor && { x, y, ...answer };
  } catch {
    probed = null;
  }
  probing = false;
  showLegend();
  if (cursor && (cursor.x !== x || cursor.y !== y))
    probeCursor();
}

function moveCursor(event) {
  cursor = event && event.pointerType !== 'touch' ? { x: event.clientX, y: event.clientY } : null;
  if (!cursor) {
    probed = null;
    showLegend();
  }
  probeCursor();
}

// Returns the point of the surface at a pixel, on a ray from the camera as it is now; null where nothing is hit.
async function surfaceAt(x, y) {
  const from = copyOf(camera), layout = { ...stage };
  const { depth, opacity } = await probe(x, y).catch(() => ({}));
  const ray = direction(from, x, y, layout);
  return depth > 0 && opacity > 0.1 ? add(from.position, ray, depth / -dot(ray, from.axes[2])) : null;
}

// ---- the range ----

// Measures the range of depths of the picture when the camera is still.
async function measureRange() {
  const { range, ...view } = frameParameters(), key = JSON.stringify(view), now = performance.now();
  if (!settings.rangeAuto || !showsMap('depth') || busy() || now - lastMove < STILL_MS ||
      (key === rangeOf && !(training && now - rangeAt > RANGE_AGE)))
    return;
  rangeOf = key;
  rangeAt = now;
  const { near, far } = await probe().catch(() => ({}));
  const old = shownRange();
  if (far > near && settings.rangeAuto &&
      Math.max(Math.abs(near - old[0]), Math.abs(far - old[1])) > 0.02 * (far - near))
    setRange([near, far], true);
}

function setRange(range, isAutomatic) {
  settings.rangeAuto = isAutomatic;
  settings.range = range.map((x) => +x.toPrecision(6));
  showRange();
  emit('picture');
}

// Stores a depth that the user has set: i is 0 for the near end and 1 for the far one.
function setRangeEnd(i, value) {
  const range = shownRange().slice(), least = Math.max(range[1] - range[0], scene.distance * 1e-3) * 1e-3;
  range[i] = i ? Math.max(value, range[0] + least) : clamp(value, 0, range[1] - least);
  setRange(range, false);
}

function showRange() {
  const range = shownRange(), factor = scene.unit_length || 1;
  $('range-auto').checked = settings.rangeAuto;
  const most = Math.max(3 * scene.distance, range[1]);
  for (const i of [0, 1]) {
    const field = $(['range-near', 'range-far'][i]), slider = $(['range-low', 'range-high'][i]);
    slider.max = most;
    slider.value = range[i];
    if (document.activeElement !== field)
      field.value = +depthText(range[i]);
  }
  $('range-slider').style.setProperty('--low', range[0] / most);
  $('range-slider').style.setProperty('--high', range[1] / most);
  $('range-unit').textContent = `Depths in ${factor === 1 && !scene.unit_length ? 'units of the dataset' : 'metres'}`;
  showLegend();
}

// ---- the legend ----

function showLegend() {
  const hasDepth = showsMap('depth'), range = shownRange();
  $('legend').hidden = !hasDepth && !showsMap('opacity');
  $('legend-depth').hidden = !hasDepth;
  $('legend-bar').style.backgroundImage = `linear-gradient(to left, ${scene.palettes[settings.palette].join(',')})`;
  $('legend-near').textContent = depthText(range[0]);
  $('legend-far').textContent = `${depthText(range[1])} ${depthUnit()}`;
  const hit = probed && probed.opacity > 0.01;
  $('legend-value').textContent = !probed ? (hasDepth ? 'Depth along the viewing axis' : 'Opacity') :
    !hit ? 'nothing here' :
      `${hasDepth ? `${depthText(probed.depth)} ${depthUnit()} · ` : ''}opacity ${Math.round(100 * probed.opacity)} %`;
  const share = (probed && hit ? probed.depth - range[0] : NaN) / (range[1] - range[0]);
  $('legend-mark').hidden = !(share >= 0 && share <= 1);
  $('legend-mark').style.left = `${100 * share}%`;
}

// ---- two maps, with a divider between them ----

function setSecond(map) {
  settings.second = map;
  $('second').value = map;
  showDivider();
  showRange();
  emit('picture');
}

function setDivider(share) {
  settings.divider = clamp(share, 0.02, 0.98);
  showDivider();
  emit('overlay');
  keepAddress();
}

const dividerAt = () => settings.divider * 2 * stage.x; // within the area that panels leave free

function showDivider() {
  const divider = $('divider');
  divider.hidden = settings.second === 'none';
  divider.style.left = `${dividerAt()}px`;
  divider.setAttribute('aria-valuenow', Math.round(100 * settings.divider));
  $('divider-first').textContent = MAPS[settings.map];
  $('divider-second').textContent = MAPS[settings.second] || '';
}

// Draws the second map of the shown frame to the right of the divider.
function drawSecond(context, m) {
  if (!shown.second || settings.second === 'none')
    return;
  context.save();
  context.beginPath();
  context.rect(dividerAt(), 0, stage.W, stage.H);
  context.clip();
  if (m)
    context.transform(...m);
  context.drawImage(shown.second, 0, 0, m ? shown.layout.W : stage.W, m ? shown.layout.H : stage.H);
  context.restore();
}

function startDivider() {
  const divider = $('divider');
  divider.addEventListener('pointerdown', (event) => divider.setPointerCapture(event.pointerId));
  divider.addEventListener('pointermove', (event) => {
    if (divider.hasPointerCapture(event.pointerId))
      setDivider(event.clientX / (2 * stage.x));
  });
  divider.onkeydown = (event) => {
    const way = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (!way)
      return;
    event.preventDefault();
    setDivider(settings.divider + way * (event.shiftKey ? 0.1 : 0.02));
  };
}

// ---- the panel ----

function setExposure(stops) {
  settings.exposure = clamp(Math.round(stops * STEPS_PER_STOP) / STEPS_PER_STOP, -8, 8);
  $('exposure').value = settings.exposure;
  $('exposure-value').textContent = `${settings.exposure > 0 ? '+' : ''}${settings.exposure.toFixed(1)} EV`;
  emit('picture');
}

function setPalette(name) {
  settings.palette = name;
  $('palette').value = name;
  showLegend();
  emit('picture');
}

// Updates the controls after settings were changed elsewhere.
function showMaps() {
  setExposure(settings.exposure);
  setPalette(settings.palette);
  setSecond(settings.second);
}

function startMapSettings() {
  $('palette').append(...Object.keys(scene.palettes).map((name) => new Option(name, name)));
  $('second').append(new Option('none', 'none'), ...scene.maps.map((map) => new Option(MAPS[map].toLowerCase(), map)));
  $('second').onchange = (event) => setSecond(event.target.value);
  $('palette').onchange = (event) => setPalette(event.target.value);
  $('exposure').oninput = (event) => setExposure(Number(event.target.value));
  $('exposure').ondblclick = () => setExposure(0);
  $('range-auto').onchange = (event) => {
    settings.rangeAuto = event.target.checked;
    rangeOf = '';
    measureRange();
  };
  ['range-near', 'range-far'].forEach((id, i) => {
    $(id).onchange = (event) => {
      const value = Number(event.target.value) / (scene.unit_length || 1);
      if (event.target.value !== '' && Number.isFinite(value) && value >= 0)
        setRangeEnd(i, value);
      showRange(); // restores the previous value of an invalid one
    };
  });
  ['range-low', 'range-high'].forEach((id, i) => {
    $(id).oninput = (event) => setRangeEnd(i, Number(event.target.value));
  });
  startDivider();
  $('picture').addEventListener('pointermove', moveCursor);
  $('picture').addEventListener('pointerleave', () => moveCursor(null));
  on('panel', showDivider);
  on('frame', () => { measureRange(); probeCursor(); });
  showMaps();
}

// ---- the address ----

function addMapsToAddress(parts) {
  if (settings.second !== 'none')
    Object.assign(parts, { second: settings.second, divider: short(settings.divider) });
  if (settings.palette !== Object.keys(scene.palettes)[0])
    parts.palette = settings.palette;
  if (!settings.rangeAuto)
    parts.range = settings.range.join(',');
  if (settings.exposure)
    parts.exposure = settings.exposure;
}

// Reads a view's address; parts that are missing get their defaults.
function readMapsOfAddress(parts, numbers) {
  const range = numbers('range', 2), [exposure] = numbers('exposure', 1) || [0], [divider] = numbers('divider', 1) || [0.5];
  settings.second = scene.maps.includes(parts.get('second')) ? parts.get('second') : 'none';
  settings.divider = clamp(divider, 0.02, 0.98);
  if (scene.palettes[parts.get('palette')])
    settings.palette = parts.get('palette');
  settings.exposure = clamp(exposure, -8, 8);
  if (range && range[0] >= 0 && range[1] > range[0])
    Object.assign(settings, { range, rangeAuto: false });
}
