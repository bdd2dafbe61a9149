"""Wrong formulas in ``lab/``."""

from mutations.mutation import area

MUTATIONS = [
    *area(
        "lab/obedience.py", "lab/test_obedience.py",
        ("better = off < missed", "better = off <= missed"),
        ("np.asarray(each)[order], window", "np.asarray(each), window"),
        ("np.abs(y.mean(1) - x)", "np.abs(y - x[:, None]).mean(1)"),
        ("lowest < floor < highest", "lowest < floor"),
        ("np.std(uniform))", "0)"),
    ),
    *area(
        "lab/imagine.py", "methods/test_model_based.py::test_the_errors_of_what_is_imagined_by_hand",
        ('first - obs', 'first - imagined.obs'),
        ("1 - imagined.continuation", "imagined.continuation"),
        ("value[alive].mean()", "value.mean()"),
        ("(imagined.reward - reward).abs()", "0 * reward"),
    ),
    *area(
        "lab/reproduce/entries.py", "lab/reproduce/test_entries.py",
        ("value <= limit if goal.lower else value >= limit", "value >= limit"),
        ("failed > entry.asked - (goal.seeds or entry.asked)", "failed == entry.asked"),
        ("high if goal.lower else low, goal.mean", "low if goal.lower else high, goal.mean"),
    ),
    *area(
        "lab/baselines.py", "lab/test_baselines.py",
        ("divmod(self.num_timesteps - 1, self.epoch_steps)", "divmod(self.num_timesteps, self.epoch_steps)"),
        ("        self._evaluate()\n        if self._over", "        if self._over"),
        ("_log(\"rollout\", self._ended)\n            self._ended = []", "_log(\"rollout\", self._ended)"),
        (('(\n'
'                total + float(reward),\n'
'                steps + info.get(STEPS, 1),\n'
'                terminated or truncated,\n'
'            )'), 'total + float(reward), steps + 1, terminated or truncated'),
        ("self.env_steps += steps", "self.env_steps += 1"),
        ("counts = (self.num_timesteps, self.episodes, self.env_steps)", "counts = (self.num_timesteps, 0, self.env_steps)"),
        ("if key not in (*cfg.read, *ALONE):", "if False:"),
        ("if self._episode_num >= self.learning_episodes:", "if True:"),
        ("self.exploration_rate = self.exploration_schedule", "self.unused = self.exploration_schedule"),
        ('self._over and', 'self._over or'),
        ("getattr(cfg.config, key, only)) != only", "only) != only"),
        ("!= yaml.safe_load(", "is yaml.safe_load("),
    ),
    *area("lab/reproduce/claims.py", "lab/reproduce/test_claims.py", ("seeds <= set(seed_list(", "not seeds & set(seed_list(")),
    *area(
        "lab/reproduce/needs.py", "lab/reproduce/test_needs.py",
        ("if on_gpu(claim) and not smoke:", "if on_gpu(claim):"), ("of_baseline(claim) and", "of_baseline(claim) or"),
    ),
    *area(
        "lab/reproduce/ledger.py", "lab/reproduce/test_reproduce.py",
        ("if each == commit[:12] else", "if True else"),
        ("sum(bool(entry.claim.earlier_seeds) for entry in met)", "len(met)"),
        ("if math.isfinite(value)]\n    if not values", "]\n    if not values"),
    ),
    *area(
        "lab/reproduce/reading.py", "lab/reproduce/test_reading.py",
        ("values[-read.last :]", "values[-1:]"),
        ("values >= read.threshold)\n        return", "values > read.threshold)\n        return"),
        ("for row in rows}) > 1", "for row in rows}) > 2"),
    ),
    *area(
        "lab/protocols/agents.py", "lab/protocols/test_protocols.py::test_agents_that_failed_are_as_bad_as_the_worst_of_all_stacks",
        ("worst = min([worst, *(row[name] for _, row in sound)])", "worst = max([-worst, *(row[name] for _, row in sound)])"),
        ("worst if math.isfinite(worst) else ALL_FAILED", "worst"),
        ("[worst] * len(row[key]) if isinstance(row[key], list) else worst", "worst"),
    ),
    *area(
        "lab/protocols/agents.py", "lab/protocols/test_protocols.py::test_no_number_of_episodes_ends_what_is_measured_over_steps",
        ("self.with_config(train_episodes=steps).loop(", "self.loop("),
    ),
    *area(
        "lab/protocols/reward_curves.py", "lab/protocols/test_protocols.py",
        ("r.episodes.unsqueeze(1) > 0", "r.episodes.unsqueeze(1) >= 0"),
        ("math.nan if worst is None else worst", "math.nan"),
    ),
    *area("lab/protocols/models.py", "lab/protocols/test_protocols.py", ("not same_game(model.proxy.gamename,", "model.proxy.gamename != str(")),
    *area("lab/reproduce/runs.py", "lab/reproduce/test_claims.py::test_a_hash_of_settings_holds_no_name_of_a_seed", ('replace(str(run), "")', 'replace(str(run), str(run))')),
    *area(
        "lab/reports/numbers.py", "test_docs.py",
        ("int(place) - 1", "int(place)"),
        ('len(match["number"].partition(".")[2])', "2"),
    ),
    *area("lab/tables.py", "test_docs.py", ("row.get(name) == value for", "row.get(name) != value for")),
    *area(
        "lab/reproduce/verify.py", "lab/reproduce/test_reproduce.py",
        ("(not same_place and", "(same_place and"),
        ("abs(now - before) <= tolerance", "abs(now - before) >= tolerance"),
    ),
    *area("lab/reproduce/store.py", "lab/reproduce/test_reproduce.py", ('(row["command"], row["read"]) ==', '(row["command"], row["read"]) !='),
          ('claim.read.text', 'row["read"]')),
    *area("lab/reproduce/store.py", "lab/reproduce/test_store.py", ("by_seed = _only(by_seed, read_kept_rows(", "_only(by_seed, read_kept_rows(")),
    *area("lab/reproduce/seeds.py", "lab/reproduce/test_claims.py", ("if first < FIRST_SEED:", "if last < FIRST_SEED:")),
    *area(
        "lab/figures/curves.py", "lab/figures/test_marks.py",
        ("window / 2 * (1 - 1e-9)", "window / 2 * (1 + 1e-9)"),
        ("np.where(unseen, self.below, self.value)[inside]", "self.value[inside]"),
        ("np.where(unseen, np.nan, value)", "value"),
    ),
    *area(
        "lab/figures/curves.py", "lab/figures/test_generalisation.py",
        ("sum(seeds) > SEEDS_TOGETHER", "sum(seeds) > 10**9"),
        ("len(seeds) > 1 and sum(seeds)", "sum(seeds)"),
    ),
    *area("lab/scalars.py", "lab/figures/test_runs.py", ("min([*new, events.begin])", "min([*new, math.inf])"), ('tag.startswith("time/")', "tag")),
    *area("lab/tuning/results.py", "lab/tuning/test_search.py", ("math.isnan(score)", "False")),
    *area(
        "lab/obedience.py", "lab/test_obedience.py::test_the_measure_worked_by_hand "
        "lab/test_obedience.py::test_a_mean_is_of_48_episodes_or_of_a_tenth_of_all lab/test_obedience.py::test_what_a_calibration_plays",
        ("error / float(np.ptp(x))", "error / float(x.max())"),
        ("max(_WINDOW, round(", "min(_WINDOW, round("),
        ("low -= _BEYOND * (high - low)", "low += _BEYOND * (high - low)"),
        ('0] ==', '0] !='),
        ("low = min(low, floor)", "pass"),
        (('(\n'
'                    _FINE_EPISODES if number else _COARSE_EPISODES,\n'
'                    played + len(requests),\n'
'                )'), '_FINE_EPISODES if number else _COARSE_EPISODES, played'),
        ("            played += len(requests)\n", ""),
        ("(method.first_command() or ())[1:]", "()"),
    ),
    *area(
        "lab/reproduce/entries.py", "lab/reproduce/test_entries.py",
        ("sum(entry.values) / measured", "max(entry.values)"),
        ("if len(other.values) < other.asked:", "if False:"),
        (('min(values),\n'
'        "max": max(values'), ('max(values),\n'
'        "max": min(values')),
        ("difference_interval(values, others)", "difference_interval(others, values)"),
        ('sign = "≤" if goal.lower', 'sign = "≥" if goal.lower'),
    ),
    *area("lab/reproduce/seeds.py", "lab/reproduce/test_claims.py::test_claims_are_on_fresh_seeds", ("first + SEEDS - 1", "first + SEEDS")),
    *area(
        "lab/reproduce/reading.py", "lab/reproduce/test_reading.py",
        ("range(every - 1, len(steps), every)", "range(0, len(steps), every)"),
        (('\n'
'        {\n'
'            *range(min(FIRST_POINTS, len(steps))),\n'
'            *range(every - 1, len(steps), every),\n'
'            len(steps) - 1,\n'
'        }\n'
'    '), '{*range(min(FIRST_POINTS, len(steps))), *range(every - 1, len(steps), every)}'),
        ("_of_report(runs[-1] /", "_of_report(runs[0] /"),
        ("read_scalar(runs[0], read.tag)", "read_scalar(runs[-1], read.tag)"),
        ("x = np.arange(1.0, len(values) + 1)", "x = np.arange(0.0, len(values))"),
        ("comparable = read.in_unit_of_curve and len(values) > 1", "comparable = read.in_unit_of_curve"),
    ),
    *area(
        "lab/reproduce/store.py", "lab/reproduce/test_store.py",
        ('key=lambda row: int(row["seed"])', 'key=lambda row: row["seed"]'),
        ('"" if math.isnan(value) else str(', "str("),
        ("else str(np.float32(value))", "else str(value)"),
        ('float(row[column] or "nan")', 'float(row[column] or "0")'),
        ("if any(None in row.values() for row in rows):", "if False:"),
    ),
    *area(
        "lab/reproduce/verify.py", "lab/reproduce/test_reproduce.py::test_a_value_near_zero_has_no_wider_tolerance "
        "lab/reproduce/test_reproduce.py::test_a_value_may_be_where_a_further_seed_would_be "
        "lab/reproduce/test_reproduce.py::test_the_first_five_points_of_each_seed_are_compared",
        ("low <= now <= high", "now <= high"),
        ("if len(finite) < LEAST:", "if len(finite) < 2:"),
        ("len(curve) < FIRST_POINTS:", "len(curve) <= FIRST_POINTS:"),
        ("or (math.isnan(now) and math.isnan(before))", ""),
    ),
    *area(
        "lab/reproduce/checkout.py", "lab/reproduce/test_reproduce.py::test_evidence_is_of_a_commit "
        "lab/reproduce/test_reproduce.py::test_what_this_command_writes_is_no_change_of_the_checkout",
        ("    require_clean(root)\n", ""),
        ("if path != str(PAGE) and not", "if not"),
    ),
    *area(
        "lab/reproduce/runs.py", "lab/reproduce/test_reproduce.py::test_an_evaluation_that_failed_is_not_done "
        "lab/reproduce/test_claims.py::test_the_place_of_a_training_does_not_depend_on_where_all_are "
        "lab/reproduce/test_claims.py::test_a_smoke_has_a_budget_of_its_own",
        ("if step.done is not None and not code:", "if step.done is not None:"),
        ('shlex.join(words).replace(str(job.logdir), "").encode()', "shlex.join(words).encode()"),
        ("{**claim.budget, **claim.smoke} if smoke", "{**claim.smoke, **claim.budget} if smoke"),
    ),
    *area(
        "lab/reproduce/claims.py", "lab/reproduce/test_claims.py::test_trainings_of_another_budget_or_of_more_seeds_are_others",
        ("repr((trainings, claim.budget))", "repr(trainings)"),
        ("if trainings and owner else {}", "if owner else {}"),
    ),
    *area(
        "lab/tuning/placement.py", "lab/tuning/test_three_levels.py::test_a_trial_takes_a_cpu_for_each_worker_and_none_for_the_process_that_waits_for_them",
        ('{**trial, "GPU": 1.0}', '{"GPU": 1.0}'),
    ),
    *area(
        "lab/tuning/results.py", "lab/tuning/test_search.py::test_what_came_of_a_search_is_written_and_said "
        "lab/tuning/test_search.py::test_a_search_is_known_by_its_config_and_what_was_set_over_it",
        ("{**options.config, **options.settings}", "{**options.settings, **options.config}"),
        ("sorted(new.keys() | old.keys())", "sorted(new.keys() & old.keys())"),
        ("options.seed + plan.tune.seeds - 1}", "options.seed + plan.tune.seeds}"),
        ("unseen = max(100, options.seed", "unseen = min(100, options.seed"),
    ),
    *area(
        "lab/tuning/space.py", "lab/tuning/test_space.py::test_what_is_no_space_is_named "
        "lab/tuning/test_space.py::test_a_search_that_cannot_run_is_refused_before_it_starts",
        ("values[0] >= values[1]", "values[0] > values[1]"),
        ("and not isinstance(v, bool)", ""),
        ("{*self.budget, *self.settings} & self.search", "{*self.budget} & self.search"),
    ),
    *area(
        "lab/tuning/search.py", "lab/tuning/test_search.py::test_the_time_left_of_a_resumed_search_goes_by_the_trials_since_then",
        ("if not now and time.monotonic()", "if now and time.monotonic()"),
        ("self.done_at_start = done - now", "self.done_at_start = done"),
        ("(plan.tune.trials - done) / 60", "plan.tune.trials / 60"),
    ),
    *area(
        "lab/tuning/trial.py", "lab/tuning/test_search.py::test_a_score_is_of_the_newest_stretch_or_the_last_value",
        ("curve.value[curve.env_steps > after]", "curve.value[curve.env_steps >= after]"),
        ("if new.size else curve.value[-1])", "if new.size else 0.0)"),
        ("else curve.value[-1:]", "else curve.value"),
        ("{**self.options.settings, **self.tune.settings, **self.tune.budget}", "{**self.options.settings, **self.tune.budget}"),
    ),
    *area(
        "lab/tuning/trial.py", "lab/tuning/test_search.py::test_a_trial_trains_its_seeds_in_stretches_and_reports_their_mean",
        ("    remove(folder / FAILED)  # of an earlier start\n", ""),
    ),
]  # fmt: skip
