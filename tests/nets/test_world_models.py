"""World models: their losses against definitions written out, gradients, imagination."""

import dataclasses

import pytest
import torch

from lightning_rl.nets.latents import CategoricalLatent, GaussianLatent
from lightning_rl.nets.world_models import LatentModel, LossWeights, RealSteps, SimpleModel

OBS, A, HIDDEN = 6, 3, (8, 8)
WEIGHTS = LossWeights(1.0, 1.0, 1.0, 0.8, 0.2)
SIMPLE = SimpleModel(OBS, A, HIDDEN, "elu", LossWeights(1.0, 1.0, 1.0))
CATEGORICAL = LatentModel(OBS, A, HIDDEN, "elu", WEIGHTS, CategoricalLatent(4, 3))
GAUSSIAN = LatentModel(OBS, A, HIDDEN, "elu", WEIGHTS, GaussianLatent(4, "sigmoid2", 0.1))
MODELS = {"simple": SIMPLE, "categorical": CATEGORICAL, "gaussian": GAUSSIAN}


def setting(model, members=2, batch=5, seed=0):
    g = torch.Generator().manual_seed(seed)

    def bits(*shape):
        return torch.randint(2, shape, generator=g).float()

    params = model.init([torch.Generator().manual_seed(n) for n in range(members)])
    obs, after = bits(members, batch, OBS), bits(members, batch, OBS)
    action = torch.randint(A, (members, batch), generator=g)
    real = RealSteps(obs, action, torch.rand(members, batch, generator=g), bits(members, batch), after)
    draw = torch.rand if model.noise_kind == "uniform" else torch.randn
    return params, real, draw(members, batch, model.noise_size, generator=g)


def by_autograd(params, model):
    """Runs the model's networks with parameters that autograd knows."""
    layers = model.layers(params)

    def run(number, x):
        for weight, bias in layers[number][:-1]:
            x = torch.nn.functional.elu(x @ weight + bias)
        weight, bias = layers[number][-1]
        return x @ weight + bias

    return run


def losses(model, params, real, noise):
    return model.losses(by_autograd(params, model), real, noise)


