"""Tests `report` with hostile metrics.jsonl, summary.json and config.json, of one run and of two, and with markup in
texts."""
import functools
import html.parser
import json
import os
import random
import re
import shutil

import faults

HOLDS = """vknerf report writes a page or refuses the run in one line, within seconds; the page loads nothing, runs no
script from the run's files, is valid UTF-8 and shows no nan."""
SHORT = 4
SECONDS = 30.0
LIMIT_BYTES = 200 << 20
NAMES = ("metrics.jsonl", "summary.json", "config.json")
ODD_NUMBERS = (1e308, -1e308, 1e-308, -1, None, "x", [], {}, True, 2**63, 5e-324, 1e15)
ODD_VALUES = (1e308, -1, None, "x" * 5000, [], {}, True, [[[]]], -1e308, 5e-324, "../../../../etc/passwd", "/etc/passwd",
              "views", 2**64, [1] * 5000, {"a": {"b": {"c": [1, 2, {"d": "e"}]}}}, "")
MARKUP = ("\"'><script>alert(1)</script><img src=x onerror=alert(2)>--><svg/onload=alert(3)></style></title>&lt;\x1b[31m"
          "\x0b\u2028\ud7ff")


class Page(html.parser.HTMLParser):
    """Collects everything that a page would load or run."""

    def __init__(self):
        super().__init__()
        self.scripts, self.loads = 0, []

    def handle_starttag(self, tag, attributes):
        self.scripts += tag == "script"
        for key, value in attributes:
            outside = key in ("href", "src") and value and not value.startswith(("data:image", "#"))
            if key.startswith("on") or outside:
                self.loads.append((tag, key, (value or "")[:60]))


def check_page(path, scripts):
    """Returns problems of a page, which has so many scripts of its own."""
    try:
        text = faults.read_file(path).decode("utf-8")
    except UnicodeDecodeError as error:
        return [f"the page is not UTF-8: {error}"]
    page = Page()
    page.feed(text)
    problems = [f"the page loads or runs {page.loads[:3]}"] if page.loads else []
    if page.scripts > scripts:
        problems.append(f"the page has {page.scripts} scripts instead of {scripts}")
    if re.search(r'[="\s,(](-?nan|-?inf)\b', text):
        problems.append("the page shows nan or inf")
    if re.search("[\x00-\x08\x0b-\x1f]", text):
        problems.append("the page holds control characters")
    if len(text) > LIMIT_BYTES:
        problems.append(f"the page has {len(text)} bytes")
    return problems


# ---- files -----------------------------------------------------------------------------------------------

def leaves(value, path=()):
    """Returns the paths of all values; of arrays the first two."""
    yield path
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else list(enumerate(value))[:2]
        for key, inner in items:
            yield from leaves(inner, path + (key,))


def put(value, path, new):
    """Returns a copy of a JSON value with another one at the path."""
    if not path:
        return new
    value = json.loads(json.dumps(value))
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return value


def marked(value, key=""):
    """Returns a JSON value whose texts, and some keys, contain markup."""
    if isinstance(value, dict):
        inner = {name: marked(item, name) for name, item in value.items()}
        return {**inner, MARKUP: MARKUP, MARKUP + "2": {MARKUP: [MARKUP, {MARKUP: MARKUP}]}}
    if isinstance(value, list):
        return [marked(item, key) for item in value]
    return MARKUP if isinstance(value, str) and key not in ("render", "target", "error") else value


def metrics_of(text):
    """Returns metrics.jsonl with odd values, and other texts."""
    first = json.loads(text.splitlines()[0])
    found = {}
    for key in first:
        for value in ODD_NUMBERS:
            lines = ({**first, key: value}, {**first, key: value, "step": 1000})
            found[f"{key} {value!r}"] = "".join(json.dumps(line) + "\n" for line in lines)
        found[f"no {key}"] = json.dumps({name: value for name, value in first.items() if name != key}) + "\n"
    return {**found, "empty": "", "empty lines": "\n" * 1000, "zero bytes": "\0" * 1000, "torn": text[:-30],
            "torn in the middle": text[:200] + "\n" + text, "backwards": "".join(reversed(text.splitlines(True))),
            "crlf": text.replace("\n", "\r\n"), "deep": "[" * 1000, "one step": text.splitlines(True)[0] * 50,
            "nan": '{"step": NaN}\n', "1e400": '{"step": 1e400}\n', "byte order mark": "\ufeff" + text,
            "progress": "step 64/64 (100%)\n" + text, "garbage at the end": text + "Hello\n"}


