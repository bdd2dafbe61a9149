# %% [markdown]
# # Model-based generalisation: learn from experience that never was
#
# PanFlute's state is made of independent parts, so a learned model can be right about combinations that it has
# never met. The same
# DQN learns from replayed transitions (ER) or from roll-outs in a model of observations (simple-model).

# %%
import matplotlib.pyplot as plt

import lightning_rl as lrl
from lightning_rl.lab.scalars import read_scalar

# %%
settings = {"preset": "low-data", "max_env_steps": 1_000, "num_seeds": 2, "seed": 0, "num_workers": 0}
runs = {name: lrl.train(name, "panflute-3", **settings) for name in ("ER", "simple-model")}

# %%
figure, axes = plt.subplots(figsize=(6, 3))
for name, colour in (("ER", "tab:blue"), ("simple-model", "tab:orange")):
    for folder in sorted(runs[name].path.parent.glob("seed_*")):
        curve = read_scalar(folder, "eval_greedy/return_mean")
        axes.plot(curve.env_steps, curve.value, color=colour, label=name if folder.name == "seed_0" else None)
axes.set(xlabel="environment steps", ylabel="greedy return of 100 steps", title="PanFlute with 3 pipes, two seeds")
axes.legend();

# %% [markdown]
# These 1,000 steps end before learning has begun (`learning_starts`): both curves are the first values' own, and equal. Raise
# `max_env_steps` to 6,000 to see them part; where models win, and where not, is [in the results](../docs/model_based.md).
