"""The page of hooks names what is there to be overridden."""

import importlib
import inspect
import re

import pytest
from helpers import ROOT

PAGE = (ROOT / "docs" / "reference" / "hooks.md").read_text()
SECTIONS = re.findall(r"^## `([\w.]+)\.(\w+)`\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)


@pytest.mark.parametrize(("module", "name", "text"), SECTIONS, ids=[each[1] for each in SECTIONS])
def test_each_is_a_method_of_its_class(module, name, text):
    cls = getattr(importlib.import_module(module), name)
    rows = re.findall(r"^\| (`.*?) \|", text, re.M)
    hooks = [hook for row in rows for hook in re.findall(r"`(\w+)`", row)]
    assert hooks
    known = {*dir(cls), *inspect.get_annotations(cls)}
    assert [hook for hook in hooks if hook not in known] == []
    needed = re.findall(r"^\| (.*?) \| .*\(needed\) \|$", text, re.M)
    abstract = getattr(cls, "__abstractmethods__", frozenset()) | set(getattr(cls, "to_define", ()))
    assert abstract <= set(re.findall(r"`(\w+)`", " ".join(needed)))
