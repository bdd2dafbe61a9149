"""The package as a library: train, load, act, evaluate, and what users bring along."""

import logging
import os
import random
import re
import signal
import sys
import threading
import warnings

import gymnasium
import numpy as np
import pytest
import torch
import yaml
from helpers.budgets import tiny_settings
from pytorch_lightning import Callback, Trainer
from pytorch_lightning.loggers import CSVLogger
from pytorch_lightning.utilities import rank_zero_only

import lightning_rl
from lightning_rl.cli import main
from lightning_rl.core import catalogue
from lightning_rl.core.errors import UserError
from lightning_rl.core.seeding import derive_seed
from lightning_rl.envs.spec import env_spec
from lightning_rl.functional.distributions import distribution_for
from lightning_rl.lab.scalars import read_scalar
from lightning_rl.methods import registry
from lightning_rl.methods.base import Method
from lightning_rl.nets.policies import Policy
from lightning_rl.rollouts.collected import CollectedRollouts, training_requests


def tiny(name, **settings):
    return {**tiny_settings(name), "max_epochs": 2, "num_workers": 0, **settings}


class Epochs(Callback):
    """Counts the epochs that it sees end."""

    count = 0

    def on_train_epoch_end(self, trainer, pl_module):
        self.count += 1


def process_state():
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    level = logging.getLogger("pytorch_lightning").level
    flags = (
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_grad_enabled(),
    )
    return flags, handlers, level, list(warnings.filters), threading.excepthook, sys.excepthook


@pytest.mark.slow
def test_training_changes_nothing_in_the_process(tmp_path):
    before = process_state()
    run = lightning_rl.train("RCP-A", "cartpole", logdir=tmp_path, **tiny("RCP-A"))
    assert process_state() == before
    shown = rf"Run\(RCP-A, cartpole, seed 25: [\d,]+ steps, eval -?[\d.]+, {run.path}\)"
    assert re.fullmatch(shown, repr(run))


@pytest.mark.parametrize("what", ["callbacks", "logger"])
@pytest.mark.parametrize("several", [False, True])
def test_classes_of_the_package_lightning_are_told_of_the_other(what, several, tmp_path):
    other = type("EarlyStopping", (), {"__module__": "lightning.pytorch.callbacks"})()
    with pytest.raises(
        UserError,
        match="EarlyStopping is of the package lightning; import it from pytorch_lightning",
    ):
        lightning_rl.train(
            "AAC", "cartpole", logdir=tmp_path, **{what: [other] if several else other}
        )


class Dice(gymnasium.Env):
    """Draws from every global generator."""

    observation_space, action_space = (
        gymnasium.spaces.Box(-9, 9, (3,), np.float32),
        gymnasium.spaces.Discrete(2),
    )

    def reset(self, *, seed=None, options=None):
        self.left = random.randint(3, 9)
        return np.random.rand(3).astype(np.float32), {}

    def step(self, action):
        self.left -= 1
        seen = [random.random(), np.random.randn(), float(torch.rand(()))]
        return np.clip(seen, -9, 9).astype(np.float32), float(action), self.left == 0, False, {}


@pytest.mark.filterwarnings("ignore:'dice' draws from a global generator")
@pytest.mark.parametrize(
    ("name", "num_seeds", "other_way"),
    [
        ("UDRL", 1, {"num_workers": 1}),
        pytest.param("DDQN", 1, {"simulator": "processes"}, marks=pytest.mark.slow),
        ("DDQN", 2, {}),
    ],
)
def test_who_draws_from_global_generators_is_reproducible_and_the_users_are_left_alone(
    name, num_seeds, other_way, tmp_path
):
    lightning_rl.register_env("dice", Dice, horizon=20)
    settings = {**tiny(name), "max_epochs": 3, "checkpoint_interval": 1, "num_seeds": num_seeds}
    state = [random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()]
    first = lightning_rl.train(name, "dice", logdir=tmp_path / "first", **settings)
    assert state == [
        random.getstate(),
        np.random.get_state()[1].tolist(),
        torch.get_rng_state().tolist(),
    ]
    random.seed(1)
    np.random.seed(1)
    settings |= {**other_way, "logdir": tmp_path / "other"}
    lightning_rl.train(name, "dice", **{**settings, "max_epochs": 1})
    other = lightning_rl.train(name, "dice", resume=True, **settings)
    resumed = other.method.state_dict()
    assert all(torch.equal(value, resumed[key]) for key, value in first.method.state_dict().items())


