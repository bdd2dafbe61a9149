# %% [markdown]
# # Policy gradients: what a baseline does
#
# The gradient of REINFORCE weights each action by the return that followed it. With a baseline subtracted from the return, it
# has the same mean and less variance.

# %%
import matplotlib.pyplot as plt
import torch

import lightning_rl as lrl
from lightning_rl.functional.policy_gradient import batch_baseline, no_baseline, reinforce_loss
from lightning_rl.lab.scalars import read_scalar

# %% [markdown]
# A bandit with two arms of mean reward 10 and 11, and a uniform policy: histograms of the gradient of a batch of 16 pulls, over
# 1,000 batches.

# %%
generator = torch.Generator().manual_seed(0)
logits = torch.zeros(2, requires_grad=True)


def gradient(baseline):
    action = torch.randint(2, (16,), generator=generator)
    returns = 10.0 + action + torch.randn(16, generator=generator)
    weight = returns - baseline(returns, torch.ones(16, dtype=torch.bool))
    loss = reinforce_loss(torch.log_softmax(logits, 0)[action], weight)
    return float(torch.autograd.grad(loss, logits)[0][1])


figure, axes = plt.subplots(figsize=(6, 3))
for name, baseline in (("none", no_baseline), ("batch mean", batch_baseline)):
    samples = [gradient(baseline) for _ in range(1_000)]
    axes.hist(samples, bins=50, range=(-4, 4), alpha=0.6, label=f"baseline: {name}")
axes.axvline(0, color="grey", linestyle=":")
axes.set(xlabel="gradient of the better arm's logit (it should be below 0)")
axes.legend();

# %% [markdown]
# REINFORCE without and with a baseline on CartPole, three seeds each.

# %%
settings = {"preset": "tuned", "max_episodes": 400, "num_workers": 0}
runs = [lrl.train(name, "cartpole", seed=seed, **settings) for name in ("REINFORCE", "REINFORCE-baseline") for seed in range(3)]

# %%
figure, axes = plt.subplots(figsize=(6, 3))
for run in runs:
    curve = read_scalar(run.path, "rollout/return_mean")
    name = run.method.implementation
    colour = {"REINFORCE": "tab:blue", "REINFORCE-baseline": "tab:orange"}[name]
    axes.plot(curve.env_steps, curve.value, color=colour, label=name if run.method.seed == 0 else None)
axes.set(xlabel="environment steps", ylabel="training return", title="three seeds each")
axes.locator_params(axis="x", nbins=5)
axes.legend();
