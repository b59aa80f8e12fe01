#!/usr/bin/env python3
"""Tests the report of a run and the comparison of runs in a headless browser: figures, sorting, sliders, curves and their
read-out, contrast and names, both colour schemes, small windows, readers without scripts, printing, and files of runs
that hold anything. The runs are written here; tests/test_report_html.c tests what the files contain."""
import base64
import json
import os
import struct
import subprocess
import sys
import tempfile
import time
import zlib

sys.dont_write_bytecode = True  # no bytecode beside this file among the sources
from browser import Browser
from report_checks import check, label, quiet, sound, text

VKNERF = os.environ['VKNERF_BIN']
CURVES = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'src', 'report', 'page', 'curves.js')


def has(text, *parts):
    for part in parts:
        if part not in text:
            raise AssertionError(f'{part!r} is not in {text!r}')


# ---- runs ----

def png(width, height, rgb):
    def chunk(name, data):
        return struct.pack('>I', len(data)) + name + data + struct.pack('>I', zlib.crc32(name + data))
    rows = (b'\0' + bytes(rgb) * width) * height
    return (b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)) +
            chunk(b'IDAT', zlib.compress(rows)) + chunk(b'IEND', b''))


def make_run(folder, name, config=None, metrics=(), summary=None, **files):
    """Writes a run directory with pictures views/target.png (red) and views/render.png (blue); returns its path."""
    run = os.path.join(folder, name)
    os.makedirs(os.path.join(run, 'views'))
    contents = {'config': config if config is not None else {}, 'summary': summary, **files}
    for file, content in contents.items():
        if content is not None:
            with open(os.path.join(run, file + '.json'), 'w', encoding='utf-8') as out:
                out.write(content if isinstance(content, str) else json.dumps(content))
    with open(os.path.join(run, 'metrics.jsonl'), 'w', encoding='utf-8') as out:
        out.writelines(json.dumps(line) + '\n' for line in metrics)
    for picture, color in (('target', (200, 0, 0)), ('render', (0, 0, 200))):
        with open(os.path.join(run, 'views', picture + '.png'), 'wb') as out:
            out.write(png(20, 10, color))
    return run


def report(*runs, out=None):
    """Writes the page and returns its address."""
    out = out or os.path.join(runs[0], 'report.html')
    subprocess.run([VKNERF, 'report', *runs, '--out', out], check=True, stdout=subprocess.DEVNULL)
    return 'file://' + out


