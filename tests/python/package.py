#!/usr/bin/env python3
"""tests/python/package.py: tests the installed Python package with a small training of the bundled scene."""
import ctypes
import gc
import json
import logging
import math
import os
import pathlib
import signal
import tempfile
import threading
import time
import unittest

import numpy
import vknerf

SMALL = {"precision": "fp32", "grid": {"levels": 4}, "mlp.density_width": 16, "mlp.color_width": 16,
         "batch.samples": 1024, "batch.max_rays": 256, "march.resolution": 16}
DOWNSCALED = {"scene.downscale": 4}


def interrupt_soon(seconds=0.3):
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()


class Values(unittest.TestCase):
    def test_choices(self):
        self.assertEqual(str(vknerf.MatrixShape.SHAPE_8X8X16), "8x8x16")
        self.assertEqual(vknerf.Background.parse("White"), vknerf.Background.WHITE)
        self.assertEqual(vknerf.Background.parse(2), 2)
        with self.assertRaisesRegex(vknerf.BadInput, "'green' is no Background: default, random, white, black"):
            vknerf.Background.parse("green")
        with self.assertRaisesRegex(vknerf.BadInput, "Lens.FISHEYE is no Background"):
            vknerf.Background.parse(vknerf.Lens.FISHEYE)
        self.assertIn("OpenCV's", vknerf.Lens.__doc__)

    def test_versions_and_documentation(self):
        self.assertRegex(vknerf.__version__, r"^\d+\.\d+\.\d+$")
        self.assertIn("orbit", vknerf.render.__doc__)
        self.assertIn("number of views on a circle", vknerf.render.__doc__)
        self.assertIn("PSNR", vknerf.Evaluation.__doc__.upper())
        self.assertIn("optimizer.learning_rate", vknerf.config_help())
        for name in vknerf.__all__:
            self.assertTrue(hasattr(vknerf, name), name)

    def test_camera(self):
        camera = vknerf.Camera(width=64, height=48, focal_x=50, pose=numpy.eye(4))
        self.assertEqual(camera.pose.shape, (3, 4))
        seen = camera.look_at((3, 0, 0), (0, 0, 0), (0, 0, 1))
        numpy.testing.assert_allclose(seen.pose, [[0, 0, 1, 3], [1, 0, 0, 0], [0, 1, 0, 0]], atol=1e-12)
        numpy.testing.assert_array_equal(camera.pose, numpy.eye(4)[:3])
        with self.assertRaisesRegex(vknerf.BadInput, "look_at.*target"):
            camera.look_at((0, 0, 0), (0, 0, 0))
        large = camera.scaled(2.5)
        self.assertEqual((large.width, large.height, large.focal_x, large.center_x), (160, 120, 125, 0))
        with self.assertRaisesRegex(vknerf.BadInput, "pose: 3 rows"):
            vknerf.Camera(pose=range(5))
        with self.assertRaisesRegex(vknerf.BadInput, "eye: 3 numbers are needed, not 2"):
            camera.look_at((0, 0), (0, 0, 0))


    def test_settings(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "settings.json")
            file.write_text('{"scene": {"downscale": 4}}')
            self.assertEqual(vknerf.Scene(vknerf.demo_scene(), file).camera(0).width, 32)
            file.write_text('{"scene": {"downscale": 0}}')
            with self.assertRaisesRegex(vknerf.BadInput, "^.*settings.json: scene.downscale: 0 is out of range"):
                vknerf.Scene(vknerf.demo_scene(), file)
            scene = vknerf.Scene(vknerf.demo_scene(), scene={
                "downscale": numpy.int64(4), "format": vknerf.SceneFormat.TRANSFORMS, "offset": numpy.full(3, 0.5)})
            self.assertEqual(scene.camera(0).width, 32)
            with self.assertRaisesRegex(vknerf.BadInput, "schedule"):
                vknerf.Trainer(scene, optimizer={"schedule": pathlib.Path(folder, "nothing")})

    def test_texts(self):
        with self.assertRaises(vknerf.Error):
            vknerf._base.take_text(None)
        version = vknerf._bind.VERSION
        try:
            vknerf._bind.VERSION = "99.0.0"
            with self.assertRaisesRegex(ImportError, "the library is version .*, this package is for 99.0.0"):
                vknerf._bind.bind()
        finally:
            vknerf._bind.VERSION = version


