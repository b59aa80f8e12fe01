"""Implements rays, the occupancy grid and compositing for R rays, M marched samples and N live samples.

As in vknerf the samples of a ray are a fixed step apart, from a random offset on. Samples in occupied cells are
marched; marched samples with a transmittance above the threshold are live.
"""
import math

import torch

from config import OCCUPANCY_WARMUP


class Rays:
    """Rays of a batch: origin, direction [R, 3]; first, last [R]: distances in steps, first > last without samples."""

    def __init__(self, origin, direction, first, last):
        self.origin, self.direction, self.first, self.last = origin, direction, first, last


def camera_tensors(cameras, device):
    """{pose [C, 3, 4], lens [C, 4] (focal, center), size [C, 2] (width, height)}"""
    return {
        "pose": torch.tensor([c.pose for c in cameras], device=device),
        "lens": torch.tensor([c.focal + c.center for c in cameras], device=device),
        "size": torch.tensor([(c.width, c.height) for c in cameras], device=device),
    }


def camera_rays(cameras, which, pixel):
    """Origins and unit directions [R, 3] through the centres of pixels [R, 2] (x, y) of cameras [R]."""
    pose, lens = cameras["pose"][which], cameras["lens"][which]
    image = (pixel + 0.5 - lens[:, 2:]) / lens[:, :2]
    local = torch.stack([image[:, 0], -image[:, 1], -torch.ones_like(image[:, 0])], 1)
    local = local / local.norm(dim=1, keepdim=True)
    return pose[:, :, 3], (pose[:, :, :3] * local[:, None]).sum(2)


def box_span(origin, direction, low, high):
    """Distances [R] at which rays enter and leave a box."""
    a, b = (low - origin) / direction, (high - origin) / direction
    return torch.minimum(a, b).amax(1), torch.maximum(a, b).amin(1)


