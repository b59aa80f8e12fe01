#!/usr/bin/env python3
"""Tests the viewer's server: answers about runs and trainings, access control, attacks, and that a training is the
same whether it is viewed or not. (test_viewer_page tests the page.)"""

import glob
import json
import math
import os
import re
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from urllib.parse import quote

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import viewer_client  # noqa: E402
from viewer_client import Program, frame_path, jpeg_size, tensors, wait_for  # noqa: E402

VKNERF = os.environ["VKNERF_BIN"]
DEMO = os.path.join(os.environ["VKNERF_SOURCE_DIR"], "assets/demo")
SMALL = viewer_client.SMALL.format(128).split() + ["--downscale", "8", "--tensorboard", "off"]
STEPS = 400
WINDOWS = "VKNERF_WINDOWS" in os.environ  # the program runs under Wine


def not_on_windows(name, reason):
    """Returns whether a test is skipped, and prints that."""
    if WINDOWS:
        print(f"skipped: {name}: {reason}", flush=True)
    return WINDOWS


def vknerf(*arguments, environment=None, program=VKNERF):
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=120, check=False,
                          env={**os.environ, **(environment or {})})


def train(out, *more):
    done = vknerf("train", DEMO, "--out", out, *SMALL, *more)
    assert done.returncode == 0, done.stderr


# ---- access control ---------------------------------------------------------------------------------------------


def raw(port, data, seconds=0.5):
    """Returns what is received until the connection ends, or is silent for that many seconds."""
    got = b""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        try:
            connection.sendall(data)
            connection.settimeout(seconds)
            while True:
                piece = connection.recv(65536)
                if not piece:
                    break
                got += piece
        except OSError:
            pass
    return got


def check_access(viewer):
    """Checks answers to other tokens, hosts, origins, methods, content types and sizes."""
    code, headers, body = viewer.get("/")
    assert code == 200 and b"<!doctype html>" in body.lower() and b"@NONCE" not in body
    nonce = body.split(b'nonce="')[1].split(b'"')[0].decode()
    assert len(nonce) == 32 and f"script-src 'nonce-{nonce}'" in headers["Content-Security-Policy"]
    assert viewer.get("/")[2] != body, "the nonce is used twice"
    assert headers["Cache-Control"] == "no-store" and headers["X-Content-Type-Options"] == "nosniff"
    for token in ("", viewer.token[:-1], viewer.token + "0", viewer.token[:-1] + ("0" if viewer.token[-1] != "0" else "1")):
        code, _, body = viewer.get("/", token=token)
        assert code == 403 and b"<script" not in body, (token, code)
        for path in ("/api/scene", "/api/state", "/api/frame", "/api/photo", "/api/poses", "/api/probe", "/api/path", "/api/task",
                     "/api/file?name=exports/a.ply"):
            assert viewer.get(path, token=token)[0] == 403
        assert viewer.post("/api/control", {"action": "stop"}, token=token)[0] == 403
    for host in ("evil.example", f"evil.example:{viewer.port}", "127.0.0.1.evil.example", "10.0.0.1", "[::2]", "", ":80",
                 "127.0.0.1:80x"):
        assert viewer.get("/api/state", host=host)[0] == 403, host
    for host in ("localhost", "LOCALHOST:9", "[::1]:7007", "127.0.0.1"):
        assert viewer.get("/api/state", host=host)[0] == 200, host
    assert b" 403 " in raw(viewer.port, f"GET /api/state?token={viewer.token} HTTP/1.0\r\n\r\n".encode())
    for origin in ("http://evil.example", "null", "https://127.0.0.1", f"http://evil.example:{viewer.port}"):
        assert viewer.post("/api/control", {"action": "stop"}, headers={"Origin": origin})[0] == 403, origin
        assert viewer.get("/api/state", headers={"Origin": origin})[0] == 403, origin
    assert viewer.request("POST", "/api/control", "{}", {"Content-Type": "application/json"})[0] == 403
    assert viewer.post("/api/control", "{}", headers={"Content-Type": "text/plain"})[0] == 415
    assert viewer.get("/api/control")[0] == 405 and viewer.post("/api/state", {})[0] == 405
    assert viewer.get("/etc/passwd")[0] == 404 and viewer.get("/../../etc/passwd")[0] == 404
    assert viewer.post("/api/control", "x" * 70000)[0] == 413
    head = f"POST /api/path?token={viewer.token} HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\nContent-Type: application/json\r\n"
    assert b" 413 " in raw(viewer.port, f"{head}Content-Length: {(2 << 20) + 1}\r\n\r\n".encode())
    assert viewer.post("/api/task", "{}", headers={"Origin": "http://evil.example"})[0] == 403


def check_requests(viewer, pose):
    """Checks answers to invalid parameters."""
    for bad in ({"fov": 0}, {"fov": "nan"}, {"width": 0}, {"width": 100000}, {"map": "beauty"}, {"still": 2},
                {"background": "red"}, {"crop": "1,2,3"}, {"crop": "1,1,1,0,0,0"}, {"time": 2}, {"client": "a b"},
                {"lens": "magic"}, {"second": "beauty"}, {"palette": "jet"}, {"range": "2,1"}, {"range": "1"}, {"exposure": 17}):
        bad = {key: str(value).replace(" ", "%20") for key, value in bad.items()}
        code, _, body = viewer.frame(pose, **bad)
        assert code == 400 and next(iter(bad)) in json.loads(body)["error"], (bad, code, body)
    for bad in (pose[:11], pose + [0], [2 * x for x in pose], [0] * 12, ["inf"] * 12):
        assert viewer.frame(bad)[0] == 400, bad
    for pixel in ("", "1", "0.5,2", "nan,0", "0.5,0.5,0.5"):
        code, _, body = viewer.get(frame_path(pose, pixel=pixel).replace("frame", "probe"))
        assert code == 400 and "pixel" in json.loads(body)["error"], (pixel, body)
    assert viewer.get("/api/photo?split=train&view=9999")[0] == 404
    assert viewer.get("/api/photo?split=none&view=0")[0] == 400 and viewer.get("/api/photo?view=x")[0] == 400
    for body in ("", "{", "[]", "{}", '{"action": 1}', '{"action": "explode"}', "\0" * 100):
        assert viewer.post("/api/control", body)[0] in (400, 409), body