class Scenes(unittest.TestCase):
    def test_views(self):
        scene = vknerf.Scene(vknerf.demo_scene(), DOWNSCALED)
        self.assertEqual((scene.count("train"), scene.count("test"), scene.count()), (60, 12, 12))
        self.assertEqual(len(scene.cameras("train")), 60)
        self.assertTrue(scene.file(0, "train").endswith(".png"))
        self.assertIsNone(scene.file(99))
        picture = scene.image(0, background="white")
        self.assertEqual((picture.color.shape, picture.color.dtype), ((32, 32, 3), numpy.float32))
        self.assertIsNone(picture.depth)
        self.assertAlmostEqual(numpy.linalg.norm(scene.look().up), 1)
        self.assertEqual(vknerf.scene_info(vknerf.demo_scene(), downscale=4)["downscale"], 4)

    def test_orbit(self):
        scene = vknerf.Scene(vknerf.demo_scene(), DOWNSCALED)
        cameras, look = scene.orbit(4), scene.look()
        self.assertEqual(len(cameras), 4)
        for camera in cameras:
            to_point = numpy.array(look.point) - camera.pose[:, 3]
            numpy.testing.assert_allclose(-camera.pose[:, 2], to_point / numpy.linalg.norm(to_point), atol=1e-4)
        with self.assertRaisesRegex(vknerf.BadInput, "count: 0 is not from 1"):
            scene.orbit(0)
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "path.json")
            frames = [{"transform_matrix": numpy.vstack([camera.pose, [0, 0, 0, 1]]).tolist()} for camera in cameras]
            with open(file, "w", encoding="utf-8") as text:
                json.dump({"camera_angle_x": 0.5, "frames": frames}, text)
            path = scene.path(file)
            self.assertEqual(len(path.cameras), 4)
            numpy.testing.assert_allclose(path.cameras[3].pose, cameras[3].pose, atol=1e-6)
            with self.assertRaisesRegex(vknerf.BadInput, "nothing.json"):
                scene.path(os.path.join(folder, "nothing.json"))

    def test_errors(self):
        with self.assertRaisesRegex(vknerf.BadInput, "^/nowhere: No such file or directory$"):
            vknerf.Scene("/nowhere")
        with self.assertRaisesRegex(vknerf.BadInput, "has a byte 0"):
            vknerf.Scene("a\0b")
        with self.assertRaisesRegex(vknerf.BadInput, "settings: scene.downscal: unknown key; did you mean"):
            vknerf.Scene(vknerf.demo_scene(), {"scene.downscal": 2})
        with self.assertRaisesRegex(vknerf.BadInput, "settings: .*JSON"):
            vknerf.Scene(vknerf.demo_scene(), {"scene.downscale": {1, 2}})
        with self.assertRaisesRegex(vknerf.BadInput, "view 12: there are 12 test views"):
            vknerf.Scene(vknerf.demo_scene()).camera(12)
        with self.assertRaises(ValueError):
            vknerf.Scene(vknerf.demo_scene()).camera(-1)
        scene = vknerf.Scene(vknerf.demo_scene())
        scene.close()
        scene.close()
        with self.assertRaisesRegex(vknerf.BadInput, "the Scene is closed"):
            scene.camera(0)
        self.assertEqual(repr(scene), "Scene(closed)")

    def test_arrays(self):
        rng = numpy.random.default_rng(1)
        images = [rng.integers(0, 256, (12, 16, 4), dtype=numpy.uint8) for unused in range(4)]
        images[1] = images[1][..., :3] / 255.0
        cameras = [vknerf.Camera(focal_x=20).look_at((math.cos(a), math.sin(a), 0.3), (0, 0, 0)) for a in range(4)]
        masks = [None, numpy.eye(12, 16) > 0, None, None]
        scene = vknerf.Scene.from_arrays(images, cameras, masks=masks, splits=["train", "test", "train", "train"])
        self.assertEqual((scene.count("train"), scene.count("test")), (3, 1))
        numpy.testing.assert_allclose(scene.image(0, "test").color[masks[1]], images[1][masks[1]], atol=1e-3)
        numpy.testing.assert_array_equal(scene.image(0, "test").used, masks[1])
        numpy.testing.assert_allclose(scene.camera(0, "test").pose, cameras[1].pose, atol=1e-6)
        for wrong, message in (({"images": images[:3]}, "cameras: 4 for 3 images"),
                               ({"images": [image[..., 0] for image in images]}, r"images\[0\]: shape"),
                               ({"images": [2.0 * images[1]] * 4}, r"images\[0\]: floats have to be"),
                               ({"images": [images[0].astype(int)] * 4}, "pixels are int64"),
                               ({"masks": [numpy.ones((2, 2))] * 4}, r"masks\[0\]: shape"),
                               ({"cameras": range(4)}, r"cameras\[0\]: 0 is no Camera"),
                               ({"cameras": [vknerf.Camera(width=5, height=5)] * 4}, r"cameras\[0\]: 5 x 5 pixels"),
                               ({"splits": ["train", "tset"] * 2}, "split: 'tset' is no Split")):
            with self.assertRaisesRegex(vknerf.BadInput, message):
                vknerf.Scene.from_arrays(**{"images": images, "cameras": cameras, **wrong})


