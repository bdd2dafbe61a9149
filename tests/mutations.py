"""The mutations that ``mutants.py`` makes: wrong formulas, each of which a test of its area has to notice.

A mutation whose ``reason`` is given is known to survive: it changes nothing that a result depends on, or nothing that can be
told from chance.
"""

from __future__ import annotations

from typing import NamedTuple


class Mutation(NamedTuple):
    """``old``, which stands once in the file ``path`` of the package, becomes ``new``; tests: files, or tests in them."""

    path: str
    old: str
    new: str
    tests: tuple[str, ...]
    reason: str = ""


_Change = tuple[str, str] | tuple[str, str, str]


def _area(path: str, tests: str, *changes: _Change) -> list[Mutation]:
    return [Mutation(path, old, new, tuple(tests.split()), *reason) for old, new, *reason in changes]


_FUNCTIONAL = [
    _area(
        "functional/returns.py", "functional/test_returns.py functional/test_policy_gradient.py",
        ("np.cumsum(reward[::-1], dtype=np.float64)[::-1]", "np.cumsum(reward, dtype=np.float64)"),
        ("x[..., :-stride] + decay[..., :-stride] * x[..., stride:]", "x[..., :-stride] - decay[..., :-stride] * x[..., stride:]"),
        ("decay = torch.cat([decay[..., :-stride] * decay[..., stride:]", "decay = torch.cat([decay[..., :-stride]"),
        ("trace = trace_decay * (~last).to(reward.dtype)", "trace = torch.full_like(reward, trace_decay)"),
        ("reward + discount * (1 - trace) * next_value", "reward + discount * (1 - trace_decay) * next_value"),
        ("torch.full_like(reward, gamma), nothing, last", "torch.full_like(reward, gamma), reward, last"),
        ("while stride < length:", "while stride <= length:", "the further pass adds nothing: all of the sum is there already"),
    ),
    _area(
        "functional/ppo.py", "functional/test_ppo.py",
        ("reward + discount * next_value - value", "reward + next_value - value"),
        ("(trace * discount).masked_fill(over, 0)", "trace * discount"),
        ("ratio.clamp(1 - clip, 1 + clip)", "ratio.clamp(max=1 + clip)"),
        ("torch.minimum(ratio", "torch.maximum(ratio"),
        ("(x.std(-1, keepdim=True) + eps)", "(x.var(-1, keepdim=True) + eps)"),
    ),
    _area(
        "functional/policy_gradient.py", "functional/test_policy_gradient.py",
        ("-(weight.detach() * log_prob).mean()", "(weight.detach() * log_prob).mean()"),
        ("-(weight.detach() * log_prob).mean()", "-(weight * log_prob).mean()"),
        ("total[time] / len(ends)", "total[time] / torch.bincount(time)[time]"),
        ("weight.std(correction=0)", "weight.std()"),
        ("-beta * entropy.mean() / max_entropy", "beta * entropy.mean() / max_entropy"),
        ("-beta * entropy.mean() / max_entropy", "-beta * entropy.mean()"),
        ("delta * (value - target.detach()).square().mean()", "(value - target.detach()).square().mean()"),
        ("(value - target.detach())", "(value - target)"),
        ("value.roll(-1)", "value.roll(1)"),
    ),
    _area(
        "functional/distributions.py", "functional/test_distributions.py functional/test_policy_gradient.py",
        ("return -F.cross_entropy(", "return F.cross_entropy("),
        ("-(log_prob.exp() * log_prob).sum(-1)", "(log_prob.exp() * log_prob).sum(-1)"),
        ("(self.output + noise).argmax(-1)", "self.output.argmax(-1)"),
        ("self.mean + self.log_std.exp() * noise", "self.mean + self.log_std * noise"),
        ("z = (action - self.mean) / self.log_std.exp()", "z = action - self.mean"),
        ("(-0.5 * z.square() - self.log_std - 0.5 * math.log(2 * math.pi)).sum(-1)",
         "(-0.5 * z.square() - self.log_std - 0.5 * math.log(2 * math.pi)).mean(-1)"),
        ("(self.log_std + 0.5 * math.log(2 * math.pi * math.e)).sum(-1)", "(self.log_std + 0.5 * math.log(2 * math.pi)).sum(-1)"),
        ("LOG_STD_RANGE[1] + 0.5 * math.log(", "LOG_STD_RANGE[0] + 0.5 * math.log("),
    ),
    _area(
        "functional/evolution.py", "functional/test_evolution.py",
        ("torch.where(minus > plus, -1.0, 1.0)", "torch.where(minus >= plus, -1.0, 1.0)"),
        ("torch.maximum(plus, minus)", "torch.minimum(plus, minus)"),
        ("(scores - low) / (high - low + 1e-9)", "scores / (high - low + 1e-9)"),
        ("torch.arange(count - 1, -1, -1) / (count - 1)", "torch.arange(count - 1, -1, -1) / count"),
        ("math.log(count / 2 + 1)", "math.log(count + 1)"),
        ("_by_rank(scores, _log_utilities(len(scores)) - 1 / len(scores))", "_by_rank(scores, _log_utilities(len(scores)))"),
        ("(scores.max() > baseline + _BETTER)", "(scores.max() > _BETTER)"),
        ("mean = total / torch.bincount(inverse, minlength=len(groups))", "mean = total"),
        ("scores.argsort(descending=True", "scores.argsort(descending=False"),
        ("torch.where(scores > baseline + _BETTER, gain, 0.0)", "gain"),
        ("w / w.sum() if w.max() > 0", "w / w.max() if w.max() > 0"),
        ("noise / (2 * len(noise) * std)", "noise / (len(noise) * std)"),
        ("noise / (2 * len(noise) * std)", "noise / (2 * len(noise))"),
        ("(plus - minus).to(", "(plus + minus).to("),
        ("std * (u @ noise), 0.5", "u @ noise, 0.5"),
        ("(u @ (noise.square() - 1))", "(u @ noise.square())"),
        ('"evolution noise", generation, member)', '"evolution noise", 0, member)'),
        ('"evolution noise", generation, member)', '"evolution noise", generation, 0)'),
        ("(3 + math.log(size))", "(3 - math.log(size))"),
    ),
    _area(
        "functional/reward_conditioned.py", "functional/test_reward_conditioned.py",
        ("((x - x.mean()) / (x.std(correction=0) + EPSILON)).clamp(-limit, limit)", "(x - x.mean()) / (x.std(correction=0) + EPSILON)"),
        ("((x - x.mean()) / (x.std(correction=0) + EPSILON))", "((x - x.mean()) / (x.std() + EPSILON))"),
        ("(z / temperature).exp()", "(z * temperature).exp()"),
        (".exp().clamp(max=max_weight)", ".exp()"),
        ("return weight / weight.mean()", "return weight"),
        ("weight.sum().square() / (weight.square().sum() * weight.numel())", "weight.sum().square() / weight.square().sum()"),
        ("1 - (target - prediction).var(correction=0)", "1 - (target - prediction).square().mean()"),
        ("share = weight / weight.sum()", "share = torch.ones_like(weight) / len(weight)"),
        ("label[label >= level].std(correction=0)", "label.std(correction=0)"),
        ("_target(label.max(), ", "_target(label.mean(), "),
        (".clamp(target.low, target.high)", ""),
        ("target.mean + spread * target.sd * noise", "target.mean + target.sd * noise"),
        ("(command - reward[:, None])", "(command + reward[:, None])"),
        ("/ np.float32(discount)", "* np.float32(discount)"),
    ),
    _area(
        "functional/upside_down.py", "functional/test_upside_down.py",
        ("min(mean + std, max_return)", "mean + std"),
        ("min(mean, max_return), ", "mean, "),
        ("float(np.std(returns))", "float(np.std(returns, ddof=1))"),
        ("among.low + (among.high - among.low) * uniform", "among.high - among.low * uniform"),
        ("command[:, 0] - reward", "command[:, 0] + reward"),
        ("np.maximum(command[:, 1] - 1, 1)", "command[:, 1] - 1"),
        ("np.maximum(command[:, 1] - 1, 1)", "command[:, 1]"),
        ("return start + 1 + (uniform", "return start + (uniform"),
    ),
    _area(
        "functional/value_learning.py", "functional/test_value_learning.py",
        ("ended = terminated | truncated if faithful else terminated", "ended = terminated | truncated"),
        ("return gamma * (~ended).float()", "return (~ended).float()"),
        ("if faithful else gamma * continuation", "if not faithful else gamma * continuation"),
        ("reward + discount * next_q.amax(-1)", "reward + discount * next_q.mean(-1)"),
        ("next_q.max(-1).indices", "next_q_target.max(-1).indices"),
        ("value + advantage - advantage.mean(", "value + advantage - 0 * advantage.mean("),
        ("next_q.amin(-2)", "next_q.amax(-2)"),
        ("(std * noise).clamp(-limit, limit)", "std * noise"),
        ("(weight * (prediction - target).square())", "(prediction - target).square()"),
        ("rate.clamp(min=minimum)", "rate"),
        ("noise[..., 0] < epsilon", "noise[..., 0] > epsilon"),
        ("((logits + gumbel) / temperature)", "((logits + gumbel) * temperature)"),
        ("one_hot + soft - soft.detach()", "one_hot"),
    ),
    _area(
        "functional/reward_shaping.py", "functional/test_reward_shaping.py",
        ("return gamma * next_phi - phi", "return next_phi - phi"),
        ("learned = potential_shaping(value(obs, info), after, gamma)", "learned = potential_shaping(after, after, gamma)"),
        ("reward + learned if form.additive else learned", "learned"),
    ),
    _area(
        "functional/stopping.py", "functional/test_stopping.py",
        ("reached & (count >= window)", "reached & (count >= window - 1)"),
        ("(count > init_episodes + window)", "(count >= init_episodes + window)"),
        ("(now - before).abs() / (before.abs() + 1e-9)", "(now - before) / (before.abs() + 1e-9)"),
        ("(column < end.unsqueeze(1))", "(column <= end.unsqueeze(1))"),
    ),
    _area(
        "functional/world_model.py", "functional/test_world_model.py",
        ("(probability * ratio).sum(-1, keepdim=True)", "(q.exp() * ratio).sum(-1, keepdim=True)"),
        ("(half - spread.log() - 0.5).sum(-1)", "(half + spread.log() - 0.5).sum(-1)"),
        ("weighted - probability * weighted.sum(-1, keepdim=True)", "weighted"),
        ("torch.cat([torch.ones_like(alive[..., :1]), alive[..., :-1]], dim=-1)", "alive"),
        ("logit.sigmoid() - continues", "logit - continues"),
    ),
    _area("functional/schedules.py", "functional/test_schedules.py", ("(x - start) / (end - start)", "(x - start) / end")),
    _area(
        "functional/curiosity.py", "functional/test_curiosity.py",
        ("beta * count.float().rsqrt()", "beta * count.float().reciprocal()"),
        ("(prediction - features).square().mean(-1)", "(prediction - features).square().sum(-1)"),
    ),
    _area(
        "functional/statistics.py", "functional/test_statistics.py",
        ("np.minimum(edges[1:], 0.75)", "np.minimum(edges[1:], 0.80)"),
        ('"sd": float(x.std())', '"sd": float(x.std(ddof=1))'),
    ),
    _area(
        "functional/bootstrap.py", "functional/test_bootstrap.py",
        ("0.5 * (left == right)", "1.0 * (left == right)"),
        ("paired=False", "paired=True"),
    ),
]  # fmt: skip

