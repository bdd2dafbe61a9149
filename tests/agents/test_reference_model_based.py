"""Two updates of each of the five model-based agents against the same written out in plain torch,
member by member.

The gradient of a world model's loss is taken from the model itself: ``nets/test_world_models.py``
has it written out.
"""

import pytest
import torch
import torch.nn.functional as F
from helpers.chain import Chain
from helpers.model_based import config
from helpers.reference_updates import Given, close, close_to_adam, count, descend, leaf, perceptron

from lightning_rl.agents.model_based import ModelBasedDQN
from lightning_rl.nets.world_models import RealSteps

SEEDS, BATCH, LENGTH, KEPT, OBS, ACTIONS, HIDDEN = [1, 2], 6, 3, 9, 3, 2, 8
GAMMA, HEAT, RATE, MODEL_RATE, BETAS, EPS, DECAY = 0.9, 0.6, 0.02, 0.03, (0.9, 0.99), 1e-5, 1e-3
VARIABLES, CLASSES = 3, 4


class Slippery(Chain):
    """Going on works by chance alone."""

    step_noise_size = 1

    def step(self, state, action, noise):
        return self._move(state, (action == 1) & (noise[..., 0] < 0.7))


def slip(place, action, event):
    """(reward, goes on, place) of one step of the same, for numbers."""
    if action == 1 and event < 0.7:
        return (-0.84, 0.0, 1.0)[place], float(place < 2), min(place + 1, 2)
    return (0.15, 0.0, 0.0)[place], 1.0, place


def make(kind, episodic=True):
    env = Slippery()
    env.episodic = episodic
    cfg = config(
        kind,
        gamma=GAMMA,
        temperature=HEAT,
        learning_rate=RATE,
        model_learning_rate=MODEL_RATE,
        betas=list(BETAS),
        adam_eps=EPS,
        weight_decay=DECAY,
        batch_size=BATCH,
        rollout_length=LENGTH,
        replay_size=20,
        target_interval=1,
        learning_starts=0,
        hidden=[HIDDEN],
        variables=VARIABLES,
        classes=CLASSES,
        reward_weight=0.5,
        continuation_weight=2.0,
        obs_weight=3.0,
    )
    agent, g = ModelBasedDQN(cfg, env, SEEDS), torch.Generator().manual_seed(7)
    source = agent.source
    if kind in ("simple", "categorical", "gaussian"):
        draw = torch.rand if source.noise_kind == "uniform" else torch.randn
        source._states = Given(draw(2, 2, LENGTH, BATCH, source.model.noise_size, generator=g))
        source._codes = Given(draw(2, 2, 2, BATCH, source.model.encode_noise_size, generator=g))
    agent.target.data.add_(torch.randn(agent.target.shape, generator=g))
    source._draw = Given(torch.rand(2, 2, BATCH, generator=g, dtype=torch.float64))
    if kind != "replay":
        source._actions = Given(
            -torch.log(-torch.log(torch.rand(2, 2, LENGTH, BATCH, ACTIONS, generator=g)))
        )
    if kind == "environment":
        source._events = Given(torch.rand(2, 2, LENGTH, BATCH, 1, generator=g))
    return agent


def remember(agent):
    """Fills the memory with what need not have happened; the places ``[N, T]`` and the steps
    ``[N, T]``.
    """
    g, steps = torch.Generator().manual_seed(8), []
    for _ in range(KEPT):
        place, (obs, after) = (
            torch.randint(3, (2, 1), generator=g),
            torch.randint(2, (2, 2, OBS), generator=g).float(),
        )
        action, continues = (
            torch.randint(ACTIONS, (2,), generator=g),
            torch.randint(2, (2,), generator=g).float(),
        )
        real = RealSteps(obs, action, torch.randn(2, generator=g), continues, after)
        agent.source.remember(place, real)
        steps.append((place[:, 0], *real))
    place, *real = (torch.stack(column, 1) for column in zip(*steps, strict=True))
    return place, RealSteps(*real)