class Trainings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.scene = vknerf.Scene(vknerf.demo_scene(), DOWNSCALED)
        cls.trainer = vknerf.Trainer(cls.scene, SMALL, steps=1000)
        cls.steps = [stats.step for stats in cls.trainer.train(48, every=32)]
        cls.checkpoint = os.path.join(cls.folder.name, "small.safetensors")
        cls.trainer.save(cls.checkpoint)

    @classmethod
    def tearDownClass(cls):
        cls.trainer.close()
        cls.folder.cleanup()

    def render(self, renderer=None, **parameters):
        return (renderer or self.trainer.renderer()).render(self.scene.camera(0), **parameters)

    def test_training(self):
        self.assertEqual(self.steps, [32, 48])
        self.assertEqual(self.trainer.settings["grid"]["levels"], 4)
        self.assertEqual(self.trainer.settings["precision"], "fp32")
        self.assertEqual((self.trainer.backend.name, self.trainer.images().count), ("fp32", 60))
        self.assertIsInstance(self.trainer.pass_times(), list)
        self.assertFalse(self.trainer.finished)
        for shown, expected in ((self.trainer, "Trainer(step 48)"), (self.trainer.renderer(), "Renderer(step 48)"),
                                (self.scene, "Scene(60 train, 0 val, 12 test)"), (vknerf.Adam(3), "Adam(3)"),
                                (self.trainer.context, f"Context({self.trainer.context.device!r})")):
            self.assertEqual(repr(shown), expected)
        self.assertGreater(self.trainer.seconds, 0)

    def test_resumed_training_is_the_same(self):
        settings = {**SMALL, "deterministic": True, "steps": 32}
        whole = vknerf.Trainer(self.scene, settings)
        parts = vknerf.Trainer(self.scene, settings)
        last = whole.run()
        self.assertEqual(last.step, 32)
        self.assertIsNone(whole.run())
        for stats in parts.train(every=5):
            self.render(parts.renderer())
        self.assertEqual(list(parts.train()), [])
        numpy.testing.assert_array_equal(self.render(whole.renderer()).color, self.render(parts.renderer()).color)

    def test_limits(self):
        with self.assertRaisesRegex(vknerf.BadInput, "steps: 0 is not from 1"):
            self.trainer.run(0)
        with self.assertRaises(TypeError):
            self.trainer.run(1.5)
        with self.assertRaisesRegex(vknerf.BadInput, "grid.levels: 900 is out of range"):
            vknerf.Trainer(self.scene, grid={"levels": 900})
        with self.assertRaisesRegex(vknerf.BadInput, "stepz: unknown key"):
            vknerf.Trainer(self.scene, stepz=3)

    def test_callbacks(self):
        trainer = vknerf.Trainer(self.scene, SMALL, steps=100000)
        with self.assertRaisesRegex(KeyError, "mine"):
            trainer.run(report=lambda stats: {}["mine"], report_seconds=0.01)
        self.assertGreater(trainer.step, 0)
        seen = []
        trainer.run(16, report=lambda stats: seen.append((stats.step, threading.current_thread())))
        self.assertEqual(seen[-1], (trainer.step, threading.main_thread()))
        with self.assertRaisesRegex(vknerf.BadInput, "another thread is using the context"):
            trainer.run(16, report=lambda stats: trainer.save("unused"))
        with self.assertNoLogs("vknerf", logging.WARNING):  # closed at the end of the run
            trainer.run(16, report=lambda stats: trainer.close())
        with self.assertRaisesRegex(vknerf.BadInput, "the Trainer is closed"):
            trainer.step

    def test_interruption_keeps_the_state(self):
        trainer = vknerf.Trainer(self.scene, SMALL, steps=1000000)
        trainer.run(16)
        begin = time.monotonic()
        interrupt_soon()
        with self.assertRaises(KeyboardInterrupt):
            trainer.run()
        self.assertLess(time.monotonic() - begin, 20)
        step = trainer.step
        self.assertGreater(step, 16)
        interrupt_soon()
        with self.assertRaises(KeyboardInterrupt):
            for unused in trainer.train(every=100000):
                pass
        self.assertGreater(trainer.step, step)
        trainer.run(16)
        trainer.save(os.path.join(self.folder.name, "interrupted.safetensors"))

    def test_pictures(self):
        renderer = self.trainer.renderer()
        picture = self.render(renderer, background=vknerf.Background.WHITE)
        photograph = self.scene.image(0, background="white")
        self.assertGreater(vknerf.psnr(picture, photograph), 12)
        self.assertAlmostEqual(vknerf.psnr(picture, photograph.color), vknerf.psnr(picture.color, photograph))
        self.assertLess(vknerf.ssim(picture, photograph), 1)
        self.assertIsNone(picture.normal)
        white = self.render(renderer, background="white", crop=[50, 50, 50, 51, 51, 51])
        numpy.testing.assert_array_equal(white.color, 1)
        transparent = self.render(renderer, transparent=True)
        self.assertEqual(transparent._repr_png_()[25], 6)  # colour type of the file: RGBA
        self.assertEqual(picture._repr_png_()[25], 2)
        file = os.path.join(self.folder.name, "depth.png")
        picture.write(file, "depth")
        self.assertGreater(os.path.getsize(file), 100)
        with self.assertRaisesRegex(vknerf.BadInput, "background: 'green' is no Background"):
            self.render(renderer, background="green")
        with self.assertRaisesRegex(vknerf.BadInput, "crop: 6 numbers are needed, not 2"):
            self.render(renderer, crop=(1, 2))
        with self.assertRaisesRegex(vknerf.BadInput, "supersample"):
            self.render(renderer, supersample=3)
        with self.assertRaisesRegex(vknerf.BadInput, "colour is no parameter of a picture: background"):
            self.render(renderer, colour=1)
        with self.assertRaisesRegex(vknerf.BadInput, "camera: None is no Camera"):
            renderer.render(None)
        with self.assertRaisesRegex(vknerf.BadInput, "No such file"):
            picture.write("/nowhere/picture.png")
        with self.assertRaisesRegex(vknerf.BadInput, "shapes"):
            vknerf.psnr(picture, numpy.zeros((2, 2, 3)))
        with self.assertRaisesRegex(vknerf.BadInput, "used: shape"):
            vknerf.psnr(picture, photograph, numpy.ones(3))
        self.assertEqual(vknerf.psnr(picture, picture, numpy.ones((32, 32))), 100)
        self.assertEqual(repr(picture), "Picture(32 x 32: color, opacity, depth)")

    def test_pictures_of_arrays(self):
        color = numpy.random.default_rng(1).random((5, 7, 3))
        picture = vknerf.Picture.from_arrays(color)
        numpy.testing.assert_allclose(picture.color, color, rtol=1e-6)
        self.assertEqual((picture.width, picture.height, picture.opacity), (7, 5, None))
        self.assertEqual(picture._repr_png_()[25], 2)
        self.assertEqual(vknerf.Picture.from_arrays(color, color[..., 0])._repr_png_()[25], 6)
        for wrong in ((color[..., 0],), (color[..., :2],), (color, color), (3,)):
            with self.assertRaisesRegex(vknerf.BadInput, "shape .* is not height x width"):
                vknerf.Picture.from_arrays(*wrong)

    def test_normals(self):
        renderer = self.trainer.renderer()
        renderer.enable_normals()
        normal = self.render(renderer).normal
        lengths = numpy.linalg.norm(normal, axis=2)
        numpy.testing.assert_allclose(lengths[lengths > 0], 1, atol=1e-3)

    def test_arrays_outlive_their_owners(self):
        trainer = vknerf.Trainer(self.scene, SMALL)
        trainer.run(16)
        renderer = trainer.renderer()
        color = self.render(renderer).color
        before = color.copy()
        renderer.close()
        trainer.close()
        del renderer, trainer
        gc.collect()
        [numpy.ones_like(color) for unused in range(100)]
        numpy.testing.assert_array_equal(color, before)
        self.assertFalse(color.flags.owndata)
        shared = numpy.from_dlpack(color)
        color[0, 0, 0] = 7
        self.assertEqual(shared[0, 0, 0], 7)
        self.assertEqual(color.__dlpack_device__()[0], 1)  # the CPU

    def test_checkpoints(self):
        renderer = vknerf.Renderer(self.checkpoint)
        self.assertEqual((renderer.step, renderer.scene_path), (48, vknerf.demo_scene()))
        self.assertEqual(renderer.settings["grid"]["levels"], 4)
        renderer.camera(self.scene, 0, "train")
        trainer = vknerf.Trainer(self.scene, SMALL, steps=1000)
        trainer.resume(self.checkpoint)
        self.assertEqual(trainer.step, 48)
        numpy.testing.assert_array_equal(self.render(renderer).color, self.render(trainer.renderer()).color)
        trainer = vknerf.Trainer(self.scene, SMALL, steps=1000)
        trainer.init(self.checkpoint)
        self.assertEqual(trainer.step, 0)
        with self.assertRaisesRegex(vknerf.BadInput, "^/nowhere: "):
            vknerf.Renderer("/nowhere")
        with self.assertRaisesRegex(vknerf.BadInput, "time"):
            renderer.set_time(2)

    def test_rays_are_those_of_pictures(self):
        renderer, camera = self.trainer.renderer(), self.scene.camera(0)
        picture = renderer.render(camera, background="white")
        y, x = numpy.mgrid[:camera.height, :camera.width] + 0.5
        local = numpy.stack([(x - camera.center_x) / camera.focal_x, (camera.center_y - y) / camera.focal_y,
                             numpy.full_like(x, -1)], axis=2)
        directions = local @ camera.pose[:, :3].T
        rays = renderer.rays(camera.pose[:, 3], directions, background="white")
        numpy.testing.assert_allclose(rays.colors, picture.color, atol=2e-3)
        numpy.testing.assert_allclose(rays.opacities, picture.opacity, atol=2e-3)
        numpy.testing.assert_allclose(rays.depths, picture.depth * numpy.linalg.norm(local, axis=2), rtol=1e-2)
        self.assertIsNone(rays.normals)
        nothing = renderer.rays(camera.pose[:, 3], directions, nearest=0, farthest=0.01)
        numpy.testing.assert_array_equal(nothing.opacities, 0)
        for wrong, message in ((lambda: renderer.rays([0, 0, 0], [1, 2]), r"directions: shape \(2,\) does not end with 3"),
                               (lambda: renderer.rays([0, 0, 0], directions, nearest=[1, 2, 3]), "nearest: shape"),
                               (lambda: renderer.rays([0, 0, 0], directions, normals=True), "normals"),
                               (lambda: renderer.rays([0, 0, 0], directions, times="late"), "times: not an array"),
                               (lambda: renderer.rays([0, 0, 0], [0, 0, 0]), "directions")):
            with self.assertRaisesRegex(vknerf.BadInput, message):
                wrong()
        renderer.enable_normals()
        self.assertEqual(renderer.rays(camera.pose[:, 3], directions[16], normals=True).normals.shape, (32, 3))

    def test_field_at_points(self):
        renderer, look = self.trainer.renderer(), self.scene.look()
        points = numpy.array(look.point) + numpy.random.default_rng(1).normal(0, 0.3, (4, 5, 3))
        densities, colors = renderer.query(points)
        self.assertEqual((densities.shape, densities.dtype, colors), ((4, 5), numpy.float32, None))
        again, colors = renderer.query(points, [0, 0, 1])
        numpy.testing.assert_array_equal(again, densities)
        self.assertGreater(densities.max(), 0)
        self.assertTrue((colors.shape, colors.min() >= 0, colors.max() <= 1), ((4, 5, 3), True, True))
        self.assertEqual(renderer.query(numpy.array(look.point) + 1000)[0], 0)
        self.assertEqual(renderer.query(numpy.empty((0, 3)))[0].shape, (0,))
        with self.assertRaisesRegex(vknerf.BadInput, "positions: shape"):
            renderer.query(3)

    def test_weights_and_occupancy(self):
        tensors, grid = self.trainer.tensors(), self.trainer.occupancy()
        self.assertEqual(list(tensors), ["params", "average"])
        self.assertEqual(grid.values.shape, (grid.time_bins, grid.cascades, 16, 16, 16))
        self.assertEqual(grid.occupied.dtype, bool)
        other = vknerf.Trainer(self.scene, SMALL)
        for name, values in tensors.items():
            other.set_tensor(name, values)
        other.set_occupancy(grid)
        numpy.testing.assert_array_equal(self.render(other.renderer()).color, self.render().color)
        numpy.testing.assert_array_equal(other.occupancy().values, grid.values)
        with self.assertRaisesRegex(vknerf.BadInput, "no such tensor|unknown|nothing"):
            other.set_tensor("nothing", tensors["params"])
        with self.assertRaisesRegex(vknerf.BadInput, str(tensors["params"].size)):
            other.set_tensor("params", numpy.zeros(3))
        grid.values = grid.values[..., :3]
        with self.assertRaisesRegex(vknerf.BadInput, "values: shape .*, needed is"):
            other.set_occupancy(grid)

    def test_export_of_a_training(self):
        mesh, seen = os.path.join(self.folder.name, "mesh.ply"), []
        result = self.trainer.renderer().export(self.scene, mesh=mesh, resolution=16, threshold=1,
                                                progress=lambda *event: seen.append(event))
        self.assertEqual(max(result.voxels), 16)
        self.assertTrue(seen and os.path.getsize(mesh))
        with self.assertRaisesRegex(vknerf.BadInput, "mash is no parameter of an export: "):
            self.trainer.renderer().export(self.scene, mash=mesh)
        with self.assertRaisesRegex(vknerf.BadInput, "run"):
            self.trainer.renderer().export(self.scene, run="run", mesh=mesh)

    def test_other_threads_wait(self):
        trainer, seen = vknerf.Trainer(self.scene, SMALL, steps=100000), []
        trainer.run(16)
        worker = threading.Thread(target=lambda: seen.append(self.render(trainer.renderer())))
        trainer.run(seconds=0.3, report_seconds=0.05, report=lambda stats: worker.ident or worker.start())
        worker.join()
        self.assertEqual(seen[0].color.shape, (32, 32, 3))

    def test_messages(self):
        with self.assertLogs("vknerf", logging.INFO) as log:
            vknerf.Trainer(vknerf.Scene(vknerf.demo_scene(), DOWNSCALED), SMALL)
        self.assertIn("decoded 60 training images", "".join(log.output))

    def test_progress(self):
        seen, scene = [], vknerf.Scene(vknerf.demo_scene(), DOWNSCALED)
        context = vknerf.Context(progress=lambda *event: seen.append((*event, threading.current_thread())))
        vknerf.Trainer(scene, SMALL, context=context)
        self.assertIn(("decoding images", 60, 60, threading.main_thread()), seen)
        context = vknerf.Context(progress=lambda what, done, total: {}["mine"])
        with self.assertRaisesRegex(KeyError, "mine"):
            vknerf.Trainer(vknerf.Scene(vknerf.demo_scene(), DOWNSCALED), SMALL, context=context)
        with self.assertRaises(ctypes.ArgumentError):
            vknerf.Adam(1, context=context).step("fast")
        with self.assertRaisesRegex(vknerf.BadInput, "count"):
            vknerf.Adam(7, entry=4, context=context)

    def test_contexts(self):
        context = vknerf.default_context()
        self.assertIs(context, self.trainer.context)
        self.assertTrue(context.driver)
        with vknerf.Context(context.device, low_priority=True) as other:
            self.assertIsNot(other, context)
            self.assertEqual(other.device, context.device)
        with self.assertRaisesRegex(vknerf.BadInput, "the Context is closed"):
            other.device
        with self.assertRaises(vknerf.NoDevice):
            vknerf.Context("no such device")