CLUSTERS = {
    "nonsense": {"RANK": "", "LOCAL_RANK": "x", "WORLD_SIZE": "-1"},
    "srun": {
        "SLURM_JOB_ID": "7",
        "SLURM_JOB_NAME": "train",
        "SLURM_NTASKS": "4",
        "SLURM_NTASKS_PER_NODE": "4",
        "SLURM_PROCID": "3",
        "SLURM_LOCALID": "3",
        "SLURM_NODEID": "0",
    },
    "torchrun": {
        "RANK": "3",
        "LOCAL_RANK": "3",
        "WORLD_SIZE": "4",
        "GROUP_RANK": "0",
        "TORCHELASTIC_RUN_ID": "7",
        "MASTER_ADDR": "elsewhere",
        "MASTER_PORT": "1",
    },
}


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_run_is_one_process_whatever_a_cluster_says(cluster, tmp_path, monkeypatch):
    for name, value in CLUSTERS[cluster].items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(rank_zero_only, "rank", 3)  # as Lightning reads it from these variables
    environment = dict(os.environ)
    for epochs in (2, 3):
        options = {"logdir": tmp_path, "resume": True, **tiny("AAC", max_epochs=epochs)}
        run = lightning_rl.train("AAC", "cartpole", **options)
    assert read_scalar(run.path, "rollout/return_mean").value.size == 3
    assert environment == dict(os.environ)
    assert rank_zero_only.rank == 3


