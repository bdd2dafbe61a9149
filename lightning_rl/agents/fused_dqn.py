"""The update of double DQN, plain or dueling, as a compiled loop over members.

The same as ``DDQN.update`` on ``MemberReplay.batch``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from torch import Tensor

from lightning_rl.agents.fused_members import active_members, learners_of, shape_of_members
from lightning_rl.core.compiled import compiled, one_thread
from lightning_rl.nets.fused import (
    F,
    Learners,
    Net,
    backward,
    forward,
    member_descends,
    net_of,
)
from lightning_rl.nets.values import DuelingNet

if TYPE_CHECKING:
    from lightning_rl.agents.dqn import DDQN
    from lightning_rl.nets.values import MemberNet


class QNet(NamedTuple):
    """Action values of a batch of ``B``: a network, or a dueling one of three.

    ends: where in the parameters ``[D]`` the features end, and the value head. out, grad
    ``[A, B]``: the values and the gradient to them. gradient ``[D]``: to the parameters.
    """

    dueling: bool
    features: Net
    value: Net
    advantage: Net
    ends: tuple[int, int]
    out: Any
    grad: Any
    gradient: Any


def q_net_of(net: MemberNet, batch: int, number: int = 0) -> QNet:
    """The values for batches of this size; see ``net_of``."""
    if not isinstance(net, DuelingNet):
        plain = net_of(shape_of_members(net), batch, number)
        ends = (net.size, net.size)
        return QNet(False, plain, plain, plain, ends, plain.out, plain.grad, plain.gradient)
    shapes = [shape_of_members(part) for part in net.parts]
    features = net_of(shapes[0], batch, number)
    value = net_of(shapes[1], batch, number, to_inputs=True)
    advantage = net_of(shapes[2], batch, number, to_inputs=True)
    ends = (shapes[0].size, shapes[0].size + shapes[1].size)
    out, grad = np.zeros_like(advantage.out), np.zeros_like(advantage.grad)
    return QNet(True, features, value, advantage, ends, out, grad, np.zeros(net.size, np.float32))


@compiled
def values(params: Any, q: QNet) -> None:
    """Computes ``q.out`` from the first rows of ``q.features.inputs``."""
    if not q.dueling:
        forward(params, q.features)
        return
    first, second = q.ends
    size = len(q.features.out)
    forward(params[:first], q.features)
    q.value.inputs[:size] = q.features.out
    q.advantage.inputs[:size] = q.features.out
    forward(params[first:second], q.value)
    forward(params[second:], q.advantage)
    actions, batch = q.out.shape
    for k in range(batch):
        rest = F(0)
        for a in range(actions):
            rest += q.advantage.out[a, k]
        rest = q.value.out[0, k] - rest / F(actions)
        for a in range(actions):
            q.out[a, k] = rest + q.advantage.out[a, k]


@compiled
def slopes(params: Any, q: QNet) -> None:
    """Computes ``q.gradient`` from ``q.grad``, after ``values``."""
    if not q.dueling:
        backward(params, q.features)
        return
    actions, batch = q.out.shape
    for k in range(batch):
        total = F(0)
        for a in range(actions):
            total += q.grad[a, k]
        q.value.grad[0, k] = total
        for a in range(actions):
            q.advantage.grad[a, k] = q.grad[a, k] - total / F(actions)
    first, second = q.ends
    backward(params[first:second], q.value)
    backward(params[second:], q.advantage)
    q.features.grad[:] = q.value.to_inputs + q.advantage.to_inputs
    backward(params[:first], q.features)
    q.gradient[:first] = q.features.gradient
    q.gradient[first:second] = q.value.gradient
    q.gradient[second:] = q.advantage.gradient


class Replay(NamedTuple):
    """Rows ``[.., 2 O + 3]`` of a ``MemberReplay``; those of member ``n`` begin at ``first[n]``."""

    rows: Any
    first: Any


class DoubleQ(NamedTuple):
    """What the members learn with.

    now, then: the values of observations and of next ones. weight ``[N, B]``: of each transition.
    drawn, best ``[B]``: the rows of a batch, and the best next actions.
    """

    learners: Learners
    replay: Replay
    weight: Any
    now: QNet
    then: QNet
    drawn: Any
    best: Any


def double_q_of(agent: DDQN) -> DoubleQ:
    """The members as they are now."""
    batch = agent.weight.shape[1]
    return DoubleQ(
        learners=learners_of(agent.adam, agent.target, agent.cfg.tau),
        replay=Replay(agent.replay.data["rows"].numpy(), agent.replay.first.numpy()),
        weight=agent.weight.numpy(),
        now=q_net_of(agent.net, batch, 0),
        then=q_net_of(agent.net, batch, 1),
        drawn=np.zeros(batch, np.int64),
        best=np.zeros(batch, np.int64),
    )


def learn(agent: DDQN, noise: Tensor, active: Tensor | None) -> None:
    """One step on the batch that ``noise`` ``[N, B]`` draws, as ``learn_from_replay``."""
    learns = active_members(active, agent.num_members)
    with one_thread():
        double_q_updates(double_q_of(agent), len(agent.replay), noise.numpy(), learns)


@compiled
def double_q_updates(double_q: DoubleQ, length: int, noise: Any, active: Any) -> None:
    """An update of each active member; length: of the replay memory; noise ``[N, B]``."""
    for n in range(len(noise)):
        if active[n]:
            _draw(double_q, n, length, noise[n])
            _double_q_slope(double_q, n)
            slopes(double_q.learners.params[n], double_q.now)
            member_descends(double_q.learners, n, double_q.now.gradient)


@compiled
def _draw(double_q: DoubleQ, n: int, length: int, noise: Any) -> None:
    """Writes a batch into the networks' inputs."""
    rows, drawn = double_q.replay.rows, double_q.drawn
    now, then = double_q.now.features.inputs, double_q.then.features.inputs
    size = (rows.shape[1] - 3) // 2
    for k in range(len(drawn)):
        drawn[k] = double_q.replay.first[n] + int(noise[k] * length)
        row = rows[drawn[k]]
        for i in range(size):
            now[i, k] = row[i]
            then[i, k] = row[size + 3 + i]


@compiled
def _double_q_slope(double_q: DoubleQ, n: int) -> None:
    """The gradient of the weighted squared error to the values; see ``double_q_target``."""
    learners, now, then = double_q.learners, double_q.now, double_q.then
    values(learners.params[n], then)
    _best_actions(then.out, double_q.best)
    values(learners.average[n], then)
    values(learners.params[n], now)
    rows, weight = double_q.replay.rows, double_q.weight[n]
    size = (rows.shape[1] - 3) // 2
    now.grad[:] = 0
    for k in range(len(weight)):
        row = rows[double_q.drawn[k]]
        action, reward, discount = int(row[size]), row[size + 1], row[size + 2]
        error = now.out[action, k] - (reward + discount * then.out[double_q.best[k], k])
        now.grad[action, k] = F(2) * weight[k] * error


@compiled
def _best_actions(q: Any, best: Any) -> None:
    """The action of the highest value ``[A, B]``, of equal ones the first."""
    for k in range(len(best)):
        best[k] = 0
        for a in range(1, len(q)):
            if q[a, k] > q[best[k], k]:
                best[k] = a
