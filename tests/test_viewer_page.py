#!/usr/bin/env python3
"""Tests the viewer's page in a headless browser, against `vknerf train --view` of a short run of the bundled scene, which
stays open after the training, and `vknerf view`: pause, save and stop of a training, navigation by mouse, touch and
keys, training cameras, maps, crop box, paths, videos and exports, and the end of the program; without complaints by the
browser. Small pictures and a single browser save time: the test takes over 20 s because it compiles and trains twice,
and waits for pictures and commands."""
import base64
import json
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.dont_write_bytecode = True  # no bytecode beside this file among the sources
import viewer_client
from browser import Browser
from viewer_client import Program

VKNERF = os.environ['VKNERF_BIN']
WIDTH, HEIGHT = 700, 500
SMALL = viewer_client.SMALL.format(64).split()
SLACK = 60  # seconds until a missing event is a failure

# Averages an image, or its part x, y, w, h, to `size` x `size` values of red, green and blue.
MEANS = '''
function means(image, size, part, background) {
  const canvas = document.createElement('canvas'), context = canvas.getContext('2d');
  canvas.width = canvas.height = size;
  if (background) {
    context.fillStyle = background;
    context.fillRect(0, 0, size, size);
  }
  context.imageSmoothingQuality = 'high';
  context.drawImage(image, ...part, 0, 0, size, size);
  return Array.from(context.getImageData(0, 0, size, size).data).filter((_, i) => i % 4 !== 3);
}'''

# Averages the picture, or a part of it in pixels of the page.
PIXELS = MEANS + '''
const [size, part] = arguments, picture = document.getElementById('picture');
const ratio = picture.width / picture.clientWidth;
return means(picture, size, (part || [0, 0, picture.clientWidth, picture.clientHeight]).map((x) => x * ratio));'''

# Averages the photograph next to the picture, and the file of its view, both on white.
PHOTOGRAPH = MEANS + '''
const [size, file] = arguments, bytes = Uint8Array.from(atob(file), (letter) => letter.charCodeAt(0));
return createImageBitmap(new Blob([bytes])).then((whole) =>
  [document.getElementById('photo-picture'), whole].map((image) => means(image, size, [], '#fff')));'''


def progress(text, began=time.monotonic()):
    if os.environ.get('VERBOSE'):
        print(f'{time.monotonic() - began:6.1f} s  {text}', flush=True)


def fail(text):
    raise AssertionError(text)


def until(seen, what):
    """Returns the first true value of seen(); fails after SLACK seconds."""
    end = time.monotonic() + SLACK
    while time.monotonic() < end:
        value = seen()
        if value:
            return value
        time.sleep(0.1)
    fail(f'never: {what}')


# ---- what the page shows ----

def text(page, element):
    return page.script('return document.getElementById(arguments[0]).textContent', element)


def pixels(page, size=24, part=None):
    return page.script(PIXELS, size, part)


def difference(a, b):
    """Returns the mean difference of two pictures, 0 to 255."""
    return sum(abs(x - y) for x, y in zip(a, b)) / len(a)


# The bar is updated when the frame has arrived; the frame is drawn in the next animation frame.
REFINED = '''
const done = () => document.getElementById('progress').classList.contains('done');
return done() && new Promise((drawn) => requestAnimationFrame(() => drawn(done())));'''


def refined(page):
    """Waits until the page's picture is refined and drawn; returns its pixels."""
    until(lambda: page.script(REFINED), 'X-Refined 1')
    return pixels(page)


def view_parameters(page):
    """Returns the parameters of the view in the address."""
    return until(lambda: dict(urllib.parse.parse_qsl(page.script('return location.hash.slice(1)'))), 'an address of the view')


def pose(page):
    return [float(x) for x in view_parameters(page)['pose'].split(',')]


def changes(page, do, what, least=0.5, picture=True):
    """Checks that an action moves the camera, in the address and in the picture; returns the new pose."""
    old, before = view_parameters(page)['pose'], refined(page) if picture else None
    do()
    until(lambda: view_parameters(page)['pose'] != old, f'{what}: another pose')
    if picture:
        until(lambda: difference(pixels(page), before) > least, f'{what}: another picture')
    return pose(page)


def panel(page, name):
    if not page.script("return document.getElementById('panel-' + arguments[0]).checkVisibility()", name):
        page.click(f'#rail [data-panel={name}]')


def choose(page, element, value, event='input'):
    page.script('''const element = document.getElementById(arguments[0]) || document.querySelector(arguments[0]);
element.value = arguments[1]; element.dispatchEvent(new Event(arguments[2], {bubbles: true}));''', element, value, event)


def coarsen(page):
    """Sets an eighth of the window's resolution, which users cannot: a quarter of the coarsest setting's pixels."""
    page.script("document.getElementById('resolution').add(new Option('an eighth', '0.125'))")
    choose(page, 'resolution', '0.125', 'change')


def quiet(page):
    """Checks that the browser has no complaints, such as errors or violations of the page's policy. Refused paths and
    commands, about which the page asks or tells, and slow software instead of a GPU are none."""
    said = [line for line in page.log() if not line.startswith(('INFO', 'DEBUG')) and
            not re.search('/api/(path|task|file).* status of 40[049]|GL Driver Message', line)]
    if said:
        fail(f'the console says: {said}')


# ---- training ----

