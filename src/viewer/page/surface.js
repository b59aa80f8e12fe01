// A surface that the browser draws while the camera moves and rendered pictures are coarse: a mesh of the scene, which
// the program has exported once.

Object.assign(settings, { surface: false });
const SURFACE = { start: 'mesh', name: 'surface', format: 'ply' }; // the command's request
const SURFACE_FILE = `exports/${SURFACE.name}.${SURFACE.format}`;
const COARSE = 0.5; // share of the requested width below which the surface replaces pictures of the moving camera
let surface = null; // {canvas, gl, program, origin, triangles}

// ---- the mesh ----

const TYPE_SIZES = { float: 4, double: 8, uchar: 1 };

// Reads a PLY mesh of vknerf export (docs/meshes.md) in dataset units: {origin, positions, colors, indices} with float
// positions relative to the origin.
function readMesh(buffer, unitLength) {
  const head = new TextDecoder('latin1').decode(buffer.slice(0, 2000)), end = head.indexOf('end_header\n') + 11;
  const count = (element) => Number((head.match(`\nelement ${element} (\\d+)`) || [])[1] || 0);
  const vertices = count('vertex'), faces = count('face'), at = {};
  let size = 0;
  for (const [, type, name] of head.slice(0, end).matchAll(/^property (float|double|uchar) (\w+)$/gm)) {
    at[name] = { type, offset: size };
    size += TYPE_SIZES[type];
  }
  if (end < 11 || !vertices || !faces || !at.x || !at.red || end + vertices * size + faces * 13 !== buffer.byteLength)
    throw new Error('not a mesh with colours');
  const view = new DataView(buffer, end), read = at.x.type === 'double' ? 'getFloat64' : 'getFloat32';
  const factor = 1 / (unitLength || 1), origin = scene.look_at;
  const positions = new Float32Array(3 * vertices), colors = new Uint8Array(3 * vertices), indices = new Uint32Array(3 * faces);
  for (let v = 0; v < vertices; v++)
    for (const [i, name] of ['x', 'y', 'z'].entries()) {
      positions[3 * v + i] = view[read](v * size + at[name].offset, true) * factor - origin[i];
      colors[3 * v + i] = view.getUint8(v * size + at.red.offset + i);
    }
  for (let f = 0; f < faces; f++)
    for (let i = 0; i < 3; i++)
      indices[3 * f + i] = view.getUint32(vertices * size + 13 * f + 1 + 4 * i, true);
  return { origin, positions, colors, indices };
}

// ---- drawing ----

const SURFACE_VERTEX = `#version 300 es
in vec3 position;
in vec3 color;
uniform vec3 eye;       // relative to the origin, as positions
uniform mat3 axes;      // columns: right, up, back
uniform vec2 focal, principal; // in the picture's half width and height
uniform float near;
out vec3 vertexColor, at;
void main() {
  vec3 to = transpose(axes) * (position - eye);
  float depth = -to.z;
  vertexColor = color;
  at = position;
  gl_Position = vec4(to.xy * focal + principal * depth, depth - 2.0 * near, depth); // infinitely far far plane
}`;
const SURFACE_FRAGMENT = `#version 300 es
precision highp float;
in vec3 vertexColor, at;
uniform vec3 boxCenter, boxHalf; // of the crop box; boxHalf.x < 0: none
uniform mat3 boxAxes;
uniform float exposure; // factor of linear light
out vec4 color;
void main() {
  vec3 within = abs(transpose(boxAxes) * (at - boxCenter)) - boxHalf;
  if (boxHalf.x >= 0.0 && max(within.x, max(within.y, within.z)) > 0.0)
    discard;
  vec3 light = mix(vertexColor / 12.92, pow((vertexColor + 0.055) / 1.055, vec3(2.4)), step(0.04045, vertexColor)) * exposure;
  color = vec4(mix(light * 12.92, 1.055 * pow(light, vec3(1.0 / 2.4)) - 0.055, step(0.0031308, light)), 1);
}`;

