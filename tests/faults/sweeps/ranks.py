"""Tests processes under mpirun: one is killed, suspended, disconnected, or started with something else."""
import contextlib
import json
import math
import os
import re
import shlex
import shutil
import signal
import subprocess
import time

import faults

HOLDS = """Ranks that were started with different inputs end before training, all with 2, and one line names the rank
and the difference. When a rank is killed the others end within seconds. A suspended or disconnected rank is named
after 10 s and every 20, 40, ... s; the checkpoint is valid at any time and can be resumed."""
SHORT = 1
SECONDS_TO_END = 15.0
RANKS = 3
DIFFERENCES = ("pose", "image", "recompressed", "name", "views", "seed", "steps", "missing", "checkpoint", "share")


def cases(_shared):
    return ([["kill", n] for n in range(10)] + [["stop", n] for n in range(3)] + [["cut", n] for n in range(2)] +
            [["differs", what] for what in DIFFERENCES])


def pick(rnd, found, count):
    """Takes a killed rank first: test_mpi covers differences, and other cases wait for half a minute."""
    kinds = [[case for case in found if case[0] == kind] for kind in ("kill", "differs", "stop", "cut")]
    return [rnd.choice(kinds[n % 4]) for n in range(count)]


def lacking():
    """Returns why ranks cannot be processes here; None if they can."""
    if shutil.which("mpirun") is None:
        return "no mpirun"
    if not os.path.exists(os.path.join(faults.BUILD, "vknerf-mpi.so")):
        return "built without MPI"
    return None


# ---- starting --------------------------------------------------------------------------------------------

