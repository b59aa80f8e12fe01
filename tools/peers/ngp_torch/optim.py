"""Implements Adam as in vknerf, and the moving average of the parameters."""
import math

import torch


class Adam(torch.optim.Optimizer):
    """Adam (Kingma and Ba, 2015). In groups marked `sparse` each parameter has its own step count, and parameters with
    a zero gradient do not change (vknerf counts steps per entry, whose features have gradients in the same steps).
    Works with GradScaler."""

    def __init__(self, groups, settings, compiled):
        super().__init__(groups, {"lr": 0.0, "weight_decay": 0.0, "sparse": False})
        self.beta1, self.beta2 = settings["optimizer.beta1"], settings["optimizer.beta2"]
        self.epsilon = settings["optimizer.epsilon"]
        self.compiled_sparse = compiled(self._sparse)
        self.reset()

    def reset(self):
        self.steps = 0
        for group in self.param_groups:
            for p in group["params"]:
                names = ("m", "v", "count") if group["sparse"] else ("m", "v")
                self.state[p] = {name: torch.zeros_like(p) for name in names}

    def _sparse(self, p, g, m, v, count, rate):
        """Updates p, m, v and count, which have the same shape as g; rate is a tensor of one value."""
        touched = g != 0
        new_count = count + touched.float()
        correction = (1.0 - torch.exp(new_count * math.log(self.beta2))).sqrt()
        correction = correction / (1.0 - torch.exp(new_count * math.log(self.beta1)))
        new_m = self.beta1 * m + (1.0 - self.beta1) * g
        new_v = self.beta2 * v + (1.0 - self.beta2) * g * g
        change = rate * correction * new_m / (new_v.sqrt() + self.epsilon)
        p.copy_(torch.where(touched, p - change, p))
        m.copy_(torch.where(touched, new_m, m))
        v.copy_(torch.where(touched, new_v, v))
        count.copy_(new_count)

    @torch.no_grad()
    def step(self, closure=None):
        self.steps += 1
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if group["sparse"]:
                    rate = torch.tensor(group["lr"], device=p.device)
                    self.compiled_sparse(p, p.grad, state["m"], state["v"], state["count"], rate)
                else:
                    self._dense(p, state, group["lr"], group["weight_decay"])

    def _dense(self, p, state, rate, weight_decay):
        g = p.grad + weight_decay * p
        state["m"].lerp_(g, 1.0 - self.beta1)
        state["v"].mul_(self.beta2).addcmul_(g, g, value=1.0 - self.beta2)
        correction = math.sqrt(1.0 - self.beta2 ** self.steps) / (1.0 - self.beta1 ** self.steps)
        p.addcdiv_(state["m"], state["v"].sqrt().add_(self.epsilon), value=-rate * correction)


class Average:
    """Debiased moving average of the parameters. refresh() weights the parameters for all steps since the last call."""

    def __init__(self, params, decay):
        self.params, self.decay, self.step_averaged = params, decay, 0
        self.values = [p.detach().clone() for p in params]

    @torch.no_grad()
    def refresh(self, step):
        if step == self.step_averaged:
            return
        weight = (1.0 - self.decay ** (step - self.step_averaged)) / (1.0 - self.decay ** step)
        self.step_averaged = step
        for value, p in zip(self.values, self.params):
            value.lerp_(p, weight)