// Uploads a mesh; fails in browsers without WebGL 2.
function makeSurface({ origin, positions, colors, indices }) {
  const canvas = document.createElement('canvas'), gl = canvas.getContext('webgl2', { antialias: true, alpha: true });
  if (!gl)
    throw new Error('this browser has no WebGL 2');
  const program = gl.createProgram();
  for (const [type, source] of [[gl.VERTEX_SHADER, SURFACE_VERTEX], [gl.FRAGMENT_SHADER, SURFACE_FRAGMENT]]) {
    const shader = gl.createShader(type);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  gl.useProgram(program);
  for (const [name, data, type] of [['position', positions, gl.FLOAT], ['color', colors, gl.UNSIGNED_BYTE]]) {
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
    const location = gl.getAttribLocation(program, name);
    gl.enableVertexAttribArray(location);
    gl.vertexAttribPointer(location, 3, type, type === gl.UNSIGNED_BYTE, 0, 0);
  }
  gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, indices, gl.STATIC_DRAW);
  gl.enable(gl.DEPTH_TEST);
  return { canvas, gl, program, origin, triangles: indices.length / 3 };
}

// Draws the surface for the camera and returns its canvas, transparent where there is no surface.
function drawSurface() {
  const { canvas, gl, program, origin } = surface, { W, H, x, y } = stage, ratio = devicePixelRatio || 1;
  const width = Math.round(W * ratio), height = Math.round(H * ratio);
  if (canvas.width !== width || canvas.height !== height)
    Object.assign(canvas, { width, height });
  const at = (name) => gl.getUniformLocation(program, name), scale = 1 / Math.tan(radians(camera.fov) / 2);
  const half = [0, 1, 2].map((i) => (settings.crop[i + 3] - settings.crop[i]) / 2);
  gl.viewport(0, 0, width, height);
  gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
  gl.uniform3fv(at('eye'), subtract(camera.position, origin));
  gl.uniformMatrix3fv(at('axes'), false, camera.axes.flat());
  gl.uniform2f(at('focal'), scale * H / W, scale);
  gl.uniform2f(at('principal'), 2 * x / W - 1, 1 - 2 * y / H);
  gl.uniform1f(at('near'), scene.distance * 1e-3);
  gl.uniform3fv(at('boxCenter'), subtract(boxCenter(), origin));
  gl.uniform3fv(at('boxHalf'), settings.cropOn ? half : [-1, 0, 0]);
  gl.uniformMatrix3fv(at('boxAxes'), false, boxAxes().flat());
  gl.uniform1f(at('exposure'), 2 ** settings.exposure);
  gl.drawElements(gl.TRIANGLES, surface.triangles * 3, gl.UNSIGNED_INT, 0);
  return canvas;
}

// Returns whether the surface replaces the rendered picture: until the first picture of the camera at rest.
function showsSurface() {
  return settings.surface && surface && settings.map === 'rgb' && settings.second === 'none' && movingShare < COARSE &&
    !(shown && shown.still && shown.key === JSON.stringify(frameParameters()));
}

// ---- the panel's controls ----

function showSurface() {
  $('surface').hidden = scene.dynamic;
  $('surface-on').checked = settings.surface;
  $('surface-make').hidden = !surface;
  $('surface-hint').textContent = surface ?
    `${SURFACE_FILE}, ${surface.triangles.toLocaleString('en')} triangles, is drawn by this browser while rendered pictures are coarse.` :
    'Exports a mesh, with the number of voxels in the panel Export. This browser then draws the mesh while rendered pictures are coarse.';
}

async function loadSurface() {
  try {
    const response = await fetched('/api/file', { name: SURFACE_FILE });
    surface = makeSurface(readMesh(await response.arrayBuffer(), scene.unit_length));
    settings.surface = true;
  } catch (error) {
    settings.surface = false;
    notice(`No surface: ${error.message}`, 8000);
  }
  showSurface();
  wake();
}

async function exportSurface() {
  settings.surface = await startTask({
    ...SURFACE, resolution: exporting.resolution, overwrite: true, ...(settings.cropOn ? { crop: cropNumbers() } : { all: true }),
  });
  showSurface();
}

function startSurface() {
  $('surface-on').onchange = (event) => {
    settings.surface = event.target.checked;
    if (settings.surface && !surface)
      exportSurface();
    wake();
  };
  $('surface-make').onclick = exportSurface;
  taskEnded.push(({ name }) => name === SURFACE_FILE && loadSurface());
  showSurface();
  listResults().then((names) => names.includes(SURFACE_FILE) && !scene.dynamic && loadSurface());
}
