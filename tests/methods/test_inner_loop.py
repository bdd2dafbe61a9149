import dataclasses

import gymnasium
import numpy as np
import pytest
import torch
from helpers.methods import build
from helpers.proxies import reward_proxy, synthetic_proxy

from lightning_rl.agents.cloning import CloneConfig
from lightning_rl.agents.registry import AGENTS
from lightning_rl.agents.testing import evaluate_agents
from lightning_rl.agents.variation import vary_agents
from lightning_rl.core.config import build_config, load_config, merged_values
from lightning_rl.core.errors import UserError
from lightning_rl.core.gamenames import GAMES as NAMED
from lightning_rl.core.gamenames import Game
from lightning_rl.envs.adapters import make_envs
from lightning_rl.envs.one_step import REWARD_STD
from lightning_rl.envs.proxies import SyntheticProxy
from lightning_rl.envs.reward_network import RewardProxy
from lightning_rl.envs.spec import env_spec
from lightning_rl.envs.wrapped_batch import FiniteActions
from lightning_rl.evolution.callback import worst_for_failed
from lightning_rl.evolution.strategies import GaussianProposal, Item
from lightning_rl.evolution.variants import SNES
from lightning_rl.methods.inner_loop import (
    OBJECTIVES,
    InnerLoop,
)
from lightning_rl.methods.perfect_learners import (
    PerfectFirst,
    agents_come_in,
    clones,
    perfect_learners,
    states_met,
)
from lightning_rl.methods.proxy_search import SEConfig

GAME = "cartpole-v0"
SMALL = {
    "DDQN": {
        "train_episodes": 4,
        "batch_size": 16,
        "hidden": [8],
        "learning_starts": 1,
        "replay_size": 400,
    },
    "TD3-discrete": {
        "train_episodes": 4,
        "batch_size": 16,
        "hidden": [8],
        "learning_starts": 1,
        "replay_size": 400,
    },
    "PPO": {"train_episodes": 4, "batch_size": 16, "hidden": [8], "rollout_steps": 16, "epochs": 1},
}
SMALL["DuelingDDQN"] = {**SMALL["DDQN"], "feature_size": 8}


def agent(name, **changes):
    return name, build_config(
        AGENTS[name].config, [*merged_values(name, GAME), ("test", {**SMALL[name], **changes})]
    )


SE = synthetic_proxy()
CLONE = CloneConfig(hidden=[32, 32], activation="relu", learning_rate=3e-3, num_updates=100)
LOOP = InnerLoop(
    proxy=SE,
    agents=(agent("DDQN"),),
    solved_return=195.0,
    unsolved_penalty=100.0,
    test_episodes=2,
    judge_episodes=1,
    max_train_steps=1000,
)


def rows(count, proxy=SE):
    """Random proxies; synthetic ones never end an episode before the cap."""
    params = proxy.net.init([torch.Generator().manual_seed(n) for n in range(count)])
    if proxy is SE:
        proxy.net.split(params)["done"].zero_()
    return params


@pytest.mark.parametrize(("horizon", "decisions"), [(1, 12), (20, 6)])
def test_an_action_that_is_repeated_trains_for_as_many_steps(horizon, decisions):
    """Where an episode has one step there is nothing to repeat."""
    kind = agent("DDQN", action_repeat=2, train_episodes=12, learning_starts=0)
    loop = dataclasses.replace(
        LOOP, agents=(kind,), proxy=dataclasses.replace(SE, horizon=horizon), max_train_steps=12
    )
    trained = loop.train(0, rows(2), [1, 2])
    assert trained.results.env_steps.tolist() == [12, 12]
    assert trained.agent.num_updates.tolist() == [decisions] * 2