def watch_training(page, run):
    progress('watch_training')
    training = Program('train', 'assets/demo', '--out', run, '--downscale', '4', '--seconds', '600', '--seed', '1',
                       '--set', 'scene.refine=poses', '--set', 'refine.start=-1', '--view=0', *SMALL)
    page.go(training.url[:-4] + 'XXXX')
    if 'does not open the viewer' not in page.script('return document.body.textContent'):
        fail('a wrong token is not explained')
    page.log()  # includes the status 403
    page.go(training.url)
    until(lambda: re.fullmatch(r'(Opening the scene|Rendering the first picture|(Decoding|Compiling|Setting up) [a-z ]+)( \d+/\d+)?',
                               text(page, 'start-text')), 'what the program does before the first picture')
    page.script('sessionStorage.clear()')
    until(lambda: '×' in text(page, 'readout'), 'a frame while training')
    coarsen(page)
    if visible(page, 'start'):
        fail('the first picture is covered')
    panel(page, 'training')
    until(lambda: text(page, 'training-state') == 'training' and number(text(page, 't-step')) > 0, 'steps')
    until(lambda: re.search(r'training rays [\d.]+ dB', text(page, 'curve-psnr')), 'a curve of PSNR')
    panel(page, 'cameras')
    until(lambda: page.script("return document.getElementById('camera-refined').checkVisibility()"), 'refined cameras')
    panel(page, 'training')

    until(lambda: re.match(r'\d+:\d\d', text(page, 't-eta')), 'the time left')
    for figure in 'rate', 'psnr', 'loss', 'learning-rate', 'loss-scale':
        until(lambda: re.match(r'[\d.]', text(page, 't-' + figure)), figure)  # pylint: disable=cell-var-from-loop
    choose(page, 'share', '50')
    choose(page, 'share', '50', 'change')
    until(lambda: training.json('/api/state')['share_limit'] == 0.5, 'the share of the device')
    if visible(page, 'end'):
        fail('a training can be ended without being stopped')

    progress('pause')
    page.click('#pause')
    until(lambda: text(page, 'training-state') == 'paused', 'paused')
    step = training.json('/api/state')['step']
    time.sleep(0.5)
    if training.json('/api/state')['step'] != step:
        fail('steps while paused')
    page.click('#pause')
    until(lambda: training.json('/api/state')['step'] > step, 'steps after resuming')
    page.click('#save')
    until(lambda: any(name.endswith('.safetensors') for name in os.listdir(run)), 'a checkpoint')

    progress('stop')
    page.click('#stop')
    page.click('#confirm button[value=""]')
    if training.process.poll() is not None:
        fail('stopped though the dialog was left')
    until(lambda: training.json('/api/state')['step'] > 300, 'something to look at')
    page.key('k')
    panel(page, 'training')
    page.click('#stop')
    page.click('#confirm button[value=stop]')
    until(lambda: text(page, 'run-state') == 'stopped', 'the training is stopped and shown')
    if not re.fullmatch(r'The training was stopped at step \d+ and is saved', text(page, 'result-text')):
        fail(f"what has come of the training: {text(page, 'result-text')}")
    if text(page, 'result-command') != f'vknerf train --resume {run}':
        fail(f"how the training is continued: {text(page, 'result-command')}")
    page.click('#result-copy')
    until(lambda: 'opied' in text(page, 'notice'), 'the command is copied')
    for button in 'pause', 'save', 'stop', 'share':
        if visible(page, button):
            fail(f'{button} after the training')
    if page.script("return document.querySelectorAll('#keys li').length") != 1:
        fail('the keyframe is lost')
    panel(page, 'path')
    page.click('#keys [data-act=delete]')
    refined(page)
    quiet(page)
    return training


def end_program(page, program):
    """Ends the program from the page, which asks because of unsaved keyframes."""
    progress('end_program')
    panel(page, 'training')
    page.click('#end')
    page.click('#confirm-end button[value=""]')
    if program.process.poll() is not None:
        fail('ended though the dialog was left')
    page.click('#end')
    page.click('#confirm-end button[value=end]')
    if program.end() != 130:
        fail(f'a stopped training ends with {program.process.returncode}: {program.errors}')
    until(lambda: text(page, 'run-state') == 'the program has ended', 'the page says that the program has ended')
    page.log()  # includes requests after the server's end


def visible(page, element):
    return page.script('return document.getElementById(arguments[0]).checkVisibility()', element)


def number(words):
    return int(words.replace(',', '')) if re.fullmatch(r'[\d,]+', words) else 0


# ---- moving about ----

def move_about(page):
    progress('move_about')
    middle = (250, 250)
    quiet(page)
    before, home = refined(page), pose(page)
    if max(before) - min(before) < 30:
        fail('the picture is blank')
    at = changes(page, lambda: page.pointers([middle, (300, 260), (340, 270)]), 'a drag')
    changes(page, lambda: page.wheel(*middle, 500), 'the wheel')
    until(lambda: distance(pose(page)) > distance(at) * 1.2, 'the wheel goes away')
    changes(page, lambda: page.pointers([middle, (280, 250), (310, 250)], button=2), 'a shift by the right button')
    page.key('h')
    until(lambda: difference(pixels(page), before) < 2, 'home again')
    changes(page, lambda: page.double_click(200, 300), 'a double click')
    page.key('h')
    until(lambda: difference(pixels(page), before) < 2, 'home again')
    changes(page, lambda: page.key('w', 300), 'a key')
    page.key('h')
    until(lambda: difference(pixels(page), before) < 2, 'home again')

    turned = changes(page, lambda: page.pointers([middle, (220, 250), (180, 250)], kind='touch'), 'a finger')
    changes(page, lambda: page.pointers([(220, 250), (190, 250), (160, 250)], [(280, 250), (310, 250), (340, 250)],
                                        kind='touch'), 'two fingers')
    until(lambda: distance(pose(page)) < distance(turned) * 0.8, 'fingers that part come closer')
    page.key('f')
    page.key('h')
    until(lambda: near(pose(page), home), 'home again')
    fly = changes(page, lambda: page.pointers([middle, (300, 250), (350, 250)]), 'a drag in fly mode')
    if not near([fly[i] for i in (3, 7, 11)], [home[i] for i in (3, 7, 11)]):
        fail('looking around moves the camera')
    page.key('f')
    page.key('h')
    until(lambda: near(pose(page), home), 'home again')
    load_again(page)
    coarsen(page)


def lose_connection(page):
    """Checks that without a connection, as after a broken ssh -L, the page says so, and then reconnects."""
    page.devtools('Network.enable')
    page.devtools('Network.emulateNetworkConditions', offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)
    page.key('w', 200)
    until(lambda: 'does not answer' in text(page, 'notice'), 'a notice that the server does not answer')
    page.devtools('Network.emulateNetworkConditions', offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1)
    until(lambda: not page.script("return document.getElementById('notice').checkVisibility()"), 'the notice goes')
    refined(page)
    page.log()  # includes the failed requests


def distance(camera):
    return math.hypot(camera[3], camera[7], camera[11])  # the bundled scene is around the origin


