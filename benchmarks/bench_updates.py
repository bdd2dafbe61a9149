"""Updates of upside-down RL, policy gradients and PPO on LunarLander, beside their products."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from harness import Measure, Table, cpu, in_turns, mlp_flops, number, products
from pytorch_lightning import Trainer

from lightning_rl.agents.ppo import PPO
from lightning_rl.methods.base import Method
from lightning_rl.methods.policy_gradient import PolicyGradient, StepBatch
from lightning_rl.methods.registry import implementation
from lightning_rl.methods.upside_down import RCPA, UDRL, UpsideDown
from lightning_rl.methods.upside_down.fused import update_critic, update_policy

OBS, ACTIONS = 8, 4
STEPS, EPISODES = 1000, 10  # of a policy gradient's batch
UPDATES = 20  # of an epoch of upside-down RL
Work = tuple[Callable[[], object], float, int]
"""Some updates, the floating-point operations of the products of one, and how many they are."""


def connected(method: Method) -> None:
    """Gives a method its optimizers, as a fit does."""
    trainer = Trainer(
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=False,
    )
    trainer.strategy.connect(method)
    method.trainer, trainer.strategy.optimizers = trainer, method.configure_optimizers()[0]


def upside_down(method: UpsideDown) -> Work:
    """An epoch's updates of the policy."""
    connected(method)
    shape = UPDATES, method.cfg.batch_size
    examples = [
        torch.randn(*shape, OBS),
        torch.randn(*shape, len(method.command_names)),
        torch.randint(ACTIONS, shape),
    ]
    if method.cfg.weights != "none":
        examples.append(torch.ones(shape))
    flops = mlp_flops([OBS, *method.cfg.hidden, ACTIONS], method.cfg.batch_size, 1, 1)
    if method.cfg.kernels == "numba":
        return lambda: update_policy(method, *examples), flops, UPDATES
    return lambda: [method.update(*each) for each in zip(*examples, strict=True)], flops, UPDATES


def critic(method: UpsideDown) -> Work:
    """The same of RCP-A's critic."""
    connected(method)
    shape, hidden, fit = (
        (UPDATES, method.cfg.batch_size),
        method.cfg.critic_hidden,
        method.critic_fit,
    )
    assert hidden is not None
    obs, target = torch.randn(*shape, OBS), torch.randn(shape)
    features = torch.nn.functional.one_hot(torch.randint(ACTIONS, shape), ACTIONS).float()
    flops = mlp_flops([OBS, *hidden, 1 + ACTIONS], method.cfg.batch_size, 1, 1)
    return lambda: update_critic(method, fit, obs, target, features), flops, UPDATES


def actor_critic(method: PolicyGradient) -> Work:
    """The joint update of actor and critic."""
    connected(method)
    last = torch.arange(1, STEPS + 1) % (STEPS // EPISODES) == 0
    batch = StepBatch(
        torch.randn(STEPS, OBS),
        torch.randint(ACTIONS, (STEPS,)),
        torch.randn(STEPS),
        last,
        torch.randn(EPISODES, OBS),
        torch.zeros(EPISODES, dtype=torch.bool),
        STEPS,
        {},
    )

    def update() -> None:
        method.descend(
            0, torch.stack(list(method.losses(batch)[0].values())).sum(), method.cfg.max_grad_norm
        )

    hidden = method.cfg.hidden
    flops = sum(mlp_flops([OBS, *hidden, outputs], STEPS, 1, 1) for outputs in (ACTIONS, 1))
    return update, flops, 1


def ppo(kernels: str = "numba") -> Work:
    """All updates on one roll-out of PPO."""
    cls: Any = implementation("PPO")
    agent: PPO = cls("lunarlander", implementation="PPO", seed=0, kernels=kernels).agent
    cfg = agent.cfg
    for filled in (agent.obs, agent.next_obs, agent.reward):
        filled.normal_()
    agent.discount.fill_(cfg.gamma)
    sizes = [[OBS, *cfg.hidden, outputs] for outputs in (ACTIONS, 1)]
    trained = cfg.epochs * sum(mlp_flops(each, cfg.rollout_steps, 1, 1) for each in sizes)
    flops = (
        trained
        + mlp_flops(sizes[0], cfg.rollout_steps, 1)
        + mlp_flops(sizes[1], cfg.rollout_steps, 2)
    )
    updates = cfg.epochs * cfg.rollout_steps // (cfg.batch_size or cfg.rollout_steps)
    return lambda: agent.learn_from_rollout(None, 0), flops / updates, updates


def tables(smoke: bool) -> Iterator[Table]:
    """Of all updates."""
    repeats, rounds = (1, 1) if smoke else (10, 9)
    game = "lunarlander"
    works = {
        "RCP-A, policy": upside_down(RCPA(game, seed=0)),
        "RCP-A, policy, by torch": upside_down(RCPA(game, seed=0, kernels="torch")),
        "RCP-A, critic": critic(RCPA(game, seed=0)),
        "UDRL": upside_down(UDRL(game, seed=0)),
        "UDRL, batches of 768": upside_down(UDRL(game, seed=0, batch_size=768)),
        f"AAC, {STEPS:,} steps": actor_critic(PolicyGradient(game, implementation="AAC", seed=0)),
        "PPO": ppo(),
        "PPO, by torch": ppo("torch"),
    }

    def timed(work: Work) -> Measure:
        update, _, count = work
        return cpu(lambda: [update() for _ in range(repeats)], repeats * count)

    measures = {name: timed(work) for name, work in works.items()}
    found = in_turns({"products": products(), **measures}, rounds)
    limits = {name: flops * found["products"].median for name, (_, flops, _) in works.items()}
    rows = [
        [
            name,
            str(found[name].times(1e6)),
            number(limit * 1e6),
            f"{found[name].median / limit:.1f}",
        ]
        for name, limit in limits.items()
    ]
    about = (
        "CPU microseconds of an update, one thread, batches of the configs; of upside-down RL and "
        "PPO one of those of an epoch, with a share of what surrounds them. Limit: the matrix "
        "products at the rate of large ones, "
        f"{1e-9 / found['products'].median:.0f} GFLOP/s here."
    )
    yield Table("Updates", about, ["", "update", "limit", "times the limit"], rows)
