"""Compares the peer's tensors with plain definitions. Needs torch and numpy."""
import os
import sys

import numpy
import torch

SOURCE = os.environ.get("VKNERF_SOURCE_DIR", os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tools", "peers", "ngp_torch"))
import config  # noqa: E402
import field  # noqa: E402
import march  # noqa: E402
import scene  # noqa: E402
from optim import Adam  # noqa: E402
from trainer import Trainer  # noqa: E402

CPU = torch.device("cpu")
SETTINGS = config.defaults(gpu=False)


def not_compiled(function):
    return function


def test_encoding():
    torch.manual_seed(1)
    for features in (2, 4):
        settings = dict(SETTINGS, **{"grid.features": features})
        grid = field.HashGrid(settings, CPU, plain)
        table = grid.table.view(-1, features).double().requires_grad_()
        points = torch.rand(3, 7)
        encoded = grid.encode(grid.table, points)
        rows = []
        for f in range(features):
            for level in grid.levels:
                row = []
                for point in points.t():
                    place = [float(v * torch.tensor(level.scale) + 0.5) for v in point]
                    cell, total = [int(v) for v in place], 0.0
                    for corner in range(8):
                        bits = [corner >> axis & 1 for axis in range(3)]
                        weight = 1.0
                        for axis in range(3):
                            inside = place[axis] - cell[axis]
                            weight *= inside if bits[axis] else 1.0 - inside
                        entry = config.grid_entry(level, *(c + b for c, b in zip(cell, bits)))
                        total = total + weight * table[entry, f]
                    row.append(total)
                rows.append(torch.stack(row))
        expected = torch.stack(rows)
        assert (encoded - expected).abs().max() < 1e-8, (encoded - expected).abs().max()
        gradient = torch.randn_like(encoded)
        (expected * gradient).sum().backward()
        grid.add_gradient(points, gradient)
        assert (grid.table.grad.view(-1, features) - table.grad).abs().max() < 1e-3


def test_loss_gradient():
    """Compares with autograd through compositing written out ray by ray."""
    torch.manual_seed(2)
    counts, step, delta = [3, 0, 5, 1], 0.05, 0.1
    ends = torch.tensor(counts).cumsum(0)
    ray = torch.repeat_interleave(torch.arange(4), torch.tensor(counts))
    raw = (torch.randn(9) * 2).requires_grad_()
    raw_rgb = torch.randn(3, 9, requires_grad=True)
    background, target = torch.rand(3, 4), torch.rand(3, 4)
    loss = 0.0
    for r in range(4):
        color, transmittance = torch.zeros(3), torch.ones(())
        for i in range(int(ends[r]) - counts[r], int(ends[r])):
            alpha = 1.0 - torch.exp(-torch.exp(raw[i]) * step)
            color = color + transmittance * alpha * torch.sigmoid(raw_rgb[:, i])
            transmittance = transmittance * (1.0 - alpha)
        prediction = color + transmittance * background[:, r]
        loss = loss + torch.nn.functional.huber_loss(prediction, target[:, r], delta=delta) / 4
    loss.backward()
    with torch.no_grad():
        weight, transmittance, live, live_ends = march.transmit(raw, ray, ends, step, 0.0)
        assert live.all() and (live_ends == ends).all()
        ours, _, rgb_gradient, gradient = march.loss_gradient(
            raw_rgb, raw, weight, transmittance, ray, ends, background, target, step, delta)
    assert abs(ours.mean() - loss) < 1e-6
    assert (rgb_gradient - raw_rgb.grad).abs().max() < 1e-6
    assert (gradient - raw.grad).abs().max() < 1e-6


def test_adam():
    """Compares with torch.optim.Adam where every step touches an entry; other entries must not change."""
    torch.manual_seed(3)
    ours, theirs = (torch.linspace(-1, 1, 8).clone() for _ in range(2))
    theirs.requires_grad_()
    adam = Adam([{"params": [ours], "sparse": True}], SETTINGS, not_compiled)
    reference = torch.optim.Adam([theirs], lr=1e-2, betas=(0.9, 0.99), eps=1e-15)
    for _ in range(5):
        gradient = torch.randn(8)
        gradient[4:6] = 0.0
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        adam.param_groups[0]["lr"] = 1e-2
        adam.step()
        reference.step()
    assert (ours - theirs.detach()).abs().max() < 1e-6
    assert torch.equal(ours[4:6], torch.linspace(-1, 1, 8)[4:6])


def test_downscale():
    image = numpy.zeros((2, 2, 4), dtype=numpy.uint8)
    image[0, 0] = (255, 100, 0, 255)
    assert scene.downscale_image(image, 2).tolist() == [[[64, 25, 0, 64]]]


def test_training():
    """A few steps on the bundled scene lower the error, and evaluation works."""
    folder = os.path.join(SOURCE, "assets", "demo")
    cameras = scene.read_cameras(folder, "train")
    settings = dict(SETTINGS, **{"batch.samples": 2048, "march.resolution": 32, "march.steps_per_unit": 64,
                                 "optimizer.warmup_steps": 10})
    trainer = Trainer(settings, cameras, scene.load_images(cameras, 8), CPU, None, not_compiled)
    errors = []
    for _ in range(48):
        rays, _, live, _, square = trainer.step(None)
        errors.append(float(square) / rays)
        assert live <= trainer.capacity
    assert sum(errors[-10:]) < 0.8 * sum(errors[:10]), errors
    some = scene.read_cameras(folder, "test")[:1]
    assert trainer.evaluate(some, scene.load_images(some, 8)) > 10.0


test_encoding()
test_loss_gradient()
test_adam()
test_downscale()
if __import__("importlib.util").util.find_spec("PIL"):
    test_training()