def attack(viewer, begun):
    """Holds connections open and sends malformed and huge requests; sets `begun` on the way."""
    head = f"GET /api/state?token={viewer.token} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    halves = [socket.create_connection(("127.0.0.1", viewer.port), timeout=30) for _ in range(20)]
    for half in halves:
        half.sendall(head.encode())
    answer = raw(viewer.port, (head + "X: " + "x" * 10_000_000 + "\r\n\r\n").encode())
    assert b" 200 " not in answer, answer[:100]
    answer = raw(viewer.port, (head + "X: y\r\n" * 1_000_000 + "\r\n").encode())
    assert b" 200 " not in answer, answer[:100]
    post = f"POST /api/path?token={viewer.token} HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\n" \
           "Content-Type: application/json\r\n"
    assert b" 413 " in raw(viewer.port, (post + "Content-Length: 100000000000\r\n\r\n").encode() + b"x" * 100000)
    chunks = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    assert b" 200 " not in raw(viewer.port, (post + "Transfer-Encoding: chunked\r\n\r\n").encode() + 20 * chunks)
    begun.set()
    assert b" 200 " not in raw(viewer.port, b"\x16\x03\x01\x02\x00" + os.urandom(1000) + b"\r\n\r\n")
    good = (head + "\r\n").encode()
    assert raw(viewer.port, good + good + os.urandom(500) + b"\r\n\r\n").count(b" 200 ") <= 2
    assert b" 200 " in raw(viewer.port, good), "other connections are not served meanwhile"
    return halves


