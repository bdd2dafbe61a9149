"""Small learned proxies of a task."""

from lightning_rl.envs.proxies import SyntheticProxy
from lightning_rl.envs.reward_network import RewardProxy


def synthetic_proxy(gamename="cartpole-v0", **settings) -> SyntheticProxy:
    return SyntheticProxy(
        gamename=gamename, **{"hidden": (8,), "activation": "tanh", "horizon": 20, **settings}
    )


def reward_proxy(gamename="cartpole-v0", **settings) -> RewardProxy:
    small = {"hidden": (8,), "activation": "tanh", "form": "exclusive", "gamma": 0.9}
    return RewardProxy(gamename=gamename, **{**small, **settings})
