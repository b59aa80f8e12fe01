"""Drives a headless Chromium through chromedriver, with the W3C's WebDriver protocol."""
import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request

ELEMENT = 'element-6066-11e4-a52e-4f735466cecf'  # the protocol's key of an element's reference

FILE_PIXELS = '''
const [size, png] = arguments, image = new Image();
image.src = 'data:image/png;base64,' + png;
return image.decode().then(() => {
    const canvas = document.createElement('canvas'), context = canvas.getContext('2d');
    canvas.width = canvas.height = size;
    context.imageSmoothingQuality = 'high';
    context.drawImage(image, 0, 0, size, size);
    return Array.from(context.getImageData(0, 0, size, size).data).filter((_, i) => i % 4 !== 3);
});'''
# Returns texts about controls that are outside of the window, covered by others, or without a name.
OUT_OF_REACH = '''
const bad = [];
if (document.documentElement.scrollWidth > innerWidth) bad.push('the page is wider than the window');
for (const element of document.querySelectorAll('button, input, select, a')) {
    if (!element.checkVisibility() || element.closest('dialog:not([open])')) continue;
    element.scrollIntoView({block: 'center'});
    const {left, right, top, bottom} = element.getBoundingClientRect(), name = element.id || element.outerHTML.slice(0, 90);
    if (left < 0 || right > innerWidth || top < 0 || bottom > innerHeight) bad.push('outside: ' + name);
    const on = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    if (!on || !(element.contains(on) || on.closest('.double, label') && on.closest('label, .double').contains(element)))
        bad.push('covered: ' + name);
    if (!(element.labels && element.labels.length || element.textContent.trim() || element.getAttribute('aria-label')))
        bad.push('without a name: ' + name);
}
return bad;'''
# Returns texts about shown texts and icons with less contrast than WCAG's level AA asks for: 4.5, large texts 3. Elements that
# float over others (position absolute or fixed) must have it over black and over white.
LOW_CONTRAST = '''
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
canvas.canvas.width = canvas.canvas.height = 1;
function parsed(color) {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
}
const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3]));
const luminance = (color) => color.map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + [0.2126, 0.7152, 0.0722][i] * c, 0);
const contrast = (a, b) => (Math.max(luminance(a), luminance(b)) + 0.05) / (Math.min(luminance(a), luminance(b)) + 0.05);
const bad = new Set();
for (const element of document.body.querySelectorAll('*')) {
    const icon = element.matches('svg') && element.querySelector(':scope > use');
    const text = icon ? icon.getAttribute('href') : [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.trim()).join(' ').trim();
    if (!text || !element.checkVisibility({opacityProperty: true, visibilityProperty: true}) || element.closest(':disabled, option, script, style'))
        continue;
    const style = getComputedStyle(element), layers = [];
    let opacity = 1, floats = false;
    for (let at = element; at && !floats; at = at.parentElement) {
        const its = getComputedStyle(at), background = parsed(its.backgroundColor);
        layers.push(background);
        opacity *= Number(its.opacity);
        floats = background[3] < 1 && (its.position === 'absolute' || its.position === 'fixed');
        if (background[3] === 1) break;
    }
    const color = parsed(icon ? style.stroke : element instanceof SVGElement ? style.fill : style.color);
    const large = parseFloat(style.fontSize) >= (Number(style.fontWeight) >= 700 ? 18.66 : 24);
    for (const backdrop of floats ? [[0, 0, 0], [255, 255, 255]] : [parsed('Canvas').slice(0, 3)]) {
        const below = layers.reduceRight((under, layer) => over(layer, under), backdrop);
        const ratio = contrast(over([...color.slice(0, 3), color[3] * opacity], below), below);
        if (ratio < (large ? 3 : 4.5) - 0.005) bad.add(`contrast ${ratio.toFixed(2)}: ${text.slice(0, 60)}`);
    }
}
return [...bad];'''
# Returns texts about what a screen reader cannot name or follow: pictures, tables and fields without a name, headings
# that skip a level, ids that occur twice, roles without what they need.
UNNAMED = '''
const bad = [], ids = new Set(), shown = (element) => element.checkVisibility({visibilityProperty: true}) && !element.closest('[aria-hidden=true]');
const named = (element) => element.getAttribute('aria-label') || element.getAttribute('aria-labelledby') && document.getElementById(element.getAttribute('aria-labelledby')) ||
    element.title || element.textContent.trim() || element.labels && element.labels.length;
const say = (what, element) => bad.push(`${what}: ${element.outerHTML.slice(0, 90)}`);
for (const element of document.querySelectorAll('[id]')) {
    if (ids.has(element.id)) say('id twice', element);
    ids.add(element.id);
}
if (!document.documentElement.lang) bad.push('no language');
if (!document.title) bad.push('no title');
let level = 0;
for (const element of document.querySelectorAll('h1, h2, h3, h4')) {
    if (!shown(element)) continue;
    if (element.tagName[1] - level > 1) say('heading skips a level', element);
    level = Number(element.tagName[1]);
}
for (const element of document.querySelectorAll('img')) if (!element.hasAttribute('alt')) say('no alt', element);
for (const element of document.querySelectorAll('button, a[href], input:not([type=hidden]), select, [role=img], [role=region], [role=slider], [role=dialog], dialog[open], nav'))
    if (shown(element) && !named(element) && !(element instanceof HTMLInputElement && element.getAttribute('aria-label'))) say('no name', element);
for (const element of document.querySelectorAll('th')) {
    if (shown(element) && !element.scope && element.closest('table').tHead) say('no scope', element);
    if (shown(element) && !element.textContent.trim()) say('empty heading', element);
}
for (const element of document.querySelectorAll('[aria-controls], [aria-labelledby], [aria-describedby]'))
    for (const name of ['aria-controls', 'aria-labelledby', 'aria-describedby'])
        for (const id of (element.getAttribute(name) || '').split(' ').filter(Boolean))
            if (!document.getElementById(id)) say(name + ' names nothing', element);
for (const element of document.querySelectorAll('[role=radio]')) if (!element.hasAttribute('aria-checked')) say('no aria-checked', element);
for (const element of document.querySelectorAll('*')) {
    const scrolls = element.scrollWidth > element.clientWidth + 1 && ['auto', 'scroll'].includes(getComputedStyle(element).overflowX);
    if (scrolls && element.clientWidth > 0 && element.tabIndex < 0 && !element.querySelector('a, button, input, select, [tabindex="0"]'))
        say('scrolls, but not by keys', element);
    for (const attribute of element.attributes) if (attribute.name.startsWith('on')) say('inline handler', element);
}
return bad;'''
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Browser:
    """A session with a profile of its own. close() ends browser and driver."""

    def __init__(self, width, height):
        self.profile = tempfile.mkdtemp(prefix='vknerf-browser-')
        self.driver = subprocess.Popen(['chromedriver', '--port=0'], stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True,
                                       env=dict(os.environ, HOME=self.profile))
        self.session = ''
        for line in self.driver.stdout:
            found = re.search(r'successfully on port (\d+)', line)
            if found:
                self.address = f'http://127.0.0.1:{found[1]}'
                break
        else:
            self.close()
            raise RuntimeError('chromedriver did not start')
        arguments = ['--headless=new', '--no-sandbox', '--disable-gpu', '--enable-unsafe-swiftshader', '--disable-dev-shm-usage', '--hide-scrollbars',
                     '--disable-background-networking', '--no-first-run', '--disable-extensions',
                     f'--window-size={width},{height}', f'--user-data-dir={self.profile}/profile']
        try:
            answer = self._send('POST', '/session', {'capabilities': {'alwaysMatch': {
                'browserName': 'chrome', 'goog:chromeOptions': {'args': arguments},
                'goog:loggingPrefs': {'browser': 'ALL'}}}})
        except BaseException:
            self.close()
            raise
        self.session = '/session/' + answer['sessionId']

    def _send(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.address + path, data, {'Content-Type': 'application/json'}, method=method)
        try:
            with DIRECT.open(request, timeout=60) as answer:
                return json.load(answer)['value']
        except urllib.error.HTTPError as error:
            value = json.load(error)['value']
            raise RuntimeError(f"{method} {path}: {value['error']}: {value['message'].splitlines()[0]}") from None

    def call(self, path, body=None):
        return self._send('POST', self.session + path, body if body is not None else {})

    def go(self, url):
        self.call('/url', {'url': url})

    def script(self, text, *arguments):
        """Returns the result of JavaScript; waits for it if it is a promise."""
        return self.call('/execute/sync', {'script': text, 'args': list(arguments)})

    def devtools(self, command, **parameters):
        return self.call('/goog/cdp/execute', {'cmd': command, 'params': parameters})

    def resize(self, width, height, touch=False):
        """Sets the size of the page, in CSS pixels."""
        self.devtools('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1,
                      mobile=touch)
        self.devtools('Emulation.setTouchEmulationEnabled', enabled=touch)

    def prefer(self, **features):
        """Sets media features, such as prefer(color_scheme='dark')."""
        self.devtools('Emulation.setEmulatedMedia', features=[
            {'name': 'prefers-' + name.replace('_', '-'), 'value': value} for name, value in features.items()])

    def screenshot(self, file):
        with open(file, 'wb') as out:
            out.write(base64.b64decode(self._send('GET', self.session + '/screenshot')))

    def log(self):
        """Returns the lines of the page's console since the last call."""
        return [f"{entry['level']}: {entry['message']}" for entry in self.call('/se/log', {'type': 'browser'})]

    def click(self, selector):
        """Clicks with the mouse in the middle of an element, which must be visible and not covered."""
        element = self.call('/element', {'using': 'css selector', 'value': selector})
        self.call(f'/element/{element[ELEMENT]}/click')

    def type(self, selector, text, clear=True):
        """Replaces the text of a field. A field for files takes a path and cannot be cleared."""
        element = self.call('/element', {'using': 'css selector', 'value': selector})
        if clear:
            self.call(f'/element/{element[ELEMENT]}/clear')
        self.call(f'/element/{element[ELEMENT]}/value', {'text': text})

    def png_pixels(self, file, size):
        """Returns a PNG file downscaled to `size` x `size` values of red, green and blue."""
        with open(file, 'rb') as png:
            return self.script(FILE_PIXELS, size, base64.b64encode(png.read()).decode())

    def out_of_reach(self):
        """Returns texts about controls of the page that cannot be pressed or have no name."""
        return self.script(OUT_OF_REACH)

    def low_contrast(self):
        """Returns texts about shown texts that are hard to read in the present colour scheme."""
        return self.script(LOW_CONTRAST)

    def unnamed(self):
        """Returns texts about parts of the page that a screen reader cannot name or follow."""
        return self.script(UNNAMED)

    # ---- pointers and keys ----

    def pointers(self, *tracks, kind='mouse', button=0, ms=30):
        """Drags one finger or mouse pointer per track, a list of positions; all tracks have the same length."""
        sources = []
        for number, track in enumerate(tracks):
            actions = [{'type': 'pointerMove', 'duration': 0, 'x': track[0][0], 'y': track[0][1]},
                       {'type': 'pointerDown', 'button': button}]
            for x, y in track[1:]:
                actions.append({'type': 'pointerMove', 'duration': ms, 'x': x, 'y': y})
            actions.append({'type': 'pointerUp', 'button': button})
            sources.append({'type': 'pointer', 'id': f'{kind}{number}', 'parameters': {'pointerType': kind},
                            'actions': actions})
        self.call('/actions', {'actions': sources})

    def hold(self, track):
        """Drags by the mouse without releasing its button, which release() does."""
        moves = [{'type': 'pointerMove', 'duration': 30, 'x': x, 'y': y} for x, y in track]
        self.call('/actions', {'actions': [{'type': 'pointer', 'id': 'mouse0', 'parameters': {'pointerType': 'mouse'},
                                            'actions': [moves[0], {'type': 'pointerDown', 'button': 0}] + moves[1:]}]})

    def release(self):
        """Releases all buttons and keys."""
        self._send('DELETE', self.session + '/actions')

    def double_click(self, x, y):
        click = [{'type': 'pointerDown', 'button': 0}, {'type': 'pointerUp', 'button': 0}]
        self.call('/actions', {'actions': [{'type': 'pointer', 'id': 'mouse0', 'parameters': {'pointerType': 'mouse'},
                                            'actions': [{'type': 'pointerMove', 'duration': 0, 'x': x, 'y': y}] + 2 * click}]})

    def move(self, x, y):
        self.call('/actions', {'actions': [{'type': 'pointer', 'id': 'mouse0', 'parameters': {'pointerType': 'mouse'},
                                            'actions': [{'type': 'pointerMove', 'duration': 0, 'x': x, 'y': y}]}]})

    def wheel(self, x, y, dy):
        self.call('/actions', {'actions': [{'type': 'wheel', 'id': 'wheel', 'actions': [
            {'type': 'scroll', 'x': x, 'y': y, 'deltaX': 0, 'deltaY': dy, 'duration': 0}]}]})

    def key(self, key, ms=0):
        self.call('/actions', {'actions': [{'type': 'key', 'id': 'keys', 'actions': [
            {'type': 'keyDown', 'value': key}, {'type': 'pause', 'duration': ms}, {'type': 'keyUp', 'value': key}]}]})

    def close(self):
        try:
            if self.session:
                self._send('DELETE', self.session)
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.driver.stdout.close()
            shutil.rmtree(self.profile, ignore_errors=True)