def test_training_gives_a_run_and_takes_callbacks_and_loggers(tmp_path):
    seen = Epochs()
    logger = CSVLogger(tmp_path / "csv")
    run = lightning_rl.train(
        "UDRL", "cartpole", seed=3, logdir=tmp_path, callbacks=seen, logger=logger, **tiny("UDRL")
    )
    assert isinstance(run, lightning_rl.Run)
    assert seen.count == 2
    assert run.path == tmp_path / "cartpole" / "default" / "UDRL" / "seed_3"
    assert (run.path / "last.ckpt").is_file()
    assert run.metrics["eval/return_mean"] == pytest.approx(
        float(run.trainer.callback_metrics["eval/return_mean"])
    )
    assert run.method.seed == 3
    logger.save()
    assert (
        "train/policy_loss"
        in (tmp_path / "csv" / "lightning_logs" / "version_0" / "metrics.csv").read_text()
    )
    assert not (run.path / "logger").exists()


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """What two epochs of a Trainer of the user's leave, and the warnings that the user met."""
    folder = tmp_path_factory.mktemp("plain")
    method = lightning_rl.UDRL("cartpole", **tiny_method("UDRL"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trainer(folder, 2).fit(method, datamodule=method.rollouts())
    (path,) = folder.rglob("epoch=*.ckpt")
    return path, folder, [str(warning.message) for warning in caught]


def tiny_method(name):
    return {**tiny_settings(name), "eval_interval": 1}


def trainer(folder, epochs):
    quiet = {"enable_progress_bar": False, "enable_model_summary": False}
    return Trainer(
        max_epochs=epochs,
        logger=CSVLogger(folder),
        default_root_dir=folder,
        log_every_n_steps=1,
        **quiet,
    )


def test_a_plain_trainer_resumes_without_nonsense_and_its_logger_has_the_config(plain):
    path, folder, warned = plain
    assert not [
        message
        for message in warned
        if "transfer_batch_to_device" in message or "log_every_n_steps" in message
    ]
    record = yaml.safe_load((folder / "lightning_logs" / "version_0" / "hparams.yaml").read_text())
    assert record["implementation"] == "UDRL"
    assert record["config"]["hidden"] == [8, 8]
    method = lightning_rl.UDRL("cartpole", **tiny_method("UDRL"))
    trainer(folder, 3).fit(method, datamodule=method.rollouts(), ckpt_path=path)
    assert method.trainer.current_epoch == 3


@pytest.mark.parametrize(
    ("where", "value", "named"),
    [
        (("state_dict", "env_steps"), torch.tensor(-5), "state_dict.env_steps: expected numbers"),
        (("optimizer_states", 1, "param_groups", 0, "lr"), "x", "lr: 'x'"),
        (("hyper_parameters", "implementation"), "RCP-A", "'RCP-A', of this method 'UDRL'"),
    ],
)
def test_a_plain_trainer_refuses_a_damaged_checkpoint_in_one_line(
    plain, tmp_path, where, value, named
):
    content = torch.load(plain[0], weights_only=True)
    *way, key = where
    place = content
    for step in way:
        place = place[step]
    place[key] = value
    torch.save(content, tmp_path / "bad.ckpt")
    method = lightning_rl.UDRL("cartpole", **tiny_method("UDRL"))
    with pytest.raises(UserError) as caught:
        trainer(tmp_path, 3).fit(
            method, datamodule=method.rollouts(), ckpt_path=tmp_path / "bad.ckpt"
        )
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"implementation": "UDLR"}, "did you mean 'UDRL'"),
        ({"lr": 1.0}, "did you mean 'learning_rate'"),
        ({"gamename": "cartpol"}, "did you mean 'cartpole'"),
        ({"num_seeds": 2}, "trains one seed at a time"),
        ({"exp_name": "../up"}, "--exp_name '../up' is not a folder name"),
        ({"executor": "ray"}, "--executor ray: UDRL evaluates no population"),
        ({"executor": "rya"}, "--executor 'rya' is unknown; did you mean 'ray'"),
        ({"accelerator": "cuda"}, "--accelerator 'cuda' is unknown; choose one of: cpu, gpu, auto"),
        ({"seed": -1}, "--seed -1: it must be a whole number from 0 to 4,294,967,295"),
        ({"seed": 2.5}, "--seed 2.5: it must be a whole number"),
        ({"num_seeds": 0}, "--num_seeds 0: it must be a whole number from 1 to 256"),
        (
            {"seed": 2**32 - 1, "num_seeds": 2},
            "--seed 4294967295 --num_seeds 2: the last seed is beyond",
        ),
        ({"num_workers": -1}, "--num_workers -1: it must be a whole number"),
        ({"num_workers": 9999}, "9999 workers on"),
        ({"recording_epoch_interval": 0}, "must be 1 or more, or -1 for never"),
        (
            {"resume": True, "reload": "UDRL-lunarlander"},
            "--resume and --reload exclude each other",
        ),
        ({"resume": True, "checkpoint": False}, "--resume and --no_checkpoint exclude each other"),
        ({"stop_evaluations": 2}, "--stop_evaluations goes with --stop_return"),
        ({"stop_return": "2"}, "'2': it must be a finite"),
        ({"reload": "RCP-A-lunarlandr"}, "did you mean 'RCP-A-lunarlander'"),
        ({"reload": "nowhere"}, "'nowhere' does not exist"),
        ({"callbacks": print}, "give Lightning callbacks, e.g."),
        ({"resume": "no"}, "resume 'no': it must be True or False"),
        ({"gamename": 3}, "gamename 3: give its name, e.g. 'CartPole-v1'"),
        ({"config": "x"}, "config 'x': give a dict of keys and values"),
        ({"logdir": 3}, "--logdir 3: give a path, e.g. 'exp_dir'"),
        ({"implementation": lightning_rl.RCPA}, "RCPA'>: give its name, e.g. 'RCP-A'"),
        ({"implementation": "RCP-A", "logger": None}, "logger None: give Lightning loggers"),
        (
            {"implementation": "RCP-A", "num_worker": 0},
            "option 'num_worker'; did you mean 'num_workers'?",
        ),
    ],
)
def test_what_cannot_be_is_an_error_of_one_line(tmp_path, options, message):
    usual = {"implementation": "UDRL", "gamename": "cartpole", "logdir": tmp_path}
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        lightning_rl.train(**usual | options)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "gamename", "command"),
    [
        ("UDRL", "cartpole", {"return": 20.0, "horizon": 25.0}),
        ("RCP-A", "pendulum", {"advantage": 1.5}),
        ("AAC", "cartpole", {}),
        ("DDQN", "cartpole", {}),
    ],
)
def test_a_loaded_agent_plays_the_episodes_of_an_evaluation(tmp_path, name, gamename, command):
    """Step by step, by the rewards that it is told, in the environment that users make; an
    evaluation rounds otherwise, as its policy is compiled.
    """
    run = lightning_rl.train(name, gamename, logdir=tmp_path, **tiny(name, chunk_size=1))
    agent = lightning_rl.load(run.path)
    report = lightning_rl.evaluate(agent, episodes=2, command=command)
    env = lightning_rl.make_env(gamename)
    for greedy, mode in ((False, "sampled"), (True, "greedy")):
        for k in range(2):
            seed = derive_seed(run.method.seed, "final evaluation", 0, k)
            obs, _ = env.reset(seed=seed % 2**31)
            agent.reset(command, seed=seed, greedy=greedy)
            reward, rewards, over = None, [], False
            while not over:
                action = agent.act(obs, reward)
                assert env.action_space.contains(action)
                obs, reward, terminated, truncated, _ = env.step(action)
                rewards.append(reward)
                over = terminated or truncated
            assert len(rewards) == report[mode]["lengths"][k]
            assert np.float32(rewards).sum(dtype=np.float64) == pytest.approx(
                report[mode]["returns"][k], rel=1e-4
            )


