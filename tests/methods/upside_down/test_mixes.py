"""Parts of UDRL, RCP-R and RCP-A mix by keys: what is new in a mix by hand, that mixes train and
resume, and what is refused.
"""

import functools

import numpy as np
import pytest
import torch
import yaml
from helpers import methods
from helpers.budgets import tiny_settings
from helpers.methods import attach
from helpers.toys import make_episode
from torch import nn

import lightning_rl as lrl
from lightning_rl.cli import main
from lightning_rl.core.errors import UserError
from lightning_rl.methods.registry import IMPLEMENTATIONS
from lightning_rl.methods.upside_down.rollouts import UpsideDownEpoch
from lightning_rl.rollouts.episode_buffer import flatten

CLASSES = {"UDRL": lrl.UDRL, "RCP-R": lrl.RCPR, "RCP-A": lrl.RCPA}
REWARDS = [[1.0, 2.0, 4.0], [8.0]]
MIXES = {
    "UDRL with the weights of RCP": ("UDRL", {"weights": "return_to_go"}),
    "UDRL weighted by advantages": (
        "UDRL",
        {"weights": "advantage", "critic_hidden": [8], "num_critic_updates_per_iter": 2},
    ),
    "UDRL asked for a return alone": ("UDRL", {"command": "return", "segments": "trailing"}),
    "UDRL on standardised commands, averaged": (
        "UDRL",
        {"standardise": True, "tau": 0.1, "network": "layers"},
    ),
    "UDRL with a tilted target": ("UDRL", {"target": "tilted", "target_labels": "episode"}),
    "RCP-R on the best": ("RCP-R", {"buffer": "best", "replay_size": 10}),
    "RCP-R asked as UDRL is": (
        "RCP-R",
        {
            "command": "return_horizon",
            "command_rule": "decrease",
            "target": "range",
            "target_labels": "best",
            "segments": "any",
        },
    ),
    "RCP-R on both, by episodes": (
        "RCP-R",
        {"buffer": "both", "steps_per_iter": None, "num_episodes_per_iter": 4},
    ),
    "RCP-A by a gated network, unweighted": (
        "RCP-A",
        {"network": "gated", "weights": "none", "target": "quantile"},
    ),
    "RCP-A asked for what is owed": (
        "RCP-A",
        {
            "command": "owed",
            "command_rule": "decrease",
            "target": "between",
            "target_labels": "episode",
            "lowest": 0.0,
        },
    ),
    "RCP-A on returns with held-out episodes": (
        "RCP-A",
        {"command": "return", "num_held_out_episodes_per_iter": 1},
    ),
}


def build(name, **settings):
    method = methods.build(name, **settings)
    attach(method)
    return method


def epoch_of(rewards):
    flat = flatten([make_episode(r) for r in rewards])
    index = {name: torch.arange(len(flat)).repeat(2, 1) for name in ("policy", "critic")}
    return UpsideDownEpoch(flat, index, None, None, 9, len(rewards), 0, {})


def seen_by_updates(method, batch):
    """What the first update of the policy is given."""
    seen = []
    method.update = lambda *example: seen.append(example) or torch.zeros(())
    method.train_epoch(batch)
    return seen[0]


@pytest.mark.parametrize("mix", MIXES)
def test_mixes_train_and_resume(mix, tmp_path):
    name, mixed = MIXES[mix]
    settings = {
        **tiny_settings(name),
        **mixed,
        "logdir": tmp_path,
        "num_workers": 0,
        "resume": True,
    }
    if mixed.get("buffer") == "best":
        del settings["window_steps"]
    for folder, stops in (("once", [3]), ("twice", [2, 3])):
        for epochs in stops:
            lrl.train(
                name, "cartpole", exp_name=folder, max_epochs=epochs, logger=False, **settings
            )
    once, twice = (
        torch.load(path, weights_only=True)["state_dict"]
        for path in sorted(tmp_path.rglob("last.ckpt"))
    )
    assert all(torch.equal(once[key], twice[key]) for key in once)


