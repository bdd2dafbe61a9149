"""An evaluation that is played beside training is the one that training would have waited for."""

import os

import pytest
import torch
from helpers.budgets import tiny_settings
from helpers.runs import Killed
from pytorch_lightning import Callback

import lightning_rl
from lightning_rl.lab.scalars import read_scalar
from lightning_rl.methods.upside_down.method import UDRL
from lightning_rl.methods.upside_down.rollouts import UpsideDownRollouts
from lightning_rl.rollouts.collected import warm_up_requests

TAGS = ("eval/return_mean", "eval_greedy/return_max", "time/eval_env_steps")
SETTINGS = {"eval_interval": 2, "checkpoint_interval": 5}


def outcome(implementation, logdir, **options):
    """What a run leaves of its evaluations."""
    options = {**tiny_settings(implementation), **SETTINGS, "num_workers": 0, **options}
    run = lightning_rl.train(implementation, "cartpole", logdir=logdir, **options)
    curves = [read_scalar(run.path, tag) for tag in TAGS]
    (best,) = run.path.glob("epoch=*.ckpt")
    best, last = (torch.load(file, weights_only=True) for file in (best, run.path / "last.ckpt"))
    return {
        "curves": [[curve.env_steps.tolist(), curve.value.tolist()] for curve in curves],
        "best": [best[key] for key in ("epoch", "global_step", "eval/return_mean")],
        "weights of the best": digest(best),
        "weights of the last": digest(last),
        "metrics": run.metrics,
    }


def digest(checkpoint):
    return {name: value.tolist() for name, value in checkpoint["state_dict"].items()}


@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("end", [{"max_epochs": 9}, {"max_env_steps": 700}])
@pytest.mark.parametrize("implementation", ["UDRL", "RCP-A", "AAC"])
def test_it_leaves_what_one_leaves_that_training_waits_for(
    tmp_path, implementation, end, num_workers
):
    waited = outcome(implementation, tmp_path / "waited", callbacks=[Callback()], **end)
    beside = outcome(implementation, tmp_path / "beside", num_workers=num_workers, **end)
    assert beside == waited
    assert len(waited["curves"][0][0]) > 2


def test_it_is_taken_up_before_the_next_one_and_before_a_checkpoint(tmp_path, monkeypatch):
    taken, finish = [], UpsideDownRollouts.finish_playing

    def noted(data):
        taken.append(data.method.current_epoch)
        return finish(data)

    monkeypatch.setattr(UpsideDownRollouts, "finish_playing", noted)
    outcome("UDRL", tmp_path, max_epochs=9)
    assert taken == [3, 4, 7, 8]  # of epochs 1, 3, 5, 7
    taken.clear()
    outcome("UDRL", tmp_path, max_epochs=9, exp_name="waits", stop_return=1e6)
    assert taken == [1, 3, 5, 7]


def test_training_goes_first_where_cores_are_too_few_and_evaluation_last():
    data = UDRL("cartpole").rollouts(num_workers=1)
    policy, niceness = data.method.policy.state_dict(), [os.getpriority(os.PRIO_PROCESS, 0)]
    for collector in (data.collector, data.evaluator):
        collector.collect(warm_up_requests(0, 1), policy, 0)
        (worker,) = collector._loader._iterator._workers
        niceness.append(os.getpriority(os.PRIO_PROCESS, worker.pid))
    data.close()
    assert niceness[0] < niceness[1] < niceness[2]


def test_a_run_that_is_killed_meanwhile_and_resumed_is_the_one_that_was_not(tmp_path, monkeypatch):
    whole = outcome("UDRL", tmp_path / "whole", max_epochs=9)
    make_batch = UpsideDownRollouts.make_batch

    def is_killed(data, epoch, *args):
        if epoch == 6:
            assert data.evaluating  # of epoch 5; last.ckpt is of epoch 4
            raise Killed
        return make_batch(data, epoch, *args)

    monkeypatch.setattr(UpsideDownRollouts, "make_batch", is_killed)
    with pytest.raises(Killed):
        outcome("UDRL", tmp_path / "parts", max_epochs=9)
    monkeypatch.undo()
    assert outcome("UDRL", tmp_path / "parts", max_epochs=9, resume=True) == whole
