"""Single updates of upside-down RL, policy gradients and PPO, beside their matrix products, and
where the time of one goes.

Each is what the method does for one minibatch on LunarLander: loss, gradients, clipping,
Lightning's hooks, Adam, averaging.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from harness import NOTHING, Measure, Spread, Table, cpu, in_turns, mlp_flops, number, products
from pytorch_lightning import Trainer
from torch import Tensor

from lightning_rl.agents.ppo import PPO
from lightning_rl.core.adam import clip_gradients
from lightning_rl.methods.base import Method
from lightning_rl.methods.policy_gradient import PolicyGradient, StepBatch
from lightning_rl.methods.registry import implementation
from lightning_rl.methods.upside_down import RCPA, UDRL, UpsideDown

OBS, ACTIONS = 8, 4
STEPS, EPISODES = 1000, 10  # of a policy gradient's batch
Work = tuple[Callable[[], object], float]
"""An update, and the floating-point operations of its products."""

GOALS = {"RCP-A, policy": "600", "UDRL, batches of 768": "1,900"}
"""CPU microseconds."""


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


def minibatch(method: UpsideDown) -> list[Tensor]:
    """What an update of the policy takes."""
    batch, commands = method.cfg.batch_size, len(method.command_names)
    example = [
        torch.randn(batch, OBS),
        torch.randn(batch, commands),
        torch.randint(ACTIONS, (batch,)),
    ]
    return example if method.cfg.weights == "none" else [*example, torch.ones(batch)]


def upside_down(method: UpsideDown) -> Work:
    """An update of the policy."""
    connected(method)
    example = minibatch(method)
    flops = mlp_flops([OBS, *method.cfg.hidden, ACTIONS], method.cfg.batch_size, 1, 1)
    return lambda: method.update(*example), flops


def critic(method: UpsideDown) -> Work:
    """The same of RCP-A's critic."""
    connected(method)
    batch, net, hidden = method.cfg.batch_size, method.critic, method.cfg.critic_hidden
    assert net is not None
    assert hidden is not None
    obs, target, action = (
        torch.randn(batch, OBS),
        torch.randn(batch),
        torch.randint(ACTIONS, (batch,)),
    )
    return lambda: method.critic_fit.update(method, obs, target, action), mlp_flops(
        [OBS, *hidden, 1 + ACTIONS], batch, 1, 1
    )


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
        {},
    )

    def update() -> None:
        method.descend(
            0, torch.stack(list(method.losses(batch)[0].values())).sum(), method.cfg.max_grad_norm
        )

    hidden = method.cfg.hidden
    return update, sum(mlp_flops([OBS, *hidden, outputs], STEPS, 1, 1) for outputs in (ACTIONS, 1))


def ppo() -> tuple[Work, int]:
    """All updates on one roll-out of PPO, and how many they are."""
    cls: Any = implementation("PPO")
    agent: PPO = cls("lunarlander", implementation="PPO", seed=0).agent
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
    return (lambda: agent.update(None, 0), flops), cfg.epochs * cfg.rollout_steps // (
        cfg.batch_size or cfg.rollout_steps
    )


def parts(method: UpsideDown) -> Mapping[str, Callable[[], object]]:
    """What an update of the policy consists of."""
    connected(method)
    example, optimizer = minibatch(method), method.optimizers()[0].optimizer

    def forward() -> Any:
        return method.learner.negative_log_likelihood(*example)

    return {
        "the whole": lambda: method.update(*example),
        "forward pass and loss": forward,
        "gradients": lambda: forward()[1](),
        "clipping": lambda: clip_gradients(optimizer.param_groups, method.cfg.max_grad_norm or 1.0),
        "Adam": optimizer.step,
        "average that acts": method.average.update,
    }


def shares(found: Mapping[str, Spread]) -> list[list[str]]:
    """A row for each part; what is left of the whole is Lightning's."""
    medians = {name: spread.median for name, spread in found.items()}
    whole = medians.pop("the whole")
    medians["gradients"] -= medians["forward pass and loss"]  # which comes before them
    medians["Lightning, and code and weights that are not in the cache any more"] = whole - sum(
        medians.values()
    )
    return [
        [name, number(seconds * 1e6), f"{seconds / whole:.0%}"] for name, seconds in medians.items()
    ]


def tables(smoke: bool) -> Iterator[Table]:
    """Of all updates, and of the parts of one."""
    repeats, rounds = (2, 1) if smoke else (200, 9)
    game = "lunarlander"
    works: dict[str, Work] = {
        "RCP-A, policy": upside_down(RCPA(game, seed=0)),
        "RCP-A, critic": critic(RCPA(game, seed=0)),
        "UDRL": upside_down(UDRL(game, seed=0)),
        "UDRL, batches of 768": upside_down(UDRL(game, seed=0, batch_size=768)),
        f"AAC, {STEPS:,} steps": actor_critic(PolicyGradient(game, implementation="AAC", seed=0)),
    }
    (rollout, flops), updates = ppo()

    def timed(update: Callable[[], object]) -> Measure:
        return cpu(lambda: [update() for _ in range(repeats)], repeats)

    measures = {name: timed(update) for name, (update, _) in works.items()}
    measures["PPO"] = cpu(rollout, updates)
    found = in_turns({"products": products(), **measures}, rounds)
    needs = {name: needed for name, (_, needed) in works.items()} | {"PPO": flops / updates}
    limits = {name: needed * found["products"].median for name, needed in needs.items()}
    rows = [
        [
            name,
            str(found[name].times(1e6)),
            GOALS.get(name, NOTHING),
            number(limit * 1e6),
            f"{found[name].median / limit:.1f}",
        ]
        for name, limit in limits.items()
    ]
    about = (
        "CPU microseconds of an update, one thread, batches of the configs. PPO: one of those on a "
        "roll-out, with a share of "
        "the values. Limit: the matrix products at the rate of large ones, "
        f"{1e-9 / found['products'].median:.0f} GFLOP/s here."
    )
    yield Table("Updates", about, ["", "update", "goal", "limit", "times the limit"], rows)
    found = in_turns(
        {name: timed(part) for name, part in parts(RCPA(game, seed=0)).items()}, rounds
    )
    yield Table(
        "Parts of an update of RCP-A's policy",
        "CPU microseconds.",
        ["", "time", "share"],
        shares(found),
    )
