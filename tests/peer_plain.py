"""Tests the peer's configuration, hash grid geometry and scene cameras. Needs only the standard library."""
import json
import math
import os
import sys
import tempfile

SOURCE = os.environ.get("VKNERF_SOURCE_DIR", os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tools", "peers", "ngp_torch"))
import config  # noqa: E402
import scene  # noqa: E402


def refuses(part, function, *arguments):
    try:
        function(*arguments)
    except config.BadInput as error:
        assert part in str(error) and "\n" not in str(error), error
    else:
        raise AssertionError(f"accepted: {part}")


def test_config(folder):
    assert config.load(None, gpu=False)["grid.log2_entries"] == 15
    assert config.load(None, gpu=True)["grid.finest"] == 2048
    run = {"model": "ngp", "grid": {"levels": 8, "log2_entries": 14}, "batch": {"samples": 4096},
           "loss_scale": {"kind": "static", "initial": 1}, "device": "any", "scene": {"downscale": 4}}
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(run, file)
    settings = config.load(folder, gpu=False)
    assert settings["grid.levels"] == 8 and settings["batch.samples"] == 4096
    assert settings["scene.downscale"] == 4 and settings["grid.features"] == 2
    assert settings["loss_scale.initial"] == 65536
    run["model"] = "vanilla"
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump(run, file)
    refuses("model", config.load, folder, False)
    refuses("absent.json", config.load, os.path.join(folder, "absent.json"), False)


def test_levels():
    levels = config.grid_levels(config.defaults(gpu=False))
    assert [level.dense for level in levels[:4]] == [True] * 4 and not levels[-1].dense
    assert levels[0].resolution == 16 and levels[0].entries == 4096 and levels[0].first == 0
    assert levels[-1].resolution == 512 and abs(levels[-1].scale - 511.0) < 1e-6
    for a, b in zip(levels, levels[1:]):
        assert b.first == a.first + a.entries and (a.dense or not b.dense)
    coarse, fine = levels[0], levels[-1]
    assert config.grid_entry(coarse, 1, 2, 3) == 1 + 16 * (2 + 16 * 3)
    assert config.grid_entry(coarse, 99, 0, 0) == 15
    # By hand: 5 ^ low bits of 7 * 2654435761 ^ low bits of 300 * 805459861.
    assert config.grid_entry(fine, 5, 7, 300) - fine.first == (
        5 ^ (7 * 2654435761) % 32768 ^ (300 * 805459861) % 32768)


def test_schedule():
    settings = config.defaults(gpu=False)
    assert abs(config.learning_rate(settings, 0, None) - 1e-4) < 1e-12
    assert config.learning_rate(settings, 100, 0.49) == 1e-2
    assert abs(config.learning_rate(settings, 100, 0.95) - 1e-2 * 0.33 ** 3) < 1e-12
    assert abs(config.learning_rate(settings, 30000, None) - 1e-2 * 0.33 ** 2) < 1e-12


def test_scene(folder):
    cameras = scene.read_cameras(os.path.join(SOURCE, "assets", "demo"), "train")
    assert len(cameras) > 10 and all(os.path.isfile(camera.path) for camera in cameras)
    matrix = [[1, 0, 0, 2], [0, 1, 0, 0], [0, 0, 1, -1], [0, 0, 0, 1]]
    assert scene.place(matrix, "here")[0] == [1, 0, 0, 2 * 0.33 + 0.5]
    camera = scene.Camera("a.png", 0.5 * math.pi, None, None, scene.place(matrix, "here"))
    camera.fit(800, 400, 8)
    assert (camera.width, camera.height) == (100, 50)
    assert all(abs(v - 50.0) < 1e-9 for v in camera.focal) and camera.center == (50.0, 25.0)
    refuses("transform_matrix", scene.place, [[1, 2]], "transform_matrix")
    refuses("transforms_test.json", scene.read_cameras, folder, "test")


with tempfile.TemporaryDirectory() as work:
    test_config(work)
    test_scene(work)
test_levels()
test_schedule()
