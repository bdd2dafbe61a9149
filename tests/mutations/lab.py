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
        ("(first - obs).abs()", "(first - imagined.obs).abs()"),
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
        ("steps + info.get(STEPS, 1), terminated", "steps + 1, terminated"),
        ("self.env_steps += steps", "self.env_steps += 1"),
        ("counts = (self.num_timesteps, self.episodes, self.env_steps)", "counts = (self.num_timesteps, 0, self.env_steps)"),
        ("if key not in (*cfg.read, *ALONE):", "if False:"),
        ("if self._episode_num >= self.learning_episodes:", "if True:"),
        ("self.exploration_rate = self.exploration_schedule", "self.unused = self.exploration_schedule"),
        ("early = self._over and", "early = self._over or"),
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
          ("claim.read.text)]", 'row["read"])]')),
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
]  # fmt: skip
