"""World models: their losses against definitions written out, gradients, imagination."""

from types import SimpleNamespace

import pytest
import torch

from lightning_rl.nets.categorical_latent import CategoricalLatent
from lightning_rl.nets.gaussian_latent import GaussianLatent
from lightning_rl.nets.latent_model import LatentModel
from lightning_rl.nets.simple_model import SimpleModel
from lightning_rl.nets.world_models import RealSteps

OBS, A, HIDDEN = 6, 3, (8, 8)
NAMES = (
    "reward_weight",
    "continuation_weight",
    "obs_weight",
    "kl_prior_weight",
    "kl_posterior_weight",
)


def loss_weights(*values):
    return SimpleNamespace(**dict(zip(NAMES, values, strict=True)))


WEIGHTS = loss_weights(1.0, 1.0, 1.0, 0.8, 0.2)
SIMPLE = SimpleModel(OBS, A, HIDDEN, "elu")
CATEGORICAL = LatentModel(OBS, A, HIDDEN, "elu", CategoricalLatent(4, 3))
GAUSSIAN = LatentModel(OBS, A, HIDDEN, "elu", GaussianLatent(4, 0.1))
MODELS = {"simple": SIMPLE, "categorical": CATEGORICAL, "gaussian": GAUSSIAN}


def setting(model, members=2, batch=5, seed=0):
    g = torch.Generator().manual_seed(seed)

    def bits(*shape):
        return torch.randint(2, shape, generator=g).float()

    params = model.init([torch.Generator().manual_seed(n) for n in range(members)])
    obs, after = bits(members, batch, OBS), bits(members, batch, OBS)
    action = torch.randint(A, (members, batch), generator=g)
    real = RealSteps(
        obs, action, torch.rand(members, batch, generator=g), bits(members, batch), after
    )
    draw = torch.rand if model.noise_kind == "uniform" else torch.randn
    return params, real, draw(members, batch, model.noise_size, generator=g)


def by_autograd(params, model):
    """Runs the model's networks with parameters that autograd knows."""
    pieces = params.split([net.size for net in model.nets], dim=1)
    layers = [net.layers(piece) for net, piece in zip(model.nets, pieces, strict=True)]

    def run(number, x):
        for layer in layers[number][:-1]:
            x = torch.nn.functional.elu(x @ layer.weight + layer.bias)
        return x @ layers[number][-1].weight + layers[number][-1].bias

    return run


def balanced_kl(latent, now_after, prior, weights):
    """Two divergences, each with the gradient of the other side stopped."""
    normal = torch.distributions.Normal
    if isinstance(latent, CategoricalLatent):

        def kl(p, q):
            p, q = (
                x.unflatten(-1, (latent.variables, latent.classes)).log_softmax(-1) for x in (p, q)
            )
            return (p.exp() * (p - q)).sum((-2, -1))
    else:

        def kl(p, q):
            (p_mean, p_raw), (q_mean, q_raw) = p.chunk(2, -1), q.chunk(2, -1)
            first = normal(p_mean, 2 * torch.sigmoid(p_raw / 2) + latent.min_std)
            return torch.distributions.kl_divergence(
                first, normal(q_mean, 2 * torch.sigmoid(q_raw / 2))
            ).sum(-1)

    return weights.kl_prior_weight * kl(
        now_after.detach(), prior
    ) + weights.kl_posterior_weight * kl(now_after, prior.detach())


def sampled(latent, output, noise):
    """A sample that autograd can differentiate."""
    if isinstance(latent, GaussianLatent):
        mean, raw = output.chunk(2, -1)
        return mean + (2 * torch.sigmoid(raw / 2) + latent.min_std) * noise
    soft = output.unflatten(-1, (latent.variables, latent.classes)).softmax(-1).flatten(-2)
    return one_hot(latent, latent.sample(output.detach(), noise)) + soft - soft.detach()


def one_hot(latent, places):
    """The latent ``[..., variables * classes]`` whose ones are at the places ``[...,
    variables]``.
    """
    return torch.nn.functional.one_hot(places, latent.size).sum(-2).float()


def written_out(model, params, real, noise, w):
    """The gradient of the loss as the paper's code has it, by autograd."""
    leaf = params.clone().requires_grad_()
    run, bce = by_autograd(leaf, model), torch.nn.functional.binary_cross_entropy_with_logits
    joined, extra, heads, bits = model.join(real.obs, real.action), 0.0, (0, 1, 2), real.next_obs
    if isinstance(model, LatentModel):
        now, after = run(0, torch.cat([real.obs, real.next_obs], dim=1)).chunk(2, dim=1)
        z = sampled(model.latent, now, noise)
        joined, heads, bits = model.join(z, real.action), (2, 3, None), real.obs
        extra = balanced_kl(model.latent, after, run(1, joined), w)
    logits = run(heads[2], joined) if heads[2] else run(4, z)
    reward, continuation = (run(k, joined).squeeze(-1) for k in heads[:2])
    total = w.reward_weight * 0.5 * (real.reward - reward).square() + extra
    total = total + w.continuation_weight * bce(continuation, real.continues, reduction="none")
    total = total + w.obs_weight * real.continues * bce(logits, bits, reduction="none").sum(-1)
    return torch.autograd.grad(total.mean(-1).sum(), leaf)[0]


