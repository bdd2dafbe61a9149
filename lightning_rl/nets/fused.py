"""A small network forward and backward, and a step of Adam, as compiled functions.

The same as ``nets.layers`` and ``torch.optim.Adam``, which tests compare them with; here a whole
update is one call, and what it works on stays in the processor's cache.

Activations lie feature by feature, ``[H, B]``, so that loops over the batch become vector
instructions. Parameters are one array ``[D]``: of each layer weight and bias as ``[I + 1, O]``, the
gates last. The input of every layer has a row of ones, so the bias is a weight like the others.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from lightning_rl.core.compiled import compiled

F = np.float32
TANH = -1.0
"""In place of a slope."""


class Shape(NamedTuple):
    """What is computed; see ``LayeredNet``.

    widths: of the input, the hidden layers and the output. slopes: of each hidden layer for
    negative inputs, 0 for a ReLU, or ``TANH``. The first ``num_gated`` hidden layers have gates
    ``gate_scale * sigmoid(U c + p)`` of a command of ``command_size`` numbers.
    """

    widths: tuple[int, ...]
    slopes: tuple[float, ...]
    num_gated: int = 0
    command_size: int = 0
    gate_scale: float = 1.0

    @property
    def gates(self) -> int:
        """How many gates there are."""
        return sum(self.widths[1 : 1 + self.num_gated])

    @property
    def layers(self) -> list[tuple[int, int]]:
        """``[I + 1, O]`` of each layer in the array of parameters."""
        shapes = [(i + 1, o) for i, o in zip(self.widths, self.widths[1:], strict=False)]
        if self.num_gated:
            shapes.append((self.command_size + 1, self.gates))
        return shapes

    @property
    def size(self) -> int:
        """How many parameters there are."""
        return sum(i * o for i, o in self.layers)


class Net(NamedTuple):
    """A ``Shape`` and the memory for a batch of ``B``, as compiled functions take it.

    inputs ``[I1 + 1 + I2 + 1 ..., B]``: of each layer in turn, the first is the network's.
    command ``[C + 1, B]``. out, grad ``[O, B]``: the output, and the gradient of the loss to it.
    gates, ungated, to_gates ``[G, B]``: gates, what they multiply, the gradient to them.
    first, second ``[H, B]``: gradients to the layers' outputs, in turn. gradient ``[D]``.
    to_inputs ``[I, B]``: the gradient to the network's input. Of both, none where nobody wants it.
    """

    widths: Any
    slopes: Any
    num_gated: int
    gate_scale: Any
    inputs: Any
    command: Any
    out: Any
    grad: Any
    gates: Any
    ungated: Any
    to_gates: Any
    first: Any
    second: Any
    gradient: Any
    to_inputs: Any


@functools.lru_cache(maxsize=256)
def net_of(shape: Shape, batch: int, number: int = 0, to_inputs: bool = False) -> Net:
    """The network for batches of this size. One at a time uses its memory.

    number: of several memories for such batches. to_inputs: ``backward`` goes down to the input.
    """
    widths = np.array(shape.widths)
    rows = widths[:-1] + 1

    def block(size: int) -> Any:
        return np.zeros((size, batch), F)

    inputs = block(int(rows.sum()))
    inputs[rows.cumsum() - 1] = 1
    command = block(shape.command_size + 1)
    command[-1] = 1
    return Net(
        widths=widths,
        slopes=np.array(shape.slopes, F),
        num_gated=shape.num_gated,
        gate_scale=F(shape.gate_scale),
        inputs=inputs,
        command=command,
        out=block(shape.widths[-1]),
        grad=block(shape.widths[-1]),
        gates=block(shape.gates),
        ungated=block(shape.gates),
        to_gates=block(shape.gates),
        first=block(max(shape.widths)),
        second=block(max(shape.widths)),
        gradient=np.zeros(shape.size, F),
        to_inputs=block(shape.widths[0] if to_inputs else 0),
    )


_TANH_LIMIT = F(7.9053111)  # of the approximation below
_TANH_IS_ONE = F(9.02)
_TANH_ABOVE = (
    -2.76076847742355e-16,
    2.00018790482477e-13,
    -8.60467152213735e-11,
    5.12229709037114e-08,
    1.48572235717979e-05,
    6.37261928875436e-04,
    4.89352455891786e-03,
)
_TANH_BELOW = (
    1.19825839466702e-06,
    1.18534705686654e-04,
    2.26843463243900e-03,
    4.89352518554385e-03,
)
"""tanh(x) = x P(x^2) / Q(x^2): coefficients of the Eigen library."""
_P = tuple(map(F, _TANH_ABOVE))
_Q = tuple(map(F, _TANH_BELOW))


@njit(inline="always")
def tanh(x: Any) -> Any:
    """The hyperbolic tangent, as vector instructions."""
    if x > _TANH_IS_ONE:
        return F(1)
    if x < -_TANH_IS_ONE:
        return F(-1)
    x = min(max(x, -_TANH_LIMIT), _TANH_LIMIT)
    s = x * x
    p = (((((_P[0] * s + _P[1]) * s + _P[2]) * s + _P[3]) * s + _P[4]) * s + _P[5]) * s + _P[6]
    return x * p / (((_Q[0] * s + _Q[1]) * s + _Q[2]) * s + _Q[3])


@compiled
def fill(into: Any, rows: Any) -> None:
    """Writes ``rows`` ``[B, I]`` into the first ``I`` rows of ``[.., B]``."""
    batch, size = rows.shape
    for k in range(batch):
        for i in range(size):
            into[i, k] = rows[k, i]


@compiled
def copy_rows(rows: Any, into: Any) -> None:
    """Writes ``rows`` ``[H, B]`` into the first rows of ``[.., B]``."""
    for i in range(len(rows)):
        for k in range(rows.shape[1]):
            into[i, k] = rows[i, k]


@compiled
def forward(params: Any, net: Net) -> None:
    """Computes ``net.out`` from the first rows of ``net.inputs``, and ``net.command``."""
    if net.num_gated:
        _open_gates(params, net)
    column = row = gate = 0
    last = len(net.widths) - 2
    for layer in range(last + 1):
        size, width = net.widths[layer] + 1, net.widths[layer + 1]
        weight = params[column : column + size * width].reshape(size, width)
        x = net.inputs[row : row + size]
        if layer == last:
            np.dot(weight.T, x, net.out)
            return
        column += size * width
        row += size
        z = net.inputs[row : row + width]
        np.dot(weight.T, x, z)
        _activate(z.reshape(-1), net.slopes[layer])
        if layer < net.num_gated:
            _apply_gates(z, net.ungated[gate:], net.gates[gate:])
            gate += width


@compiled
def _open_gates(params: Any, net: Net) -> None:
    size, width = len(net.command), len(net.gates)
    weight = params[len(params) - size * width :].reshape(size, width)
    np.dot(weight.T, net.command, net.gates)
    half, gates = F(0.5) * net.gate_scale, net.gates.reshape(-1)
    for k in range(len(gates)):
        gates[k] = half + half * tanh(F(0.5) * gates[k])  # a sigmoid


@compiled
def _apply_gates(z: Any, ungated: Any, gates: Any) -> None:
    for i in range(len(z)):
        row, before, gate = z[i], ungated[i], gates[i]
        for k in range(len(row)):
            before[k] = row[k]
            row[k] *= gate[k]


@compiled
def _activate(z: Any, slope: Any) -> None:
    if slope < 0:
        for k in range(len(z)):
            z[k] = tanh(z[k])
    else:
        for k in range(len(z)):
            z[k] = max(z[k], slope * z[k])


@compiled
def backward(params: Any, net: Net) -> None:
    """Computes ``net.gradient``, and ``net.to_inputs``, from ``net.grad``, after ``forward``."""
    above, below = net.first, net.second
    copy_rows(net.grad, above)
    column, row, gate = len(params), len(net.inputs), len(net.gates)
    column -= len(net.command) * gate
    for layer in range(len(net.widths) - 2, -1, -1):
        size, width = net.widths[layer] + 1, net.widths[layer + 1]
        column -= size * width
        row -= size
        x = net.inputs[row : row + size]
        if len(net.gradient):
            into = net.gradient[column : column + size * width].reshape(size, width)
            np.dot(x, above[:width].T, into)
        weight = params[column : column + (size - 1) * width].reshape(size - 1, width)
        if layer == 0:
            if len(net.to_inputs):
                np.dot(weight, above[:width], net.to_inputs)
            break
        np.dot(weight, above[:width], below[: size - 1])
        active = x[: size - 1].reshape(-1)
        grad = below[: size - 1].reshape(-1)
        if layer <= net.num_gated:
            gate -= size - 1
            rows = slice(gate, gate + size - 1)
            active = net.ungated[rows].reshape(-1)
            _through_gates(
                grad, active, net.gates[rows].reshape(-1), net.to_gates[rows].reshape(-1)
            )
        _deactivate(grad, active, net.slopes[layer - 1])
        above, below = below, above
    if net.num_gated:
        _close_gates(net)


@compiled
def _through_gates(grad: Any, ungated: Any, gates: Any, to_gates: Any) -> None:
    for k in range(len(grad)):
        to_gates[k] = grad[k] * ungated[k]
        grad[k] *= gates[k]


@compiled
def _deactivate(grad: Any, active: Any, slope: Any) -> None:
    if slope < 0:
        for k in range(len(grad)):
            grad[k] *= F(1) - active[k] * active[k]
    else:
        for k in range(len(grad)):
            grad[k] *= F(1) if active[k] > 0 else slope


@compiled
def _close_gates(net: Net) -> None:
    inverse = F(1) / net.gate_scale
    gates, to_gates = net.gates.reshape(-1), net.to_gates.reshape(-1)
    for k in range(len(gates)):
        to_gates[k] *= gates[k] * (F(1) - gates[k] * inverse)  # the derivative of a sigmoid
    size, width = len(net.command), len(net.gates)
    into = net.gradient[len(net.gradient) - size * width :].reshape(size, width)
    np.dot(net.command, net.to_gates.T, into)


@compiled
def clip(gradient: Any, limit: float) -> None:
    """Scales ``[D]`` down to this 2-norm, as ``torch.nn.utils.clip_grad_norm_`` does."""
    factor = F(limit / (np.sqrt(np.dot(gradient, gradient)) + 1e-6))
    if factor < 1:
        gradient *= factor


class Learner(NamedTuple):
    """Parameters ``[D]`` with what trains them: Adam's moments ``[D]``, its settings, and the
    moving average ``[D]`` that follows the parameters.
    """

    params: Any
    average: Any
    exp_avg: Any
    exp_avg_sq: Any
    rate: float
    beta1: float
    beta2: float
    eps: float
    max_grad_norm: float
    tau: float


@compiled
def adam(learner: Learner, gradient: Any, step: int) -> None:
    """A step of ``torch.optim.Adam``; step: its number, from 1."""
    step_size = F(learner.rate / (1 - learner.beta1**step))
    scale = F(1 / np.sqrt(1 - learner.beta2**step))
    new, new_sq = F(1 - learner.beta1), F(1 - learner.beta2)
    keep_sq, eps = F(learner.beta2), F(learner.eps)
    params, mean, square = learner.params, learner.exp_avg, learner.exp_avg_sq
    for d in range(len(params)):
        mean[d] += new * (gradient[d] - mean[d])
        square[d] = keep_sq * square[d] + new_sq * gradient[d] * gradient[d]
        params[d] -= step_size * mean[d] / (np.sqrt(square[d]) * scale + eps)


@compiled
def follow(average: Any, params: Any, tau: float) -> None:
    """Moves ``average`` ``[D]`` towards ``params`` by ``tau`` of the difference."""
    share = F(tau)
    for d in range(len(params)):
        average[d] += share * (params[d] - average[d])


@compiled
def descend(learner: Learner, gradient: Any, step: int) -> None:
    """What follows a gradient ``[D]``: clipping, Adam's step, from 1, the moving average."""
    clip(gradient, learner.max_grad_norm)
    adam(learner, gradient, step)
    if learner.tau > 0:
        follow(learner.average, learner.params, learner.tau)


class Learners(NamedTuple):
    """A ``Learner`` for each of ``N`` members: blocks ``[N, D]`` with a rate ``[N]`` and a number
    of steps so far ``[N]`` of each.
    """

    params: Any
    average: Any
    exp_avg: Any
    exp_avg_sq: Any
    rate: Any
    steps: Any
    beta1: float
    beta2: float
    eps: float
    max_grad_norm: float
    tau: float


@compiled
def member_descends(learners: Learners, n: int, gradient: Any) -> None:
    """``descend`` of member ``n`` by its gradient ``[D]``."""
    learners.steps[n] += 1
    learner = Learner(
        learners.params[n],
        learners.average[n],
        learners.exp_avg[n],
        learners.exp_avg_sq[n],
        learners.rate[n],
        learners.beta1,
        learners.beta2,
        learners.eps,
        learners.max_grad_norm,
        learners.tau,
    )
    descend(learner, gradient, learners.steps[n])
