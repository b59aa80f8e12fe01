#!/usr/bin/env python3
"""Tests the pages of a refinement of cameras and of a certificate in a headless browser: charts, tables, contrast and
names in both colour schemes, small windows, readers without scripts. build/tests/test_report_refinement writes the
pages."""
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # no bytecode beside this file among the sources
from browser import Browser
from report_checks import check, label, sound, text

PROGRAM = os.path.join(os.environ['VKNERF_BUILD_DIR'], 'tests', 'test_report_refinement')
CERTIFICATE = {
    'vknerf': '1.0', 'commit': 'abc', 'date': '2026-11-29', 'seconds': 83, 'tests': 4, 'failed': 1, 'complete': True,
    'switched_off': [{'feature': 'float_atomics'}],
    'device': {'name': 'Card <1>', 'driver': 'Driver', 'vulkan': '1.4', 'memory': 1234, 'fp16': True, 'shapes': ['16x16x16', '8x8x8'], 'none': None},
    'parts': [
        {'part': 'lens', 'tests': [{'test': 'test_rays', 'result': 'passed', 'seconds': 1.25, 'figures': [
            {'what': 'direction of ray', 'backend': 'fp32', 'precision': 'f32', 'error': 1e-7, 'tolerance': 1e-6, 'error_ulps': 0.84, 'tolerance_ulps': 8.39},
            {'what': 'length', 'backend': 'fp32', 'precision': 'f32', 'error': 5e-7, 'tolerance': 1e-6, 'error_ulps': 4.19, 'tolerance_ulps': 8.39}]}]},
        {'part': 'basics', 'tests': [{'test': 'test_sums', 'result': 'failed', 'pass': 'certify_sums', 'backend': 'f32', 'message': 'sum <b>0</b>',
                                      'feature': 'float_atomics'}]},
        {'part': 'trainings', 'tests': [{'test': 'fp32', 'result': 'passed', 'path': 'tiled', 'psnr': 28.5, 'floor': 26, 'skipped_steps': 0, 'seconds': 20,
                                         'passes': [{'name': 'field_forward', 'milliseconds': 4, 'floor_milliseconds': 2, 'bound': 'flops'},
                                                    {'name': 'composite', 'milliseconds': 1}]}]},
        {'part': 'bench', 'bench': {'results': [{'suite': 'gemm', 'case': '64x64', 'path': 'coopmat', 'rate': 1.23e13, 'unit': 'FLOP/s'},
                                                {'suite': 'gemm', 'case': '8x8', 'path': 'vendor', 'fault': 'not supported'}]}}]}


def rows(page, section, table=0):
    return page.script("""return [...document.querySelectorAll(`#${arguments[0]} table`)][arguments[1]].querySelectorAll('tbody tr').values().map((row) =>
        [...row.cells].map((cell) => cell.textContent)).toArray();""", section, table)


def refinement(page, address):
    page.go(address('full'))
    check(page.script("return [...document.querySelectorAll('nav a')].map((a) => a.hash)"), ['#seeds', '#cameras', '#pictures', '#views'])
    check(label(page, 'psnr'), 'PSNR of test views. seed 1: 30.00 → 30.50; seed 7: 29.00 → 29.75; mean: 29.50 → 30.13')
    check(label(page, 'difference'), 'Difference, after − before. seed 1: +0.50; seed 7: +0.75; mean: +0.63 ± 0.13')
    # From the bars a reader sees whether the interval of twice the noise, 0.125, contains zero.
    zero, first, bar, strong = page.script("""const chart = document.getElementById('difference'), d = (css) =>
        chart.querySelector(`path[class="${css}"]`).getAttribute('d').match(/-?[\\d.]+/g).map(Number);
        const [left, , right] = d('curve after'), [near, , far] = d('curve after range');
        return [d('axis zero')[0], Number(chart.querySelector('circle').getAttribute('cx')), [left, right], [near, far]];""")
    unit = (first - zero) / 0.5  # pixels of a dB: the first seed's difference is 0.5 dB
    for drawn, expected in zip(bar + strong, (0.375, 0.875, 0.5, 0.75)):
        assert abs(drawn - zero - unit * expected) < 0.3, (drawn, expected)
    check(text(page, '#movements .legend'), 'number of views by movement in pixels1 moved less')
    titles = page.script("return [...document.querySelectorAll('#movements title')].map((x) => x.textContent)")
    check([titles[0], titles[-1]], ['0.237 to 0.316 pixels: 1 view, 0 at the limit', '31.6 to 42.2 pixels: 1 view, 1 at the limit'])
    check(rows(page, 'views'), [
        ['train/r_2.png', 'train', '1.50', 'does not fit: keeps its camera', '0.250', '0.0125', '11.50', '–', '–', '–'],
        ['train/r_1.png', 'train', '32.00', 'at the limit: keeps its camera', '0.125', '0.0125', '25.00', '–', '–', '–'],
        ['test/r_2.png', 'test', '2.00', '', '0.625', '0.0125', '25.00', '25.00', '25.50', '+0.50'],
        ['test/r_0.png', 'test', '0.50', '', '0.375', '0.0125', '25.00', '25.00', '24.50', '-0.50'],
        ['train/r_0.png', 'train', '0.25', '', '0.000', '0.0125', '25.00', '–', '–', '–'],
        ['test/r_1.png', 'test', '0.00', '', '0.500', '0.0125', '25.00', '25.00', '25.00', '+0.00']])
    page.script("[...document.querySelectorAll('#views th button')].at(-1).click()")
    check([row[0] for row in rows(page, 'views')][:3], ['test/r_0.png', 'test/r_1.png', 'test/r_2.png'])
    check(page.script("return document.querySelectorAll('.compare').length"), 3)
    sound(page, 'refinement')
    page.go(address('one'))
    check(label(page, 'psnr'), 'PSNR of test views. seed 1: 30.00 → 30.50')
    check(text(page, '#difference .legend'), 'dB; the noise is unknown')
    page.go(address('many'))
    check([len(rows(page, 'views')), rows(page, 'views')[0][0]], [1000, 'frame_09999.jpg'])
    assert text(page, '#views small').endswith(' 9000 views that have moved less are left out.')
    page.go(address('nothing'))
    check(page.script("return [...document.querySelectorAll('.absent')].map((x) => x.textContent)"), [
        'There is no PSNR of test views.', 'There are no cameras to draw.', 'No view has moved.', 'No test view has been measured.'])
    sound(page, 'nothing')