def gradient(value, leaf):
    return torch.autograd.grad(value.sum(), leaf, retain_graph=True)[0]


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_member_of_many_is_the_member_alone(model):
    params, real, noise = setting(model, members=3)
    grad, alone = torch.zeros_like(params), torch.zeros_like(params[:1])
    parts = model.gradient(model.layers(params), real, noise, model.layers(grad))
    for n in range(3):
        rows = slice(n, n + 1)
        mine = RealSteps(*(x[rows] for x in real))
        named = model.gradient(model.layers(params[rows]), mine, noise[rows], model.layers(alone))
        torch.testing.assert_close(named, parts[:, rows])
        torch.testing.assert_close(alone, grad[rows], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_gradient_is_that_of_the_weighted_loss(model):
    """Against autograd; the divergence written out as two, each with the gradient of the other side stopped."""
    model = dataclasses.replace(model, weights=LossWeights(0.5, 2.0, 3.0, 0.8, 0.2))
    params, real, noise = setting(model)
    grad, leaf = torch.zeros_like(params), params.clone().requires_grad_()
    parts = model.gradient(model.layers(params), real, noise, model.layers(grad))
    named = losses(model, leaf, real, noise)
    torch.testing.assert_close(parts, torch.stack([named[name].detach() for name in model.parts]).mean(-1))
    total = 0.5 * named["reward"] + 2 * named["continuation"] + 3 * named["obs"]
    if "kl" in model.parts:
        run = by_autograd(leaf, model)
        now, after = run(0, torch.cat([real.obs, real.next_obs], dim=1)).chunk(2, dim=1)
        prior = run(1, model.join(model.latent.sample(now, noise, posterior=True), real.action))
        total = total + 0.8 * model.latent.kl(after.detach(), prior) + 0.2 * model.latent.kl(after, prior.detach())
    torch.testing.assert_close(grad, gradient(total.mean(-1), leaf), rtol=1e-4, atol=1e-6)


def test_the_simple_model_is_not_trained_on_what_follows_a_termination():
    params, real, noise = setting(SIMPLE)
    ended = real._replace(continues=torch.zeros_like(real.continues))
    assert not losses(SIMPLE, params, ended, noise)["obs"].any()
    assert losses(SIMPLE, params, ended._replace(continues=torch.ones_like(real.continues)), noise)["obs"].all()


@pytest.mark.parametrize("model", [CATEGORICAL, GAUSSIAN], ids=["categorical", "gaussian"])
def test_divergences_move_one_side_each(model):
    """The prior's weight is that of the gradient that reaches the dynamics network, and the encoder through the latent that it
    starts from; the posterior's that of the encoding of the next observation, and not of the dynamics network.
    """
    params, real, noise = setting(model)
    encoder, dynamics = slice(0, model.nets[0].size), slice(model.nets[0].size, model.nets[0].size + model.nets[1].size)

    def divergence(*weights):
        leaf = params.clone().requires_grad_()
        weighted = dataclasses.replace(model, weights=LossWeights(0, 0, 0, *weights))
        return gradient(losses(weighted, leaf, real, noise)["kl"], leaf)

    prior, posterior = divergence(1.0, 0.0), divergence(0.0, 1.0)
    assert prior[:, dynamics].any()
    assert not posterior[:, dynamics].any()
    assert posterior[:, encoder].any()
    torch.testing.assert_close(divergence(0.8, 0.2), 0.8 * prior + 0.2 * posterior, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("model", [CATEGORICAL, GAUSSIAN], ids=["categorical", "gaussian"])
def test_reconstruction_is_masked_at_terminations_and_divergences_are_not(model):
    params, real, noise = setting(model)
    ended = real._replace(continues=torch.zeros_like(real.continues))
    parts = losses(model, params, ended, noise)
    assert not parts["obs"].any()
    assert (parts["kl"] > 0).all()


@pytest.mark.parametrize("latent", [CategoricalLatent(4, 3), GaussianLatent(4, "sigmoid2", 0.0)])
def test_the_divergence_of_equal_outputs_is_zero(latent):
    output = torch.randn(2, 5, latent.output_size)
    torch.testing.assert_close(latent.kl(output, output), torch.zeros(2, 5), rtol=0, atol=1e-5)


def test_the_encoders_standard_deviation_alone_has_a_floor():
    latent = GaussianLatent(1, "sigmoid2", 0.1)
    output = torch.tensor([[3.0, -1000.0], [3.0, 0.0]])
    assert latent.moments(output, posterior=True)[1].flatten().tolist() == pytest.approx([0.1, 1.1], abs=2e-6)
    assert latent.moments(output, posterior=False)[1].flatten().tolist() == pytest.approx([1e-6, 1.0])


def test_categorical_latents_are_one_hot_and_the_mode_is_the_likeliest():
    latent = CategoricalLatent(2, 3)
    logits = torch.tensor([0.0, 5.0, 0.0, 1.0, 0.0, 0.0])
    assert latent.sample(logits, None, True).tolist() == [0, 1, 0, 1, 0, 0]
    z = latent.sample(torch.randn(100, 6), torch.rand(100, 2), True)
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
    assert features.shape == after.shape == (2, 5, model.feature_size)
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


@pytest.mark.parametrize(
    ("model", "known"),
    [(SimpleModel(64, 5, (200,) * 3, "elu", WEIGHTS), 296_466),
     (LatentModel(64, 5, (200,) * 3, "elu", WEIGHTS, GaussianLatent(32, "sigmoid2", 0.1)), 483_394),
     (LatentModel(64, 5, (200,) * 3, "elu", WEIGHTS, CategoricalLatent(32, 32)), 1_662_914)],
    ids=["simple", "gaussian", "categorical"],
)  # fmt: skip
def test_models_have_the_known_number_of_parameters(model, known):
    assert 0 <= model.size - known < 64 * len(model.nets)
