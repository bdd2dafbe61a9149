"""A learned model as an environment."""

import pytest
import torch

from lightning_rl.envs.batch import FuncBatch
from lightning_rl.envs.model_env import ModelEnv
from lightning_rl.envs.procmaze import ProcMaze
from lightning_rl.nets.categorical_latent import CategoricalLatent
from lightning_rl.nets.gaussian_latent import GaussianLatent
from lightning_rl.nets.latent_model import LatentModel
from lightning_rl.nets.simple_model import SimpleModel

REAL = ProcMaze(2)
SIZES = (REAL.obs_size, REAL.action_size, (8, 8), "elu")
MODELS = {
    "simple": SimpleModel(*SIZES),
    "categorical": LatentModel(*SIZES, CategoricalLatent(3, 4)),
    "gaussian": LatentModel(*SIZES, GaussianLatent(5, 0.1)),
}


def model_env(name):
    model = MODELS[name]
    return ModelEnv(model, model.init([torch.Generator().manual_seed(0)]), REAL)


@pytest.mark.parametrize("name", MODELS)
def test_leading_dimensions_are_batches(name):
    env = model_env(name)
    reset, noise = torch.rand(2, 3, env.reset_noise_size), torch.rand(2, 3, env.step_noise_size)
    action = torch.randint(env.action_size, (2, 3))
    together = env.step(env.reset(reset), action, noise)
    for i in range(2):
        for j in range(3):
            alone = env.step(env.reset(reset[i, j]), action[i, j], noise[i, j])
            for a, b in zip(together, alone, strict=True):
                torch.testing.assert_close(a[i, j], b, rtol=1e-5, atol=1e-6)
    assert together.obs.shape == (2, 3, env.obs_size)


@pytest.mark.parametrize("name", MODELS)
def test_a_step_is_what_the_model_imagines(name):
    env, model = model_env(name), MODELS[name]
    state, action = (
        env.reset(torch.rand(6, env.reset_noise_size)),
        torch.randint(env.action_size, (6,)),
    )
    noise = torch.rand(6, env.step_noise_size)
    step = env.step(state, action, noise)
    inner = noise[:, 1:] if model.noise_kind == "uniform" else torch.special.ndtri(noise[:, 1:])
    layers = model.layers(model.init([torch.Generator().manual_seed(0)]))
    joined = model.join(state[None], action[None])
    reward, continues = model.outcome(layers, joined)
    torch.testing.assert_close(
        step.state, model.imagine(layers, joined, inner[None])[0], rtol=1e-4, atol=1e-5
    )
    torch.testing.assert_close(step.reward, reward[0])
    torch.testing.assert_close(step.continuation, continues[0])
    assert torch.equal(step.terminated, noise[:, 0] >= continues[0])


def test_it_is_played_like_any_environment():
    batch = FuncBatch(model_env("gaussian"), 7, [1, 2])
    for _ in range(7):
        step = batch.step(torch.zeros(2, dtype=torch.int64))
    assert (step.terminated | step.truncated).all()
    assert step.obs.shape == (2, REAL.obs_size)
