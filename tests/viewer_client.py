"""Starts vknerf with its viewer and sends requests as the page does, for the tests of the viewer."""

import atexit
import hashlib
import http.client
import json
import os
import re
import signal
import struct
import subprocess
import time

# A small model, that of cli.sh, because every command compiles its pipelines anew.
SMALL = ("--set batch.samples=1024 --set batch.max_rays=256 --set march.resolution=16 --set march.steps_per_unit={} "
         "--set mlp.density_width=16 --set mlp.color_width=16 --set mlp.color_layers=1 --set mlp.sh_degree=3 "
         "--set grid.levels=4 --set grid.log2_entries=12")


class Client:
    """A client of the viewer at the address in a line that vknerf has printed."""

    def __init__(self, line):
        found = re.fullmatch(r"viewer: (http://([^/]+)/\?token=([0-9a-f]{32}))\n", line)
        if not found:
            raise AssertionError(f"no address: {line!r}")
        self.url, self.host, self.token = found.groups()
        self.port = int(self.host.rsplit(":", 1)[1])
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def request(self, method, path, body=None, headers=(), token=None, host=None):
        """Returns (code, headers, body) of the answer."""
        path += ("&" if "?" in path else "?") + "token=" + (self.token if token is None else token)
        all_headers = {"Host": self.host if host is None else host, **dict(headers)}
        try:
            self.connection.request(method, path, body, all_headers)
            answer = self.connection.getresponse()
        except (http.client.BadStatusLine, ConnectionError):  # closed by the viewer, idle for too long
            self.connection.close()
            self.connection.request(method, path, body, all_headers)
            answer = self.connection.getresponse()
        return answer.status, answer.headers, answer.read()

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, what, **more):
        headers = {"Content-Type": "application/json", "Origin": "http://" + self.host, **more.pop("headers", {})}
        code, _, body = self.request("POST", path, what if isinstance(what, (str, bytes)) else json.dumps(what),
                                     headers, **more)
        return code, json.loads(body)

    def json(self, path):
        code, _, body = self.get(path)
        assert code == 200, (path, code, body)
        return json.loads(body)

    def state(self):
        return self.json("/api/state?from=0")

    def scene(self, seconds=60):
        """Returns the scene, once the viewer has opened the run."""
        end = time.monotonic() + seconds
        while True:
            code, _, body = self.get("/api/scene")
            if code == 200:
                return json.loads(body)
            assert code == 503 and time.monotonic() < end, (code, body)
            time.sleep(0.05)

    def frame(self, pose, **parameters):
        return self.get(frame_path(pose, **parameters))


class Program(Client):
    """A running command that has printed its viewer's address, with --json to standard error."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([os.environ["VKNERF_BIN"], *arguments], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)  # of a test that failed
        line = (self.process.stderr if "--json" in arguments else self.process.stdout).readline()
        try:
            super().__init__(line)
        except AssertionError as error:
            self.end()
            raise AssertionError(f"{error}: {self.errors}") from error

    def signal(self, number=signal.SIGINT):
        self.process.send_signal(number)

    def end(self, seconds=60):
        """Waits until the command ends by itself; returns its exit code."""
        try:
            self.output, self.errors = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.output, self.errors = self.process.communicate()
            raise
        return self.process.returncode


def frame_path(pose, **parameters):
    query = {"client": "test", "fov": 40, "width": 64, "height": 48, "map": "rgb", "still": 0, **parameters}
    return "/api/frame?pose=" + ",".join(map(repr, pose)) + "".join(f"&{k}={v}" for k, v in query.items())


def wait_for(what, seconds=60):
    """Calls `what` until its result is true; returns the result."""
    end = time.monotonic() + seconds
    while True:
        found = what()
        if found:
            return found
        assert time.monotonic() < end, f"nothing after {seconds} s"
        time.sleep(0.05)


def jpeg_size(data):
    """Returns (width, height) of a complete JPEG file."""
    assert data[:2] == b"\xff\xd8" and data[-2:] == b"\xff\xd9", data[:20]
    at = 2
    while data[at] == 0xFF:
        marker, length = data[at + 1], struct.unpack(">H", data[at + 2:at + 4])[0]
        if marker in (0xC0, 0xC2):
            height, width = struct.unpack(">HH", data[at + 5:at + 9])
            return width, height
        at += 2 + length
    raise AssertionError("no size")


def tensors(checkpoint):
    """Returns the SHA-256 of a checkpoint without its metadata, which contain times."""
    with open(checkpoint, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        header.pop("__metadata__", None)
        data = file.read()
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    digest.update(data)
    return digest.hexdigest()
