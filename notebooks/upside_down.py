# %% [markdown]
# # Upside-down RL: weights and targets by hand
#
# RCP-A learns by supervised learning which action led to a given advantage, weights steps by their
# advantage, and then commands higher advantages than it has seen on average. This notebook plots
# the weights and the commands with the method's own functions.

# %%
import matplotlib.pyplot as plt
import torch

import lightning_rl as lrl
from lightning_rl.functional.upside_down import exponential_weights, standardise
from lightning_rl.lab.scalars import read_scalar
from lightning_rl.methods.upside_down.targets import Tilted

# %% [markdown]
# Made-up advantages of a buffer, some of them much lower than the rest; $z$ are the standardised
# ones. The weights are $\min(e^{z/\beta}, w_{max})$, divided by their mean.

# %%
generator = torch.Generator().manual_seed(0)
usual = torch.randn(900, generator=generator)
low = torch.randn(100, generator=generator) - 4
advantage = torch.cat([usual, low])
z = standardise(advantage, limit=5.0)
figure, axes = plt.subplots(figsize=(6, 3))
for temperature in (0.3, 0.5, 1.0):
    weight = exponential_weights(z, temperature, max_weight=20.0)
    axes.scatter(z, weight, s=4, label=f"temperature {temperature}")
axes.set(xlabel="standardised advantage", ylabel="weight", yscale="log")
axes.legend();

# %% [markdown]
# Commands are drawn from a normal distribution with the mean and standard deviation of the tilted
# distribution of labels, $p^*(Z) \propto p(Z) e^{Z/\beta}$.

# %%
figure, axes = plt.subplots(figsize=(6, 3))
axes.hist(z.numpy(), bins=60, density=True, color="lightgrey", label="labels in the buffer")
for number, temperature in enumerate((0.5, 1.0, 2.0)):
    mean, _ = Tilted(target_temperature=temperature, max_weight=1e9).fit(z)
    label = f"asked for, temperature {temperature}"
    axes.axvline(float(mean), color=f"C{number}", linestyle="--", label=label)
axes.set(xlabel="standardised advantage", ylim=(0, 1))
axes.legend();

# %% [markdown]
# CartPole with and without these weights, one short run each. One seed says little: the claims of
# this project use more.

# %%
settings = {"seed": 0, "max_env_steps": 40_000, "num_updates_per_iter": 150, "num_workers": 0}
runs = {}
for weights in ("advantage", "none"):
    runs[weights] = lrl.train("RCP-A", "cartpole", exp_name=weights, weights=weights, **settings)

# %%
figure, axes = plt.subplots(figsize=(6, 3))
for weights, run in runs.items():
    curve = read_scalar(run.path, "rollout/return_mean")
    axes.plot(curve.env_steps, curve.value, label=f"weights: {weights}")
axes.set(xlabel="environment steps", ylabel="training return")
axes.set_title("RCP-A on CartPole, one seed each")
axes.legend();
