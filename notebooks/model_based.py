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
# What the model has learned: its losses on the real steps that it is fitted to.

# %%
from lightning_rl.lab.scalars import event_files, read_events

(file,) = event_files(runs["simple-model"].path)
losses = {tag: values for tag, values in read_events(file).scalars.items() if tag.startswith("model/")}
figure, axes = plt.subplots(figsize=(6, 3))
for tag, values in losses.items():
    axes.plot([step for step, _, _ in values], [value for _, _, value in values], label=tag)
axes.set(xlabel="environment steps", yscale="log")
axes.legend();

# %% [markdown]
# On an environment this small and a run this short the two are about as good. Where models win, and where they do not, is
# [in the results](../docs/model_based.md).