def test_weights_of_udrl_by_hand():
    """Undiscounted returns-to-go 7, 6, 4, 8 stand in the command, and their exponentials weigh
    the steps.
    """
    _, command, _, weight = seen_by_updates(
        build("UDRL", weights="return_to_go", temperature=2.0), epoch_of(REWARDS)
    )
    assert command.tolist() == [[7.0, 3.0], [6.0, 2.0], [4.0, 1.0], [8.0, 1.0]]
    to_go = np.array([7.0, 6.0, 4.0, 8.0])
    expected = np.exp((to_go - to_go.mean()) / (to_go.std() + 1e-5) / 2)
    assert weight.tolist() == pytest.approx((expected / expected.mean()).tolist(), rel=1e-5)
    assert len(seen_by_updates(build("UDRL"), epoch_of(REWARDS))) == 3


def test_a_discounted_command_and_whole_returns_as_weights_by_hand():
    method = build("RCP-R", command="return", gamma=0.5, weights="episode_return", temperature=1.0)
    _, command, _, weight = seen_by_updates(method, epoch_of(REWARDS))
    assert command.tolist() == [[3.0], [4.0], [4.0], [8.0]]
    returns = np.array([7.0, 7.0, 7.0, 8.0])
    expected = np.exp((returns - returns.mean()) / (returns.std() + 1e-5))
    assert weight.tolist() == pytest.approx((expected / expected.mean()).tolist(), rel=1e-5)


def test_returns_of_udrl_in_standard_deviations_by_hand():
    """Of commands (7, 3), (6, 2), (4, 1), (8, 1): means 6.25 and 1.75."""
    method = build("UDRL", standardise=True)
    _, command, _ = seen_by_updates(method, epoch_of(REWARDS))
    net = method.policy.net
    torch.testing.assert_close(net.scaled(command).mean(0), torch.zeros(2), atol=1e-6, rtol=0)
    torch.testing.assert_close(
        net.scaled(command).std(0, correction=0), torch.ones(2), atol=1e-4, rtol=0
    )
    assert net.shift.tolist() == [6.25, 1.75]


