# %% [markdown]
# # A tour in two minutes
#
# Train a policy that takes a *commanded return*, plot its learning curve, and command higher and lower returns.

# %%
import matplotlib.pyplot as plt

import lightning_rl as lrl
from lightning_rl.lab.scalars import read_scalar

# %% [markdown]
# `train` takes what the command line takes; any key of the config is an argument. In CartPole the reward is 1 for every step in
# which the pole stays up, and a return is 500 at most.

# %%
run = lrl.train("UDRL", "cartpole", seed=0, max_env_steps=40_000, num_workers=0)
run.path

# %%
curve = read_scalar(run.path, "rollout/return_mean")
figure, axes = plt.subplots(figsize=(6, 3))
axes.plot(curve.env_steps, curve.value)
axes.set(xlabel="environment steps", ylabel="training return", title="UDRL on CartPole, one seed");

# %% [markdown]
# A loaded agent acts in any Gymnasium loop, in `gymnasium.make("CartPole-v1")` as well as in `make_env`: its actions are those of
# the environment's own action space. It updates its command itself: after each step the reward is subtracted from the commanded
# return.

# %%
agent, env = lrl.load(run.path), lrl.make_env("cartpole")


def play(asked, seed):
    """The return of an episode that is asked for `asked`, within as many steps."""
    obs, _ = env.reset(seed=seed)
    agent.reset(command={"return": asked, "horizon": asked}, seed=seed)
    reward, total, over = None, 0.0, False
    while not over:
        obs, reward, terminated, truncated, _ = env.step(agent.act(obs, reward))
        total, over = total + reward, terminated or truncated
    return total


asked = [20, 60, 100, 150, 200, 300]
obtained = [[play(each, seed) for seed in range(10)] for each in asked]

# %%
figure, axes = plt.subplots(figsize=(4, 4))
axes.plot([0, 300], [0, 300], color="grey", linestyle=":")
axes.errorbar(asked, [sum(each) / len(each) for each in obtained], fmt="o")
for each, returns in zip(asked, obtained):
    axes.scatter([each] * len(returns), returns, s=8, alpha=0.4, color="tab:blue")
axes.set(xlabel="asked for", ylabel="obtained", title="ten episodes each, and their mean");

# %% [markdown]
# This is one seed of a short run: it obtains commanded returns only up to about those that it has seen in training. `evaluate`
# plays episodes on other environment seeds, with sampled and with greedy actions.

# %%
report = lrl.evaluate(agent, episodes=20)
{mode: round(report[mode]["return"]["mean"], 1) for mode in ("sampled", "greedy")}