@pytest.mark.parametrize("ends_at_once", [True, False])
def test_the_steps_of_a_training_are_environment_steps_however_short_its_episodes(ends_at_once):
    """An action that is repeated takes fewer steps at the end of an episode; whoever trains
    beside takes none from anybody.
    """
    kind = agent("DDQN", action_repeat=7, train_episodes=900, learning_starts=0)
    proxy = SE if ends_at_once else reward_proxy()
    loop = dataclasses.replace(
        LOOP, agents=(kind,), proxy=proxy, judge_episodes=0, max_train_steps=200
    )
    params = rows(3, proxy)
    if ends_at_once:
        SE.net.split(params)["done"][:2, -1] = 1.0  # the output's bias: of two of three
    together = loop.train(0, params, [5, 6, 7])
    steps = together.results.env_steps.tolist()
    assert all(200 <= each < 207 for each in steps)
    assert len(set(together.agent.num_updates.tolist())) > 1
    for n in range(3):
        alone = loop.train(0, params[n : n + 1], [5 + n])
        assert alone.results.env_steps.tolist() == steps[n : n + 1]
        assert alone.agent.num_updates.tolist() == together.agent.num_updates[n : n + 1].tolist()
        torch.testing.assert_close(
            alone.agent.params[0], together.agent.params[n], rtol=0, atol=1e-5
        )


def test_the_only_state_of_a_bandit_is_what_the_task_shows():
    """A table's values are multiplied by the observation: whatever the state is, agents see 1."""
    bandit = dataclasses.replace(SE, gamename="bandit10")
    envs = bandit.batch(rows(3, bandit), [0, 1, 2], 0.9)
    envs.reset(torch.ones(3, dtype=torch.bool))
    assert envs.step(torch.tensor([1, 2, 3])).obs.tolist() == [[1.0]] * 3


def test_a_time_limit_ends_an_episode_only_where_a_synthetic_environment_says_so():
    reward = reward_proxy()
    for proxy, ends in (
        (SE, False),
        (dataclasses.replace(SE, cap_ends=True), True),
        (reward, False),
    ):
        for judged in (0, 1):
            loop = dataclasses.replace(LOOP, proxy=proxy, judge_episodes=judged)
            training = loop.training(0, proxy.net.init([torch.Generator().manual_seed(0)]), [5])
            assert training.envs.cap_ends is ends


@pytest.mark.parametrize("name", SMALL)
def test_a_varied_agent_alone_is_what_it_is_in_a_stack(name):
    """Up to rounding: a padded matrix product adds up in another order."""
    loop = dataclasses.replace(LOOP, agents=(agent(name),), vary=True)
    together, alone = loop.train(0, rows(3), [5, 6, 7]), loop.train(0, rows(3)[1:2], [6])
    assert together.results.env_steps[1] == alone.results.env_steps[0]
    assert together.agent.num_updates[1] == alone.agent.num_updates[0]
    torch.testing.assert_close(
        together.results.returns[1], alone.results.returns[0], rtol=1e-4, atol=1e-4
    )
    obs = torch.randn(16, 4, generator=torch.Generator().manual_seed(0))
    ours, theirs = (module(obs) for module in (together.agent.module(1), alone.agent.module(0)))
    torch.testing.assert_close(
        *(torch.as_tensor(x[0] if isinstance(x, tuple) else x) for x in (ours, theirs)),
        rtol=0,
        atol=1e-5,
    )


@pytest.mark.parametrize(("solved_return", "stopped"), [(-1e9, True), (1e9, False)])
def test_training_ends_at_the_return_that_solves(solved_return, stopped):
    loop = dataclasses.replace(
        LOOP,
        agents=(agent("DDQN", early_out_num=2),),
        stop_rule="solved",
        solved_return=solved_return,
    )
    assert loop.train(0, rows(2), [5, 6]).results.stopped.tolist() == [stopped] * 2


def test_layers_that_are_averaged_over_stack_with_others_of_their_width():
    """Padding would be averaged over, too."""
    loop, seeds = (
        dataclasses.replace(
            LOOP, agents=(agent("TD3-discrete", layer_norm=True, hidden=[2]),), vary=True
        ),
        range(30),
    )
    stacks = loop.stacks(0, list(range(30)), seeds)
    drawn = vary_agents(loop.agents[0][1], seeds)
    assert sorted(row for stack in stacks for row in stack) == list(range(30))
    assert all(
        len({(drawn.widths[row], drawn.depths[row]) for row in stack}) == 1 for stack in stacks
    )
    assert max(map(len, stacks)) > 1
    assert len(loop.evaluate(rows(4), [0, 1, 2, 3], [0] * 4)) == 4


