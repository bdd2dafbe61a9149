"""The updates of DDQN as compiled code, by numba: ``pip install 'lightning_rl[fast]'``.

``dqn`` does the same in torch, which this is tested against. There each operation goes over all
members and costs a call of its own; here one member's whole update stays in the processor's cache.
Sums are added up in another order, so results differ by rounding, and the key ``kernels`` chooses.
numba compiles at the first import (some seconds) and keeps the result on disk.

Layers lie feature by feature, ``[H, B]``, so that the innermost loops run over the batch and become
vector instructions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numba import njit
from torch import Tensor

from lightning_rl.nets.members import LEAK, MemberMLP

if TYPE_CHECKING:
    from lightning_rl.agents.dqn import DDQN

_SLOPES = {"tanh": -1.0, "relu": 0.0, "leakyrelu": LEAK}
"""Slope for negative inputs, by activation; -1 stands for the tanh."""

_COMPILED: Any = {
    "cache": True,
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "nsz"},
}  # nans stay nans
_F = np.float32
_LANES = (
    8  # of a vector instruction: batches are filled up, so that no loop ends one number at a time
)
_LIMIT = _F(7.9053111)
# tanh(x) = x P(x^2) / Q(x^2), coefficients of the Eigen library; beyond the limit it rounds to 1.
_P = tuple(
    map(
        _F,
        (
            -2.76076847742355e-16,
            2.00018790482477e-13,
            -8.60467152213735e-11,
            5.12229709037114e-08,
            1.48572235717979e-05,
            6.37261928875436e-04,
            4.89352455891786e-03,
        ),
    )
)
_Q = tuple(
    map(
        _F, (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)
    )
)


@njit(inline="always")
def _tanh(x: Any) -> Any:
    x = min(max(x, -_LIMIT), _LIMIT)
    s = x * x
    p = (((((_P[0] * s + _P[1]) * s + _P[2]) * s + _P[3]) * s + _P[4]) * s + _P[5]) * s + _P[6]
    return x * p / (((_Q[0] * s + _Q[1]) * s + _Q[2]) * s + _Q[3])


@njit(inline="always")
def _product(weight: Any, x: Any, row: Any, o: Any) -> None:
    """``row [B] = weight[:, o] x`` for weight ``[I, O]`` and x ``[I, B]``.

    The last input first, the others four at a time.
    """
    size, batch = len(x) - 1, len(row)
    a, xa = weight[size, o], x[size]
    for k in range(batch):
        row[k] = a * xa[k]
    for i in range(0, size - 3, 4):
        a, b, c, d = weight[i, o], weight[i + 1, o], weight[i + 2, o], weight[i + 3, o]
        xa, xb, xc, xd = x[i], x[i + 1], x[i + 2], x[i + 3]
        for k in range(batch):
            row[k] += a * xa[k] + b * xb[k] + c * xc[k] + d * xd[k]
    for i in range(size - size % 4, size):
        a, xa = weight[i, o], x[i]
        for k in range(batch):
            row[k] += a * xa[k]


@njit(**_COMPILED)
def _forward(params: Any, sizes: Any, out: Any, slope: Any) -> None:
    """Fills ``out`` ``[sum(sizes), B]`` from the input, its first rows, on.

    sizes: units of each layer plus one that is always 1, so that the next layer's bias is a weight
    like the others.
    """
    column, first = 0, 0
    for number in range(len(sizes) - 1):
        size, width = sizes[number], sizes[number + 1] - 1
        weight = params[column : column + size * width].reshape(size, width)
        x, z = out[first : first + size], out[first + size : first + size + width + 1]
        for o in range(width):
            row = z[o]
            _product(weight, x, row, o)
            if number == len(sizes) - 2:
                continue
            if slope < 0:
                for k in range(len(row)):
                    row[k] = _tanh(row[k])
            else:
                for k in range(len(row)):
                    row[k] = row[k] if row[k] > 0 else slope * row[k]
        z[width] = 1
        column, first = column + size * width, first + size


@njit(**_COMPILED)
def _backward(
    params: Any, sizes: Any, out: Any, grad: Any, other: Any, into: Any, slope: Any
) -> None:
    """Writes the gradient ``into`` ``[D]``; grad: on entry that to the outputs, in its first rows.

    grad, other: overwritten.
    """
    column, first, batch = len(params), len(out) - sizes[-1], grad.shape[1]
    for number in range(len(sizes) - 2, -1, -1):
        size, width = sizes[number], sizes[number + 1] - 1
        column, first = column - size * width, first - size
        weight = params[column : column + size * width].reshape(size, width)
        for i in range(size):
            x, below = out[first + i], other[i]
            for o in range(width):
                above, total = grad[o], _F(0)
                for k in range(batch):
                    total += x[k] * above[k]
                into[column + i * width + o] = total
            if number == 0 or i == size - 1:
                continue
            _product(weight.T, grad[:width], below, i)
            for k in range(batch):
                below[k] *= _F(1) - x[k] * x[k] if slope < 0 else (_F(1) if x[k] > 0 else slope)
        grad, other = other, grad


@njit(**_COMPILED)
def _gradient(
    params: Any,
    target: Any,
    memory: Any,
    drawn: Any,
    weight: Any,
    sizes: Any,
    slope: Any,
    work: Any,
    into: Any,
) -> None:
    """Writes one member's gradient ``into`` ``[D]``.

    drawn ``[B]``: the rows of ``MemberReplay``'s ``memory`` to learn from.
    """
    online, after, judge, grad, other = work
    obs, actions = sizes[0] - 1, sizes[-1] - 1
    for k in range(len(drawn)):
        row = memory[drawn[k]]
        for i in range(obs):
            online[i, k] = row[i]
            after[i, k] = judge[i, k] = row[obs + 3 + i]
    online[obs], after[obs], judge[obs] = 1, 1, 1
    _forward(params, sizes, online, slope)
    _forward(params, sizes, after, slope)
    _forward(target, sizes, judge, slope)
    q, next_q, next_q_target = online[-sizes[-1] :], after[-sizes[-1] :], judge[-sizes[-1] :]
    grad[:actions] = 0
    for k in range(len(drawn)):
        row = memory[drawn[k]]
        best, action = 0, int(row[obs])
        for a in range(1, actions):
            if next_q[a, k] > next_q[best, k]:
                best = a
        error = q[action, k] - (row[obs + 1] + row[obs + 2] * next_q_target[best, k])
        grad[action, k] = _F(2) * weight[k] * error
    _backward(params, sizes, online, grad, other, into, slope)


_SIGNATURE = (
    "void(float32[:, ::1], float32[:, ::1], float32[:, ::1], float32[:, ::1], int64[::1], "
    "float64[::1], boolean[::1], "
    "float32[:, ::1], int64[::1], int64, float64[:, ::1], float32[:, ::1], int64[::1], float32, "
    "float32, UniTuple(float64, 3))"
)


@njit(_SIGNATURE, **_COMPILED)
def _double_q_steps(
    params: Any,
    target: Any,
    exp_avg: Any,
    exp_avg_sq: Any,
    steps: Any,
    rate: Any,
    active: Any,
    memory: Any,
    first: Any,
    written: Any,
    noise: Any,
    weight: Any,
    sizes: Any,
    slope: Any,
    tau: Any,
    adam: Any,
) -> None:
    (members, batch), (beta1, beta2, eps) = weight.shape, adam
    wide = -(-batch // _LANES) * _LANES
    grad, drawn = np.empty(params.shape[1], np.float32), np.empty(batch, np.int64)
    layers, layer = (sizes.sum(), wide), (sizes.max(), wide)
    work = (
        np.zeros(layers, np.float32),
        np.zeros(layers, np.float32),
        np.zeros(layers, np.float32),
        np.empty(layer, np.float32),
        np.empty(layer, np.float32),
    )
    for n in range(members):
        if not active[n]:
            continue
        for k in range(batch):
            drawn[k] = first[n] + int(noise[n, k] * written)
        _gradient(params[n], target[n], memory, drawn, weight[n], sizes, slope, work, grad)
        steps[n] += 1
        step_size, scale = _F(rate[n] / (1 - beta1 ** steps[n])), _F(np.sqrt(1 - beta2 ** steps[n]))
        for d in range(len(grad)):
            exp_avg[n, d] += _F(1 - beta1) * (grad[d] - exp_avg[n, d])
            exp_avg_sq[n, d] = _F(beta2) * exp_avg_sq[n, d] + _F(1 - beta2) * grad[d] * grad[d]
            params[n, d] -= (
                step_size * exp_avg[n, d] / (np.sqrt(exp_avg_sq[n, d]) / scale + _F(eps))
            )
            target[n, d] += tau * (params[n, d] - target[n, d])


def learn(agent: DDQN, noise: Tensor, active: Tensor | None) -> None:
    """What ``agent`` learns from the batch that ``noise`` ``[N, B]`` draws.

    One step of the active members and their targets.
    """
    net, state, group, ring = (
        cast(MemberMLP, agent.net),
        agent.adam.moments,
        agent.adam.param_groups[0],
        agent.replay,
    )
    params, rate = agent.params.data, group["lr"]
    active = torch.ones(len(params), dtype=torch.bool) if active is None else active
    rate = (
        torch.full((len(params),), rate, dtype=torch.float64) if isinstance(rate, float) else rate
    )
    members = (
        params,
        agent.target,
        state["exp_avg"],
        state["exp_avg_sq"],
        state["step"],
        rate,
        active,
    )
    cast(Any, _double_q_steps)(  # numba types a call by its compiled signature
        *(x.numpy() for x in (*members, ring.data["rows"], ring.first)),
        len(ring),
        noise.numpy(),
        agent.weight.numpy(),
        np.array([net.in_size, *net.hidden, net.out_size]) + 1,
        _F(_SLOPES[net.activation]),
        _F(agent.cfg.tau),
        (*group["betas"], group["eps"]),
    )
