"""TD3 as compiled loops over members: its updates, see ``TD3.update``, and whole steps in
environments with a twin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from torch import Tensor

from lightning_rl.agents.fused_members import active_members, learners_of
from lightning_rl.agents.fused_play import Play, begun, copy, finished, move
from lightning_rl.agents.td3 import SATURATED
from lightning_rl.core.compiled import compiled, inlined, one_thread
from lightning_rl.nets.flat import shape_of_members
from lightning_rl.nets.fused import (
    F,
    Learners,
    Net,
    backward,
    copy_rows,
    fill,
    follow,
    forward,
    member_descends,
    net_of,
    tanh,
)

if TYPE_CHECKING:
    from lightning_rl.agents.base import Progress
    from lightning_rl.agents.td3 import TD3
    from lightning_rl.envs.batch import EnvBatch

_SATURATED = F(SATURATED)


class Batch(NamedTuple):
    """What the members learn from, one after the other.

    rows ``[.., 2 O + A + 2]``: of ``MemberReplay``, first ``[N]``: where each member's begin;
    weight ``[N, B]``. reward, discount, target ``[B]``, next_obs ``[O, B]``: of one member's batch.
    """

    rows: Any
    first: Any
    weight: Any
    reward: Any
    discount: Any
    target: Any
    next_obs: Any


class Settings(NamedTuple):
    """Keys of ``TD3Config``."""

    policy_delay: int
    target_std: float
    target_clip: float
    saturation_penalty: float
    tau: float


class Twins(NamedTuple):
    """The networks and what trains them.

    critics: both, which write their halves of one gradient. judge: the first once more, which gives
    the gradient to its inputs alone.
    """

    actors: Learners
    values: Learners
    actor: Net
    critics: tuple[Net, Net]
    judge: Net
    gradient: Any


def twins_of(agent: TD3) -> Twins:
    """The members as they are now."""
    batch = agent.weight.shape[1]
    shape = shape_of_members(agent.critic.net)
    gradient = np.zeros(2 * shape.size, F)
    halves = np.split(gradient, 2)
    first, second = (
        net_of(shape, batch, number)._replace(gradient=half) for number, half in enumerate(halves)
    )
    judge = net_of(shape, batch, 2, to_inputs=True)._replace(gradient=np.zeros(0, F))
    return Twins(
        learners_of(agent.actor_adam, agent.actor_target),
        learners_of(agent.critic_adam, agent.critic_target),
        net_of(shape_of_members(agent.actor), batch),
        (first, second),
        judge,
        gradient,
    )


def batch_of(agent: TD3) -> Batch:
    """Room for batches, and the memory that they are drawn from."""
    replay, size = agent.replay, agent.weight.shape[1]
    reward, discount, target = np.empty((3, size), F)
    return Batch(
        replay.data["rows"].numpy(),
        replay.first.numpy(),
        agent.weight.numpy(),
        reward,
        discount,
        target,
        np.empty((agent.actor.in_size, size), F),
    )


def settings_of(agent: TD3) -> Settings:
    """The keys of its config that an update reads."""
    cfg = agent.cfg
    return Settings(
        cfg.policy_delay, cfg.target_std, cfg.target_clip, cfg.saturation_penalty, cfg.tau
    )


def learn(agent: TD3, noise: Tensor, active: Tensor | None, step: int) -> None:
    """``OffPolicyAgent.learn_from_replay`` without curiosity."""
    with one_thread():
        _update(
            twins_of(agent),
            batch_of(agent),
            settings_of(agent),
            len(agent.replay),
            noise.numpy(),
            agent.smoothing_noise.at(step).numpy(),
            active_members(active, agent.num_members),
            step,
        )


class Noises(NamedTuple):
    """Of ``K`` steps: normal for exploring and uniform for first actions ``[K, N, A]``, for drawing
    batches ``[K, N, B]``, for smoothing targets ``[K, N, B, A]``.
    """

    explore: Any
    uniform: Any
    draw: Any
    smoothing: Any


def play(agent: TD3, envs: EnvBatch, progress: Progress, most: float) -> tuple[int, Tensor] | None:
    """``Agent.play``: up to the end of a block of noise."""
    play = begun(envs, progress)
    if play is None:
        return None
    streams = agent.explore_noise, agent.uniform_noise, agent.replay_noise, agent.smoothing_noise
    block, offset = divmod(progress.step, agent.explore_noise.block)
    end = int(min(agent.explore_noise.block, offset + most))
    noises = Noises(*(stream.whole(block)[offset:end].numpy() for stream in streams))
    with one_thread():
        steps = _play(
            twins_of(agent),
            batch_of(agent),
            settings_of(agent),
            play,
            net_of(shape_of_members(agent.actor), 1),
            noises,
            agent.replay.written,
            agent.replay.capacity,
            active_members(progress.active, agent.num_members),
            (progress.episode < agent.cfg.learning_starts).numpy(),
            agent.cfg.action_std,
            progress.step,
        )
    agent.replay.wrote(steps)
    return finished(play, envs, progress, steps)


@compiled
def _play(
    twins: Twins,
    batch: Batch,
    settings: Settings,
    play: Play,
    actor: Net,
    noises: Noises,
    written: int,
    capacity: int,
    active: Any,
    first: Any,
    std: float,
    step: int,
) -> int:
    """Steps of all members, until an episode ends; how many. first ``[N]``: whose actions are
    random.
    """
    size = len(batch.next_obs)
    for t in range(len(noises.explore)):
        for n in range(len(active)):
            row = batch.rows[batch.first[n] + (written + t) % capacity]
            action, rest = row[size : size + len(actor.out)], row[size + len(actor.out) :]
            copy(play.obs[n], row)
            if first[n]:
                for a in range(len(action)):
                    action[a] = F(2) * noises.uniform[t, n, a] - F(1)
            else:
                fill(actor.inputs, play.obs[n : n + 1])
                forward(twins.actors.params[n], actor)
                for a in range(len(action)):
                    free = tanh(actor.out[a, 0]) + F(std) * noises.explore[t, n, a]
                    action[a] = min(max(free, F(-1)), F(1))
            rest[0], rest[1] = move(play, n, action)
            copy(play.obs[n], rest[2:])
        length = min(written + t + 1, capacity)
        draw, smoothing = noises.draw[t], noises.smoothing[t]
        _update(twins, batch, settings, length, draw, smoothing, active, step + t)
        if play.ended.any():
            return t + 1
    return len(noises.explore)


@compiled
def _update(
    twins: Twins,
    batch: Batch,
    settings: Settings,
    length: int,
    draw: Any,
    smoothing: Any,
    active: Any,
    step: int,
) -> None:
    """An update of each active member; length: of the replay memory; draw ``[N, B]``, smoothing
    ``[N, B, A]``: noise.
    """
    for n in range(len(active)):
        if not active[n]:
            continue
        _draw(twins, batch, n, draw[n], length)
        _set_target(twins, batch, n, smoothing[n], settings)
        _fit_critics(twins, batch, n)
        if step % settings.policy_delay == 0:
            _improve_actor(twins, batch, n, settings)
            follow(twins.actors.average[n], twins.actors.params[n], settings.tau)
            follow(twins.values.average[n], twins.values.params[n], settings.tau)


@inlined
def _draw(twins: Twins, batch: Batch, n: int, draw: Any, length: int) -> None:
    """Writes a batch into the inputs of the networks."""
    size, actions = len(batch.next_obs), len(twins.actor.out)
    first, second = twins.critics
    for k in range(len(draw)):
        row = batch.rows[batch.first[n] + int(draw[k] * length)]
        for i in range(size + actions):
            first.inputs[i, k] = second.inputs[i, k] = row[i]
        batch.reward[k], batch.discount[k] = row[size + actions], row[size + actions + 1]
        for i in range(size):
            batch.next_obs[i, k] = row[size + actions + 2 + i]


@inlined
def _set_target(twins: Twins, batch: Batch, n: int, smoothing: Any, settings: Settings) -> None:
    """See ``TD3.target``."""
    actor, judge = twins.actor, twins.judge
    size, actions = len(batch.next_obs), len(actor.out)
    copy_rows(batch.next_obs, actor.inputs)
    copy_rows(batch.next_obs, judge.inputs)
    forward(twins.actors.average[n], actor)
    std, limit = F(settings.target_std), F(settings.target_clip)
    for a in range(actions):
        for k in range(len(smoothing)):
            noise = min(max(std * smoothing[k, a], -limit), limit)
            judge.inputs[size + a, k] = min(max(tanh(actor.out[a, k]) + noise, F(-1)), F(1))
    half = len(twins.gradient) // 2
    params = twins.values.average[n]
    for k in range(len(batch.target)):
        batch.target[k] = np.inf
    for number in range(2):
        forward(params[number * half : (number + 1) * half], judge)
        for k in range(len(batch.target)):
            batch.target[k] = min(batch.target[k], judge.out[0, k])
    for k in range(len(batch.target)):
        batch.target[k] = batch.reward[k] + batch.discount[k] * batch.target[k]


@inlined
def _fit_critics(twins: Twins, batch: Batch, n: int) -> None:
    """A step of both critics down their weighted squared error."""
    params, weight = twins.values.params[n], batch.weight[n]
    half = len(twins.gradient) // 2
    for number in range(2):
        critic, mine = twins.critics[number], params[number * half : (number + 1) * half]
        forward(mine, critic)
        for k in range(len(weight)):
            critic.grad[0, k] = F(2) * weight[k] * (critic.out[0, k] - batch.target[k])
        backward(mine, critic)
    member_descends(twins.values, n, twins.gradient)


@inlined
def _improve_actor(twins: Twins, batch: Batch, n: int, settings: Settings) -> None:
    """A step of the actor up the first critic."""
    actor, judge, weight = twins.actor, twins.judge, batch.weight[n]
    size, actions = len(batch.next_obs), len(actor.out)
    penalty = F(2 * settings.saturation_penalty / actions)
    copy_rows(twins.critics[0].inputs[:size], actor.inputs)
    copy_rows(twins.critics[0].inputs[:size], judge.inputs)
    params = twins.actors.params[n]
    forward(params, actor)
    for a in range(actions):
        for k in range(len(weight)):
            judge.inputs[size + a, k] = tanh(actor.out[a, k])
    first = twins.values.params[n][: len(twins.gradient) // 2]
    forward(first, judge)
    for k in range(len(weight)):
        judge.grad[0, k] = -weight[k]
    backward(first, judge)
    for a in range(actions):
        for k in range(len(weight)):
            out, action = actor.out[a, k], judge.inputs[size + a, k]
            outside = out - min(max(out, -_SATURATED), _SATURATED)
            slope = judge.to_inputs[size + a, k] * (F(1) - action * action)
            actor.grad[a, k] = slope + penalty * weight[k] * outside
    backward(params, actor)
    member_descends(twins.actors, n, actor.gradient)
