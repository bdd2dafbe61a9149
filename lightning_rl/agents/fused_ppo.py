"""The updates of PPO as one compiled loop, over one member after the other: see ``PPO.update``.

A member's networks, moments and minibatches stay in the processor's cache for all its updates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lightning_rl.agents.fused_members import active_members, learners_of
from lightning_rl.agents.fused_play import Play, begun, copy, finished, move
from lightning_rl.core.compiled import compiled, inlined, one_thread
from lightning_rl.nets.flat import shape_of_members
from lightning_rl.nets.fused import (
    F,
    Learners,
    Net,
    backward,
    fill,
    forward,
    member_descends,
    net_of,
    tanh,
)
from lightning_rl.nets.fused_losses import (
    categorical_entropy,
    categorical_log_prob,
    categorical_loss,
    free_gaussian_log_prob,
    free_gaussian_loss,
    surrogate_weight,
    value_loss,
)

if TYPE_CHECKING:
    from lightning_rl.agents.base import Progress
    from lightning_rl.agents.ppo import PPO
    from lightning_rl.envs.batch import EnvBatch


class Recipe(NamedTuple):
    """Keys of ``PPOConfig``; returns: these are standardised, not advantages."""

    gamma: float
    gae_lambda: float
    clip: float
    value_coef: float
    entropy_coef: float
    returns: bool


class Nets(NamedTuple):
    """Actor and critic, which write their parts of one gradient ``[D]``.

    to_log_std ``[A]``: the rest of it; discrete policies have none.
    """

    actor: Net
    critic: Net
    to_log_std: Any
    gradient: Any


class Steps(NamedTuple):
    """A roll-out ``[T, ..]`` of one member, or ``[N, T, ..]`` of all; discrete actions are numbers
    ``[.., 1]``.
    """

    obs: Any
    action: Any
    reward: Any
    discount: Any
    next_obs: Any
    over: Any


class Batch(NamedTuple):
    """A minibatch, or a whole roll-out: action ``[B, A]``, the rest ``[B]``."""

    action: Any
    log_prob: Any
    target: Any
    advantage: Any


def nets_of(agent: PPO, batch: int) -> Nets:
    """For minibatches of this size."""
    shapes = [shape_of_members(net) for net in (agent.actor, agent.critic)]
    gradient = np.zeros(agent.params.shape[1], F)
    ends = np.cumsum([shape.size for shape in shapes])
    to_actor, to_critic, to_log_std = np.split(gradient, ends)
    actor, critic = (net_of(shape, batch, number) for number, shape in enumerate(shapes))
    return Nets(
        actor._replace(gradient=to_actor),
        critic._replace(gradient=to_critic),
        to_log_std,
        gradient,
    )


def recipe_of(agent: PPO) -> Recipe:
    """The keys of its config that the loop reads."""
    cfg = agent.cfg
    return Recipe(
        cfg.gamma,
        cfg.gae_lambda,
        cfg.clip,
        cfg.value_coef,
        cfg.entropy_coef,
        cfg.standardise == "returns",
    )


def rollout_of(agent: PPO) -> Steps:
    """The roll-out of all members; discrete actions are a copy."""
    action = agent.action
    if not agent.continuous:
        action = action.unsqueeze(-1).float()
    steps = (agent.obs, action, agent.reward, agent.discount, agent.next_obs, agent.over)
    return Steps(*(each.numpy() for each in steps))


def update(agent: PPO, active: Tensor | None, number: int) -> None:
    """``PPO.update`` without curiosity."""
    cfg = agent.cfg
    first = number * cfg.epochs
    epochs = [torch.cat(agent.minibatches(first + i), dim=1) for i in range(cfg.epochs)]
    with one_thread():
        _updates(
            learners_of(agent.adam),
            active_members(active, agent.num_members),
            nets_of(agent, cfg.batch_size or cfg.rollout_steps),
            rollout_of(agent),
            torch.stack(epochs, dim=1).numpy(),
            recipe_of(agent),
        )


@compiled
def _updates(
    learners: Learners, active: Any, nets: Nets, rollout: Steps, order: Any, recipe: Recipe
) -> None:
    """order ``[N, epochs, T]``: the steps of all minibatches of an epoch, one after the other."""
    for n in range(len(active)):
        if not active[n]:
            continue
        steps = Steps(
            rollout.obs[n],
            rollout.action[n],
            rollout.reward[n],
            rollout.discount[n],
            rollout.next_obs[n],
            rollout.over[n],
        )
        params = learners.params[n]
        whole = _batch(steps.action)
        _look_back(params, nets, steps, recipe, whole)
        size = nets.actor.out.shape[1]
        part = _batch(np.empty((size, steps.action.shape[1]), F))
        for epoch in range(order.shape[1]):
            for start in range(0, order.shape[2], size):
                rows = order[n, epoch, start : start + size]
                _draw(steps, whole, rows, nets, part)
                _slope(params, nets, part, recipe)
                member_descends(learners, n, nets.gradient)


@inlined
def _batch(action: Any) -> Batch:
    size = len(action)
    return Batch(action, np.empty(size, F), np.empty(size, F), np.empty(size, F))


@inlined
def _look_back(params: Any, nets: Nets, steps: Steps, recipe: Recipe, whole: Batch) -> None:
    """Fills ``whole`` with what the policy that has played, and its critic, say of the roll-out."""
    size = nets.actor.out.shape[1]
    value, next_value = np.zeros((2, len(steps.reward)), F)
    for start in range(0, len(value), size):
        part = slice(start, start + size)
        fill(nets.actor.inputs, steps.obs[part])
        _act(params, nets)
        _log_prob(params, nets, steps.action[part], whole.log_prob[part])
        if not recipe.returns:
            fill(nets.critic.inputs, steps.obs[part])
            _judge(params, nets)
            copy(nets.critic.out[0], value[part])
            fill(nets.critic.inputs, steps.next_obs[part])
            _judge(params, nets)
            copy(nets.critic.out[0], next_value[part])
    if recipe.returns:
        gamma = np.full(len(value), F(recipe.gamma))
        lambda_returns(steps.reward, gamma, next_value, steps.over, 1.0, whole.target)
        standardise(whole.target, 1e-5)
    else:
        lambda_returns(
            steps.reward, steps.discount, next_value, steps.over, recipe.gae_lambda, whole.target
        )
        _subtract(whole.target, value, whole.advantage)


@inlined
def _subtract(minuend: Any, subtrahend: Any, into: Any) -> None:
    for t in range(len(into)):
        into[t] = minuend[t] - subtrahend[t]


@inlined
def _act(params: Any, nets: Nets) -> None:
    forward(params[: len(nets.actor.gradient)], nets.actor)


@inlined
def _judge(params: Any, nets: Nets) -> None:
    first = len(nets.actor.gradient)
    forward(params[first : first + len(nets.critic.gradient)], nets.critic)


@inlined
def _log_prob(params: Any, nets: Nets, action: Any, log_prob: Any) -> None:
    size = len(nets.to_log_std)
    if size:
        log_std = params[len(params) - size :]
        free_gaussian_log_prob(nets.actor.out, log_std, action, log_prob)
    else:
        categorical_log_prob(nets.actor.out, action, log_prob)


@compiled
def lambda_returns(
    reward: Any, discount: Any, next_value: Any, over: Any, gae_lambda: float, target: Any
) -> None:
    """Writes ``functional.returns.lambda_returns`` into ``target``, all ``[T]``.

    The roll-out ends with its last step.
    """
    last = len(reward) - 1
    for t in range(last, -1, -1):
        following = next_value[t]
        if t < last and not over[t]:
            following += F(gae_lambda) * (target[t + 1] - next_value[t])
        target[t] = reward[t] + discount[t] * following


@compiled
def standardise(x: Any, eps: float) -> None:
    """Mean 0 and sample standard deviation 1 (less by ``eps``) in place, for ``[T]``."""
    mean = 0.0
    for each in x:
        mean += each
    mean /= len(x)
    square = 0.0
    for each in x:
        square += (each - mean) ** 2
    scale = 1 / (np.sqrt(square / (len(x) - 1)) + eps)
    for t in range(len(x)):
        x[t] = F((x[t] - mean) * scale)


@inlined
def _draw(steps: Steps, whole: Batch, rows: Any, nets: Nets, part: Batch) -> None:
    """Fills a minibatch with ``rows`` ``[B]`` of the roll-out, and the inputs of both networks."""
    for k in range(len(rows)):
        row = rows[k]
        for i in range(steps.obs.shape[1]):
            nets.actor.inputs[i, k] = nets.critic.inputs[i, k] = steps.obs[row, i]
        for a in range(whole.action.shape[1]):
            part.action[k, a] = whole.action[row, a]
        part.log_prob[k] = whole.log_prob[row]
        part.target[k] = whole.target[row]
        part.advantage[k] = whole.advantage[row]


@inlined
def _slope(params: Any, nets: Nets, batch: Batch, recipe: Recipe) -> None:
    """Computes ``nets.gradient`` of the loss of a minibatch; changes the batch's advantages."""
    actor, critic = nets.actor, nets.critic
    _judge(params, nets)
    if recipe.returns:
        _subtract(batch.target, critic.out[0], batch.advantage)
    else:
        standardise(batch.advantage, 1e-8)
    value_loss(critic.out, batch.target, np.empty((len(batch.target), 0), F), critic.grad)
    for k in range(len(batch.target)):
        critic.grad[0, k] *= F(recipe.value_coef)
    _act(params, nets)
    log_prob, weight = np.empty((2, len(batch.target)), F)
    _log_prob(params, nets, batch.action, log_prob)
    surrogate_weight(log_prob, batch.log_prob, batch.advantage, recipe.clip, weight)
    size = len(nets.to_log_std)
    if size:
        log_std = params[len(params) - size :]
        free_gaussian_loss(actor.out, log_std, batch.action, weight, actor.grad, nets.to_log_std)
        for a in range(size):
            nets.to_log_std[a] -= F(recipe.entropy_coef)
    else:
        categorical_loss(actor.out, batch.action, weight, actor.grad)
        if recipe.entropy_coef > 0:
            categorical_entropy(actor.out, recipe.entropy_coef, actor.grad)
    first = len(actor.gradient)
    backward(params[:first], actor)
    backward(params[first : first + len(critic.gradient)], critic)


