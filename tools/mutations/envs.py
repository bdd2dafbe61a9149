"""Wrong formulas in ``envs/``."""

from mutations.mutation import area

MUTATIONS = [
    *area(
        "envs/batch.py", "envs/test_batch.py",
        ("return gamma * (", "return ("),
        (('\n'
'            (~self.terminated).float() if self.continuation is None else self.continuation\n'
'        '), '(~self.terminated).float() if self.continuation is None else 1.0'),
    ),
    *area(
        "envs/fused_classic.py", "envs/test_fused_classic.py",
        ("sixth * (u1 + 2 * u2 + 2 * u3 + u4)", "sixth * (u1 + 2 * u2 + u3 + u4)"),
        ("a = _wrapped(a + sixth", "a = (a + sixth"),
        ("_POLE * spin * spin * sin", "_POLE * spin * sin"),
        ("abs(state[0]) > _MAX_POSITION or ", ""),
        ("F(0.1) * spin * spin", "F(0.1) * spin"),
        ("    elif turned < 0:\n        turned += _TWO_PI\n", ""),
        ("min(max(spin, F(-8)), F(8))", "spin"),
    ),
    *area(
        "envs/gym.py", "envs/test_gym.py::test_sparse_pays_the_same_total_at_the_end envs/test_gym.py::test_time_limit_truncates "
        "envs/test_gym.py::test_sparse_pays_truncated_episodes_and_starts_anew "
        "envs/test_gym.py::test_continuous_actions_are_rescaled_and_clipped envs/test_batch.py",
        ("self._sum if terminated or truncated else 0.0", "self._sum if terminated else 0.0"),
        ("self._sum = 0.0\n        return", "return"),
        ("while count < self.repeat and not over:", "while count < self.repeat:"),
        ("total + float(reward), terminated or truncated", "float(reward), terminated or truncated"),
        ("CheckedEnv(env, spec.gamename, spec.horizon)", "CheckedEnv(env, spec.gamename, spec.horizon + 1)"),
    ),
    *area(
        "envs/spaces.py", "envs/test_gym.py::test_rescaled_actions_are_of_the_space "
        "envs/test_gym.py::test_continuous_actions_are_rescaled_and_clipped",
        ("np.clip(action, self._unit.low, self._unit.high)", "action"),
        ("np.clip(own, self.space.low, self.space.high).astype(self.space.dtype)", "own.astype(self.space.dtype)"),
        ("np.clip(own, self.space.low, self.space.high).astype(self.space.dtype)", "np.clip(own, self.space.low, self.space.high)"),
    ),
    *area(
        "envs/checked.py", "envs/test_checked_func.py",
        ("not bool(found.isfinite().all())", "False"), ("found.dtype != dtype", "False"), ("found.shape != shape", "False"),
        ("not bool(bits.all())", "False"),
    ),
    *area("envs/checked.py", "hostile/test_misbehaving_envs.py", ("number not in (0, 1)", "False"), ("abs(number) <= _REWARD", "True")),
    *area("envs/spaces.py", "hostile/test_misbehaving_envs.py::test_what_cannot_be_played_is_refused_before_it_is", ("(space.high - space.low >= _NARROWEST).all()", "True")),
    *area(
        "envs/spaces.py", "envs/test_any_environment.py", ("return action + int(self.space.start)", "return action"),
    ),
    *area(
        "envs/spaces.py", "envs/test_any_environment.py",
        ("if not _inside(space, obs):", "if False:"),
        ("len(obs) == len(space.spaces) and all(map(_inside, space.spaces, obs))", "len(obs) == len(space.spaces)"),
        ("len(space.shape) >= 3", "len(space.shape) >= 4"),
    ),
    *area(
        "envs/spec.py", "envs/test_any_environment.py envs/test_gym.py",
        ("or _time_limit(env)", ""),
        ("game.one_hot or isinstance(env.observation_space, gymnasium.spaces.Discrete)", "game.one_hot"),
        ("now is not then", "False"),
    ),
    *area(
        "envs/batch.py", "envs/test_func_batch.py envs/test_batch.py",
        ("reward + after.reward.masked_fill(over, 0)", "reward + after.reward"),
        ("self.length = self.length.masked_fill(where, 0)", "pass"),
        ("self.env.reset(self._reset_noise.at(self._clock))", "self.env.reset(self._reset_noise.at(0))"),
    ),
    *area(
        "envs/gym_batch.py", "envs/test_batch.py",
        ("        self._stand_still(self._slot[where.numpy()])\n        return", "        return"),
        ("+= ~self._still[self._slot]", "+= 1"),
        ("    def reset(self, **_: Any)", "    def nothing(self, **_: Any)"),
        ("self._episodes[slot] += 1\n            self._length", "self._length"),
        ("torch.from_numpy(truncated[self._slot].copy()) & ~ended", "torch.from_numpy(truncated[self._slot].copy()) | ended"),
    ),
    *area(
        "envs/reward_network.py", "envs/test_reward_batch.py envs/test_reward_network.py",
        ("self.real.observe(state), step.obs, None", "step.obs, step.obs, None"),
        ("self.params = self.params[rows]", "pass"),
        ("torch.cat([obs.unsqueeze(1), after[:, :-1]], dim=1)", "after"),
        ("learned.masked_fill(beyond, 0).sum(1)", "learned.sum(1)"),
        ("(obs - center) / unit", "obs / unit"),
        ("(obs - center) / unit", "obs - center"),
        ("[self._read(obs)]", "[obs]"),
    ),
    *area(
        "functional/scaling.py", "envs/test_reward_network.py",
        ("(upper - lower < _UNBOUNDED)", "(lower > upper)"),
        ("bounded = (upper > lower) & (upper", "bounded = (upper"),
        ("((upper + lower) / 2).where", "((upper - lower) / 2).where"),
    ),
    *area(
        "envs/reward_network.py", "envs/test_proxies.py",
        ("if self.scale_states else None", "if False else None"),
    ),
    *area("lab/protocols/models.py", "envs/test_proxies.py", ('if key != "scale_states" or value', "")),
    *area(
        "envs/one_step.py", "envs/test_synthetic.py",
        ("(self.observe(state) - self._center) / self._unit", "self.observe(state) - self._center"),
        ("(self.observe(state) - self._center) / self._unit", "(state - self._center) / self._unit"),
        ("self._center + self._unit * rows", "self._unit * rows"),
        ("near + share * (far - near)", "far"),
        ("self.net.latent_size + 1 + self.real", "1 + self.real"),
        ("act = action.clamp(-1, 1)", "act = action"),
        ("(2 * pay - act)", "(pay - act)"),
        ("(pay - pay.mean(-1, keepdim=True))", "pay"),
        ('self.blocks["reward_scale"] * rows', "rows"),
        ("4 / 3 * pay.square() + 4 / 45", "4 / 3 * pay.square() + 4 / 54"),
        ("pay.var(-1, correction=0)", "pay.var(-1)"),
        ("self.params.clone(), self.real", "self.params, self.real"),
        ("output.argmax(-1)", "output.argmin(-1)"),
        ("INWARD * self.meant(state) if", "self.meant(state) if"),
        ("output.clamp(-1, 1) if", "output if"),
        ("self._pay(state) if", "self.meant(state) if"),
        ("- scale * drawn.mean(1)", ""),
        ("std / self._unit / drawn.std(1)", "std / drawn.std(1)"),
        ('over, torch.zeros_like(reward)', 'over, torch.ones_like(reward)'),
        ("torch.zeros(sum(self.units.values()), dtype", "torch.ones(sum(self.units.values()), dtype"),
    ),
    *area(
        "envs/synthetic.py", "envs/test_synthetic.py",
        ("reward, done > 0.5, 1 - done)", "reward, done > 0.5, done)"),
        ("reward, done > 0.5, 1 - done)", "reward, done > 0.0, 1 - done)"),
        ("torch.cat([act, state], dim=-1)", "torch.cat([act, self.observe(state)], dim=-1)"),
        ("done = done.sigmoid()", "pass"),
    ),
    *area(
        "envs/cartpole.py", "envs/test_classic.py",
        ("push - pole * turn * cos / mass", "push + pole * turn * cos / mass"),
        ("12 * math.pi / 180\n\n    def reset", "24 * math.pi / 180\n\n    def reset"),
    ),
    *area(
        "envs/fused_worlds.py", "envs/test_fused_worlds.py",
        ("F(1) - done, done > F(0.5)", "F(1) - done, done > F(0.6)"),
        ("F(1) / (F(1) + np.exp(-done))", "done"),
        ("if not env.net.joined.compilable or not env.fresh_slopes:", "if not env.net.joined.compilable:"),
        ("(PRELU_SLOPE,) * len", "(0.0,) * len"),
    ),
    *area(
        "envs/synthetic.py", "envs/test_fused_worlds.py",
        ("row += rows", "pass"),
    ),
    *area(
        "envs/classic.py", "envs/test_classic.py",
        ("terminated.to(state.dtype) - 1, terminated", "terminated.to(state.dtype), terminated"),
        ("(k1 + 2 * k2 + 2 * k3 + k4)", "(k1 + 2 * k2 + k3 + k4)"),
    ),
    *area(
        "envs/grids.py", "envs/test_grids.py",
        ("torch.where(blocked[around], here, around)", "around.clamp(max=len(flat) - 1)"),
        ("(column < width)", "(column <= width)"),
        ('cell in "GO" for', 'cell in "G" for'),
    ),
    *area(
        "envs/synthetic_dataset.py", "methods/test_synthetic_dataset.py",
        ("action.clamp(-1, 1)\n        action =", "action\n        action ="),
        ("torch.arange(self.num_pairs, device=params.device) % self.action_size", "torch.zeros(self.num_pairs, dtype=torch.int64)"),
        ("(noise[..., 0] * self.pairs.num_pairs).long()", "(noise[..., 0] * 0).long()"),
        ("taught).square().mean(-1)", "taught).square().sum(-1)"),
    ),
    *area(
        "envs/batch.py", "envs/test_batch.py agents/test_chain.py::test_q_learning_finds_the_values_of_the_best_policy_while_it_explores",
        ('(~self.terminated).float() if self.continuation is None', ('torch.ones_like(self.terminated).float()\n'
'            if self.continuation is None\n'
'           ')),
    ),
    *area("envs/gym_batch.py", "envs/test_batch.py envs/test_reward_batch.py", ('derive_seed(self._seeds[slot], "reset", self._episodes[slot])', 'derive_seed(self._seeds[slot], "reset", 0)')),
    *area(
        "envs/reward_network.py", "envs/test_reward_batch.py",
        ("while length < len(steps) and not over:", "while length < len(steps):"),
    ),
    *area(
        "envs/wrapped_batch.py", "envs/test_reward_batch.py",
        ("        step = self.real.step(action)\n        self.obs = step.obs", "        step = self.real.step(action)"),
        ("        self.real.keep(rows)\n        self.obs = self.obs[rows]", "        self.real.keep(rows)\n        self.obs = self.obs[:1]"),
        ("        self.obs = self.real.reset(where)\n", "        self.real.reset(where)\n"),
        ("        self.obs = self.real.obs\n", ""),
    ),
    *area(
        "envs/reward_network.py", "envs/test_reward_network.py",
        ("self.real.observe(state), step.obs, None", "step.obs, self.real.observe(state), None"),
        ('params[:, self.net.columns("bias")] = 0', "pass"),
    ),
    *area(
        "envs/synthetic.py", "envs/test_synthetic.py envs/test_synthetic_actions.py",
        ('reward = self._head("reward", x)', 'reward = self._head("done", x)'),
        ('done = self._head("done", x)', 'done = self._head("reward", x)'),
        ("act = action.clamp(-1, 1)", "act = action"),
        ("self.with_params(self.params[rows], self.real)", "self.with_params(self.params[: len(rows)], self.real)"),
    ),
    *area(
        "envs/model_env.py", "envs/test_model_env.py",
        ("noise[..., 0] >= continues", "noise[..., 0] < continues"),
        ("self._model_noise(noise[..., 1:])", "self._model_noise(noise[..., :-1])"),
        ('noise if self.model.noise_kind == "uniform" else standard_normal(noise)', "noise"),
    ),
    *area(
        "envs/batch.py", "envs/test_func_batch.py",
        ("(self.length >= self.horizon) & ~step.terminated", "(self.length > self.horizon) & ~step.terminated"),
        ("(self.length >= self.horizon) & ~step.terminated", "self.length >= self.horizon"),
        ("self.env.step(self.state, action, self._step_noise.at(self._clock))", "self.env.step(self.state, action, self._step_noise.at(0))"),
    ),
    *area(
        "envs/one_step.py", "envs/test_synthetic.py",
        ("drawn.std(1).clamp(min=_TINY)", "drawn.std(1)"),
        ("(mean - self._center) / self._unit - scale", "mean / self._unit - scale"),
        ("self.obs_size if self.latent_size else 0", "self.obs_size"),
        ("(2 * pay - act)).sum(-1)", "(2 * pay - act)).mean(-1)"),
        ("+ 4 / 45).sum(-1)", "+ 4 / 45).mean(-1)"),
    ),
    *area(
        "envs/gym_batch.py", "envs/test_batch.py::test_who_is_kept_has_its_own_steps_and_the_others_stand_still",
        ("np.asarray(info[STEPS])[self._slot]", "np.asarray(info[STEPS])[: len(self._slot)]"),
        (">= length[:, None]] = 0", "> length[:, None]] = 0"),
        ("        self._stand_still(gone)\n", ""),
    ),
    *area(
        "envs/action_masks.py", "methods/test_action_masks.py",
        ("self._all if terminated or truncated else self", "self"),
        ("or not np.isin(found, (0, 1)).all()", ""),
        ("found if all(part.any() for part in parts) else None", "found"),
    ),
]  # fmt: skip