def certificate(page, address):
    page.go(address('certificate'))
    check(page.script("return [...document.querySelectorAll('nav a')].map((a) => a.hash)"),
          ['#failures', '#parts', '#trainings', '#bench', '#device', '#errors'])
    check(rows(page, 'failures'), [['basics', 'test_sums', 'certify_sums', 'f32', 'sum <b>0</b>', 'float_atomics']])
    check(rows(page, 'parts')[:2], [['lens', '1 of 1', '50.0 %', '1.2 s'], ['basics', '0 of 1', '–', '0.0 s']])
    check(rows(page, 'trainings'), [['fp32', 'tiled', '28.50 dB', '26.00 dB', '0', '20.0 s']])
    check(rows(page, 'trainings', 1), [['field_forward', '4.000 ms', '2.000 ms', '2.0', 'flops'], ['composite', '1.000 ms', '–', '–', '']])
    check(rows(page, 'bench'), [['gemm', '64x64', 'coopmat', '12.3 TFLOP/s'], ['gemm', '8x8', 'vendor', 'not supported']])
    check(text(page, '#device .facts'), 'nameCard <1>driverDrivervulkan1.4memory1234fp16yesshapes16x16x16, 8x8x8')
    check(rows(page, 'errors'), [['lens', 'test_rays', 'direction of ray', 'fp32', 'f32', '0.84', '8.39'], ['lens', 'test_rays', 'length', 'fp32', 'f32', '4.19', '8.39']])
    sound(page, 'certificate')


def without_scripts(page, address):
    """Checks what readers without scripts see. The browser's own tools still run."""
    page.devtools('Emulation.setScriptExecutionDisabled', value=True)
    for name, parts in (('full', ['Use the refined cameras.', '+0.62 ± 0.12', 'seed 1', '29.75', 'is at the limit']),
                        ('certificate', ['1 test has failed.', 'certify_sums', '50.0 %'])):
        page.go(address(name))
        body = page.script('return document.body.innerText')
        check([part for part in parts if part not in body], [])
        check([page.unnamed(), page.low_contrast()], [[], []])
        if name == 'full':
            check(page.script("return [document.querySelectorAll('.rig svg').length, [...document.images].filter((img) => img.naturalWidth > 0).length]"), [3, 9])
    page.devtools('Emulation.setScriptExecutionDisabled', value=False)


def main():
    page = Browser(1400, 900)
    try:
        with tempfile.TemporaryDirectory(prefix='vknerf-page-') as folder:
            with open(os.path.join(folder, 'certificate.json'), 'w', encoding='utf-8') as out:
                json.dump(CERTIFICATE, out)
            subprocess.run([PROGRAM, folder], check=True)
            address = lambda name: f'file://{folder}/{name}.html'
            refinement(page, address)
            certificate(page, address)
            without_scripts(page, address)
            for name in sys.argv[1:]:  # for a look: FOLDER gets pictures
                for kind in ('full', 'certificate'):
                    for width in (1400, 400):
                        for scheme in ('light', 'dark'):
                            page.resize(width, 3000)
                            page.prefer(color_scheme=scheme)
                            page.go(address(kind))
                            page.screenshot(os.path.join(name, f'{kind}-{width}-{scheme}.png'))
    finally:
        page.close()


main()
