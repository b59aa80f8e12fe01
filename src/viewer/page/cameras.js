// The scene's cameras: the list with photographs, selecting a camera, its photograph as an overlay, refined poses.

let picked = null;    // the selected view
let posesVersion = 0; // of the shown refined poses
const loadQueue = []; // [{image, view, width}] of photographs that are to be loaded
let loadingCount = 0;

const viewFov = (view) => degrees(2 * Math.atan(view.height / 2 / view.focal_y));
const photoAddress = (view, width) => address('/api/photo', { split: view.split, view: view.index, width });

// Returns a camera at a view's pose that shows all of the view's picture in the window.
function cameraOf(view) {
  const at = fromPose(view.pose, fitted(clamp(viewFov(view), 1, 110), view.width / view.height), 1);
  const ahead = dot(subtract(at.position, scene.look_at), at.axes[2]);
  at.distance = ahead > scene.distance * 0.05 ? ahead : scene.distance;
  return at;
}

function pickCamera(view) {
  picked = view;
  stopPreview();
  if (scene.dynamic)
    setTime(view.time);
  flyTo(cameraOf(view));
  const options = [...$('camera-list').children], i = scene.views.indexOf(view);
  options.forEach((option, j) => option.setAttribute('aria-selected', i === j));
  $('camera-list').setAttribute('aria-activedescendant', options[i].id);
  if (settings.panel === 'cameras')
    options[i].scrollIntoView({ block: 'nearest' });
  $('photo-name').textContent = `${view.name} · ${view.split} ${i + 1} of ${scene.views.length}`;
  $('photo-hint').hidden = true;
  $('photo-picture').src = photoAddress(view, 640);
  $('photo-picture').style.setProperty('--ratio', view.width / view.height);
  $('photo-picture').alt = `Photograph ${view.name}`;
  $('blend').src = photoAddress(view, clamp(Math.round(innerWidth * (devicePixelRatio || 1)), 320, 1600));
  $('blend-slider').disabled = false;
  showCard();
  emit('overlay');
}

function stepCamera(by) {
  const count = scene.views.length;
  if (count === 0)
    return;
  const i = picked ? scene.views.indexOf(picked) + by : by > 0 ? 0 : count - 1;
  pickCamera(scene.views[(i + count) % count]);
}

// Returns whether a camera is at the pose of the selected view.
function isAtPicked(from) {
  const at = picked && cameraOf(picked);
  return at && length(subtract(at.position, from.position)) < 1e-3 * scene.distance &&
    at.axes.every((axis, i) => dot(axis, from.axes[i]) > 0.99999);
}

// Shows the photograph overlay only while the camera is at the pose of the photograph.
function placeBlend() {
  const share = Number($('blend-slider').value) / 100, image = $('blend');
  image.hidden = !(share > 0 && !flight && isAtPicked(camera));
  if (image.hidden)
    return;
  const scale = stage.H / 2 / Math.tan(radians(camera.fov) / 2);
  const x = scale / picked.focal_x, y = scale / picked.focal_y;
  Object.assign(image.style, {
    left: `${stage.x - x * picked.center_x}px`, top: `${stage.y - y * picked.center_y}px`,
    width: `${x * picked.width}px`, height: `${y * picked.height}px`, opacity: share,
  });
}

// ---- refined poses ----

// Moves the training views to their refined poses. A camera that is at the selected view, or flies to it, follows it.
async function readPoses() {
  const { version, train } = await getJson('/api/poses'), follows = isAtPicked(flight ? flight.to : camera);
  for (const view of scene.views.filter(({ split, index }) => split === 'train' && index < train.length)) {
    view.scenePose ||= view.pose;
    view.pose = train[view.index];
  }
  posesVersion = version;
  $('camera-refined').hidden = !scene.views.some(isRefined);
  if (follows && flight)
    flight.to = cameraOf(picked);
  else if (follows)
    setCamera(cameraOf(picked));
  emit('overlay');
}

const isRefined = (view) => view.scenePose !== undefined && view.pose.some((x, i) => x !== view.scenePose[i]);

// ---- the list: photographs are loaded when they are in view, two at a time ----

function loadNext() {
  while (loadingCount < 2 && loadQueue.length > 0) {
    const { image, view, width } = loadQueue.shift();
    loadingCount++;
    image.onload = image.onerror = () => {
      loadingCount--;
      emit('overlay');
      loadNext();
    };
    image.src = photoAddress(view, width);
  }
}

function makeList() {
  const list = $('camera-list');
  const seen = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting)
        continue;
      seen.unobserve(target);
      loadQueue.push({ image: target.firstChild, view: scene.views[Number(target.dataset.i)], width: 120 });
    }
    loadNext();
  }, { root: list, rootMargin: '60px' });
  list.append(...scene.views.map((view, i) => {
    const option = document.createElement('div'), image = document.createElement('img');
    const name = document.createElement('span');
    Object.assign(option, { id: `camera-${i}`, role: 'option', title: `${view.name} (${view.split})`, className: view.split });
    option.dataset.i = i;
    option.setAttribute('aria-selected', 'false');
    image.alt = '';
    name.textContent = view.name;
    option.append(image, name);
    return option;
  }));
  for (const option of list.children)
    seen.observe(option);
}

function listKey(event) {
  const columns = getComputedStyle($('camera-list')).gridTemplateColumns.split(' ').length;
  const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
  if (event.key === 'Home' || event.key === 'End')
    picked = null;
  if (by || event.key === 'Home')
    stepCamera(by || 1);
  else if (event.key === 'End')
    stepCamera(-1);
  else
    return;
  event.preventDefault();
}

function setCameras(shown) {
  settings.cameras = shown;
  $('cameras-on').checked = shown;
  hovered = null;
  emit('overlay');
}

function startCameras() {
  const counts = {};
  for (const { split } of scene.views)
    counts[split] = (counts[split] || 0) + 1;
  $('camera-count').textContent = Object.entries(counts).map(([split, n]) => `${n} ${split}`).join(' · ');
  makeList();
  startPhotos();
  $('camera-list').onclick = (event) => {
    const option = event.target.closest('[role=option]');
    if (option)
      pickCamera(scene.views[Number(option.dataset.i)]);
  };
  $('camera-list').onkeydown = listKey;
  $('camera-list').onpointermove = (event) => {
    const option = event.target.closest('[role=option]');
    hovered = option ? scene.views[Number(option.dataset.i)] : null;
    emit('overlay');
  };
  $('camera-list').onpointerleave = () => { hovered = null; emit('overlay'); };
  $('camera-before').onclick = () => stepCamera(-1);
  $('camera-after').onclick = () => stepCamera(1);
  $('cameras-on').onchange = (event) => setCameras(event.target.checked);
  $('blend-slider').oninput = (event) => {
    $('blend-value').textContent = `${event.target.value} %`;
    placeBlend();
  };
}