def seconds_open(viewer, data, more, seconds=30):
    """Returns how long a connection stays open that sends another piece every half second."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", viewer.port), timeout=30) as connection:
        try:
            connection.sendall(data)
            while time.monotonic() - began < seconds:
                connection.settimeout(0.5)
                try:
                    if not connection.recv(65536):
                        break
                except TimeoutError:
                    connection.sendall(more)
        except OSError:
            pass
    return time.monotonic() - began


def send_slowly(viewer, slow, least, most):
    """Starts endless requests {name: (beginning, piece)}; the returned function waits until all are closed."""
    found = {}
    threads = [threading.Thread(target=lambda name=name, data=data, more=more: found.__setitem__(
        name, seconds_open(viewer, data.encode(), more.encode()))) for name, (data, more) in slow.items()]
    for thread in threads:
        thread.start()

    def ended():
        for thread in threads:
            thread.join()
        assert found.keys() == slow.keys() and all(least < seconds < most for seconds in found.values()), found
    return ended


def send_slowly_with_token(viewer):
    """Checks the limit of ten seconds for a head and ten for a body."""
    head = f"GET /api/state?token={viewer.token} HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "
    post = f"POST /api/path?token={viewer.token} HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\n" \
           "Content-Type: application/json\r\n"
    return send_slowly(viewer, {
        "head": (head, "x"), "body": (post + "Content-Length: 1000\r\n\r\n", "x"),
        "chunks": (post + "Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n"),
        "continued": (post + "Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n", "x")}, 9, 14)


def send_slowly_without_token(viewer):
    """Checks the limit of five seconds."""
    return send_slowly(viewer, {"begun": ("G", "x"), "silent": ("", "")}, 4, 9)


def answered(viewer):
    """Checks that a new connection with the token is answered at once."""
    began = time.monotonic()
    answer = raw(viewer.port, f"GET /api/scene?token={viewer.token} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                 "Connection: close\r\n\r\n".encode(), 10)
    assert b" 200 " in answer and time.monotonic() - began < 4, (answer[:100], time.monotonic() - began)


def check_connection_limit(viewer):
    """Opens more connections without the token than the limit, which send nothing, a byte, or empty lines; then sends
    more refused requests than are answered."""
    other = socket.create_connection(("127.0.0.1", viewer.port), timeout=10, source_address=("127.0.0.2", 0))
    held = []
    for number in range(250):
        held.append(socket.create_connection(("127.0.0.1", viewer.port), timeout=30))
        held[-1].sendall((b"", b"G", b"\r\n\r\n")[number % 3])
    # They displace each other, but no connection from another address.
    other.sendall(f"GET /api/state?token={viewer.token} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    assert b" 200 " in other.recv(4096)
    other.close()
    answered(viewer)
    bad = f"GET /api/state?token={'0' * 32} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    began, answers = time.monotonic(), [raw(viewer.port, bad, 10) for _ in range(400)]
    refused = sum(b" 403 " in answer for answer in answers)
    assert refused <= 100 + 100 * (time.monotonic() - began), (refused, time.monotonic() - began)
    answered(viewer)
    for connection in held:
        connection.close()


def hold_connections(viewer):
    """Opens more connections with the token than the limit. After they are closed, others are served."""
    head = f"GET /api/state?token={viewer.token} HTTP/1.1\r\nX".encode()
    held = []
    for _ in range(250):
        held.append(socket.create_connection(("127.0.0.1", viewer.port), timeout=30))
        held[-1].sendall(head)
    time.sleep(0.2)
    for connection in held:
        connection.close()
    wait_for(lambda: raw(viewer.port, head + b": y\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n", 5), 20)


def check_parallel_requests(viewer, pose):
    """Sends a hundred requests at once: all are answered, at most eight at a time with pictures."""
    codes, lock = [], threading.Lock()

    def ask(number):
        path = frame_path(pose, client=f"c{number}") + "&token=" + viewer.token
        answer = raw(viewer.port, f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode(), 60)
        with lock:
            codes.append(int(answer.split(b" ")[1]) if answer else 0)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(codes) <= {200, 503} and 1 <= codes.count(200) and codes.count(503) >= 50, codes


# ---- a training ------------------------------------------------------------------------------------------------


def check_rate(state):
    """Checks that the rate is the mean over the last four seconds, or over all."""
    if state["state"] != "training" or len(state["metrics"]) < 2:
        return
    step, seconds = state["metrics"][-1][:2]
    first = next((metric for metric in reversed(state["metrics"]) if seconds - metric[1] >= 4), state["metrics"][0])
    rate = (step - first[0]) / (seconds - first[1])
    assert abs(state["steps_per_second"] - rate) < 1e-3 * rate, (state, rate)


def check_training(plain, watched):
    """Viewed and attacked, paused and saved, the training has the same steps as `plain`."""
    viewer = Program("train", DEMO, "--out", watched, *SMALL, "--deterministic", "--steps", str(STEPS), "--view=0", "--json")
    state = viewer.state()
    assert state["state"] in ("opening", "training") and state["metrics"] == [] and state["can"]["end"] is False, state
    scene = viewer.scene()
    assert scene["mode"] == "train" and scene["run"] == watched and scene["model"] == "ngp"
    pose = scene["views"][0]["pose"]
    assert viewer.post("/api/control", {"action": "pause"}) == (200, {"ok": True})
    paused = wait_for(lambda: viewer.state()["state"] == "paused" and viewer.state())
    check_access(viewer)
    check_requests(viewer, pose)
    check_parallel_requests(viewer, pose)
    check_connection_limit(viewer)
    assert viewer.post("/api/control", {"action": "save"})[0] == 200
    code, answer = viewer.post("/api/control", {"action": "save"})
    assert code == 429 and "10 s" in answer["error"], (code, answer)
    saved = os.path.join(watched, "checkpoint.safetensors")
    wait_for(lambda: os.path.exists(saved))
    shutil.copy(saved, watched + ".early")
    check_share(viewer)
    later = viewer.state()
    assert later["step"] == paused["step"] < STEPS and later["seconds"] == paused["seconds"], (paused, later)
    wait_for(lambda: viewer.frame(pose)[0] == 200)  # all other requests are finished
    attacks, begun = [], threading.Event()
    attacker = threading.Thread(target=lambda: attacks.append(attack(viewer, begun)))
    attacker.start()
    assert begun.wait(60)
    assert viewer.post("/api/control", {"action": "resume"})[0] == 200
    frames, steps, busy = 0, set(), set()
    while viewer.state()["state"] != "finished":
        code, headers, body = viewer.frame(pose, still=frames % 3 // 2)
        state = viewer.state()
        check_rate(state)
        assert state["busy"] == (state["state"] == "ending") and (not state["busy"] or state["activity"]), state
        if code == 200:
            assert jpeg_size(body) == (int(headers["X-Width"]), int(headers["X-Height"]))
            steps.add(int(headers["X-Step"]))
            frames += 1
        elif code != 204:
            assert code == 503, (code, body)
            busy.add(json.loads(body)["error"])
    assert frames >= 3 and len(steps) >= 2, (frames, steps)
    assert all(re.fullmatch("saving the training|loading the checkpoint.*|evaluating.*|[a-z ]+ [0-9]+/[0-9]+", why) for why in busy), busy
    check_after_training(viewer, watched, pose)
    attacker.join()
    assert attacks, "the training ended before all attacks"
    for half in attacks[0]:
        half.close()
    assert tensors(saved) == tensors(os.path.join(plain, "checkpoint.safetensors")), "the viewer changed the training"


def check_share(viewer):
    """Pages set the share of the training's time that rendering may take."""
    for share in (0.3, 1, 0.02):
        assert viewer.post("/api/control", {"action": "share", "share": share})[0] == 200
        assert viewer.state()["share_limit"] == share
    for share in (0, 0.019, 1.01, -1, None, "0.5", [1], 1e300):
        code, answer = viewer.post("/api/control", {"action": "share", "share": share})
        assert code == 400 and answer["error"].startswith("share: "), (share, code, answer)
    assert viewer.post("/api/control", '{"action": "share", "share": NaN}')[0] == 400
    assert viewer.state()["share_limit"] == 0.02
    assert viewer.post("/api/control", {"action": "share", "share": 0.5})[0] == 200


def rendering_share(viewer, pose, share, seconds=1.2):
    """Returns the share of the time in which frames of a moving camera are rendered during a training."""
    assert viewer.post("/api/control", {"action": "share", "share": share})[0] == 200
    viewer.frame(pose, width=400, height=300)
    began, rendered = time.monotonic(), 0
    while time.monotonic() - began < seconds:
        code, headers, _ = viewer.frame(pose, width=400, height=300)
        rendered += 1e-3 * float(headers["X-Milliseconds"]) if code == 200 else 0
    assert 0 <= viewer.state()["share"] <= 1
    return rendered / (time.monotonic() - began)