def an_agent():
    return lightning_rl.load("RCP-A-lunarlander")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (((np.zeros(8), {}),), "obs is no array of numbers; give what env.reset()[0] or env"),
        ((np.zeros(3),), "obs has 3 numbers; an observation of 'lunarlander' has 8, see make_env"),
        ((torch.zeros(8, requires_grad=True),), "obs is no array of numbers; give what env.reset"),
        ((np.full(8, np.nan),), "every number must be finite; see what the environment gives"),
        ((np.full(8, -np.inf),), "every number must be finite; see what the environment gives"),
        (
            (
                np.zeros(8),
                float("nan"),
            ),
            "reward nan: it must be a finite number",
        ),
        ((np.full(8, "1"),), "obs is no array of numbers"),
        ((np.zeros(8, complex),), "obs is no array of numbers"),
        ((np.zeros(8, "datetime64[s]"),), "obs is no array of numbers"),
        ((np.zeros((2, 4)),), "obs has the shape (2, 4); an observation of 'lunarlander' has (8,)"),
        (
            (
                np.zeros(8),
                "x",
            ),
            "reward 'x': it must be a finite number of at most 1e+15",
        ),
        (
            (
                np.zeros(8),
                np.ones(2),
            ),
            "reward array([1., 1.]): it must be a finite number",
        ),
        (
            (
                np.zeros(8),
                10**400,
            ),
            "it must be a finite number",
        ),
    ],
)
def test_what_an_agent_cannot_act_on(given, message):
    with pytest.raises(UserError, match=re.escape(message)):
        an_agent().act(*given)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: an_agent().reset(greedy="yes"), "greedy 'yes': it must be True or False"),
        (
            lambda: lightning_rl.LoadedAgent(3),
            "LoadedAgent(3): give a method; lightning_rl.load takes checkpoints",
        ),
        (
            lambda: lightning_rl.load("x" * 5000),
            "cannot be a path: it takes printable characters, at most 4096 bytes",
        ),
        (
            lambda: lightning_rl.load("DDQN-cartpole", networks=3),
            "networks: 3, expected a dict by name",
        ),
        (
            lambda: lightning_rl.load_proxy(None),
            "proxy None: give the path of a proxy.pt, or the name of a proxy",
        ),
        (lambda: lightning_rl.load_proxy("SE-CartPole-v0", 3), "gamename 3: give its name"),
        (lambda: lightning_rl.make_env(None), "gamename None: give its name"),
        (
            lambda: lightning_rl.register_env("mine", "CartPole-v1", sparse="no"),
            "sparse 'no': it must be True or False",
        ),
        (
            lambda: lightning_rl.register_method("RCP-A")(3),
            "register_method decorates a class of lightning_rl's Method, not 3",
        ),
        (
            lambda: lightning_rl.register_method("a", configs=3),
            "register_method: configs 3: give a path",
        ),
        (
            lambda: lightning_rl.register_agent("a", 3, {}),
            "config 3 is no schema; give a pydantic dataclass",
        ),
        (
            lambda: an_agent().reset(command=1.5),
            "command 1.5: give numbers by name, e.g. {'return': 150}",
        ),
        (
            lambda: an_agent().reset(command={"advantage": "x"}),
            "command {'advantage': 'x'}: give numbers by name",
        ),
        (
            lambda: lightning_rl.load(3),
            "load 3: give the path of a checkpoint or of a run directory, or the name of an agent",
        ),
        (
            lambda: lightning_rl.evaluate(3),
            "evaluate(3): give a path, a method, or an agent or run that has one",
        ),
        (lambda: an_agent().reset(seed="x"), "seed 'x': it must be a whole number"),
    ],
)
def test_mistakes_in_python_are_told_with_the_remedy(call, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=re.escape(message)):
        call()
    assert not list(tmp_path.iterdir())