def show_maps(page):
    progress('show_maps')
    pictures = {}
    for key, name in ('1', 'rgb'), ('2', 'depth'), ('3', 'normal'), ('4', 'opacity'):
        page.key(key)
        until(lambda: view_parameters(page).get('map') == name, f'the map {name}')  # pylint: disable=cell-var-from-loop
        pictures[name] = refined(page)
    names = sorted(pictures)
    for i, a in enumerate(names):
        for b in names[i + 1:]:
            if difference(pictures[a], pictures[b]) < 2:
                fail(f'{a} looks like {b}')
    page.click('#maps [data-map=rgb]')
    until(lambda: difference(pixels(page), pictures['rgb']) < 2, 'colours again')
    page.key('b')
    until(lambda: difference(pixels(page), pictures['rgb']) > 20, 'a black background')
    page.key('b')
    compare_maps(page, pictures)
    show_depths(page, pictures)


FRAMES = "return performance.getEntriesByType('resource').filter((entry) => entry.name.includes('/api/frame')).length"


def halves(picture):
    """Returns the left and the right half of a picture of 24 x 24 values of three colours."""
    return [[x for i, x in enumerate(picture) if (i // 3 % 24 < 12) == left] for left in (True, False)]


def compare_maps(page, pictures):
    """Shows two maps beside each other; their divider is moved without another frame."""
    panel(page, 'view')
    choose(page, 'second', 'opacity', 'change')
    page.key('\ue00c')  # escape: close the panel
    until(lambda: difference(halves(refined(page))[1], halves(pictures['opacity'])[1]) < 3, 'opacity on the right')
    if difference(halves(pixels(page))[0], halves(pictures['rgb'])[0]) > 3:
        fail('no colours on the left')
    frames, (x, y) = page.script(FRAMES), (WIDTH // 2, HEIGHT // 2)
    page.pointers([(x, y), (x - 100, y), (14, y)])
    until(lambda: difference(pixels(page), pictures['opacity']) < 8, 'opacity nearly everywhere')
    if page.script(FRAMES) != frames:
        fail('moving the divider renders frames')
    until(lambda: view_parameters(page).get('divider') == '0.02', 'the divider in the address')
    page.script("document.getElementById('divider').focus()")
    page.key('\ue014')  # right
    until(lambda: view_parameters(page).get('divider') == '0.04', 'the divider is moved by a key')
    choose(page, 'second', 'none', 'change')
    until(lambda: difference(refined(page), pictures['rgb']) < 2, 'one map again')


def show_depths(page, pictures):
    """Checks the legend and the value under the cursor, colours, range and exposure, and the pivot of a double click."""
    home = pose(page)
    choose(page, 'exposure', '2')
    until(lambda: difference(refined(page), pictures['rgb']) > 3, 'a brighter picture')
    until(lambda: view_parameters(page).get('exposure') == '2', 'the exposure in the address')
    choose(page, 'exposure', '0')
    page.key('2')
    x, y = WIDTH // 2, HEIGHT * 11 // 20
    page.move(x, y)
    value = until(lambda: re.match(r'([\d.]+) units · opacity \d+ %', text(page, 'legend-value')), 'a value under the cursor')
    low, high = (float(text(page, 'legend-' + end).split()[0]) for end in ('near', 'far'))
    if not low < float(value[1]) < high:
        fail(f'the depth {value[1]} is not from {low} to {high}')
    before = refined(page)
    choose(page, 'palette', 'turbo', 'change')
    until(lambda: difference(refined(page), before) > 3, 'other colours')
    choose(page, 'range-far', str((low + high) / 2), 'change')
    until(lambda: view_parameters(page).get('range', ',').split(',')[1] == short((low + high) / 2), 'a range in the address')
    if page.script("return document.getElementById('range-auto').checked"):
        fail('the range is still automatic')
    choose(page, 'palette', 'viridis', 'change')
    page.click('#maps [data-map=rgb]')
    page.double_click(x, y)  # looks at the surface from where the camera is
    until(lambda: abs(float(view_parameters(page)['distance']) - float(value[1])) < 0.02 * float(value[1]), 'a pivot on the surface')
    page.key('h')
    until(lambda: near(pose(page), home), 'home again')
    page.script("const auto = document.getElementById('range-auto'); auto.checked = true; auto.dispatchEvent(new Event('change'))")
    if page.script("return document.getElementById('legend').checkVisibility()"):
        fail('a legend of colours')


def short(number):
    return f'{number:.6g}'


def move_time(page, run):
    """Checks the time of a dynamic scene, in a small window because its pictures are slower."""
    progress('move_time')
    subprocess.run([VKNERF, 'train', 'assets/moving', '--model', 'dynamic', '--out', run, '--downscale', '8', '--steps', '48',
                    '--seed', '1', '--quiet', '--set', 'scene.aabb_scale=4', *SMALL], check=True, stdout=subprocess.DEVNULL)
    program = Program('view', run, '--port', '0')
    page.resize(400, 300)
    page.go(program.url)
    until(lambda: '×' in text(page, 'readout'), 'a frame of a scene that moves')
    panel(page, 'training')
    for element in 'pause', 'save', 'stop', 'share', 't-eta', 'result':
        if visible(page, element):
            fail(f'{element} where nothing is trained')
    if text(page, 'training-state') != 'recorded run' or not visible(page, 'end'):
        fail('a recorded run that cannot be ended')
    page.key('\ue00c')  # escape: the open panel hides the time in a window this small
    coarsen(page)
    before = refined(page)
    choose(page, 'time', '0.5')
    until(lambda: view_parameters(page).get('time') == '0.5', 'the time in the address')
    if refined(page) == before:
        fail('nothing moves')
    page.click('#time-play')
    until(lambda: text(page, 'time-value') not in ('0.50', '0.00'), 'the time runs')
    page.click('#time-play')
    scene = program.json('/api/scene')
    around = [x + side * scene['distance'] / 2 for side in (-1, 1) for x in scene['look_at']]
    if not near(first_box(page), around):
        fail(f'the crop box of a large scene: {first_box(page)} instead of {around}')
    choose(page, 'time', '0')
    until(lambda: refined(page) == before, 'the begin again')
    page.go('about:blank')
    program.signal()
    if program.end() != 0:
        fail(f'vknerf view ends with {program.process.returncode}: {program.errors}')


def first_box(page):
    """Returns the limits in the view panel."""
    values = page.script("return [...document.querySelectorAll('#crop .double input')].map((input) => Number(input.value))")
    return values[::2] + values[1::2]


def crop(page, box):
    progress('crop')
    panel(page, 'view')
    if not near(first_box(page), box):
        fail(f'the crop box of an object: {first_box(page)} instead of {box}')
    before = refined(page)
    choose(page, '#crop [aria-label="Crop Z to"][type=number]', str((box[2] + box[5]) / 2), 'change')
    until(lambda: difference(pixels(page), before) > 2, 'a cropped picture')
    if float(view_parameters(page).get('crop', '0,0,0,0,0,0').split(',')[5]) != (box[2] + box[5]) / 2:
        until(lambda: 'crop' in view_parameters(page), 'the crop box in the address')
    drag_handles(page, box)
    page.click('#crop-on')
    until(lambda: difference(pixels(page), before) < 2, 'the whole picture again')
    if page.script("return document.getElementById('handles').checkVisibility()"):
        fail('handles without a crop box')
    page.script("document.getElementById('crop-reset').click(); document.getElementById('crop-on').checked")


HANDLE = '''
const at = document.querySelectorAll(arguments[0])[arguments[1]].getBoundingClientRect();
return [at.x + at.width / 2, at.y + at.height / 2].map(Math.round);'''


def limits(page):
    """Returns the limits of the crop box in the command that exports it."""
    command = text(page, 'crop-command')
    found = re.fullmatch(r"vknerf export (\S+|'.*') --mesh object\.ply --crop=(.*)", command) or fail(command)
    return [float(x) for x in found[2].split(',')]


def pixel_of(page, point):
    """Returns the position of a point in the picture, from the pose in the address."""
    p, fov = pose(page), float(view_parameters(page)['fov'])
    left = page.script("return document.getElementById('panels').getBoundingClientRect().left")
    x, y, z = (sum((point[i] - p[4 * i + 3]) * p[4 * i + j] for i in range(3)) for j in range(3))
    scale = HEIGHT / 2 / math.tan(math.radians(fov) / 2)
    return left / 2 - x / z * scale, HEIGHT / 2 + y / z * scale


def drag_handles(page, box):
    """Checks that a dragged handle stays under the pointer: faces move along their axis, corners along three."""
    progress('drag_handles')
    inner = [mid + side * span / 8 for side in (-1, 1) for mid, span in
             (((box[i] + box[i + 3]) / 2, box[i + 3] - box[i]) for i in range(3))]
    for i in range(6):
        choose(page, f'#crop [aria-label="Crop {"XYZ"[i % 3]} {"from" if i < 3 else "to"}"][type=number]', str(inner[i]), 'change')
    until(lambda: max(abs(a - b) for a, b in zip(limits(page), inner)) < 1e-3, 'the limits in the command')
    face = '.handle[aria-label="Face of the crop box, Z to"]'
    old = pose(page)
    for kind in 'mouse', 'touch':
        before = limits(page)
        middle = [(before[i] + before[i + 3]) / 2 for i in range(2)]
        x, y = page.script(HANDLE, face, 0)
        if math.dist((x, y), pixel_of(page, middle + [before[5]])) > 2:
            fail(f'the handle is at {x}, {y}')
        page.pointers([(x, y), (x + 2, y + 10), (x + 3, y + 20)], kind=kind)
        until(lambda: limits(page) != before, f'a face is dragged by {kind}')  # pylint: disable=cell-var-from-loop
        after = limits(page)
        if after[:5] != before[:5] or not after[5] < before[5]:
            fail(f'dragging the face from {before} to {after}')
        if abs(pixel_of(page, middle + [after[5]])[1] - y - 20) > 3:
            fail('the face is not under the pointer')
    before = limits(page)
    page.script("document.querySelector(arguments[0]).focus()", face)
    page.key('\ue013')  # up
    until(lambda: abs(limits(page)[5] - before[5] - (box[5] - box[2]) / 100) < 1e-3, 'a face is moved by a key')
    corner = [page.script(HANDLE, '.corner', i) for i in range(8)]
    best = max(range(8), key=lambda i: min(math.dist(corner[i], other) for j, other in enumerate(corner) if j != i))
    before, (x, y) = limits(page), corner[best]
    page.pointers([(x, y), (x + 8, y - 6), (x + 16, y - 12)])
    until(lambda: limits(page) != before, 'a corner is dragged')
    if math.dist(page.script(HANDLE, '.corner', best), (x + 16, y - 12)) > 3:
        fail('the corner is not under the pointer')
    if sum(a != b for a, b in zip(limits(page), before)) < 2:
        fail('a corner moves one limit only')
    if not near(pose(page), old):
        fail('dragging a handle moves the camera')
    rotate_box(page, inner)
    quiet(page)


def face_of(box, k, side):
    """Returns the middle of a face of a rotated box, and the rotated axis across the face."""
    axis = [float(i == k) for i in range(3)]
    for about, angle in enumerate(box[6:]):
        a, b = (about + 1) % 3, (about + 2) % 3
        sine, cosine = math.sin(math.radians(angle)), math.cos(math.radians(angle))
        axis[a], axis[b] = cosine * axis[a] - sine * axis[b], sine * axis[a] + cosine * axis[b]
    return [(box[i] + box[i + 3]) / 2 + side * axis[i] * (box[k + 3] - box[k]) / 2 for i in range(3)], axis


def rotate_box(page, inner):
    """Checks a rotated box: a dragged face moves along its axis, and the opposite face stays."""
    progress('rotate_box')
    for i in range(6):
        choose(page, f'#crop [aria-label="Crop {"XYZ"[i % 3]} {"from" if i < 3 else "to"}"][type=number]', str(inner[i]), 'change')
    before = refined(page)
    for axis, angle in zip('XYZ', (20, -35, 30)):
        choose(page, f'#crop [aria-label="Crop {axis} rotation"][type=number]', str(angle), 'change')
    until(lambda: difference(pixels(page), before) > 0.1, 'a rotated box in the picture')
    old = limits(page)
    if not near(old, inner + [20, -35, 30]):
        fail(f'the box {old} instead of {inner}, rotated')
    until(lambda: view_parameters(page).get('crop', '').endswith(',20,-35,30'), 'the rotation in the address')
    for k in range(3):
        at = page.script(HANDLE, f'.handle[aria-label="Face of the crop box, {"XYZ"[k]} to"]', 0)
        if math.dist(at, pixel_of(page, face_of(old, k, 1)[0])) > 2:
            fail(f'the rotated handle {k} is at {at}')
    x, y = page.script(HANDLE, '.handle[aria-label="Face of the crop box, X to"]', 0)
    to = [round(v) for v in pixel_of(page, [a + b / 10 for a, b in zip(*face_of(old, 0, 1))])]
    page.pointers([(x, y), ((x + to[0]) // 2, (y + to[1]) // 2), to])
    until(lambda: limits(page) != old, 'a rotated face is dragged')
    new = limits(page)
    if math.dist(pixel_of(page, face_of(new, 0, 1)[0]), to) > 3:
        fail(f'the rotated face is not under the pointer: {new}')
    if math.dist(face_of(new, 0, -1)[0], face_of(old, 0, -1)[0]) > 1e-3 * (old[3] - old[0]):
        fail(f'the opposite face moves: {old}, {new}')
    if not abs(new[3] - new[0] - (old[3] - old[0])) > 1e-3 or abs(new[4] - new[1] - (old[4] - old[1])) > 1e-3:
        fail(f'other edges change: {old}, {new}')
    page.script("document.getElementById('crop-reset').click()")
    until(lambda: len(limits(page)) == 6, 'no rotation after a reset')
    turn_ring(page, inner)


def turn_ring(page, inner):
    """Turns the box about X by the handle of its ring, which stays under the pointer, and about Y by a key."""
    for i in range(6):
        choose(page, f'#crop [aria-label="Crop {"XYZ"[i % 3]} {"from" if i < 3 else "to"}"][type=number]', str(inner[i]), 'change')
    ring = '.handle[aria-label="Rotation of the crop box about X"]'
    middle = [(inner[i] + inner[i + 3]) / 2 for i in range(3)]
    radius = 0.55 * math.dist(inner[:3], inner[3:])
    at = lambda angle: [round(v) for v in pixel_of(page, [
        middle[0], middle[1] + radius * math.cos(math.radians(angle)), middle[2] + radius * math.sin(math.radians(angle))])]
    time.sleep(0.2)
    x, y = page.script(HANDLE, ring, 0)
    if math.dist((x, y), at(0)) > 2:
        fail(f'the handle of the ring is at {x}, {y} instead of {at(0)}')
    page.pointers([(x, y), at(15), at(30)])
    until(lambda: len(limits(page)) == 9 and limits(page)[6] > 20, 'a box turned by its ring')
    if limits(page)[7:] != [0, 0] or abs(limits(page)[6] - 30) > 3 or math.dist(page.script(HANDLE, ring, 0), at(30)) > 4:
        fail(f'turning the ring to 30 degrees: {limits(page)}')
    before = [face_of(limits(page), k, 1)[1] for k in range(3)]
    page.script("document.querySelector(arguments[0]).focus()", ring.replace('about X', 'about Y'))
    page.key('\ue013')  # up
    until(lambda: limits(page)[7] != 0, 'a box turned by a key')
    sine, cosine = math.sin(math.radians(1)), math.cos(math.radians(1))
    for k, (a, b, c) in enumerate(before):
        axis = face_of(limits(page), k, 1)[1]
        if not near(axis, [cosine * a + sine * c, b, cosine * c - sine * a]):
            fail(f'turning about Y by a degree: {limits(page)}')
    page.script("document.getElementById('crop-reset').click()")


# ---- training cameras ----

def on_screen(page, view):
    """Returns the position of a camera's lines, from the pose in the address; None behind or outside the picture."""
    p, fov = pose(page), float(view_parameters(page)['fov'])
    panels = page.script("const r = document.getElementById('panels').getBoundingClientRect(); return r.width ? r.left : innerWidth")
    to = [view['pose'][3] - p[3], view['pose'][7] - p[7], view['pose'][11] - p[11]]
    x, y, z = (sum(to[i] * p[4 * i + j] for i in range(3)) for j in range(3))
    scale = HEIGHT / 2 / math.tan(math.radians(fov) / 2)
    if -z < 0.5:
        return None
    u, v = panels / 2 - x / z * scale, HEIGHT / 2 + y / z * scale
    return (round(u), round(v)) if 20 < u < panels - 20 and 70 < v < HEIGHT - 120 else None


def pick_cameras(page, views):
    progress('pick_cameras')
    panel(page, 'cameras')
    page.prefer(reduced_motion='no-preference')
    time.sleep(0.8)
    found = [(view, on_screen(page, view)) for view in views]
    found = [(view, at) for view, at in found if at]
    if not found:
        fail('no camera is in the picture')
    # Selects an isolated camera, to avoid picking the other of two overlapping ones.
    def alone(entry):
        return min([math.dist(entry[1], at) for view, at in found if view is not entry[0]] or [1e9])
    view, at = max(found, key=alone)
    page.move(*at)
    page.pointers([at])
    until(lambda: view['name'] in text(page, 'photo-name') and view['split'] in text(page, 'photo-name'),
          f"{view['name']} picked in the picture")
    until(lambda: near(pose(page), view['pose']), 'there')
    until(lambda: page.script("return document.getElementById('photo-picture').naturalWidth") > 0, 'its photograph')
    with open(f"assets/demo/{view['split']}/{view['name']}", 'rb') as file:
        shown, whole = page.script(PHOTOGRAPH, 8, base64.b64encode(file.read()).decode())
    if difference(shown, whole) > 5:
        fail(f'the photograph is not that of the file: {shown} instead of {whole}')

    # The photograph beside the picture and over it: the model shows what it was trained on.
    choose(page, 'blend-slider', '100')
    until(lambda: page.script("return document.getElementById('blend').checkVisibility()"), 'the photograph over it')
    page.script("document.getElementById('camera-list').focus()")
    page.key('\ue010')  # end
    until(lambda: near(pose(page), views[-1]['pose']), 'the last camera by keys')
    until(lambda: page.script("return document.getElementById('photo-picture').src.includes(arguments[0])",
                              f"view={views[-1]['index']}&"), 'its photograph')
    choose(page, 'blend-slider', '0')
    page.prefer(reduced_motion='reduce')
    until(lambda: page.script("return document.querySelector('#camera-list img').naturalWidth") > 0, 'the list’s pictures')
    quiet(page)


def near(a, b):
    return max(abs(x - y) for x, y in zip(a, b)) < 1e-3


# ---- a path ----

def make_path(page, run, work):
    progress('make_path')
    page.key('h')
    panel(page, 'path')
    for name, value in (('seconds', '0.5'), ('fps', '8'), ('width', '96'), ('height', '64'), ('name', NAME)):
        page.type('#path-' + name, value)
    for i in range(3):
        page.click('#key-add')
        if i < 2:
            changes(page, lambda: page.pointers([(200, 250), (240, 240), (260, 235)]), 'to the next keyframe', picture=False)
    page.call('/refresh')  # the draft stays
    until(lambda: page.script("return document.querySelectorAll('#keys li').length") == 3, 'three keyframes')
    coarsen(page)
    page.click('#keys li:nth-child(3) [data-act=up]')
    page.click('#keys li:nth-child(2) [data-act=down]')
    page.click('#path-save')
    until(lambda: 'vknerf render' in text(page, 'path-command'), 'the saved path')
    file = os.path.join(run, 'paths', NAME + '.json')
    with open(file) as saved:
        keys = json.load(saved)['keyframes']
    if len(keys) != 3:
        fail(f'{len(keys)} keyframes in the file')
    edit_path(page, file)

    place_of = lambda: [pose(page)[i] for i in (3, 7, 11)]
    page.click('#keys li:nth-child(1) [data-act=go]')
    until(lambda: near(place_of(), keys[0]['position']), 'at the first keyframe')
    page.click('#path-play')
    until(lambda: near(place_of(), keys[2]['position']), 'at the last one, after the preview')
    until(lambda: text(page, 'path-play') == 'Preview', 'the preview ends')
    out = os.path.join(run, 'videos', NAME)
    page.click('#path-video')
    page.click('#ask-yes')  # the path has changed since it was saved
    result(page, NAME + '.mp4')
    page.click('#task-play')
    until(lambda: page.script("return document.getElementById('player-video').videoWidth") == 96, 'the video is played')
    page.click('#player button')
    page.click('#task-close')
    frames = sorted(name for name in os.listdir(out) if name.endswith('.png'))
    if len(frames) != 4:
        fail(f'{frames} for half a second at 8 frames a second')
    made = [page.png_pixels(os.path.join(out, name), 16) for name in frames]
    for frame in 0, 1:
        choose(page, 'path-scrub', str(frame / 3))
        choose(page, 'path-scrub', str(frame / 3), 'change')
        refined(page)
        left = page.script("return document.getElementById('panels').getBoundingClientRect().left")
        w = min(left, HEIGHT * 1.5)
        seen = pixels(page, 16, [left / 2 - w / 2, HEIGHT / 2 - w / 3, w, w / 1.5])
        # The page's frame has more rays per pixel: much closer than two frames are, but not equal.
        differences = [difference(seen, other) for other in made]
        progress(f'{frames[frame]}: {differences}')
        if differences[frame] > 8 or any(other < 2 * differences[frame] for i, other in enumerate(differences) if i != frame):
            fail(f'{frames[frame]} is not what the page showed: frames differ by {differences}')
    exchange_files(page, work, file)
    saved_paths(page, work, file)
    quiet(page)


NAME = 'turn ü'


def path_keys(page):
    return page.script('''const name = Object.keys(sessionStorage).find((name) => name.startsWith('vknerf path'));
return JSON.parse(sessionStorage.getItem(name)).keys.map(({ thumb, ...key }) => key);''')


def result(page, name):
    """Waits for the result of the command that the page has started."""
    until(lambda: text(page, 'task-name') == name and visible(page, 'task-download') or
          re.search('rror|ailed', text(page, 'task-text')) and fail(text(page, 'task-text')), f'{name} is made')


def edit_path(page, file):
    """Edits keyframes by fields and handles, undoes that, and saves again: the page asks before it overwrites."""
    before = path_keys(page)
    field = '#keys li:nth-child(3) [data-field=fov]'
    page.script('document.querySelector(arguments[0]).focus()', field)
    choose(page, field, '33', 'change')
    until(lambda: path_keys(page)[2]['fov'] == 33, 'another field of view')
    page.wheel(250, 250, 900)  # away, so that the keyframes are in the picture
    until(lambda: visible(page, 'gizmo'), 'handles of the selected keyframe')
    time.sleep(0.3)
    x, y = page.script(HANDLE, '.gizmo', 3)  # the camera itself
    page.pointers([(x, y), (x - 10, y), (x - 20, y + 14)])
    moved = until(lambda: (lambda keys: keys[2]['position'] != before[2]['position'] and keys)(path_keys(page)), 'a dragged keyframe')
    if math.dist(page.script(HANDLE, '.gizmo', 3), (x - 20, y + 14)) > 3:
        fail('the keyframe is not under the pointer')
    by = [[a - b for a, b in zip(moved[2][name], before[2][name])] for name in ('position', 'look_at')]
    if math.dist(*by) > 1e-6 * math.hypot(*by[0]) + 1e-9 or moved[0] != before[0]:
        fail(f'dragging a keyframe turns it, or moves others: {by}')
    page.script("document.querySelector('.gizmo').focus()")
    page.key('\ue014')  # right
    keys = until(lambda: (lambda keys: keys != moved and keys)(path_keys(page)), 'a keyframe moved by a key')
    if keys[2]['position'][1:] != moved[2]['position'][1:] or not keys[2]['position'][0] > moved[2]['position'][0]:
        fail('the arrow key does not move along X')
    for step in 1, 2, 3:
        page.click('#path-undo')
        if step == 1 and path_keys(page) != moved:
            fail('undo leaves the last change')
    if path_keys(page) != before:
        fail('undo of all changes leaves some')
    page.click('#path-redo')
    until(lambda: path_keys(page)[2]['fov'] == 33, 'redo')
    with open(file) as saved:
        old = saved.read()
    for button, is_new in (('[value=""]', False), ('#ask-yes', True)):
        page.click('#path-save')
        page.click(f'#ask {button}' if button[0] == '[' else button)
        until(lambda: not page.script("return document.getElementById('ask').open"), 'an answer')
        time.sleep(0.3)
        with open(file) as saved:
            if (saved.read() != old) != is_new:
                fail('the saved path is not what was answered')
    page.call('/actions', {'actions': [{'type': 'key', 'id': 'keys', 'actions': [
        {'type': 'keyDown', 'value': '\ue009'}, {'type': 'keyDown', 'value': 'z'},
        {'type': 'keyUp', 'value': 'z'}, {'type': 'keyUp', 'value': '\ue009'}]}]})
    until(lambda: path_keys(page) == before, 'undo by Ctrl+Z')
    page.key('h')


def saved_paths(page, folder, file):
    """Loads a path of nerfstudio's viewer and the saved one, which is then deleted."""
    count = lambda: page.script("return document.querySelectorAll('#keys li').length")
    pose_at = lambda i: [1, 0, 0, 0.1 * i, 0, 1, 0, 0.02 * i, 0, 0, 1, 4, 0, 0, 0, 1]
    other = os.path.join(folder, 'other.json')
    with open(other, 'w') as out:
        json.dump({'render_width': 320, 'render_height': 180, 'fps': 12, 'seconds': 2,
                   'camera_path': [{'camera_to_world': pose_at(i), 'fov': 45} for i in range(24)]}, out)
    page.type('#path-file', other, clear=False)
    until(lambda: page.script("return document.getElementById('path-width').value") == '320', 'the size of the other path')
    keys = path_keys(page)
    if count() != 2 or not near(keys[1]['position'], pose_at(23)[3:12:4]) or abs(keys[0]['fov'] - 45) > 1e-3:
        fail(f'a straight path of nerfstudio has the keyframes {keys}')
    page.click('#path-list [data-act=open]')
    until(lambda: count() == 3, 'the saved path')
    for button in '#ask [value=""]', '#ask-yes':
        if not os.path.exists(file):
            fail('the path was deleted without an answer')
        page.click('#path-list [data-act=delete]')
        page.click(button)
    until(lambda: not os.path.exists(file), 'the path is deleted')


def export(page, run):
    """Exports a mesh of the crop box and points from the page."""
    progress('export')
    panel(page, 'view')
    page.click('#crop-on')
    panel(page, 'export')
    page.type('#export-name', 'my mesh')
    page.type('#export-resolution', '24')
    if '24 × 24 × 24 voxels in the crop box' not in text(page, 'export-estimate') or 'unknown' not in text(page, 'export-estimate'):
        fail(f"estimate: {text(page, 'export-estimate')}")
    page.click('#export-start')
    result(page, 'my mesh.glb')
    size = os.path.getsize(os.path.join(run, 'exports', 'my mesh.glb'))
    if not re.match(r'[\d.]+ (kB|bytes), exported in [\d.]+ s', text(page, 'task-text')) or '--crop=' not in text(page, 'task-command'):
        fail(f"{text(page, 'task-text')}: {text(page, 'task-command')}, {size} bytes")
    until(lambda: 'last export of this kind.' in text(page, 'export-how'), 'an estimate from the last export')
    page.script("Object.keys(localStorage).filter((name) => name.endsWith('/run')).forEach((name) => localStorage.removeItem(name))")
    choose(page, 'export-resolution', '32')
    until(lambda: 'last export of this kind, of another run.' in text(page, 'export-how'), 'an estimate from another run')
    choose(page, 'export-resolution', '24')
    page.click('#export-start')
    page.click('#ask [value=""]')  # do not overwrite
    page.click('#export-points')
    page.type('#export-count', '500')
    page.click('#export-start')
    result(page, 'my mesh.ply')
    page.click('#task-close')
    panel(page, 'view')
    page.click('#crop-on')


def recolor(file, color):
    """Gives all vertices of a PLY mesh a colour, and coordinates as double, as meshes far from the origin have them."""
    with open(file, 'rb') as mesh:
        head, _, data = mesh.read().partition(b'end_header\n')
    head, count = re.sub(rb'property float ([xyz])\n', rb'property double \1\n', head), int(re.search(rb'element vertex (\d+)', head)[1])
    vertices = b''.join(struct.pack('<3d', *struct.unpack_from('<3f', data, 27 * i)) + bytes(12) + bytes(color) for i in range(count))
    with open(file, 'wb') as mesh:
        mesh.write(head + b'end_header\n' + vertices + data[27 * count:])


def load_again(page):
    page.call('/refresh')
    until(lambda: '×' in text(page, 'readout'), 'a frame after loading again')


def draw_surface(page, run):
    """Makes a surface for the moving camera, and checks by its colour when the page draws it, and where."""
    progress('draw_surface')
    file = os.path.join(run, 'exports', 'surface.ply')
    panel(page, 'view')
    choose(page, 'export-resolution', '512')
    page.click('#surface-on')
    page.click('#task-cancel')
    until(lambda: 'no such file' in text(page, 'notice') and not page.script("return document.getElementById('surface-on').checked"),
          'no surface')
    choose(page, 'export-resolution', '24')
    page.click('#surface-on')
    until(lambda: 'triangles' in text(page, 'surface-hint'), 'a surface')
    page.click('#task-close')
    with open(file, 'rb') as mesh:
        whole = mesh.read()
    with open(file, 'wb') as mesh:
        mesh.write(whole[:-1])
    load_again(page)
    until(lambda: 'not a mesh' in text(page, 'notice'), 'a broken surface')
    with open(file, 'wb') as mesh:
        mesh.write(whole)
    recolor(file, (0, 255, 0))
    script = page.devtools('Page.addScriptToEvaluateOnNewDocument', source='''const get = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function (kind, ...rest) { return kind === 'webgl2' ? null : get.call(this, kind, ...rest); };''')
    load_again(page)
    until(lambda: 'no WebGL 2' in text(page, 'notice'), 'a browser without WebGL')
    page.devtools('Page.removeScriptToEvaluateOnNewDocument', identifier=script['identifier'])
    load_again(page)
    until(lambda: 'triangles' in text(page, 'surface-hint'), 'the surface after loading again')
    page.key('\ue00c')

    def green(picture):
        return [i // 3 for i in range(0, len(picture), 3) if picture[i + 1] > picture[i] + 90 and picture[i + 1] > picture[i + 2] + 90]

    def is_drawn():
        return len(green(pixels(page, part=area))) > 20

    area = [100, 0, 500, 500]
    page.script("document.getElementById('resolution').add(new Option('many', '2.5'))")
    panel(page, 'view')
    choose(page, 'resolution', '2.5', 'change')  # so that pictures of the moving camera are coarse
    page.key('\ue00c')
    page.hold([(250, 250), (280, 250), (310, 255)])
    until(is_drawn, 'the surface while the camera moves')
    time.sleep(0.5)  # for a coarse picture of the camera where it is held
    drawn = green(pixels(page, part=area))
    choose(page, 'exposure', '-5')
    until(lambda: not is_drawn(), 'the surface in the dark')
    choose(page, 'exposure', '0')
    until(is_drawn, 'the surface in the light')
    choose(page, '#crop [aria-label="Crop X to"][type=number]', '0', 'change')
    until(lambda: 5 < len(green(pixels(page, part=area))) < 0.9 * len(drawn), 'half of the surface')
    page.key('x')
    until(lambda: len(green(pixels(page, part=area))) == len(drawn), 'the whole surface')
    page.release()
    until(lambda: not is_drawn(), 'the rendered picture of the camera at rest')
    picture = pixels(page, part=area)
    rendered = [i // 3 for i in range(0, len(picture), 3) if min(picture[i:i + 3]) < 200]
    common = len(set(drawn) & set(rendered))
    if common < 0.9 * len(drawn) or common < 0.5 * len(rendered):
        fail(f'the surface has {len(drawn)} pixels, the object {len(rendered)}, both {common}')
    panel(page, 'view')
    page.click('#surface-on')
    page.key('\ue00c')
    page.hold([(310, 255), (280, 250), (250, 250)])
    time.sleep(0.5)
    if is_drawn():
        fail('the surface is drawn although it is off')
    page.release()
    coarsen(page)


def exchange_files(page, folder, file):
    """Checks that downloads equal the page's path, files are loaded, and files that are no paths are refused."""
    page.devtools('Browser.setDownloadBehavior', behavior='allow', downloadPath=folder)
    page.click('#path-download')
    until(lambda: os.path.exists(os.path.join(folder, NAME + '.json')), 'the downloaded path')
    with open(file) as saved, open(os.path.join(folder, NAME + '.json')) as downloaded:
        if json.load(saved) != json.load(downloaded):
            fail('the downloaded path is another one')
    page.click('#path-clear')
    page.click('#ask-yes')
    until(lambda: page.script("return document.querySelectorAll('#keys li').length") == 0, 'no keyframes')
    page.type('#path-file', os.path.join(os.path.dirname(os.path.dirname(file)), 'config.json'), clear=False)
    until(lambda: 'no camera path' in text(page, 'notice'), 'a file that is no path')
    page.type('#path-file', file, clear=False)
    until(lambda: page.script("return document.querySelectorAll('#keys li').length") == 3, 'the loaded path')
    page.click('#save-picture')
    until(lambda: any(re.fullmatch(r'run_rgb_\d+x\d+\.png', name) for name in os.listdir(folder)), 'the saved picture')
    page.click('#copy-view')
    until(lambda: 'address' in text(page, 'notice'), 'an address to copy')


# ---- small windows ----

# Returns texts about buttons and fields that are cut: their text needs more room than they have.
CUT = """
return [...document.querySelectorAll('#panels button, #panels input, #panels select, #panels dd, #bar h1')].filter((element) =>
  element.checkVisibility() && element.type !== 'range' && element.scrollWidth > element.clientWidth + 1 &&
  getComputedStyle(element).textOverflow !== 'ellipsis').map((element) => `cut: ${element.id || element.outerHTML.slice(0, 90)}`);"""


def check_looks(page):
    """Checks reach, cut texts, names and contrast of every panel, in a wide and a narrow window, light and dark."""
    progress('check_looks')
    page.key('2')  # with the legend of depths, and a divider
    choose(page, 'second', 'rgb', 'change')
    for width, height in (WIDTH, HEIGHT), (400, 800):
        page.resize(width, height, touch=width == 400)
        for name in ('view', 'cameras', 'path', 'export', 'training'):
            panel(page, name)
            bad = page.script(CUT) + page.unnamed() + (page.out_of_reach() if width == 400 else [])
            for scheme in 'light', 'dark':
                page.prefer(color_scheme=scheme, reduced_motion='reduce')
                bad += [f'{scheme}: {text}' for text in page.low_contrast()]
            if bad:
                fail(f'at {width} pixels, {name}: {bad}')
    page.prefer(reduced_motion='reduce')
    page.resize(WIDTH, HEIGHT)
    choose(page, 'second', 'none', 'change')
    page.key('1')


def check(page, work):
    run = os.path.join(work, 'run')
    page.resize(WIDTH, HEIGHT)
    page.prefer(reduced_motion='reduce')  # flights between views cost frames; pick_cameras() tests one
    program = watch_training(page, run)  # the viewer stays open
    try:
        page.key('\ue00c')  # escape: close the panel
        scene = program.json('/api/scene')
        for do in (move_about, show_maps, lose_connection):
            do(page)
        crop(page, scene['box'])
        poses = program.json('/api/poses')['train']
        views = [{**view, 'pose': poses[view['index']] if view['split'] == 'train' else view['pose']} for view in scene['views']]
        if max(math.dist(a['pose'], b['pose']) for a, b in zip(views, scene['views'])) < 1e-3:
            fail('no camera has moved')
        pick_cameras(page, views)
        make_path(page, run, work)
        export(page, run)
        draw_surface(page, run)
        check_looks(page)
        quiet(page)
        end_program(page, program)
    finally:
        program.process.kill()
    move_time(page, os.path.join(work, 'moving'))


def have_browser():
    """Returns whether chromedriver is a program: in Ubuntu it is a script that installs a snap."""
    driver = shutil.which('chromedriver')
    if driver:
        with open(driver, 'rb') as file:
            return file.read(2) != b'#!'
    with open('/etc/os-release') as file:
        if 'ubuntu' not in file.read():
            fail('no chromedriver: apt-get install chromium chromium-driver')
    return False


def main():
    if not have_browser():
        print('skipped: test_viewer_page: no chromium package')
        return 77
    work = tempfile.mkdtemp(prefix='vknerf-page-')
    page = Browser(WIDTH, HEIGHT)
    try:
        check(page, work)
    except BaseException:
        page.screenshot(os.path.join(tempfile.gettempdir(), 'test_viewer_page.png'))
        raise
    finally:
        page.close()
        shutil.rmtree(work, ignore_errors=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
