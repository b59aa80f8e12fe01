"""Rays, the occupancy grid, and compositing. R rays, M marched samples, N live ones.

As in vknerf: samples lie a fixed step apart from a random offset on; those in occupied cells are marched, and
those whose ray still transmits light are live.
"""
import math

import torch

from config import OCCUPANCY_WARMUP


class Rays:
    """Rays of one batch; origin, direction [R, 3]; first, last [R]: distances in steps; empty if first > last."""

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
    """Origins and unit directions [R, 3] through the middles of pixels [R, 2] (x, y) of cameras [R]."""
    pose, lens = cameras["pose"][which], cameras["lens"][which]
    place = (pixel + 0.5 - lens[:, 2:]) / lens[:, :2]
    local = torch.stack([place[:, 0], -place[:, 1], -torch.ones_like(place[:, 0])], 1)
    local = local / local.norm(dim=1, keepdim=True)
    return pose[:, :, 3], (pose[:, :, :3] * local[:, None]).sum(2)


def box_span(origin, direction, low, high):
    """Distances [R] at which rays enter and leave a box."""
    a, b = (low - origin) / direction, (high - origin) / direction
    return torch.minimum(a, b).amax(1), torch.maximum(a, b).amin(1)


class Occupancy:
    """Cells of the unit cube and the optical thickness of a marching step in each; negative where no camera sees.

    Stored in groups of four neighbours (2 x 2 in x and y): cell (x, y, z) has number
    ((z * r/2 + y/2) * r/2 + x/2) * 4 + (y mod 2) * 2 + x mod 2."""

    def __init__(self, settings, cameras, device):
        self.resolution = settings["march.resolution"]
        self.decay, self.most = settings["march.occupancy_decay"], settings["march.occupancy_threshold"]
        self.step = math.sqrt(3.0) / settings["march.steps_per_unit"]
        self.near, self.device = settings["march.near_distance"], device
        self.threshold = 0.0
        self.values = self._group(self._seen(cameras).float() - 1.0)
        self.set_bits(torch.ones_like(self.values, dtype=torch.bool))

    def _group(self, grid):
        """[r, r, r] by z, y, x -> [r^3 / 4, 4]"""
        half = self.resolution // 2
        return grid.view(-1, half, 2, half, 2).permute(0, 1, 3, 2, 4).reshape(-1, 4)

    def _seen(self, cameras):
        """[r, r, r] by z, y, x: some camera has the middle or a corner of the cell in its picture."""
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
        """occupied [r^3 / 4, 4]; also finds the box around what is occupied, which rays are cut to."""
        self.bits = occupied.reshape(-1)
        groups = torch.nonzero(occupied)
        half = self.resolution // 2
        cells = self._cells(groups[:, 0], groups[:, 1]).float()
        if len(cells) == 0:
            cells = torch.full((1, 3), float(half), device=self.device)
        self.low = cells.amin(0) / self.resolution
        self.high = (cells.amax(0) + 1) / self.resolution
        self.most_steps = math.ceil((self.high - self.low).norm().item() / self.step) + 1

    def _cells(self, group, place):
        """Coordinates [K, 3] of cells by number of group and place in it."""
        half = self.resolution // 2
        x, y = group % half * 2 + place % 2, group // half % half * 2 + place // 2
        return torch.stack([x, y, group // (half * half)], 1)

    def update(self, step, density):
        """Decay, new densities at random points of some cells, threshold. density: points [3, K] -> [K].

        All cells at first; later of each group one at random and one other that is occupied."""
        values = torch.where(self.values > 0, self.values * self.decay, self.values)
        chosen = values >= 0
        if step >= OCCUPANCY_WARMUP:
            count = len(values)
            place = torch.arange(4, device=self.device)
            pick = torch.randint(4, (count, 1), device=self.device)
            # The first occupied one, counting from a random place.
            turn = (place + torch.randint(4, (count, 1), device=self.device)) % 4
            other = torch.where((values > self.threshold) & (place != pick), turn, 4)
            least = other.amin(1, keepdim=True)
            chosen &= (place == pick) | ((other == least) & (least < 4))
        group, place = torch.nonzero(chosen, as_tuple=True)
        points = (self._cells(group, place) + torch.rand(len(group), 3, device=self.device)).t()
        fresh = density((points / self.resolution).contiguous()) * self.step
        values[group, place] = torch.maximum(values[group, place], fresh)
        self.values = values
        self.threshold = min(self.most, values.clamp(min=0).mean().item())
        self.set_bits(values > self.threshold)

    def rays(self, origin, direction, jitter):
        """Rays whose samples lie at whole steps from the jittered start on, cut to the occupied box."""
        enter, leave = box_span(origin, direction, 0.0, 1.0)
        start = enter.clamp(min=self.near)
        offset = start / self.step + jitter
        inner, outer = box_span(origin, direction, self.low, self.high)
        first = offset + (inner / self.step - offset).ceil().clamp(min=0.0)
        last = torch.minimum(leave, outer) / self.step
        return Rays(origin, direction, first, torch.where(leave > start, last, first - 1.0))


def probe(origin, direction, first, last, count, step, resolution, bits):
    """[R, count]: which of each ray's next steps lie in occupied cells."""
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
    """values [K, M] of samples packed ray by ray up to ends [R]: sums over each ray [K, R], and at each sample
    those over the samples before it on its ray [K, M]. Taken in double precision: they are differences of sums
    over all rays."""
    upto = torch.cumsum(values, 1, dtype=torch.float64)
    upto = torch.nn.functional.pad(upto, (1, 0))
    first = upto.index_select(1, torch.nn.functional.pad(ends[:-1], (1, 0)))
    whole = upto.index_select(1, ends) - first
    return whole.float(), (upto[:, :-1] - first.index_select(1, ray)).float()


def transmit(raw, ray, ends, step, early_stop):
    """From log density [M] of samples packed ray by ray up to ends [R]: weights and transmittances before the
    samples [M], which of them are live [M], and the ends [R] among the live ones."""
    thickness = raw.exp() * step
    transmittance = (-sums_by_ray(thickness[None], ray, ends)[1][0]).exp()
    live = transmittance >= early_stop
    weight = transmittance * (1.0 - (-thickness).exp())
    live_ends = torch.nn.functional.pad(live.long().cumsum(0), (1, 0))[ends]
    return weight, transmittance, live, live_ends


def colors(raw_rgb, weight, ray, ends):
    """Of samples with raw_rgb [3, N] and weights [N]: colours [3, R] without background, opacities [R], rgb
    [3, N], and at each sample the colour [3, N] of those before it."""
    rgb = torch.sigmoid(raw_rgb)
    rays, before = sums_by_ray(torch.cat([weight * rgb, weight[None]]), ray, ends)
    return rays[:3], rays[3], rgb, before[:3]


def loss_gradient(raw_rgb, raw, weight, transmittance, ray, ends, background, target, step, delta):
    """Huber loss of each ray [R], squared error [R], and the gradients of the loss's mean over the rays by
    raw_rgb [3, N] and raw [N] (log density): Max, Optical Models for Direct Volume Rendering, 1995.

    background [3, R]; target [3, R], composited on it."""
    color, opacity, rgb, before = colors(raw_rgb, weight, ray, ends)
    prediction = color + (1.0 - opacity) * background
    difference = prediction - target
    size = difference.abs()
    loss = torch.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta)).mean(0)
    slope = difference.clamp(-delta, delta) / (3.0 * difference.shape[1])
    slope = slope.index_select(1, ray)
    rgb_gradient = weight * slope * rgb * (1.0 - rgb)
    # What lies behind a sample, background included.
    behind = prediction.index_select(1, ray) - before - weight * rgb
    gradient = step * (slope * ((transmittance - weight) * rgb - behind)).sum(0)
    return loss, difference.square().mean(0), rgb_gradient, gradient * raw.clamp(-15, 15).exp()
