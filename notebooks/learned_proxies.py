# %% [markdown]
# # Learned proxies: training without the real task
#
# A synthetic environment of the package replaces CartPole in training. It was evolved so that agents which train on it do well
# on the real task; it was not trained to predict the task's states and rewards.

# %%
import matplotlib.pyplot as plt
import numpy as np

import lightning_rl as lrl

proxy = lrl.load_proxy("SE-CartPole-v0")
proxy.observation_space, proxy.action_space, {key: proxy.unwrapped.about[key] for key in ("gamename", "score")}

# %% [markdown]
# Random actions in both environments: the learned rewards and states are distributed differently from those of the task.

# %%
def random_play(env, steps=500):
    """Rewards and pole angles of random actions."""
    rewards, angles = [], []
    env.action_space.seed(0)
    obs, _ = env.reset(seed=0)
    for _ in range(steps):
        obs, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        rewards.append(float(reward))
        angles.append(float(obs[2]))
        if terminated or truncated:
            obs, _ = env.reset()
    return rewards, angles


figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
for name, env in (("real", lrl.make_env("cartpole-v0")), ("learned", proxy)):
    rewards, angles = random_play(env)
    left.hist(rewards, bins=30, alpha=0.6, label=name)
    right.hist(angles, bins=30, alpha=0.6, label=name)
left.set(xlabel="reward")
right.set(xlabel="pole angle")
left.legend();

# %% [markdown]
# A double DQN trains only on the proxy, and then plays the real task. A proxy is a Gymnasium environment and has an id, which
# `gymnasium.make` knows after `import lightning_rl.gym`.

# %%
PROXY = "lightning_rl/SE-CartPole-v0"
run = lrl.train("DDQN", PROXY, seed=0, max_env_steps=1_500, num_workers=0)
agent, env = lrl.load(run.path), lrl.make_env("cartpole-v0")


def real_return(seed):
    obs, _ = env.reset(seed=seed)
    agent.reset(seed=seed, greedy=True)
    reward, total, over = None, 0.0, False
    while not over:
        obs, reward, terminated, truncated, _ = env.step(agent.act(obs, reward))
        total, over = total + reward, terminated or truncated
    return total


returns = [real_return(seed) for seed in range(20)]
steps = int(run.method.env_steps)
print(f"real CartPole-v0 after {steps} learned steps: {np.mean(returns):.0f} of 200, worst {min(returns):.0f}")

# %%
figure, axes = plt.subplots(figsize=(5, 2.5))
axes.hist(returns, bins=20, range=(0, 200))
axes.set(xlabel="return of 20 real episodes (200 is the most)", ylabel="episodes");
