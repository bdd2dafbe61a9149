import csv
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import lightning_rl
from lightning_rl.agents.cloning import CloneConfig, Clones
from lightning_rl.agents.variation import Variation, vary_agents
from lightning_rl.cli import main
from lightning_rl.envs.proxies import read_proxy, save_proxy
from lightning_rl.envs.synthetic_dataset import DatasetEnv, DatasetProxy, Pairs
from lightning_rl.functional.distributions import distribution_for
from lightning_rl.methods.synthetic_dataset import SD, cloning_loop

CARTPOLE = SimpleNamespace(obs_size=4, action_size=2, continuous=False)
PENDULUM = SimpleNamespace(obs_size=3, action_size=1, continuous=True)


def config(**values):
    return CloneConfig(
        **{"hidden": [8], "activation": "tanh", "learning_rate": 0.01, "num_updates": 5, **values}
    )


def test_the_loss_and_its_gradient_by_hand():
    """Zero weights are undecided: ln 2; the states 2 and -1 with the actions 0 and 1 each pull
    the logits by a half.
    """
    clones = Clones(
        config(hidden=[]), SimpleNamespace(obs_size=1, action_size=2, continuous=False), [0]
    )
    torch.nn.init.zeros_(clones.params)
    loss = clones.update(torch.tensor([[[2.0], [-1.0]]]), torch.tensor([[0, 1]]))
    assert loss.tolist() == pytest.approx([math.log(2)])
    # d/dW: ((1/2 - 1) 2 + (1/2) (-1)) / 2 = -3/4 for the first action, 3/4 for the second; the
    # biases' halves cancel.
    torch.testing.assert_close(clones.params.grad, torch.tensor([[-0.75, 0.75, 0.0, 0.0]]))
    torch.testing.assert_close(
        clones.params.detach()[0, :2], torch.tensor([0.01, -0.01])
    )  # Adam's first step


@pytest.mark.parametrize("sizes", [CARTPOLE, PENDULUM], ids=["discrete", "continuous"])
def test_members_are_cloned_as_plain_networks_would_be(sizes):
    rng = torch.Generator().manual_seed(0)
    obs = torch.randn(2, 6, sizes.obs_size, generator=rng)
    action = (
        torch.rand(2, 6, 1, generator=rng) * 2 - 1
        if sizes.continuous
        else torch.arange(6).expand(2, -1) % 2
    )
    clones = Clones(config(), sizes, [3, 4])
    nets = [clones.module(row) for row in range(2)]
    optimizers = [torch.optim.Adam(net.parameters(), lr=0.01) for net in nets]
    for _ in range(3):
        losses = clones.update(obs, action)
        for n, (net, optimizer) in enumerate(zip(nets, optimizers, strict=True)):
            out = net(obs[n])
            loss = -distribution_for(sizes.continuous)(out).log_prob(action[n]).mean()
            assert float(losses[n]) == pytest.approx(loss.item(), rel=1e-5)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    for n, net in enumerate(nets):
        for mine, theirs in zip(clones.module(n).parameters(), net.parameters(), strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)
    assert clones.num_updates.tolist() == [3, 3]
    best = clones.greedy(obs)
    expected = torch.stack([net(obs[n]) for n, net in enumerate(nets)])
    torch.testing.assert_close(
        best,
        expected[..., :1].tanh() if sizes.continuous else expected.argmax(-1),
        rtol=1e-4,
        atol=1e-5,
    )


def test_clones_that_vary_have_a_learning_rate_and_a_width_each():
    """Adam's first step is the learning rate; a hidden layer of n units has 7 n + 2 weights."""
    variation = Variation(
        learning_rates=(0.01, 0.1), batch_sizes=(1, 1), widths=(2, 8), depths=(1, 1)
    )
    clones = Clones(config(), CARTPOLE, [3, 4], variation)
    before = clones.params.detach().clone()
    assert (before != 0).sum(1).tolist() == [16, 58]
    clones.update(torch.ones(2, 1, 4), torch.zeros(2, 1, dtype=torch.int64))
    assert (clones.params - before).abs().amax(1).tolist() == pytest.approx([0.01, 0.1], rel=1e-3)


def test_pairs_of_a_block_by_hand():
    discrete, continuous = Pairs(3, 2, 2, False), Pairs(2, 2, 1, True)
    assert (discrete.size, continuous.size) == (6, 6)
    obs, action = discrete.split(torch.arange(6.0).unsqueeze(0))
    assert (obs.tolist(), action.tolist()) == ([[[0, 1], [2, 3], [4, 5]]], [[0, 1, 0]])
    obs, action = continuous.split(torch.tensor([[0.0, 1, 2, 3, -0.5, 7]]))
    assert (obs.tolist(), action.tolist()) == (
        [[[0, 1], [2, 3]]],
        [[[-0.5], [1.0]]],
    )  # within the box