def full_run(folder):
    views = [{'name': f'test_{i:03}', 'image': f'r_{i}.png', 'psnr': psnr, 'ssim': ssim, 'time': at, 'background_psnr': 15 + at}
             for i, (psnr, ssim, at) in enumerate([(31.25, 0.95, 0.75), (28.5, 0.8, 0.25), (33.0, 0.9, 0.5)])]
    pictures = [{'name': view['name'], 'psnr': view['psnr'], 'ssim': view['ssim'], 'target': 'views/target.png',
                 'render': 'views/render.png', 'error': 'views/none.png'} for view in views]
    summary = {
        'psnr': 30.9167, 'ssim': 0.8833, 'views': 3, 'background': 'white', 'color_space': 'sRGB', 'step': 1000, 'seconds': 400,
        'precision': 'fp16', 'path': 'packed halves', 'gradient_sums': 'f32', 'policy': 'policy.gradients=f16', 'device': 'Card',
        'driver': 'Driver 1', 'status': 'finished', 'background_psnr': 15.5, 'floaters': 0.0125, 'depth_error': 0.05,
        'reached': [{'psnr': 25, 'step': 300, 'seconds': 125, 'split': 'test'}, {'psnr': 30, 'step': 900, 'seconds': 380, 'views': 2}],
        'sampling': {'kind': 'occupancy', 'rays_per_second': 29700, 'evaluated_per_ray': 13.04, 'live_per_ray': 8.1, 'empty_share': 0.931},
        'parallel': {'ranks': 2, 'exchange_share': 0.25, 'exchange_bytes': 2e6},
        'passes': [{'name': 'field_forward', 'share': 0.5, 'milliseconds': 4, 'flops': 2e9, 'bytes': 8e7, 'atomics': 0,
                    'floor_milliseconds': 2.5, 'bound': 'flops'}, {'name': 'begin_step', 'share': 0.25, 'milliseconds': 2}],
        'profile': {'steps': 1024, 'idle_milliseconds': 1.5, 'period_idle_milliseconds': 0.5, 'peak_flops_per_second': 8e11},
        'buffers': [{'name': 'a < b', 'bytes': 3 << 20}, {'name': 'control', 'bytes': 1 << 20}, {'name': 'x', 'bytes': 100},
                    {'name': 'y', 'bytes': 200}],
        'evaluations': [{'step': step, 'seconds': 0.4 * step, 'psnr': psnr, 'ssim': ssim, 'pictures': pictures[:1]}
                        for step, psnr, ssim in [(100, 20, 0.5), (400, 26, 0.7), (1000, 30.9167, 0.8833)]],
        'per_view': views, 'pictures': pictures}
    metrics = [{'step': 10 * i, 'seconds': 4 * i, 'loss': 1000 if i == 50 else 0.5 / i, 'distortion_loss': 0.01, 'psnr': 10 + 0.2 * i,
                'learning_rate': 0.01 * 0.99 ** i, 'loss_scale': 65536 if i < 60 else 256, 'skipped_steps': i // 40, 'underflowed': 0.02,
                'grad_norm': 0.1, 'rays_per_second': 1000, 'samples_per_second': 2000, 'gpu_memory_bytes': 48 << 20}
               for i in range(1, 101)]
    config = {'scene': {'path': 'data/lego/'}, 'seed': 7, 'optimizer': {'rate': {'start': 0.01}, 'at': [1, 2]}, 'empty': None,
              'command': ['vknerf', 'train', "it's"]}
    appearance = {'views': [{'exposure': 0.5, 'exposure_in_file': 0.25}, {'exposure': 1e300, 'white_balance': [0.5]}]}
    return make_run(folder, 'full', config, metrics, summary, appearance=appearance)


# ---- the page ----

def rows(page, section):
    """Returns the cells' texts of the tables of a section."""
    return page.script("""return [...document.querySelectorAll(`#${arguments[0]} tbody tr`)].map((row) =>
        [...row.cells].map((cell) => cell.textContent));""", section)


def row(page, section, name):
    return next((cells[1:] for cells in rows(page, section) if cells[0] == name), None)


def ids(page, selector):
    return page.script('return [...document.querySelectorAll(arguments[0])].map((element) => element.id)', selector)