def gradient(model, params, real, noise, weights=WEIGHTS):
    """(parts of the loss, gradient) as the model writes them."""
    grad = torch.zeros_like(params)
    return model.gradient(model.layers(params), real, noise, weights, model.layers(grad)), grad


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("weights", [(0.5, 2.0, 3.0, 0.8, 0.2), (0, 0, 0, 1, 0), (0, 0, 0, 0, 1)])
def test_the_gradient_is_that_of_the_weighted_loss(model, weights):
    params, real, noise = setting(model)
    _, grad = gradient(model, params, real, noise, loss_weights(*weights))
    torch.testing.assert_close(
        grad, written_out(model, params, real, noise, loss_weights(*weights)), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("latent", [CategoricalLatent(4, 3), GaussianLatent(4, 0.0)])
def test_the_divergence_of_equal_outputs_is_zero(latent):
    output = torch.randn(2, 5, latent.output_size)
    for value in latent.kl(output, output):
        torch.testing.assert_close(value, torch.zeros_like(value), rtol=0, atol=1e-5)


def test_the_encoders_standard_deviation_alone_has_a_floor():
    latent = GaussianLatent(1, 0.1)
    output = torch.tensor([[3.0, -1000.0], [3.0, 0.0]])
    assert latent.moments(output)[1].flatten().tolist() == pytest.approx([0.1, 1.1], abs=2e-6)
    assert latent.prior.moments(output)[1].flatten().tolist() == pytest.approx([1e-6, 1.0])


def test_categorical_latents_are_one_hot_and_the_mode_is_the_likeliest():
    latent = CategoricalLatent(2, 3)
    logits = torch.tensor([0.0, 5.0, 0.0, 1.0, 0.0, 0.0])
    assert latent.sample(logits, None).tolist() == [1, 3]
    z = one_hot(latent, latent.sample(torch.randn(100, 6), torch.rand(100, 2)))
    assert z.unflatten(-1, (2, 3)).sum(-1).eq(1).all()
    assert set(z.unique().tolist()) == {0.0, 1.0}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_imagination(model):
    params, real, noise = setting(model)
    layers = model.layers(params)
    code = torch.zeros(2, 5, model.encode_noise_size)
    features = model.encode(layers, real.obs, code)
    joined = model.join(features, real.action)
    after, (reward, continues) = model.imagine(layers, joined, noise), model.outcome(layers, joined)
    assert (
        features.shape == after.shape == (2, 5, 4 if model is CATEGORICAL else model.feature_size)
    )
    assert reward.shape == continues.shape == (2, 5)
    assert ((continues > 0) & (continues < 1)).all()
    bits = model.decode(layers, after)
    assert bits.shape == real.obs.shape
    assert ((bits >= 0) & (bits <= 1)).all()


def test_the_simple_models_reward_and_bits_come_from_their_own_networks():
    params, real, noise = setting(SIMPLE, members=1)
    layers = SIMPLE.layers(params)
    one_hot = torch.nn.functional.one_hot(real.action, A).float()
    run, joined = by_autograd(params, SIMPLE), torch.cat([real.obs, one_hot], dim=-1)
    reward, continues = SIMPLE.outcome(layers, SIMPLE.join(real.obs, real.action))
    torch.testing.assert_close(reward, run(0, joined).squeeze(-1))
    torch.testing.assert_close(continues, run(1, joined).squeeze(-1).sigmoid())
    after = SIMPLE.imagine(layers, SIMPLE.join(real.obs, real.action), noise)
    assert torch.equal(after, (noise < run(2, joined).sigmoid()).float())
    as_before = SimpleModel(OBS, A, HIDDEN, "elu", logits_as_probabilities=True)
    assert torch.equal(as_before.imagine(layers, joined, noise), (noise < run(2, joined)).float())


@pytest.mark.parametrize(
    ("model", "known"),
    [
        (SimpleModel(64, 5, (200,) * 3, "elu"), 296_466),
        (LatentModel(64, 5, (200,) * 3, "elu", GaussianLatent(32, 0.1)), 483_394),
        (LatentModel(64, 5, (200,) * 3, "elu", CategoricalLatent(32, 32)), 1_662_914),
    ],
    ids=["simple", "gaussian", "categorical"],
)
def test_models_have_the_known_number_of_parameters(model, known):
    assert model.size == known
