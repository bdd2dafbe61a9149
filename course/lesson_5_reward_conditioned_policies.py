# %% [markdown]
# # Lesson 5: reward-conditioned policies
#
# *15 minutes of yours; the training takes a minute.*
#
# Reward-conditioned policies (RCP, Kumar, Peng and Levine 2019) are lesson 4 with two changes that
# follow from one formula. If $p(Z)$ says how often a return $Z$ was obtained, the best thing to aim
# at, without going too far from what is known, is
#
# $$p^*(Z) \propto p(Z)\, e^{Z / \beta}.$$
#
# So (1) an example counts by $e^{Z/\beta}$ in the loss, and (2) commands are drawn from $p^*$:
# among the returns that were seen, but more often the high ones.

# %%
import tempfile

import matplotlib.pyplot as plt
import torch
from checks import check

import lightning_rl as lrl
from lightning_rl.lab.scalars import read_scalar

torch.set_num_threads(1)

# %% [markdown]
# ## Your turn: labels in standard deviations
#
# A return of 100 is much on one task and little on another. Subtract the mean and divide by the
# standard deviation (`correction=0`) plus 0.00001, so that equal labels give 0.


# %%
def in_deviations(label):
    """Labels [M] in standard deviations from their mean."""
    raise NotImplementedError("write in_deviations")


check(in_deviations)

# %% [markdown]
# ## Your turn: weights
#
# $e^{z/\beta}$, but at most `max_weight`, so that no single step decides everything; then divided
# by their mean, so that the learning rate means the same whatever the weights are.


# %%
def weights(z, temperature, max_weight):
    """Weights [M] of mean 1 from standardised labels [M]."""
    raise NotImplementedError("write weights")


check(weights)

# %% [markdown]
# ## Your turn: what to ask for next
#
# Mean and standard deviation of the labels if each counts by its weight.


# %%
def tilted(label, weight):
    """Mean and standard deviation, both [], of labels [M] with weights [M]."""
    raise NotImplementedError("write tilted: first make the weights sum to 1")


check(tilted)

# %% [markdown]
# Look at it before you train: grey, labels as they were; the lines, what is asked for.

# %%
label = torch.randn(1000, generator=torch.Generator().manual_seed(0))
figure, axes = plt.subplots(figsize=(6, 3))
axes.hist(label.numpy(), bins=40, color="lightgrey", density=True)
for number, temperature in enumerate((0.5, 1.0, 2.0)):
    mean, _ = tilted(label, weights(in_deviations(label), temperature, 1e9))
    axes.axvline(float(mean), color=f"C{number}", label=f"temperature {temperature}")
axes.set(xlabel="label in standard deviations")
axes.legend()

# %% [markdown]
# ## Training


# %%
@lrl.register_weighting("lesson_5")
class Lesson5Weighting(lrl.Weighting):
    """Exponential weights of returns-to-go, by the student's functions."""

    gamma: float
    temperature: float
    max_weight: float

    def weights(self, episodes):
        z = in_deviations(episodes.discounted_return(self.gamma))
        return weights(z, self.temperature, self.max_weight)


@lrl.register_target("lesson_5")
class Lesson5Target(lrl.Target):
    """The tilted distribution, by the student's functions."""

    target_temperature: float
    max_weight: float

    def fit(self, label):
        return tilted(
            label, weights(in_deviations(label), self.target_temperature, self.max_weight)
        )


# %%
settings = {
    "logdir": tempfile.mkdtemp(),  # so that this cell can be run again
    "max_env_steps": 40_000,
    "gamma": 1.0,
    "command_rule": "decrease",
    "target": "lesson_5",
    "target_labels": "episode",
    "num_updates_per_iter": 300,
    "learning_rate": 1e-3,
    "anneal_from": 1.0,
    "tau": 0.01,
    "eval_interval": 10,
    "eval_episodes": 5,
    "overlap": False,
    "num_workers": 0,
}
runs = {
    (name, seed): lrl.train("RCP-R", "cartpole", exp_name=name, weights=name, seed=seed, **settings)
    for name in ("lesson_5", "none")
    for seed in (0, 1)
}

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.5))
asked, got = [25, 50, 100, 200], {}
for (name, seed), run in runs.items():
    style = {"color": {"lesson_5": "C0", "none": "C1"}[name]}
    if seed == 0:
        style["label"] = f"weights: {name}"
    curve = read_scalar(run.path, "rollout/return_mean")
    left.plot(curve.env_steps, curve.value, **style)
    for value in asked:
        report = lrl.evaluate(run.path, episodes=20, command={"return": value})
        got[name, seed, value] = report["sampled"]["return"]["mean"]
    right.plot(asked, [got[name, seed, value] for value in asked], marker="o", **style)
right.plot([0, 200], [0, 200], color="grey", linestyle=":")
left.set(xlabel="environment steps", ylabel="mean return of training episodes")
right.set(xlabel="asked for", ylabel="obtained, mean of 20 episodes")
right.legend()
# %% [markdown]
# ## What you should see
#
# Both curves on the left are humble: training asks for little more than is usual, and so that is
# what comes, about 50 steps in the end. Look at the right. Asked for 25, 50, 100 and 200 steps, the
# agents with your weights obtain 25, 50, 98 and 145; those without 25, 50, 92 and 63 (means of two
# seeds). Whoever learns from all steps alike knows the usual well, and little of what is rare and
# good. Weights move the network's attention there.

# %%
result = {
    f"{name}, asked {value}": (got[name, 0, value] + got[name, 1, value]) / 2
    for name in ("lesson_5", "none")
    for value in asked
}
result

# %% [markdown]
# ## Exercises
#
# 1. Temperature 0.1 and 10: what becomes of the weights, and what of the right-hand picture?
# 2. With very strong weights, only the best steps count, and they all had high returns. What can
#    the network still learn about *low* commands?
# 3. Where would you rather ask: at the highest return ever seen, or at the tilted mean? Think of a
#    lucky episode.