def shows_a_run(page, folder):
    page.go(report(full_run(folder)))
    tiles = page.script("return Object.fromEntries([...document.querySelectorAll('.tile')].map((tile) => [...tile.children].map((x) => x.textContent)).map(([a, ...b]) => [a, b]))")
    check(tiles, {
        'Test PSNR': ['30.92 dB', 'mean of 3 test views; background alone: 15.50 dB; opacity of floaters: 1.250 %; median error of depths: 5.00 %'],
        'Test SSIM': ['0.8833', 'white background, sRGB'], 'Steps': ['1\u202f000', '2 skipped (overflow), 0.2 %'],
        'Training time': ['6:40', '2.50 steps/s'], 'Reached': ['30 dB', '25 dB after 2:05; 30 dB after 6:20, on 2 test views'],
        'Samples per ray': ['13.0', 'occupancy: 93.1 % of steps skipped, 8.1 live, 29.7 k rays/s'],
        'Ranks': ['2', '25.0 % of the time in all-reduces, 2.00 MB per step'], 'Precision': ['fp16', 'Card'],
        'Device memory': ['48 MiB', 'held at the last log line']})
    has(text(page, '.facts'), 'Scenedata/lego/', 'Backendpacked halves', 'Gradient sumsf32', 'Changed defaultspolicy.gradients=f16', 'DriverDriver 1')
    sections = ['training', 'formed', 'views', 'appearance', 'passes', 'memory', 'configuration', 'command']
    check(ids(page, 'main section'), sections)
    check(page.script("return [...document.querySelectorAll('nav a')].map((a) => a.hash)"), ['#' + name for name in sections])
    check(ids(page, '#training figure'), ['psnr', 'ssim', 'psnr-by-time', 'loss', 'learning-rate', 'grad-norm', 'loss-scale', 'skipped-steps',
                                          'underflowed', 'throughput'])
    has(label(page, 'psnr-by-time'), 'against time', 'test views: lowest 28.50 dB, highest 33.00 dB, last 31.25 dB.', 'background alone: lowest 15.25')
    has(label(page, 'loss'), 'Logarithmic axis', 'distortion: lowest 0.01,')
    has(label(page, 'exposures'), 'exposure: lowest 0.50, highest 0.50', 'in the image file', 'gain of red')
    if 'gain of blue' in label(page, 'exposures'):
        raise AssertionError('a curve without values')
    check(row(page, 'passes', 'field_forward'), ['', '50.0 %', '4.000 ms', '500.0', '20.0', '–', '2.500 ms', '1.6', 'flops'])
    check(page.script("return [...document.querySelectorAll('#passes rect')].map((rect) => rect.getAttribute('width'))"), ['100.00', '62.50', '50.00'])
    has(text(page, '#passes .facts'), 'device idle between passes18.75 %', 'steps timed1\u202f024', 'peaks measured in this run800.0 GFLOP/s')
    check(rows(page, 'memory'), [['a < b', '', '75.0 %', '3.000 MiB'], ['control', '', '25.0 %', '1.000 MiB'], ['2 buffers below 0.1 %', '', '0.0 %', '0.000 MiB']])
    check(rows(page, 'configuration'), [['seed', '7'], ['empty', 'default'], ['scene.path', 'data/lego/'], ['optimizer.rate.start', '0.01'], ['optimizer.at', '[1,2]']])
    check(text(page, '#command pre'), "vknerf train 'it'\\''s'")
    sound(page, 'run')


def sorts(page):
    order = "return [...document.querySelectorAll('#views .view h3')].map((h) => h.textContent)"
    names = lambda: [cells[0] for cells in rows(page, 'views')]
    check(names(), ['test_000', 'test_001', 'test_002'])
    check(rows(page, 'views')[0], ['test_000', 'r_0.png', '31.25', '0.9500', '15.75', '0.750'])
    page.click('#views thead th:nth-child(3) button')
    check(names(), ['test_001', 'test_000', 'test_002'])
    check(page.script(order), ['test_001', 'test_000', 'test_002'])  # the pictures follow
    page.key('\ue007')  # the button has the focus
    check(names(), ['test_002', 'test_000', 'test_001'])
    sort = "return [...document.querySelectorAll('#views thead th')].map((th) => th.ariaSort)"
    check(page.script(sort), ['none', 'none', 'descending', 'none', 'none', 'none'])
    page.click('#views thead th:nth-child(1) button')
    check(names(), ['test_000', 'test_001', 'test_002'])
    check(page.script(sort), ['ascending', 'none', 'none', 'none', 'none', 'none'])
    page.click('#passes thead th:nth-child(1) button')
    check([cells[0] for cells in rows(page, 'passes')], ['begin_step', 'field_forward'])


def slides(page):
    where = "return document.querySelector('#views .stage').style.getPropertyValue('--at')"
    check(page.script("return document.querySelectorAll('#views .compare').length"), 3)
    check(page.script("return [...document.querySelectorAll('#views .sides select')[0].options].map((o) => o.text)"), ['target', 'render'])
    page.script("document.querySelector('#views .stage').scrollIntoView({block: 'center'})")
    x, y, w, h = page.script("const b = document.querySelector('#views .stage').getBoundingClientRect(); return [b.x, b.y, b.width, b.height]")
    page.pointers([(round(x + w / 2), round(y + h / 2)), (round(x + w / 4), round(y + h / 2))])
    if not 24 < float(page.script(where)[:-1]) < 26:
        raise AssertionError(page.script(where))
    page.script("document.querySelector('#views .compare input').focus()")
    page.key('\ue014')  # right
    if not 25 < float(page.script(where)[:-1]) < 27:
        raise AssertionError(page.script(where))
    colors = """const select = document.querySelectorAll('#views .sides select')[1]; select.value = arguments[0]; select.dispatchEvent(new Event('change'));
        return [...document.querySelectorAll('#views .stage img')].slice(0, 2).map((img) => img.src === document.querySelectorAll('#views .cell img')[0].src);"""
    check(page.script(colors, 0), [True, True])
    check(page.script(colors, 1), [True, False])


