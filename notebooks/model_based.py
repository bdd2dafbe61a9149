# %% [markdown]
# # Model-based generalisation: learn from imagined transitions
#
# PanFlute's state is made of independent parts, so a learned model can predict combinations of them that were not
# in its data. The same DQN learns from replayed transitions (ER) or from roll-outs in a learned model of observations
# (simple-model), with ten updates per environment step.

# %%
import matplotlib.pyplot as plt

import lightning_rl as lrl
from lightning_rl.lab.scalars import read_scalar

# %% [markdown]
# Both learn from environment step 400 on, with networks of half the paper's width; the two seeds of a method train as one batch.

# %%
settings = {"preset": "low-data", "learning_starts": 400, "max_env_steps": 900, "hidden": [100, 100]}
seeds = {"seed": 0, "num_seeds": 2, "num_workers": 0}
runs = {name: lrl.train(name, "panflute-4", **settings, **seeds) for name in ("ER", "simple-model")}

# %%
figure, axes = plt.subplots(figsize=(6, 3))
for name, colour in (("ER", "tab:blue"), ("simple-model", "tab:orange")):
    for folder in sorted(runs[name].path.parent.glob("seed_*")):
        curve = read_scalar(folder, "eval_greedy/return_mean")
        axes.plot(curve.env_steps, curve.value, color=colour, label=name if folder.name == "seed_0" else None)
axes.axhline(28.7, color="grey", linestyle="--", label="always the right order")
axes.axhline(6.6, color="grey", linestyle=":", label="random policy")
axes.set(xlabel="environment steps", ylabel="greedy return of 100 steps", title="PanFlute with 4 pipes, two seeds")
axes.legend();

# %% [markdown]
# After equal numbers of environment steps and updates, ER is still near the random policy, simple-model near the right order.
# This is one small environment and two seeds: [the results](../docs/model_based.md) say where models are better and where not.