_DATA = [
    _area(
        "data/episodes.py", "data/test_rollouts_by_hand.py",
        ("if position == 0:", "if step == 0:"),
        ('if request.mode != "greedy"', "if request.name"),
        ("Philox(request.seed)", "Philox(0)"),
        ("return 2 * noise - 1 if spec.continuous", "return noise if spec.continuous"),
        ("act(log.obs[rows, step], command", "act(log.obs[rows, max(step - 1, 0)], command"),
        ("log.terminated[row], log.truncated[row], info = outcome", "log.truncated[row], log.terminated[row], info = outcome"),
        ('log.env_steps[row] += info.get("length", 1)', "log.env_steps[row] += 1"),
        ("follow(command, log.reward[rows, step]) if follow else command", "command"),
        ("rows = rows[~(log.terminated[rows] | log.truncated[rows])]", "rows = rows[~log.terminated[rows]]"),
        ("request.seed % 2**31", "row"),
        ("policy_version=version", "policy_version=0"),
        ("obs=self.obs[k, : end + 1].copy()", "obs=self.obs[k, :end].copy()"),
        ('if requests[0].mode == "uniform":', 'if requests[0].mode == "greedy":'),
    ),
    _area(
        "data/loaders.py", "data/test_loaders.py::test_the_policy_is_frozen_and_stamped_while_a_collection_runs[0]",
        ("self.behaviour.load_state_dict(policy)", "pass"),
        ("self.version.fill_(version)", "pass"),
        ("copy.deepcopy(policy).cpu()", "policy.cpu()"),
        ("self._waiting = self._waiting[1:]", "pass", "only the message for a dead worker reads what is outstanding; its test kills "
         "real workers and takes too long for this check"),
    ),
    _area(
        "data/replay.py", "data/test_replay.py data/test_window.py",
        ("episode.ret >= self._return[self._order[-1]]", "episode.ret > self._return[self._order[-1]]"),
        ('-episode.ret, side="left")', '-episode.ret, side="right")'),
        ("self.capacity + self._newest % self.recent", "self.capacity"),
        ("np.arange(min(self._newest, self.recent))", "np.arange(0)"),
        ("self._order = self._order[:-1]", "self._order = self._order[1:]"),
        ("to_go[row + start] - to_go[row + end], end - start", "to_go[row + start], end - start"),
        ("first = slot * self.horizon + start", "first = slot * self.horizon"),
        ("top = self._order[:count]", "top = self._order[-count:]"),
        ('np.searchsorted(ends, flat, side="right")', 'np.searchsorted(ends, flat, side="left")'),
        ("slot = slots[rng.integers(len(slots), size=shape)]", "slot = slots[rng.integers(len(slots) - 1, size=shape)]"),
        ("while self.num_steps > self.capacity", "while self.num_steps >= self.capacity"),
        ("terminated = last & np.array", "terminated = last | np.array"),
        ('"row": steps + number', '"row": steps'),
        ("in self._episodes][-newest:]", "in self._episodes][:newest]"),
        ('"first": end - length', '"first": end - 1'),
    ),
    _area(
        "data/steps.py", "methods/test_policy_gradient_data.py::test_step_batch_by_hand "
        "methods/test_policy_gradient_data.py::test_an_end_that_is_both_is_a_termination",
        ("episode.truncated and not episode.terminated for", "episode.truncated for"),
        ("np.stack([episode.obs[-1] for", "np.stack([episode.obs[-2] for"),
        ("last[torch.from_numpy(ends - 1)] = True", "last[-1] = True"),
    ),
    _area(
        "data/member_ring.py", "data/test_member_replay.py",
        ("self._first + self._written % self.capacity", "self._first"),
        ("(noise * len(self)).long()", "(noise * self.capacity).long()"),
        ("+ self._first[members].unsqueeze(1)", "+ self._first[:1].unsqueeze(1)"),
    ),
    _area(
        "seeding.py", "test_fresh_noise.py test_seeding.py",
        ("zlib.crc32(purpose.encode()), *index]", "zlib.crc32(purpose.encode())]"),
        ("[run_seed, zlib.crc32(purpose.encode()), *index]", "[run_seed, *index]"),
        ("generator(seed, self.purpose, number) for", "generator(seed, self.purpose, 0) for"),
        ("self.seeds = [self.seeds[n] for n in rows.tolist()]", "pass"),
        ("self._block = self._block[:, rows] if self._number >= 0", "self._block = self._block if self._number >= 0"),
        ("return self.whole(number)[place]", "return self.whole(number)[0]"),
    ),
]  # fmt: skip

