# %% [markdown]
# # Stacked agents: eight seeds as one batch
#
# The parameters of each seed are one row of a single tensor; an update of all seeds is a few batched matrix products.

# %%
import time

import matplotlib.pyplot as plt
import numpy as np

import lightning_rl as lrl
from lightning_rl.lab.scalars import read_scalar

# %%
seconds = {}
for count in (1, 8):
    started = time.process_time()
    run = lrl.train("DDQN", "cartpole-v0", exp_name=f"seeds_{count}", seed=0, num_seeds=count, max_env_steps=6_000, num_workers=0)
    seconds[count] = time.process_time() - started
print({count: f"{value:.0f} CPU seconds" for count, value in seconds.items()})

# %% [markdown]
# Each seed has its own run directory and learning curve.

# %%
figure, axes = plt.subplots(figsize=(6, 3))
curves = []
for folder in sorted(run.path.parent.glob("seed_*")):
    curve = read_scalar(folder, "rollout/return_mean")
    curves.append(np.interp(np.arange(0, 6_000, 200), curve.env_steps, curve.value))
    axes.plot(curve.env_steps, curve.value, color="tab:blue", alpha=0.25)
axes.plot(np.arange(0, 6_000, 200), np.mean(curves, axis=0), color="tab:blue", label="mean of eight seeds")
axes.axhline(195, color="grey", linestyle=":", label="counts as solved")
axes.set(xlabel="environment steps", ylabel="training return")
axes.legend();

# %% [markdown]
# Seed 0 trained together with seven others has the same results as seed 0 trained alone, up to rounding.

# %%
alone = read_scalar(run.path.parent.parent.parent / "seeds_1" / "DDQN" / "seed_0", "rollout/return_mean")
stacked = read_scalar(run.path.parent / "seed_0", "rollout/return_mean")
early = alone.env_steps < 2_000
print("largest difference of a training return in the first 2,000 steps:", abs(alone.value - stacked.value)[early].max())
