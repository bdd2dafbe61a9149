"""What a claim of the project takes besides this package and a processor."""

import sys

from experiments.reproduce.checkout import MANIFEST
from experiments.reproduce.command import ROOT
from experiments.reproduce.manifest import load_claims
from experiments.reproduce.needs import lacking

CLAIMS = load_claims(ROOT / MANIFEST).claims


def test_a_claim_of_the_other_library_needs_it_and_no_other_claim_does(monkeypatch):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    assert (
        lacking(CLAIMS["sb3-pendulum-td3"], smoke=True)
        == "Stable-Baselines3 (pip install 'lightning_rl[baselines]')"
    )
    assert lacking(CLAIMS["beside-pendulum-td3"]) == ""


def test_a_claim_of_compiled_updates_needs_their_compiler(monkeypatch):
    claim = CLAIMS["se-cartpole-published"]
    monkeypatch.setitem(sys.modules, "numba", None)
    assert lacking(claim, smoke=True) == "numba (pip install 'lightning_rl[fast]')"
    monkeypatch.setitem(sys.modules, "numba", sys)  # any module that is there
    assert lacking(claim) == ""


def test_a_claim_on_a_gpu_needs_one_but_for_a_smoke(monkeypatch):
    claim = CLAIMS["mb-buttongrid-er-thirty"]
    for there, lacks in ((False, "a GPU"), (True, "")):
        monkeypatch.setattr("torch.cuda.is_available", lambda there=there: there)
        assert (lacking(claim), lacking(claim, smoke=True)) == (lacks, "")
