"""Wrong formulas in ``rollouts/``."""

from mutations.mutation import area

MUTATIONS = [
    *area(
        "rollouts/player.py", "rollouts/test_rollouts_by_hand.py",
        ("if position == 0:", "if step == 0:"),
        ('if request.mode != "greedy"', "if request.name"),
        ("Philox(request.seed)", "Philox(0)"),
        ("return 2 * noise - 1", "return noise"),
        ("else guidance[rows]", "else guidance[: len(rows)]"),
        ("chunk.obs[step].take(rows, 0)", "chunk.obs[max(step - 1, 0)].take(rows, 0)"),
        ("step + 1, bool(terminated), bool(truncated)", "step + 1, bool(truncated), bool(terminated)"),
        ("chunk.reward[step].take(played)", "chunk.reward[step][: len(played)]"),
        ('self.env_steps[row] += info.get(STEPS, 1)', "self.env_steps[row] += 1"),
        ("command = self.next_command(command, reward)", "pass"),
        ("if terminated or truncated:", "if terminated:"),
        ("request.seed % 2**31", "row"),
        ("policy_version=version", "policy_version=0"),
        ("obs=self.obs[: length + 1, row].copy()", "obs=self.obs[:length, row].copy()"),
        ('if requests[0].mode == "uniform"', 'if requests[0].mode == "greedy"'),
    ),
    *area(
        "rollouts/player.py", "rollouts/test_loaders.py::test_the_policy_is_frozen_and_stamped_while_a_collection_runs[0] "
        "rollouts/test_loaders.py::test_a_collector_plays_a_copy_and_leaves_the_policy_alone "
        "rollouts/test_loaders.py::test_what_has_no_episode_yet_is_outstanding",
        ("self.behaviour.load_state_dict(policy)", "pass"),
        ("self.version.fill_(version)", "pass"),
        ("copy.deepcopy(policy).cpu()", "policy.cpu()"),
        ("self._finished += 1", "pass"),
    ),
    *area(
        "rollouts/episode_buffer.py", "rollouts/test_replay.py",
        ("bisect.insort_left(", "bisect.insort_right("),
        ("del self._best[self.best :]", "pass"),
        ("if self.newest != 0:", "if self.newest:"),
        ("len(self._newest) > self.newest", "len(self._newest) >= self.newest"),
        ("self._newest_steps > self.steps", "self._newest_steps >= self.steps"),
        ("while len(self._newest) > 1 and", "while"),
        ("self._newest_steps -= self._newest.popleft().length", "self._newest.popleft()"),
        ("highest = ranked[:count]", "highest = ranked[-(count or 0):]"),
        ("sorted(self._newest, key=lambda e: -e.ret)", "list(self._newest)"),
        ("rng.integers(len(length), size=shape)", "rng.integers(len(length) - 1, size=shape)"),
        ("(np.cumsum(length) - length)[episode]", "np.cumsum(length)[episode] - 1"),
        ("terminated[end - 1] = [e.terminated", "terminated[end - 1] = [not e.terminated"),
        ('"row": step + np.repeat(np.arange(len(length)), length)', '"row": step'),
        ('"left": np.repeat(end, length) - step', '"left": np.repeat(end, length) - step - 1'),
        ("self.to_go[self.row[self.first]][episode]", "self.to_go[self.row]"),
        ("list(self._newest)[-count:]", "list(self._newest)[:count]"),
        ("or self._best[:count]", "or self._best[-count:]"),
        ("self._newest_steps = sum(e.length for e in self._newest)", "self._newest_steps = 0"),
    ),
    *area(
        "rollouts/data_module.py", "rollouts/test_rollouts_by_hand.py",
        ("version=epoch + 1", "version=epoch"),
        ('purpose, epoch, i', 'purpose, epoch'),
        ('purpose, epoch', 'purpose, 0'),
        ("episodes[i * count : (i + 1) * count]", "episodes[:count]"),
    ),
    *area(
        "rollouts/collected.py", "rollouts/test_rollouts_by_hand.py",
        ("max(self.epoch - self.overlap, 0)", "self.epoch"),
        ('derive_seed(run_seed, "rollout", epoch, i)', 'derive_seed(run_seed, "rollout", epoch)'),
        ('derive_seed(run_seed, "rollout", epoch, i)', 'derive_seed(run_seed, "rollout", 0, i)'),
        ('derive_seed(run_seed, "warm-up", i)', 'derive_seed(run_seed, "rollout", 0, i)'),
        ("        self.store_episodes(epoch, episodes)\n", ""),
    ),
    *area(
        "rollouts/data_module.py", "library/test_lightning.py",
        ("not isinstance(batch, list)", "True"),
        ("moved = self.trainer.training and", "moved ="),
    ),
    *area(
        "rollouts/player.py", "rollouts/test_loaders.py::test_a_collector_plays_a_copy_and_leaves_the_policy_alone "
        "rollouts/test_loaders.py::test_what_has_no_episode_yet_is_outstanding",
        (".requires_grad_(False).eval()", ".requires_grad_(False)"),
        (".requires_grad_(False).eval()", ".eval()"),
        ("        self._finished = 0\n        self._loader", "        self._loader"),
    ),
]  # fmt: skip
