"""Many steps of double DQN in environments of ours as one compiled loop.

The same as ``MemberTraining._step``, from one end of an episode to the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor

from lightning_rl.agents import fused_play
from lightning_rl.agents.fused_dqn import DoubleQ, double_q_of, double_q_updates, nets_of, values
from lightning_rl.agents.fused_members import active_members
from lightning_rl.agents.fused_play import Play, copy, move
from lightning_rl.core.compiled import compiled, inlined, one_thread
from lightning_rl.envs.batch import EnvBatch
from lightning_rl.nets.fused import F, Net

if TYPE_CHECKING:
    from lightning_rl.agents.base import Progress
    from lightning_rl.agents.dqn import DDQN


class Actor(NamedTuple):
    """nets: what gives the values of one observation. epsilon ``[N]``: how often actions are
    random. noise ``[T, N, 2]``: for exploring.
    """

    nets: tuple[Net, ...]
    epsilon: Any
    noise: Any


def play(agent: DDQN, envs: EnvBatch, progress: Progress, most: float) -> tuple[int, Tensor] | None:
    """See ``Agent.play``; None where the environments have no compiled form."""
    begun = fused_play.begun(envs, progress)
    if begun is None:
        return None
    number, place = divmod(progress.step, agent.explore_noise.block)
    noise = agent.explore_noise.whole(number)[place:]
    epsilon = agent.cfg.epsilon(progress.episode)
    with one_thread():
        steps = _play(
            begun,
            Actor(nets_of(agent.net, 1), epsilon.numpy(), noise.numpy()),
            double_q_of(agent),
            agent.replay.written,
            agent.replay.capacity,
            agent.replay_noise.whole(number)[place:].numpy(),
            active_members(progress.active, len(epsilon)),
            int(min(most, len(noise))),
            progress.step,
            agent.cfg.train_interval,
        )
    agent.replay.wrote(steps)
    return fused_play.finished(begun, envs, progress, steps)


@compiled
def _play(
    play: Play,
    actor: Actor,
    double_q: DoubleQ,
    written: int,
    capacity: int,
    draws: Any,
    active: Any,
    most: int,
    first: int,
    train_interval: int,
) -> int:
    """first: the number of the first step, of which each ``train_interval``-th is learned from."""
    for t in range(most):
        for n in range(len(active)):
            action = _action(actor, double_q.learners.params[n], play.obs[n], n, t)
            row = double_q.rows[double_q.first[n] + written % capacity]
            _step(play, n, action, row)
        written += 1
        if (first + t + 1) % train_interval == 0:
            double_q_updates(double_q, min(written, capacity), draws[t], active)
        if play.ended.any():
            return t + 1
    return most


@inlined
def _action(actor: Actor, params: Any, obs: Any, n: int, t: int) -> int:
    """See ``epsilon_greedy``."""
    q, noise, best = actor.nets[-1].out, actor.noise[t, n], 0
    if noise[0] < actor.epsilon[n]:
        best = int(noise[1] * F(len(q)))
    else:
        copy(obs, actor.nets[0].inputs[:, 0])
        values(params, actor.nets)
        for a in range(1, len(q)):
            if q[a, 0] > q[best, 0]:
                best = a
    return best


@inlined
def _step(play: Play, n: int, action: int, row: Any) -> None:
    """A step of one environment, which is written into a ``row`` of the replay memory."""
    obs = play.obs[n]
    size = len(obs)
    copy(obs, row)
    row[size] = action
    row[size + 1], row[size + 2] = move(play, n, row[size : size + 1])
    copy(obs, row[size + 3 :])