def paying(gamename, *pay):
    """A one-step proxy that pays the same in every state."""
    proxy = SyntheticProxy(
        gamename=gamename, hidden=(1,), activation="tanh", horizon=1, latent_size=1, done="always"
    )
    params = proxy.net.init([torch.Generator().manual_seed(0)])
    block = proxy.net.split(params)["pay"]
    block.zero_()
    block[:, -len(pay) :] = torch.tensor(pay)  # the last bias
    return proxy, params


def test_perfect_learners_take_the_action_that_is_paid_best():
    for pay, best in (((0.0, 1.0), 1), ((0.5, -1.0), 0)):
        learners = perfect_learners(*paying(GAME, *pay), [3])
        assert learners.greedy(torch.randn(1, 5, 4)).tolist() == [[best] * 5]
    proxy, right = paying(GAME, 0.0, 1.0)
    learners = perfect_learners(proxy, torch.cat([right, paying(GAME, 1.0, 0.0)[1]]), [3, 4])
    with learners.holding(learners.rows(torch.tensor([1]))):
        assert learners.greedy(torch.randn(1, 5, 4)).tolist() == [[0] * 5]
    learners = perfect_learners(*paying("pendulum", -7.0), [3])
    assert learners.greedy(torch.randn(1, 2, 3)).tolist() == [[[-1.0], [-1.0]]]


@pytest.mark.parametrize("spread", [1.0, 4.0])
def test_agents_come_in_where_perfect_learners_were_and_to_less_noise(spread):
    proxy, params = paying(GAME, 0.0, 1.0)  # always to the right
    cfg = load_config(SEConfig, "SE", GAME, "suite", {}, {"noise_std": 0.3})
    strategy = SNES(params[0], proxy.net.evolved(), cfg, 1)
    agents_come_in(proxy, strategy, 0.2, spread, seed=5)
    torch.testing.assert_close(strategy.log_std.detach().exp(), torch.full_like(params[0], 0.06))
    env, g = proxy.env(strategy.mean.detach()[None]), torch.Generator().manual_seed(2)
    noise = torch.rand(1, 4000, env.reset_noise_size, generator=g)
    noise[..., 1] = 1  # all the way from the task's start states to the learned ones
    starts = env.reset(noise)[0]
    envs = make_envs(env_spec(GAME), range(500))
    met, over, obs = (
        [],
        torch.zeros(500, dtype=torch.bool),
        envs.reset(torch.ones(500, dtype=torch.bool)),
    )
    while not over.all():
        met.append(obs[~over])
        step = envs.step(torch.ones(500, dtype=torch.int64))
        over |= step.terminated
        obs = envs.reset(step.terminated)
    met = torch.cat(met)
    low, high = met.amin(0), met.amax(0)
    torch.testing.assert_close(starts.mean(0), (low + high) / 2, atol=0.03 * spread, rtol=0.1)
    torch.testing.assert_close(starts.std(0), spread * (high - low) / 3, atol=0.02, rtol=0.15)
    assert (strategy.mean == params[0])[: -2 * 4 - 1].all()
    assert strategy.mean[-1].item() == pytest.approx(
        REWARD_STD / 0.5
    )  # of rewards that were 0.5 and -0.5


def test_the_states_met_are_those_of_one_episode_each():
    learner = perfect_learners(*paying(GAME, 0.0, 1.0), [3])
    _, lengths = evaluate_agents(learner, make_envs(env_spec(GAME), range(20)), 20)
    assert len(set(lengths.flatten().tolist())) > 1
    assert len(states_met(learner, make_envs(env_spec(GAME), range(20)))) == lengths.sum()
    pushing = perfect_learners(*paying("pendulum", -7.0), [3])
    assert (
        len(states_met(pushing, make_envs(env_spec("pendulum"), range(2)))) == 2 * 200
    )  # only its time limit ends it


