"""Commands, figures and protocols that only a checkout of the repository has.

The command line finds them as all others: ``lightning-rl baseline``, ``figures phase``, ...
"""

from __future__ import annotations

from lightning_rl.core.arguments import Argument, Tool, argument, repeated, settings_of, switch
from lightning_rl.core.kinds import (
    Whole,
    checked_path,
    count,
    gamename,
    number,
    positive,
    process_count,
)
from lightning_rl.core.limits import SEED
from lightning_rl.core.workers import cores
from lightning_rl.lab.figures.registry import (
    AXIS_AND_GROUPS,
    BASICS,
    BIN_WIDTH,
    BINNED,
    LOW,
    MARKDOWN,
    PICTURE,
    REFERENCE,
    SCORE,
    SOURCES,
    TAG,
    TITLE,
    Figure,
    figure,
    table_out,
    threshold,
)
from lightning_rl.lab.protocols.registry import (
    TESTS,
    TESTS_AND_STEPS,
    Protocol,
    agent_arguments,
    count_of,
    csv_and_proxies,
    csv_arguments,
    proxies,
)

BIN = 0.02

_UNTIL = argument(
    "--until",
    "ignore values after so many environment steps",
    number,
    default=float("inf"),
    metavar="STEPS",
)
GREEDY_TAG = argument(
    "--tag", "scalar (default eval_greedy/return_mean)", default="eval_greedy/return_mean"
)


COMMANDS: dict[str, Tool] = {
    "reproduce": Tool(
        "run the seeds that the claims of results/claims.yaml lack, and build docs/results.md",
        "experiments.reproduce.command:run",
        (
            argument("ids", "claims (default: all)", nargs="*", default=[], metavar="CLAIM"),
            switch("--list", "list the claims, with their results so far; nothing is run"),
            argument(
                "--jobs",
                "how many runs at once (default: one per core)",
                process_count,
                default=cores(),
            ),
            argument(
                "--verify",
                "repeat the first epochs of a claim and compare with its stored curve; without a "
                "claim: when each was last verified, and where",
                nargs="?",
                const="",
                metavar="CLAIM",
            ),
            switch("--ledger", "build docs/results.md from the results so far; nothing is run"),
            switch("--figures", "draw the pictures of results/ that claims.yaml lists, from CSVs"),
            switch("--smoke", "a test: one seed of each with a tiny budget, in a temporary folder"),
            argument(
                "--executor",
                "where the runs are trained: serial (in processes on this machine) or ray (on a "
                "Ray cluster); same results up to rounding",
                choices=("serial", "ray"),
                default="serial",
            ),
            argument(
                "--ray_address",
                "a running Ray cluster (default: one is started here)",
                metavar="HOST:PORT",
            ),
        ),
    ),
    "baseline": Tool(
        "train an agent of Stable-Baselines3 with our hyper-parameters, to compare ours with",
        "experiments.baselines:run",
        (
            argument(
                "--implementation",
                "our method whose settings are used: DDQN (for its DQN), PPO, TD3",
                required=True,
                metavar="NAME",
            ),
            argument("--gamename", "environment", gamename, required=True),
            argument("--preset", "as for lightning-rl train", metavar="NAME"),
            argument(
                "--exp_name",
                "folder of the experiment (default: default)",
                default="default",
                metavar="NAME",
            ),
            argument("--seed", "seed of the run (default 25)", Whole(0, SEED), default=25),
            argument(
                "--logdir",
                "folder of all results (default: exp_dir)",
                checked_path,
                default="exp_dir",
                metavar="DIR",
            ),
            settings_of("our config"),
            switch(
                "--resume",
                "leave a finished run as it is; start one that was stopped from the beginning",
            ),
        ),
    ),
    "docs": Tool(
        "make the tables and numbers in Markdown files anew by the commands that made them",
        "experiments.docs:refresh",
        (argument("files", "Markdown file", checked_path, nargs="+"),),
    ),
    "speed": Tool(
        "what make peers and make speedrun have measured, as a Markdown table",
        "experiments.speed:show",
        (
            argument(
                "table",
                "agents: ours beside other libraries'; peers: all that was measured of them; "
                "records: of the speedrun",
                choices=("agents", "peers", "records"),
            ),
            argument(
                "csv", "results/peers.csv or results/speedrun.csv", checked_path, metavar="csv"
            ),
        ),
    ),
    "claims": Tool(
        "published and measured results of some claims, as a Markdown table",
        "experiments.reproduce.ledger:show",
        (
            argument(
                "ids",
                "names of claims, see lightning-rl reproduce --list",
                nargs="+",
                metavar="CLAIM",
            ),
            switch(
                "--brief",
                "one short line of each, with a link to the ledger: for docs/benchmarks.md",
            ),
            argument(
                "--export",
                "write their seeds into this folder instead, as rliable takes them, and their "
                "curves",
                checked_path,
                metavar="DIR",
            ),
        ),
    ),
}