def test_a_tilted_target_keeps_the_horizon_of_the_best_by_hand():
    """Labels of first steps 7 and 8, weighted by exp(z); the best two episodes last 3 and 1
    steps.
    """
    method = build(
        "UDRL", target="tilted", target_labels="episode", target_temperature=1.0, last_few=2
    )
    data = method.rollouts()
    data.store_episodes(0, [make_episode(r) for r in REWARDS])
    seen_by_updates(method, epoch_of(REWARDS))
    share = 1 / (1 + np.exp(-2.0))
    assert method.first_command() == pytest.approx((7 + share, 2.0), abs=1e-4)
    assert {command[1] for command in method.target.draw(np.random.default_rng(0), 5)} == {2.0}
    assert set(method.probe_commands()) == {"eval_low", "eval_high"}


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("UDRL", {"num_episodes_per_iter": None}, "set one, the other to null"),
        ("RCP-R", {"num_episodes_per_iter": 3}, "set one, the other to null"),
        (
            "UDRL",
            {"buffer": "newest"},
            "buffer newest has no limit; set recent_episodes or window_steps",
        ),
        (
            "RCP-R",
            {"segments": "any"},
            "command return has no fulfilled_within, or is in_deviations; set segments=trailing",
        ),
        ("RCP-A", {"num_held_out_episodes_per_iter": 1}, "set num_held_out_episodes_per_iter=0"),
        (
            "RCP-A",
            {"command_rule": "decrease"},
            "advantage is not used up by rewards; set command_rule=hold",
        ),
        (
            "UDRL",
            {"command_draw": "step"},
            "command_draw step is for commands of one number that are held",
        ),
        (
            "RCP-R",
            {"command_draw": "step", "target": "range"},
            "with normal noise around labels of steps",
        ),
        (
            "RCP-R",
            {"target_labels": "best"},
            "which command return does not ask for; set target_labels=buffer",
        ),
        (
            "UDRL",
            {"command": "return", "gamma": 0.99, "segments": "trailing"},
            "which command return does not ask for; set target_labels=episode",
        ),
        (
            "RCP-R",
            {"standardise": False},
            "command_limit 5.0 is of standardised commands; set command_limit=.inf as well",
        ),
        (
            "RCP-A",
            {"critic_hidden": None},
            r"advantages need a critic; set critic_hidden=\[128, 64\]",
        ),
        (
            "UDRL",
            {"gae_lambda": 0.5},
            "nothing reads it; set command=advantage.owed.value or weights=advantage",
        ),
        (
            "RCP-R",
            {"gae_lambda": 0.5},
            "set command=advantage.owed.value or weights=advantage as well",
        ),
        ("UDRL", {"preset": "weighted", "gae_lambda": 0.5}, "nothing reads it"),
        ("UDRL", {"gae_lambda": 0.5, "weights": "return_to_go"}, "nothing reads it"),
        (
            "UDRL",
            {"critic_hidden": [8]},
            "nothing reads it; set command=advantage.owed.value or weights=advantage",
        ),
        (
            "UDRL",
            {"gamma": 0.5},
            "set command=return.advantage.owed.value or weights=return_to_go.advantage.fitted",
        ),
        (
            "RCP-R",
            {"last_few": 5},
            "set target_labels=best or command=return_horizon|survival as well",
        ),
        ("RCP-A", {"last_few": 5}, "nothing reads it"),
        ("RCP-R", {"target": "between"}, "between asks for returns of whole episodes"),
        (
            "RCP-R",
            {"max_return": 5.0},
            "commands are not clipped to it; set target=range, of returns of whole episodes, or",
        ),
        ("RCP-A", {"max_return": 5.0, "target": "range"}, "commands are not clipped to it"),
        ("RCP-A", {"max_return": 5.0}, "commands are not clipped to it"),
        (
            "UDRL",
            {"temperature": 2.0},
            "set weights=return_to_go.episode_return.advantage",
        ),
        ("UDRL", {"label_max": 5.0}, "nothing reads it; set command=return"),
        (
            "UDRL",
            {"recent_episodes": 5},
            "set buffer=newest.both as well",
        ),
        ("RCP-A", {"replay_size": 5}, "set buffer=best.both as well"),
        ("UDRL", {"condition": False, "guidance": 1.0}, "nothing reads it; set condition=True"),
        (
            "RCP-A",
            {"horizon_scale": 0.1},
            "commands are standardised; set standardise=false as well",
        ),
    ],
)
def test_what_does_not_go_together_is_refused_with_the_remedy(name, settings, words):
    with pytest.raises(UserError, match=words):
        CLASSES[name]("cartpole", **settings)


@pytest.mark.parametrize(
    ("name", "settings", "limited"),
    [
        ("UDRL", {}, True),
        ("UDRL", {"target_labels": "episode"}, True),
        ("UDRL", {"target_labels": "step", "command_rule": "hold"}, False),
        ("RCP-R", {"target": "range", "target_labels": "episode", "gamma": 1.0}, True),
        ("RCP-R", {"target": "range", "target_labels": "episode"}, False),
        ("RCP-R", {"target": "range"}, False),
        ("RCP-A", {"target": "range"}, False),
    ],
)
def test_the_highest_return_limits_returns_of_whole_episodes_alone(name, settings, limited):
    """Pendulum returns 0 at most: an advantage is more as often as less, and the rest of an
    episode may return more than all.
    """
    method = CLASSES[name]("pendulum", **settings)
    method.target.fit(torch.tensor([-3.0, 1.0, 5.0]))
    mean, sd, *_ = method.target.numbers.tolist()
    assert (mean, sd) == ((0.0, 0.0) if limited else pytest.approx((1.0, 3.266), abs=1e-3))


def test_commands_that_are_not_standardised_are_not_cut():
    net = CLASSES["RCP-R"]("lunarlander", standardise=False, command_limit=float("inf")).policy.net
    assert net.scaled(torch.tensor([[-20.0], [200.0]])).tolist() == [[-20.0], [200.0]]
    assert CLASSES["RCP-R"]("lunarlander").policy.net.scaled(
        torch.tensor([[-20.0], [200.0]])
    ).tolist() == [[-5.0], [5.0]]


