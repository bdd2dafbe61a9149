# %% [markdown]
# # Lesson 2: baseline and entropy
#
# *15 minutes of yours; the training takes a minute.*
#
# REINFORCE has two weaknesses. On CartPole every return is positive, so every action is made more
# likely, the good ones only a little more than the bad ones: the gradient is mostly noise. And once
# the policy is sure of an action, it no longer tries the others. A *baseline* helps with the first,
# an *entropy bonus* with the second.

# %%
import tempfile

import matplotlib.pyplot as plt
import torch
from checks import check

import lightning_rl as lrl
from lightning_rl.functional.returns import discounted_returns
from lightning_rl.lab.scalars import read_scalar
from lightning_rl.methods.policy_gradient import PolicyGradient

torch.set_num_threads(1)

# %% [markdown]
# ## Your turn: a baseline
#
# Subtract from all returns-to-go their mean. Actions that were followed by more than usual become
# more likely, those that were followed by less become less likely. The gradient stays right on
# average (exercise 1), and its noise becomes smaller.


# %%
def baseline(returns):
    """The mean [] of the returns-to-go [B]."""
    raise NotImplementedError("write baseline")


check(baseline)

# %% [markdown]
# See what it does, on a game with two buttons. Button 0 pays about 10, button 1 about 11, and the
# policy is undecided. Each gradient comes from 16 presses. It should say: make button 1 more
# likely, that is, it should be below 0.

# %%
generator = torch.Generator().manual_seed(0)


def gradient(use_baseline):
    """The gradient of the loss with respect to the logit of button 1, from 16 presses."""
    logits = torch.zeros(2, requires_grad=True)
    action = torch.randint(2, (16,), generator=generator)
    returns = 10.0 + action + torch.randn(16, generator=generator)
    weight = returns - baseline(returns) if use_baseline else returns
    loss = -(weight * logits.log_softmax(0)[action]).mean()
    return float(torch.autograd.grad(loss, logits)[0][1])


figure, axes = plt.subplots(figsize=(6, 3))
spread = {}
for name, use in (("without", False), ("with", True)):
    samples = torch.tensor([gradient(use) for _ in range(1000)])
    spread[name] = float(samples.std())
    axes.hist(samples.numpy(), bins=50, range=(-4, 4), alpha=0.6, label=f"{name} baseline")
axes.axvline(0, color="grey", linestyle=":")
axes.set(xlabel="gradient of button 1's logit", ylabel="batches of 16 presses")
axes.legend()

# %% [markdown]
# ## Your turn: entropy
#
# The entropy of a policy is $-\sum_a \pi(a) \ln \pi(a)$: the highest, $\ln A$, if all $A$ actions
# are equally likely, and 0 if it always takes the same one. Beware of $0 \cdot \ln 0$: use
# `log_softmax`.


# %%
def entropy(logits):
    """Entropies [B] of policies with logits [B, A]."""
    raise NotImplementedError("write entropy")


check(entropy)

# %% [markdown]
# The bonus is a loss, so it has a minus: $-\beta$ times the mean entropy, divided by the highest
# possible one. It is $-\beta$ for an undecided policy and 0 for one that is sure.


# %%
def entropy_loss(entropies, num_actions, beta):
    """The loss [], from entropies [B]."""
    raise NotImplementedError("write entropy_loss")


check(entropy_loss)

# %% [markdown]
# ## Training
#
# One class for three methods: what is switched on, its settings say.

# %%
ABOUT = {"extends": "REINFORCE", "about": "REINFORCE of lesson 2"}
NAMES = {
    "plain": {"baseline": "none", "entropy_coef": 0.0},
    "baseline": {"baseline": "batch", "entropy_coef": 0.0},
    "baseline-entropy": {"baseline": "batch", "entropy_coef": 0.5},
}


@lrl.register_method(configs={f"lesson-2-{n}": {**ABOUT, "default": v} for n, v in NAMES.items()})
class Lesson2(PolicyGradient):
    """REINFORCE with the student's baseline and entropy bonus."""

    def losses(self, batch):
        logits = self.policy.net(batch.obs)
        log_prob = logits.log_softmax(-1).gather(-1, batch.action[:, None]).squeeze(-1)
        weight = discounted_returns(batch.reward, self.cfg.gamma, batch.last)
        if self.cfg.baseline == "batch":
            weight = weight - baseline(weight)
        found = entropy(logits)
        losses = {"train/policy_loss": -(weight * log_prob).mean()}
        if self.cfg.entropy_coef:
            bonus = entropy_loss(found, logits.shape[-1], self.cfg.entropy_coef)
            losses["train/entropy_loss"] = bonus
        return losses, {"train/entropy": found.mean()}


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
runs = {
    (name, seed): lrl.train(f"lesson-2-{name}", "cartpole", seed=seed, **settings)
    for name in NAMES
    for seed in (0, 1)
}

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3))
for (name, seed), run in runs.items():
    colour = f"C{list(NAMES).index(name)}"
    for axes, scalar in ((left, "rollout/return_mean"), (right, "train/entropy")):
        curve = read_scalar(run.path, scalar)
        axes.plot(curve.env_steps, curve.value, color=colour, label=None if seed else name)
left.set(xlabel="environment steps", ylabel="mean return of eight episodes")
right.set(xlabel="environment steps", ylabel="entropy")
left.legend()

# %% [markdown]
# ## What you should see
#
# The histogram is the point: without a baseline the gradient's standard deviation is 1.36 and its
# sign is a matter of luck; with one it is 0.12, and almost every batch says the right thing.
#
# The curves show it again. In the last quarter an episode lasts 263 steps without a baseline, 468
# with one, and 415 with the entropy bonus, too (means of two seeds). On CartPole the bonus does not
# pay: there is little to explore. Look at the entropy on the right, which is what it changes.


# %%
def last_returns(name):
    """The mean return of the last quarter of a method's trainings."""
    curves = [read_scalar(runs[name, seed].path, "rollout/return_mean").value for seed in (0, 1)]
    return float(sum(value[-len(value) // 4 :].mean() for value in curves) / len(curves))


result = {f"gradient's sd {name}": value for name, value in spread.items()}
result |= {name: last_returns(name) for name in NAMES}
result

# %% [markdown]
# ## Exercises
#
# 1. The mean of $\nabla \ln \pi(a)$ over actions drawn from $\pi$ is 0. Show it, and conclude that
#    a baseline which does not depend on the action leaves the mean gradient as it is.
# 2. Our baseline is the mean of the very returns that it is subtracted from. So the proof does not
#    quite hold; why does that hardly matter for 1,000 steps, and what of 2?
# 3. Set `entropy_coef` to 50. What does the policy care for now?