_SOLVED = argument(
    "--threshold",
    "fitness above which a search counts as solved (default: the task's solved return; needed for "
    "RN)",
    number,
    metavar="FITNESS",
)


def _figure(draw: str, summary: str, *arguments: Argument) -> Figure:
    return figure(f"experiments.figures.{draw}", summary, *arguments)


FIGURES: dict[str, Tool] = {
    "marks": _figure(
        "marks:show",
        "values of the curves at chosen points of the x axis, beside published ones",
        table_out("marks"),
        *SOURCES,
        argument("--at", "points of the x axis", number, nargs="+", required=True, metavar="X"),
        argument(
            "--window",
            "width of the x axis around each point that is averaged over",
            positive,
            required=True,
            metavar="WIDTH",
        ),
        TAG,
        *AXIS_AND_GROUPS,
        REFERENCE,
        MARKDOWN,
    ),
    "table": _figure(
        "table:show",
        "mean of the last values of several scalars, for every run and every experiment",
        table_out("table"),
        argument(
            "sources",
            "run directory, or folder that holds some",
            checked_path,
            nargs="+",
            metavar="SOURCE",
        ),
        argument(
            "--tag",
            "scalar; repeatable (default eval/return_mean, eval_greedy/return_mean)",
            action="append",
        ),
        argument(
            "--last", "how many of the last values are averaged (default 20)", count, default=20
        ),
        _UNTIL,
    ),
    "profile": _figure(
        "profile:draw",
        "performance profile: share of runs above every score",
        *BASICS,
        *BINNED,
        SCORE,
    ),
    "obedience": _figure(
        "obedience:draw",
        "obtained against commanded return, a panel for each source: a sweep, or a claim's CSV",
        *BASICS,
    ),
    "front": _figure(
        "front:draw",
        "commanded and obtained returns of two objectives, a panel for each sweep or claim's CSV",
        *BASICS,
    ),
    "generalisation": _figure(
        "generalisation:draw",
        "learning curves and the area under each, with intervals over seeds",
        *BASICS,
        GREEDY_TAG,
        *AXIS_AND_GROUPS,
        BIN_WIDTH,
        repeated(
            "--line",
            "draw a horizontal line at this return with this label, e.g. 1.6:random; repeatable",
            "VALUE:LABEL",
        ),
    ),
    "phase": _figure(
        "phase:draw",
        "difference of mean returns between methods and a baseline, by size of the environment and "
        "steps",
        *BASICS,
        GREEDY_TAG,
        *AXIS_AND_GROUPS[1:],
        BIN_WIDTH,
        argument(
            "--baseline",
            "the group that the others are compared with (default ER)",
            default="ER",
            metavar="NAME",
        ),
        argument(
            "--method",
            "compare only this group with it; repeatable (default: all)",
            action="append",
            metavar="NAME",
        ),
        _UNTIL,
    ),
    "policy-gradient": _figure(
        "policy_gradient:draw",
        "policy loss, baseline, entropy loss and mean return over episodes, 2 x 2",
        *BASICS,
        repeated(
            "--reference", "published curves, drawn dashed; repeatable", "CSV", type=checked_path
        ),
        argument(
            "--every",
            "draw one point per so many episodes (default 1: all)",
            count,
            default=1,
            metavar="EPISODES",
        ),
        threshold("return to mark with a horizontal line"),
    ),
    "proxy-success": _figure(
        "searches:draw_success",
        "searches for proxies: fitness, and share of runs solved, over generations",
        *BASICS,
        argument(
            "--group",
            "as for curves, e.g. score_transform; repeatable",
            action="append",
            metavar="KEY",
        ),
        _SOLVED,
        argument("--until", "how many generations to show (default: all)", count),
    ),
    "proxy-transfer": _figure(
        "transfer:draw",
        "agents trained on proxies: share of their returns on the real task at or above each "
        "value, and means",
        *BASICS,
        MARKDOWN,
    ),
    "proxy-histograms": _figure(
        "histograms:draw",
        "histograms of synthetic and real transitions: next observations, rewards, ends of "
        "episodes",
        *BASICS,
        argument(
            "--proxy", "draw only this proxy (default: all in the sources together)", metavar="NAME"
        ),
    ),
    "synthetic-dataset": _figure(
        "datasets:draw",
        "the state-action pairs of synthetic datasets",
        PICTURE,
        *proxies("+"),
        TITLE,
    ),
    "reward-curves": _figure(
        "reward_networks:draw_curves",
        "learning curves of agents with learned rewards, a panel for each agent",
        *BASICS,
        threshold("return to mark with a horizontal line (default: the task's solved return)"),
        LOW,
        MARKDOWN,
    ),
    "grid-rewards": _figure(
        "reward_networks:draw_grid",
        "reward networks in a grid world: reward of each action as a triangle, visits of agents",
        *BASICS,
        switch(
            "--each",
            "own colour scale for each board, lowest to highest reward, as in the paper's Figure "
            "10",
        ),
        argument(
            "--above",
            "leave out rewards up to this one; -50 gives the paper's simplified variant",
            number,
            metavar="REWARD",
        ),
    ),
    "step-sizes": _figure(
        "searches:draw_step_sizes",
        "searches for proxies: success by step size and score transform",
        *BASICS,
        _SOLVED,
    ),
    "supervised-model": _figure(
        "transfer:draw_supervised",
        "the supervised baseline MBRL: loss of the model, returns and steps of agents on it",
        *BASICS,
    ),
}


