// Photographs in the frustums of the cameras, and the card that shows the selected camera's photograph.

Object.assign(settings, { photos: false, cameraSize: 1 });
const MOST_PHOTOS = 48;   // most photographs in the picture: the nearest ones
const PHOTO_WIDTH = 160;  // pixels of their files
const LEAST_PHOTO = 14;   // pixels of the smaller side of a photograph that is loaded
const photos = new Map(); // view -> <img> in the picture

// Returns the CSS transform that maps a box of w x h pixels to a quadrilateral, corner by corner from the upper left
// clockwise: Heckbert, "Fundamentals of Texture Mapping and Image Warping", 1989, section 2.2.3.
function quadTransform(w, h, [[x0, y0], [x1, y1], [x2, y2], [x3, y3]]) {
  const ax = x1 - x2, bx = x3 - x2, sx = x0 - x1 + x2 - x3, ay = y1 - y2, by = y3 - y2, sy = y0 - y1 + y2 - y3;
  const det = ax * by - bx * ay, g = (sx * by - bx * sy) / det, k = (ax * sy - sx * ay) / det;
  const m = [
    (x1 - x0 + g * x1) / w, (y1 - y0 + g * y1) / w, 0, g / w,
    (x3 - x0 + k * x3) / h, (y3 - y0 + k * y3) / h, 0, k / h,
    0, 0, 1, 0, x0, y0, 0, 1];
  return m.every(Number.isFinite) ? `matrix3d(${m.map((x) => x.toFixed(9)).join(',')})` : '';
}

function photoOf(view) {
  let image = photos.get(view);
  if (!image) {
    image = document.createElement('img');
    image.alt = '';
    image.style.height = `${PHOTO_WIDTH * view.height / view.width}px`;
    photos.set(view, image);
    loadQueue.push({ image, view, width: PHOTO_WIDTH });
    loadNext();
    $('photos').append(image);
  }
  return image;
}

// Returns the shorter side of a frustum's photograph in the picture, in pixels; 0 outside of the picture.
function photoSize(points) {
  const [x, y] = [0, 1].map((i) => points.slice(1).map((p) => p[i]));
  const isOutside = Math.max(...x) < 0 || Math.min(...x) > stage.W || Math.max(...y) < 0 || Math.min(...y) > stage.H;
  return isOutside ? 0 : Math.min(Math.max(...x) - Math.min(...x), Math.max(...y) - Math.min(...y));
}

// Returns the frusta whose photographs are shown, far ones first.
const withPhotos = () => (settings.photos ? frusta.filter(({ points }) => photoSize(points) >= LEAST_PHOTO).slice(-MOST_PHOTOS) : []);

function placePhotos() {
  const now = new Set();
  withPhotos().forEach(({ view, points, fade }, i) => {
    const image = photoOf(view);
    const transform = quadTransform(PHOTO_WIDTH, PHOTO_WIDTH * view.height / view.width, points.slice(1));
    now.add(view);
    image.hidden = !transform || !image.naturalWidth;
    Object.assign(image.style, { transform, opacity: 0.92 * fade, zIndex: i });
  });
  for (const [view, image] of photos)
    if (!now.has(view))
      image.hidden = true;
}

// Returns the view whose photograph is at a pixel, of several the nearest one; null if there is none.
function photoAt(x, y) {
  const isInside = (points) => {
    const sides = [1, 2, 3, 4].map((i) => {
      const a = points[i], b = points[i % 4 + 1];
      return (b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]);
    });
    return sides.every((s) => s > 0) || sides.every((s) => s < 0);
  };
  const found = withPhotos().filter(({ points }) => isInside(points)).pop();
  return found ? found.view : null;
}

// ---- the card of the selected camera ----

// Shows the photograph of the selected camera while the panel that has it is closed.
function showCard() {
  $('card').hidden = !picked || settings.panel === 'cameras';
  if ($('card').hidden)
    return;
  $('card-name').textContent = picked.name;
  const source = photoAddress(picked, 640);
  if ($('card-picture').getAttribute('src') !== source)
    $('card-picture').src = source;
  $('card-picture').alt = `Photograph ${picked.name}`;
}

// ---- the panel and the address ----

function showPhotos() {
  $('photos-on').checked = settings.photos;
  $('camera-size').value = Math.log2(settings.cameraSize);
  $('camera-size-value').textContent = `${+settings.cameraSize.toFixed(2)} ×`;
  $('cameras-on').checked = settings.cameras;
  emit('overlay');
}

function startPhotos() {
  $('photos-on').onchange = (event) => {
    settings.photos = event.target.checked;
    if (settings.photos)
      setCameras(true);
    showPhotos();
    keepAddress();
  };
  $('camera-size').oninput = (event) => {
    settings.cameraSize = 2 ** Number(event.target.value);
    showPhotos();
    keepAddress();
  };
  $('card-close').onclick = () => {
    $('card').hidden = true;
    $('picture').focus();
  };
  on('panel', showCard);
  showPhotos();
}

function addPhotosToAddress(parts) {
  if (!settings.cameras)
    parts.cameras = 0;
  if (settings.photos)
    parts.photos = 1;
  if (settings.cameraSize !== 1)
    parts.size = short(settings.cameraSize);
}

function readPhotosOfAddress(parts, numbers) {
  const [size] = numbers('size', 1) || [1];
  settings.cameras = parts.get('cameras') !== '0';
  settings.photos = parts.get('photos') === '1';
  settings.cameraSize = clamp(size, 0.125, 8);
}
