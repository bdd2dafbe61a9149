# %% [markdown]
# # Lesson 7: a reward network
#
# *10 minutes of yours; the training takes a minute.*
#
# In this grid world a goal pays 1 and every other step costs 0.01. The agent hears nothing of the
# goal before it has found it by chance. A helpful teacher would pay for coming nearer. But careful:
# paid for the wrong thing, agents learn the wrong thing.
#
# There is a safe way (Ng, Harada and Russell 1999): give every cell a *potential* $\phi$ and add to
# the reward of each step what the potential has risen. The best way to the goal stays the best. We
# let evolution find the potential: a small network whose agents learn fast.

# %%
from dataclasses import dataclass

import matplotlib.pyplot as plt
import torch
from checks import check

from lightning_rl.envs.reward_network import RewardNet, RewardProxy
from lightning_rl.functional.evolution import antithetic_gradient, rank
from lightning_rl.methods.inner_loop import InnerLoop, agent_configs

torch.set_num_threads(1)

# %% [markdown]
# ## Your turn: the shaped reward
#
# $$r' = r + \gamma\,\phi(s') - \phi(s)$$


# %%
def shaped(reward, phi, next_phi, gamma):
    """Shaped rewards; all [...]."""
    raise NotImplementedError("write shaped")


check(shaped)

# %% [markdown]
# ## Your turn: why it is safe
#
# Add up what shaping pays in an episode, discounted: $\sum_t \gamma^t (\gamma\,\phi_{t+1} -
# \phi_t)$. Nearly everything cancels. Write what is left, without a loop, from the potentials of
# the $T + 1$ states of an episode.


# %%
def added_return(phi, gamma):
    """The discounted sum [] of what shaping pays, from potentials [T + 1]."""
    raise NotImplementedError("write added_return: only the first and the last are left")


check(added_return)

# %% [markdown]
# ## Evolution
#
# Your function pays the agents, which learn by Q-learning on a table. After each of 20 episodes an
# agent plays once without exploring; the mean of these returns says how fast it learned, and that
# is what evolution wants to be high. The strategy is that of lesson 6.


# %%
class Lesson7Net(RewardNet):
    """A potential, and the student's function."""

    @torch.no_grad()
    def reward(self, params, reward, obs, next_obs, info, gamma):
        phi, next_phi = (self.potential(params, each) for each in (obs, next_obs))
        return shaped(reward, phi, next_phi, gamma)

    def potential(self, params, obs):
        """phi [N, ...] of obs [N, ..., O]."""
        rows = obs.reshape(len(params), -1, obs.shape[-1])
        return self.net(params, rows).reshape(obs.shape[:-1])


@dataclass(frozen=True, kw_only=True)
class Lesson7Proxy(RewardProxy):
    """The real task with shaped rewards."""

    @property
    def net(self):
        return Lesson7Net(self.spec.obs_size, 0, self.form, self.hidden, self.activation)


TASK, EPISODES = "wallroom", 20
agent = {
    "train_episodes": EPISODES,
    "learning_rate": 0.5,
    "gamma": 0.95,
    "epsilon_init": 0.5,
    "epsilon_min": 0.05,
    "epsilon_decay": 0.9,
}
proxy = Lesson7Proxy(
    gamename=TASK, hidden=(32,), activation="tanh", form="additive_potential", gamma=0.95
)
loop = InnerLoop(
    proxy=proxy,
    agents=agent_configs({"QL": agent}, TASK),
    test_episodes=1,
    judge_episodes=1,
    max_train_steps=10_000,
)


def learning_curves(params, seeds):
    """Returns [N, 20] of fresh agents after each episode, on rewards of params [N, D]."""
    _, results = loop.learn(0, params, seeds)
    return results.scores


# %%
PAIRS, STD, STEP, GENERATIONS = 16, 0.1, 0.5, 20
generator = torch.Generator().manual_seed(0)
teacher = proxy.net.init([generator])[0]
plain = torch.zeros_like(teacher)  # a potential of 0 everywhere changes no reward
fresh = list(range(100_000, 100_020))
history = []
for generation in range(GENERATIONS):
    noise = torch.randn(PAIRS, len(teacher), generator=generator)
    candidates = torch.cat([teacher + STD * noise, teacher - STD * noise])
    seeds = [generation * PAIRS + pair for pair in range(PAIRS)]
    scores = learning_curves(candidates, seeds + seeds).mean(1)
    plus, minus = rank(scores).chunk(2)
    teacher = teacher + STEP * STD * antithetic_gradient(plus, minus, noise, STD)
    history.append(float(scores.mean()))

# %%
curves = {
    "the task's reward": learning_curves(plain.repeat(20, 1), fresh),
    "shaped reward": learning_curves(teacher.repeat(20, 1), fresh),
}
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3))
for name, found in curves.items():
    left.plot(found.mean(0), label=name)
left.set(xlabel="episodes learned from", ylabel="return on the task, mean of 20 agents")
left.legend()
cells = torch.eye(proxy.spec.obs_size)[None]
right.imshow(proxy.net.potential(teacher[None], cells).reshape(5, 5))
right.set(title="potential of each cell (start: top left; goal: bottom right)")
# %% [markdown]
# ## What you should see
#
# With the task's own reward, agents play ten episodes before the first of them finds the goal, and
# after 20 episodes the mean of 20 agents is 0.68. With the evolved reward it is 0.68 after two
# episodes and 0.93, the best there is, after four. The mean over all 20 episodes rises from -0.09
# to 0.86.
#
# The picture of the potential is no neat slope to the goal. It need not be: evolution has asked for
# fast learners, not for a potential that we find beautiful.

# %%
result = {name: float(found.mean()) for name, found in curves.items()}
result

# %% [markdown]
# ## Exercises
#
# 1. Make a potential by hand: minus the number of moves to the goal. Is the evolved one better?
# 2. Pay `next_phi` alone, without subtracting `phi`. Find a policy that gets rich and never
#    reaches the goal.
# 3. `added_return` leaves $\gamma^T \phi(s_T)$ at the end, where the goal was reached. What must
#    $\phi$ be there, so that shaping changes nothing at all?
