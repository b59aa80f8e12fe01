// Handles of the selected keyframe in the picture: three axes and the camera itself move the camera without turning it,
// the target turns it.

const GIZMO_PIXELS = 64; // length of the axes
const gizmo = [];        // [{element, at, axis, move}]
let selectedKey = -1;    // index of the selected keyframe; -1: none

const gizmoKey = () => (settings.panel === 'path' && !previewing() ? path.keys[selectedKey] : undefined);

// Returns the length in the scene of `pixels` at a point's depth.
const lengthOf = (point, pixels) =>
  pixels * 2 * Math.tan(radians(camera.fov) / 2) / stage.H * Math.max(project(camera, point, stage)[2], 1e-9);

const axisEnd = (key, k) => add(key.position, UNITS[k], lengthOf(key.position, GIZMO_PIXELS));

function moveKey(by) {
  const key = gizmoKey();
  key.position = add(key.position, by);
  key.look_at = add(key.look_at, by);
  pathChanged('drag');
}

function moveTarget(by) {
  const key = gizmoKey(), to = add(key.look_at, by);
  if (length(subtract(to, key.position)) > scene.distance * 1e-3)
    key.look_at = to;
  pathChanged('drag');
}

function selectKey(i) {
  selectedKey = i;
  for (const row of $('keys').children)
    row.classList.toggle('selected', Number(row.dataset.i) === i);
  emit('overlay');
}

// Returns the index of the keyframe whose number is drawn at a pixel; -1: none.
function keyAt(x, y, reach) {
  if (settings.panel !== 'path' || previewing())
    return -1;
  return path.keys.findIndex((key) => {
    const [u, v, z] = project(camera, key.position, stage);
    return z > camera.distance * 1e-3 && Math.hypot(u - x, v - y) <= reach;
  });
}

function drawGizmo(context) {
  const key = gizmoKey();
  if (!key || project(camera, key.position, stage)[2] < camera.distance * 1e-2)
    return;
  context.setLineDash([6, 5]);
  haloed(context, LINES.path, 1.2, () => worldLine(context, [key.position, key.look_at], false));
  context.setLineDash([]);
  UNITS.forEach((_, k) => haloed(context, AXIS_COLORS[k], 2.5, () => worldLine(context, [key.position, axisEnd(key, k)], false)));
}

function placeGizmo() {
  const key = gizmoKey();
  $('gizmo').hidden = !key;
  for (const { element, at } of key ? gizmo : []) {
    const [x, y, z] = project(camera, at(), stage);
    element.hidden = z < camera.distance * 1e-2;
    element.style.transform = `translate(${x}px, ${y}px)`;
  }
}

// Arrow keys move a handle along its axis, or right and up, by a hundredth of the scene's size.
function keyGizmo(event, { axis, move }) {
  const way = { ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowLeft: [-1, 0], ArrowDown: [0, -1] }[event.key];
  if (!way)
    return;
  event.preventDefault();
  changes.group = event.repeat ? changes.group : '';
  const step = scene.distance * (event.shiftKey ? 0.1 : 0.01);
  const along = axis() || add(times(camera.axes[0], way[0]), camera.axes[1], way[1]);
  move(times(along, step * (axis() ? way[0] + way[1] : 1)));
}

function startGizmo() {
  const add3 = (name, color, at, axis, move) => {
    const element = document.createElement('div'), handle = { element, at, axis, move };
    element.className = `handle gizmo${axis() ? '' : ' corner'}`;
    element.style.background = color;
    element.tabIndex = 0;
    element.setAttribute('role', 'button');
    element.setAttribute('aria-label', `${name} of the selected keyframe; arrow keys move it`);
    element.title = name;
    element.onkeydown = (event) => keyGizmo(event, handle);
    element.onpointerdown = () => { changes.group = ''; };
    dragHandle(element, { at, axis, move: (to, from) => move(subtract(to, from)) });
    $('gizmo').append(element);
    gizmo.push(handle);
  };
  UNITS.forEach((unitAxis, k) => add3(`Position along ${'XYZ'[k]}`, AXIS_COLORS[k], () => axisEnd(gizmoKey(), k), () => unitAxis, moveKey));
  add3('Position', LINES.path, () => gizmoKey().position, () => null, moveKey);
  add3('Target', '#d0307a', () => gizmoKey().look_at, () => null, moveTarget);
}
