"""Wrong formulas in ``lab/``."""

from mutations.mutation import area

MUTATIONS = [
    *area(
        "lab/obedience.py",
        "lab/test_obedience.py::test_the_measure_worked_by_hand "
        "lab/test_obedience.py::test_means_obey_where_no_single_episode_does",
        ("np.abs(y.mean(1) - x)", "np.abs(y - x[:, None]).mean(1)"),
        ("(off <= 75)", "(off < 75)"), ("(off <= 25)", "(off < 25)"),
        ("error / float(np.ptp(x))", "error / float(x.max())"),
    ),
    *area(
        "lab/calibration.py", "lab/test_obedience.py",
        ("better = off < missed", "better = off <= missed"),
        ("np.asarray(values)[order]", "np.asarray(values)"),
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
        "lab/protocols/agents.py", "experiments/test_protocols.py::test_agents_that_failed_are_as_bad_as_the_worst_of_all_stacks",
        ("worst = min(worst, row[name])", "worst = max(-worst, row[name])"),
        ("worst if math.isfinite(worst) else ALL_FAILED", "worst"),
        ("[worst] * len(value) if isinstance(value, list) else worst", "worst"),
    ),
    *area(
        "lab/protocols/agents.py", "experiments/test_protocols.py::test_no_number_of_episodes_ends_what_is_measured_over_steps",
        ("self.with_config(train_episodes=steps).loop(", "self.loop("),
    ),
    *area("lab/protocols/models.py", "experiments/test_protocols.py", ("not same_game(model.proxy.gamename,", "model.proxy.gamename != str(")),
    *area(
        "experiments/figures/marks.py", "experiments/figures/test_marks.py",
        ("window / 2 * (1 - 1e-9)", "window / 2 * (1 + 1e-9)"),
        ("np.where(unseen, reference.below, reference.value)[inside]", "reference.value[inside]"),
    ),
    *area("lab/figures/curves.py", "experiments/figures/test_marks.py", ("np.where(unseen, np.nan, value)", "value")),
    *area(
        "lab/figures/curves.py", "experiments/figures/test_generalisation.py",
        ("sum(seeds) > SEEDS_TOGETHER", "sum(seeds) > 10**9"),
        ("len(seeds) > 1 and sum(seeds)", "sum(seeds)"),
    ),
    *area(
        "lab/tables.py", "lab/test_tables.py",
        ("if width > narrowest[k]]", "if width > 0]"),
        ("for heading, cell in named if cell)", "for heading, cell in named)"),
    ),
    *area("lab/scalars.py", "lab/figures/test_runs.py", ("min([*new, events.begin])", "min([*new, math.inf])"), ('tag.startswith("time/")', "tag")),
    *area("lab/tuning/results.py", "lab/tuning/test_search.py", ("math.isnan(score)", "False")),
    *area(
        "lab/calibration.py",
        "lab/test_obedience.py::test_a_mean_is_of_48_episodes_or_of_a_tenth_of_all lab/test_obedience.py::test_what_a_calibration_plays",
        ("max(_WINDOW, round(", "min(_WINDOW, round("),
        ("low -= _BEYOND * (high - low)", "low += _BEYOND * (high - low)"),
        ('0] == "return"', '0] != "return"'),
        ("low = min(low, floor)", "pass"),
        ("start = played + len(requests)", "start = played"),
        ("            played += len(requests)\n", ""),
        ("(method.first_command() or ())[1:]", "()"),
    ),
    *area(
        "lab/tuning/search.py", "lab/tuning/test_three_levels.py::test_a_trial_takes_a_cpu_for_each_worker_and_none_for_the_process_that_waits_for_them",
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
        ("type(value) in (int, float)", "isinstance(value, int | float)"),
        ("{*self.budget, *self.settings} & self.search", "{*self.budget} & self.search"),
    ),
    *area(
        "lab/tuning/with_ray.py", "lab/tuning/test_search.py::test_the_time_left_of_a_resumed_search_goes_by_the_trials_since_then",
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
