# %% [markdown]
# # Lesson 4: upside-down RL
#
# *15 minutes of yours; the training takes a minute.*
#
# Lessons 1 to 3 predicted or collected rewards and then chose actions. Upside-down RL (Schmidhuber
# 2019; Srivastava et al. 2019) turns this around: reward is an *input*. The network is told "get a
# return of 150 within 150 steps" and answers with an action. It learns from its own past: whatever
# an episode obtained, it is a correct example of how to obtain just that.

# %%
import tempfile

import matplotlib.pyplot as plt
import torch
from checks import check

import lightning_rl as lrl
from lightning_rl.lab.scalars import read_scalar
from lightning_rl.methods.upside_down.commands import ReturnHorizon

torch.set_num_threads(1)

# %% [markdown]
# ## Your turn: examples from an episode
#
# At step $t$ the network should have been told what really came: the return from $t$ to the end
# (not discounted) and the number of steps to the end, this one included. Rewards 1, -2, 5 give the
# commands (4, 3), (3, 2), (5, 1).


# %%
def examples(reward):
    """Commands [T, 2], return and steps left, from one episode's rewards [T]."""
    raise NotImplementedError("write examples")


check(examples)

# %% [markdown]
# ## Your turn: the command after a step
#
# While the agent acts, its command is used up: the reward is subtracted from the return, one step
# from the horizon. Two limits keep commands sensible: a return of at most `max_return`, a horizon
# of at least 1.


# %%
def next_command(command, reward, max_return):
    """Commands [B, 2] after steps with rewards [B]."""
    raise NotImplementedError("write next_command")


check(next_command)

# %% [markdown]
# ## Your turn: what to ask for next
#
# To get better, the agent asks for a little more than its best episodes had: a return drawn between
# their mean and their mean plus one standard deviation. (Divide by the number of episodes in the
# standard deviation, not by one less: `correction=0`.)


# %%
def command_range(returns):
    """Lowest and highest command, both [], from the returns [E] of the best episodes."""
    raise NotImplementedError("write command_range")


check(command_range)

# %% [markdown]
# ## Training
#
# The library's UDRL has three parts that can be exchanged: the command, the weighting of steps and
# the target. Your functions become a command and a target. `episodes` holds many episodes, one
# behind another; `episodes.first` says where each begins.


# %%
@lrl.register_command("lesson_4")
class Lesson4Command(ReturnHorizon):
    """Return and horizon, by the student's functions."""

    def fulfilled(self, episodes):
        found = [examples(each) for each in episodes.reward.tensor_split(episodes.first[1:])]
        return torch.cat(found)

    def after(self, command, reward):
        limit = 1e9 if self.max_return is None else self.max_return
        return next_command(torch.as_tensor(command), torch.as_tensor(reward), limit).numpy()


@lrl.register_target("lesson_4")
class Lesson4Target(lrl.Target):
    """Uniform in the student's range."""

    def fit(self, label):
        low, high = command_range(label)
        return low, high - low

    def draw_noise(self, rng, count):
        return torch.from_numpy(rng.random(count)).float()


# %%
settings = {
    "logdir": tempfile.mkdtemp(),  # so that this cell can be run again
    "command": "lesson_4",
    "target": "lesson_4",
    "segments": "trailing",
    "max_env_steps": 40_000,
    "eval_interval": 20,
    "eval_episodes": 5,
    "overlap": False,
    "num_workers": 0,
}
run = lrl.train("UDRL", "cartpole", seed=0, **settings)

# %%
figure, axes = plt.subplots(figsize=(6, 3))
curve = read_scalar(run.path, "rollout/return_mean")
axes.plot(curve.env_steps, curve.value)
axes.set(xlabel="environment steps", ylabel="mean return of 15 episodes")
# %% [markdown]
# ## Ask and get
#
# The agent can also be asked for less. On CartPole a return of 50 takes exactly 50 steps, so ask
# for both.

# %%
asked = [25, 50, 100, 200]
got = []
for value in asked:
    report = lrl.evaluate(run.path, episodes=20, command={"return": value, "horizon": value})
    got.append(report["sampled"]["return"]["mean"])

figure, axes = plt.subplots(figsize=(4, 4))
axes.plot([0, 200], [0, 200], color="grey", linestyle=":")
axes.plot(asked, got, marker="o")
axes.set(xlabel="asked for", ylabel="obtained, mean of 20 episodes")
# %% [markdown]
# ## What you should see
#
# The curve is humble: training episodes reach about 80 steps on average in the last quarter. But
# the second picture is what this lesson is for. Asked for 25, 50, 100 and 200 steps, the agent
# obtains about 25, 50, 97 and 173. It does not merely know how to do well: it knows how to do what
# it is told, also to let the pole fall after 25 steps. Above what it has often seen, it falls
# short.

# %%
result = {"last quarter": float(curve.value[-len(curve.value) // 4 :].mean())}
result |= {f"asked {value}": each for value, each in zip(asked, got, strict=True)}
result

# %% [markdown]
# ## Exercises
#
# 1. Ask for a return of 100 within 20 steps, and of 20 within 100. Neither is possible on CartPole.
#    What does the agent do, and why can nobody blame it?
# 2. Let `command_range` ask for the mean alone, `low, low`. Does the agent still get better?
# 3. Ask for more than it has ever had: 10 standard deviations above. What goes wrong?