def large_of(run):
    """Returns files of many megabytes to replace those of a run."""
    line = (faults.read_file(run + "/metrics.jsonl").decode().splitlines() or ["{}"])[0]
    summary, config = faults.read_json(run + "/summary.json"), faults.read_json(run + "/config.json")
    return {"300000 lines": {"metrics.jsonl": (line + "\n") * 300000},
            "20000 pictures": {"summary.json": {**summary, "pictures": summary.get("pictures", []) * 7000}},
            "20000 evaluations": {"summary.json": {**summary, "evaluations": summary["evaluations"] * 10000}},
            "200000 passes": {"summary.json": {**summary, "passes": summary["passes"][:1] * 200000}},
            "100000 settings": {"config.json": {**config, **{f"k{i}": i for i in range(100000)}}}}


@functools.lru_cache(maxsize=None)
def files_of(run):
    """Returns the files that replace a run's files in each case, by name."""
    metrics = faults.read_file(run + "/metrics.jsonl").decode()
    found = {f"metrics: {name}": {"metrics.jsonl": text} for name, text in metrics_of(metrics).items()}
    rnd = random.Random(5)
    for name, count in (("summary.json", 4), ("config.json", 2)):
        whole = faults.read_json(f"{run}/{name}")
        for path in leaves(whole):
            for value in rnd.sample(ODD_VALUES, count):
                key = f"{name}: {'.'.join(map(str, path))} {str(value)[:12]}"
                found[key] = {name: put(whole, path, value)}
    found["markup"] = {name: marked(faults.read_json(f"{run}/{name}")) for name in ("summary.json", "config.json")}
    return found


# ---- the sweep -------------------------------------------------------------------------------------------

def cases(shared):
    run = faults.model_run(shared)
    return [["small", name] for name in files_of(run)] + [["large", name] for name in large_of(run)]


def pick(rnd, found, count):
    """Omits most of the largest, which take seconds; always includes markup."""
    small = [case for case in found if case[0] == "small" and case[1] != "markup"]
    return [["small", "markup"]] + faults.draw(rnd, small, count - 1)


def scripts_of(sandbox, page):
    """Returns the number of scripts in a page of intact runs."""
    known = sandbox.shared.__dict__.setdefault("scripts", {})
    if page not in known:
        model = faults.model_run(sandbox)
        runs = [model] if page == "one" else [model, model]
        ended = sandbox.run("report", *runs, "--out", sandbox.path("plain.html"))
        if ended.code != faults.DONE:
            raise faults.Broken(f"a report without faults: {ended.last_line()}")
        parsed = Page()
        parsed.feed(faults.read_file(sandbox.path("plain.html")).decode())
        known[page] = parsed.scripts
    return known[page]


def try_case(case, sandbox):
    kind, name = case
    model, run = faults.model_run(sandbox), sandbox.path("run")
    shutil.copytree(model, run)
    faults.remove(run + "/report.html")
    for file, value in (files_of(model) if kind == "small" else large_of(model))[name].items():
        text = value if isinstance(value, str) else json.dumps(value)
        faults.write_file(os.path.join(run, file), text.encode("utf-8", "surrogatepass"))
    problems, codes = [], []
    for what, runs in (("one", [run]), ("two", [model, run])):
        page = sandbox.path(what + ".html")
        ended = sandbox.run("report", *runs, "--out", page, timeout=SECONDS)
        codes.append(ended.code)
        wrong = faults.check_refused(ended)
        wrong += check_page(page, scripts_of(sandbox, what)) if ended.code == faults.DONE else []
        problems += faults.prefixed(f"page of {what}", wrong)
    return faults.Outcome(problems, {"code": codes[0], "codes": codes, "said": ended.last_line()})
