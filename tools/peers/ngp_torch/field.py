"""Implements the field: multiresolution hash grid (Mueller et al., Instant Neural Graphics Primitives, 2022),
spherical harmonics and two MLPs. N is the number of samples, L the number of levels, F of features per level.

The sample index is a tensor's last one ([rows, N]). Each level is then one contiguous loop over the samples that
accesses only its own table, and the MLPs read the rows as a transposed matrix without a copy.
"""
import math
from concurrent.futures import ThreadPoolExecutor

import torch
from torch.nn import functional

from config import PRIMES, grid_levels

CHUNK, STRIDE = 8192, 16  # samples whose gradients are scattered at once; distance between their indices


class HashGrid:
    """The hash table with its encoding and the scatter of its gradients."""

    def __init__(self, settings, device, compiled):
        self.levels = grid_levels(settings)
        self.features = settings["grid.features"]
        entries = self.levels[-1].first + self.levels[-1].entries
        self.table = torch.empty(entries * self.features, device=device).uniform_(-1e-4, 1e-4)
        self.table.grad = torch.zeros_like(self.table)
        self.compiled_encode = compiled(self._encode)
        self.compiled_corners = compiled(self._corners)
        dense = sum(level.dense for level in self.levels)
        self.groups = [Group(self.levels[:dense], device), Group(self.levels[dense:], device)]
        self.groups = [group for group in self.groups if group.count > 0]
        self.workers = None
        if device.type == "cpu" and torch.get_num_threads() > 1:
            self.workers = ThreadPoolExecutor(torch.get_num_threads())

    def encode(self, table, points):
        """points [3, N] in the unit cube -> features [F * L, N], the feature being the slower index."""
        return self.compiled_encode(table, points)

    def _encode(self, table, points):
        rows = [[] for _ in range(self.features)]
        for group in self.groups:
            cell, inside = group.cells(points)
            sums = None
            for corner in range(8):
                first = (group.entry(cell, corner) * self.features).long()
                weight = group.weight(inside, corner)
                parts = [weight * table[first + f] for f in range(self.features)]
                sums = parts if sums is None else [a + b for a, b in zip(sums, parts)]
            for f in range(self.features):
                rows[f].append(sums[f])
        return torch.cat([part for feature in rows for part in feature])

    def _corners(self, points, gradient):
        """Entries [L, 8, N] and their gradients [F, L, 8, N], for features' gradient [F * L, N]; lists by Group."""
        gradient = gradient.view(self.features, len(self.levels), 1, points.shape[1])
        entries, values, first = [], [], 0
        for group in self.groups:
            mine = gradient[:, first:first + group.count]
            first += group.count
            entry, weight = group.corners(points)
            entries.append(entry)
            values.append(weight[None] * mine)
        return entries, values

    def add_gradient(self, points, gradient):
        """Adds d loss / d table to table.grad, given points [3, N] and the features' gradient [F * L, N].

        On a CPU index_add_ is serial, so each thread processes whole levels, whose tables do not overlap. Chunks of
        samples stay in the cache. Samples of a chunk are not neighbours on their rays: neighbours add to the same
        entries, and each addition would wait for the previous one."""
        target = self.table.grad.view(-1, self.features)
        count = points.shape[1]
        if target.device.type == "cpu":
            order = torch.arange(count)
            order = torch.cat([order[first::STRIDE] for first in range(STRIDE)]).split(CHUNK)
        else:
            order = [torch.arange(count, device=target.device)]
        for part in order:
            entries, values = self.compiled_corners(points.index_select(1, part), gradient.index_select(1, part))
            jobs = [(entry[level], value[f, level], f) for entry, value in zip(entries, values)
                    for level in range(len(entry)) for f in range(self.features)]

            def add(job):
                entry, value, f = job
                target[:, f].index_add_(0, entry.view(-1), value.view(-1))

            list(map(add, jobs) if self.workers is None else self.workers.map(add, jobs))


