"""A learned world model as an environment."""

from __future__ import annotations

from torch import Tensor

from lightning_rl.envs.func_env import FuncEnv, State, Step, standard_normal
from lightning_rl.nets.world_models import WorldModel


class ModelEnv(FuncEnv):
    """The world model of one member as an environment; any agent that takes a ``FuncEnv`` can play
    in it.

    state: the model's features ``[..., X]``; obs: the probability of each bit. Rewards are the
    model's means; episodes terminate with the model's probability, which ``continuation`` gives as
    such. Episodes start as those of the ``real`` environment do, or anywhere by ``start``.
    """

    binary_obs = True

    def __init__(self, model: WorldModel, params: Tensor, real: FuncEnv):
        """params: ``[1, D]``."""
        self.model, self.real, self._layers = model, real, model.layers(params)
        self.obs_low, self.obs_high = real.obs_low, real.obs_high
        self.action_size, self.episodic = real.action_size, real.episodic
        self.drawable, self.draw = real.drawable, real.draw  # type: ignore[method-assign]
        self.reset_noise_size = real.reset_noise_size + model.encode_noise_size
        self.step_noise_size = 1 + model.noise_size

    def reset(self, noise: Tensor) -> State:
        start, code = noise.split(
            [self.real.reset_noise_size, self.model.encode_noise_size], dim=-1
        )
        return self.start(self.real.observe(self.real.reset(start)), code)

    def start(self, obs: Tensor, noise: Tensor) -> State:
        """The features of observations ``[..., O]`` for uniform noise ``[...,
        encode_noise_size]``.
        """
        return self._unflat(
            self.model.encode(self._layers, _flat(obs), _flat(self._model_noise(noise))), obs
        )

    def observe(self, state: State) -> Tensor:
        return self._unflat(self.model.decode(self._layers, _flat(state)), state)

    def step(self, state: State, action: Tensor, noise: Tensor) -> Step:
        joined = self.model.join(_flat(state), action.reshape(1, -1))
        after = self._unflat(
            self.model.imagine(self._layers, joined, _flat(self._model_noise(noise[..., 1:]))),
            state,
        )
        reward, continues = (
            value.reshape(action.shape) for value in self.model.outcome(self._layers, joined)
        )
        return Step(after, self.observe(after), reward, noise[..., 0] >= continues, continues)

    def _model_noise(self, noise: Tensor) -> Tensor:
        return noise if self.model.noise_kind == "uniform" else standard_normal(noise)

    @staticmethod
    def _unflat(value: Tensor, like: Tensor) -> Tensor:
        return value.reshape(*like.shape[:-1], value.shape[-1])


def _flat(x: Tensor) -> Tensor:
    """``[1, B, X]`` of ``[..., X]``: one member with a batch."""
    return (
        x.reshape(1, -1, x.shape[-1])
        if x.shape[-1]
        else x.new_zeros(1, max(x.shape[:-1].numel(), 1), 0)
    )