def test_weights_that_were_taken_over_are_asked_for_what_is_usual_for_them():
    """Until there are labels: 0 would be 2 deviations below what they were trained on."""
    method, other = (CLASSES["RCP-R"]("lunarlander", seed=seed) for seed in (0, 1))
    other.policy.net.shift.fill_(100.0)
    method.adopt(other.policy.state_dict())
    assert method.first_command() == (100.0,)
    assert method.target.draw(np.random.default_rng(0), 2) == [(100.0,)] * 2


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("UDRL", {"gamma": 0.5, "weights": "return_to_go"}),
        ("UDRL", {"preset": "weighted", "gamma": 0.5, "critic_hidden": [8]}),
        ("UDRL", {"weights": "advantage", "gae_lambda": 0.5}),
        ("UDRL", {"last_few": 5, "max_return": 9.0}),
        ("UDRL", {"critic_hidden": None}),
        ("RCP-A", {"gae_lambda": 0.5}),
        ("RCP-R", {"command_rule": "decrease", "target_labels": "episode", "max_return": 9.0}),
    ],
)
def test_what_makes_a_difference_is_taken(name, settings):
    assert CLASSES[name]("cartpole", **settings).cfg


class Own(nn.Module):
    """A network of a user's: obs and the scaled command side by side."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4 + 2, 2)

    def forward(self, obs, command):
        return self.layer(torch.cat([obs, command], dim=-1))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "UDRL",
            "networks: command=return_horizon, weights=none has no critic; set command=advantage "
            "or weights=fitted_advantage",
        ),
        ("REINFORCE", "networks: baseline=none has no critic; set baseline=critic or leave it out"),
    ],
)
def test_a_critic_that_would_not_be_used_is_refused(name, words):
    with pytest.raises(UserError, match=words):
        IMPLEMENTATIONS[name]("cartpole", implementation=name, networks={"critic": nn.Linear(4, 1)})


def own_settings(name, **others):
    """Of short runs with an own policy, and an own critic where there is one."""
    tiny = {
        key: value
        for key, value in tiny_settings(name).items()
        if key not in ("hidden", "critic_hidden")
    }
    return {**tiny, "num_workers": 0, **others}


@pytest.mark.parametrize(
    ("name", "network", "key"),
    [
        ("UDRL", {"policy": Own()}, "hidden"),
        ("RCP-A", {"critic": nn.Linear(4, 3)}, "critic_hidden"),
        (
            "AAC",
            {"policy": nn.Linear(4, 2), "critic": nn.Sequential(nn.Linear(4, 1), nn.Flatten(0))},
            "hidden",
        ),
    ],
)
def test_sizes_beside_an_own_network_are_refused(tmp_path, name, network, key):
    words = (
        rf": key '{key}': networks=\{{'{next(iter(network))}': ...\}} has sizes of its own; "
        r"leave it out"
    )
    with pytest.raises(UserError, match="lrl.train" + words):
        lrl.train(name, "cartpole", networks=network, logdir=tmp_path, **{key: [8]})
    with pytest.raises(UserError, match=words):
        IMPLEMENTATIONS[name]("cartpole", implementation=name, networks=network, **{key: [8]})
    IMPLEMENTATIONS[name]("cartpole", implementation=name, networks=network)


class Beside(nn.Module):
    """All inputs side by side, through one layer."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, *inputs):
        return self.layer(torch.cat(inputs, dim=-1))


