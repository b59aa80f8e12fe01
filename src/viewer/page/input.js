// Mouse, touch and keys on the picture.

const held = new Set();     // pressed keys that move the camera, and 'pointer' during a drag
const pointers = new Map(); // pointerId -> {x, y}
let pressed = null;         // {x, y, moved, panning}: start of a drag
let lastTap = { at: -Infinity, x: 0, y: 0 };

const TURN = 3.6; // radians for a drag over the picture's height
const SLOP = 5;   // pixels that the pointer may move during a click

function drag(dx, dy, panning) {
  const { H } = stage;
  if (panning)
    return pan(dx / H, dy / H);
  if (settings.mode === 'fly') {
    const scale = 2 * Math.tan(radians(camera.fov) / 2) / H;
    return turn(dx * scale, dy * scale, true);
  }
  turn(-dx / H * TURN, -dy / H * TURN, false);
}

function pinch(before, after) {
  const middle = (p) => [(p[0].x + p[1].x) / 2, (p[0].y + p[1].y) / 2];
  const apart = (p) => Math.max(Math.hypot(p[0].x - p[1].x, p[0].y - p[1].y), 10);
  const [x0, y0] = middle(before), [x1, y1] = middle(after);
  pan((x1 - x0) / stage.H, (y1 - y0) / stage.H);
  zoom(apart(before) / apart(after), x1, y1);
}

function pointerDown(event) {
  const picture = $('picture');
  picture.setPointerCapture(event.pointerId);
  picture.focus({ preventScroll: true, focusVisible: false });
  pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
  stopPreview();
  flight = null;
  pressed = pointers.size === 1 ?
    { x: event.clientX, y: event.clientY, moved: false, panning: event.button !== 0 || event.shiftKey } : null;
  held.add('pointer');
  picture.classList.add('dragging');
}

function pointerMove(event) {
  const before = pointers.get(event.pointerId), now = { x: event.clientX, y: event.clientY };
  if (!before)
    return hover(event);
  const all = [...pointers.values()];
  pointers.set(event.pointerId, now);
  if (pointers.size === 2)
    return pinch(all, [...pointers.values()]);
  if (!pressed)
    return;
  if (!pressed.moved && Math.hypot(now.x - pressed.x, now.y - pressed.y) < SLOP)
    return pointers.set(event.pointerId, before);
  pressed.moved = true;
  drag(now.x - before.x, now.y - before.y, pressed.panning);
}

function pointerUp(event) {
  if (!pointers.delete(event.pointerId))
    return;
  if (pressed && !pressed.moved && event.type === 'pointerup' && !pressed.panning)
    tap(event);
  pressed = null;
  if (pointers.size === 0) {
    held.delete('pointer');
    $('picture').classList.remove('dragging');
    interruptPause();
    frameLoop();
  }
}

// Goes to a clicked camera; a double click elsewhere makes the clicked point the pivot.
function tap(event) {
  const { clientX: x, clientY: y, timeStamp: at } = event;
  const view = cameraAt(x, y, event.pointerType === 'touch' ? 18 : 8);
  if (view)
    return pickCamera(view);
  if (at - lastTap.at < 350 && Math.hypot(x - lastTap.x, y - lastTap.y) < 24)
    pivotAtPixel(x, y);
  lastTap = { at, x, y };
}

// Makes the point of the surface at this pixel the new pivot; where there is no surface, the point of the pivot's plane.
async function pivotAtPixel(x, y) {
  const ray = direction(camera, x, y, stage);
  const onPlane = add(camera.position, ray, camera.distance / -dot(ray, camera.axes[2]));
  lookAt(await surfaceAt(x, y) || onPlane);
}

function hover(event) {
  const view = event.pointerType === 'touch' ? null : cameraAt(event.clientX, event.clientY, 8);
  if (view === hovered)
    return;
  hovered = view;
  $('picture').classList.toggle('over-camera', Boolean(view));
  emit('overlay');
}

function wheel(event) {
  event.preventDefault();
  stopPreview();
  const lines = event.deltaMode === 1 ? 30 : event.deltaMode === 2 ? 300 : 1;
  const speed = event.ctrlKey ? 0.01 : 0.0015; // ctrl: a pinch on a touchpad
  zoom(Math.exp(clamp(event.deltaY * lines, -300, 300) * speed), event.clientX, event.clientY);
}

// ---- keys ----

const MOVES = {
  w: [0, 0, 1], s: [0, 0, -1], a: [-1, 0, 0], d: [1, 0, 0], e: [0, 1, 0], q: [0, -1, 0],
};
const TURNS = { arrowleft: [1, 0], arrowright: [-1, 0], arrowup: [0, 1], arrowdown: [0, -1] };
let fast = false;

// Returns whether a field, a dialog, a slider, a choice or a list handles the key.
function handledElsewhere(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]'))
    return true;
  const slide = event.target.closest('[type=range], [type=checkbox], [role=slider], [role=radiogroup], [role=listbox]');
  return slide ? /^(Arrow|Home|End|Page|Enter| )/.test(event.key) : event.target.closest('input, select, textarea');
}

function keyDown(event) {
  fast = event.shiftKey;
  const key = event.key.toLowerCase();
  if (key === 'escape' && !document.querySelector('dialog[open]'))
    return shortcut(key, event);
  if (handledElsewhere(event))
    return;
  if (key in MOVES || key in TURNS) {
    event.preventDefault();
    stopPreview();
    held.add(key);
    wake();
  } else if (event.target.closest('button') && [' ', 'enter'].includes(key)) {
    return; // the button handles it
  } else {
    shortcut(key, event);
  }
}

function keyUp(event) {
  fast = event.shiftKey;
  held.delete(event.key.toLowerCase());
}

// Moves the camera by the pressed keys for `dt` seconds; false when none is pressed.
function keysStep(dt) {
  const sum = [0, 0, 0], angles = [0, 0], speed = (fast ? 1.6 : 0.4) * dt;
  let any = false;
  for (const key of held) {
    any ||= key in MOVES || key in TURNS;
    (MOVES[key] || []).forEach((x, i) => { sum[i] += x * speed; });
    (TURNS[key] || []).forEach((x, i) => { angles[i] += x * dt * 1.2; });
  }
  if (sum.some(Boolean))
    walk(...sum);
  if (angles.some(Boolean)) {
    const self = settings.mode === 'fly', sign = self ? 1 : -1;
    turn(sign * angles[0], self ? angles[1] : -angles[1], self);
  }
  return any;
}

function listenForInput() {
  const picture = $('picture');
  picture.addEventListener('pointerdown', pointerDown);
  picture.addEventListener('pointermove', pointerMove);
  picture.addEventListener('pointerup', pointerUp);
  picture.addEventListener('pointercancel', pointerUp);
  picture.addEventListener('contextmenu', (event) => event.preventDefault());
  picture.addEventListener('wheel', wheel, { passive: false });
  addEventListener('keydown', keyDown);
  addEventListener('keyup', keyUp);
  addEventListener('blur', () => held.clear());
}