def test_the_first_generations_are_judged_by_perfect_learners():
    proxy, params = paying(
        GAME, 0.0, 1.0
    )  # always to the right: 8 to 11 steps until the pole has fallen
    loop = PerfectFirst(
        **{**vars(LOOP), "proxy": proxy}, perfect_generations=2, clone_generations=0, clone=CLONE
    )
    item = Item(member=-1, sign=0, agent=0, turn=0)
    proposals = [
        GaussianProposal(1, n, params[0].numpy(), torch.zeros(params.shape[1]).numpy())
        for n in range(3)
    ]
    (perfect,), (trained,) = (loop(proposals[n], [item]) for n in (1, 2))
    assert perfect.train_steps == perfect.num_updates == perfect.episodes == 0
    assert trained.train_steps > 0
    assert 8 <= perfect.test_return <= 11
    assert perfect.test_return * 2 == perfect.test_steps
    assert perfect.fitness == perfect.test_return
    items = [Item(member=-1, sign=0, agent=n, turn=0) for n in range(3)]
    assert loop(proposals[0], items) == [
        loop(proposals[0], [one])[0] for one in items
    ]  # each is tested on seeds of its own


def test_clones_judge_between_perfect_learners_and_agents():
    proxy, params = paying(GAME, 0.0, 1.0)
    loop = PerfectFirst(
        **{**vars(LOOP), "proxy": proxy}, perfect_generations=1, clone_generations=2, clone=CLONE
    )
    item, still = Item(member=-1, sign=0, agent=0, turn=0), torch.zeros(params.shape[1]).numpy()
    outcomes = [loop(GaussianProposal(1, n, params[0].numpy(), still), [item])[0] for n in range(4)]
    assert [outcome.num_updates for outcome in outcomes[:3]] == [
        0,
        CLONE.num_updates,
        CLONE.num_updates,
    ]
    assert [outcome.train_steps > 0 for outcome in outcomes] == [False, False, False, True]
    assert all(8 <= outcome.test_return <= 11 for outcome in outcomes[:3])  # always to the right


def test_clones_learn_as_the_config_says():
    keys = {"clone_hidden": [5, 6], "clone_learning_rate": 0.25, "num_clone_updates": 7}
    start = {"one_step": True, "perfect_generations": 1, "clone_generations": 1, "keep": "last"}
    method = build("SE", cap_ends=False, proxy_horizon=None, **start, **keys)
    assert method.inner_loop.clone == CloneConfig(
        hidden=[5, 6], activation="relu", learning_rate=0.25, num_updates=7
    )


@pytest.mark.parametrize("gamename", [GAME, "pendulum"])
def test_clones_do_what_pays_best_in_start_states(gamename):
    """Those of two environments that pay otherwise; each clone begins from fresh weights, a
    function of its seed.
    """
    proxy = SyntheticProxy(
        gamename=gamename, hidden=(4,), activation="tanh", horizon=1, latent_size=2, done="always"
    )
    learners = perfect_learners(proxy, rows(2, proxy), [3, 4])
    env, taught = learners.env, clones(CLONE, learners, proxy.spec)
    noise = torch.rand(2, 300, env.reset_noise_size, generator=torch.Generator().manual_seed(5))
    obs = env.observe(env.reset(noise))
    best, done = env.best(env.reset(noise)), taught.greedy(obs)
    if proxy.spec.continuous:
        meant = env.meant(env.reset(noise))  # further out than what pays best
        error, others, further = (
            (done - x).abs().mean((1, 2)) for x in (best, best.flip(0), meant)
        )
        assert (error < 0.05).all()
        assert (error < others / 3).all()
        assert (error < further / 2).all()
    else:
        assert ((done == best).float().mean(1) > 0.95).all()
    again = clones(CLONE, perfect_learners(proxy, rows(2, proxy), [3, 4]), proxy.spec)
    assert torch.equal(again.params, taught.params)