_ENVS = [
    _area(
        "envs/gym.py", "envs/test_gym.py::test_sparse_pays_the_same_total_at_the_end envs/test_gym.py::test_time_limit_truncates "
        "envs/test_gym.py::test_sparse_pays_truncated_episodes_and_starts_anew "
        "envs/test_gym.py::test_continuous_actions_are_rescaled_and_clipped envs/test_batch.py",
        ("self._sum if terminated or truncated else 0.0", "self._sum if terminated else 0.0"),
        ("self._sum = 0.0\n        return", "return"),
        ("while count < self.repeat and not over:", "while count < self.repeat:"),
        ("total + float(reward), terminated or truncated", "float(reward), terminated or truncated"),
        ("gymnasium.wrappers.ClipAction(gymnasium.wrappers.RescaleAction(env, np.float32(-1), np.float32(1)))",
         "gymnasium.wrappers.ClipAction(env)"),
        ("max_episode_steps=spec.horizon", "max_episode_steps=spec.horizon + 1"),
    ),
    _area(
        "envs/batch.py", "envs/test_batch.py",
        ("(self.length >= self.horizon) & ~step.terminated", "self.length > self.horizon"),
        ("reward + step.reward.masked_fill(over, 0)", "reward + step.reward"),
        ("self.length = self.length.masked_fill(where, 0)", "pass"),
        ("self.env.reset(self._reset_noise.at(self._clock))", "self.env.reset(self._reset_noise.at(0))"),
        ("self._episodes[slot] += 1\n            self._length", "self._length"),
        ("torch.from_numpy(truncated[self._slot].copy()) & ~ended", "torch.from_numpy(truncated[self._slot].copy()) | ended"),
    ),
    _area(
        "envs/reward_network.py", "envs/test_reward_batch.py envs/test_reward_network.py",
        ("self._obs = step.obs", "pass"),
        ("self.real.observe(state), step.obs, None", "step.obs, step.obs, None"),
        ("self.params, self._obs = self.params[rows], self._obs[rows]", "self._obs = self._obs[rows]"),
    ),
    _area(
        "envs/synthetic.py", "envs/test_synthetic.py",
        ("reward, done > 0.5, 1 - done)", "reward, done > 0.5, done)"),
        ("reward, done > 0.5, 1 - done)", "reward, done > 0.0, 1 - done)"),
        ("torch.cat([act, self.observe(state) if self.reencode else state], dim=-1)", "torch.cat([act, self.observe(state)], dim=-1)"),
        ("done = done.sigmoid()", "pass"),
    ),
    _area(
        "envs/classic.py", "envs/test_classic.py",
        ("push - pole * turn * cos / mass", "push + pole * turn * cos / mass"),
        ("12 * math.pi / 180\n\n    def reset", "24 * math.pi / 180\n\n    def reset"),
        ("terminated.to(state.dtype) - 1, terminated", "terminated.to(state.dtype), terminated"),
        ("(k1 + 2 * k2 + 2 * k3 + k4)", "(k1 + 2 * k2 + k3 + k4)"),
    ),
    _area(
        "envs/grids.py", "envs/test_grids.py",
        ("torch.where(moved < 0, torch.arange(len(flat))[:, None], moved)", "moved.clamp(min=0)"),
        ('cell in "GO" for', 'cell in "G" for'),
    ),
]  # fmt: skip

