"""Wrong formulas in ``methods/``."""

from mutations.mutation import area

MUTATIONS = [
    *area(
        "methods/upside_down/config.py", "methods/upside_down/test_mixes.py",
        ('of_episodes = self.target_labels in ("best", "episode")', "of_episodes = True"),
        ("'episode' if decreases else 'buffer'", "'buffer'"),
        ("if not self.standardise and self.command_limit <", "if False and self.command_limit <"),
        ("own += [] if _is_ours(part) else [part]", "own += []"),
        ("if not any(getattr(self, choice) == value for", "if not all(getattr(self, choice) == value for"),
    ),
    *area(
        "methods/upside_down/commands.py", "methods/upside_down/test_commands.py",
        ("return self.gamma == 1", "return True"),
        ("episodes.to_go[row] - episodes.to_go[row + length]", "episodes.to_go[row]"),
        ("buffer.highest(self.last_few)", "buffer.highest()"),
        ("(asked - reward[:, None])", "(asked + reward[:, None])"),
        ("/ np.float32(gamma)", "* np.float32(gamma)"),
        ("else max(max_return, 0.0)", "else np.inf"),
        ("at_most(self.label_max, return_to_go)", "return_to_go"),
        ("np.maximum(command[:, 1:] - 1, 1)", "command[:, 1:] - 1"),
    ),
    *area(
        "methods/upside_down/weightings.py", "methods/upside_down/test_weightings.py",
        ("at_most(self.label_max, self.label(episodes))", "self.label(episodes)"),
        ("standardise(label), self.temperature", "label, self.temperature"),
        ("return episodes.episode_return", "return episodes.discounted_return(1.0)"),
    ),
    *area(
        "methods/upside_down/targets.py", "methods/upside_down/test_targets.py",
        ("share = weight / weight.sum()", "share = torch.ones_like(weight) / len(weight)"),
        ("label[label >= level].std(correction=0)", "label.std(correction=0)"),
        ("return label.max(), of_highest", "return label.mean(), of_highest"),
        ("minibatches[minibatches.amax(1).argmax()]", "minibatches[minibatches.amax(1).argmin()]"),
        ("drawn = drawn.clamp(low, high)", "pass"),
        ("drawn = mean + spread * sd * ", "drawn = mean + sd * "),
        ("mean.clamp(max=self.max_return)", "mean"),
    ),
    *area(
        "methods/upside_down/targets.py", "methods/upside_down/test_rcp.py methods/upside_down/test_updates_of_udrl.py methods/upside_down/test_updates_of_rcp.py",
        ('spread = 0.0 if self.cfg.command_draw == "step" else', "spread ="),
        ("standardise(label), self.target_temperature", "standardise(label), 1.0"),
        ("quantiles(label, list(PROBES.values()))", "quantiles(label, [0.9, 0.1])"),
        ("first = float(self.numbers[0])", "first = float(self.numbers[3])"),
        ("returns, _ = buffer.highest(self.cfg.last_few)", "returns, _ = buffer.highest()"),
        ("self.numbers[2:].copy_(torch.tensor([stored.min(), stored.max()]))", "pass"),
    ),
    *area(
        "methods/upside_down/critic.py", "methods/upside_down/test_updates_of_rcp.py methods/upside_down/test_critic.py",
        ("return self.lambda_return(gae_lambda) - self.value[self.row]", "return self.lambda_return(gae_lambda)"),
        ("ended = episodes.terminated if self.bootstrap_truncated else episodes.last", "ended = episodes.last"),
        ("self._judged(episodes, net(episodes.obs) * self.value_scale)", "self._judged(episodes, net(episodes.obs))"),
        ("output = net(episodes.obs) * self.value_scale", "output = net(episodes.obs)"),
        ("examples.append(method.executed(episodes.action[index]))", "pass"),
        ("following = self.value[self.row + 1]", "following = self.value[self.row]"),
        ("at_most(self.label_max, episodes.sampled_advantage(self.gae_lambda))", "episodes.sampled_advantage(self.gae_lambda)"),
        ("method.descend(1, loss, self.critic_max_grad_norm, backward)", "method.descend(1, loss, method.cfg.max_grad_norm, backward)"),
    ),
    *area(
        "methods/upside_down/rollouts.py", "methods/upside_down/test_updates_of_rcp.py methods/upside_down/test_updates_of_udrl.py",
        ("math.ceil(", "math.floor("),
        ("min(env_steps / cfg.steps_per_iter, _MAX_CATCH_UP)", "env_steps / cfg.steps_per_iter"),
        ("shape = (max(1, round(", "shape = (max(0, round("),
        ('generator(self.run_seed, "minibatch", epoch)', 'generator(self.run_seed, "minibatch", 0)'),
        ("1 + (rng.random(left.shape) * left)", "(rng.random(left.shape) * left)"),
        ("self.cfg.num_held_out_episodes_per_iter if epoch else 0", "self.cfg.num_held_out_episodes_per_iter"),
        ("self.buffer.add(self._split(epoch, episodes)[0])", "self.buffer.add(episodes)"),
        ('"buffer/return_min": float(returns.min())', '"buffer/return_min": float(returns.max())'),
        ("np.mean(commands, axis=0)", "np.max(commands, axis=0)"),
    ),
    *area(
        "methods/upside_down/method.py", "methods/upside_down/test_updates_of_rcp.py methods/upside_down/test_updates_of_udrl.py",
        ("negative_log_likelihood(obs, command, action, weight)", "negative_log_likelihood(obs, command, action)"),
        ("mean, sd, *_ = self.target.numbers", "sd, mean, *_ = self.target.numbers"),
        ("fulfilled[:, 0].std(correction=0)", "fulfilled[:, 0].std()"),
        ("saturation = self.policy.net", "saturation = self.learner.net"),
        ("high - low", "low - high"),
        ("obtained += [episode.ret for", "obtained += [-episode.ret for"),
        ("policy.net.shift.copy_(fulfilled.mean(0))", "pass"),
        ("rate = self.critic_fit.critic_learning_rate", "rate = self.cfg.learning_rate"),
        ("loss = self.descend(0, loss, self.cfg.max_grad_norm, backward)", "loss = self.descend(0, loss, None, backward)"),
        ("float(entropy.mean())", "float(entropy.sum())"),
        ("scalars = {\n            \"command/target_mean\": mean", "scalars = {\n            \"command/target_mean\": sd"),
        ("return standardise(fulfilled, cfg.command_limit)", "return standardise(fulfilled)"),
    ),
    *area(
        "methods/upside_down/method.py", "methods/upside_down/test_rcp.py methods/upside_down/test_mixes.py",
        ("batch.episodes.first[-newest:]", "batch.episodes.first[:newest]"),
        ("labels = label[index]\n", "labels = label\n"),
        ("limit = self.max_return if cfg.targets_episode_returns else None", "limit = self.max_return"),
        ("self.target.numbers[[0, 2, 3]] = usual[0]", "pass"),
    ),
    *area(
        "methods/policy_gradient.py", "methods/test_policy_gradient_data.py::test_step_batch_by_hand "
        "methods/test_policy_gradient_data.py::test_an_end_that_is_both_is_a_termination",
        ("episode.cut_off for", "episode.truncated for"),
        ("np.stack([episode.obs[-1] for", "np.stack([episode.obs[-2] for"),
        ("last[torch.from_numpy(ends - 1)] = True", "last[-1] = True"),
    ),
    *area(
        "methods/inner_loop.py", "methods/test_generations_by_hand.py",
        ("sum(o.stopped for o in outcomes) / count", "sum(o.failed for o in outcomes)"),
    ),
    *area(
        "methods/inner_loop.py", "methods/test_inner_loop.py",
        ("None), one_width, device)", "None), False, device)"),
    ),
    *area(
        "methods/curriculum.py", "methods/test_curriculum.py",
        ('generation >= self.generations', 'generation >= 2 * self.generations'),
        ("self.first + (limit - self.first) * generation", "(limit - self.first) * generation"),
        ("self.horizon(proposal.generation)", "self.horizon(0)"),
        ("if first >= limit:", "if first > limit:"),
        ('if cfg.keep == "best":', 'if cfg.keep == "last":'),
    ),
    *area(
        "methods/inner_loop.py", "methods/test_curriculum.py",
        ("horizon=self.test_horizon)", "horizon=spec.horizon)"),
    ),
    *area(
        "methods/proxy_search.py", "methods/test_curriculum.py",
        ("generation.number < horizon[1]", "False"),
        ("self.evaluate = growing_horizon(self.inner_loop, cfg)", "self.inner_loop = growing_horizon(self.inner_loop, cfg).loop"),
    ),
    *area(
        "methods/proxy_search.py", "methods/test_bilevel.py::test_the_agent_of_a_proxy_is_played_as_it_was_tested "
        "methods/test_bilevel.py::test_a_model_whose_ends_are_log_odds_starts_no_search",
        ('plays = "greedy"', 'plays = "sampled"'),
        ("self.spec = loop.task(0)", "pass"),
        ('vars(self)["policy"] =', "self.policy ="),
        ('== "classifier"', '== "raw"'),
    ),
    *area(
        "methods/reward_network.py", "methods/test_bilevel.py::test_mistakes_are_told_in_one_line",
        ('self.objective == "auc" and self.stop_rule != "none"', "False"),
        ('self.objective == "steps_to_threshold" and self.stop_rule == "none"', "False"),
    ),
    *area(
        "methods/perfect_learners.py", "methods/test_inner_loop.py",
        ("proposal.generation < self.perfect_generations", "proposal.generation <= self.perfect_generations"),
        ("self.perfect_generations + self.clone_generations", "self.perfect_generations"),
        ("cloned.fit(env.observe(state), env.best(state))", "cloned.fit(env.observe(state), 0 * env.best(state))"),
        ("env.observe(state), env.best(state)", "env.observe(state), env.meant(state)"),
        ("met.append(obs[~over])", "met.append(obs)"),
        ("in_units((low + high) / 2", "in_units(met.mean(0)"),
        ("(high - low) / 3, drawn", "met.std(0), drawn"),
        ("strategy.scale_noise(noise)", "pass"),
    ),
    *area(
        "evolution/callback.py", "evolution/test_steps.py",
        ("self.strategy.ask(number)", "self.strategy.ask(0)"),
        ("self.strategy.tell(number, scores)", "self.strategy.tell(0, scores)"),
        ("fitness, self.strategy.improved)", "fitness, True)"),
    ),
    *area(
        "methods/policy_gradient.py", "methods/test_policy_gradient_updates.py",
        ("normalised(advantage) if cfg.normalise_weights else advantage", "advantage"),
        ("returns - baseline.detach(), distribution", "returns, distribution"),
        ("self.max_entropy, cfg.entropy_coef)", "self.max_entropy, -cfg.entropy_coef)"),
        ("value_loss(baseline, returns, cfg.value_delta)", "value_loss(baseline, returns, 1.0)"),
        ("else self.cfg.num_critic_updates - 1", "else self.cfg.num_critic_updates"),
        ("batch.truncated & cfg.bootstrap_truncated", "~batch.truncated & cfg.bootstrap_truncated"),
        (('\n'
'                batch.reward, discount, following, batch.last, cfg.gae_lambda\n'
'            '), 'batch.reward, discount, following, batch.last, 1.0'),
        ("value_loss(value, returns, delta=1.0)", "value_loss(value, returns, delta=self.cfg.value_delta)"),
        ("len(recent) == recent.maxlen", "len(recent) > 0"),
        ("int(self.episodes) / self.cfg.max_episodes", "int(self.env_steps) / self.cfg.max_episodes"),
        ("torch.stack(list(losses.values())).sum()", 'losses["train/policy_loss"]'),
        ("discounted_returns(batch.reward, cfg.gamma, batch.last)", "discounted_returns(batch.reward, 1.0, batch.last)"),
        (".sum(), self.cfg.max_grad_norm)", ".sum(), 1.0)"),
    ),
    *area(
        "methods/base.py", "methods/test_policy_gradient_updates.py methods/upside_down/test_updates_of_udrl.py rollouts/test_rollouts_by_hand.py",
        ("optimizer.zero_grad()", "pass"),
        ("if max_grad_norm is not None:", "if max_grad_norm is None:"),
        ("1 - ramp(self.budget_share(), start, 1.0)", "ramp(self.budget_share(), start, 1.0)"),
        ("self.num_updates += len(losses)", "self.num_updates += 1"),
    ),
    *area(
        "methods/policy_gradient.py", "methods/test_policy_gradient_data.py::test_staleness_is_zero_or_what_was_asked_for[False-0] "
        "methods/test_policy_gradient_data.py::test_staleness_is_zero_or_what_was_asked_for[True-0] "
        "methods/test_policy_gradient_data.py::test_snapshot_resumes_the_running_mean_and_the_age[True-False] "
        "methods/test_policy_gradient_data.py::test_past_parameters_that_do_not_fit_are_refused",
        ("maxlen=STALE_UPDATES if cfg.stale_rollouts else 0", "maxlen=STALE_UPDATES"),
        ("value.clone() for name, value in newest.items()", "value for name, value in newest.items()"),
        ("self.past[0] if self.past", "self.past[-1] if self.past"),
        ("[epoch - episode.policy_version for", "[episode.policy_version for"),
        (('\n'
'            **super().state_dict(),\n'
'            "recent_returns": list(self.recent_returns),\n'
'            "past": list(self.past),\n'
'        '), '**super().state_dict(), "recent_returns": list(self.recent_returns), "past": []'),
        ("            self.collector.behaviour.load_state_dict(weights)\n", ""),
    ),
    *area(
        "methods/proxy_search.py", "methods/test_generations_by_hand.py",
        ("sum(outcome.train_steps for outcome in outcomes)", "sum(outcome.test_steps for outcome in outcomes)"),
        ("max(outcome.fitness for outcome in outcomes)", "max(outcome.test_return for outcome in outcomes)"),
        ("self.score, self.improved = generation.fitness, generation.is_best", "self.score, self.improved = generation.fitness, True"),
        ("if pl_module.improved and", "if not pl_module.improved and"),
        ("self.num_updates += 1", "self.num_updates += len(outcomes)"),
        ('item.sign ==', 'item.sign !='),
        ("sum(returns) / len(returns) > threshold", "sum(returns) / len(returns) >= threshold"),
        ("self.cfg.stop_when_solved and self.solves(generation)", "self.solves(generation)"),
        ("returns.std(correction=0)", "returns.std()"),
    ),
    *area(
        "methods/supervised_model.py", "methods/test_generations_by_hand.py methods/test_mbrl.py::test_losses_by_hand_and_the_swapped_inputs_of_the_published_form",
        ("compat.swapped_model_input if cfg.published else model_input", "model_input"),
        ("torch.cat([act, obs], dim=-1)", "torch.cat([obs, act], dim=-1)"),
        ("(discount == 0).float()", "(discount != 0).float()"),
        ("train = (~held_out).nonzero().squeeze(1)", "train = torch.arange(len(data.reward))"),
        ("data.rows(held_out.nonzero().squeeze(1))", "data.rows(train)"),
        ('("state", "reward") if cfg.published', '("state", "done") if cfg.published'),
        ('generator(self.seed, "shuffle", self.current_epoch)', 'generator(self.seed, "shuffle", 7)'),
        ("-float(sum(judged.values()))", "float(sum(judged.values()))"),
        ("F.mse_loss(state, data.next_obs)", "F.mse_loss(state, data.obs)"),
        ('derive_seed(run_seed, "data", n) for', 'derive_seed(run_seed, "data", 0) for'),
    ),
    *area(
        "methods/stacked.py", "methods/test_generations_by_hand.py",
        ("self.member_counters.amax(0)", "self.member_counters[0]"),
        ("sum(scalars[name] for scalars in logged) / len(logged)", "logged[0][name]"),
        ("sum(sum(lengths) for _, lengths, _ in distinct(scores))", "sum(len(lengths) for _, lengths, _ in distinct(scores))"),
        ('step=counters["env_steps"])', "step=int(self.env_steps))"),
    ),
    *area(
        "methods/agents.py", "methods/test_generations_by_hand.py",
        ("slice(int(before[member]), int(results.episodes[member]))", "slice(0, int(results.episodes[member]))"),
    ),
    *area(
        "methods/base.py", "methods/test_generations_by_hand.py",
        ("np.std(returns)", "np.std(returns, ddof=1)"),
    ),
    *area(
        "methods/inner_loop.py", "methods/test_inner_seeds.py methods/test_inner_loop.py",
        ('derive_seed(seed, "test", k) for', 'derive_seed(seed, "test", 0) for'),
        ('derive_seed(seed, "test", k) for seed', 'derive_seed(0, "test", k) for seed'),
        ('derive_seed(seed, "proxy") for', 'derive_seed(0, "proxy") for'),
        ("[proposal.seed(item) for item in items]", "[proposal.seed(items[0]) for item in items]"),
        ("-steps - self.unsolved_penalty * missing", "-steps + self.unsolved_penalty * missing"),
        ("(scores * lengths).sum(1)", "scores.sum(1)"),
        ('self.agents) ==', 'self.agents) <='),
        ("tested.masked_fill(failed, worst)", "tested"),
        ("steps = steps.masked_fill(failed, longest)", "pass"),
        ('1] if worst < 0 else 1.0', '1]'),
        ("longest / lengths.shape[1] if worst", "longest if worst"),
    ),
    *area("methods/model_based.py", "agents/test_chain.py::test_model_based_agents_find_the_values", ("(~outcome.terminated).float()", "torch.ones_like(outcome.reward)")),
    *area(
        "methods/model_based.py", "agents/test_model_based.py::test_a_policy_adds_noise_to_values_over_the_temperature "
        "agents/test_model_based.py::test_a_policy_without_noise_sees_the_mode_of_a_latent "
        "agents/test_model_based.py::test_what_is_logged_of_the_last_steps_by_hand",
        ("(q / self.temperature + action)", "(q * self.temperature + action)"),
        ("dim=True), mode, sample)", "dim=True), sample, mode)"),
        ("float(training.reward[member]) / max(steps, 1)", "float(training.reward[member])"),
        ("sum(lengths) / len(lengths)", "sum(lengths)"),
    ),
    *area(
        "methods/model_based.py", "agents/test_model_based.py",
        ("if not self.stale_observation:", "if self.stale_observation:"),
        ("total += reward.masked_fill(over, 0)", "total += reward"),
    ),
    *area(
        "methods/inner_loop.py", "methods/test_inner_seeds.py methods/test_inner_loop.py",
        ("(self.solved_return - tested).clamp(min=0)", "(self.solved_return - tested)"),
        ("-steps - self.unsolved_penalty", "steps - self.unsolved_penalty"),
        ("self.stop_rule, self.solved_return)", "self.stop_rule, 0.0)"),
        ("trained.test_returns.double().mean(1)", "trained.test_returns.double().amax(1)"),
        ("train_until(self.max_train_steps, self.agents[number][1].action_repeat)", "train_until(self.max_train_steps, 1)"),
    ),
    *area(
        "methods/agents.py", "functional/test_distributions.py",
        ("output.tanh() if", "output if"),
        ("else output.argmax(-1)", "else output.argmin(-1)"),
    ),
    *area(
        "methods/base.py", "methods/test_counters.py::test_steps_per_second_are_those_of_the_time_since_the_last_epoch",
        ("env_steps / (now - self._last_time), now", "(now - self._last_time) / env_steps, now"),
        ("env_steps / (now - self._last_time), now", "env_steps / (now - self._last_time), self._last_time"),
    ),
    *area(
        "methods/base.py", "test_lightning.py",
        (('with seeded_torch(\n'
'            self.seed, "training", self.current_epoch\n'
'        )'), 'if True'),
        ('self._trainer.state.fn in ("validate", "test")', "False"),
    ),
    *area(
        "methods/stacked.py", "test_lightning.py",
        ("self.loggers[member : member + 1]", "self.loggers[:1]"),
        ("if seeds > 1 and loggers not in (0, seeds):", "if False:"),
        ("int(self.env_steps) >= limit", "False"),
    ),
    *area(
        "methods/base.py", "test_own_optimizers.py",
        (('isinstance(\n'
'                scheduler, LambdaLR\n'
'            )'), 'True'),
        ("isinstance(each, ReduceLROnPlateau)", "False"),
    ),
    *area(
        "methods/restoring.py", "test_own_optimizers.py",
        ('if name != "initial_lr"', 'if name != "lr"'),
        ("isinstance(scheduler, LambdaLR)", "True"),
    ),
    *area(
        "methods/restoring.py", "hostile/test_changed_checkpoints.py",
        ("if least < 0", "if least < -9"),
        ('        "exp_avg_sq",\n', ""),
        ("isinstance(value, bool) and group[name] != value", "False"),
        ("return int(value.min()) >= 0", "return True"),
        ('        load_state(method, content["state_dict"])\n        _check', "        _check"),
    ),
    *area(
        "methods/restoring.py", "test_lightning.py",
        ('"num_seeds": maybe(count(2, SEEDS))', '"num_seedz": maybe(FLAG)'),
    ),
    *area(
        "evolution/callback.py", "test_lightning.py",
        (('    ) -> None:\n'
'        self.executor.close()'), ('    ) -> None:\n'
'        pass')),
    ),
    *area(
        "evolution/callback.py", "test_lightning.py::test_what_went_on_with_another_trainer_is_resumed",
        ('int(pl_module.num_updates)', 'pl_module.current_epoch'),
    ),
    *area(
        "methods/proxy_search.py", "test_lightning.py::test_steps_and_noise_of_a_search_go_on_falling_with_another_trainer",
        ("lambda _: self.strategy.step_factor(int(self.num_updates))", "self.strategy.step_factor"),
    ),
    *area(
        "methods/restoring.py", "test_lightning.py::test_a_checkpoint_within_an_epoch_is_refused_by_what_it_is",
        ('total["started"] > total["processed"]', 'total["started"] < total["processed"]'),
    ),
    *area(
        "methods/perfect_learners.py", "methods/test_inner_loop.py::test_perfect_learners_take_the_action_that_is_paid_best "
        "methods/test_inner_loop.py::test_the_first_generations_are_judged_by_perfect_learners "
        "methods/test_inner_loop.py::test_agents_come_in_where_perfect_learners_were_and_to_less_noise",
        ("self.env = self.env.with_params(self.params.data, self.env.real)", "pass"),
        ("[proposal.seed(item) for item in items]", "[proposal.seed(items[0]) for item in items]"),
        ("strategy.mean.copy_(learner", "strategy.mean.add_(learner"),
    ),
    *area(
        "methods/curriculum.py", "methods/test_curriculum.py::test_the_limit_grows_evenly_to_that_of_the_task",
        ("* generation // self.generations", "* (generation + 1) // self.generations"),
        ("(limit - self.first) * generation", "limit * generation"),
    ),
]  # fmt: skip
