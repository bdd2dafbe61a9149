"""What every method shares: counters, logging over env_steps, the optimiser clock, evaluation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from pytorch_lightning import LightningModule
from torch import Tensor

from lightning_rl.core.seeding import derive_seed
from lightning_rl.core.types import ActionMode, Episode, Request, UserError
from lightning_rl.envs.spec import EnvSpec
from lightning_rl.functional.schedules import ramp
from lightning_rl.functional.statistics import summarise
from lightning_rl.nets.policies import Policy
from lightning_rl.rollouts.collector import Collector


class Method(LightningModule):
    """A learning method. Environments, buffers and parsing stay outside.

    hparams: plain data ``{implementation, gamename, seed, config}``: all that it takes to build the module again.
    """

    command_names: tuple[str, ...] = ()
    stackable = False  # whether --num_seeds can train several seeds at once
    policy_name = "policy"  # of the policy that --reload takes, in a checkpoint's weights
    cpu_only = False  # whether --accelerator has no choice
    reloadable = True  # whether --reload can start from its policy's weights
    policy: Policy
    env_steps: Tensor
    num_updates: Tensor
    episodes: Tensor
    eval_env_steps: Tensor
    held_out_env_steps: Tensor

    def __init__(self, hparams: Mapping[str, Any]):
        super().__init__()
        self.automatic_optimization = False
        self.save_hyperparameters({"hparams": dict(hparams)})
        for counter in ("env_steps", "num_updates", "episodes", "eval_env_steps", "held_out_env_steps"):
            self.register_buffer(counter, torch.zeros((), dtype=torch.int64))
        self._last_time = time.perf_counter()
        self._clock_hand = torch.nn.Parameter(torch.zeros(()), requires_grad=True)

    @classmethod
    def misfit(cls, spec: EnvSpec) -> str | None:
        """Why the method cannot be used on an environment, with the remedy; None where it can."""
        return None

    def optimisers(self) -> list[torch.optim.Optimizer]:
        """The optimisers of the method, in a fixed order."""
        raise NotImplementedError

    def configure_optimizers(self) -> list[torch.optim.Optimizer]:
        """A clock first: Lightning counts optimiser steps, so one tick per training_step makes global_step count those."""
        return [torch.optim.SGD([self._clock_hand], lr=0.0), *self.optimisers()]

    def distribute(self, executor: str, num_workers: int, ray_address: str | None) -> None:
        """Says where a population is evaluated; UserError for methods that have none."""
        del num_workers
        for flag, used in ((f"--executor {executor}", executor != "serial"), ("--ray_address", ray_address is not None)):
            if used:
                raise UserError(f"{flag}: {type(self).__name__} evaluates no population; leave it out (SE and RN do)")

    def prepare_evaluation(self) -> None:
        """What a checkpoint's method has to do before its policy can be evaluated."""

    def adopt(self, weights: Mapping[str, Tensor]) -> None:
        """Takes over the weights of another run's policy; RuntimeError if they do not fit."""
        self.policy.load_state_dict(weights)

    def tick(self) -> None:
        """Advances Lightning's global_step; the other optimisers are stepped without its wrappers."""
        self.optimizers()[0].step()  # type: ignore[index]

    def raw_optimisers(self) -> list[torch.optim.Optimizer]:
        return list(self.optimizers(use_pl_optimizer=False))[1:]  # type: ignore[arg-type]

    def anneal(self, progress: float, start: float) -> None:
        """From ``start`` of the budget on, the learning rates fall linearly to 0 at its end (``progress`` 1)."""
        for optimiser in self.raw_optimisers():
            for group in optimiser.param_groups:
                group["lr"] = group.setdefault("initial_lr", group["lr"]) * (1 - ramp(progress, start, 1.0))

    def fit(self, name: str, update: Callable[..., Tensor], minibatches: Iterable[tuple[Tensor, ...]]) -> float:
        """``update`` on every minibatch; the mean of the losses that it gives, which ``name`` names if it diverged."""
        losses = torch.stack([update(*minibatch) for minibatch in minibatches])
        self.num_updates += len(losses)
        mean = float(losses.mean())
        self.check_finite(name, float(losses[-1]) if np.isfinite(mean) else mean)
        return mean

    @staticmethod
    def descend(optimiser: torch.optim.Optimizer, loss: Tensor, max_grad_norm: float | None) -> Tensor:
        """One step of ``optimiser`` down ``loss``, the gradient's norm clipped; the loss, detached."""
        optimiser.zero_grad()
        loss.backward()
        if max_grad_norm is not None:
            torch.nn.utils.clip_grad_norm_([p for group in optimiser.param_groups for p in group["params"]], max_grad_norm)
        optimiser.step()
        return loss.detach()

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        return batch.to(device) if hasattr(batch, "to") else batch

    def log_scalars(self, values: Mapping[str, float]) -> None:
        """Writes scalars to every logger; the x axis is env_steps."""
        for logger in self.loggers:
            logger.log_metrics(dict(values), step=int(self.env_steps))

    def speed_scalars(self, env_steps: int) -> dict[str, float]:
        """``time/...`` of an epoch with ``env_steps`` new steps; call it once per epoch, when the counters are up to date."""
        now = time.perf_counter()
        speed, self._last_time = env_steps / (now - self._last_time), now
        counters = {"time/num_updates": float(self.num_updates), "time/episodes": float(self.episodes)}
        return {"time/env_steps_per_second": speed, **counters}

    def check_finite(self, name: str, value: float) -> None:
        """Stops the run before a diverged network can reach a checkpoint."""
        if not np.isfinite(value):
            config = self.hparams["hparams"]["config"]
            rate = next((key for key in ("learning_rate", "step_size") if key in config), "learning_rate")
            kept = " (and --reload its last checkpoint, if it has one, to keep those weights)" if self.reloadable else ""
            raise UserError(
                f"{name} is {value} in epoch {self.current_epoch}: training diverged. Start anew under another --exp_name with a "
                f"lower --set {rate}=...{kept}"
            )

    def first_command(self) -> tuple[float, ...] | None:
        """The command that evaluation asks for, in the order of ``command_names``."""
        return None

    def command_limits(self) -> tuple[float, float] | None:
        """Lowest and highest value of the first command that training saw."""
        return None

    def probe_commands(self) -> Mapping[str, tuple[float, ...]]:
        """Further commands to evaluate during training, by the prefix of their metrics; actions sampled."""
        return {}

    def validation_step(self, evaluated: Mapping[str, list[Any]], batch_idx: int) -> None:
        """Evaluation during training: the sampled mean return is what the best checkpoint is chosen by."""
        self.eval_env_steps += sum(episode.env_steps for episodes in evaluated.values() for episode in episodes)
        scalars = {"time/eval_env_steps": float(self.eval_env_steps)}
        for prefix, episodes in evaluated.items():
            scalars |= episode_scalars(prefix, episodes)
            value = scalars[f"{prefix}/return_mean"]
            self.log(f"{prefix}/return_mean", value, batch_size=len(episodes), logger=False)
        self.log_scalars({**scalars, **self.evaluation_scalars(scalars)})

    def evaluation_scalars(self, scalars: Mapping[str, float]) -> Mapping[str, float]:
        """What a method makes of the evaluation's scalars."""
        return {}


