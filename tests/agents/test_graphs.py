"""What a CUDA graph does is done here by a stand-in on the CPU: it repeats operations on the
places in memory that they had.
"""

import copy

import pytest
import torch
from helpers.model_based import KINDS, config
from torch.utils._python_dispatch import TorchDispatchMode

from lightning_rl.agents import graphs
from lightning_rl.agents.model_based import ModelBasedDQN
from lightning_rl.core.errors import UserError
from lightning_rl.envs.panflute import PanFlute
from lightning_rl.methods.model_based import StepTraining
from lightning_rl.run.options import RunOptions
from lightning_rl.run.run_config import run_config


class Tape(TorchDispatchMode):
    """Keeps the operations that were done, with the tensors that they read and wrote. Numbers of
    Python's are what they were.
    """

    def __init__(self):
        super().__init__()
        self.done = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.done.append((func, args, kwargs or {}, result))
        return result

    def play(self):
        for func, args, kwargs, result in self.done:
            again = func(*args, **kwargs)
            pairs = (
                zip(result, again, strict=True)
                if isinstance(result, tuple | list)
                else [(result, again)]
            )
            for old, new in pairs:
                if isinstance(old, torch.Tensor) and old.data_ptr() != new.data_ptr():
                    old.copy_(new)


@pytest.fixture
def replays(monkeypatch):
    """How often each recording was replayed. A recording is made by doing it: its first replay
    has been done.
    """
    counts = []

    def recorded(function):
        with Tape() as tape:
            result = function()
        number = len(counts)
        counts.append(0)

        def replay():
            if counts[number]:
                tape.play()
            counts[number] += 1

        return replay, result

    monkeypatch.setattr(graphs, "recorded", recorded)
    monkeypatch.setattr(graphs, "can_record", lambda place: True)
    return counts


def trained(kind, steps, **changes):
    agent = ModelBasedDQN(config(kind, **changes), PanFlute(3), [0, 1])
    StepTraining(agent).run(steps)
    return agent


def check_same(agent, other):
    assert agent.rows().keys() == other.rows().keys()
    for name, value in agent.rows().items():
        torch.testing.assert_close(value, other.rows()[name], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(agent.memory().snapshot(), other.memory().snapshot())


@pytest.mark.parametrize(
    ("kind", "changes"),
    [*((kind, {}) for kind in KINDS), ("simple", {"updates_per_step": 3})],
)
def test_replayed_updates_are_the_updates(kind, changes, replays):
    """Of a memory that fills and turns over, through several blocks of noise and target
    networks.
    """
    agent = trained(kind, 150, cuda_graphs=True, **changes)
    assert len(replays) == 2
    assert min(replays) > 120
    check_same(agent, trained(kind, 150, **changes))


def test_what_has_moved_is_recorded_anew(replays):
    agent, other = (
        ModelBasedDQN(config("simple", cuda_graphs=on), PanFlute(3), [0, 1]) for on in (True, False)
    )
    for each in (agent, other):
        training = StepTraining(each)
        training.run(30)
        each.load_rows({name: value.clone() for name, value in each.rows().items()})
        training.run(30)
        each.memory().data = {name: value.clone() for name, value in each.memory().data.items()}
        training.run(30)
    assert len(replays) == 6
    check_same(agent, other)


def test_gradients_and_buffers_that_have_moved_are_noticed(replays):
    agent = trained("simple", 30)
    nothing = graphs.Graphed(lambda number: torch.zeros(()), [], agent)
    recordings = []
    for part, name in ((agent, ""), (agent.online.params, "grad"), (agent, "losses")):
        if name:
            setattr(part, name, getattr(part, name).clone())
        nothing(0)
        nothing(0)
        recordings.append(len(replays))
    assert recordings == [1, 2, 3]


def test_inputs_are_read_where_they_are(replays):
    total = graphs.Graphed(lambda number, x: x.sum(), [], trained("simple", 1))
    inputs = [torch.full((3,), float(value)) for value in range(4)]
    assert [float(total(0, each)) for each in inputs for _ in range(2)] == [0, 0, 3, 3, 6, 6, 9, 9]
    inputs[3].fill_(5)
    assert float(total(0, inputs[3])) == 15
    assert replays == [1, 1, 1, 2]


def test_a_copy_records_for_itself(replays):
    agent = trained("simple", 30, cuda_graphs=True)
    twin = copy.deepcopy(agent)
    assert [part._replay for part in (twin.draw, twin.value_gradient)] == [
        None,
        None,
    ]  # a graph cannot be copied
    assert len(replays) == 2
    for number in range(10, 15):
        for each in (agent, twin):
            each.update(number, each.optimizers())
    assert len(replays) == 4
    check_same(agent, twin)


def test_what_cannot_be_recorded_is_said(replays, monkeypatch):
    def refused(function):
        raise RuntimeError("operation not permitted when stream is capturing\nmore")

    monkeypatch.setattr(graphs, "recorded", refused)
    with pytest.raises(UserError) as error:
        trained("environment", 30, cuda_graphs=True)
    expected = (
        "cuda_graphs=true: an update cannot be recorded (operation not permitted when "
        "stream is capturing); leave it out"
    )
    assert str(error.value) == expected


def test_a_cpu_records_nothing(monkeypatch):
    monkeypatch.setattr(graphs, "recorded", lambda function: pytest.fail("recorded"))
    check_same(trained("simple", 40, cuda_graphs=True), trained("simple", 40))


def test_warm_up_cannot_be_recorded():
    with pytest.raises(UserError, match=r"cuda_graphs.*leave one of them out"):
        run_config(
            RunOptions("simple-model", "procmaze", settings={"cuda_graphs": True, "warm_up": 100})
        )
