"""Commands that only a checkout of the repository has."""

import sys
from types import ModuleType

import pytest

from lightning_rl.cli import main
from lightning_rl.cli.tools import tools


@pytest.mark.parametrize("other", [False, True], ids=["nothing", "another package of the name"])
def test_an_installed_package_says_that_they_need_the_repository(
    tmp_path, monkeypatch, capsys, other
):
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments" / "__init__.py").write_text("raise AssertionError")
    monkeypatch.setattr(sys.modules["lightning_rl.cli.tools"], "CHECKOUT", tmp_path)
    monkeypatch.delitem(sys.modules, "experiments", raising=False)
    if other:
        monkeypatch.setitem(sys.modules, "experiments", ModuleType("experiments"))
    tools.cache_clear()
    try:
        for command in ("reproduce --list", "claims a", "figures phase a b", "proxies clones"):
            assert main(command.split(), "lightning-rl") == 2
            error = capsys.readouterr().err
            assert "needs the repository" in error
            assert error.count("\n") == 1
        assert main(["figures", "phasee"], "lightning-rl") == 2
        assert "did you mean 'phase'" in capsys.readouterr().err
    finally:
        tools.cache_clear()