def test_a_dataset_as_an_environment_by_hand():
    env = DatasetEnv(Pairs(2, 1, 2, False), torch.tensor([[10.0, 20.0], [30.0, 40.0]]))
    state = env.reset(torch.tensor([[0.9], [0.1]]))
    assert env.observe(state).tolist() == [[20.0], [30.0]]
    step = env.step(state, torch.tensor([1, 1]), torch.empty(2, 0))
    assert (step.reward.tolist(), step.terminated.tolist()) == ([1.0, 0.0], [True, True])
    env = DatasetEnv(Pairs(1, 1, 2, True), torch.tensor([[5.0, 0.5, -0.5]]))
    assert env.step(
        env.reset(torch.zeros(1, 1)), torch.tensor([[0.5, 0.5]]), torch.empty(1, 0)
    ).reward.tolist() == [-0.5]


@pytest.mark.parametrize("vary", [False, True])
def test_a_clone_is_a_function_of_its_dataset_and_its_seed(vary):
    proxy, loop_config = DatasetProxy(gamename="cartpole", num_pairs=4), config(num_updates=20)
    loop = cloning_loop(proxy, loop_config, test_episodes=2, vary=vary)
    params = torch.randn(3, proxy.net.size, generator=torch.Generator().manual_seed(1))
    together, again = (loop.evaluate(params, [7, 8, 7], [0, 1, 2]) for _ in range(2))
    assert together == again
    alone = loop.evaluate(params[1:2], [8], [0])
    assert alone[0].test_return == together[1].test_return
    assert [outcome.num_updates for outcome in together] == [20] * 3
    assert (together[0].train_steps, together[0].episodes, together[0].failed) == (20, 1, False)
    if vary:
        assert len(set(vary_agents(loop_config, [7, 8]).learning_rates)) == 2


def test_evolution_finds_pairs_that_teach_cartpole():
    method = SD(
        "cartpole",
        seed=4,
        population=8,
        center_agents=4,
        hidden=[16],
        num_updates=50,
        test_episodes=1,
    )
    outer, (_, optimizer) = method.outer_loop(), method.configure_optimizers()[0]
    fitness: list[float] = []
    while len(fitness) < 14 and max(fitness, default=0.0) < 400:
        generation = outer.run(len(fitness))
        optimizer.step()
        fitness.append(generation.fitness)
    assert fitness[0] < 100
    assert fitness[-1] > 400, fitness


def write(folder, gamename="cartpole"):
    proxy = DatasetProxy(gamename=gamename, num_pairs=2)
    save_proxy(
        folder / "pairs.pt",
        proxy,
        torch.linspace(-1, 1, proxy.net.size),
        {"score": 1.0, "config": {"vary": True}},
    )
    return str(folder / "pairs.pt")


def test_pairs_are_at_hand_from_python(tmp_path):
    env = lightning_rl.load_proxy(write(tmp_path, "pendulum"))
    obs, action = env.unwrapped.pairs
    assert (obs.shape, action.shape) == ((2, 3), (2, 1))
    seen, _ = env.reset(seed=0)
    assert any(np.array_equal(seen, each) for each in obs)
    assert env.step(env.action_space.sample())[2:4] == (True, False)
    proxy, params, _ = read_proxy(tmp_path / "pairs.pt", "pendulum")
    assert (proxy.num_pairs, len(params)) == (2, 8)


def test_fresh_clones_are_judged_and_the_pairs_drawn(tmp_path, capsys):
    out = tmp_path / "clones.csv"
    flags = ["--count", "2", "--tests", "1", "--set", "num_updates=3"]
    assert main(["proxies", "clones", str(out), write(tmp_path), *flags]) == 0
    rows = list(csv.DictReader(out.open()))
    assert [(row["trained_on"], row["agent"], row["num_updates"]) for row in rows] == [
        ("SD, varied", "clone", "3")
    ] * 2
    assert main(["proxies", "clones", str(tmp_path / "no.csv"), "SE-CartPole-v0"]) == 2
    assert "'SE-CartPole-v0' is no synthetic dataset" in capsys.readouterr().err
    assert main(["figures", "synthetic-dataset", str(tmp_path / "pairs"), write(tmp_path)]) == 0
    cells = list(csv.DictReader((tmp_path / "pairs.csv").open()))
    assert [(cell["pair"], cell["component"]) for cell in cells[4:6]] == [
        ("1", "action"),
        ("2", "cart position (m)"),
    ]
    assert main(["figures", "synthetic-dataset", str(tmp_path / "x"), "SE-CartPole-v0"]) == 2
    assert (
        main(
            ["figures", "synthetic-dataset", str(tmp_path / "continuous"), "SD-InvertedPendulum-v5"]
        )
        == 0
    )
    told = [
        "from -1, the lowest" in (tmp_path / f"{name}.svg").read_text()
        for name in ("pairs", "continuous")
    ]
    assert told == [False, True]
