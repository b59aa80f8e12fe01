"""vknerf trains neural radiance fields on any Vulkan device.

    import vknerf

    with vknerf.Trainer(vknerf.demo_scene(), steps=500) as trainer:
        for stats in trainer.train():
            print(stats.step, stats.psnr)
        picture = trainer.renderer().render(trainer.scene.camera(0))

docs/python.md of the project is the manual. Names that are not here are those of the C headers, whose comments are the
docstrings.
"""
from . import _bind  # noqa: F401  # declares the functions
from ._base import BadInput, Error, Interrupted, NoDevice
from ._calls import Progress, Report, Settings
from ._generated import *  # noqa: F403
from ._generated import VERSION as __version__
from ._generated import __all__ as _names
from ._scene import Camera, Context, Picture, Scene, default_context, psnr, ssim
from ._runs import config_help, demo_scene, run_config, run_info, run_state, trust_field
from ._stepper import Adam, Composited, Samples, Stepper
from ._training import Occupancy, Rays, Renderer, Trainer

__all__ = [*_names, "Adam", "BadInput", "Composited", "Context", "Error", "Interrupted", "NoDevice", "Occupancy",
           "Picture", "Progress", "Rays", "Renderer", "Report", "Samples", "Scene", "Settings", "Stepper", "Trainer",
           "config_help", "default_context", "demo_scene", "psnr", "run_config", "run_info", "run_state", "ssim",
           "trust_field"]
