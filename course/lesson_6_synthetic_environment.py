# %% [markdown]
# # Lesson 6: a synthetic environment
#
# *10 minutes of yours; the training takes a minute.*
#
# Can an agent learn CartPole without ever touching it? Yes, in a dream that was made for teaching.
# A small network invents states and rewards; an agent trains on them; then it plays the real task
# once, and its return there is the network's grade. Evolution makes the network better at teaching
# (Ferreira et al. 2022, arXiv 2202.02790). It is never asked to imitate the real task.
#
# No gradient leads from the grade to the network, since a whole training lies between. So we use an
# evolution strategy: try random changes, and move towards those that helped.

# %%
import matplotlib.pyplot as plt
import torch
from checks import check

from lightning_rl.envs.proxies import SyntheticProxy
from lightning_rl.methods.inner_loop import InnerLoop, agent_configs

torch.set_num_threads(1)

# %% [markdown]
# ## Your turn: ranks instead of scores
#
# One lucky score of 200 should not outweigh all others. Replace scores by their ranks: the worst
# gets -0.5, the best 0.5, the others lie evenly between. Scores 10, -70, 900 become 0, -0.5, 0.5.


# %%
def centred_ranks(scores):
    """Ranks [P] from -0.5 to 0.5 of scores [P]."""
    raise NotImplementedError("write centred_ranks: argsort twice gives ranks")


check(centred_ranks)

# %% [markdown]
# ## Your turn: the direction of search
#
# Each random change $\epsilon_i$ was tried with both signs. If adding $\sigma\epsilon_i$ scored
# higher than subtracting it, move along $\epsilon_i$, else against it:
#
# $$g = \frac{1}{2 P \sigma} \sum_i (f_i^+ - f_i^-)\, \epsilon_i$$


# %%
def search_direction(plus, minus, noise, std):
    """The direction [D], from scores [P] with either sign of noise [P, D], and its std."""
    raise NotImplementedError("write search_direction")


check(search_direction)

# %% [markdown]
# ## Evolution
#
# `proxy` says what the synthetic environment is: a network that invents start states, and one that
# pays for an action; each of its episodes is one step long. `loop` trains an agent (a double DQN)
# on each candidate for 400 such steps and tests it on the real CartPole. All agents of a generation
# train at once, as one batch.

# %%
TASK = "cartpole-v0"  # an episode ends after 200 steps, so 200 is the most
proxy = SyntheticProxy(
    gamename=TASK, hidden=(32,), activation="tanh", horizon=1, cap_ends=True, latent_size=4
)
agent = {
    "train_episodes": 400,
    "learning_starts": 10,
    "batch_size": 64,
    "gamma": 0.99,
    "learning_rate": 3.0e-3,
    "tau": 0.05,
    "epsilon_init": 1.0,
    "epsilon_min": 0.01,
    "epsilon_decay": 0.99,
    "activation": "tanh",
    "hidden": [32],
}
agents = agent_configs({"DDQN": agent}, TASK)
loop = InnerLoop(proxy=proxy, agents=agents, test_episodes=4, max_train_steps=400)


def real_returns(params, seeds):
    """Mean returns [N] on the real task of fresh agents that trained on params [N, D]."""
    outcomes = loop.evaluate(params, seeds, [0] * len(seeds))
    return torch.tensor([outcome.test_return for outcome in outcomes])


# %%
PAIRS, STD, STEP, GENERATIONS = 16, 0.1, 0.5, 25
generator = torch.Generator().manual_seed(0)
teacher = proxy.net.init([generator])[0]
fresh = list(range(100_000, 100_010))  # seeds of the agents that judge the teacher
before = real_returns(teacher.repeat(10, 1), fresh)
curve = []
for generation in range(GENERATIONS):
    noise = torch.randn(PAIRS, len(teacher), generator=generator)
    candidates = torch.cat([teacher + STD * noise, teacher - STD * noise])
    seeds = [generation * PAIRS + pair for pair in range(PAIRS)]  # a pair has the same luck
    scores = real_returns(candidates, seeds + seeds)
    plus, minus = centred_ranks(scores).chunk(2)
    teacher = teacher + STEP * STD * search_direction(plus, minus, noise, STD)
    curve.append(float(scores.mean()))
after = real_returns(teacher.repeat(10, 1), fresh)

# %%
figure, axes = plt.subplots(figsize=(6, 3))
axes.plot(curve)
axes.set(xlabel="generation", ylabel="real return of dreaming agents", ylim=(0, 200))
# %% [markdown]
# ## What you should see
#
# Ten fresh agents that trained on the first, random teacher stand for 11 steps on the real task;
# those that trained on the evolved one for 179 of 200. They had 400 invented steps and no real one.
#
# The curve is lower, 13 at first and 49 in the end, since it shows the *candidates*: teachers with
# random changes, most of which do harm. Their centre is what evolution improves.

# %%
result = {"before": float(before.mean()), "after": float(after.mean())}
result |= {"first generation": curve[0], "last generation": curve[-1]}
result

# %% [markdown]
# ## Exercises
#
# 1. Use the scores themselves instead of ranks (divide them by 200). What does the curve look like?
# 2. Give the two candidates of a pair different seeds. Why does that hurt?
# 3. The agents needed 400 invented steps. How many steps of the real task has evolution used?
#    What would you do with the teacher, once it is made?