def reads_out(page):
    has(text(page, '#psnr .legend'), 'training rays 30.00 dB', 'test views 30.92 dB')
    page.script("document.querySelector('#psnr').scrollIntoView({block: 'center'})")
    x, y, w, h = page.script("const b = document.querySelector('#psnr svg.plot').getBoundingClientRect(); return [b.x, b.y, b.width, b.height]")
    page.move(round(x + 46 + (w - 58) * 0.4), round(y + h / 2))
    has(text(page, '#psnr .legend'), 'test views 26.00 dB', 'step 400 · 2:40')
    page.move(1, 1)
    has(text(page, '#psnr .legend'), 'training rays 30.00 dB')
    page.script("document.querySelector('#psnr svg.plot').focus()")
    page.key('\ue014')
    has(text(page, '#psnr .legend'), 'step 20 ')
    check(page.script("return document.querySelector('#psnr .legend').ariaLive"), 'polite')
    page.script('document.activeElement.blur()')
    # The axis contains the smooth curve and the middle of the values, but not the one loss of 1000.
    ticks = page.script("return [...document.querySelectorAll('#loss text.y:not(.faint)')].filter((t) => t.getAttribute('x') === '40').map((t) => Number(t.textContent))")
    if max(ticks) != 100:
        raise AssertionError(ticks)
    steps = page.script("return [...document.querySelectorAll('#psnr text.x:not(.faint)')].map((t) => t.textContent)")
    has(steps, '0', '200')
    page.click('.choice label:nth-child(2)')
    times = page.script("return [...document.querySelectorAll('#psnr text.x, #psnr text.y')].map((t) => t.textContent)")
    has(times, '1:00', '6:00', 'time')
    has(label(page, 'psnr'), 'against training time')
    stairs = page.script("return document.querySelector('#loss-scale .plot path.curve.c1').getAttribute('d')")
    has(stairs, 'H', 'V')


def prints(page):
    page.script("document.querySelectorAll('.compare').forEach((x) => x.checkVisibility())")
    pdf = base64.b64decode(page.devtools('Page.printToPDF', printBackground=False)['data'])
    check(pdf[:5], b'%PDF-')
    page.devtools('Emulation.setEmulatedMedia', media='print')
    check(page.script("return ['nav', '.compare', '.choice', '#psnr', '#views .cell'].map((s) => document.querySelector(s).checkVisibility())"),
          [False, False, False, True, True])
    check(page.low_contrast(), [])
    page.devtools('Emulation.setEmulatedMedia', media='')


def without_scripts(page, address, figures):
    """Checks what readers without scripts see. The browser's own tools still run."""
    page.devtools('Emulation.setScriptExecutionDisabled', value=True)
    page.go(address)
    body = page.script('return document.body.innerText')
    has(body, *figures)
    check(page.script("return [...document.querySelectorAll('.views img')].every((img) => img.naturalWidth > 0 && img.checkVisibility())"), True)
    check(page.script("return document.querySelectorAll('.chart').length"), 0)
    check([page.unnamed(), page.low_contrast()], [[], []])
    page.devtools('Emulation.setScriptExecutionDisabled', value=False)


