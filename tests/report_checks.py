"""Checks that the tests of report pages share."""


def check(value, expected):
    if value != expected:
        raise AssertionError(f'{value!r} is not {expected!r}')


def sound(page, where):
    """Checks that the browser has no complaints, and what axe-core would check, at three sizes in both colour schemes."""
    for width in (1400, 800, 400):
        page.resize(width, 900)
        check([where, width, page.unnamed(), page.out_of_reach()], [where, width, [], []])
        for scheme in ('dark', 'light'):
            page.prefer(color_scheme=scheme)
            check([where, scheme, page.low_contrast()], [where, scheme, []])
    page.resize(1400, 900)
    quiet(page)


def quiet(page):
    check([line for line in page.log() if not line.startswith(('INFO', 'DEBUG'))][:5], [])


def text(page, selector):
    return page.script("return document.querySelector(arguments[0])?.textContent ?? ''", selector)


def label(page, chart):
    return page.script("return document.querySelector(`#${arguments[0]} svg.plot`).getAttribute('aria-label')", chart)
