"""Where compiled code is kept."""

import os
import subprocess
import sys
import types

import pytest

pytest.importorskip("numba")

from lightning_rl.core import compiled


def test_what_cannot_be_saved_is_used_all_the_same():
    def save(signature, data):
        raise OSError("No space left on device")

    cache = types.SimpleNamespace(save_overload=save)
    compiled._save_if_possible(cache)
    assert cache.save_overload("signature", "data") is None


@pytest.mark.parametrize("folder", ["writable", "none"])
def test_a_function_is_compiled_where_no_folder_can_be_made(tmp_path, monkeypatch, folder):
    """Neither below a file nor, as its source is not on disk, beside it."""
    place = tmp_path / "cache"
    if folder == "none":
        place.write_text("")
        monkeypatch.setenv("HOME", str(place))
    monkeypatch.setattr(compiled, "_folder", lambda: place / "here")
    source = tmp_path / "module.py"
    source.write_text("def twice(x):\n    return 2 * x\n")
    space = {}
    exec(compile(source.read_text(), str(source), "exec"), space)
    if folder == "none":
        source.unlink()
    function = compiled.compiled(space["twice"])
    assert function(3) == 6
    assert (place / "here").is_dir() == (folder == "writable")


STEP = """
import hashlib
import numpy as np
from lightning_rl.nets.fused import Learner, Shape, backward, descend, forward, net_of

shape = Shape((5, 19, 17, 3), (-1.0, 0.0), 1, 2, 2.0)
net = net_of(shape, 21)
draw = lambda *size: np.random.default_rng(0).standard_normal(size).astype(np.float32)
params = draw(shape.size)
learner = Learner(params, params.copy(), draw(shape.size), draw(shape.size) ** 2,
                  1e-2, 0.9, 0.999, 1e-8, 0.1, 0.3)
net.inputs[:5], net.command[:2], net.grad[:] = draw(5, 21), draw(2, 21), draw(3, 21)
forward(params, net)
backward(params, net)
descend(learner, net.gradient, 3)
print(hashlib.sha256(params.tobytes()).hexdigest())
"""


def test_what_is_loaded_rounds_as_what_was_compiled(tmp_path):
    """Or the first run on a machine would be another one than all that follow."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    environment.pop("NUMBA_CACHE_DIR", None)
    printed = [
        subprocess.run(
            [sys.executable, "-c", STEP],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split("\n")[-2]
        for _ in range(2)
    ]
    assert list(tmp_path.rglob("*.nbc"))
    assert printed[0] == printed[1]
