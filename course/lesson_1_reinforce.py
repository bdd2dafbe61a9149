# %% [markdown]
# # Lesson 1: REINFORCE
#
# *15 minutes of yours; the training takes a minute.*
#
# A policy plays a few episodes of CartPole: it pushes a cart left or right, and each step that the
# pole stands pays 1. Afterwards each action that was taken is made more likely, and the more so,
# the more reward came after it. That is the whole method (Williams 1992).
#
# You write two functions. The cell below each one checks it. Then your functions train a policy.
#
# Work through the cells from top to bottom.

# %%
import tempfile

import matplotlib.pyplot as plt
import torch
from checks import check

import lightning_rl as lrl
from lightning_rl.lab.scalars import read_scalar
from lightning_rl.methods.policy_gradient import PolicyGradient

torch.set_num_threads(1)

# %% [markdown]
# ## Your turn: returns-to-go
#
# The *return-to-go* of step $t$ is the reward of this step and of all later ones. A reward that
# comes $k$ steps later counts $\gamma^k$ times as much:
#
# $$G_t = r_t + \gamma\, r_{t+1} + \gamma^2 r_{t+2} + \dots = r_t + \gamma\, G_{t+1}$$
#
# Example: rewards 1, 2, 3 and $\gamma = 0.5$. The last step has $G = 3$; the one before
# $2 + 0.5 \cdot 3 = 3.5$; the first $1 + 0.5 \cdot 3.5 = 2.75$.


# %%
def returns_to_go(reward, gamma):
    """Returns-to-go [T] of one episode's rewards [T], both tensors."""
    raise NotImplementedError("write returns_to_go: go from the last step to the first")


check(returns_to_go)

# %% [markdown]
# ## Your turn: the loss
#
# Gradient descent makes a loss smaller, so we need a loss whose gradient, followed downwards,
# makes well-rewarded actions more likely. It is minus the mean of (weight times log-probability).
# The weight of a step is its return-to-go.


# %%
def policy_loss(log_prob, weight):
    """The loss [], from log-probabilities [B] of the actions taken and weights [B]."""
    raise NotImplementedError("write policy_loss: one line")


check(policy_loss)

# %% [markdown]
# ## Training
#
# `PolicyGradient` of the library plays the episodes and makes the optimizer steps. We override one
# method of it, `losses`, and it calls your two functions. `batch` holds the steps of eight
# episodes, one behind another; `batch.last` marks where each ends.
#
# `extends: REINFORCE` takes all other settings from the library's REINFORCE.


# %%
def by_episode(batch):
    """The rewards of each episode."""
    ends = batch.last.nonzero().squeeze(-1) + 1
    return batch.reward.tensor_split(ends[:-1])


VALUES = {"extends": "REINFORCE", "about": "REINFORCE of lesson 1"}


@lrl.register_method(configs={"lesson-1": VALUES})
class Lesson1(PolicyGradient):
    """REINFORCE with the student's functions."""

    def losses(self, batch):
        weight = torch.cat([returns_to_go(each, self.cfg.gamma) for each in by_episode(batch)])
        log_prob = self.policy.distribution(batch.obs).log_prob(batch.action)
        return {"train/policy_loss": policy_loss(log_prob, weight)}, {}


# %%
settings = {
    "logdir": tempfile.mkdtemp(),  # so that this cell can be run again
    "max_episodes": 600,
    "num_episodes_per_iter": 8,
    "learning_rate": 0.01,
    "hidden": [64],
    "gamma": 0.99,
    "eval_interval": 75,
    "num_workers": 0,
}
runs = [lrl.train("lesson-1", "cartpole", seed=seed, **settings) for seed in (0, 1)]

# %%
figure, axes = plt.subplots(figsize=(6, 3))
for run in runs:
    curve = read_scalar(run.path, "rollout/return_mean")
    axes.plot(curve.env_steps, curve.value, label=f"seed {run.method.seed}")
axes.set(xlabel="environment steps", ylabel="mean return of eight episodes")
axes.legend()

# %% [markdown]
# ## What you should see
#
# A policy that pushes at random stands for about 20 steps. Yours climbs from there, with setbacks:
# in the last quarter of the training an episode lasts 254 steps with seed 0 and 272 with seed 1
# (500 is the most). Another version of PyTorch may give you other numbers: what is learned depends
# on every single push.
#
# If your curve stays near 20, the checks above have not passed.


# %%
def last_returns(run):
    """The mean return of the last quarter of a training."""
    value = read_scalar(run.path, "rollout/return_mean").value
    return float(value[-len(value) // 4 :].mean())


result = {f"seed {run.method.seed}": last_returns(run) for run in runs}
result

# %% [markdown]
# ## Exercises
#
# 1. Weight each step by the return of the *whole* episode instead of the return-to-go. Actions are
#    then also paid for what came before them. Is the curve worse? Why is it not wrong?
# 2. Set `gamma` to 0.5. Which rewards does a push hear of now? How far does the policy get?
# 3. Train with seeds 0 to 4. How much do they differ? Keep this in mind whenever you see one curve.