def mpi_environment(**more):
    """Returns the environment of mpirun: as root, more ranks than processors, only shared memory and the loopback."""
    return {"VKNERF_MPI_MODULE": os.path.join(faults.BUILD, "vknerf-mpi.so"), "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_btl": "self,vader", "OMPI_MCA_oob_tcp_if_include": "lo",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe", "LP_NUM_THREADS": "1", **more}


def start(sandbox, commands, *options, before=(), **more):
    """Starts mpirun with (ranks, arguments of vknerf) for each of the commands.

    A shell chooses a rank's command, because mpirun of Open MPI 5.0.7 crashes with two commands. It writes its process
    number to pid_RANK.
    """
    choice, total = "", 0
    for count, arguments in commands:
        ranks = "|".join(str(total + rank) for rank in range(count))
        choice += f"{ranks}) exec {shlex.join(map(str, (faults.VKNERF, *arguments)))} ;; "
        total += count
    script = f'echo $$ >"pid_$OMPI_COMM_WORLD_RANK"; case $OMPI_COMM_WORLD_RANK in {choice}esac'
    words = [*before, "mpirun", *options, "-n", total, "sh", "-c", script]
    return sandbox.start(*words[1:], program=words[0], env=mpi_environment(**more))


def process_of(sandbox, rank):
    return int(faults.read_file(sandbox.path(f"pid_{rank}")) or 0)


def alive(pid):
    """Returns whether the process runs; zombies do not."""
    state = faults.read_file(f"/proc/{pid}/stat") if pid else None
    return state is not None and state.rsplit(b")", 1)[1].split()[0] != b"Z"


def end(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def end_all(sandbox, process):
    """Ends all remaining processes of a case."""
    if process.poll() is None:
        process.terminate()
    for rank in range(RANKS):
        if alive(process_of(sandbox, rank)):
            end(process_of(sandbox, rank))


def said_lines(ended):
    return [line for line in ended.err.splitlines() if line.startswith("vknerf: ")]


# ---- a lost rank -----------------------------------------------------------------------------------------

def training(sandbox):
    return sandbox.training("--save-seconds", 0.3, steps=10000000)


def wait_for_steps(sandbox, process, run):
    """Waits until training runs and has been saved."""
    return (faults.wait_for_file(run + "/checkpoint.safetensors", process, 60) and
            faults.wait_for_file(run + "/metrics.jsonl", process, 60))


def check_left(sandbox, run):
    """Returns problems of the run folder after an abnormal end of a rank."""
    step, problems = faults.check_run(run, killed=True)
    return step, problems + faults.check_goes_on(sandbox, run, step)


def check_gone(sandbox, deadline):
    """Returns problems of ranks that go on after `deadline` (time.monotonic())."""
    while any(alive(process_of(sandbox, rank)) for rank in range(RANKS)) and time.monotonic() < deadline:
        time.sleep(0.05)
    return [f"rank {rank} goes on" for rank in range(RANKS) if alive(process_of(sandbox, rank))]


def try_kill(sandbox):
    """Kills a random rank at a random time, the start included."""
    run, rank = sandbox.path("run"), sandbox.rnd.randrange(RANKS)
    process = start(sandbox, [(RANKS, training(sandbox))])
    faults.wait_for_file(sandbox.path(f"pid_{rank}"), process)
    if sandbox.rnd.random() < 0.7:
        wait_for_steps(sandbox, process, run)
    time.sleep(sandbox.rnd.uniform(0.05, 1.5))
    end(process_of(sandbox, rank))
    asked = time.monotonic()
    ended = faults.wait(process, SECONDS_TO_END)
    problems = check_gone(sandbox, asked + SECONDS_TO_END)
    seconds = time.monotonic() - asked
    if ended.code in (faults.DONE, faults.HANG):
        problems.append(f"ends with {ended.code}: {ended.err[-400:]}")
    if not re.search(rf"rank {rank} [^;]*signal 9|rank {rank} did not come", ended.err):
        problems.append(f"rank {rank} is not named: {ended.err[-600:]}")
    step, wrong = check_left(sandbox, run)
    return faults.Outcome(problems + wrong, {"code": ended.code, "step": step, "seconds_to_end": round(seconds, 2),
                                             "said": said_lines(ended)})


def check_named(ended, rank):
    """Returns problems of the messages about a rank that was suspended for 22 s."""
    named = re.findall(rf"warning: (?:rank \d: )?rank {rank}: no answer for (\d+) s \(step \d+\)", ended.err)
    return [] if named == ["10", "20"] else [f"named after {named} s: {ended.err[-600:]}"]


def try_stop(sandbox, goes_on):
    """Suspends a rank for 22 s; then it continues, or another one is told to stop."""
    run, rank = sandbox.path("run"), sandbox.rnd.randrange(RANKS)
    process = start(sandbox, [(RANKS, training(sandbox))])
    there = wait_for_steps(sandbox, process, run)
    time.sleep(1 + sandbox.rnd.random())
    os.kill(process_of(sandbox, rank), signal.SIGSTOP)
    time.sleep(22)
    if goes_on:
        os.kill(process_of(sandbox, rank), signal.SIGCONT)
        time.sleep(1)
    os.kill(process_of(sandbox, (rank + 1) % RANKS), signal.SIGINT)
    ended = faults.wait(process, SECONDS_TO_END)
    problems = [] if there else ["nothing was trained"]
    problems += check_named(ended, rank) + check_gone(sandbox, time.monotonic() + 5)
    if ended.code != (faults.INTERRUPTED if goes_on else faults.NO_DEVICE):
        problems.append(f"ends with {ended.code}: {ended.err[-400:]}")
    if not goes_on and not re.search(rf"rank {rank} did not come", ended.err):
        problems.append(f"rank {rank} is not named: {ended.err[-600:]}")
    step, wrong = check_left(sandbox, run)
    return faults.Outcome(problems + wrong, {"code": ended.code, "step": step, "said": said_lines(ended)})


# ---- a network -------------------------------------------------------------------------------------------

ADDRESSES = ("10.213.7.1", "10.213.7.2")


def ip(*words):
    return subprocess.run(["ip", *map(str, words)], capture_output=True, check=False).returncode == 0


@contextlib.contextmanager
def two_hosts():
    """Returns names of two connected network namespaces; None if they cannot be made."""
    names = [f"vknerf-{end}-{os.getpid()}" for end in "ab"]
    made = (shutil.which("ip") and shutil.which("unshare") and all(ip("netns", "add", name) for name in names) and
            ip("link", "add", "cable", "netns", names[0], "type", "veth", "peer", "name", "cable", "netns", names[1]))
    for name, address in zip(names, ADDRESSES) if made else ():
        for words in (("addr", "add", f"{address}/24", "dev", "cable"), ("link", "set", "lo", "up"),
                      ("link", "set", "cable", "up")):
            made = made and ip("-n", name, *words)
    try:
        yield names if made else None
    finally:
        for name in names:
            ip("netns", "del", name)


def inside(name):
    """Returns the prefix of a command that runs on such a host, which has a name of its own."""
    return ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", f'hostname {name}; exec "$@"', "sh"]


def try_cut(sandbox, heals):
    """Disconnects two hosts for 22 s; then they are connected again, or rank 0 is told to stop."""
    with two_hosts() as hosts:
        if hosts is None:
            return faults.Outcome([], {"code": "skipped", "said": "no network namespaces: needs root, ip and unshare"})
        run, agent = sandbox.path("run"), sandbox.path("agent")
        faults.write_file(agent, f'#!/bin/sh\nshift\nexec ip netns exec {hosts[1]} unshare --uts sh -c '
                                 f'"hostname {hosts[1]}; $*"\n'.encode())
        os.chmod(agent, 0o755)
        network = ADDRESSES[0] + "/24"
        process = start(sandbox, [(2, training(sandbox))], "--mca", "plm_rsh_agent", agent, "--host",
                        ",".join(address + ":1" for address in ADDRESSES), "--wdir", sandbox.folder,
                        *[word for name in ("VKNERF_MPI_MODULE", "LP_NUM_THREADS", "GALLIVM_PERF", "XDG_CACHE_HOME",
                                            "MESA_SHADER_CACHE_DIR") for word in ("-x", name)],
                        before=inside(hosts[0]), OMPI_MCA_btl="self,tcp", OMPI_MCA_btl_tcp_if_include=network,
                        OMPI_MCA_oob_tcp_if_include=network)
        there = wait_for_steps(sandbox, process, run)
        time.sleep(2)
        ip("-n", hosts[0], "link", "set", "cable", "down")
        time.sleep(22)
        if heals:
            ip("-n", hosts[0], "link", "set", "cable", "up")
            time.sleep(20)  # TCP retries after ever longer pauses
        cut_off = process_of(sandbox, 1)
        os.kill(process_of(sandbox, 0), signal.SIGINT)
        ended = faults.wait(process, SECONDS_TO_END)
        still_there = alive(cut_off)
        end_all(sandbox, process)
    problems = [] if there else ["nothing was trained"]
    if "warning: rank 1: no answer for 20 s" not in ended.err:
        problems.append(f"rank 1 is not named: {ended.err[-600:]}")
    if ended.code not in ((faults.INTERRUPTED,) if heals else (faults.NO_DEVICE, faults.HANG)):
        problems.append(f"ends with {ended.code}: {ended.err[-400:]}")
    if not heals and "rank 1 did not come" not in ended.err:
        problems.append(f"rank 0 does not say why it ends: {ended.err[-600:]}")
    step, wrong = check_left(sandbox, run)
    return faults.Outcome(problems + wrong, {"code": ended.code, "step": step, "other_host_goes_on": still_there,
                                             "said": said_lines(ended)})


# ---- different inputs ------------------------------------------------------------------------------------

def change_scene(scene, what):
    """Changes a copy of the scene; returns the part of the message that says what differs."""
    transforms = os.path.join(scene, "transforms_train.json")
    frames = faults.read_json(transforms)
    image = os.path.join(scene, "train", "r_5.png")
    if what == "pose":  # by one unit in the last place of a float
        frames["frames"][7]["transform_matrix"][0][3] += 4e-7
        said = r"pose of train view 7 \(r_7\.png\)"
    elif what == "name":
        os.rename(image, os.path.join(scene, "train", "other.png"))
        frames["frames"][5]["file_path"] = "./train/other"
        said = "train view 5: other.png of 24x24 pixels instead of r_5.png of 24x24 pixels"
    elif what == "views":
        del frames["frames"][11]
        said = "train views: 11 instead of 12"
    elif what == "recompressed":  # the same pixels
        data = faults.read_file(image)
        faults.write_file(image, data[:33] + faults.png_chunk(b"tEXt", b"Comment\0again") + data[33:])
        said = r"content of train view 5 \(r_5\.png\)"
    else:  # of a view that only rank 2 trains on if images are shared out
        faults.write_file(image, faults.ball_picture(24, 1 + 2 * math.pi * 5 / 12))
        said = r"content of train view 5 \(r_5\.png\)"
    faults.write_json(transforms, frames)
    return "the scene differs from rank 0's: " + said


def other_command(sandbox, what, scene):
    """Returns (arguments of rank 0, of the other rank, part of the message)."""
    ours = sandbox.training("--deterministic", steps=32)
    theirs = [scene if word == sandbox.scene else word for word in ours]
    if what in ("seed", "steps"):
        said = {"seed": "seed: 5 instead of none given", "steps": "steps: 33 instead of 32"}[what]
        return ours, [*theirs, f"--{what}", {"seed": 5, "steps": 33}[what]], "asked to train differs.*: " + said
    if what == "missing":
        shutil.rmtree(scene)
        return ours, theirs, re.escape(f"{scene}: No such file or directory")
    if what == "checkpoint":
        for run, steps in (("one", 16), ("two", 32)):
            sandbox.train("--deterministic", out=run, steps=steps)
        return (["train", "--resume", sandbox.path("one"), "--steps", 48, "--quiet"],
                ["train", "--resume", sandbox.path("two"), "--steps", 48, "--quiet"],
                "--resume: step 32 instead of step 16")
    if what == "share":
        share = ["--set", "parallel.images=share"]
        return [*ours, *share], [*theirs, *share], change_scene(scene, what)
    return ours, theirs, change_scene(scene, what)


def try_differs(sandbox, what):
    """Starts the last of three ranks, or one of two hosts with copies of the scene, with something else."""
    scene = sandbox.path("copy")
    shutil.copytree(sandbox.scene, scene)
    ours, theirs, said = other_command(sandbox, what, scene)
    process = start(sandbox, [(RANKS - 1, ours), (1, theirs)])
    ended = faults.wait(process, 60)
    lines = said_lines(ended)
    problems = [] if ended.code == faults.BAD_INPUT else [f"ends with {ended.code}: {ended.err[-400:]}"]
    if len(lines) != 1 or not re.search(f"^vknerf: rank {RANKS - 1}: .*{said}", lines[0]):
        problems.append(f"'{said}' is not the one line of: {ended.err[-600:]}")
    if what != "checkpoint" and os.path.exists(sandbox.path("run", "checkpoint.safetensors")):
        problems.append("something was trained nevertheless")
    return faults.Outcome(problems + check_gone(sandbox, time.monotonic() + 5), {"code": ended.code, "said": lines})


def try_case(case, sandbox):
    kind, what = case
    if lacking():
        return faults.Outcome([], {"code": "skipped", "said": lacking()})
    if kind == "kill":
        return try_kill(sandbox)
    if kind == "stop":
        return try_stop(sandbox, what == 0)
    if kind == "cut":
        return try_cut(sandbox, what == 0)
    return try_differs(sandbox, what)