_EVOLUTION = [
    _area(
        "evolution/strategies.py", "evolution/test_steps.py evolution/test_strategies.py methods/test_inner_seeds.py",
        ("i.sign * std * noise", "std * noise"),
        ('"inner agent", self.generation, item.agent', '"inner agent", self.generation'),
        ('"inner agent", self.generation, item.agent', '"inner agent", 0, item.agent'),
        ("[k if s.shared_agents else n for", "[0 if s.shared_agents else n for"),
        ("for member in range(s.population) for k in range(s.num_grad_evals)]", "for member in range(s.population) for k in range(1)]"),
        ('if s.grad_eval_aggregate == "mean" else', 'if s.grad_eval_aggregate == "min" else'),
        ('if s.keep == "last" or baseline > self.best_score:', 'if s.keep == "last" or baseline >= self.best_score:'),
        ('if s.keep == "last" or baseline > self.best_score:', "if baseline > self.best_score:"),
        ("self.best_score.fill_(baseline)", "self.best_score.fill_(float(candidates.max()))"),
        ("self.settings.noise_std * noise_scale * self.evolved.float()", "self.settings.noise_std * self.evolved.float()"),
        ("self.noise(generation) * (self.settings.noise_std * noise_scale)", "self.noise(generation) * self.settings.noise_std"),
        ("signed = signed * sign.to(signed.dtype).unsqueeze(1)", "pass"),
        ("std = self.settings.noise_std * noise_scale\n", "std = self.settings.noise_std\n"),
        ("s.step_size / s.population if s.nes_step_size", "s.step_size if s.nes_step_size"),
        ("self.mean.grad, self.log_std.grad = -mean, -log_std * self.evolved", "self.mean.grad, self.log_std.grad = -mean, -0 * log_std"),
        ("self.mean.grad, self.log_std.grad = -mean,", "self.mean.grad, self.log_std.grad = mean,"),
        ("torch.cat([noise, -noise])", "torch.cat([noise, noise])"),
        ("es.snes_std_rate(int(self.evolved.sum()))", "es.snes_std_rate(len(self.evolved))"),
        ("self.search.tell([(x, -score)", "self.search.tell([(x, score)"),
        ('"evolution noise", generation, 0)', '"evolution noise", 0, 0)'),
    ),
    _area(
        "evolution/callback.py", "evolution/test_steps.py",
        ("self.strategy, self.noise_decay**number", "self.strategy, self.noise_decay"),
        ("strategy.schedule(optimiser, self.step_decay**number)", "strategy.schedule(optimiser, 1.0)"),
        ("float(strategy.best_score) == center", "True"),
    ),
    _area(
        "evolution/executors.py", "evolution/test_executors.py::test_shards_come_back_in_order",
        ("parts[i % len(parts)][i // len(parts)]", "parts[i // len(parts) % len(parts)][i % len(parts) % len(parts[-1])]"),
        ("range(min(count, len(items)))", "range(count)"),
    ),
]  # fmt: skip

