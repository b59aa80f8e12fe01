#!/usr/bin/env python3
"""Trains an instant-NGP in PyTorch with vknerf's model, data, sampling and schedule, to compare it with vknerf.

    python3 tools/peers/ngp_torch/train.py --scene SCENE --config RUN --seconds 60 --out DIR

Needs torch 1.13 or later, numpy and PIL. With torch 2 and a C++ compiler inner loops are compiled; compilation does
not count as training time. Runs on CUDA or a CPU.
"""
import argparse
import ctypes
import json
import math
import os
import resource
import sys
import time

from config import BadInput, load


def say(line):
    print(line, file=sys.stderr, flush=True)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--scene", required=True, help="folder with transforms_train.json and _test.json")
    parser.add_argument("--config", help="vknerf run, or its config.json, with the settings to use")
    parser.add_argument("--downscale", type=int, help="factor by which images are reduced")
    parser.add_argument("--seconds", type=float, help="duration of the training")
    parser.add_argument("--steps", type=int, help="number of steps")
    parser.add_argument("--eval-at", default="", help="times in seconds at which to measure PSNR, such as 5,10,20")
    parser.add_argument("--samples", type=int, help="live samples per step")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--threads", type=int, help="CPU threads; default: all")
    parser.add_argument("--device", help="cpu or cuda; default: cuda if available")
    parser.add_argument("--amp", choices=("auto", "off", "fp16", "bf16"), default="auto",
                        help="arithmetic of the MLPs; auto: fp16 on CUDA, off on a CPU")
    parser.add_argument("--no-compile", action="store_true", help="do not use torch.compile")
    parser.add_argument("--out", help="folder for metrics.jsonl and summary.json")
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON object")
    return parser.parse_args()


def keep_freed_memory():
    """Makes the C library keep large freed blocks: every step allocates the same blocks again, and new pages would
    cost more time than the computation in them."""
    try:
        libc = ctypes.CDLL(None)
        trim_threshold, mmap_threshold = -1, -3
        libc.mallopt(mmap_threshold, 32 << 20)
        libc.mallopt(trim_threshold, 1 << 30)
    except (OSError, AttributeError):
        pass


def choose_compiler(torch, wanted):
    """Returns torch.compile if it works, otherwise a function that returns its argument."""
    if not wanted:
        return lambda function: function
    if not hasattr(torch, "compile"):
        say(f"torch {torch.__version__} has no torch.compile: continues without compilation")
        return lambda function: function
    try:
        # Code compiled by Debian's torch needs this library of vector mathematics.
        ctypes.CDLL("libsleef.so.3", mode=ctypes.RTLD_GLOBAL)
        os.environ.setdefault("LD_PRELOAD", "libsleef.so.3")
    except OSError:
        pass
    try:
        import torch._dynamo
        import torch._inductor.config
        torch._inductor.config.assert_indirect_indexing = False
        for name in ("cache_size_limit", "recompile_limit"):
            if hasattr(torch._dynamo.config, name):
                setattr(torch._dynamo.config, name, 64)

        def compiled(function):
            return torch.compile(function, dynamic=True)

        compiled(lambda x: x.sin() + 1.0)(torch.zeros(8))
        if not torch.cuda.is_available():
            from torch._inductor.cpu_vec_isa import valid_vec_isa_list
            if not valid_vec_isa_list():
                say("torch.compile works, but without vector instructions (on Debian install libsleef-dev)")
        return compiled
    except Exception as error:  # a compiler, headers or Python modules may be missing
        reason = str(error).strip().split("\n")
        say(f"torch.compile does not work here ({next((r for r in reason if 'Error' in r), reason[0])}): "
            "continues without compilation")
        return lambda function: function