def check_after_training(viewer, run, pose):
    """The viewer stays open at the same address, shows the checkpoint as `vknerf view` does, and ends by request."""
    state = viewer.state()
    assert re.fullmatch(r"The training has ended: PSNR [0-9.]+ dB on 12 test views", state["end"]), state
    assert state["stays"] and state["command"] == f"vknerf view {run}" and 5 < state["end_psnr"] < 60, state
    assert 0 < state["end_ssim"] < 1 and state["step"] == STEPS and state["eta"] is None, state
    assert state["can"] == {"pause": False, "save": False, "stop": False, "share": False, "end": True}, state
    refine(viewer, pose, client="after")
    for action in ("pause", "stop", "save", "share"):
        assert viewer.post("/api/control", {"action": action})[0] == 409, action
    # An evaluation during the training has a part of the views; the last one is read soon after it is written.
    views = wait_for(lambda: (lambda views: len(views) == 12 and views)(viewer.state()["views"]))
    assert views[0][0] == "test_000", views
    assert abs(sum(psnr for _, psnr in views) / 12 - state["end_psnr"]) < 1e-4, (views, state)
    printed = ""  # the result is printed before the viewer is ended
    while not printed.endswith("}\n"):
        printed += viewer.process.stdout.readline()
    assert abs(json.loads(printed)["psnr"] - state["end_psnr"]) < 1e-4, (printed, state)
    assert viewer.post("/api/control", {"action": "end"}) == (200, {"ok": True})
    assert viewer.end() == 0 and not viewer.output, (viewer.output, viewer.errors)
    assert f"the viewer stays open; Ctrl-C, or End on its page, ends it: {viewer.url}\n" in viewer.errors, viewer.errors


def check_demo(folder):
    """The viewer of the demo stays open, too, when the orbit has been rendered."""
    viewer = Program("demo", "--out", os.path.join(folder, "demo"), *SMALL, "--steps", "2", "--quiet", "--view=0")
    printed = []
    while not printed or not printed[-1].startswith("the viewer stays open; "):
        printed.append(viewer.process.stdout.readline())
        assert printed[-1], viewer.process.stderr.read()
    assert printed[-2] == f"orbit: {folder}/demo/orbit\n", printed
    assert wait_for(lambda: viewer.state()["state"] == "finished")
    assert viewer.post("/api/control", {"action": "end"})[0] == 200
    assert viewer.end() == 0, viewer.errors


def begin_paused(*arguments):
    viewer = Program("train", *arguments, "--steps", "1000000", "--view=0")
    viewer.scene()
    assert viewer.post("/api/control", {"action": "pause"})[0] == 200
    wait_for(lambda: viewer.state()["state"] == "paused")
    return viewer


def check_failure(run, folder):
    """A training that diverges leaves the viewer open on the last good checkpoint; its exit code stays."""
    out = os.path.join(folder, "diverged")
    shutil.copytree(run, out)
    viewer = Program("train", "--resume", out, "--steps", "100000", "--set", "policy.moments=f16", "--set",
                     "optimizer.learning_rate=0.02", "--view=0")
    state = wait_for(lambda: viewer.state()["state"] == "failed" and viewer.state())
    assert "the training has diverged" in state["end"] and state["stays"], state
    assert state["command"] == f"vknerf view {out}" and state["step"] == STEPS, state
    refine(viewer, viewer.scene()["views"][0]["pose"])
    assert viewer.post("/api/control", {"action": "end"})[0] == 200
    assert viewer.end() == 1 and "the training has diverged" in viewer.errors, viewer.errors


def check_stop(run, viewer, folder):
    """A stop from the page, and Ctrl-C while paused, both save."""
    assert viewer.post("/api/control", {"action": "resume"})[0] == 200
    pose = viewer.scene()["views"][0]["pose"]
    shares = [rendering_share(viewer, pose, share) for share in (0.02, 1)]
    assert shares[0] < 0.15 and shares[1] > 0.25, shares
    # `stop` is always possible; other requests that change the training are limited in number.
    codes = [viewer.post("/api/control", {"action": "resume"})[0] for _ in range(30)]
    assert codes.count(200) <= 21 and set(codes) <= {200, 429}, codes
    assert viewer.post("/api/control", {"action": "end"})[0] == 409
    assert viewer.post("/api/control", {"action": "stop"})[0] == 200
    state = wait_for(lambda: viewer.state()["state"] == "stopped" and viewer.state())
    assert re.fullmatch(r"The training was stopped at step \d+ and is saved", state["end"]), state
    assert re.fullmatch(r"vknerf train --resume '?[^']*/waiting'?", state["command"]) and state["end_psnr"] is None, state
    refine(viewer, pose, client="after")
    viewer.signal()
    assert viewer.end() == 130 and "and saved; go on with" in viewer.errors, viewer.errors
    out = os.path.join(folder, "stopped")
    shutil.copytree(run, out)
    check_failure(run, folder)
    viewer = begin_paused("--resume", out)
    viewer.signal()
    assert viewer.end() == 130 and "and saved; go on with" in viewer.errors, viewer.errors
    # Synchronous ranks would wait for each other.
    viewer = Program("train", "--resume", out, "--devices", "0,0", "--steps", "1000000", "--view=0")
    viewer.scene()
    code, answer = viewer.post("/api/control", {"action": "pause"})
    assert code == 400 and "several ranks" in answer["error"], (code, answer)
    assert viewer.state()["can"]["pause"] is False
    assert viewer.post("/api/control", {"action": "stop"})[0] == 200
    wait_for(lambda: viewer.state()["state"] == "stopped")
    refine(viewer, pose, client="after")  # on the first of the devices
    assert viewer.post("/api/control", {"action": "end"})[0] == 200
    assert viewer.end() == 130, viewer.errors


# ---- a run -----------------------------------------------------------------------------------------------------


def refine(viewer, pose, **parameters):
    """Returns the fully refined picture."""
    for _ in range(200):
        code, headers, body = viewer.frame(pose, still=1, **parameters)
        if code == 200 and headers["X-Refined"] == "1.000":
            return body
        assert code in (200, 204), body
    raise AssertionError("the picture is never finished")


def request_finished(viewer, pose):
    """Asks for a finished picture. The returned function waits for the answer "not modified"."""
    refine(viewer, pose, client="patient")
    path, answers = frame_path(pose, client="patient", still=1) + "&token=" + viewer.token, []
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode()
    thread = threading.Thread(target=lambda: answers.append(raw(viewer.port, request, 30)))
    thread.start()

    def unchanged():
        thread.join()
        assert answers[0].startswith(b"HTTP/1.1 204 "), answers[0][:100]
    return unchanged