class Occupancy:
    """Occupancy grid of the unit cube: for each cell the optical thickness of a marching step, or a negative value if
    no camera sees the cell.

    Cells are stored in groups of 2 x 2 in x and y: cell (x, y, z) has number
    ((z * r/2 + y/2) * r/2 + x/2) * 4 + (y mod 2) * 2 + x mod 2."""

    def __init__(self, settings, cameras, device):
        self.resolution = settings["march.resolution"]
        self.decay, self.max_threshold = settings["march.occupancy_decay"], settings["march.occupancy_threshold"]
        self.step = math.sqrt(3.0) / settings["march.steps_per_unit"]
        self.near, self.device = settings["march.near_distance"], device
        self.threshold = 0.0
        self.values = self._group(self._seen(cameras).float() - 1.0)
        self.set_bits(torch.ones_like(self.values, dtype=torch.bool))

    def _group(self, grid):
        """grid [z, y, x] -> [r^3 / 4, 4]: groups of four cells."""
        half = self.resolution // 2
        return grid.view(-1, half, 2, half, 2).permute(0, 1, 3, 2, 4).reshape(-1, 4)

    def _seen(self, cameras):
        """[z, y, x]: whether the centre or a corner of the cell is in a camera's image."""
        r = self.resolution

        def lattice(count, shift):
            axis = (torch.arange(count, device=self.device) + shift) / r
            z, y, x = torch.meshgrid(axis, axis, axis, indexing="ij")
            points = torch.stack([x.reshape(-1), y.reshape(-1), z.reshape(-1)])
            seen = torch.zeros(points.shape[1], dtype=torch.bool, device=self.device)
            for pose, lens, size in zip(cameras["pose"], cameras["lens"], cameras["size"]):
                local = pose[:, :3].t() @ (points - pose[:, 3:])
                depth = -local[2]
                u = local[0] / depth * lens[0] + lens[2]
                v = -local[1] / depth * lens[1] + lens[3]
                seen |= (depth > 0) & (u >= 0) & (v >= 0) & (u < size[0]) & (v < size[1])
            return seen.view(count, count, count)

        seen, corners = lattice(r, 0.5), lattice(r + 1, 0.0)
        for k in range(8):
            z, y, x = k >> 2, k >> 1 & 1, k & 1
            seen = seen | corners[z:z + r, y:y + r, x:x + r]
        return seen

    def set_bits(self, occupied):
        """Stores occupied [r^3 / 4, 4] and computes the bounding box of occupied cells, to which rays are clipped."""
        self.bits = occupied.reshape(-1)
        groups = torch.nonzero(occupied)
        half = self.resolution // 2
        cells = self._cells(groups[:, 0], groups[:, 1]).float()
        if len(cells) == 0:
            cells = torch.full((1, 3), float(half), device=self.device)
        self.low = cells.amin(0) / self.resolution
        self.high = (cells.amax(0) + 1) / self.resolution
        self.max_steps = math.ceil((self.high - self.low).norm().item() / self.step) + 1

    def _cells(self, group, member):
        """Coordinates [K, 3] of cells, given group numbers [K] and indices [K] in their groups."""
        half = self.resolution // 2
        x, y = group % half * 2 + member % 2, group // half % half * 2 + member // 2
        return torch.stack([x, y, group // (half * half)], 1)

    def update(self, step, density):
        """Decays the cells, evaluates `density` (points [3, K] -> [K]) at random points and computes the threshold.

        Evaluates all cells in the first steps, later one random cell and one other occupied cell of each group."""
        values = torch.where(self.values > 0, self.values * self.decay, self.values)
        chosen = values >= 0
        if step >= OCCUPANCY_WARMUP:
            count = len(values)
            member = torch.arange(4, device=self.device)
            random_cell = torch.randint(4, (count, 1), device=self.device)
            # The first occupied cell in cyclic order from a random one.
            order = (member + torch.randint(4, (count, 1), device=self.device)) % 4
            other = torch.where((values > self.threshold) & (member != random_cell), order, 4)
            lowest = other.amin(1, keepdim=True)
            chosen &= (member == random_cell) | ((other == lowest) & (lowest < 4))
        group, member = torch.nonzero(chosen, as_tuple=True)
        points = (self._cells(group, member) + torch.rand(len(group), 3, device=self.device)).t()
        new_values = density((points / self.resolution).contiguous()) * self.step
        values[group, member] = torch.maximum(values[group, member], new_values)
        self.values = values
        self.threshold = min(self.max_threshold, values.clamp(min=0).mean().item())
        self.set_bits(values > self.threshold)

    def rays(self, origin, direction, jitter):
        """Rays clipped to the box of occupied cells; samples are whole steps from the jittered start."""
        enter, leave = box_span(origin, direction, 0.0, 1.0)
        start = enter.clamp(min=self.near)
        offset = start / self.step + jitter
        inner, outer = box_span(origin, direction, self.low, self.high)
        first = offset + (inner / self.step - offset).ceil().clamp(min=0.0)
        last = torch.minimum(leave, outer) / self.step
        return Rays(origin, direction, first, torch.where(leave > start, last, first - 1.0))


def test_cells(origin, direction, first, last, count, step, resolution, bits):
    """[R, count]: whether each of the next `count` steps of a ray is in an occupied cell."""
    n = first[:, None] + torch.arange(count, device=first.device)
    t = n * step
    x, y, z = (((origin[:, axis, None] + t * direction[:, axis, None]) * resolution)
               .clamp(0, resolution - 1).int() for axis in range(3))
    half = resolution // 2
    cell = ((z * half + (y >> 1)) * half + (x >> 1)) * 4 + (y & 1) * 2 + (x & 1)
    return (n <= last[:, None]) & bits[cell.long()]


def positions(origin, direction, t, ray):
    """Points [3, M] at distances t [M] of rays [M]."""
    return torch.stack([origin[:, axis][ray] + t * direction[:, axis][ray] for axis in range(3)]).clamp(0, 1)


def sums_by_ray(values, ray, ends):
    """Sums of values [K, M] over each ray [K, R], and at each sample over the previous samples of its ray [K, M]. A
    ray's samples are consecutive up to ends [R]. Double precision: the sums are differences of sums over all rays."""
    prefix = torch.cumsum(values, 1, dtype=torch.float64)
    prefix = torch.nn.functional.pad(prefix, (1, 0))
    first = prefix.index_select(1, torch.nn.functional.pad(ends[:-1], (1, 0)))
    whole = prefix.index_select(1, ends) - first
    return whole.float(), (prefix[:, :-1] - first.index_select(1, ray)).float()


def transmit(raw, ray, ends, step, early_stop):
    """From log density [M] of consecutive samples with ends [R] of the rays: weights and transmittances in front of the
    samples [M], whether samples are live [M], and the rays' ends [R] among live samples."""
    optical_thickness = raw.exp() * step
    transmittance = (-sums_by_ray(optical_thickness[None], ray, ends)[1][0]).exp()
    live = transmittance >= early_stop
    weight = transmittance * (1.0 - (-optical_thickness).exp())
    live_ends = torch.nn.functional.pad(live.long().cumsum(0), (1, 0))[ends]
    return weight, transmittance, live, live_ends


def colors(raw_rgb, weight, ray, ends):
    """For samples with raw_rgb [3, N] and weights [N]: colours [3, R] without background, opacities [R], rgb [3, N],
    and at each sample the accumulated colour [3, N] of the previous samples of its ray."""
    rgb = torch.sigmoid(raw_rgb)
    rays, before = sums_by_ray(torch.cat([weight * rgb, weight[None]]), ray, ends)
    return rays[:3], rays[3], rgb, before[:3]


def loss_gradient(raw_rgb, raw, weight, transmittance, ray, ends, background, target, step, delta):
    """Huber loss [R] and squared error [R] of the rays, and the gradients of the mean loss with respect to raw_rgb
    [3, N] and raw [N] (log density): Max, Optical Models for Direct Volume Rendering, 1995.

    background [3, R]; target [3, R], composited on the background."""
    color, opacity, rgb, before = colors(raw_rgb, weight, ray, ends)
    prediction = color + (1.0 - opacity) * background
    difference = prediction - target
    size = difference.abs()
    loss = torch.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta)).mean(0)
    slope = difference.clamp(-delta, delta) / (3.0 * difference.shape[1])
    slope = slope.index_select(1, ray)
    rgb_gradient = weight * slope * rgb * (1.0 - rgb)
    # Colour behind a sample, including the background.
    behind = prediction.index_select(1, ray) - before - weight * rgb
    gradient = step * (slope * ((transmittance - weight) * rgb - behind)).sum(0)
    return loss, difference.square().mean(0), rgb_gradient, gradient * raw.clamp(-15, 15).exp()
