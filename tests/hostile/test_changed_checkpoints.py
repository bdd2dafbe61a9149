"""A checkpoint that is not whole, or of another run, is refused in one line before anything of
it is used.
"""

import copy
import os
import pickle
import shutil

import pytest
import torch
import yaml
from helpers.runs import refused, run_cli, run_dir, train_cli

from lightning_rl.cli import main
from lightning_rl.envs.proxies import proxy_path

NAN = float("nan")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished run of two epochs, and what its last.ckpt holds."""
    logdir = tmp_path_factory.mktemp("finished")
    train_cli(logdir, 2, checkpoint_interval=1)
    return logdir, torch.load(run_dir(logdir) / "last.ckpt", weights_only=True)


def changed(content, path, value):
    """A copy of the content with ``value`` at ``path``; None takes away."""
    content = copy.deepcopy(content)
    *way, key = path
    place = content
    for step in way:
        place = place[step]
    if value is None:
        del place[key]
    else:
        place[key] = value
    return content


OPTIMIZER = ("optimizer_states", 1)
EXPERIENCE = ("UpsideDownRollouts",)
BIAS = "policy.net.net.body.2.bias"
BATCHES = ("loops", "fit_loop", "epoch_loop.batch_progress", "total")
CHANGES = [
    ((*OPTIMIZER, "state", 0, "exp_avg"), torch.zeros(3), "[1].state[0].exp_avg: float32 [3]"),
    ((*OPTIMIZER, "state", 0, "exp_avg"), None, "optimizer_states[1].state[0]: lacks exp_avg"),
    ((*OPTIMIZER, "state", 0, "step"), torch.tensor(NAN), "state.0.step: 1 of 1 numbers are NaN"),
    ((*OPTIMIZER, "state", 0, "step"), torch.tensor(-2.0), "state[0].step: -2, expected 0 or more"),
    ((*OPTIMIZER, "state", 0, "exp_avg_sq"), torch.full((8, 4), -1e-9), "exp_avg_sq: -1e-09, exp"),
    (("pytorch-lightning_version",), "9.9", "of Lightning 9.9"),
    (("global_step",), 10**30, "global_step: 1000"),
    ((*OPTIMIZER, "param_groups", 0, "lr"), "x", "param_groups[0].lr: 'x'"),
    ((*OPTIMIZER, "param_groups", 0, "amsgrad"), True, "lacks 'max_exp_avg_sq'"),
    (("optimizer_states",), None, "has weights alone, by which nothing is resumed"),
    (("state_dict", BIAS), torch.full((2,), NAN), "net.net.body.2.bias: 2 of 2 numbers are NaN"),
    (("state_dict", BIAS), torch.zeros(9), f"size mismatch for {BIAS}"),
    (("state_dict", BIAS), None, f'Missing key(s) in state_dict: "{BIAS}"'),
    (
        ("state_dict", "env_steps"),
        torch.tensor(-5),
        "state_dict.env_steps: expected numbers from 0",
    ),
    (("loops",), {}, "lacks 'fit_loop'"),
    ((*BATCHES, "started"), "x", "batch_progress.total.started: 'x'"),
    (("epoch",), -1, "epoch: -1"),
    (("epoch",), NAN, "epoch: nan"),
    (("callbacks",), "x", "callbacks: 'x'"),
    (("callbacks",), None, "lacks 'callbacks'"),
    (EXPERIENCE, None, "lacks 'UpsideDownRollouts'"),
    ((*EXPERIENCE, "epoch"), -1, "UpsideDownRollouts.epoch: -1, expected a whole number"),
    ((*EXPERIENCE, "buffer", "lengths"), [1] * 8, "split_sizes"),
    ((*EXPERIENCE, "buffer", "reward"), torch.zeros(0), "buffer.obs: float32"),
    ((*EXPERIENCE, "commands"), [], "commands: none"),
    ((*EXPERIENCE, "commands"), [(1.0,)], "commands: (1.0,), expected 2 numbers"),
    ((*EXPERIENCE, "behaviour", "net.net.body.2.bias"), torch.zeros(9), "net.net.body.2.bias"),
    (("hyper_parameters",), 3, "hyper_parameters: 3, expected a dict"),
    (("hyper_parameters", "config"), [1], "hyper_parameters.config: a list of 1, expected a dict"),
    (("hyper_parameters", "config", "batch_size"), torch.ones(2), "hyper_parameters.config"),
    (("hyper_parameters", "seed"), 26, "is of seed 26, this run's is 25"),
]


@pytest.mark.parametrize(
    ("path", "value", "named"),
    CHANGES,
    ids=lambda v: None if isinstance(v, torch.Tensor) else str(v)[:60],
)
def test_resume_refuses_a_changed_checkpoint_and_leaves_the_run_finished(
    finished, tmp_path, capsys, path, value, named
):
    logdir, content = finished
    shutil.copytree(logdir, tmp_path, dirs_exist_ok=True)
    folder = run_dir(tmp_path)
    torch.save(changed(content, path, value), folder / "last.ckpt")
    record, events = (folder / "config.yaml").read_bytes(), sorted((folder / "logger").rglob("*"))
    assert run_cli(tmp_path, "--max_epochs", "3", "--resume", checkpoint_interval=1) == 2
    error = capsys.readouterr().err
    assert named in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert yaml.safe_load((folder / "state.yaml").read_text()) == {"state": "finished"}
    assert (folder / "config.yaml").read_bytes() == record
    assert sorted((folder / "logger").rglob("*")) == events


FRAMES = "UpsideDownRollouts", "buffer", "obs"
MEMORY = "AgentRollouts", "memory"
OF_IMAGES = {
    "UDRL": [
        (FRAMES, torch.zeros(3, 576), "buffer.obs: float32"),
        (FRAMES, torch.zeros(3, 575, dtype=torch.uint8), "buffer.obs: uint8 [3, 575]"),
    ],
    "DDQN": [
        ((*MEMORY, "frame"), torch.zeros(1, 2, 576, dtype=torch.uint8), "frame [1, 2, 576]"),
        ((*MEMORY, "next_frame"), torch.full((1, 20, 576), NAN), "next_frame"),
        ((*MEMORY, "past"), None, "past"),
        ((*MEMORY, "age"), torch.tensor([-3]), "age [-3]"),
        ((*MEMORY, "action"), torch.full((1, 20, 1), 9), "an action that is none of 0 to 3"),
    ],
    "PPO": [
        (("state_dict", "agent.images.frame"), torch.zeros(1, 3, 576), "agent.images.frame"),
        (("state_dict", "agent.images.next_frame"), None, "agent.images.next_frame"),
    ],
}


@pytest.mark.parametrize("name", OF_IMAGES)
def test_a_changed_checkpoint_of_images_is_refused_in_one_line(name, tmp_path, capsys):
    run = {"implementation": name, "gamename": "square", "frame_stack": 2}
    run |= {} if name == "UDRL" else {"steps_per_epoch": 20}
    assert run_cli(tmp_path, "--max_epochs", "1", **run) == 0
    path = run_dir(tmp_path, "square", implementation=name) / "last.ckpt"
    content = torch.load(path, weights_only=True)
    capsys.readouterr()
    for way, value, named in OF_IMAGES[name]:
        torch.save(changed(content, way, value), path)
        line = refused(capsys, run_cli(tmp_path, "--resume", "--max_epochs", "2", **run))
        assert named in line


def test_a_checkpoint_of_another_seed_is_refused_with_the_remedy(finished, tmp_path, capsys):
    logdir, _ = finished
    shutil.copytree(run_dir(logdir), run_dir(tmp_path, seed=77))
    assert (
        run_cli(tmp_path, "--seed", "77", "--max_epochs", "3", "--resume", checkpoint_interval=1)
        == 2
    )
    error = capsys.readouterr().err
    assert (
        "is of seed 25, this run's is 77; move it back to seed_25, or start anew from its weights "
        "with --reload" in error
    )


class Payload:
    """Unpickling this would create a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.system, (f"touch {self.path}",))