def test_an_agent_of_another_action_box_is_refused_wherever_it_is_used(tmp_path, monkeypatch):
    lightning_rl.register_env("pump", Pump, horizon=5)
    options = {**tiny("REINFORCE", max_epochs=1), "logdir": tmp_path}
    run = lightning_rl.train("REINFORCE", "pump", **options)
    assert lightning_rl.load(run.path).method.hparams["action_box"] == [[-1.0], [2.0]]
    lightning_rl.register_env("pump", Pump, horizon=5, kwargs={"high": 1.0})
    told = (
        r"its actions are within \[\[-1.0\], \[2.0\]\].*, those of gamename 'pump' are within "
        r"\[\[-1.0\], \[1.0\]\]"
    )
    for use in (
        lambda: lightning_rl.load(run.path),
        lambda: lightning_rl.train(
            "REINFORCE", "pump", **{**options, "max_epochs": 2}, resume=True
        ),
        lambda: lightning_rl.train(
            "REINFORCE", "pump", **options, exp_name="other", reload=run.path
        ),
    ):
        with pytest.raises(UserError, match=told):
            use()
    checkpoint = torch.load(run.path / "last.ckpt", weights_only=True)
    del checkpoint["hyper_parameters"]["action_box"]  # of an earlier version
    torch.save(checkpoint, run.path / "last.ckpt")
    assert "Box(-1.0, 1.0, (1,), float32)" in repr(lightning_rl.load(run.path))


def test_ids_are_trained_on_as_names_are(tmp_path):
    """Those of a proxy, and of an environment that has a name, with the values of that name."""
    assert env_spec("lightning_rl/ProcMaze-v0").max_return == env_spec("procmaze").max_return == -1
    method = lightning_rl.ModelBased("lightning_rl/ProcMaze-v0", implementation="ER")
    assert (
        method.hparams["config"]
        == lightning_rl.ModelBased("procmaze", implementation="ER").hparams["config"]
    )
    run = lightning_rl.train(
        "RCP-A", "lightning_rl/SE-CartPole-v0", logdir=tmp_path, **tiny("RCP-A", max_epochs=1)
    )
    assert lightning_rl.load(run.path).act(np.zeros(4)) in (0, 1)


