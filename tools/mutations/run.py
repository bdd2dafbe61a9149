"""Wrong formulas in ``run/``."""

from mutations.mutation import area

MUTATIONS = [
    *area(
        "run/acting.py", "library/test_predict.py",
        ("np.where(begins[:, np.newaxis], asked, command)", "command"),
        ("command = self._rule(command, self._paid(", "(command, self._paid("),
        ("reward = self._rewards\n", "pass\n"),
        ("if not truth(\"deterministic\", deterministic):", "if True:"),
        ("return (actions if is_batch else actions[0]), state", "return actions, state"),
    ),
    *area(
        "run/whole_policy.py", "run/test_export.py::test_a_calibrated_policy_of_noisy_commands_acts_the_same",
        ("is_asked, first.float(), raw[:, 0]", "is_asked, raw[:, 0], first.float()"),
        ("is_asked, guidance, self.actor.guidance", "is_asked, self.actor.guidance, guidance"),
        ("share * (self.high - self.low)", "share"),
        (".clamp(self.low, self.high)", ""),
    ),
    *area(
        "run/exported.py", "run/test_export.py::test_what_was_changed_is_refused",
        ("if checksum(content) != config[\"files\"].get(path.name):", "if False:"),
        ("check(content, _RULES)", "pass"),
        (", parse_constant=no_number", ""),
    ),
    *area(
        "run/train.py", "methods/test_counters.py",
        ("run.signal or int(method.env_steps) >= asked", "run.signal"),
        ('key] >=', 'key] >'),
        ("if not reached:", "if reached:"),
    ),
    *area(
        "run/checkpoints.py", "library/test_lightning.py",
        ("if not _is_plain(state):", "if False:"),
    ),
    *area(
        "run/callbacks.py", "run/test_checkpoints.py::test_only_a_better_evaluation_replaces_the_best",
        ("if score > self.score:", "if True:"),
        ("            self.score = score\n", ""),
        ("            self._keep(name, epoch)", "            pass"),
    ),
    *area(
        "run/callbacks.py", "run/test_beside.py::test_it_is_taken_up_before_the_next_one_and_before_a_checkpoint "
        "run/test_beside.py::test_it_leaves_what_one_leaves_that_training_waits_for[UDRL-end1-0]",
        ("with as_it_was(method, self._state):", "if True:"),
        ('{"epoch": trainer.current_epoch, "global_step"', '{"epoch": 0, "global_step"'),
        ("if is_due or trainer.should_stop:", "if is_due:"),
        ("            self._take_up(trainer, pl_module)\n            self._state", "            self._state"),
        ("if checkpoint_is_due(trainer, self.checkpoint_interval):", "if False:"),
    ),
    *area(
        "run/callbacks.py", "run/test_progress.py::test_the_budget_that_ends_first_is_counted_in_its_unit",
        ("if most and done / most >= share:", "if most:"),
        ("return min(1.0, share), words", "return share, words"),
    ),
    *area(
        "run/callbacks.py", "run/test_beside.py::test_it_leaves_what_one_leaves_that_training_waits_for[UDRL-end1-0]",
        ('{**now, "eval_env_steps": method.eval_env_steps.clone()}', "now"),
    ),
    *area(
        "run/callbacks.py", "run/test_checkpoints.py::test_a_best_gets_another_name_where_the_user_has_taken_its_own",
        ("while any(is_foreign(folder / name) for folder in self.folders):", "while False:"),
    ),
    *area(
        "run/processes.py", "run/test_workers.py::test_the_exit_code_of_groups_is_that_of_the_worst "
        "run/test_workers.py::test_sigterm_is_passed_on_to_the_groups_while_they_are_waited_for",
        ("code if code >= 0 else 128 - code", "code"),
        ("code = 2", "code = 0"),
        ("code = exit_code(stop)", "code = 0"),
        ("    sys.exit(code)", "    return"),
        ("os.kill(process.pid, number)", "pass"),
    ),
    *area(
        "run/footprint.py", "run/test_refusals.py::test_the_footprint_of_a_config_by_hand "
        "run/test_refusals.py::test_every_candidate_of_a_population_takes_a_network_and_an_agent",
        ("(inner + needed[\"hidden\"])", "inner"),
        ("        width += 2 * sum(layers)\n", ""),
        ("_NUMBER * batch * width", "_NUMBER * batch"),
        ("_INDEX * batch * sum(", "_INDEX * sum("),
        ("_NUMBER * row * of(\"steps_per_iter\", 0)", "0"),
        ("needed[many] = of(many, 0) *", "needed[many] ="),
    ),
    *area(
        "run/member_checkpoints.py", "run/test_checkpoints.py::test_a_stack_comes_apart_into_its_seeds_and_together_again "
        "run/test_checkpoints.py::test_a_checkpoint_of_several_seeds_is_removed_of_each",
        ('hparams["seed"] += member', "pass"),
        ("state[name][member : member + 1].clone()", "state[name][:1].clone()"),
        ("rows[0][member : member + 1].clone()", "rows[0][:1].clone()"),
        ('"members": torch.zeros_like(row)', '"members": row'),
        ('weights["member_counters"].amax(0)', 'weights["member_counters"][0]'),
        ("policy = {name: value.clone() for", "policy = {name: value for"),
        ('"num_seeds": len(checkpoints)}', '"num_seeds": len(checkpoints) - 1}'),
        (" or [states[0]]", ""),
        ("super().remove_checkpoint(folder / Path(path).name)", "super().remove_checkpoint(path)"),
    ),
    *area(
        "run/resuming.py", "run/test_refusals.py::test_a_budget_is_refused_only_where_it_is_new_and_less_than_is_done "
        "run/test_refusals.py::test_a_budget_of_episodes_counts_episodes "
        "cli/test_checkpoint_arguments.py::test_resume_of_another_method_or_other_settings",
        ("asked not in (None, before) and", "asked is not None and"),
        ("and asked < done:", "and asked <= done:"),
        ('"max_episodes": "episodes"}', '"max_episodes": "env_steps"}'),
        ('or before["gamename"] != options.gamename', ""),
    ),
    *area(
        "run/state.py", "cli/test_checkpoint_arguments.py::test_a_run_directory_stands_for_its_checkpoint",
        (('"epoch=*.ckpt"),\n'
'        key=lambda found: (is_recorded(found), found.stat().st_mtime),\n'
'        reverse=True,'), '"epoch=*.ckpt"), key=lambda found: (is_recorded(found), found.stat().st_mtime)'),
        ("for found in (path / LAST, *best, path / WEIGHTS):", "for found in (*best, path / LAST, path / WEIGHTS):"),
    ),
    *area("run/state.py", "run/test_outputs.py::test_a_run_begins_without_what_a_killed_writer_has_left", ("        sweep(run_dir)\n", "")),
    *area("run/state.py", "lab/reports/test_listing.py::test_a_run_that_ends_early_says_so", ('.removesuffix(": ")', "")),
]  # fmt: skip
