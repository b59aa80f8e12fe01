"""Runs programs with a time limit and kills them together with all processes that they have started."""
import glob
import os
import signal
import subprocess
import threading
import time

from lists import Stopped

# Time that a failed test has for cleaning up.
GRACE_SECONDS = 5.0


def session_members(leader):
    members = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                process, rest = file.read().split(" ", 1)
        except OSError:
            continue
        state, _, _, session = rest[rest.rindex(")") + 2:].split(" ")[:4]
        if int(session) == leader and state != "Z":
            members.append(int(process))
    return members


class Programs:
    """Starts programs as session leaders and kills all of them when the run stops."""

    def __init__(self):
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.running = set()

    def start(self, command, environment):
        with self.lock:
            if self.stopping.is_set():
                raise Stopped
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, encoding="utf-8", errors="replace",
                                       start_new_session=True)
            self.running.add(process)
            return process

    def kill(self, process):
        """Kills the whole session; a process group would not do, since timeout, for one, makes its own."""
        for _ in range(100):
            members = session_members(process.pid)
            for member in members:
                try:
                    os.kill(member, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            # Processes started in the meantime are found in the next iteration.
            if not members:
                break
            time.sleep(0.005)

    def stop(self):
        with self.lock:
            self.stopping.set()
            for process in self.running:
                self.kill(process)

    def run(self, command, environment, limit=None, on_line=None):
        """Runs a program; returns exit status, output lines and whether it exceeded `limit`. Its session is killed when
        it ends. After `on_line` (called with the lines so far) returns True the program has GRACE_SECONDS left."""
        process = self.start(command, environment)
        late = threading.Event()

        def expire():
            late.set()
            self.kill(process)
        timers = [threading.Timer(limit, expire)] if limit is not None else []
        for timer in timers:
            timer.start()
        lines = []
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            if on_line and on_line(lines):
                on_line = None
                timers.append(threading.Timer(GRACE_SECONDS, self.kill, [process]))
                timers[-1].start()
        # Reaped only after its session is gone: until then the session id cannot be reused.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with self.lock:
            self.kill(process)
            self.running.discard(process)
        for timer in timers:
            timer.cancel()
        status = process.wait()
        process.stdout.close()
        if self.stopping.is_set():
            raise Stopped
        return status, lines, late.is_set()