class Group:
    """Consecutive levels that are all dense or all hashed, with constants [levels, 1]."""

    def __init__(self, levels, device):
        self.count = len(levels)
        if not levels:
            return

        def column(values, dtype):
            return torch.tensor(values, dtype=dtype, device=device)[:, None]

        self.dense = levels[0].dense
        self.scale = column([level.scale for level in levels], torch.float32)
        # Table sizes are powers of two, so the primes may be reduced modulo the size: the low bits of the products
        # do not change, and the products fit into 32 bits.
        self.mask = levels[0].entries - 1
        self.primes = [prime & self.mask for prime in PRIMES]
        largest = (levels[-1].resolution + 1) * (self.mask + 1)
        self.dtype = torch.int32 if self.dense or largest < 1 << 31 else torch.int64
        self.first = column([level.first for level in levels], self.dtype)
        self.resolution = column([level.resolution for level in levels], self.dtype)

    def cells(self, points):
        """For each axis [levels, N]: cells that contain points [3, N], and the points' positions in the cells."""
        cell, inside = [], []
        for axis in range(3):
            position = points[axis][None] * self.scale + 0.5
            low = position.floor()
            cell.append(low.to(self.dtype))
            inside.append(position - low)
        return cell, inside

    def corners(self, points):
        """[levels, 8, N]: numbers of the entries around each point, and their interpolation weights."""
        cell, inside = self.cells(points)
        corner = torch.arange(8, device=points.device)[None, :, None]
        index, weight = [], 1.0
        for axis in range(3):
            bit = (corner >> axis) & 1
            index.append(cell[axis][:, None] + bit.to(self.dtype))
            near = inside[axis][:, None]
            weight = weight * torch.where(bit > 0, near, 1.0 - near)
        return self.number(index, 1), weight

    def entry(self, cell, corner):
        """[levels, N]: number of the entry at a corner of the cells; corner has a bit for each axis."""
        return self.number([cell[axis] + (corner >> axis & 1) for axis in range(3)], 0)

    def number(self, corner, extra):
        x, y, z = corner
        shape = (self.count,) + (1,) * (extra + 1)
        first, resolution = self.first.view(shape), self.resolution.view(shape)
        if self.dense:
            x, y, z = (torch.minimum(v, resolution - 1) for v in corner)
            return first + (x + resolution * (y + resolution * z))
        return first + ((x ^ y * self.primes[1] ^ z * self.primes[2]) & self.mask)

    @staticmethod
    def weight(inside, corner):
        x, y, z = (v if corner >> axis & 1 else 1.0 - v for axis, v in enumerate(inside))
        return x * y * z


def spherical_harmonics(d):
    """Directions [R, 3] -> real spherical harmonics of degree 4 [R, 16] (Sloan, Efficient Spherical Harmonic
    Evaluation, 2013)."""
    x, y, z = d.unbind(1)
    xx, yy, zz = x * x, y * y, z * z
    return torch.stack([
        torch.full_like(x, 0.28209479177387814),
        -0.48860251190291987 * y, 0.48860251190291987 * z, -0.48860251190291987 * x,
        1.0925484305920792 * x * y, -1.0925484305920792 * y * z,
        0.94617469575755997 * zz - 0.31539156525251999,
        -1.0925484305920792 * x * z, 0.54627421529603959 * (xx - yy),
        0.59004358992664352 * y * (-3.0 * xx + yy), 2.8906114426405538 * x * y * z,
        0.45704579946446572 * y * (1.0 - 5.0 * zz), 0.3731763325901154 * z * (5.0 * zz - 3.0),
        0.45704579946446572 * x * (1.0 - 5.0 * zz), 1.4453057213202769 * z * (xx - yy),
        0.59004358992664352 * x * (-xx + 3.0 * yy)], 1)


def make_weights(settings, device):
    """Makes the matrices [outputs, inputs] of the density MLP and the colour MLP: Xavier uniform, no biases."""
    def mlp(inputs, width, layers, outputs):
        sizes = [inputs] + [width] * layers + [outputs]
        weights = []
        for a, b in zip(sizes, sizes[1:]):
            weight = torch.empty(b, a, device=device)
            torch.nn.init.xavier_uniform_(weight)
            weights.append(weight.requires_grad_())
        return weights

    encoded, geometry = settings["grid.levels"] * settings["grid.features"], settings["mlp.geometry"]
    return (mlp(encoded, settings["mlp.density_width"], settings["mlp.density_layers"], geometry),
            mlp(geometry + 16, settings["mlp.color_width"], settings["mlp.color_layers"], 3))


def run_mlp(weights, rows):
    for weight in weights[:-1]:
        rows = functional.relu(functional.linear(rows, weight))
    return functional.linear(rows, weights[-1])


def raw_density(weights, encoded):
    """Features [F * L, N] -> log of the density [N]."""
    hidden = encoded.t()
    for weight in weights[:-1]:
        hidden = functional.relu(functional.linear(hidden, weight))
    return functional.linear(hidden, weights[-1][:1])[:, 0].float()


def raw_outputs(density, color, encoded, harmonics, ray):
    """Features [F * L, N], harmonics [R, 16] of the rays, ray [N] -> log density [N], colour before the
    sigmoid [3, N]."""
    geometry = run_mlp(density, encoded.t())
    rgb = run_mlp(color, torch.cat([geometry, harmonics[ray].to(geometry.dtype)], 1))
    return geometry[:, 0].float(), rgb.t().float()