def q_of(params, features):
    return perceptron(params, (features.shape[-1], HIDDEN, ACTIONS), features, F.elu)


def replayed(agent, n, number, place, real, params):
    """q, action, reward, discount, next features and weight of what is learned from, all ``[L B,
    ..]``.
    """
    rows = (agent.source._draw.at(number)[n] * KEPT).long()
    discount = GAMMA * real.continues[n, rows]
    return (
        q_of(params, real.obs[n, rows]),
        real.action[n, rows],
        real.reward[n, rows],
        discount,
        real.next_obs[n, rows],
        None,
    )


def in_the_environment(agent, n, number, place, real, params):
    """Roll-outs from states that were visited, their actions by the present values and Gumbel
    noise.
    """
    eye, rows = torch.eye(3), (agent.source._draw.at(number)[n] * KEPT).long()
    now, steps = place[n, rows].tolist(), []
    for k in range(LENGTH):
        q = q_of(params, eye[now])
        action = (q / HEAT + agent.source._actions.at(number)[n, k]).argmax(-1)
        events = agent.source._events.at(number)[n, k, :, 0]
        outcome = [slip(*one) for one in zip(now, action.tolist(), events.tolist(), strict=True)]
        reward, continues, now = (list(column) for column in zip(*outcome, strict=True))
        steps.append((q, action, torch.tensor(reward), torch.tensor(continues), eye[now]))
    return weighted(agent, steps)


def weighted(agent, steps):
    """Each step counts as much as it is likely that the episode came so far."""
    q, action, reward, continues, features = (
        torch.stack(column) for column in zip(*steps, strict=True)
    )
    weight = torch.ones_like(reward)
    for k in range(1, LENGTH):
        weight[k] = weight[k - 1] * (continues[k - 1] if agent.env.episodic else 1)
    return tuple(x.flatten(0, 1) for x in (q, action, reward, GAMMA * continues, features, weight))


class Model:
    """A member's world model by plain networks."""

    def __init__(self, agent, kind, params):
        out = {"simple": 0, "categorical": VARIABLES * CLASSES, "gaussian": 2 * VARIABLES}[kind]
        latent = out // 2 if kind == "gaussian" else out
        joined = (latent or OBS) + ACTIONS
        ends = [(joined, 1), (joined, 1), (joined, OBS)]
        if latent:
            ends = [(OBS, out), (joined, out), (joined, 1), (joined, 1), (latent, OBS)]
        self.kind, self.shapes = kind, [(first, HIDDEN, last) for first, last in ends]
        self.blocks = params.split([count(shape) for shape in self.shapes])

    def run(self, number, x):
        return perceptron(self.blocks[number], self.shapes[number], x, F.elu)

    def encode(self, obs, noise):
        return obs if self.kind == "simple" else self.sample(self.run(0, obs), noise, 0.1)

    def imagine(self, joined, noise):
        if self.kind == "simple":
            return (noise < self.run(2, joined).sigmoid()).float()
        return self.sample(self.run(1, joined), noise, 0.0)

    def sample(self, out, noise, floor):
        """The encoder's Gaussian is wider by a floor; categories by inversion of the
        distribution function.
        """
        if self.kind == "gaussian":
            mean, raw = out.chunk(2, -1)
            return mean + (2 * (raw / 2).sigmoid() + floor) * noise
        below = out.unflatten(-1, (VARIABLES, CLASSES)).softmax(-1).cumsum(-1)[..., :-1]
        return F.one_hot((noise.unsqueeze(-1) >= below).sum(-1), CLASSES).flatten(-2).float()

    def outcome(self, joined):
        reward, continuation = (0, 1) if self.kind == "simple" else (2, 3)
        return self.run(reward, joined).squeeze(-1), self.run(continuation, joined).squeeze(
            -1
        ).sigmoid()