def incomplete_runs(page, folder):
    """Runs that lack files, values, or have just begun."""
    page.go(report(make_run(folder, 'bare')))
    has(text(page, '#training'), 'metrics.jsonl holds no line yet.')
    has(text(page, '#command'), 'config.json does not hold the command.')
    check(ids(page, 'main section'), ['training', 'views', 'configuration', 'command'])
    sound(page, 'bare')
    page.go(report(make_run(folder, 'begun', {'device': 'Card 2', 'driver': 'Driver 2', 'path': 'fp32', 'command': 'vknerf train'},
                            [{'step': 3, 'seconds': 1, 'loss': 0.25, 'loss_scale': 1, 'skipped_steps': 0}],
                            {'evaluations': [{'step': 50, 'psnr': 18.5, 'ssim': 0.75}, {'step': 60}], 'skipped_steps': 30, 'step': 40})))
    has(text(page, '.tiles'), 'Test PSNR18.50 dBa few test views at step 50', 'Test SSIM0.7500a few', '30 skipped (overflow), 75.0 %', 'fp32Card 2')
    has(text(page, '.facts'), 'DriverDriver 2')
    check(text(page, '#command pre'), 'vknerf train')
    check(ids(page, '#training figure'), ['psnr', 'ssim', 'loss'])  # a loss scale of 1 and no skipped steps have no curves
    former = make_run(folder, 'former', {}, [], {'psnr': 24.5, 'psnr_quadratic': 26.25, 'per_view': [{'time': 0.75, 'psnr': 26, 'blank_psnr': 15}, {'psnr': 1}],
                                                 'background_psnr': 15, 'psnr_aligned': 25.75})
    page.go(report(former))
    has(text(page, '.tiles'), 'mean of the test views; at aligned poses: 25.75 dB; colours corrected: 26.25 dB')
    has(label(page, 'psnr-by-time'), 'background alone: lowest 15.00 dB')
    quiet(page)


def hostile_runs(page, folder):
    """Values of other types than expected, extreme numbers and markup in every text."""
    bad = '</script><img src=x onerror=alert(1)><!--<script>&"\'__proto__'
    numbers = [{'step': 0, 'seconds': -1e308, 'loss': 1e308, 'psnr': -1e308}, {'step': 1e300, 'seconds': 1e308, 'loss': 5e-324, 'psnr': 1e308,
               'learning_rate': 1e-300, 'loss_scale': 1e-320, 'gpu_memory_bytes': -1e300}, {'step': 1e308, 'samples_per_second': 1e308}]
    summary = {'psnr': 1e308, 'ssim': -1, 'step': 1e308, 'seconds': 1e308, 'views': 1e308, 'device': bad, 'driver': bad, 'status': bad, 'scene': bad,
               'failure': bad, 'evaluations': [{'step': 1e308, 'psnr': -1e308}, {'step': 0, 'seconds': 1e308, 'psnr': 1e308}],
               'per_view': [{'name': bad, 'psnr': 1e308}, {'name': '__proto__'}, {}], 'passes': [{'name': bad, 'share': 1}, {}, {'milliseconds': 0, 'flops': 1}],
               'buffers': [{'name': bad, 'bytes': 1e308}, {'bytes': 1e308}], 'pictures': [{'name': bad, 'render': 'views/render.png', 'target': '../x.png'}],
               'profile': {'steps': 0}, 'reached': [{}, {'psnr': 25}]}
    config = '{"__proto__": {"x": 1}, "constructor": [[]], "a": {"' + bad.replace('"', '\\"') + '": [{"b": {}}, []]}, "command": [3, "' + 'x y"], "scene": 3}'
    appearance = {'views': [3, None, {'white_balance': {'0': 1}, 'exposure': 'x'}]}
    run = make_run(folder, 'hostile', config, numbers, summary, appearance=appearance)
    page.go(report(run))
    check(page.script("return [document.querySelectorAll('img[onerror], img[src=x]').length, document.querySelectorAll('script').length, Object.prototype.x]"),
          [0, 2, None])
    has(text(page, 'h1'), '<!--<script>')
    has(text(page, '#passes'), bad)
    check(row(page, 'configuration', '__proto__.x'), ['1'])
    check(text(page, '#command pre'), "? 'x y'")
    sound(page, 'hostile')
    page.go(report(run, full_run(os.path.join(folder, 'beside')), out=os.path.join(folder, 'hostile.html')))
    has(text(page, '#settings'), '__proto__.x')
    sound(page, 'hostile comparison')
    # A key twice: the command checks the first value, the script reads the last.
    twice = make_run(folder, 'twice', {}, [], '{"psnr": 1, "psnr": "x", "passes": [], "passes": 7, "per_view": null, "evaluations": [], "evaluations": {"0": 1}}')
    page.go(report(twice))
    has(text(page, '.tiles'), 'not measured')
    quiet(page)


