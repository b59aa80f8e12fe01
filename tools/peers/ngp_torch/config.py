"""Defines the settings of a run and the geometry of the hash grid. Needs only the standard library.

Names and defaults are those of vknerf (src/config/settings.h, src/config/defaults.c), with the smaller model if there
is no GPU, so that the config.json of a vknerf run describes the same training.
"""
import json
import math
import os

# Key in vknerf's config.json -> defaults with and without a GPU.
SETTINGS = {
    "seed": (0, 0),
    "background": ("random", "random"),
    "grid.levels": (16, 16), "grid.features": (2, 2), "grid.log2_entries": (19, 15),
    "grid.coarsest": (16, 16), "grid.finest": (2048, 512),
    "mlp.density_width": (64, 64), "mlp.density_layers": (1, 1), "mlp.geometry": (16, 16),
    "mlp.color_width": (64, 64), "mlp.color_layers": (2, 2), "mlp.sh_degree": (4, 4),
    "batch.samples": (1 << 18, 1 << 14), "batch.max_rays": (1 << 17, 1 << 14),
    "march.resolution": (128, 64), "march.occupancy_decay": (0.95, 0.95), "march.occupancy_threshold": (0.01, 0.01),
    "march.steps_per_unit": (1024, 256), "march.early_stop": (1e-4, 1e-4),
    "march.near_distance": (0.1, 0.1), "march.cone_angle": (-1, -1),
    "loss.kind": ("huber", "huber"), "loss.delta": (0.1, 0.1),
    "optimizer.learning_rate": (1e-2, 1e-2), "optimizer.beta1": (0.9, 0.9),
    "optimizer.beta2": (0.99, 0.99), "optimizer.epsilon": (1e-15, 1e-15),
    "optimizer.weight_decay": (1e-6, 1e-6), "optimizer.warmup_steps": (100, 100),
    "optimizer.decay_factor": (0.33, 0.33), "optimizer.milestones": ((0.5, 0.75, 0.9),) * 2,
    "optimizer.decay_start": (20000, 20000), "optimizer.decay_interval": (10000, 10000),
    "optimizer.ema_decay": (0.95, 0.95), "optimizer.clip_norm": (0, 0),
    "loss_scale.initial": (65536, 65536), "loss_scale.growth": (2, 2),
    "loss_scale.backoff": (0.5, 0.5), "loss_scale.interval": (2000, 2000),
    "scene.downscale": (1, 1), "scene.scale": (0, 0), "scene.aabb_scale": (0, 0),
}
# Former names of keys, which the config.json of older runs has.
FORMER_NAMES = {"march.decay": "march.occupancy_decay", "march.threshold": "march.occupancy_threshold",
                "optimizer.average_decay": "optimizer.ema_decay"}
# Settings for which this trainer has one value only.
FIXED = {"model": "ngp", "loss.kind": "huber", "optimizer.kind": "adam", "background": "random",
         "optimizer.clip_norm": 0, "optimizer.schedule": "step", "mlp.sh_degree": 4, "scene.contraction": "none"}

UPDATE_INTERVAL = 16    # steps from one occupancy update to the next
OCCUPANCY_WARMUP = 256  # steps during which an update evaluates every cell


class BadInput(Exception):
    """An error with a message of one line that names file and field."""


def defaults(gpu):
    return {key: pair[0 if gpu else 1] for key, pair in SETTINGS.items()}


def flatten(nested, prefix=""):
    """{"grid": {"levels": 16}} -> {"grid.levels": 16}"""
    flat = {}
    for key, value in nested.items():
        if isinstance(value, dict):
            flat.update(flatten(value, prefix + key + "."))
        else:
            flat[prefix + key] = value
    return flat


def read_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: {error}") from None
    if not isinstance(value, dict):
        raise BadInput(f"{path}: not a JSON object")
    return value


def load(path, gpu):
    """Reads the settings of a vknerf run's config.json (or its folder); `path` None: the defaults."""
    settings = defaults(gpu)
    if path is None:
        return settings
    if os.path.isdir(path):
        path = os.path.join(path, "config.json")
    given = {FORMER_NAMES.get(key, key): value for key, value in flatten(read_json(path)).items()}
    for key, only in FIXED.items():
        if given.get(key, only) != only:
            raise BadInput(f"{path}: {key}: {given[key]!r}: this trainer supports only {only!r}")
    # fp32 runs record a static loss scale of 1, which is not used: this trainer's loss scale is dynamic.
    if given.get("loss_scale.kind", "dynamic") != "dynamic":
        given.pop("loss_scale.initial", None)
    settings.update({key: given[key] for key in SETTINGS if key in given})
    if settings["march.cone_angle"] > 0 or settings["scene.aabb_scale"] > 1:
        raise BadInput(f"{path}: scene.aabb_scale: this trainer supports only the unit cube")
    return settings


class Level:
    """A level of the grid: `entries` entries from entry `first` on. position * scale + 0.5 is in units of cells.

    A level whose grid points all fit into the table is indexed directly (Mueller et al. 2022, section 3)."""

    def __init__(self, first, entries, resolution, scale, dense):
        self.first, self.entries, self.resolution = first, entries, resolution
        self.scale, self.dense = scale, dense


PRIMES = (1, 2654435761, 805459861)


def grid_levels(settings):
    """The levels, coarsest first. Dense levels precede hashed ones because resolutions increase."""
    count, coarsest = settings["grid.levels"], settings["grid.coarsest"]
    table = 1 << settings["grid.log2_entries"]
    growth = math.log(settings["grid.finest"] / coarsest) / (count - 1) if count > 1 else 0.0
    levels, first = [], 0
    for i in range(count):
        scale = coarsest * math.exp(i * growth) - 1.0
        resolution = math.ceil(scale - 1e-6) + 1
        dense = resolution ** 3 <= table
        entries = (resolution ** 3 + 15) // 16 * 16 if dense else table
        levels.append(Level(first, entries, resolution, scale, dense))
        first += entries
    return levels


def grid_entry(level, x, y, z):
    """Number of the entry at a grid point; tests compare the tensor version with it."""
    if level.dense:
        x, y, z = (min(v, level.resolution - 1) for v in (x, y, z))
        return level.first + x + level.resolution * (y + level.resolution * z)
    return level.first + ((x * PRIMES[0] ^ y * PRIMES[1] ^ z * PRIMES[2]) & (level.entries - 1))


def learning_rate(settings, step, progress):
    """Learning rate of step `step`; `progress`: completed share of a training of limited length, otherwise None."""
    rate, warmup = settings["optimizer.learning_rate"], settings["optimizer.warmup_steps"]
    if step < warmup:
        rate *= (step + 1) / warmup
    if progress is not None:
        passed = sum(progress >= share for share in settings["optimizer.milestones"])
    else:
        late = step - settings["optimizer.decay_start"]
        passed = 1 + late // settings["optimizer.decay_interval"] if late >= 0 else 0
    return rate * settings["optimizer.decay_factor"] ** passed