def test_what_is_harmless_is_taken(tmp_path, monkeypatch):
    """Whole numbers as floats, arrays as lists, arrays of one as numbers, the home folder by its
    short name.
    """
    monkeypatch.setenv("HOME", str(tmp_path))
    settings = {
        **tiny("REINFORCE"),
        "hidden": np.array([8, 4]),
        "max_epochs": 1e0,
        "max_env_steps": 1e2,
    }
    run = lightning_rl.train("REINFORCE", "cartpole", logdir="~/exp", **settings)
    assert run.path.is_relative_to(tmp_path / "exp")
    config = run.method.hparams["config"]
    assert (config["hidden"], config["max_epochs"], config["max_env_steps"]) == ([8, 4], 1, 100)
    assert all(type(config[key]) is int for key in ("max_epochs", "max_env_steps"))
    assert lightning_rl.PolicyGradient("cartpole", hidden=np.array([8, 4])).cfg.hidden == [8, 4]
    agent = lightning_rl.load(f"~/exp/{run.path.relative_to(tmp_path / 'exp')}")
    actions = []
    for obs in (
        np.arange(4.0)[::-1],
        np.arange(4.0)[::-1].copy(),
        torch.arange(4.0).flip(0),
        [3, 2, 1, 0],
    ):
        agent.reset(seed=1, greedy=np.True_)
        actions.append(
            [
                agent.act(obs),
                *(
                    agent.act(obs, reward)
                    for reward in (np.array([1.0]), torch.ones(1), np.float32(1))
                ),
            ]
        )
    assert actions == [actions[0]] * 4


def test_a_seed_of_numpy_is_a_seed():
    method = lightning_rl.UDRL("cartpole", seed=np.int64(3), **tiny_settings("UDRL"))
    assert type(method.hparams["seed"]) is int
    with pytest.raises(UserError, match="--seed -3: it must be a whole number"):
        lightning_rl.UDRL("cartpole", seed=-3)
    with pytest.raises(UserError, match="num_workers -1: it must be a whole number from 0"):
        method.rollouts(num_workers=-1)
    for options, words in (
        ({"episodes": 0}, "episodes 0: it must be a whole number"),
        ({"num_workers": "1"}, "'1': it must"),
    ):
        with pytest.raises(UserError, match=words):
            lightning_rl.evaluate(method, **options)


class Corridor(gymnasium.Env):
    """A user's environment: five cells; going right ends it at the last one."""

    observation_space, action_space = gymnasium.spaces.Discrete(5), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.cell = 0
        return self.cell, {}

    def step(self, action):
        self.cell = min(4, max(0, self.cell + (1 if action else -1)))
        return self.cell, -1.0, self.cell == 4, False, {}


