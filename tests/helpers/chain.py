"""A chain of three states whose action values are known.

``on`` moves 0 -> 1 -> 2 -> end, ``stay`` stays. Going on from 2 pays 1 and ends, going on from 0
costs 0.84, staying in 0 pays 0.15. With gamma 0.8, by hand, from the end backwards:

    state 2: on 1, stay 0.8 * 1 = 0.8. State 1: on 0.8 * 1 = 0.8, stay 0.8 * 0.8 = 0.64.
    state 0: staying for ever pays 0.15 / (1 - 0.8) = 0.75; on -0.84 + 0.8 * 0.8 = -0.2. So the best
    is: stay, on, on.

What the end shows is state 2, worth 1: a bootstrap over it makes going on worth 1.8 at once.
Episodes start anywhere and are cut
after three steps: without a bootstrap there, staying in 0 is worth at most 0.15 + 0.12 + 0.096 =
0.366.
"""

import torch

from lightning_rl.core.types import Episode, Request
from lightning_rl.envs.func_env import FuncEnv, Step

GAMMA, HORIZON, EYE = 0.8, 3, torch.eye(3)
Q = torch.tensor([[0.75, -0.2], [0.64, 0.8], [0.8, 1.0]])  # stay, on
V = Q.amax(-1)
BEST = Q.argmax(-1)


class Chain(FuncEnv):
    """state int64 ``[..., 1]``, obs one-hot. Starts anywhere."""

    obs_low, obs_high, action_size = (0.0,) * 3, (1.0,) * 3, 2
    reset_noise_size, binary_obs = 1, True

    def reset(self, noise):
        return (3 * noise).long()

    def observe(self, state):
        return torch.nn.functional.one_hot(state[..., 0], 3).float()

    def step(self, state, action, noise):
        return self._move(state, action == 1)

    def _move(self, state, on):
        place = state[..., 0]
        reward = torch.where(
            on, torch.tensor([-0.84, 0.0, 1.0])[place], torch.tensor([0.15, 0.0, 0.0])[place]
        )
        after = torch.where(on, (place + 1).clamp(max=2), place).unsqueeze(-1)
        return Step(after, self.observe(after), reward, on & (place == 2))


class ContinuousChain(Chain):
    """The action in [-1, 1] says how likely it goes on: 0.5 + 0.75 action, so beyond 2 / 3 a
    little noise changes nothing.
    """

    action_size, continuous, step_noise_size = 1, True, 1

    def step(self, state, action, noise):
        return self._move(state, noise[..., 0] < 0.5 + 0.75 * action[..., 0])


def chain_episodes(choose, count, seed):
    """Whole episodes whose actions are ``choose(obs [M, 3], uniform noise [M])``, for what
    learns from such.
    """
    env, g = Chain(), torch.Generator().manual_seed(seed)
    state = env.reset(torch.rand(count, 1, generator=g))
    obs, rows, over = [env.observe(state)], [], torch.zeros(count, dtype=torch.bool)
    for t in range(HORIZON):
        action = choose(obs[-1], torch.rand(count, generator=g))
        state, after, reward, terminated, _ = env.step(state, action, state)
        rows.append(
            (action, reward, terminated & ~over, torch.full((count,), t + 1).masked_fill(over, 0))
        )
        obs.append(after)
        over = over | terminated
    action, reward, terminated, length = (
        torch.stack(column, 1) for column in zip(*rows, strict=True)
    )
    seen, ended = torch.stack(obs, 1).numpy(), terminated.any(1).tolist()
    return [
        Episode(
            seen[n, : end + 1],
            action[n, :end].numpy(),
            reward[n, :end].numpy(),
            ended[n],
            not ended[n],
            None,
            Request(f"chain {n}", n),
            0,
            end,
        )
        for n, end in enumerate(length.amax(1).tolist())
    ]
