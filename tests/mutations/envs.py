"""Wrong formulas in ``envs/``."""

from mutations.mutation import area

MUTATIONS = [
    *area(
        "envs/batch.py", "envs/test_batch.py",
        ("return gamma * (", "return ("),
        ("if self.continuation is None else self.continuation)", "if self.continuation is None else 1.0)"),
    ),
    *area(
        "envs/gym.py", "envs/test_gym.py::test_sparse_pays_the_same_total_at_the_end envs/test_gym.py::test_time_limit_truncates "
        "envs/test_gym.py::test_sparse_pays_truncated_episodes_and_starts_anew "
        "envs/test_gym.py::test_continuous_actions_are_rescaled_and_clipped envs/test_batch.py",
        ("self._sum if terminated or truncated else 0.0", "self._sum if terminated else 0.0"),
        ("self._sum = 0.0\n        return", "return"),
        ("while count < self.repeat and not over:", "while count < self.repeat:"),
        ("total + float(reward), terminated or truncated", "float(reward), terminated or truncated"),
        ("gymnasium.wrappers.ClipAction(gymnasium.wrappers.RescaleAction(env, np.float32(-1), np.float32(1)))",
         "gymnasium.wrappers.ClipAction(env)"),
        ("CheckedEnv(env, spec.gamename, spec.horizon)", "CheckedEnv(env, spec.gamename, spec.horizon + 1)"),
    ),
    *area(
        "envs/gym.py", "envs/test_any_environment.py", ("lambda action: action + start", "lambda action: action"),
    ),
    *area(
        "envs/spaces.py", "envs/test_any_environment.py",
        ("isinstance(space, spaces.Discrete) and not space.contains(obs)", "False"),
        ("len(space.shape) >= 3", "len(space.shape) >= 4"),
        ("(space.low < space.high).all()", "True"),
    ),
    *area(
        "envs/spec.py", "envs/test_any_environment.py envs/test_gym.py",
        ("or _time_limit(env)", ""),
        ("game.one_hot or isinstance(env.observation_space, gymnasium.spaces.Discrete)", "game.one_hot"),
        ("now is not then", "False"),
    ),
    *area(
        "envs/batch.py", "envs/test_func_batch.py envs/test_batch.py",
        ("(self.length >= self.horizon) & ~step.terminated", "self.length > self.horizon"),
        ("reward + step.reward.masked_fill(over, 0)", "reward + step.reward"),
        ("self.length = self.length.masked_fill(where, 0)", "pass"),
        ("self.env.reset(self._reset_noise.at(self._clock))", "self.env.reset(self._reset_noise.at(0))"),
    ),
    *area(
        "envs/gym_batch.py", "envs/test_batch.py",
        ("self._episodes[slot] += 1\n            self._length", "self._length"),
        ("torch.from_numpy(truncated[self._slot].copy()) & ~ended", "torch.from_numpy(truncated[self._slot].copy()) | ended"),
    ),
    *area(
        "envs/reward_network.py", "envs/test_reward_batch.py envs/test_reward_network.py",
        ("        self.obs = step.obs\n", ""),
        ("self.real.observe(state), step.obs, None", "step.obs, step.obs, None"),
        ("self.params, self.obs = self.params[rows], self.obs[rows]", "self.obs = self.obs[rows]"),
        ("torch.cat([self.obs.unsqueeze(1), after[:, :-1]], dim=1)", "after"),
        ("learned.masked_fill(beyond, 0).sum(1)", "learned.sum(1)"),
    ),
    *area(
        "envs/one_step.py", "envs/test_synthetic.py",
        ("(state - self._center) / self._unit", "state - self._center"),
        ("self._center + self._unit * rows", "self._unit * rows"),
        ("(high - low < _UNBOUNDED)", "(low > high)"),
        ("-(action.clamp(-1, 1) - pay)", "-(action - pay)"),
        ("pay.argmax(-1)", "pay.argmin(-1)"),
        ("pay.clamp(-1, 1) if self.continuous", "pay if self.continuous"),
        ('- blocks["scale"] * drawn.mean(1)', ""),
        ("std / self._unit / drawn.std(1)", "std / drawn.std(1)"),
        ("torch.zeros_like(reward))", "torch.ones_like(reward))"),
        ("torch.zeros(2 * self._moments, dtype=torch.bool)", "torch.ones(2 * self._moments, dtype=torch.bool)"),
    ),
    *area(
        "envs/synthetic.py", "envs/test_synthetic.py",
        ("reward, done > 0.5, 1 - done)", "reward, done > 0.5, done)"),
        ("reward, done > 0.5, 1 - done)", "reward, done > 0.0, 1 - done)"),
        ("torch.cat([act, self.observe(state) if self.reencode else state], dim=-1)", "torch.cat([act, self.observe(state)], dim=-1)"),
        ("done = done.sigmoid()", "pass"),
    ),
    *area(
        "envs/classic.py", "envs/test_classic.py",
        ("push - pole * turn * cos / mass", "push + pole * turn * cos / mass"),
        ("12 * math.pi / 180\n\n    def reset", "24 * math.pi / 180\n\n    def reset"),
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
        ("self.action_size).clamp(-1, 1)", "self.action_size)"),
        ("(torch.arange(self.num_pairs, device=params.device) % self.action_size)", "torch.zeros(self.num_pairs, dtype=torch.int64)"),
        ("(noise[..., 0] * self.pairs.num_pairs).long()", "(noise[..., 0] * 0).long()"),
        ("taught).square().mean(-1)", "taught).square().sum(-1)"),
    ),
    *area(
        "envs/batch.py", "envs/test_batch.py agents/test_chain.py::test_q_learning_finds_the_values_of_the_best_policy_while_it_explores",
        ("gamma * ((~self.terminated).float()", "gamma * (torch.ones_like(self.terminated).float()"),
    ),
    *area("envs/gym_batch.py", "envs/test_batch.py envs/test_reward_batch.py", ('derive_seed(self._seeds[slot], "reset", self._episodes[slot])', 'derive_seed(self._seeds[slot], "reset", 0)')),
    *area(
        "envs/reward_network.py", "envs/test_reward_batch.py",
        ("self.obs = self.real.reset(where)", "self.obs = torch.where(where.unsqueeze(-1), self.obs, self.real.reset(where))"),
        ("self.params[rows], self.obs[rows]", "self.params[rows], self.obs[:1]"),
        ("while length < len(steps) and not over:", "while length < len(steps):"),
    ),
    *area(
        "envs/reward_network.py", "envs/test_reward_network.py",
        ("self.real.observe(state), step.obs, None", "step.obs, self.real.observe(state), None"),
        ('params[:, self.net.columns("bias")] = 0', "pass"),
    ),
    *area(
        "envs/synthetic.py", "envs/test_synthetic.py envs/test_synthetic_actions.py",
        ('self._head("reward", x).squeeze(-1), self._head("done", x)', 'self._head("done", x).squeeze(-1), self._head("reward", x)'),
        ("self.observe(state) if self.reencode else state", "state"),
        ("action.clamp(-1, 1) if self.continuous", "action if self.continuous"),
        ("self._with(self.params[rows], self.real)", "self._with(self.params[: len(rows)], self.real)"),
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
        ("self.length = self.length.masked_fill(where, 0)", "self.length = self.length + 0 * where"),
    ),
]  # fmt: skip
