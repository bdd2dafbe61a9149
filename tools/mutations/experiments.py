"""Wrong formulas in ``experiments/``."""

from mutations.mutation import area

MUTATIONS = [
    *area(
        "experiments/intervals.py", "functional/test_intervals.py",
        ("stats.false_discovery_control(p) <= rate", "p <= rate"),
        ("2 * special.stdtr", "special.stdtr"),
        ("won + 1, np.maximum(n - won, 1)", "won, np.maximum(n - won, 1)"),
    ),
    *area("experiments/figures/profile.py", "experiments/figures/test_profile.py", ("[:, None] > np", "[:, None] >= np")),
    *area(
        "experiments/figures/table.py", "experiments/figures/test_table.py",
        ("until][-last:]", "until][:last]"), ("skipna=False", "skipna=True"), ("np.isfinite(chosen).all()", "np.isfinite(chosen).any()"),
    ),
    *area("experiments/reproduce/reading.py", "docs/test_docs.py", ("row.get(name) == value for", "row.get(name) != value for")),
    *area(
        "experiments/reproduce/entries.py", "experiments/reproduce/test_entries.py",
        ("value <= limit if goal.lower else value >= limit", "value >= limit"),
        ("failed > entry.asked - (goal.seeds or entry.asked)", "failed == entry.asked"),
        ("high if goal.lower else low, goal.mean", "low if goal.lower else high, goal.mean"),
    ),
    *area(
        "experiments/baselines.py", "experiments/test_baselines.py",
        ("divmod(self.num_timesteps - 1, self.epoch_steps)", "divmod(self.num_timesteps, self.epoch_steps)"),
        ("        self._evaluate()\n        if self._over", "        if self._over"),
        ("_log(\"rollout\", self._ended)\n            self._ended = []", "_log(\"rollout\", self._ended)"),
        ("steps += info.get(STEPS, 1)", "steps += 1"),
        ("self.env_steps += steps", "self.env_steps += 1"),
        ("self.episodes / self.max_episodes,", "0.0,"),
        ("if key not in (*cfg.read, *ALONE, *of_images):", "if False:"),
        ("if self._episode_num >= self.learning_episodes:", "if True:"),
        ("self.exploration_rate = self.exploration_schedule", "self.unused = self.exploration_schedule"),
        ('self._over and', 'self._over or'),
        ("getattr(cfg.config, key, only)) != only", "only) != only"),
        ("!= yaml.safe_load(", "is yaml.safe_load("),
    ),
    *area("experiments/reproduce/claims.py", "experiments/reproduce/test_claims.py", ("seeds <= set(seed_list(", "not seeds & set(seed_list(")),
    *area(
        "experiments/reproduce/command.py", "experiments/reproduce/test_reproduce.py",
        ("if claim.on_gpu and not smoke:", "if claim.on_gpu:"), ("claim.of_baseline and", "claim.of_baseline or"),
    ),
    *area(
        "experiments/reproduce/ledger.py", "experiments/reproduce/test_reproduce.py",
        ("sum(bool(entry.claim.earlier_seeds) for entry in met)", "len(met)"),
        ("if math.isfinite(value)]\n    if not values", "]\n    if not values"),
    ),
    *area(
        "experiments/reproduce/reading.py", "experiments/reproduce/test_reading.py",
        ("values[-read.last :]", "values[-1:]"),
        ("values >= read.threshold)\n        return", "values > read.threshold)\n        return"),
        ("for row in rows}) > 1", "for row in rows}) > 2"),
    ),
    *area(
        "experiments/protocols/reward_curves.py", "experiments/test_protocols.py",
        ("r.episodes.unsqueeze(1) > 0", "r.episodes.unsqueeze(1) >= 0"),
        ("math.nan if worst is None else worst", "math.nan"),
    ),
    *area("experiments/reproduce/runs.py", "experiments/reproduce/test_claims.py::test_a_hash_of_settings_holds_no_name_of_a_seed", ('replace(str(run), "")', 'replace(str(run), str(run))')),
    *area(
        "experiments/docs.py", "docs/test_docs.py",
        ("int(place) - 1", "int(place)"),
        ('len(match["number"].partition(".")[2])', "2"),
    ),
    *area(
        "experiments/reproduce/verify.py", "experiments/reproduce/test_reproduce.py",
        ("(not same_place and", "(same_place and"),
        ("abs(now - before) <= tolerance", "abs(now - before) >= tolerance"),
    ),
    *area("experiments/reproduce/store.py", "experiments/reproduce/test_reproduce.py", ('(row["command"], row["read"]) ==', '(row["command"], row["read"]) !='),
          ('claim.read.text', 'row["read"]')),
    *area("experiments/reproduce/store.py", "experiments/reproduce/test_store.py", ("by_seed = _only(by_seed, read_kept_rows(", "_only(by_seed, read_kept_rows(")),
    *area("experiments/reproduce/claims.py", "experiments/reproduce/test_claims.py", ("if first < FIRST_SEED:", "if last < FIRST_SEED:")),
    *area(
        "experiments/reproduce/entries.py", "experiments/reproduce/test_entries.py",
        ("sum(entry.values) / measured", "max(entry.values)"),
        ("if len(other.values) < other.asked:", "if False:"),
        ('"min": min(values), "max": max(values)', '"min": max(values), "max": min(values)'),
        ("difference_interval(values, others)", "difference_interval(others, values)"),
        ('sign = "≤" if goal.lower', 'sign = "≥" if goal.lower'),
    ),
    *area("experiments/reproduce/claims.py", "experiments/reproduce/test_claims.py::test_claims_are_on_fresh_seeds", ("first + SEEDS - 1", "first + SEEDS")),
    *area(
        "experiments/reproduce/reading.py", "experiments/reproduce/test_reading.py",
        ("range(every - 1, len(steps), every)", "range(0, len(steps), every)"),
        ("max(0, len(steps) - last)", "max(0, len(steps))"),
        ("_of_report(runs[-1] /", "_of_report(runs[0] /"),
        ("read_scalar(runs[0], read.tag)", "read_scalar(runs[-1], read.tag)"),
        ("x = np.arange(1.0, len(values) + 1)", "x = np.arange(0.0, len(values))"),
        ("comparable = read.in_unit_of_curve and len(values) > 1", "comparable = read.in_unit_of_curve"),
    ),
    *area(
        "experiments/reproduce/store.py", "experiments/reproduce/test_store.py",
        ('key=lambda row: int(row["seed"])', 'key=lambda row: row["seed"]'),
        ('"" if math.isnan(value) else str(', "str("),
        ("else str(np.float32(value))", "else str(value)"),
        ('float(row[column] or "nan")', 'float(row[column] or "0")'),
        ("if any(None in row.values() for row in rows):", "if False:"),
    ),
    *area(
        "experiments/reproduce/verify.py", "experiments/reproduce/test_reproduce.py::test_a_value_near_zero_has_no_wider_tolerance "
        "experiments/reproduce/test_reproduce.py::test_a_value_may_be_where_a_further_seed_would_be "
        "experiments/reproduce/test_reproduce.py::test_the_first_five_points_of_each_seed_are_compared",
        ("low <= now <= high", "now <= high"),
        ("if len(finite) < LEAST_SEEDS:", "if len(finite) < 2:"),
        ("len(curve) < FIRST_POINTS:", "len(curve) <= FIRST_POINTS:"),
        ("or (math.isnan(now) and math.isnan(before))", ""),
    ),
    *area(
        "experiments/reproduce/checkout.py", "experiments/reproduce/test_reproduce.py::test_evidence_is_of_a_commit "
        "experiments/reproduce/test_reproduce.py::test_what_this_command_writes_is_no_change_of_the_checkout",
        ("    require_clean(root)\n", ""),
        ("path == str(PAGE) or (", "("),
    ),
    *area(
        "experiments/reproduce/runs.py", "experiments/reproduce/test_reproduce.py::test_an_evaluation_that_failed_is_not_done "
        "experiments/reproduce/test_claims.py::test_the_place_of_a_training_does_not_depend_on_where_all_are "
        "experiments/reproduce/test_claims.py::test_a_smoke_has_a_budget_of_its_own",
        ("if step.done is not None and not code:", "if step.done is not None:"),
        ('shlex.join(words).replace(str(job.logdir), "")', "shlex.join(words)"),
        ("{**claim.budget, **claim.smoke} if smoke", "{**claim.smoke, **claim.budget} if smoke"),
    ),
    *area(
        "experiments/reproduce/claims.py", "experiments/reproduce/test_claims.py::test_trainings_of_another_budget_or_of_more_seeds_are_others",
        ("repr((trainings, claim.budget))", "repr(trainings)"),
        ("for other in same if trainings else ():", "for other in same:"),
    ),
]  # fmt: skip