BAD = {
    "short": "truncated or not a checkpoint",
    "empty": "truncated or not a checkpoint (0 bytes)",
    "bare": "truncated or not a checkpoint",
    "evil": "objects other than plain data and was refused",
    "foreign": "was not written by lightning_rl",
    "flipped": "is damaged",
    "proxy": "is a proxy, not an agent; lightning-rl proxies transfer (clones for SD) trains",
}


@pytest.mark.parametrize("flag", ["--eval_agent", "--reload"])
def test_files_that_are_no_whole_checkpoints(flag, finished, tmp_path, capsys):
    logdir, content = finished
    whole = (run_dir(logdir) / "last.ckpt").read_bytes()
    files = {name: tmp_path / f"{name}.ckpt" for name in BAD}
    files["short"].write_bytes(whole[: len(whole) // 2])
    files["empty"].write_bytes(b"")
    files["bare"].write_bytes(pickle.dumps(Payload(tmp_path / "ran")))
    payload = {"state_dict": Payload(tmp_path / "ran"), "hyper_parameters": {}}
    torch.save(payload, files["evil"])
    torch.save({"state_dict": {}}, files["foreign"])
    shutil.copy(proxy_path("SD-CartPole-v1"), files["proxy"])
    changed = bytearray(whole)
    weight = content["state_dict"]["policy.net.net.embed_obs.weight"]
    changed[whole.index(weight.numpy().tobytes())] ^= 0xFF
    files["flipped"].write_bytes(bytes(changed))
    for name, path in files.items():
        words = [flag, str(path)]
        code = main(words) if flag == "--eval_agent" else run_cli(tmp_path / "exp", *words)
        line = refused(capsys, code)
        assert BAD[name] in line, (name, line)
        assert path.name in line
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "flags", [["--eval_agent"], ["--imagine", "--eval_agent"], ["--max_epochs", "1", "--reload"]]
)
def test_weights_that_are_not_numbers_are_refused_by_name(finished, tmp_path, capsys, flags):
    _, content = finished
    bad = tmp_path / "bad.ckpt"
    torch.save(changed(content, ("state_dict", BIAS), torch.tensor([0.0, NAN])), bad)
    where = [
        "--logdir",
        str(tmp_path),
        *"--gamename cartpole --num_workers 0 --set=hidden=[8,8]".split(),
    ]
    assert main([*(where if "--reload" in flags else []), *flags, str(bad)]) == 2
    assert "net.net.body.2.bias: 1 of 2 numbers are NaN or infinite" in capsys.readouterr().err


def test_a_config_of_larger_networks_than_the_file_can_hold_builds_none(finished, tmp_path, capsys):
    _, content = finished
    bad = tmp_path / "bad.ckpt"
    torch.save(changed(content, ("hyper_parameters", "config", "hidden"), [50_000, 50_000]), bad)
    assert main(["--eval_agent", str(bad)]) == 2
    assert (
        "hidden [50000, 50000] makes 2,500,000,000 weights, its file has room for"
        in capsys.readouterr().err
    )