def check_picture(run, viewer, view, folder):
    """The viewer's picture equals what `eval` renders: it is used as the image of a scene."""
    scene = os.path.join(folder, "shown")
    os.makedirs(scene, exist_ok=True)
    size = 160
    with open(os.path.join(scene, "a.jpg"), "wb") as file:
        file.write(refine(viewer, view["pose"], width=size, height=size, background="white"))
    matrix = [view["pose"][4 * row:4 * row + 4] for row in range(3)] + [[0, 0, 0, 1]]
    frames = {"camera_angle_x": 40 * 3.14159265358979 / 180, "frames": [{"file_path": "a.jpg", "transform_matrix": matrix}]}
    for name in ("train", "test"):
        with open(os.path.join(scene, f"transforms_{name}.json"), "w", encoding="utf-8") as file:
            json.dump(frames, file)
    done = vknerf("eval", run, "--scene", scene, "--background", "white", "--json")
    assert done.returncode == 0, done.stderr
    psnr = json.loads(done.stdout)["psnr"]
    assert psnr > 29, psnr  # four rays a pixel against one
    frames["frames"][0]["transform_matrix"][0][3] += 0.5  # another position gives another picture
    with open(os.path.join(scene, "transforms_test.json"), "w", encoding="utf-8") as file:
        json.dump(frames, file)
    done = vknerf("eval", run, "--scene", scene, "--background", "white", "--json")
    assert json.loads(done.stdout)["psnr"] < psnr - 8, (psnr, done.stdout)


def check_focus(viewer, scene):
    """The page's orbit centre is the focus point of `vknerf info` and of orbits."""
    done = vknerf("info", scene, "--json")
    info, facts = json.loads(done.stdout), viewer.scene()
    space = info["training_space"]
    focus = [x * space["scale"] + y for x, y in zip(facts["look_at"], space["offset"])]
    assert max(abs(x - y) for x, y in zip(focus, info["cameras"]["look_at"])) < 1e-5, (focus, info["cameras"])
    assert facts["up"] == [0, 0, 1], facts["up"]


