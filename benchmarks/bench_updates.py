"""Single updates of upside-down RL and policy gradients, beside their matrix products.

Each is what the method does for one minibatch on LunarLander: loss, gradients, clipping, Lightning's hooks, Adam, averaging.
PPO's updates are part of the member-steps of ``bench_members``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from harness import Measure, Table, cpu, in_turns, mlp_flops, number, products
from pytorch_lightning import Trainer

from lightning_rl.methods.base import Method
from lightning_rl.methods.policy_gradient import PolicyGradient, StepBatch
from lightning_rl.methods.upside_down import RCPA, UDRL, UpsideDown

OBS, ACTIONS = 8, 4
STEPS, EPISODES = 1000, 10  # of a policy gradient's batch


def connected(method: Method) -> None:
    """Gives a method its optimizers, as a fit does."""
    trainer = Trainer(
        accelerator="cpu", logger=False, enable_checkpointing=False, enable_model_summary=False, enable_progress_bar=False
    )
    trainer.strategy.connect(method)
    method.trainer, trainer.strategy.optimizers = trainer, method.configure_optimizers()[0]


def upside_down(method: UpsideDown) -> tuple[Callable[[], object], float]:
    """An update of the policy, and the floating-point operations of its products."""
    connected(method)
    batch, commands = method.cfg.batch_size, len(method.command_names)
    example = torch.randn(batch, OBS), torch.randn(batch, commands), torch.randint(ACTIONS, (batch,))
    weight = () if method.cfg.weights == "none" else (torch.ones(batch),)
    return lambda: method.update(*example, *weight), mlp_flops([OBS, *method.cfg.hidden, ACTIONS], batch, 1, 1)


def critic(method: UpsideDown) -> tuple[Callable[[], object], float]:
    """The same of RCP-A's critic."""
    connected(method)
    batch, net, hidden = method.cfg.batch_size, method.critic, method.cfg.critic_hidden
    assert net is not None
    assert hidden is not None
    obs, target = torch.randn(batch, OBS), torch.randn(batch)
    return lambda: method.update_critic(net, obs, target), mlp_flops([OBS, *hidden, 1], batch, 1, 1)


def actor_critic(method: PolicyGradient) -> tuple[Callable[[], object], float]:
    """The joint update of actor and critic."""
    connected(method)
    last = torch.arange(1, STEPS + 1) % (STEPS // EPISODES) == 0
    batch = StepBatch(
        torch.randn(STEPS, OBS), torch.randint(ACTIONS, (STEPS,)), torch.randn(STEPS), last, torch.randn(EPISODES, OBS),
        torch.zeros(EPISODES, dtype=torch.bool), {},
    )  # fmt: skip

    def update() -> None:
        method.descend(0, torch.stack(list(method.losses(batch)[0].values())).sum(), method.cfg.max_grad_norm)

    hidden = method.cfg.hidden
    return update, sum(mlp_flops([OBS, *hidden, outputs], STEPS, 1, 1) for outputs in (ACTIONS, 1))


def tables(quick: bool) -> Sequence[Table]:
    """One table."""
    repeats, rounds = (2, 2) if quick else (200, 9)
    game = "lunarlander"
    works = {
        "RCP-A, policy": upside_down(RCPA(game, seed=0)), "RCP-A, critic": critic(RCPA(game, seed=0)),
        "UDRL": upside_down(UDRL(game, seed=0)),
        f"AAC, {STEPS:,} steps": actor_critic(PolicyGradient(game, implementation="AAC", seed=0)),
    }  # fmt: skip

    def timed(update: Callable[[], object]) -> Measure:
        return cpu(lambda: [update() for _ in range(repeats)], repeats)

    found = in_turns({"products": products(), **{name: timed(update) for name, (update, _) in works.items()}}, rounds)
    per_flop = found["products"].median
    rows = [
        [name, str(found[name].times(1e6)), number(flops * per_flop * 1e6), f"{found[name].median / (flops * per_flop):.1f}"]
        for name, (_, flops) in works.items()
    ]
    about = "CPU microseconds of an update, one thread, batches of the configs. Limit: the products, as fast as large ones."
    return [Table("Updates", about, ["", "update", "limit", "ratio"], rows)]