def _protocol(module: str, summary: str, *arguments: Argument) -> Tool:
    return Protocol(summary, f"experiments.protocols.{module}:run", arguments)


PROTOCOLS: dict[str, Tool] = {
    "clones": _protocol(
        "clones",
        "clone fresh policies from synthetic datasets and test them on the real task (for the "
        "figure proxy-transfer)",
        *csv_and_proxies("one row per clone"),
        *agent_arguments("fixed"),
        TESTS,
    ),
    "peers": _protocol(
        "peers",
        "train agents of Stable-Baselines3 with its defaults on proxies and test them on the real "
        "task (for the figure proxy-transfer)",
        *csv_and_proxies("one row per agent"),
        argument(
            "--agents",
            "DQN, PPO, A2C, TD3, SAC (default: those that fit the actions)",
            nargs="+",
            metavar="NAME",
        ),
        count_of("--count", "agents of each kind on each proxy (default 1)", 1),
        settings_of("the agents: arguments of Stable-Baselines3", "config key"),
        TESTS,
        argument(
            "--steps",
            "steps of training, of each number other agents (default 2000)",
            count,
            nargs="+",
            default=[2000],
        ),
        count_of("--real", "also train N agents of each kind on the real task (default 0)", 0),
    ),
    "reward-curves": _protocol(
        "reward_curves",
        "record learning curves of agents with learned rewards (for the figure reward-curves)",
        *csv_and_proxies("one row per agent"),
        argument(
            "--agents",
            "kinds of agents (default: QL SARSA for cliff, TD3 PPO for continuous actions, else "
            "DDQN DuelingDDQN)",
            nargs="+",
            metavar="NAME",
        ),
        *agent_arguments("fixed"),
        count_of(
            "--steps",
            "environment steps of training (default 50000; the paper's for cliff: 5000, "
            "mountaincar-continuous: 250000, "
            "halfcheetah: 500000)",
        ),
        count_of("--points", "points of each curve; divides --steps (default 100)", 100),
        count_of(
            "--real", "also train N agents of each kind with the task's own reward (default 0)", 0
        ),
        count_of(
            "--curious",
            "also train N agents of each kind with it and an exploration bonus (curiosity) "
            "(default 0)",
            0,
        ),
    ),
    "transitions": _protocol(
        "transitions",
        "compare synthetic and real transitions as histograms (for the figure proxy-histograms)",
        *csv_and_proxies("one row per histogram"),
        argument("--agent", "kind of agents (default DDQN)", default="DDQN", metavar="NAME"),
        *agent_arguments("varied"),
        *TESTS_AND_STEPS,
        argument(
            "--bin",
            f"width of the histograms' bins, in the unit of each quantity (default {BIN})",
            positive,
            default=BIN,
            metavar="WIDTH",
        ),
    ),
    "grid-rewards": _protocol(
        "grid_rewards",
        "record the rewards of reward networks in a grid world, and visits of agents (for "
        "grid-rewards)",
        *csv_and_proxies("one row per cell, and per action in it, of each proxy"),
        argument(
            "--agent",
            "kind of agents whose visits are counted (default SARSA)",
            default="SARSA",
            metavar="NAME",
        ),
        *agent_arguments("fixed"),
        switch("--real", "also record the task's own reward"),
    ),
    "generations": _protocol(
        "generations",
        "run many short searches for proxies (for the figures proxy-success and step-sizes)",
        *csv_arguments("one row per generation of each run"),
        argument(
            "--implementation",
            "method of the searches (default SE)",
            choices=("SE", "RN", "SD"),
            default="SE",
        ),
        argument("--gamename", "task (default emptyroom22)", gamename, default="emptyroom22"),
        count_of("--runs", "number of searches, with seeds SEED .. SEED+N-1 (default 20)", 20),
        argument(
            "--preset", "name of a block under presets: in the method's config", metavar="NAME"
        ),
        settings_of("the method's config", "config key"),
        repeated(
            "--draw",
            "draw a key's value for each search from a space as in a tune: block, e.g. "
            "'step_size={log: [0.01, 10]}'; repeatable",
            "KEY=SPACE",
            dest="drawn",
        ),
    ),
}
