"""What ``--accelerator`` means for each method, and where it is refused."""

import pytest
import torch
from helpers import refused, run_cli

from lightning_rl.methods.registry import IMPLEMENTATIONS
from lightning_rl.run.options import RunOptions, accelerator_of

CPU_ONLY = ("SE", "RN", "SD", "MBRL", "QL", "SARSA", "DDQN", "DuelingDDQN", "TD3", "TD3-discrete", "PPO")


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_auto_takes_a_gpu_where_there_is_one_and_the_method_can_use_it(name, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    means = {asked: accelerator_of(RunOptions(name, "cliff", accelerator=asked)) for asked in ("cpu", "auto")}
    assert means == {"cpu": "cpu", "auto": "cpu" if name in CPU_ONLY else "gpu"}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert accelerator_of(RunOptions(name, "cliff", accelerator="auto")) == "cpu"


def test_a_gpu_for_a_method_that_cannot_use_it_is_refused_before_anything_is_written(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for name, game in (("SE", "cartpole"), ("RN", "cartpole"), ("MBRL", "cartpole"), ("DDQN", "cartpole"), ("QL", "cliff")):
        error = refused(capsys, run_cli(tmp_path, "--accelerator", "gpu", implementation=name, gamename=game))
        assert f"--accelerator gpu: {name} trains on the CPU only, use cpu or auto; on a GPU: UDRL, RCP-R, RCP-A," in error
    assert not list(tmp_path.iterdir())


def test_accelerator_that_is_not_there(capsys, tmp_path):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    assert "--accelerator gpu" in refused(capsys, run_cli(tmp_path, "--accelerator", "gpu"))
