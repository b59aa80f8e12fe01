"""Adam as vknerf has it, and the moving average of the parameters."""
import math

import torch


class Adam(torch.optim.Optimizer):
    """Adam (Kingma and Ba, 2015); in groups with `features`, entries of that many parameters whose gradient is
    zero are left alone and keep their own count of steps. A GradScaler can drive it."""

    def __init__(self, groups, settings, compiled):
        super().__init__(groups, {"lr": 0.0, "weight_decay": 0.0, "features": 0})
        self.beta1, self.beta2 = settings["optimizer.beta1"], settings["optimizer.beta2"]
        self.epsilon = settings["optimizer.epsilon"]
        self.sparse_program = compiled(self._sparse)
        self.reset()

    def reset(self):
        self.steps = 0
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p] = {"m": torch.zeros_like(p), "v": torch.zeros_like(p)}
                if group["features"]:
                    self.state[p]["count"] = torch.zeros(p.numel() // group["features"], 1, device=p.device)

    def _sparse(self, p, g, m, v, count, rate):
        """All [entries, features] but count [entries, 1]; rate is a tensor of one number."""
        touched = (g != 0).any(1, keepdim=True)
        count = count + touched.float()
        correction = (1.0 - torch.exp(count * math.log(self.beta2))).sqrt()
        correction = correction / (1.0 - torch.exp(count * math.log(self.beta1)))
        new_m = torch.where(touched, self.beta1 * m + (1.0 - self.beta1) * g, m)
        new_v = torch.where(touched, self.beta2 * v + (1.0 - self.beta2) * g * g, v)
        change = rate * correction * new_m / (new_v.sqrt() + self.epsilon)
        return torch.where(touched, p - change, p), new_m, new_v, count

    @torch.no_grad()
    def step(self, closure=None):
        self.steps += 1
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if group["features"]:
                    shape = (-1, group["features"])
                    rate = torch.tensor(group["lr"], device=p.device)
                    old = [t.view(shape) for t in (p, p.grad, state["m"], state["v"])]
                    new = self.sparse_program(*old, state["count"], rate)
                    for tensor, value in zip((p, state["m"], state["v"]), new):
                        tensor.view(shape).copy_(value)
                    state["count"].copy_(new[3])
                else:
                    self._dense(p, state, group["lr"], group["weight_decay"])

    def _dense(self, p, state, rate, weight_decay):
        g = p.grad + weight_decay * p
        state["m"].lerp_(g, 1.0 - self.beta1)
        state["v"].mul_(self.beta2).addcmul_(g, g, value=1.0 - self.beta2)
        correction = math.sqrt(1.0 - self.beta2 ** self.steps) / (1.0 - self.beta1 ** self.steps)
        p.addcdiv_(state["m"], state["v"].sqrt().add_(self.epsilon), value=-rate * correction)


class Average:
    """Debiased moving average of parameters, refreshed now and then for all the steps passed."""

    def __init__(self, params, decay):
        self.params, self.decay, self.at = params, decay, 0
        self.values = [p.detach().clone() for p in params]

    @torch.no_grad()
    def refresh(self, step):
        if step == self.at:
            return
        weight = (1.0 - self.decay ** (step - self.at)) / (1.0 - self.decay ** step)
        self.at = step
        for value, p in zip(self.values, self.params):
            value.lerp_(p, weight)
