# %% [markdown]
# # Lesson 8: model or replay
#
# *10 minutes of yours; the training takes a minute.*
#
# Real steps are dear, computing is cheap: so learn from each step many times. Either *replay* what
# happened, or learn a *model* of the world and learn from what it imagines. If a model only repeats
# what it has seen, it is a slow replay memory. It wins where it *generalises*: where the world is
# made of parts, a model of the parts knows situations that never happened (Young et al. 2023).
#
# Our world is a lock with four dials of six places each: 1,296 states. An action turns one dial by
# one place. All dials on 0 open the lock and pay 1.

# %%
import matplotlib.pyplot as plt
import torch
from checks import check

torch.set_num_threads(1)

# %% [markdown]
# ## Your turn: the target of Q-learning
#
# What a step is worth: its reward, and the best that can be done after it. `discount` is 0 where
# the episode ended.


# %%
def q_target(reward, discount, next_q):
    """Targets [B], from rewards [B], discounts [B] and values [B, A] of the next states."""
    raise NotImplementedError("write q_target")


check(q_target)

# %% [markdown]
# ## Your turn: imagine
#
# The model has a table for each dial: `table[dial, place, action]` is the place where the dial is
# after the action. It was filled by watching. Predict whole states: look up each dial on its own.


# %%
def imagine(table, state, action):
    """Next states [B, dials], from table [dials, places, A], states [B, dials], actions [B]."""
    raise NotImplementedError("write imagine: one line of indexing does it")


check(imagine)

# %% [markdown]
# ## Training
#
# Three learners with the same table of values. `none` learns once from each step. `replay` also
# learns from 20 steps that it remembers, `model` from 20 steps that your function imagines: any
# state, any action, as long as it has watched each dial there.

# %%
DIALS, PLACES = 4, 6
ACTIONS = DIALS + 1  # turn one dial, or none
GAMMA, LIMIT, EXTRA = 0.95, 60, 20
FACTORS = torch.tensor([PLACES**dial for dial in range(DIALS)])


def turned(state, action):
    """The real world: where the dials [B, dials] are after actions [B]."""
    after = state.clone()
    moved = action < DIALS
    dial = action.clamp(max=DIALS - 1)
    after[torch.arange(len(state)), dial] += moved.long()
    return after % PLACES


def row(state):
    """The rows [B] of states in a table of values."""
    return (state * FACTORS).sum(-1)


def learn(values, state, action, next_state):
    """Moves the values of steps towards the student's targets."""
    opened = (next_state == 0).all(-1)
    discount = GAMMA * (~opened).float()
    values[row(state), action] = q_target(opened.float(), discount, values[row(next_state)])


def train(kind, steps, seed):
    """Share of 64 fixed start states that the greedy policy opens, every 500 real steps."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.zeros(PLACES**DIALS, ACTIONS)
    table = torch.full((DIALS, PLACES, ACTIONS), -1)  # -1: not seen yet
    memory, curve, age = [], [], LIMIT
    dials = torch.arange(DIALS)
    for step in range(steps):
        if age == LIMIT:
            state, age = torch.randint(PLACES, (1, DIALS), generator=generator), 0
        action = values[row(state)].argmax(-1)
        if torch.rand((), generator=generator) < 0.3 or values[row(state)].max() == 0:
            action = torch.randint(ACTIONS, (1,), generator=generator)
        next_state = turned(state, action)
        learn(values, state, action, next_state)
        table[dials, state[0], action] = next_state[0]
        memory.append((state, action, next_state))
        if kind == "replay":
            drawn = torch.randint(len(memory), (EXTRA,), generator=generator)
            learn(values, *map(torch.cat, zip(*(memory[n] for n in drawn), strict=True)))
        if kind == "model":
            thought = torch.randint(PLACES, (EXTRA, DIALS), generator=generator)
            choice = torch.randint(ACTIONS, (EXTRA,), generator=generator)
            expected = imagine(table, thought, choice)
            known = (expected >= 0).all(-1)
            learn(values, thought[known], choice[known], expected[known])
        age = LIMIT if (next_state == 0).all() else age + 1
        state = next_state
        if step % 500 == 499:
            curve.append(opened_share(values))
    return curve


def opened_share(values):
    """Share of 64 start states from which the greedy policy opens the lock."""
    state = torch.randint(PLACES, (64, DIALS), generator=torch.Generator().manual_seed(1))
    opened = torch.zeros(64, dtype=torch.bool)
    for _ in range(LIMIT):
        opened |= (state == 0).all(-1)
        state = turned(state, values[row(state)].argmax(-1))
    return float(opened.float().mean())


# %%
STEPS = 10_000
curves = {
    kind: [train(kind, STEPS, seed) for seed in (0, 1)] for kind in ("none", "replay", "model")
}

# %%
figure, axes = plt.subplots(figsize=(6, 3))
for number, (kind, found) in enumerate(curves.items()):
    for seed, curve in enumerate(found):
        real = [500 * (place + 1) for place in range(len(curve))]
        axes.plot(real, curve, color=f"C{number}", label=None if seed else kind)
axes.set(xlabel="real steps", ylabel="share of locks opened")
axes.legend()
# %% [markdown]
# ## What you should see
#
# The mean over the whole training is what counts here: 0.03 of the locks with `none`, 0.85 with
# `replay`, 0.96 with `model`. All three have made the same number of real steps, and `replay` and
# `model` have learned equally often. The model is ahead since it knows every state after it has
# seen each dial in each place, and the replay memory only where it has been.

# %%
result = {kind: float(torch.tensor(found).mean()) for kind, found in curves.items()}
result

# %% [markdown]
# ## Exercises
#
# 1. Give `model` one table for whole states instead of one for each dial. Which curve does it have
#    now, and why?
# 2. Let the real world jam: dial 0 does not turn while dial 1 is on 3. The model of parts is wrong
#    now. What happens to its curve, and how would you notice without knowing the world?
# 3. The same with networks: `lrl.train("ER", "panflute-4", ..)` against `"simple-model"`, see
#    notebooks/model_based.py. What plays the part of the dials there?