class Runs(unittest.TestCase):
    def test_run(self):
        with tempfile.TemporaryDirectory() as folder:
            run, done = os.path.join(folder, "run"), []
            settings = {**SMALL, **DOWNSCALED, "steps": 32}
            result = vknerf.train(vknerf.demo_scene(), out=run, settings=settings, report=done.append,
                                  progress=lambda *event: done.append(event))
            self.assertEqual((done[-1], 32), (("evaluating", 12, 12), max(
                stats.step for stats in done if isinstance(stats, vknerf.TrainStats))))
            self.assertEqual((result.step, result.folder), (32, run))
            self.assertEqual(len(result.evaluation.views), 12)
            self.assertIs(result.evaluation.split, vknerf.Split.TEST)
            self.assertGreater(sum(buffer.bytes for buffer in result.buffers), 0)
            self.assertTrue(vknerf.run_state(run).finished)
            self.assertEqual(vknerf.run_info(run)["step"], 32)
            self.assertEqual(vknerf.run_config(run)["grid"]["levels"], 4)

            with self.assertRaisesRegex(vknerf.BadInput, "run"):
                vknerf.train(vknerf.demo_scene(), out=run, settings=settings)
            result = vknerf.train(resume=run, settings={"steps": 48})
            self.assertEqual(result.step, 48)

            evaluation = vknerf.evaluate(run, stride=6, progress=lambda *event: done.append(event))
            self.assertEqual(len(evaluation.views), 2)
            self.assertEqual(done[-1], ("evaluating", 2, 2))
            self.assertTrue(evaluation.views[0].image.endswith(".png"))
            frames = os.path.join(folder, "frames")
            rendered = vknerf.render(run, out=frames, orbit=2, width=16, depth=True)
            self.assertEqual(rendered.frames, 2)
            self.assertIn("frame_0001_depth.png", os.listdir(frames))
            with self.assertRaisesRegex(vknerf.BadInput, "time: 2"):
                vknerf.render(run, out=frames, orbit=1, time=2)
            mesh = os.path.join(folder, "mesh.ply")
            exported = vknerf.export(run, mesh=mesh, resolution=16)
            self.assertEqual(exported.voxels[0], 16)
            self.assertTrue(os.path.getsize(mesh))
            self.assertTrue(os.path.exists(vknerf.report(run)))
            self.assertTrue(os.path.exists(vknerf.report([run, run], out=os.path.join(folder, "both.html"))))

    def test_errors(self):
        with self.assertRaisesRegex(vknerf.BadInput, "^/nowhere: "):
            vknerf.evaluate("/nowhere")
        with self.assertRaisesRegex(vknerf.BadInput, "stride: -1 is no whole number from 0 to 4294967295"):
            vknerf.evaluate("/nowhere", stride=-1)
        with self.assertRaisesRegex(vknerf.BadInput, "run: 3 is no text or path"):
            vknerf.evaluate(3)
        with self.assertRaisesRegex(vknerf.BadInput, "fps: 'fast' is of the wrong type"):
            vknerf.render("/nowhere", fps="fast")
        with self.assertRaisesRegex(vknerf.BadInput, "^/nowhere: No such file or directory"):
            vknerf.prepare("/nowhere", out="/nowhere/out")
        with self.assertRaisesRegex(vknerf.BadInput, "^/nowhere: "):
            vknerf.refine("/nowhere", out="/nowhere/out")
        with self.assertRaises(TypeError):
            vknerf.evaluate("/nowhere", strid=3)
        self.assertIsInstance(vknerf._base.error_of(130, "stopped"), vknerf.Interrupted)
        self.assertEqual(type(vknerf._base.error_of(1, "full")), vknerf.Error)
        with self.assertRaisesRegex(vknerf.BadInput, "SHA-256"):
            vknerf.trust_field("abc")

    def test_interruption(self):
        with tempfile.TemporaryDirectory() as folder:
            run = os.path.join(folder, "run")
            interrupt_soon(1)
            with self.assertRaises(KeyboardInterrupt):
                vknerf.train(vknerf.demo_scene(), out=run, settings={**SMALL, **DOWNSCALED, "steps": 10000000})
            self.assertTrue(vknerf.run_state(run).exists)