def check_maps(viewer, run, view):
    """Probes agree with the depths that `render` writes; a picture of two maps has one below the other."""
    out = run + ".depths"
    done = vknerf("render", run, "--split", "train", "--out", out, "--maps", "depth_values,opacity", "--width", "50", "--height", "50")
    assert done.returncode == 0, done.stderr
    with open(os.path.join(out, "frame_0000_depth.npy"), "rb") as file:
        depths = struct.unpack("<2500f", file.read()[-10000:])
    fov = 2 * math.degrees(math.atan(view["height"] / 2 / view["focal_y"]))
    same = {"fov": fov, "width": 50, "height": 50}
    probe = lambda **more: viewer.json(frame_path(view["pose"], **same, **more).replace("frame", "probe"))
    opaque = [i for i, depth in enumerate(depths) if depth > 0]
    for y, x in (divmod(opaque[len(opaque) * i // 4], 50) for i in range(4)):
        got = probe(pixel=f"{(x + 0.5) / 50},{(y + 0.5) / 50}")
        assert abs(got["depth"] - depths[50 * y + x]) <= 1e-3 * depths[50 * y + x] and len(got["color"]) == 3, (x, y, got, depths[50 * y + x])
    hit = sorted(depth for depth in depths if depth > 0)
    got = probe()
    assert hit[0] * 0.95 < got["near"] < got["far"] < hit[-1] * 1.05, (got, hit[0], hit[-1])
    assert probe(crop="90,90,90,91,91,91") == {}
    frame = lambda **more: viewer.frame(view["pose"], **same, map="depth", client="maps", **more)
    code, headers, body = frame(second="opacity")
    assert jpeg_size(body) == (int(headers["X-Width"]), 2 * int(headers["X-Height"])), headers
    assert len({frame(second=other)[2] for other in ("opacity", "rgb", "depth")}) == 3
    shown = [frame(**more)[2] for more in ({}, {"range": "3,5"}, {"palette": "turbo"}, {"palette": "grey"}, {"background": "black"})]
    assert len(set(shown)) == len(shown)
    assert frame(exposure=2)[2] == shown[0] and viewer.frame(view["pose"], exposure=2)[2] != viewer.frame(view["pose"])[2]
    # Published values of the palettes at their ends and in their middle.
    known = {"viridis": ((68, 1, 84), (33, 145, 140), (253, 231, 37)), "inferno": ((0, 0, 4), (188, 55, 84), (252, 255, 164)),
             "turbo": ((48, 18, 59), (164, 252, 60), (122, 4, 3)), "grey": ((0, 0, 0), (128, 128, 128), (255, 255, 255))}
    for name, colors in viewer.scene()["palettes"].items():
        for text, wanted in zip((colors[0], colors[8], colors[16]), known.pop(name)):
            found = [int(text[i:i + 2], 16) for i in (1, 3, 5)]
            assert max(abs(a - b) for a, b in zip(found, wanted)) < (34 if name == "turbo" else 16), (name, found, wanted)
    assert not known


def check_paths(viewer, run, pose):
    keys = [{"position": pose[3::4], "look_at": [0, 0, 0]}, {"position": [x + 0.1 for x in pose[3::4]], "look_at": [0, 0, 0]}]
    code, answer = viewer.post("/api/path", {"name": "turn", "path": {"keyframes": keys, "frames": 2}})
    assert code == 200 and answer["file"] == os.path.join(run, "paths/turn.json"), answer
    done = vknerf(*answer["command"].split()[1:-1], run + ".turn", "--width", "8", "--height", "8")
    assert done.returncode == 0 and os.path.exists(run + ".turn/frame_0001.png"), done.stderr
    code, answer = viewer.post("/api/path", {"name": "turn", "overwrite": True,
                                             "path": {"keyframes": [{"position": "here"}], "frames": 2}})
    assert code == 400 and "position" in answer["error"] and ".part" not in answer["error"], answer
    path = {"keyframes": keys, "frames": 2, "width": 16, "height": 8}
    for name in ("", "../x", "a/b", "a\\b", "a" * 121, ".x", "x.", "x ", "a:b", "con", "LPT1.x", "a\nb"):
        assert viewer.get(f"/api/path?name={quote(name)}")[0] == 400, name
    for name in ("", "../x", 1, None):
        assert viewer.post("/api/path", {"name": name, "path": path})[0] == 400, name
    assert viewer.post("/api/path", {"name": "turn", "path": path})[0] == 409
    assert viewer.json("/api/path?name=turn")["path"]["keyframes"][0]["position"] == pose[3::4]
    assert viewer.post("/api/path", {"name": "ü 1", "path": path})[0] == 200
    assert viewer.post("/api/path", {"name": "turn", "path": path, "overwrite": True})[0] == 200
    assert sorted(viewer.json("/api/path")["paths"]) == ["turn", "ü 1"]
    assert viewer.post("/api/path", {"name": "ü 1", "delete": True})[0] == 200
    assert viewer.post("/api/path", {"name": "ü 1", "delete": True})[0] == 404
    # A path of nerfstudio's viewer becomes its cameras; a file that is no path is refused.
    other = {"render_width": 160, "render_height": 90, "fps": 10, "seconds": 2, "camera_path":
             [{"camera_to_world": pose + [0, 0, 0, 1], "fov": 50 + i} for i in range(20)]}
    code, answer = viewer.post("/api/path", {"convert": True, "path": other})
    assert code == 200 and len(answer["cameras"]) == 20 and (answer["width"], answer["height"], answer["fps"]) == (160, 90, 10), answer
    assert max(abs(a - b) for a, b in zip(answer["cameras"][3], pose + [53, 0])) < 1e-5, answer["cameras"][3]
    assert viewer.post("/api/path", {"convert": True, "path": {"camera_path": []}})[0] == 400
    assert os.listdir(os.path.join(run, "paths")) == ["turn.json"]


def finish(viewer, seconds=60):
    """Returns the state of the command that the viewer runs, after its end."""
    return wait_for(lambda: (lambda task: task["state"] != "running" and task)(viewer.json("/api/task")), seconds)


def check_tasks(viewer, run):
    """Videos and exports: requests that are refused, progress, results, one command at a time, cancelling."""
    assert viewer.json("/api/task") == {"state": "none"} and viewer.post("/api/task", {"cancel": True})[0] == 200
    for bad in ({}, {"start": "rm"}, {"start": "mesh"}, {"start": "mesh", "name": "../a"}, {"start": "mesh", "name": "a", "format": "exe"},
                {"start": "mesh", "name": "a", "resolution": 1e9}, {"start": "mesh", "name": "a", "crop": [0, 1]},
                {"start": "points", "name": "a", "count": "many"}, {"start": "mesh", "name": "a", "format": "ply", "texture": True},
                {"start": "video", "name": "turn", "map": "--out"}):
        code, answer = viewer.post("/api/task", bad)
        assert code == 400 and answer["error"], (bad, code, answer)
    code, answer = viewer.post("/api/task", {"start": "video", "name": "none"})
    task = finish(viewer)
    assert code == 200 and task["state"] == "failed" and "none.json" in task["message"], task
    code, answer = viewer.post("/api/task", {"start": "video", "name": "turn", "format": "gif", "crop": [-1, -1, -1, 1, 1, 1, 0, 0, 9]})
    assert code == 200 and viewer.post("/api/task", {"start": "mesh", "name": "a"})[0] == 409, answer
    task = finish(viewer)
    if shutil.which("ffmpeg") and not WINDOWS:  # the program needs an ffmpeg for Windows there
        assert task["state"] == "done" and task["name"] == "videos/turn.gif" and task["share"] == 1, task
        code, headers, body = viewer.get("/api/file?name=" + quote(task["name"]))
        assert code == 200 and body[:4] == b"GIF8" and len(body) == task["size"] and "turn.gif" in headers["Content-Disposition"]
    assert len(os.listdir(os.path.join(run, "videos/turn"))) == 3, "two frames and their list"
    # The shown command writes the same file.
    code, answer = viewer.post("/api/task", {"start": "points", "name": "a b", "count": 300, "all": True})
    task, file = finish(viewer), os.path.join(run, "exports/a b.ply")
    assert task["state"] == "done" and task["file"] == file and task["size"] == os.path.getsize(file), task
    with open(file, "rb") as points:
        before = points.read()
    os.remove(file)
    done = vknerf(*shlex.split(task["command"])[1:])
    with open(file, "rb") as points:
        assert done.returncode == 0 and points.read() == before, done
    assert viewer.post("/api/task", {"start": "points", "name": "a b", "count": 300})[0] == 409, "overwritten without a question"
    # Results are listed; other files, and names that pages may not use, are not.
    for name in ("a b.ply.tmp.", ".hidden", "con"):
        with open(os.path.join(run, "exports", name), "wb"):
            pass
    if not WINDOWS:  # Wine shows programs the files to which links of Linux lead
        os.symlink("/etc/passwd", os.path.join(run, "exports/link.ply"))
    assert {"name": "exports/a b.ply", "size": len(before)} in viewer.json("/api/file")["files"]
    names = [file["name"] for file in viewer.json("/api/file")["files"]]
    assert not [name for name in names if "tmp" in name or "hidden" in name or "con" in name or "link" in name], names
    for name in ("exports/none", "exports/link.ply", "exports", "exports/", "videos/../config.json", "/etc/passwd", "paths/turn.json", ""):
        assert viewer.get("/api/file?name=" + quote(name))[0] == 404, name
    assert viewer.post("/api/task", {"start": "mesh", "name": "large", "resolution": 1500})[0] == 200
    wait_for(lambda: viewer.json("/api/task")["share"] > 0)
    assert viewer.post("/api/task", {"cancel": True})[0] == 200
    task = finish(viewer)
    assert task["state"] == "cancelled" and not os.path.exists(os.path.join(run, "exports/large.glb")), task
    # The end of the viewer ends the command, see check_view.
    assert viewer.post("/api/task", {"start": "mesh", "name": "large", "resolution": 1500, "format": "ply"})[0] == 200
    wait_for(lambda: viewer.json("/api/task")["share"] > 0)


def processes_of(text):
    """Returns the command lines of processes that contain the text."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/cmdline", encoding="utf-8", errors="replace") as file:
                found += [line for line in [file.read()] if text in line]
        except OSError:
            pass
    return found


def check_signals(viewer):
    """The viewer's threads block signals, so that the main thread's waits are interrupted by Ctrl-C."""
    if not_on_windows("check_signals", "Windows has no signals of threads"):
        return
    tasks, masks = f"/proc/{viewer.process.pid}/task", {}
    for number in os.listdir(tasks):
        with open(f"{tasks}/{number}/status", encoding="utf-8") as file:
            facts = dict(line.split(":", 1) for line in file)
        if facts["Name"].strip().startswith(("viewer-", "MHD")):
            masks[facts["Name"].strip()] = int(facts["SigBlk"], 16)
    wanted = sum(1 << number - 1 for number in range(1, 32) if number not in (signal.SIGKILL, signal.SIGSTOP))
    assert len(masks) >= 2 and all(mask & wanted == wanted for mask in masks.values()), masks


def check_view(run, folder):
    viewer = Program("view", run, "--port", "0", "--quiet")
    scene = viewer.scene()
    state = wait_for(lambda: viewer.state()["evaluations"] and viewer.state())  # the evaluations are read after the metrics
    check_signals(viewer)
    assert scene["mode"] == "view" and state["state"] == "viewing" and state["step"] == STEPS, state
    assert state["metrics"][-1][0] == STEPS and state["evaluations"][-1][0] == STEPS and state["next"] == len(state["metrics"])
    assert len(viewer.json(f"/api/state?from={state['next'] - 1}")["metrics"]) == 1
    assert state["poses"] == 0 and viewer.json("/api/poses") == {"version": 0, "train": []}
    view = scene["views"][0]
    assert [v["split"] for v in scene["views"]].count("train") == 60 and view["name"] == "r_0.png"
    assert abs(scene["distance"] - 4) < 0.1 and scene["up"][2] > 0.9, scene
    unchanged = request_finished(viewer, view["pose"])
    code, _, body = viewer.get("/api/photo?split=train&view=0&width=16")
    assert code == 200 and jpeg_size(body) == (16, 16)
    for name in scene["maps"]:
        code, headers, body = viewer.frame(view["pose"], map=name, crop="-1,-1,-1,1,1,1")
        assert code == 200 and jpeg_size(body) == (int(headers["X-Width"]), int(headers["X-Height"])), (name, body)
        assert 0 < float(headers["X-Refined"]) <= 1 and float(headers["X-Milliseconds"]) > 0
    check_access(viewer)
    assert viewer.post("/api/control", {"action": "pause"})[0] == 409
    assert state["end"] == "" and state["can"]["end"] and len(state["views"]) == 12, state
    check_picture(run, viewer, view, folder)
    check_focus(viewer, DEMO)
    check_maps(viewer, run, view)
    check_paths(viewer, run, view["pose"])
    unchanged()
    # Another checkpoint replaces the one that is shown.
    os.replace(run + ".early", os.path.join(run, "checkpoint.safetensors"))
    wait_for(lambda: viewer.state()["step"] < STEPS)
    code, headers, _ = viewer.frame(view["pose"])
    assert code == 200 and int(headers["X-Step"]) == viewer.state()["step"]
    check_ports(viewer, run)
    check_tasks(viewer, run)
    viewer.signal()
    assert viewer.end() == 0 and viewer.output == "", (viewer.output, viewer.errors)
    assert WINDOWS or not processes_of(os.path.join(run, "exports/large")), "the command goes on without the viewer"


def check_poses(folder):
    """Views a training that refines poses, then its checkpoint: /api/scene has the poses of the scene, /api/poses the
    refined ones. A scene with other training views is refused in one line, which names the checkpoint."""
    run, fewer = os.path.join(folder, "refined"), os.path.join(folder, "fewer")
    settings = ["--set", "scene.refine=poses", "--set", "refine.start=-1"]
    viewer = Program("train", DEMO, "--out", run, *SMALL, *settings, "--steps", "1000000", "--view=0", "--view-exit")
    before = viewer.scene()["views"]

    def moved():
        assert viewer.frame(before[0]["pose"])[0] == 200
        poses = viewer.json("/api/poses")["train"]
        return poses and poses != [view["pose"] for view in before if view["split"] == "train"]

    wait_for(moved)
    # An export during a training saves a checkpoint first.
    assert viewer.post("/api/task", {"start": "points", "name": "early", "count": 200})[0] == 200
    task = finish(viewer)
    assert task["state"] == "done" and os.path.exists(os.path.join(run, "checkpoint.safetensors")), task
    first = viewer.state()["poses"]
    wait_for(lambda: moved() and viewer.state()["poses"] > first)  # they go on to move
    viewer.post("/api/control", {"action": "stop"})
    state = wait_for(lambda: viewer.state()["end"] and viewer.state())  # pages can read it before the program ends
    assert state["state"] == "stopped" and not state["stays"] and not state["can"]["stop"], state
    assert viewer.end() == 130, viewer.errors
    with open(os.path.join(run, "cameras.json"), encoding="utf-8") as file:
        refined = [sum(view["transform_matrix"][:3], []) for view in json.load(file)["views"]]
    viewer = Program("view", run, "--port", "0")
    after = viewer.scene()["views"]
    wait_for(lambda: viewer.state()["poses"] == 1)
    poses = viewer.json("/api/poses")
    assert after == before and poses["version"] == 1 and len(poses["train"]) == 60
    assert max(abs(a - b) for pose, other in zip(poses["train"], refined) for a, b in zip(pose, other)) < 1e-6
    viewer.signal()
    viewer.end()

    shutil.copytree(DEMO, fewer)
    with open(os.path.join(DEMO, "transforms_train.json"), encoding="utf-8") as file:
        frames = json.load(file)
    frames["frames"].pop()
    with open(os.path.join(fewer, "transforms_train.json"), "w", encoding="utf-8") as file:
        json.dump(frames, file)
    why = "checkpoint.safetensors: state: refined cameras of other views than the scene's"
    viewer = Program("view", run, "--scene", fewer, "--port", "0")
    assert len(viewer.scene()["views"]) == len(before) - 1
    wait_for(lambda: why in viewer.state()["message"])
    assert viewer.json("/api/poses") == {"version": 0, "train": []}
    viewer.signal()
    viewer.end()
    for command in (["eval", run], ["render", run, "--out", os.path.join(folder, "none")]):
        done = vknerf(*command, "--scene", fewer, "--split", "train")
        assert done.returncode == 2 and why in done.stderr and done.stderr.count("\n") == 1, done
    done = vknerf("eval", run, "--scene", fewer, "--split", "test")
    assert done.returncode == 0, done


def check_ports(viewer, run):
    """Checks messages about a port in use and invalid addresses."""
    for arguments, words in ((["--port", str(viewer.port)], "Address already in use"), (["--port", "70000"], "--port"),
                             (["--view-address", "256.1.1.1"], "--view-address")):
        done = vknerf("view", run, *arguments)
        assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1 and not done.stdout, done
    done = vknerf("view", run + ".not")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and not done.stdout, done


def check_without_run(run, folder):
    """Views a checkpoint without its run and scene, on all addresses, with a warning."""
    checkpoint = os.path.join(folder, "alone.safetensors")
    shutil.copy(os.path.join(run, "checkpoint.safetensors"), checkpoint)
    viewer = Program("view", checkpoint, "--scene", folder + "/none", "--port", "0", "--view-address", "0.0.0.0")
    scene = viewer.scene()
    assert scene["views"] == [] and scene["distance"] > 0 and "none" in viewer.state()["message"], scene
    pose = [1, 0, 0, 0, 0, 0, -1, -4, 0, 1, 0, 0]
    assert viewer.frame(pose)[0] == 200 and viewer.get("/api/photo?view=0")[0] == 404
    assert viewer.post("/api/path", {"name": "a", "path": {}})[0] == 409
    assert viewer.get("/api/state", host="10.1.2.3:7007")[0] == 200 and viewer.get("/api/state", host="evil.example")[0] == 403
    hold_connections(viewer)
    viewer.signal(signal.SIGINT if WINDOWS else signal.SIGTERM)  # Wine makes Ctrl-C of SIGINT only
    assert viewer.end() == 0 and "warning: --view-address" in viewer.errors, viewer.errors


def check_missing(run, folder):
    """Expects one line that names packages without libmicrohttpd, and in a build without the viewer."""
    if not_on_windows("check_missing", "libmicrohttpd is part of the program"):
        return
    program = os.path.join(os.environ["VKNERF_BUILD_DIR"], "vknerf")
    place = os.path.join(folder, "none")
    os.makedirs(place)
    with open(os.path.join(place, "libmicrohttpd.so.12"), "w", encoding="utf-8"):
        pass
    done = vknerf("view", run, program=program, environment={"LD_LIBRARY_PATH": place})
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "libmicrohttpd12" in done.stderr, done
    done = vknerf("view", run, program=os.path.join(os.environ["VKNERF_BUILD_DIR"], "tests/vknerf_without_viewer"))
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and "libmicrohttpd-dev" in done.stderr, done


def own_libraries(folder):
    """Puts a script before ffmpeg if the program is sanitized. Such a program has the tool root's libraries in its
    environment, which the machine's programs can load only with the tool root's loader."""
    loaders = glob.glob(os.path.join(os.environ.get("VKNERF_TOOL_ROOT", ""), "usr/lib*/**/ld-linux*"), recursive=True)
    ffmpeg = shutil.which("ffmpeg")
    if not (os.environ.get("VKNERF_SANITIZED") and loaders and ffmpeg):
        return
    os.mkdir(folder)
    script = os.path.join(folder, "ffmpeg")
    with open(script, "w", encoding="utf-8") as file:
        file.write(f'#!{loaders[0]} /bin/sh\nunset LD_LIBRARY_PATH\nexec "{ffmpeg}" "$@"\n')
    os.chmod(script, 0o755)
    os.environ["PATH"] = folder + os.pathsep + os.environ["PATH"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        own_libraries(os.path.join(folder, "bin"))
        plain, watched = os.path.join(folder, "plain"), os.path.join(folder, "watched")
        began = time.monotonic()

        def done(what):
            print(f"{time.monotonic() - began:6.1f} s: {what}", flush=True)

        # This viewer waits, with slow requests, while the others are tested.
        waiting = begin_paused(DEMO, "--out", os.path.join(folder, "waiting"), *SMALL)
        ends = [send_slowly_with_token(waiting), send_slowly_without_token(waiting)]
        train(plain, "--deterministic", "--steps", str(STEPS))
        done("trained")
        check_training(plain, watched)
        done("watched")
        for end in ends:
            end()
        done("trickled")
        check_view(watched, folder)
        done("viewed")
        check_without_run(watched, folder)
        done("alone")
        check_missing(watched, folder)
        check_demo(folder)
        check_poses(folder)
        done("refined")
        check_stop(plain, waiting, folder)
        done("stopped")


main()