def play(agent: PPO, envs: EnvBatch, progress: Progress, most: float) -> tuple[int, Tensor] | None:
    """``Agent.play``: up to the end of the roll-out, or of a block of noise."""
    play = begun(envs, progress)
    if play is None:
        return None
    place = progress.step % agent.cfg.rollout_steps
    block, offset = divmod(progress.step, agent.explore_noise.block)
    noise = agent.explore_noise.whole(block)[offset:]
    steps = int(min(most, len(noise), agent.cfg.rollout_steps - place))
    rollout = rollout_of(agent)
    with one_thread():
        steps = _play(
            agent.params.data.numpy(),
            nets_of(agent, 1),
            rollout,
            place,
            play,
            noise[:steps].numpy(),
        )
    part = slice(place, place + steps)
    if not agent.continuous:
        agent.action[:, part] = torch.from_numpy(rollout.action[:, part, 0])
    if place + steps == agent.cfg.rollout_steps:
        agent.learn_from_rollout(progress.active, progress.step // agent.cfg.rollout_steps)
    return finished(play, envs, progress, steps)


@compiled
def _play(params: Any, nets: Nets, rollout: Steps, place: int, play: Play, noise: Any) -> int:
    """Steps of all members, until an episode ends; how many.

    place: in the roll-out. noise ``[K, N, A]``: for exploring.
    """
    for t in range(len(noise)):
        for n in range(len(params)):
            at, action = place + t, rollout.action[n, place + t]
            copy(play.obs[n], rollout.obs[n, at])
            fill(nets.actor.inputs, play.obs[n : n + 1])
            _act(params[n], nets)
            _sample(params[n], nets, noise[t, n], action)
            rollout.reward[n, at], rollout.discount[n, at] = move(play, n, action)
            copy(play.obs[n], rollout.next_obs[n, at])
            rollout.over[n, at] = play.ended[n]
        if play.ended.any():
            return t + 1
    return len(noise)


@compiled
def _sample(params: Any, nets: Nets, noise: Any, action: Any) -> None:
    """An action ``[A]``, or the number of one ``[1]``, of what the actor gives."""
    out, size = nets.actor.out[:, 0], len(nets.to_log_std)
    if size:
        log_std = params[len(params) - size :]
        for a in range(size):
            action[a] = tanh(out[a]) + np.exp(log_std[a]) * noise[a]
    else:
        best = 0
        for a in range(1, len(out)):
            if out[a] + noise[a] > out[best] + noise[best]:
                best = a
        action[0] = best