class Steps(unittest.TestCase):
    def test_steps(self):
        scene = vknerf.Scene(vknerf.demo_scene(), DOWNSCALED)
        stepper = vknerf.Stepper(scene, {"batch.samples": 1024, "batch.max_rays": 256, "march.resolution": 16})
        self.assertEqual(stepper.settings["march"]["resolution"], 16)
        with self.assertRaisesRegex(vknerf.BadInput, "composite"):
            stepper.composite()
        seen = []

        def densities(samples):
            seen.append(samples.count)
            samples.densities[:] = 1

        stepper.update_grid(densities)
        self.assertGreaterEqual(sum(seen), 16 ** 3)
        samples = stepper.sample()
        self.assertEqual((samples.step, samples.positions.shape), (1, (samples.count, 3)))
        self.assertEqual(samples.ranges[:, 1].sum(), samples.count)
        numpy.testing.assert_allclose(numpy.linalg.norm(samples.directions, axis=1), 1, atol=1e-5)
        samples.values[:] = [0.5, 0.5, 0.5, 2]
        composited = stepper.composite()
        self.assertTrue(composited.finite)
        self.assertEqual(composited.gradients.shape, (samples.count, 4))
        self.assertGreater(numpy.abs(composited.gradients).max(), 0)

        def grey(samples):
            samples.values[:] = [0.25, 0.5, 0.75, 1e4]

        picture = stepper.render(scene.camera(0), grey, background="black")
        numpy.testing.assert_allclose(picture.color[16, 16], [0.25, 0.5, 0.75], atol=1e-3)
        positions = samples.positions
        before = positions.copy()
        stepper.close()
        gc.collect()
        numpy.testing.assert_array_equal(positions, before)

    def test_own_rays(self):
        scene = vknerf.Scene(vknerf.demo_scene(), DOWNSCALED)
        stepper = vknerf.Stepper(scene, {"batch.samples": 1024, "batch.max_rays": 256, "march.resolution": 16})
        rays = {"targets": [[1, 0, 0, 1]] * 2, "backgrounds": numpy.zeros((2, 3)), "weights": [1, 0],
                "t_starts": [0.1, 0.2, 0.1], "t_ends": [0.2, 0.3, 0.2], "ranges": [[0, 2], [2, 1]]}
        gradients = []
        for scale in (1, 8):
            stepper.set_loss_scale(scale)
            samples = stepper.sample_rays([[0.5, 0.5, 0]] * 2, [[0, 0, 2]] * 2, **rays)
            self.assertEqual((samples.rays, samples.count), (2, 3))
            numpy.testing.assert_allclose(samples.positions[:, 2], [0.15, 0.25, 0.15], atol=1e-6)
            numpy.testing.assert_allclose(samples.widths, 0.1, atol=1e-6)
            samples.values[:] = [0.5, 0.5, 0.5, 2]
            gradients.append(stepper.composite().gradients.copy())
        self.assertTrue(gradients[0][:2].any() and not gradients[0][2].any())
        numpy.testing.assert_allclose(gradients[1], 8 * gradients[0], rtol=1e-5)
        with self.assertRaisesRegex(vknerf.BadInput, "scale"):
            stepper.set_loss_scale(0)
        with self.assertRaisesRegex(vknerf.BadInput, r"weights: shape \(3,\), needed is \(1,\)"):
            stepper.sample_rays([[0, 0, 0]], [[0, 0, 1]], weights=[1, 2, 3])
        marched = stepper.sample_rays([[0.5, 0.5, 0]], [[0, 0, 1]], nearest=None, farthest=[0.2])
        self.assertTrue(marched.rays == 1 and (marched.distances <= 0.2).all())
        self.assertEqual(repr(stepper), "Stepper()")
        with self.assertRaisesRegex(vknerf.BadInput, "weight is no parameter of rays"):
            stepper.sample_rays([[0, 0, 0]], [[0, 0, 1]], weight=[1])
        grid = stepper.occupancy()
        grid.values[:], grid.threshold = 0, 0.5
        stepper.set_occupancy(grid)
        self.assertFalse(stepper.occupancy().occupied.any())

    def test_failing_fields(self):
        scene = vknerf.Scene(vknerf.demo_scene(), DOWNSCALED)
        stepper = vknerf.Stepper(scene, {"batch.samples": 1024, "batch.max_rays": 256, "march.resolution": 16})

        def fail(samples):
            raise LookupError("field")

        def wrong_shape(samples):
            samples.values[:] = numpy.zeros(3)

        def forever(samples):
            time.sleep(0.05)

        with self.assertRaisesRegex(LookupError, "field"):
            stepper.update_grid(fail)
        with self.assertRaisesRegex(ValueError, "broadcast"):
            stepper.render(scene.camera(0), wrong_shape)
        interrupt_soon(0.02)
        with self.assertRaises(KeyboardInterrupt):
            while True:
                stepper.update_grid(forever)
        stepper.update_grid(lambda samples: samples.densities.fill(1))

    def test_adam(self):
        adam = vknerf.Adam(8, entry=4, learning_rate=0.1)
        adam.gradients[:4] = 1
        result = adam.step()
        self.assertTrue(result.finite)
        self.assertEqual((result.steps, result.norm), (1, 2))
        numpy.testing.assert_allclose(adam.parameters, [-0.1] * 4 + [0] * 4, rtol=1e-5)
        numpy.testing.assert_array_equal(adam.gradients, 0)
        adam.gradients[0] = math.nan
        self.assertFalse(adam.step().finite)
        parameters = numpy.from_dlpack(adam.parameters)
        adam.close()
        gc.collect()
        numpy.testing.assert_allclose(parameters[:4], -0.1, rtol=1e-5)
        with self.assertRaisesRegex(vknerf.BadInput, "count"):
            vknerf.Adam(7, entry=4)
        with self.assertRaisesRegex(vknerf.BadInput, "rate is no parameter of Adam"):
            vknerf.Adam(8, rate=1)


if __name__ == "__main__":
    unittest.main()