def test_agents_take_turns():
    loop = dataclasses.replace(LOOP, agents=(agent("DDQN"), agent("PPO")))
    both = loop.evaluate(rows(4), [1, 2, 3, 4], [0, 1, 2, 3])
    assert both[1::2] == dataclasses.replace(loop, agents=loop.agents[1:]).evaluate(
        rows(4)[1::2], [2, 4], [0, 0]
    )
    assert both[0::2] == dataclasses.replace(loop, agents=loop.agents[:1]).evaluate(
        rows(4)[0::2], [1, 3], [0, 0]
    )


def test_a_diverged_agent_scores_the_worst_legal_return_and_is_counted():
    params = rows(2)
    SE.net.split(params)["reward"][1] = 1e38  # the reward head
    sound, failed = LOOP.evaluate(params, [1, 2], [0, 0])
    assert not sound.failed
    assert failed.failed
    assert failed.fitness == failed.test_return == 1.0
    reward = reward_proxy()
    loop = dataclasses.replace(LOOP, proxy=reward, objective="steps_to_threshold")
    params = rows(2, reward)
    params[1] = float("inf")
    assert loop.evaluate(params, [1, 2], [0, 0])[1].fitness == -1000 - 100 * (195 - 1)
    loop = dataclasses.replace(loop, objective="auc")
    assert (
        loop.evaluate(params, [1, 2], [0, 0])[1].fitness == 1.0 * 4
    )  # the shortest four episodes, at the worst return
    reward = reward_proxy("acrobot")
    loop = dataclasses.replace(loop, proxy=reward, max_train_steps=600)
    params = rows(2, reward)
    params[1] = float("inf")
    assert (
        loop.evaluate(params, [1, 2], [0, 0])[1].fitness == -500.0 * 600
    )  # the longest training, as returns cost


