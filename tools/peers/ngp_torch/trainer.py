"""Runs training steps and evaluations."""
import math

import torch

import field
import march
from config import UPDATE_INTERVAL, learning_rate
from optim import Adam, Average


class Trainer:
    def __init__(self, settings, cameras, images, device, amp, compiled):
        """cameras, images: lists from scene.py; amp: None or the dtype of the MLPs' arithmetic."""
        self.settings, self.device, self.amp = settings, device, amp
        self.cameras = march.camera_tensors(cameras, device)
        self.views = len(cameras)
        # Pixels of all images: [P, 4] uint8.
        self.pixels = torch.cat([torch.from_numpy(image).view(-1, 4) for image in images]).to(device)
        sizes = torch.tensor([camera.width * camera.height for camera in cameras])
        self.first_pixel = (sizes.cumsum(0) - sizes).to(device)

        torch.manual_seed(settings["seed"])
        self.grid = field.HashGrid(settings, device, compiled)
        self.density, self.color = field.make_weights(settings, device)
        self.params = [self.grid.table] + self.density + self.color
        self.occupancy = march.Occupancy(settings, self.cameras, device)
        self.unseen = self.occupancy.values.clone()
        self.optimizer = Adam([{"params": [self.grid.table], "sparse": True},
                               {"params": self.density + self.color,
                                "weight_decay": max(settings["optimizer.weight_decay"], 0.0)}],
                              settings, compiled)
        # Not compiled on a CPU, where their double precision sums would prevent vectorisation of the whole kernel.
        compiled_on_gpu = compiled if device.type == "cuda" else lambda function: function
        for name in ("transmit", "colors", "loss_gradient"):
            setattr(self, name, compiled_on_gpu(getattr(march, name)))
        self.test_cells, self.positions = compiled(march.test_cells), compiled(march.positions)
        self.compiled_density = compiled(field.raw_density)
        self.compiled_field = compiled(field.raw_outputs)
        self.harmonics = compiled(field.spherical_harmonics)
        self.begin()

    def begin(self):
        """Resets the training to the state before the first step; compiled functions are kept."""
        settings = self.settings
        torch.manual_seed(settings["seed"])
        with torch.no_grad():
            self.grid.table.uniform_(-1e-4, 1e-4)
            self.grid.table.grad.zero_()
            for weight in self.density + self.color:
                torch.nn.init.xavier_uniform_(weight)
        self.optimizer.reset()
        self.occupancy.values = self.unseen.clone()
        self.occupancy.threshold = 0.0
        self.average = Average(self.params, settings["optimizer.ema_decay"])
        self.scaler = None
        if self.amp == torch.float16:
            self.scaler = make_scaler(self.device, settings)
        self.step_count = 0
        self.capacity = 4 * settings["batch.samples"]
        # At first every cell is occupied, and most rays have samples at all steps.
        longest = math.ceil(math.sqrt(3.0) / self.occupancy.step) + 1
        self.ray_count = max(64, min(self.capacity // longest, settings["batch.max_rays"]) // 64 * 64)

    # ---- the step -----------------------------------------------------------------------------------

    def step(self, progress):
        """Runs a step; returns numbers of rays, marched and live samples, sums of loss and squared error over rays."""
        with torch.no_grad():
            if self.step_count % UPDATE_INTERVAL == 0:
                self.occupancy.update(self.step_count, lambda points: self.log_density(points).exp())
            origin, direction, background, target = self.pick_rays()
            count = len(origin)
            rays = self.occupancy.rays(origin, direction, torch.rand(count, device=self.device))
            t, ray, ends, complete_rays = self.march(rays, self.capacity)
            points = self.positions(origin, direction, t, ray)
            encoded = self.grid.encode(self.grid.table, points)
            raw = self.log_density(None, encoded)
            weight, transmittance, live, live_ends = self.transmit(
                raw, ray, ends, self.occupancy.step, self.settings["march.early_stop"])
            live = torch.nonzero(live)[:, 0]
            raw, weight, transmittance, ray = (v[live] for v in (raw, weight, transmittance, ray))
            encoded, points = encoded.index_select(1, live), points.index_select(1, live)
            harmonics = self.harmonics(direction)
        loss, square = self.compute_gradients(encoded, points, harmonics, raw, weight, transmittance, ray, live_ends,
                                  background, target, progress)
        self.step_count += 1
        if self.step_count % UPDATE_INTERVAL == 0:
            self.average.refresh(self.step_count)
        self.choose_ray_count(complete_rays, count, len(t), len(live))
        return count, len(t), len(live), loss, square

    def compute_gradients(self, encoded, points, harmonics, raw, weight, transmittance, ray, ends, background, target,
              progress):
        """Computes gradients of N live samples and updates the parameters: encoded [F * L, N], points [3, N], others as
        in march.loss_gradient."""
        encoded.requires_grad_()
        with self.autocast():
            raw_again, raw_rgb = self.compiled_field(self.density, self.color, encoded, harmonics, ray)
        with torch.no_grad():
            loss, square, rgb_gradient, raw_gradient = self.loss_gradient(
                raw_rgb.detach(), raw, weight, transmittance, ray, ends, background, target,
                self.occupancy.step, self.settings["loss.delta"])
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.settings, self.step_count, progress)
        gradients = [raw_gradient, rgb_gradient]
        if self.scaler is not None:
            gradients = [self.scaler.scale(gradient) for gradient in gradients]
        if len(raw) > 0:
            torch.autograd.backward([raw_again, raw_rgb], gradients)
            with torch.no_grad():
                self.grid.add_gradient(points, encoded.grad)
            if self.scaler is not None:
                self.scaler.step(self.optimizer)
                self.scaler.update()
            else:
                self.optimizer.step()
        self.grid.table.grad.zero_()
        for parameter in self.params[1:]:
            parameter.grad = None
        return loss.sum(), square.sum()

    def pick_rays(self):
        """Rays of random pixels: origins, directions [R, 3], backgrounds and the targets composited on them [3, R]."""
        count, device = self.ray_count, self.device
        which = torch.randint(self.views, (count,), device=device)
        size = self.cameras["size"][which]
        pixel = (torch.rand(count, 2, device=device) * size).long()
        index = self.first_pixel[which] + pixel[:, 1] * size[:, 0] + pixel[:, 0]
        rgba = self.pixels[index].t().float() / 255.0
        background = torch.rand(3, count, device=device)
        origin, direction = march.camera_rays(self.cameras, which, pixel)
        return origin, direction, background, rgba[:3] + (1.0 - rgba[3]) * background

    def march(self, rays, capacity):
        """Distances [M] and rays [M] of samples in occupied cells, index [R] at which each ray's samples end, number of
        rays that fit into the capacity; samples of the other rays are dropped."""
        through = torch.nonzero(rays.first <= rays.last)[:, 0]
        first = rays.first[through]
        hits = self.test_cells(rays.origin[through], rays.direction[through], first, rays.last[through],
                          self.occupancy.max_steps, self.occupancy.step, self.occupancy.resolution,
                          self.occupancy.bits)
        place = torch.nonzero(hits)
        counts = torch.zeros(len(rays.first), dtype=torch.long, device=self.device)
        counts[through] = hits.sum(1)
        ends = counts.cumsum(0)
        total, complete_rays = len(place), len(ends)
        if total > capacity:
            complete_rays = int((ends <= capacity).sum())
            total = int(ends[complete_rays - 1]) if complete_rays > 0 else 0
            ends = ends.clamp(max=total)
            place = place[:total]
        t = (first[place[:, 0]] + place[:, 1]) * self.occupancy.step
        return t, through[place[:, 0]], ends, complete_rays

    def choose_ray_count(self, complete_rays, rays, marched, live):
        """Chooses the next number of rays so that batch.samples samples are live and all marched ones fit."""
        wanted = self.settings["batch.samples"] * complete_rays / max(live, 1)
        limit = 0.9 * self.capacity * rays / max(marched, 1)
        count = min(wanted, limit, 2.0 * rays)
        self.ray_count = int(min(max(count, 64), self.settings["batch.max_rays"])) // 64 * 64

    def autocast(self):
        return torch.autocast(self.device.type, dtype=self.amp or torch.bfloat16, enabled=self.amp is not None)

    def log_density(self, points, encoded=None, values=None):
        """points [3, K] (or their features) -> log density [K]; values: parameters or their moving average."""
        values = values or self.params
        if encoded is None:
            encoded = self.grid.encode(values[0], points)
        with self.autocast():
            return self.compiled_density(values[1:1 + len(self.density)], encoded)

    # ---- evaluation ---------------------------------------------------------------------------------

    @torch.no_grad()
    def render(self, origin, direction, values):
        """Colours without background [3, R] and opacities [R]."""
        rays = self.occupancy.rays(origin, direction, torch.full_like(origin[:, 0], 0.5))
        t, ray, ends, _ = self.march(rays, 1 << 62)
        points = self.positions(origin, direction, t, ray)
        encoded = self.grid.encode(values[0], points)
        raw = self.log_density(None, encoded, values)
        weight, _, live, ends = self.transmit(raw, ray, ends, self.occupancy.step,
                                              self.settings["march.early_stop"])
        live = torch.nonzero(live)[:, 0]
        split = 1 + len(self.density)
        with self.autocast():
            _, raw_rgb = self.compiled_field(values[1:split], values[split:], encoded.index_select(1, live),
                                            self.harmonics(direction), ray[live])
        return self.colors(raw_rgb, weight[live], ray[live], ends)[:2]

    @torch.no_grad()
    def evaluate(self, cameras, images, batch=8192):
        """Mean PSNR over the views in sRGB on white, of images rounded to 8 bits as in vknerf."""
        self.average.refresh(self.step_count)
        tensors, sum_psnr = march.camera_tensors(cameras, self.device), 0.0
        for i, camera in enumerate(cameras):
            y, x = torch.meshgrid(torch.arange(camera.height, device=self.device),
                                  torch.arange(camera.width, device=self.device), indexing="ij")
            pixels = torch.stack([x.reshape(-1), y.reshape(-1)], 1)
            parts = []
            for pixel in pixels.split(batch):
                which = torch.full((len(pixel),), i, device=self.device)
                color, opacity = self.render(*march.camera_rays(tensors, which, pixel), self.average.values)
                parts.append(color + (1.0 - opacity))
            rendered = (torch.cat(parts, 1).clamp(0, 1) * 255.0).round() / 255.0
            rgba = torch.from_numpy(images[i]).to(self.device).view(-1, 4).t().float() / 255.0
            error = (rendered - (rgba[:3] + (1.0 - rgba[3]))).square().mean().item()
            sum_psnr += -10.0 * math.log10(max(error, 1e-10))
        return sum_psnr / len(cameras)


def make_scaler(device, settings):
    options = {"init_scale": float(settings["loss_scale.initial"]),
               "growth_factor": float(settings["loss_scale.growth"]),
               "backoff_factor": float(settings["loss_scale.backoff"]),
               "growth_interval": int(settings["loss_scale.interval"])}
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler(device.type, **options)
    return torch.cuda.amp.GradScaler(enabled=device.type == "cuda", **options)
