"""The commands of ``lightning-rl``: their help, what they stand for, and slips, which are
answered with what was meant.
"""

import pytest
from helpers import ROOT

from lightning_rl.cli import _resumable, main
from lightning_rl.cli.parser import parse


@pytest.mark.parametrize(
    ("command", "words", "mode", "flags"),
    [
        ("train", ["--seed", "3", "--set", "a=1"], "training", ["--seed", "3", "--set", "a=1"]),
        ("tune", ["--tune", "trials=3"], "--use_tune", ["--use_tune", "--tune", "trials=3"]),
        (
            "eval",
            ["a.ckpt", "--episodes", "3", "--command", "sweep"],
            "--eval_agent",
            ["--eval_agent", "a.ckpt", "--eval_episodes", "3", "--eval_command", "sweep"],
        ),
        (
            "eval",
            ["a.ckpt", "--imagine", "--force"],
            "--imagine",
            ["--eval_agent", "a.ckpt", "--imagine", "--force"],
        ),
    ],
)
def test_a_command_means_what_its_flags_mean(command, words, mode, flags):
    assert parse(words, "lightning-rl", command) == parse(flags)
    assert parse(flags)[0].flag == mode


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("trian --seed 3", "command 'trian' is unknown; did you mean 'train'?"),
        ("Runs a", "did you mean 'runs'?"),
        ("eval", "the following arguments are required: CKPT"),
        ("eval nowhere", "checkpoint 'nowhere' does not exist"),
        (
            "eval a.ckpt --seed 3",
            "unrecognized arguments: --seed 3; it goes with tune or train; see --help",
        ),
        (
            "eval a.ckpt --imagine --command return=1",
            "--command goes with eval, not with eval --imagine",
        ),
        ("eval a.ckpt --render human --episodes 3", "--episodes and --render human, which plays"),
        ("train --tune trials=3", "--tune trials=3; it goes with tune"),
        ("tune --num_seeds 3", "--num_seeds 3; it goes with train"),
        ("figures", "the following arguments are required: NAME"),
        ("evaluate transfr", "did you mean 'transfer'?"),
        ("figures curvs out a.csv", "figures 'curvs' is unknown; did you mean 'curves'?"),
        (
            "figures curves ./out a.csv --x env_step",
            "invalid choice: 'env_step'; did you mean 'env_steps'?",
        ),
        (
            "figures phase ./out a.csv --baseline simple-modl",
            "method 'simple-modl' is unknown; did you mean 'simple-model'?",
        ),
        ("proxies transfr out.csv", "proxies 'transfr' is unknown; did you mean 'transfer'?"),
        ("proxies transfer out.csv SE-CartPol-v0 --agents DDQN", "did you mean 'SE-CartPole-v0'?"),
        ("proxies transfer out.csv SE-CartPole-v0 --agents DQNN", "did you mean 'DDQN'?"),
        ("runs . --sort bset", "invalid choice: 'bset'; did you mean 'best'?"),
        ("config RPC-A", "did you mean 'RCP-A'?"),
        (
            "reproduce rcp-a-lunarlandr",
            "claim 'rcp-a-lunarlandr' is unknown; did you mean 'rcp-a-lunarlander'?",
        ),
        ("reproduce --verify rcp-a-lunarlandr", "did you mean 'rcp-a-lunarlander'?"),
        ("eval DDQN-cartpol", "did you mean 'DDQN-cartpole'?"),
        ("film DDQN-cartpol", "did you mean 'DDQN-cartpole'?"),
        ("demo RCP-A-lunarlandr", "did you mean 'RCP-A-lunarlander'?"),
        (
            "eval RCP-A-lunarlander --command retrun=150",
            "unknown name 'retrun'; did you mean 'return'?",
        ),
        (
            "eval RCP-A-lunarlander --episode 3",
            "unrecognized arguments: --episode 3; did you mean --episodes?",
        ),
    ],
)
def test_a_slip_is_answered_with_what_was_meant(words, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [
        f"panflute-3,{name},{seed},100,{seed}" for name in ("ER", "simple-model") for seed in (1, 2)
    ]
    (tmp_path / "a.csv").write_text(
        "\n".join(["gamename,implementation,seed,env_steps,value", *rows])
    )
    code = main(words.split(), "lightning-rl")
    err = capsys.readouterr().err
    assert code == 2
    assert says in err.splitlines()[-1]


def test_what_renders_is_not_resumed():
    assert not _resumable(["--eval_agent=last.ckpt"])
    assert not _resumable(["--eval_agent", "last.ckpt"])
    assert _resumable(["--implementation", "UDRL"])


def test_scalars_and_keys_of_runs_are_suggested(trained, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run = str(trained.parent)
    assert main(["figures", "curves", "out", run, "--tag", "eval/retrun_mean"], "lightning-rl") == 2
    assert (
        "has no scalar 'eval/retrun_mean'; did you mean 'eval/return_mean'?"
        in capsys.readouterr().err
    )
    assert main(["figures", "curves", "out", run, "--group", "learning_rte"], "lightning-rl") == 2
    assert (
        "--group learning_rte: no source has that key; did you mean 'learning_rate'?"
        in capsys.readouterr().err
    )
    assert main(["report", run, "--tag", "eval/retrun_mean"], "lightning-rl") == 2
    assert "no run has that scalar; did you mean 'eval/return_mean'?" in capsys.readouterr().err
    monkeypatch.chdir(ROOT)
    assert main(["claims", "rcp-a-lunarlandr"], "lightning-rl") == 2
    assert (
        "claim 'rcp-a-lunarlandr' is unknown; did you mean 'rcp-a-lunarlander'?"
        in capsys.readouterr().err
    )