_METHODS = [
    _area(
        "methods/reward_conditioned.py", "methods/test_reward_conditioned_updates.py",
        ("loss = -(weight * self.learner", "loss = -(self.learner"),
        ("list(self.learner.parameters()), 1 - self.cfg.averaging)", "list(self.learner.parameters()), self.cfg.averaging)"),
        ("""        value_loss = self.fit("train/value_loss", self.update_critic, examples)
        values, trace_decay = self._values(window), cfg.advantage_trace_decay_at(int(self.env_steps))
""",
         """        values, trace_decay = self._values(window), cfg.advantage_trace_decay_at(int(self.env_steps))
        value_loss = self.fit("train/value_loss", self.update_critic, examples)
"""),
        ("return returns - value, {**scalars", "return returns, {**scalars"),
        ("ended = window.terminated if self.cfg.bootstrap_truncated else window.last", "ended = window.last"),
        ("self.critic(window.obs).squeeze(-1) * self.cfg.value_scale", "self.critic(window.obs).squeeze(-1)"),
        ("values[window.row + 1], window.last", "values[window.row], window.last"),
        ("label if cfg.label_max is None else label.clamp(max=cfg.label_max)", "label"),
        ("if cfg.exp_weights else torch.ones_like(label)", "if cfg.exp_weights else label"),
        ('"episode_return": window.episode_return}[self.cfg.weight_by]', '"episode_return": label}[self.cfg.weight_by]'),
        ("weight = self.weights(command, self.cfg.target_temperature)", "weight = self.weights(command, self.cfg.temperature)"),
        ('"episode": batch.window.first}', '"episode": batch.window.last}'),
        ("torch.tensor([0.1, 0.9], device", "torch.tensor([0.9, 0.1], device"),
        ('scalars["eval_high/return_mean"] - scalars["eval_low/return_mean"]',
         'scalars["eval_low/return_mean"] - scalars["eval_high/return_mean"]'),
        ("self.raw_optimisers()[1], loss, self.cfg.critic_gradient_clip", "self.raw_optimisers()[1], loss, None"),
        ("policy.net.command_shift.fill_(float(label.mean()))", "pass"),
        ("standardise(merit, math.inf), temperature", "merit, temperature"),
        ("draw_targets(self.aim, self.cfg.target_spread, noise)", "draw_targets(self.aim, 1.0, noise)"),
        ("lr=self.cfg.critic_learning_rate", "lr=self.cfg.learning_rate"),
    ),
    _area(
        "methods/window.py", "methods/test_reward_conditioned_updates.py",
        ("math.ceil(self.cfg.steps_per_iter / ", "math.floor(self.cfg.steps_per_iter / "),
        ("min(env_steps / self.cfg.steps_per_iter, _MAX_CATCH_UP)", "env_steps / self.cfg.steps_per_iter"),
        ("count = max(1, round(", "count = max(0, round("),
        ('generator(self.run_seed, "minibatch", epoch)', 'generator(self.run_seed, "minibatch", 0)'),
    ),
    _area(
        "methods/upside_down.py", "methods/test_upside_down_updates.py",
        ("torch.tensor([batch.command_range.low, ", "torch.tensor([batch.command_range.high, "),
        ("log_prob(action).mean()\n        return self.descend(", "log_prob(action).sum()\n        return self.descend("),
        ("return self.descend(optimiser, loss, self.cfg.gradient_clip)", "return self.descend(optimiser, loss, None)"),
        ("end = SEGMENTS[self.cfg.segments](start, self.buffer.length(slot), rng.random(shape))", "end = self.buffer.length(slot)"),
        ("np.stack([achieved, steps], axis=-1", "np.stack([steps, achieved], axis=-1"),
        ("self.buffer.best(self.cfg.last_few)", "self.buffer.best(len(self.buffer))"),
        ("self.cfg.n_held_out_episodes_per_iter if epoch else 0", "self.cfg.n_held_out_episodes_per_iter"),
        ("self.buffer.add(fresh)", "self.buffer.add(episodes)"),
        ('generator(self.run_seed, "minibatch", epoch)', 'generator(self.run_seed, "minibatch", 0)'),
        ("left = [np.arange(episode.length, 0, -1)", "left = [np.arange(episode.length)"),
    ),
    _area(
        "methods/policy_gradient.py", "methods/test_policy_gradient_updates.py",
        ("normalised(weight) if self.cfg.normalise_weights else weight", "weight"),
        ("returns - baseline) + Loss", "returns) + Loss"),
        ("self.max_entropy, self.cfg.entropy_beta)", "self.max_entropy, -self.cfg.entropy_beta)"),
        ("advantage = target - value.detach()", "advantage = target"),
        ("value_loss(value, target, self.cfg.value_delta)", "value_loss(value, target, 1.0)"),
        ("range(self.cfg.n_critic_updates - 1)", "range(self.cfg.n_critic_updates)"),
        ("batch.truncated & self.cfg.bootstrap_truncated", "~batch.truncated & self.cfg.bootstrap_truncated"),
        ("batch.last, self.cfg.trace_decay)", "batch.last, 1.0)"),
        ("self.targets(batch, value.detach()), delta=1.0)", "self.targets(batch, value.detach()), delta=self.cfg.value_delta)"),
        ("int(self.episodes) >= RUNNING_EPISODES", "int(self.episodes) > 0"),
        ("int(self.episodes) / self.cfg.max_episodes", "int(self.env_steps) / self.cfg.max_episodes"),
        ("torch.stack(list(loss.terms.values())).sum()", 'loss.terms["policy_loss"]'),
        ("discounted_returns(batch.reward, self.cfg.gamma, batch.last)", "discounted_returns(batch.reward, 1.0, batch.last)"),
    ),
    _area(
        "methods/base.py", "methods/test_policy_gradient_updates.py methods/test_upside_down_updates.py data/test_rollouts_by_hand.py",
        ("optimiser.zero_grad()", "pass"),
        ("if gradient_clip is not None:", "if gradient_clip is None:"),
        ("(1 - ramp(progress, start, 1.0))", "ramp(progress, start, 1.0)"),
        ('group.setdefault("initial_lr", group["lr"])', 'group["lr"]'),
        ("version=epoch + 1", "version=epoch"),
        ("derive_seed(run_seed, purpose, epoch, i), mode", "derive_seed(run_seed, purpose, epoch), mode"),
        ("derive_seed(run_seed, purpose, epoch, i), mode", "derive_seed(run_seed, purpose, 0, i), mode"),
        ("episodes[i * count : (i + 1) * count]", "episodes[:count]"),
        ("self.num_updates += len(losses)", "self.num_updates += 1"),
    ),
    _area(
        "methods/experience.py", "data/test_rollouts_by_hand.py",
        ("version = max(epoch - self.overlap, 0)", "version = epoch"),
        ('derive_seed(run_seed, "rollout", epoch, i)', 'derive_seed(run_seed, "rollout", epoch)'),
        ('derive_seed(run_seed, "rollout", epoch, i)', 'derive_seed(run_seed, "rollout", 0, i)'),
        ('derive_seed(run_seed, "warm-up", i)', 'derive_seed(run_seed, "rollout", 0, i)'),
        ("        self.absorb(epoch, episodes)\n", ""),
    ),
    _area(
        "methods/inner_loop.py", "methods/test_inner_seeds.py methods/test_inner_loop.py",
        ('derive_seed(seed, "test", k) for', 'derive_seed(seed, "test", 0) for'),
        ('derive_seed(seed, "test", k) for seed', 'derive_seed(0, "test", k) for seed'),
        ('derive_seed(seed, "proxy") for', 'derive_seed(0, "proxy") for'),
        ("[proposal.seed(item) for item in items], turns", "[proposal.seed(items[0]) for item in items], turns"),
        ("-facts.train_steps - facts.unsolved_penalty * missing", "-facts.train_steps + facts.unsolved_penalty * missing"),
        ("(facts.scores * facts.lengths).sum(1)", "facts.scores.sum(1)"),
        ("if turn % len(self.agents) == number]", "if turn % len(self.agents) <= number]"),
        ("tested.masked_fill(failed, worst)", "tested"),
        ("steps = steps.masked_fill(failed, longest)", "pass"),
    ),
]  # fmt: skip

MUTATIONS: list[Mutation] = [m for group in (_FUNCTIONAL, _DATA, _ENVS, _EVOLUTION, _METHODS) for area in group for m in area]
"""All of them; those of one area stand together."""