class Pump(gymnasium.Env):
    """A user's environment with continuous actions."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, high=2.0):
        self.action_space = gymnasium.spaces.Box(-1, high, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), float(action[0]), False, False, {}


class OwnData(CollectedRollouts):
    """Four episodes of the present policy an epoch."""

    def requests(self, epoch):
        return training_requests(self.run_seed, epoch, [None] * 4)

    def make_batch(self, epoch, episodes, waited):
        return episodes


@pytest.fixture(scope="module")
def own_method():
    """A user's method: REINFORCE in a few lines, from outside the package."""
    from pydantic import PositiveFloat
    from pydantic.dataclasses import dataclass

    from lightning_rl.core.schema import STRICT, MethodConfig

    @dataclass(frozen=True, config=STRICT, kw_only=True)
    class OwnConfig(MethodConfig):
        learning_rate: PositiveFloat

    default = {
        "max_epochs": 60,
        "max_env_steps": None,
        "chunk_size": 4,
        "eval_interval": 20,
        "eval_episodes": 3,
        "checkpoint_interval": 20,
        "learning_rate": 0.1,
    }

    @lightning_rl.register_method(
        configs={"own-method": {"about": "a user's own", "default": default}}
    )
    class Own(Method):
        Config = OwnConfig

        def __init__(self, gamename, **options):
            super().__init__(gamename, **options)
            torch.manual_seed(self.seed)
            net = torch.nn.Linear(self.spec.obs_size, self.spec.action_size)
            self.policy = Policy(net, distribution_for(self.spec.continuous), self.spec.action_size)

        def rollouts(self, num_workers=0):
            return OwnData(self, num_workers)

        def make_optimizers(self):
            return [torch.optim.Adam(self.policy.parameters(), lr=self.cfg.learning_rate)]

        def train_epoch(self, batch):
            terms = []
            for episode in batch:
                to_go = np.cumsum(episode.reward[::-1], dtype=np.float64)[::-1].copy()
                distribution = self.policy.distribution(torch.from_numpy(episode.obs[:-1]))
                terms.append(
                    -(
                        distribution.log_prob(torch.from_numpy(episode.action))
                        * torch.from_numpy(to_go + 10)
                    ).sum()
                )
            self.descend(0, torch.stack(terms).mean().float(), 1.0)
            self.num_updates += 1
            self.env_steps += sum(episode.env_steps for episode in batch)

    yield Own
    del catalogue._added["own-method"], registry._REGISTERED["own-method"]


def test_a_method_and_an_environment_from_outside_go_wherever_ours_go(tmp_path, own_method, capsys):
    lightning_rl.register_env("corridor", Corridor, horizon=20)
    run = lightning_rl.train("own-method", "corridor", logdir=tmp_path, num_workers=0)
    assert run.metrics["eval_greedy/return_mean"] == -4.0
    assert lightning_rl.evaluate(run.path, episodes=3)["greedy"]["return"]["mean"] == -4.0
    assert isinstance(run.method, own_method)
    flags = [
        "--implementation",
        "own-method",
        "--gamename",
        "corridor",
        "--logdir",
        str(tmp_path),
        "--num_workers",
        "0",
    ]
    assert main(["train", *flags, "--seed", "1", "--max_epochs", "2"]) == 0
    assert main(["train", *flags, "--seed", "1", "--max_epochs", "4", "--resume"]) == 0
    assert main(["eval", str(run.path), "--episodes", "2"]) == 0
    assert "own-method on corridor" in capsys.readouterr().out
    assert main(["config", "own-method"]) == 0
    assert "learning_rate: 0.1\n" in capsys.readouterr().out


def test_upside_down_learns_where_every_step_costs(tmp_path):
    """That of ``docs/how_to/own_environment.md``, with fewer updates: -4 is the best, -20 the
    worst.
    """
    lightning_rl.register_env("paid-corridor", Corridor, horizon=20, max_return=-4.0)
    run = lightning_rl.train(
        "UDRL",
        "paid-corridor",
        logdir=tmp_path,
        num_workers=0,
        max_epochs=20,
        num_updates_per_iter=40,
    )
    assert run.metrics["eval_greedy/return_mean"] >= -8


def test_a_loss_that_is_not_finite_ends_a_run_of_any_method(tmp_path, own_method, monkeypatch):
    """Also of one that does not look at its losses itself; nothing of it reaches a checkpoint."""
    lightning_rl.register_env("own-corridor", Corridor, horizon=20)
    step = own_method.descend
    monkeypatch.setattr(
        own_method,
        "descend",
        lambda method, number, loss, limit: step(method, number, loss * torch.nan, limit),
    )
    with pytest.raises(UserError, match="the loss is nan in epoch 0: training diverged"):
        lightning_rl.train("own-method", "own-corridor", logdir=tmp_path, num_workers=0)
    assert not list(tmp_path.rglob("*.ckpt"))