# ---- comparisons ----

def compares(page, folder):
    slow = make_run(folder, 'slow', {'scene': 'x/lego', 'seed': 1, 'march': {'sampling': 'uniform'}, 'rate': 0.01, 'device': 'A'},
                    [{'step': 5, 'seconds': 10, 'psnr': 15, 'skipped_steps': 0, 'underflowed': 0, 'idle_share': 0.25, 'grad_norm': 0.002},
                     {'step': 9, 'seconds': 18.5, 'psnr': 20, 'underflowed': 0, 'idle_share': 0.75, 'grad_norm': 0.004},
                     {'step': 10, 'seconds': 20, 'psnr': 22}, {'step': 20, 'seconds': 40, 'psnr': 30}],
                    {'psnr': 31.25, 'ssim': 0.95, 'seconds': 40, 'device': 'A', 'views': 2, 'reached': [{'psnr': 25, 'seconds': 15}],
                     'sampling': {'kind': 'occupancy', 'rays_per_second': 5000, 'evaluated_per_ray': 12.5, 'live_per_ray': 8, 'empty_share': 0.9, 'behind_share': 0.36},
                     'evaluations': [{'step': 5, 'seconds': 10, 'psnr': 24}, {'step': 6, 'psnr': 1}, {'step': 20, 'seconds': 30, 'psnr': 26}],
                     'per_view': [{'name': 'a', 'psnr': 30}, {'name': 'b', 'psnr': 32.5}],
                     'pictures': [{'name': 'a', 'psnr': 30, 'render': 'views/render.png', 'target': 'views/target.png'}]})
    fast = make_run(folder, 'fast', {'scene': 'y/lego/', 'seed': 1, 'march': {'sampling': 'uniform'}, 'rate': 0.02, 'extra': 'x'},
                    [{'step': 1, 'seconds': 1, 'rays_per_second': 100, 'marched_per_second': 19200, 'samples_per_second': 9600, 'skipped_steps': 1,
                      'flushed': 0.02, 'loss_scale': 256}, {'step': 4, 'skipped_steps': 2, 'flushed': 0.04, 'loss_scale': 64}],
                    {'psnr': 29.5, 'ssim': 0.97, 'seconds': 20, 'views': 3, 'precision': 'fp16', 'status': 'finished', 'skipped_steps': 3,
                     'evaluations': [{'step': 1, 'seconds': 19.99, 'psnr': 23}],
                     'per_view': [{'name': 'a', 'psnr': 30.5}, {'name': 'b', 'psnr': 28.5}, {'name': 'c', 'psnr': 1}],
                     'pictures': [{'name': 'a', 'psnr': 30.5, 'render': 'views/render.png', 'target': 'views/target.png'}]})
    fern = make_run(folder, 'fern', {'scene': 'fern', 'rate': 0.01}, [], {'psnr': 40, 'per_view': [{'name': 'a', 'psnr': 40}]})
    page.go(report(slow, fast, fern, out=os.path.join(folder, 'comparison.html')))
    has(text(page, 'header'), 'different scenes: lego, fern', 'differ in number, background or colour space')
    check(row(page, 'results', 'PSNR, dB'), ['31.25', '29.50', '−1.75', '40.00', '–'])
    check(row(page, 'results', 'SSIM'), ['0.9500', '0.9700', '+0.0200', '–', '–'])
    check(row(page, 'results', 'Time'), ['0:40', '0:20', '−0:20', '–', '–'])
    check(row(page, 'results', 'Reached 25 dB after'), ['0:15', '–', '–', '–', '–'])
    check(row(page, 'results', 'Device'), ['A', '–', '', '–', ''])
    # The best of a scene is bold; runs of other scenes do not compete.
    check(page.script("return [...document.querySelectorAll('#results b')].map((b) => b.textContent)"), ['31.25', '0.9700', '0.50', '2.00\u202fk'.replace('\u202f', ' ')])
    check(page.script("return [...document.querySelectorAll('#results .better, #results .worse')].map((x) => x.className + x.textContent)")[:2],
          ['worse−1.75', 'better+0.0200'])
    check(row(page, 'gradients', 'Skipped steps')[:3], ['0', '3', '+3'])
    check(row(page, 'gradients', 'Underflowed, %')[:3], ['0.00', '3.00', '+3.00'])
    check(row(page, 'gradients', 'Gradient norm')[:3], ['0.003', '–', '–'])
    check(row(page, 'gradients', 'Idle, %')[:3], ['50.0', '–', '–'])
    check(rows(page, 'per-view'), [['a', '30.00', '30.50', '+0.50'], ['b', '32.50', '28.50', '−4.00'], ['c', '–', '1.00', '–'], ['a', '40.00']])
    page.click('#per-view thead th:nth-child(4) button')
    check([cells[0] for cells in rows(page, 'per-view')], ['b', 'a', 'c', 'a'])
    check(rows(page, 'settings'), [['scene', 'x/lego', 'y/lego/', 'fern'], ['seed', '1', '1', '–'], ['march.sampling', 'uniform', 'uniform', '–'],
                                   ['rate', '0.01', '0.02', '0.01'], ['extra', '–', 'x', '–']])
    has(ids(page, '#speed figure'), 'loss-scale', 'skipped-steps', 'underflowed')
    check(page.script("return document.querySelectorAll('#views .compare').length"), 1)
    sections = ids(page, 'main section')
    page.script("const select = document.querySelector('#reference'); select.value = 1; select.dispatchEvent(new Event('change'));")
    check(row(page, 'results', 'PSNR, dB'), ['29.50', '31.25', '+1.75', '40.00', '–'])
    check(ids(page, 'main section'), sections)
    sound(page, 'comparison')
    # After 20 seconds, which both runs of lego reached: interpolated between evaluations and between lines of the log.
    page.go(report(slow, fast, out=os.path.join(folder, 'comparison.html')))
    check(row(page, 'samples', 'Test PSNR, dB'), ['25.00', '23.00', '−2.00'])
    check(row(page, 'samples', 'Training PSNR, dB'), ['21.00', '–', '–'])
    check(row(page, 'samples', 'Samples per ray'), ['12.5', '192.0', '+179.5'])
    check(row(page, 'samples', 'Live'), ['8.0', '96.0', '+88.0'])
    check(row(page, 'samples', 'Sampling'), ['occupancy', 'uniform', ''])
    has(text(page, '#samples'), 'after 0:20 of training')
    quiet(page)
    return page.script('return location.href')