@pytest.mark.parametrize(
    ("name", "network", "net", "words"),
    [
        ("UDRL", "policy", Beside(nn.Linear(6, 5)), r"policy gives \[2, 5\], expected \[2, 2\]"),
        (
            "UDRL",
            "policy",
            Beside(nn.Linear(4, 2)),
            r"policy is to take \[2, 4\] and \[2, 2\] and give \[2, 2\], but raised Runtime",
        ),
        (
            "UDRL",
            "policy",
            nn.Linear(4, 2),
            r"but raised TypeError: Linear.forward\(\) takes 2 positional arguments",
        ),
        ("UDRL", "policy", Own, "policy is the class Own, expected an instance of torch.nn.Module"),
        ("UDRL", "policy", nn.LSTM(4, 2), "policy is to take"),
        ("UDRL", "policy", nn.Tanh(), "policy has no parameters"),
        ("RCP-A", "critic", nn.Linear(4, 1), r"critic gives \[2, 1\], expected \[2, 3\]"),
        ("RCP-A", "policy", Beside(nn.Linear(6, 2)), r"policy is to take \[2, 4\] and \[2, 1\]"),
        ("AAC", "policy", nn.Linear(4, 3), r"policy gives \[2, 3\], expected \[2, 2\]"),
        (
            "AAC",
            "policy",
            nn.LSTM(4, 2),
            r"policy gives a tuple of 2, expected decimal numbers \[2, 2\]",
        ),
        (
            "AAC",
            "policy",
            {"net": 3},
            "policy is a dict of 1, expected an instance of torch.nn.Module",
        ),
        ("AAC", "critic", nn.Linear(4, 1), r"critic gives \[2, 1\], expected \[2\]"),
    ],
)
def test_own_networks_of_other_sizes_are_refused_in_one_line(name, network, net, words):
    with pytest.raises(UserError, match="networks: .*" + words) as refused:
        IMPLEMENTATIONS[name]("cartpole", implementation=name, networks={network: net})
    assert "\n" not in str(refused.value)


def test_networks_are_given_by_name():
    with pytest.raises(UserError, match="networks: a Own, expected a dict by name"):
        lrl.UDRL("cartpole", networks=Own())


@pytest.mark.parametrize(("name", "net"), [("UDRL", nn.LazyLinear), ("AAC", nn.LazyLinear)])
def test_layers_that_find_their_sizes_are_trained_and_loaded(tmp_path, name, net):
    settings = own_settings(name, logdir=tmp_path, max_epochs=2)
    run = lrl.train(name, "cartpole", networks={"policy": Beside(net(2))}, **settings)
    loaded = lrl.load(run.path, networks={"policy": Beside(net(2))}).method.policy
    assert all(
        torch.equal(value, run.method.policy.state_dict()[key])
        for key, value in loaded.state_dict().items()
    )


class Noisy(nn.Linear):
    """Draws random numbers, and counts its calls in training; of zeros it makes NaNs."""

    calls = 0

    def forward(self, x):
        self.calls += self.training
        return super().forward(x / x.norm() + torch.randn(1))


def test_looking_at_an_own_network_changes_nothing_else():
    noisy = Noisy(5, 2)
    plain, other = (
        lrl.RCPR("cartpole", seed=3, networks={"policy": Beside(net)})
        for net in (nn.Linear(5, 2), noisy)
    )
    assert (noisy.training, noisy.calls) == (True, 0)
    assert all(
        torch.equal(a, b)
        for a, b in zip(plain.critic.parameters(), other.critic.parameters(), strict=True)
    )


@pytest.mark.parametrize(
    ("name", "net"), [("UDRL", Own), ("REINFORCE", functools.partial(nn.Linear, 4, 2))]
)
def test_an_own_network_may_be_smaller_than_the_one_that_it_replaces(tmp_path, name, net):
    settings = own_settings(name, config={"hidden": [512, 512]}, logdir=tmp_path, max_epochs=2)
    run = lrl.train(name, "cartpole", networks={"policy": net()}, **settings)
    (best,) = run.path.glob("epoch=*.ckpt")  # it has no optimizers, which make room
    loaded = lrl.load(best, networks={"policy": net()}).method.policy
    assert all(
        torch.equal(value, run.method.policy.state_dict()[key])
        for key, value in loaded.state_dict().items()
    )
    content = torch.load(best, weights_only=True)
    del content["hyper_parameters"]["networks"]  # as before they were recorded
    torch.save(content, best)
    assert lrl.load(best, networks={"policy": net()}).method.policy
    with pytest.raises(
        UserError,
        match=r"hidden \[512, 512\] makes 262,144 weights, its file has room for .* own networks",
    ):
        lrl.load(best)


def fit_from(method, path):
    methods.quiet_trainer(4).fit(
        method, datamodule=method.rollouts(), ckpt_path=path, weights_only=True
    )


