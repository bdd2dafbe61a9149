"""The git checkout that evidence is made with: which commit it is, and that it is nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

from lightning_rl.core.errors import UserError

PAGE = Path("docs/results.md")
ROOT = Path(__file__).resolve().parents[2]
"""Of the checkout."""
MANIFEST = Path("results/claims.yaml")
_CODE = ("lightning_rl/", "experiments/", "configs/")


def commit_of(root: Path) -> str:
    """The commit of the checkout."""
    return git(root, "rev-parse", "HEAD").strip()


def require_clean(root: Path) -> None:
    """UserError where the checkout is not what its commit says.

    What this command writes, and notes of the user, do not count.
    """
    dirty = []
    for line in git(root, "status", "--porcelain", "--untracked-files=all").splitlines():
        path = line[3:]
        is_note = line.startswith("??") and not path.startswith(_CODE)
        is_ours = path == str(PAGE) or (path.startswith("results/") and path.endswith(".csv"))
        if not is_note and not is_ours:
            dirty.append(path)
    if dirty:
        what = f"'{dirty[0]}' is"
        if len(dirty) > 1:
            what = f"'{dirty[0]}' and {len(dirty) - 1} more are"
        raise UserError(
            f"evidence is of a commit, and {what} not committed; commit or stash it, or try --smoke"
        )


def require_commit(root: Path, commit: str) -> None:
    """UserError where the checkout has changed since a run was begun."""
    if commit_of(root) != commit:
        raise UserError(
            f"'{root}' was at commit {commit[:12]} when this began and is no longer; leave it "
            "alone meanwhile"
        )
    require_clean(root)


def git(root: Path, *words: str) -> str:
    """What git prints; UserError where it cannot."""
    try:
        return subprocess.run(
            ["git", *words], cwd=root, capture_output=True, text=True, check=True
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise UserError(
            f"'{root}': git {words[0]} failed; evidence is of a commit: clone the repository"
        ) from error