def episode_scalars(prefix: str, episodes: Sequence[Episode]) -> dict[str, float]:
    """``prefix/return_mean|std|min|max`` and ``prefix/length_mean``."""
    return return_scalars(prefix, [episode.ret for episode in episodes], [episode.env_steps for episode in episodes])


def return_scalars(prefix: str, returns: Sequence[float], lengths: Sequence[int]) -> dict[str, float]:
    """``prefix/return_mean|std|min|max`` and ``prefix/length_mean`` of episodes."""
    stats = summarise(returns)
    return {
        f"{prefix}/return_mean": stats["mean"],
        f"{prefix}/return_std": stats["sd"],
        f"{prefix}/return_min": stats["min"],
        f"{prefix}/return_max": stats["max"],
        f"{prefix}/length_mean": float(np.mean(lengths)),
    }


@runtime_checkable
class Experience(Protocol):
    """What the trainer iterates over: one item per epoch. It owns environments and buffers, and can be resumed.

    layout: the template (see ``contents``) of a snapshot after ``done`` epochs.
    snapshot and restore are not called state_dict, or Lightning would store a second copy with its loops.
    """

    collector: Collector

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def snapshot(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...
    def layout(self, done: int) -> Any: ...


_MODES: Mapping[str, ActionMode] = {"eval": "sampled", "eval_greedy": "greedy"}


def evaluation_requests(
    run_seed: int, purpose: str, epoch: int, count: int, command: tuple[float, ...] | None, mode: ActionMode
) -> list[Request]:
    """``count`` requests; other commands and modes meet the same environment seeds."""
    return [
        Request(f"{purpose} after epoch {epoch}, {mode} episode {i}", derive_seed(run_seed, purpose, epoch, i), mode, command)
        for i in range(count)
    ]


class Evaluation:
    """The evaluation loader: one batch of episodes, sampled and greedy, under the current policy.

    A batch is ``{prefix: episodes}``: ``eval``, ``eval_greedy`` and the method's probes.
    """

    def __init__(self, collector: Collector, method: Method, run_seed: int, count: int):
        self.collector, self.method, self.run_seed, self.count = collector, method, run_seed, count

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[dict[str, list[Episode]]]:
        yield self.play(self.run_seed, self.method.policy)

    def play(self, run_seed: int, policy: Policy) -> dict[str, list[Episode]]:
        """The evaluation of one policy."""
        epoch, count = self.method.current_epoch, self.count
        asked = [(prefix, self.method.first_command(), mode) for prefix, mode in _MODES.items()]
        asked += [(prefix, command, "sampled") for prefix, command in self.method.probe_commands().items()]
        requests = [r for _, c, mode in asked for r in evaluation_requests(run_seed, "evaluation", epoch, count, c, mode)]
        episodes = self.collector.collect(requests, policy.state_dict(), version=epoch + 1)
        return {prefix: episodes[i * count : (i + 1) * count] for i, (prefix, _, _) in enumerate(asked)}