class Steering(gymnasium.Env):
    """Five steps that pay the action, as MuJoCo does: one that is nan is paid nan, which a
    roll-out refuses.
    """

    observation_space = gymnasium.spaces.Box(-1, 1, (4,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, **kwargs):
        super().reset(**kwargs)
        self.left = 5
        return np.ones(4, np.float32), {}

    def step(self, action):
        self.left -= 1
        return np.full(4, self.left / 5, np.float32), float(action[0]), self.left == 0, False, {}


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("kind", ["SE", "RN"])
def test_a_diverged_agent_is_as_bad_as_the_worst_where_no_worst_return_is_known(
    monkeypatch, kind, objective
):
    """It is not tested: with its nan weights it would do something, or end the search, and be
    paid for it.
    """
    monkeypatch.setitem(NAMED, "steering", Game(Steering, horizon=5, solved_return=5.0))
    sizes = {"gamename": "steering", "hidden": (8,), "activation": "tanh"}
    proxy = (
        SyntheticProxy(**sizes, horizon=20)
        if kind == "SE"
        else RewardProxy(**sizes, form="exclusive", gamma=0.9)
    )
    td3 = build_config(
        AGENTS["TD3"].config, [*merged_values("TD3", "steering"), ("test", SMALL["DDQN"])]
    )
    loop = dataclasses.replace(
        LOOP, proxy=proxy, agents=(("TD3", td3),), objective=objective, stop_rule="solved"
    )
    params = rows(3, proxy)
    params[1] = float("inf")
    outcomes = loop.evaluate(params, [1, 2, 3], [0] * 3)
    assert [outcome.failed for outcome in outcomes] == [False, True, False]
    alone = [loop.evaluate(params[[n]], [n + 1], [0])[0] for n in (0, 2)]
    assert [outcome.test_return for outcome in alone] == pytest.approx(
        [outcomes[0].test_return, outcomes[2].test_return]
    )
    judged = worst_for_failed(outcomes)
    for key in ("fitness", "test_return"):
        assert np.isnan(getattr(outcomes[1], key))
        assert getattr(judged[1], key) == min(getattr(outcomes[n], key) for n in (0, 2))
    assert [judged[0], judged[2]] == [outcomes[0], outcomes[2]]
    assert [outcome.fitness for outcome in worst_for_failed(outcomes[1:2])] == [
        -1e9
    ]  # nobody knows better


def test_an_action_that_is_no_number_never_reaches_the_task(monkeypatch):
    monkeypatch.setitem(NAMED, "steering", Game(Steering, horizon=5))
    real, other = (make_envs(env_spec("steering"), [1, 2]) for _ in range(2))
    envs = FiniteActions(real)
    step = envs.step(torch.tensor([[0.5], [torch.nan]]))
    assert step.reward[0] == 0.5
    assert step.reward[1].isnan()
    assert torch.equal(step.obs, other.step(torch.tensor([[0.5], [0.0]])).obs)
    assert torch.equal(envs.obs, step.obs)


def test_the_step_budget_ends_a_training():
    loop = dataclasses.replace(LOOP, max_train_steps=30)
    for outcome in loop.evaluate(rows(2), [1, 2], [0, 0]):
        assert outcome.train_steps == 30
        assert not outcome.stopped
        assert outcome.test_steps > 0


def test_the_published_rule_needs_21_episodes():
    """Ten of initialisation, ten to compare, and the eleventh: 21 * 20 steps, without a look at
    the real task.
    """
    name, cfg = agent("DDQN", train_episodes=50, learning_starts=10)
    cfg = dataclasses.replace(cfg, early_out_virtual_diff=1e9)
    loop = dataclasses.replace(LOOP, agents=((name, cfg),), stop_rule="plateau")
    trained = loop.train(0, rows(2), [1, 2])
    assert trained.results.env_steps.tolist() == [420, 420]
    assert not trained.results.judge_steps.any()


@pytest.mark.parametrize("rule", ["solved", "plateau", "none"])
def test_reward_networks_are_judged_on_the_real_task(rule):
    proxy = reward_proxy()
    loop = dataclasses.replace(LOOP, proxy=proxy, stop_rule=rule)
    trained = loop.train(0, rows(2, loop.proxy), [1, 2])
    r = trained.results
    assert (r.scores[:, :4] >= 8).all()  # real returns, whatever the network pays
    assert torch.equal(r.judge_steps, r.scores[:, :4].sum(1).long())
    assert (r.returns[:, :4] - r.lengths[:, :4]).abs().max() > 1


def test_objectives_by_hand():
    trained = (
        torch.tensor([150.0, 200.0]),
        torch.tensor([700.0, 300.0]),
        torch.tensor([[10.0, 20], [100, 200]]),
        torch.tensor([[5.0, 7], [2, 3]]),
    )

    def fitness(objective, solved_return=195.0):
        asked = {"objective": objective, "solved_return": solved_return, "unsolved_penalty": 100.0}
        return dataclasses.replace(LOOP, **asked).fitness(*trained).tolist()

    assert fitness("steps_to_threshold") == [-700 - 4500, -300]
    assert fitness("auc") == [190, 800]
    assert fitness("final_return") == [150, 200]
    assert fitness("steps_to_threshold", None) == [150, 200]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"one_step": True, "proxy_horizon": 5},
            "one_step true: .*leave out proxy_horizon and cap_ends",
        ),
        (
            {"one_step": True, "cap_ends": True},
            "one_step true: .*leave out proxy_horizon and cap_ends",
        ),
        (
            {"perfect_generations": 3},
            "perfect_generations 3: they need one_step true; use that, or 0",
        ),
        (
            {"clone_generations": 3},
            "clone_generations 3: clones follow perfect_generations; set that, or use 0",
        ),
        (
            {"agent_noise": 0.5},
            "agent_noise 0.5: it needs perfect_generations and strategy snes; or use 1.0",
        ),
        ({"agent_noise": 0.5, "strategy": "snes"}, "agent_noise 0.5: it needs perfect_generations"),
        (
            {"agent_noise": 0.5, "perfect_generations": 3, "one_step": True},
            "agent_noise 0.5: it needs .* and strategy snes",
        ),
        (
            {"perfect_generations": 3, "one_step": True},
            "perfect_generations 3: their scores are no agents'; use keep=last, or 0",
        ),
    ],
)
def test_keys_that_contradict_each_other(settings, message):
    with pytest.raises(UserError, match=message):
        load_config(SEConfig, "SE", GAME, None, {}, settings)
