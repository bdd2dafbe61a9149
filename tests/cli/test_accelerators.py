"""What ``--accelerator`` means for each method, and where it is refused."""

import dataclasses

import pytest
import torch
from helpers.runs import refused, run_cli

from lightning_rl.core.errors import UserError
from lightning_rl.methods.registry import IMPLEMENTATIONS
from lightning_rl.run.options import RunOptions
from lightning_rl.run.run_config import accelerator_of, run_config

AUTO_GPU = (
    "UDRL",
    "RCP-R",
    "RCP-A",
    "REINFORCE",
    "REINFORCE-baseline",
    "REINFORCE-entropy",
    "REINFORCE-combined",
    "AAC",
)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_auto_takes_a_gpu_where_there_is_one_and_the_method_is_known_to_run_there(
    name, monkeypatch
):
    asked = [
        RunOptions(name, "cartpole", accelerator=accelerator)
        for accelerator in ("cpu", "auto", "gpu")
    ]
    config = (
        run_config(asked[0])
        if name not in ("QL", "SARSA")
        else run_config(RunOptions(name, "cliff"))
    )
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert [accelerator_of(each, config) for each in asked] == [
        "cpu",
        "gpu" if name in AUTO_GPU else "cpu",
        "gpu",
    ]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert accelerator_of(asked[1], config) == "cpu"


@pytest.mark.parametrize(
    ("name", "flags", "says"),
    [
        (
            "RN",
            ("--num_workers", "2"),
            "--num_workers 2 would evaluate in processes that cannot share it; use 1, or",
        ),
        (
            "SD",
            ("--executor", "ray"),
            "--executor ray evaluates on CPUs; use serial, or --accelerator cpu",
        ),
    ],
)
def test_a_gpu_for_what_cannot_use_it_is_refused_before_anything_is_written(
    name, flags, says, capsys, tmp_path, monkeypatch
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    error = refused(
        capsys,
        run_cli(tmp_path, "--accelerator", "gpu", *flags, implementation=name, gamename="cartpole"),
    )
    assert f"--accelerator gpu: {says}" in error
    assert not list(tmp_path.iterdir())


def test_accelerator_that_is_not_there(capsys, tmp_path):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    assert "--accelerator gpu" in refused(capsys, run_cli(tmp_path, "--accelerator", "gpu"))


@pytest.mark.parametrize("accelerator", ["cpu", "auto"])
def test_what_only_a_gpu_does_is_refused_elsewhere_but_to_a_run_that_goes_on_there(
    accelerator, monkeypatch
):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    options = RunOptions("ER", "procmaze", settings={"cuda_graphs": True}, accelerator=accelerator)
    config = run_config(options)
    says = (
        f"--accelerator {accelerator}: cuda_graphs=true records what a GPU does; leave it out, "
        "or --accelerator gpu"
    )
    with pytest.raises(UserError, match=says):
        accelerator_of(options, config)
    assert accelerator_of(dataclasses.replace(options, resume=True), config) == "cpu"
    assert accelerator_of(dataclasses.replace(options, accelerator="gpu"), config) == "gpu"
