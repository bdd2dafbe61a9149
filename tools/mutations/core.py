"""Wrong formulas in ``core/``."""

from mutations.mutation import area

MUTATIONS = [
    *area(
        "core/types.py", "functional/test_returns.py",
        ("np.cumsum(self.reward[::-1], dtype=np.float64)[::-1]", "np.cumsum(self.reward, dtype=np.float64)"),
    ),
    *area(
        "core/limits.py", "run/test_refusals.py::test_a_range_is_said_from_within",
        ("unit * math.ceil(low / unit", "unit * round(low / unit"),
        ("unit * math.floor(high / unit", "unit * round(high / unit"),
        ("if inner[0] <= inner[1]:", "if True:"),
    ),
    *area("core/schema.py", "core/test_schema.py", ("(share - start) / (end - start)", "(share - start) / end")),
    *area(
        "core/seeding.py", "core/test_fresh_noise.py core/test_seeding.py",
        ("zlib.crc32(purpose.encode()), *index]", "zlib.crc32(purpose.encode())]"),
        ("[run_seed, zlib.crc32(purpose.encode()), *index]", "[run_seed, *index]"),
        ("generator(seed, self.purpose, number) for", "generator(seed, self.purpose, 0) for"),
        ("self.seeds = [self.seeds[n] for n in rows.tolist()]", "pass"),
        ("self._block = self._block[:, rows] if self._number >= 0", "self._block = self._block if self._number >= 0"),
        ("return self.whole(number)[place]", "return self.whole(number)[0]"),
        ("self._held[0] == step:", "self._held[0] <= step:"),
        ("self._held = step, self._held[1].copy_(noise)", "self._held = step, noise"),
        ("self._ahead and self._ahead[0] == number", "self._ahead"),
        ("self._held = self._ahead = None", "self._held = None"),
    ),
    *area(
        "core/gamenames.py", "envs/test_any_environment.py",
        ("if game.env == gamename", "if name == gamename"),
        ("if gamename in BUILT_IN:", "if gamename in ():"),
    ),
    *area(
        "core/checks.py", "library/test_lightning.py",
        ("if trainer.precision not in method.precisions:", "if False:"),
        ("(processes := trainer.world_size) > 1", "(processes := trainer.world_size) > 2"),
        ("owner is not method", "False"),
        ('if others := sorted(kinds - {"float32"}):', "if False:"),
        ("for kind in _CALLBACKS.keys() & {", "for kind in set() & {"),
    ),
    *area(
        "core/checks.py", "library/test_lightning.py::test_whole_methods_that_are_frozen_or_compiled_are_refused",
        ('        if not any(', '        if False and not any('),
        ('"_compiler_ctx", None) is not None', '"_compiler_ctx", None) == 0'),
    ),
    *area(
        "core/checks.py", "library/test_own_optimizers.py",
        ("isinstance(each, ReduceLROnPlateau)", "False"),
    ),
    *area(
        "core/checks.py", "library/test_lightning.py::test_the_data_of_another_method_and_bare_loaders_are_refused",
        ("if owner is not method:", "if owner is not None and owner is not method:"),
    ),
    *area(
        "core/contents.py", "core/test_contents.py",
        ("value.numel() * value.element_size() >", "value.numel() >"),
        ("exact and content.shape != example.shape", "False"),
        ("content.dim() == example.dim()", "True"),
        ("if content and example:", "if example:"),
        ("(example and len(content) != len(example))", "(example and False)"),
        ("is_plain(part, depth - 1)", "is_plain(part, depth)"),
        ("if not rule.optional", "if rule.optional"),
    ),
    *area(
        "core/files.py", "core/test_files.py",
        ("self._end -= len(instead_of.encode())", "self._end -= len(instead_of)"),
        ("if size > limit:", "if size >= limit:"),
        ("self.begun = self._end < len(content)", "self.begun = False"),
        ('return text[: text.rfind("\\n") + 1]', "return text"),
        ("except (PermissionError, OverflowError):\n        return False", "except (PermissionError, OverflowError):\n        return True"),
        ("if len(parts) > ARCHIVE_PARTS:", "if False:"),
        ("unpacked = sum(", "unpacked = max("),
        ('part.filename.endswith(".pkl") and', 'part.filename.endswith(".pt") and'),
        ("bad = archive.testzip()", "bad = None"),
    ),
    *area(
        "core/outputs.py", "run/test_outputs.py::test_a_table_is_known_by_its_whole_header",
        ('.rstrip(b"\\r") == header', "== header"),
        ('head(path).partition(b"\\n")[0]', "head(path)[: len(header)]"),
    ),
]  # fmt: skip
