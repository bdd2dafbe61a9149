"""The update of double DQN, plain or dueling, as a compiled loop over members.

The same as ``DDQN.update`` on ``MemberReplay.batch``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from torch import Tensor

from lightning_rl.agents.fused_members import active_members, learners_of
from lightning_rl.core.compiled import compiled, one_thread
from lightning_rl.core.types import FloatArray
from lightning_rl.nets.flat import shape_of_members
from lightning_rl.nets.fused import (
    F,
    Learners,
    Net,
    backward,
    copy_rows,
    forward,
    member_descends,
    net_of,
)
from lightning_rl.nets.values import DuelingNet

if TYPE_CHECKING:
    from lightning_rl.agents.dqn import DDQN
    from lightning_rl.nets.values import MemberNet


def nets_of(net: MemberNet, batch: int, number: int = 0) -> tuple[Net, ...]:
    """What gives action values of batches of this size: a network, or a dueling one of three:
    features, then the heads. The last of them holds the values. See ``net_of``.
    """
    if not isinstance(net, DuelingNet):
        return (net_of(shape_of_members(net), batch, number),)
    features, *heads = map(shape_of_members, net.parts)
    nets = [net_of(features, batch, number)]
    for place, head in enumerate(heads):  # of one action both have one shape, but own memory
        nets.append(net_of(head, batch, 2 * number + place, to_inputs=True))
    return tuple(nets)


def shared_gradient(nets: tuple[Net, ...]) -> tuple[tuple[Net, ...], FloatArray]:
    """The networks with gradients that are parts of one ``[D]``, and that one."""
    ends = np.cumsum([len(net.gradient) for net in nets])
    whole = np.zeros(ends[-1], F)
    parts = np.split(whole, ends[:-1])
    both = zip(nets, parts, strict=True)
    return tuple(net._replace(gradient=part) for net, part in both), whole


@compiled
def values(params: Any, nets: Any) -> None:
    """Computes ``nets[-1].out`` from the first rows of ``nets[0].inputs``."""
    first = len(nets[0].gradient)
    forward(params[:first], nets[0])
    if len(nets) == 1:
        return
    _, value, advantage = nets
    second = first + len(value.gradient)
    copy_rows(nets[0].out, value.inputs)
    copy_rows(nets[0].out, advantage.inputs)
    forward(params[first:second], value)
    forward(params[second:], advantage)
    _subtract_mean(advantage.out)
    _add(value.out[0], advantage.out)


@compiled
def gradients(params: Any, nets: Any) -> None:
    """Computes the gradients of the networks from ``nets[-1].grad``, after ``values``."""
    first = len(nets[0].gradient)
    if len(nets) == 1:
        backward(params, nets[0])
        return
    features, value, advantage = nets
    second = first + len(value.gradient)
    _sum(advantage.grad, value.grad[0])
    _subtract_mean(advantage.grad)
    backward(params[first:second], value)
    backward(params[second:], advantage)
    copy_rows(value.to_inputs, features.grad)
    for i in range(len(features.grad)):
        _add(advantage.to_inputs[i], features.grad[i : i + 1])
    backward(params[:first], features)


@compiled
def _sum(rows: Any, into: Any) -> None:
    """The sum ``[B]`` of ``[A, B]``."""
    for k in range(len(into)):
        into[k] = 0
        for a in range(len(rows)):
            into[k] += rows[a, k]


@compiled
def _add(row: Any, into: Any) -> None:
    """Adds ``[B]`` to each row of ``[A, B]``."""
    for a in range(len(into)):
        for k in range(len(row)):
            into[a, k] += row[k]


@compiled
def _subtract_mean(x: Any) -> None:
    """Subtracts from each column of ``[A, B]`` its mean."""
    share = F(1) / F(len(x))
    for k in range(x.shape[1]):
        total = F(0)
        for a in range(len(x)):
            total += x[a, k]
        for a in range(len(x)):
            x[a, k] -= share * total


class DoubleQ(NamedTuple):
    """What the members learn with.

    rows ``[.., 2 O + 3]``: of a ``MemberReplay``; those of member ``n`` begin at ``first[n]``.
    weight ``[N, B]``: of each transition. now, then: what gives the values of observations and of
    next ones. gradient ``[D]``: of ``now``. drawn, best ``[B]``: the rows of a batch, and the best
    next actions. double, huber: keys of ``DDQNConfig``.
    """

    learners: Learners
    rows: Any
    first: Any
    weight: Any
    now: tuple[Net, ...]
    then: tuple[Net, ...]
    gradient: Any
    drawn: Any
    best: Any
    double: bool
    huber: bool


def double_q_of(agent: DDQN) -> DoubleQ:
    """The members as they are now."""
    batch = agent.weight.shape[1]
    now, gradient = shared_gradient(nets_of(agent.net, batch))
    return DoubleQ(
        learners=learners_of(agent.adam, agent.target, agent.cfg.tau),
        rows=agent.replay.data["rows"].numpy(),
        first=agent.replay.first.numpy(),
        weight=agent.weight.numpy(),
        now=now,
        then=nets_of(agent.net, batch, 1),
        gradient=gradient,
        drawn=np.zeros(batch, np.int64),
        best=np.zeros(batch, np.int64),
        double=agent.cfg.double,
        huber=agent.cfg.loss == "huber",
    )


def learn(agent: DDQN, noise: Tensor, active: Tensor | None) -> None:
    """One step on the batch that ``noise`` ``[N, B]`` draws, as ``learn_from_replay``."""
    learns = active_members(active, agent.num_members)
    with one_thread():
        double_q_updates(double_q_of(agent), len(agent.replay), noise.numpy(), learns)


@compiled
def double_q_updates(double_q: DoubleQ, length: int, noise: Any, active: Any) -> None:
    """An update of each active member; length: of the replay memory; noise ``[N, B]``."""
    learners, now, then = double_q.learners, double_q.now, double_q.then
    rows, drawn, best = double_q.rows, double_q.drawn, double_q.best
    for n in range(len(noise)):
        if not active[n]:
            continue
        for k in range(len(drawn)):
            drawn[k] = double_q.first[n] + int(noise[n, k] * length)
        if _fill(now[0].inputs, then[0].inputs, rows, drawn):
            if double_q.double:
                values(learners.params[n], then)
                _best_actions(then[-1].out, best)
            values(learners.average[n], then)
            if not double_q.double:
                _best_actions(then[-1].out, best)
        values(learners.params[n], now)
        _slopes(double_q, n)
        gradients(learners.params[n], now)
        member_descends(learners, n, double_q.gradient)


@compiled
def _fill(obs: Any, next_obs: Any, rows: Any, drawn: Any) -> bool:
    """Writes the observations of the ``drawn`` rows into the networks' inputs.

    Whether anything follows them, see ``anything_follows``.
    """
    size, follows = (rows.shape[1] - 3) // 2, False
    for k in range(len(drawn)):
        row = rows[drawn[k]]
        for i in range(size):
            obs[i, k] = row[i]
            next_obs[i, k] = row[size + 3 + i]
        follows |= row[size + 2] != 0
    return follows


@compiled
def _best_actions(q: Any, best: Any) -> None:
    """The action of the highest value ``[A, B]``, of equal ones the first."""
    for k in range(len(best)):
        best[k] = 0
        for a in range(1, len(q)):
            if q[a, k] > q[best[k], k]:
                best[k] = a


@compiled
def _slopes(double_q: DoubleQ, n: int) -> None:
    """Writes the gradient of the weighted loss of member ``n`` to its values; see
    ``double_q_target``.
    """
    q, grad, next_q = double_q.now[-1].out, double_q.now[-1].grad, double_q.then[-1].out
    size = (double_q.rows.shape[1] - 3) // 2
    for k in range(len(double_q.drawn)):
        row = double_q.rows[double_q.drawn[k]]
        action, reward, discount = int(row[size]), row[size + 1], row[size + 2]
        for a in range(len(grad)):
            grad[a, k] = 0
        error = q[action, k] - reward
        if discount != 0:
            error -= discount * next_q[double_q.best[k], k]
        slope = F(2) * error
        if double_q.huber:
            slope = min(max(error, F(-1)), F(1))
        grad[action, k] = double_q.weight[n, k] * slope