def peak_memory():
    """Peak resident memory of this process in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


class Run:
    """Clock, log and results of a training."""

    def __init__(self, torch, trainer, arguments, test):
        self.torch, self.trainer, self.arguments, self.test = torch, trainer, arguments, test
        self.seconds, self.evaluations = 0.0, []
        self.eval_at = sorted(float(s) for s in arguments.eval_at.split(",") if s)
        self.totals = [0] * 5
        self.log = None
        if arguments.out:
            os.makedirs(arguments.out, exist_ok=True)
            self.log = open(os.path.join(arguments.out, "metrics.jsonl"), "w", encoding="utf-8")

    def device_memory(self):
        if self.trainer.device.type == "cuda":
            return self.torch.cuda.max_memory_allocated()
        return peak_memory()

    def wait(self):
        if self.trainer.device.type == "cuda":
            self.torch.cuda.synchronize()

    def finished(self):
        a = self.arguments
        return (a.seconds is not None and self.seconds >= a.seconds) or (
            a.steps is not None and self.trainer.step_count >= a.steps)

    def progress(self):
        a = self.arguments
        shares = ([self.seconds / a.seconds] if a.seconds else []) + (
            [self.trainer.step_count / a.steps] if a.steps else [])
        return max(shares) if shares else None

    def train(self):
        window = [0] * 5
        began = last = time.perf_counter()
        while not self.finished():
            window = [a + b for a, b in zip(window, self.trainer.step(self.progress()))]
            now = time.perf_counter()
            due = self.eval_at and now - began >= self.eval_at[0]
            if now - last >= 0.5 or due:
                self.wait()
                now = time.perf_counter()
                self.seconds = now - began
                self.report(window, now - last)
                window, last = [0] * 5, now
                if due and not self.finished():
                    del self.eval_at[0]
                    self.evaluate()
                    pause = time.perf_counter() - now
                    began, last = began + pause, last + pause
            self.seconds = time.perf_counter() - began
        self.wait()
        self.seconds = time.perf_counter() - began
        self.report(window, time.perf_counter() - last)
        self.evaluate()

    def report(self, window, passed):
        rays, marched, live, loss, square = (float(v) for v in window)
        if rays == 0:
            return
        self.totals = [a + b for a, b in zip(self.totals, window)]
        mean = square / rays
        line = {
            "step": self.trainer.step_count, "seconds": round(self.seconds, 4), "loss": loss / rays,
            "psnr": -10.0 * math.log10(max(mean, 1e-10)),
            "learning_rate": self.trainer.optimizer.param_groups[0]["lr"],
            "loss_scale": self.trainer.scaler.get_scale() if self.trainer.scaler else 1,
            "rays_per_second": rays / passed, "samples_per_second": live / passed,
            "marched_per_second": marched / passed, "gpu_memory_bytes": self.device_memory(),
        }
        if self.log:
            self.log.write(json.dumps(line) + "\n")
            self.log.flush()
        say(f"step {line['step']}  {self.seconds:.1f} s  loss {line['loss']:.5f}  psnr {line['psnr']:.2f}  "
            f"{line['samples_per_second'] / 1e6:.3f} M live samples/s  {int(rays / passed)} rays/s")

    def evaluate(self):
        began = time.perf_counter()
        psnr = self.trainer.evaluate(*self.test)
        self.evaluations.append({"step": self.trainer.step_count, "seconds": round(self.seconds, 3),
                                 "psnr": psnr, "views": len(self.test[0])})
        say(f"step {self.trainer.step_count}  {self.seconds:.1f} s: test PSNR {psnr:.2f} dB on white, "
            f"{len(self.test[0])} views ({time.perf_counter() - began:.1f} s)")

    def summary(self, device, compiled, warmup):
        rays, marched, live = (float(v) for v in self.totals[:3])
        torch, steps, seconds = self.torch, self.trainer.step_count, max(self.seconds, 1e-9)
        return {
            "status": "finished", "psnr": self.evaluations[-1]["psnr"], "views": len(self.test[0]),
            "split": "test", "background": "white", "color_space": "sRGB", "step": steps,
            "seconds": round(seconds, 3), "warmup_seconds": round(warmup, 3),
            "precision": {None: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}[self.trainer.amp],
            "device": device, "driver": f"torch {torch.__version__}", "compiled": compiled,
            "threads": torch.get_num_threads(), "steps_per_second": steps / seconds,
            "samples_per_second": live / seconds, "marched_per_second": marched / seconds,
            "rays_per_second": rays / seconds, "gpu_memory_bytes": self.device_memory(),
            "resident_bytes": peak_memory(), "evaluations": self.evaluations,
        }


def choose_amp(torch, name, device):
    if name == "auto":
        name = "fp16" if device.type == "cuda" else "off"
    amp = {"off": None, "fp16": torch.float16, "bf16": torch.bfloat16}[name]
    if amp == torch.float16 and device.type == "cpu" and not hasattr(torch.amp, "GradScaler"):
        raise BadInput("--amp fp16: needs CUDA or torch 2.3")
    return amp


def main():
    arguments = parse_arguments()
    if arguments.seconds is None and arguments.steps is None:
        raise BadInput("needs --seconds or --steps")
    keep_freed_memory()
    try:
        import torch
    except ImportError:
        raise BadInput("needs torch: apt-get install python3-torch python3-numpy python3-pil") from None
    import scene
    from trainer import Trainer

    device = torch.device(arguments.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    settings = load(arguments.config, gpu=device.type == "cuda")
    for key, value in (("batch.samples", arguments.samples), ("scene.downscale", arguments.downscale),
                       ("seed", arguments.seed)):
        if value is not None:
            settings[key] = value
    splits = []
    for split in ("train", "test"):
        cameras = scene.read_cameras(arguments.scene, split, settings["scene.scale"])
        splits.append((cameras, scene.load_images(cameras, settings["scene.downscale"])))

    compiled = choose_compiler(torch, not arguments.no_compile)
    trainer = Trainer(settings, *splits[0], device, choose_amp(torch, arguments.amp, device), compiled)
    began = time.perf_counter()
    for _ in range(20):  # compiles all functions
        trainer.step(None)
    trainer.evaluate(splits[1][0][:1], splits[1][1][:1])
    trainer.begin()
    warmup = time.perf_counter() - began
    say(f"ready after {warmup:.1f} s on {device}, {torch.get_num_threads()} threads")

    run = Run(torch, trainer, arguments, splits[1])
    if run.log:
        nested = {}
        for key, value in settings.items():
            *groups, name = key.split(".")
            inner = nested
            for group in groups:
                inner = inner.setdefault(group, {})
            inner[name] = value
        with open(os.path.join(arguments.out, "config.json"), "w", encoding="utf-8") as file:
            json.dump(nested, file, indent=1)
    run.train()
    name = torch.cuda.get_device_name() if device.type == "cuda" else "cpu"
    was_compiled = compiled.__name__ == "compiled"
    summary = run.summary(name, was_compiled, warmup)
    if arguments.out:
        with open(os.path.join(arguments.out, "summary.json"), "w", encoding="utf-8") as file:
            json.dump(summary, file, indent=1)
    if arguments.json:
        print(json.dumps(summary))


if __name__ == "__main__":
    try:
        main()
    except BadInput as error:
        say(f"{os.path.basename(sys.argv[0])}: {error}")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
