# %% [markdown]
# # Lesson 3: actor-critic
#
# *15 minutes of yours; the training takes a minute or two.*
#
# The best baseline knows the state: a pole that is about to fall promises less than one that
# stands. A second network, the *critic*, learns this value $V(s)$. The policy, the *actor*, then
# asks of every action: did it go better than the critic expected? That is the action's *advantage*.

# %%
import tempfile

import matplotlib.pyplot as plt
import torch
from checks import check

import lightning_rl as lrl
from lightning_rl.functional.policy_gradient import next_values, normalised
from lightning_rl.lab.scalars import read_scalar
from lightning_rl.methods.policy_gradient import PolicyGradient

torch.set_num_threads(1)

# %% [markdown]
# ## Your turn: errors of the critic
#
# Before a step, the critic expects $V(s_t)$. After it, we know better: $r_t$ has come, and
# $\gamma V(s_{t+1})$ is expected now. The difference is the *TD error*
#
# $$\delta_t = r_t + \gamma_t V(s_{t+1}) - V(s_t).$$
#
# Where the episode ended nothing follows: `discount` is then 0, else it is $\gamma$.


# %%
def td_errors(reward, discount, value, next_value):
    """TD errors; all [T]."""
    raise NotImplementedError("write td_errors")


check(td_errors)

# %% [markdown]
# ## Your turn: advantages
#
# One TD error judges an action by one step. Later errors are partly due to it, too, so they count,
# but less and less (generalised advantage estimation, Schulman et al. 2016):
#
# $$A_t = \delta_t + (\gamma\lambda)\, \delta_{t+1} + (\gamma\lambda)^2 \delta_{t+2} + \dots$$
#
# With $\lambda = 0$ it is the TD error: little noise, but wrong where the critic is wrong. With
# $\lambda = 1$ it is the return-to-go minus $V(s_t)$: right on average, but noisy.


# %%
def advantages(error, decay):
    """Advantages [T] of one episode's TD errors [T]; decay: gamma times lambda."""
    raise NotImplementedError("write advantages; lesson 1 had the same sum")


check(advantages)

# %% [markdown]
# ## Your turn: the critic's loss
#
# The mean squared distance of values to targets. The target is data: no gradient flows into it
# (`detach`).


# %%
def critic_loss(value, target):
    """The loss [], from values [B] and targets [B]."""
    raise NotImplementedError("write critic_loss")


check(critic_loss)

# %% [markdown]
# ## Training
#
# The critic's targets are advantage + value. Advantages are standardised, so that the size of
# rewards does not matter. For comparison we train the library's REINFORCE with the same settings.


# %%
def discounts(batch, gamma):
    """Discounts [B]: 0 where an episode ended, gamma elsewhere, also where time ran out."""
    ended = batch.last.clone()
    ended[batch.last] = ~batch.truncated
    return torch.full_like(batch.reward, gamma).masked_fill(ended, 0.0)


VALUES = {"extends": "AAC", "about": "the actor-critic of lesson 3"}


@lrl.register_method(configs={"lesson-3": VALUES})
class Lesson3(PolicyGradient):
    """An actor-critic with the student's functions."""

    def judged(self, batch):
        """Values of the states, and advantages of the actions; both [B]."""
        value = self.critic(batch.obs)
        with torch.no_grad():
            next_value = next_values(value, self.critic(batch.final_obs), batch.last)
        discount = discounts(batch, self.cfg.gamma)
        error = td_errors(batch.reward, discount, value.detach(), next_value)
        ends = batch.last.nonzero().squeeze(-1) + 1
        decay = self.cfg.gamma * self.cfg.gae_lambda
        found = [advantages(each, decay) for each in error.tensor_split(ends[:-1])]
        return value, torch.cat(found)

    def train_epoch(self, batch):
        for _ in range(20):  # the critic learns first, and faster
            value, advantage = self.judged(batch)
            self.descend(0, critic_loss(value, advantage + value.detach()), None)
        super().train_epoch(batch)

    def losses(self, batch):
        _, advantage = self.judged(batch)
        log_prob = self.policy.distribution(batch.obs).log_prob(batch.action)
        return {"train/policy_loss": -(normalised(advantage) * log_prob).mean()}, {}


# %%
settings = {
    "logdir": tempfile.mkdtemp(),  # so that this cell can be run again
    "max_episodes": 600,
    "num_episodes_per_iter": 8,
    "learning_rate": 0.01,
    "hidden": [64],
    "gamma": 0.99,
    "normalise_weights": True,
    "eval_interval": 75,
    "num_workers": 0,
}
METHODS = {"REINFORCE": {}, "lesson-3": {"gae_lambda": 0.95}}
runs = {
    (name, seed): lrl.train(name, "cartpole", seed=seed, **settings, **own)
    for name, own in METHODS.items()
    for seed in (0, 1)
}

# %%
figure, axes = plt.subplots(figsize=(6, 3))
for (name, seed), run in runs.items():
    curve = read_scalar(run.path, "rollout/return_mean")
    colour = f"C{list(METHODS).index(name)}"
    axes.plot(curve.env_steps, curve.value, color=colour, label=None if seed else name)
axes.set(xlabel="environment steps", ylabel="mean return of eight episodes")
axes.legend()

# %% [markdown]
# ## What you should see
#
# In the last quarter of the training an episode lasts 422 steps with REINFORCE and 478 with your
# actor-critic (means of two seeds; 500 is the most). REINFORCE does well here, since its
# standardised returns have a baseline in them, too: their mean. With only two seeds this
# difference could be luck; how would you find out?


# %%
def last_returns(name):
    """The mean return of the last quarter of a method's trainings."""
    curves = [read_scalar(runs[name, seed].path, "rollout/return_mean").value for seed in (0, 1)]
    return float(sum(value[-len(value) // 4 :].mean() for value in curves) / len(curves))


result = {name: last_returns(name) for name in METHODS}
result

# %% [markdown]
# ## Exercises
#
# 1. `gae_lambda` 0, 0.9 and 1: which learns fastest, which most smoothly?
# 2. CartPole ends at 500 steps because time runs out, not because the pole fell. What would the
#    critic learn if `discount` were 0 there as well? Look at what `discounts` does.
# 3. Remove `detach` from `critic_loss` and train. The target now moves towards the value. Why is
#    that no good way to make the distance small?
