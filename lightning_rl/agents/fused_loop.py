"""Many steps of double DQN in environments of ours as one compiled loop.

The same as ``MemberTraining._step``, from one end of an episode to the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lightning_rl.agents.fused_dqn import DoubleQ, double_q_of, double_q_updates, nets_of, values
from lightning_rl.agents.fused_members import active_members
from lightning_rl.core.compiled import compiled, one_thread
from lightning_rl.envs.batch import EnvBatch, FuncBatch
from lightning_rl.envs.fused_worlds import World, step, world_of
from lightning_rl.nets.fused import F, Net

if TYPE_CHECKING:
    from lightning_rl.agents.base import Progress
    from lightning_rl.agents.dqn import DDQN


class Play(NamedTuple):
    """What ``N`` members meet.

    state ``[N, S]``, obs ``[N, O]``, total, length, over ``[N]``: of the episodes under way.
    actor: what gives the values of one observation. epsilon ``[N]``: how often actions are random.
    horizon: steps after which an episode is cut. cap_ends: that is a termination.
    """

    world: World
    state: Any
    obs: Any
    total: Any
    length: Any
    over: Any
    actor: tuple[Net, ...]
    epsilon: Any
    gamma: float
    horizon: int
    cap_ends: bool


def play(agent: DDQN, envs: EnvBatch, progress: Progress, most: float) -> tuple[int, Tensor] | None:
    """See ``Agent.play``; None where the environments have no compiled form."""
    if type(envs) is not FuncBatch or envs.repeat != 1:
        return None
    world = world_of(envs.env)
    if world is None:
        return None
    number, place = divmod(progress.step, agent.explore_noise.block)
    explore = agent.explore_noise.whole(number)[place:]
    steps = int(min(most, len(explore)))
    play = Play(
        world=world,
        state=envs.state.numpy().copy(),
        obs=envs.obs.numpy().copy(),
        total=progress.total.numpy(),
        length=envs.length.numpy().copy(),
        over=np.zeros(len(progress.episode), np.bool_),
        actor=nets_of(agent.net, 1),
        epsilon=agent.epsilon(progress.episode).numpy(),
        gamma=progress.gamma,
        horizon=envs.horizon,
        cap_ends=envs.cap_ends,
    )
    with one_thread():
        steps = _play(
            play,
            double_q_of(agent),
            agent.replay.written,
            agent.replay.capacity,
            explore[:steps].numpy(),
            agent.replay_noise.whole(number)[place:].numpy(),
            active_members(progress.active, len(progress.episode)),
        )
    agent.replay.wrote(steps)
    state, obs, length = map(torch.from_numpy, (play.state, play.obs, play.length))
    envs.advance(state, obs, length, steps)
    progress.length.add_(steps)
    return steps, torch.from_numpy(play.over)


@compiled
def _play(
    play: Play,
    double_q: DoubleQ,
    written: int,
    capacity: int,
    explore: Any,
    draws: Any,
    active: Any,
) -> int:
    for t in range(len(explore)):
        for n in range(len(active)):
            row = double_q.rows[double_q.first[n] + written % capacity]
            action = _action(play.actor, double_q.learners.params[n], play, n, explore[t, n])
            _step(play, n, action, row)
        written += 1
        double_q_updates(double_q, min(written, capacity), draws[t], active)
        if play.over.any():
            return t + 1
    return len(explore)


@compiled
def _action(actor: Any, params: Any, play: Play, n: int, noise: Any) -> int:
    """See ``epsilon_greedy``."""
    q = actor[-1].out
    if noise[0] < play.epsilon[n]:
        return int(noise[1] * F(len(q)))
    for i in range(play.obs.shape[1]):
        actor[0].inputs[i, 0] = play.obs[n, i]
    values(params, actor)
    best = 0
    for a in range(1, len(q)):
        if q[a, 0] > q[best, 0]:
            best = a
    return best


@compiled
def _step(play: Play, n: int, action: int, row: Any) -> None:
    """A step of one environment, which is written into a ``row`` of the replay memory."""
    obs = play.obs[n]
    size = len(obs)
    for i in range(size):
        row[i] = obs[i]
    row[size] = action
    chosen = row[size : size + 1]
    reward, continuation, terminated = step(play.world, n, play.state[n], chosen, obs)
    for i in range(size):
        row[size + 3 + i] = obs[i]
    play.length[n] += 1
    play.total[n] += reward
    truncated = play.length[n] >= play.horizon and not terminated
    play.over[n] = terminated or truncated
    row[size + 1] = reward
    row[size + 2] = F(play.gamma) * continuation
    if truncated and play.cap_ends:
        row[size + 2] = 0