def test_whoever_forgets_own_networks_is_told_which(tmp_path, capsys):
    settings = own_settings("UDRL", logdir=tmp_path)
    run = lrl.train("UDRL", "cartpole", networks={"policy": Own()}, max_epochs=2, **settings)
    words = (
        rf"was trained with own networks \(policy: {Own.__module__}.Own\); from Python give "
        r"networks="
    )
    recorded = {"policy": f"{Own.__module__}.Own"}
    assert yaml.safe_load((run.path / "config.yaml").read_text())["networks"] == recorded
    assert (
        torch.load(run.path / "last.ckpt", weights_only=True)["hyper_parameters"]["networks"]
        == recorded
    )
    more = {**settings, "max_epochs": 4}
    for forgetful in (
        lambda: lrl.load(run.path),
        lambda: lrl.train("UDRL", "cartpole", resume=True, **more),
        lambda: lrl.train("UDRL", "cartpole", reload=run.path, exp_name="b", **more),
        lambda: fit_from(lrl.UDRL("cartpole", **tiny_settings("UDRL")), run.path / "last.ckpt"),
    ):
        with pytest.raises(UserError, match=words):
            forgetful()
    assert main(["eval", str(run.path)]) == 2
    assert "the command line cannot take them" in capsys.readouterr().err
    assert (
        main(
            [
                "train",
                "--implementation",
                "UDRL",
                "--gamename",
                "cartpole",
                "--config",
                str(run.path / "config.yaml"),
            ]
        )
        == 2
    )
    assert (
        rf"is of a run with own networks (policy: {Own.__module__}.Own), which the command"
        in capsys.readouterr().err
    )
    resumed = lrl.train("UDRL", "cartpole", resume=True, networks={"policy": Own()}, **more)
    assert int(resumed.method.episodes) > int(run.method.episodes)
    assert lrl.train(
        "UDRL", "cartpole", reload=run.path, exp_name="b", networks={"policy": Own()}, **more
    )
    again = lrl.UDRL.load_from_checkpoint(run.path / "last.ckpt", networks={"policy": Own()})
    assert torch.equal(
        again.policy.net.net.layer.weight, resumed.method.policy.net.net.layer.weight
    )
    with pytest.raises(
        UserError, match=r"policy is the name '.*Own'; give the network that it was trained with"
    ):
        lrl.UDRL.load_from_checkpoint(run.path / "last.ckpt")


def test_runs_without_own_networks_record_none(tmp_path):
    settings = own_settings("UDRL", logdir=tmp_path)
    run = lrl.train("UDRL", "cartpole", max_epochs=1, **settings)
    assert "networks" not in yaml.safe_load((run.path / "config.yaml").read_text())
    content = torch.load(run.path / "last.ckpt", weights_only=True)
    assert "networks" not in content["hyper_parameters"]
    with pytest.raises(UserError, match="give the networks that it was trained with"):
        lrl.train(
            "UDRL", "cartpole", max_epochs=2, resume=True, networks={"policy": Own()}, **settings
        )
    content["hyper_parameters"]["networks"] = {"policy": 3}
    torch.save(content, run.path / "last.ckpt")
    with pytest.raises(UserError, match=r"hyper_parameters\.networks: a dict of 1, expected the"):
        lrl.load(run.path)


