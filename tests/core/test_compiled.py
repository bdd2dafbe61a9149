"""Where compiled code is kept."""

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