def many(page, folder):
    """Twelve runs with curves that differ; the time grows linearly with the number of settings and views."""
    config = [{f'key{i}': i % 1000 == 0 and run for i in range(20000)} for run in range(2)]
    views = [{'name': f'view {i}', 'psnr': i} for i in range(2000)]
    two = [make_run(folder, f'many{run}', config[run], [], {'per_view': views}) for run in range(2)]
    began = time.monotonic()
    page.go(report(*two, out=os.path.join(folder, 'many.html')))
    check([len(rows(page, 'settings')), len(rows(page, 'per-view'))], [20, 2000])
    if time.monotonic() - began > 10:
        raise AssertionError(f'{time.monotonic() - began} seconds')
    runs = [make_run(folder, f'of12/{i}', {}, [{'step': step, 'psnr': i + step} for step in range(3)]) for i in range(12)]
    page.go(report(*runs, out=os.path.join(folder, '12.html')))
    check(page.script("return new Set([...document.querySelectorAll('#psnr path.curve')].map((p) => getComputedStyle(p).stroke + getComputedStyle(p).strokeDasharray)).size"), 12)
    has(text(page, '#settings'), 'The runs have the same settings.')
    sound(page, 'twelve')


# ---- arithmetic of curves ----

def arithmetic(page):
    with open(CURVES, encoding='utf-8') as script:
        curves = script.read()
    run = lambda code: page.script(curves + f';return {code}')
    labels = lambda code: run(f"{code}.map((tick) => tick.label).join(' ')")
    check(labels('linearTicks(0, 5000, 5)'), '0 1000 2000 3000 4000 5000')
    check(labels('linearTicks(0, 20000, 5)'), '0 5k 10k 15k 20k')
    check(labels('linearTicks(-0.1, 0.1, 4)'), '-0.10 -0.05 0 0.05 0.10')
    check(labels('linearTicks(28.1, 28.32, 3)'), '28.1 28.2 28.3')
    check(labels('linearTicks(0, 2.3e6, 5)'), '0 0.5M 1.0M 1.5M 2.0M')
    check(labels('logTicks(0.0004, 0.2, 6)'), '0.001 0.01 0.1')
    check(labels('logTicks(1e-12, 1, 6)'), '1e-12 1e-10 1e-8 1e-6 0.0001 0.01 1')
    check(run('[0, 0.05, 1.234, 999.4, 29700, 1.23e6, NaN].map(quantity)'), ['0', '0.05', '1.23', '999', '29.7 k', '1.23 M', '–'])
    check(run('[0, 59.6, 3605, 200000, -1].map(duration)'), ['0:00', '1:00', '1:00:05', '2 d 7 h', '–'])
    # Of any range: ticks are inside, ascend, have different labels, and are not many more than wanted.
    check(run('''[...Array(3000).keys()].filter((i) => {
        const random = (k) => (Math.sin(i * 12.9898 + k * 78.233) * 43758.5453 % 1 + 1) % 1, low = 10 ** (random(1) * 24 - 12), size = 10 ** (random(2) * 8 - 3) * low;
        const begin = i % 3 ? low : -low, wanted = 2 + Math.floor(random(3) * 9), slack = size * 1e-5;
        const sound = (all, a, b, most) => all.length <= most && all.every(({ value, label }, k) => value >= a - slack && value <= b + slack &&
            (k === 0 || value > all[k - 1].value && label !== all[k - 1].label));
        return !sound(linearTicks(begin, begin + size, wanted), begin, begin + size, wanted + 1) || !sound(logTicks(low, low + size, wanted), low, low + size, wanted + 7);
    })'''), [])
    # A straight line stays the same; an alternation becomes flat; gaps stay.
    check(run('smoothed([...Array(400).keys()].map((i) => 3 + i / 2)).every((y, i) => Math.abs(y - 3 - i / 2) < 1e-9)'), True)
    check(run('smoothed([...Array(400).keys()].map((i) => (i === 200 ? NaN : i % 2 ? 1 : -1))).every((y, i) => (i === 200 ? isNaN(y) : i < 20 || i > 379 || Math.abs(y) < 0.2))'), True)
    check(run('''(() => { const x = [...Array(10000).keys()], y = x.map((i) => (i === 1234 ? 100 : i % 2)), thin = thinned({ x, y });
        return [thin.x.length, thin.x.at(-1), thin.y[0], Math.max(...thin.high), Math.min(...thin.low)]; })()'''), [1000, 9999, 0.5, 100, 0])
    check(run('[0, 15, 30, 99].map((step) => timeAt({ x: [10, 20, 40], seconds: [1, NaN, 4] }, step))'), [0, 1.5, 3, None])


def main():
    page = Browser(1400, 900)
    try:
        with tempfile.TemporaryDirectory(prefix='vknerf-page-') as folder:
            page.go('about:blank')
            arithmetic(page)
            shows_a_run(page, folder)
            address = page.script('return location.href')
            sorts(page)
            slides(page)
            reads_out(page)
            prints(page)
            quiet(page)
            comparison = compares(page, folder)
            incomplete_runs(page, folder)
            hostile_runs(page, folder)
            many(page, folder)
            without_scripts(page, address, ['Test PSNR, dB', '30.92', 'test_001', '28.50', 'Curves, further tables'])
            without_scripts(page, comparison, ['31.25', '29.50', 'slow', 'fast'])
    finally:
        page.close()


main()