@pytest.mark.parametrize(
    ("name", "settings", "kept"),
    [
        (
            "UDRL",
            {"guidance": 2.0, "return_scale": 0.5, "horizon_scale": 0.25},
            {"net.scale": [0.5, 0.25], "net.shift": [0, 0]},
        ),
        ("UDRL", {"condition": False}, {"net.scale": [0, 0], "net.shift": [0, 0]}),
        ("UDRL", {"standardise": True}, {}),
        (
            "UDRL",
            {"standardise": True, "condition": False},
            {"net.scale": [0, 0], "net.shift": [0, 0]},
        ),
        ("RCP-A", {"guidance": 1.0}, {"net.scale": [1], "net.shift": [0]}),
        (
            "RCP-A",
            {"command_draw": "step"},
            {"net.scale": [1], "net.shift": [0], "command_noise": [0, 0, 0]},
        ),
    ],
)
def test_a_reloaded_policy_brings_what_it_has_learned_not_what_its_config_said(
    name, settings, kept
):
    """Its parameters, the usual command, and the scale of commands where that is measured."""
    old, new = (
        CLASSES[name]("cartpole", **{**tiny_settings(name), **each}) for each in ({}, settings)
    )
    brought = {key: torch.full_like(value, 7.0) for key, value in new.policy.state_dict().items()}
    assert brought.keys() >= old.policy.state_dict().keys()
    new.adopt(brought)
    for policy in (new.policy, new.learner):
        found = policy.state_dict()
        assert float(found.pop("guidance")) == new.cfg.guidance
        assert {key: found.pop(key).tolist() for key in kept} == kept
        assert all(value.eq(7.0).all() for value in found.values())


class CountingNet(nn.Module):
    """A network with a batch norm, which counts the batches that it is trained on."""

    def __init__(self, in_size, out_size, flat=False):
        super().__init__()
        self.sizes, self.flat = (in_size, out_size), flat
        self.layers = nn.Sequential(
            nn.Linear(in_size, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, out_size)
        )

    @property
    def count(self):
        return int(self.layers[1].num_batches_tracked)

    def forward(self, *inputs):
        x = torch.cat(inputs, -1)
        out = self.layers(x.reshape(-1, self.sizes[0])).reshape(*x.shape[:-1], self.sizes[1])
        return out.squeeze(-1) if self.flat else out


@pytest.mark.parametrize(("name", "tau"), [("RCP-A", 1.0), ("RCP-A", 0.25), ("UDRL", 1.0)])
def test_statistics_of_own_networks_are_of_what_they_learn_from(tmp_path, name, tau):
    """Not of what is measured or predicted on the way; an averaged policy acts by those that
    were counted.
    """
    networks = {"policy": CountingNet(6 if name == "UDRL" else 5, 2)}
    if name == "RCP-A":
        networks["critic"] = CountingNet(4, 3)
    held_out = {"num_held_out_episodes_per_iter": int(name == "UDRL")}
    settings = own_settings(name, **held_out, max_epochs=2, logdir=tmp_path, tau=tau)
    method = lrl.train(name, "cartpole", networks=networks, **settings).method
    learned, average = (policy.net.net for policy in (method.learner, method.policy))
    counts = [learned.count] + ([method.critic.count] if name == "RCP-A" else [])
    assert min(counts) > 1
    assert sum(counts) == int(method.num_updates)
    assert all(torch.equal(a, b) for a, b in zip(average.buffers(), learned.buffers(), strict=True))
    assert torch.equal(average.layers[0].weight, learned.layers[0].weight) == (tau == 1)


def test_a_critic_of_ones_own_counts_no_final_observations(tmp_path):
    critic = CountingNet(4, 1, flat=True)
    settings = {
        **tiny_settings("AAC"),
        "max_epochs": 2,
        "num_workers": 0,
        "logdir": tmp_path,
        "networks": {"critic": critic},
    }
    lrl.train("AAC", "cartpole", **settings)
    assert critic.count == 2


def test_the_origins_recipe_overrides_what_is_tuned_for_a_game():
    dense, sparse = (
        lrl.UDRL(game, preset="original").cfg for game in ("lunarlander", "lunarlander-sparse")
    )
    assert (dense.batch_size, dense.last_few, dense.return_scale, dense.learning_rate) == (
        768,
        75,
        0.025,
        3.5e-4,
    )
    assert (sparse.batch_size, sparse.last_few, sparse.return_scale, sparse.learning_rate) == (
        512,
        25,
        0.015,
        5e-4,
    )
    for cfg in (dense, sparse):
        assert (
            cfg.num_episodes_per_iter,
            cfg.num_held_out_episodes_per_iter,
            cfg.num_updates_per_iter,
        ) == (19, 1, 100)
        assert (cfg.buffer, cfg.replay_size, cfg.sample_by, cfg.overlap) == (
            "best",
            500,
            "transition",
            False,
        )