def imagined(kind, model_params):
    """Roll-outs of the model as it is after its own step, from fresh encodings."""

    def experience(agent, n, number, place, real, params):
        model, rows = (
            Model(agent, kind, model_params[n]),
            (agent.source._draw.at(number)[n] * KEPT).long(),
        )
        features, steps = model.encode(real.obs[n, rows], agent.source._codes.at(number)[n, 1]), []
        for k in range(LENGTH):
            q = q_of(params, features)
            action = (q / HEAT + agent.source._actions.at(number)[n, k]).argmax(-1)
            joined = torch.cat([features, F.one_hot(action, ACTIONS)], -1)
            features = model.imagine(joined, agent.source._states.at(number)[n, k])
            steps.append((q, action, *model.outcome(joined), features))
        return weighted(agent, steps)

    return experience


def check(agent, experience, place, real, updates):
    """Value updates by AdamW on the weighted squared error; updates: what the agent does."""
    start = agent.online.params.detach().clone()
    members = [leaf(row[: count((agent.net.in_size, HIDDEN, ACTIONS))]) for row in start]
    adams = [torch.optim.AdamW([params], RATE, BETAS, EPS, DECAY / RATE) for params in members]
    for number in range(2):
        agent.losses.zero_()
        agent.source.losses.zero_()
        updates(number)
        for n, (params, adam) in enumerate(zip(members, adams, strict=True)):
            with torch.no_grad():
                _, action, reward, discount, after, weight = experience(
                    agent, n, number, place, real, params
                )
                judged = q_of(agent.target[n], after)
                best = q_of(agent.target[n], after).argmax(-1)
                goal = reward + discount * judged.gather(-1, best.unsqueeze(-1)).squeeze(-1)
            q = (
                experience(agent, n, number, place, real, params)[0]
                .gather(-1, action.unsqueeze(-1))
                .squeeze(-1)
            )
            loss = ((1.0 if weight is None else weight) * (q - goal).square()).mean()
            close(agent.losses[n], loss)
            descend(adam, loss)
            close(agent.online.params[n, : len(params)].detach(), params)
            close_to_adam(agent.online.adam, n, adam, [params])


@pytest.mark.parametrize("kind", ["replay", "environment"])
def test_two_updates_without_a_learned_model(kind):
    agent = make(kind)
    place, real = remember(agent)
    experience = replayed if kind == "replay" else in_the_environment
    check(agent, experience, place, real, lambda number: agent.update(number, agent.optimizers()))


def test_the_length_of_a_roll_out_counts_fully_where_nothing_ends():
    agent = make("environment", episodic=False)
    place, real = remember(agent)
    check(
        agent,
        in_the_environment,
        place,
        real,
        lambda number: agent.update(number, agent.optimizers()),
    )


@pytest.mark.parametrize("kind", ["simple", "categorical", "gaussian"])
def test_two_updates_with_a_learned_model(kind):
    """The model first, by a step of its own with codes of its own; then the values, in its
    roll-outs.
    """
    agent = make(kind)
    place, real = remember(agent)
    models = [leaf(row) for row in agent.source.weights.params.detach()]
    adams = [
        torch.optim.AdamW([params], MODEL_RATE, BETAS, EPS, DECAY / MODEL_RATE) for params in models
    ]

    def updates(number):
        codes, grad = (
            agent.source._codes.at(number)[:, 0],
            torch.zeros_like(agent.source.weights.params.detach()),
        )
        rows = (agent.source._draw.at(number) * KEPT).long()
        batch = RealSteps(*(x[torch.arange(2).unsqueeze(1), rows] for x in real))
        model = agent.source.model
        params = agent.source.weights.params.detach().clone()
        parts = model.gradient(model.layers(params), batch, codes, agent.cfg, model.layers(grad))
        agent.update(number, agent.optimizers())
        close(agent.source.losses.T, parts)
        for n, adam in enumerate(adams):
            models[n].grad = grad[n]
            adam.step()
            close(agent.source.weights.params[n].detach(), models[n])

    check(agent, imagined(kind, agent.source.weights.params.detach()), place, real, updates)
