"""``results/verified.csv``: when the begin of each claim was last run again, where, how equal."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path

from filelock import FileLock

from experiments.reproduce.claims import Claim
from experiments.reproduce.store import Row
from lightning_rl.core.files import make_folder, write_text
from lightning_rl.lab.tables import Rows, csv_of, read_rows

VERIFIED = Path("results/verified.csv")
COLUMNS = ("claim", "seed", "date", "commit", "machine", "versions", "values", "equal", "result")
NEVER = "never"


def read_verified(root: Path) -> dict[str, Row]:
    """The last verification of each claim that had one."""
    return {row["claim"]: row for row in read_rows(root / VERIFIED)}


def note(root: Path, row: Mapping[str, object]) -> None:
    """Keeps a verification of today in place of the claim's last one."""
    path = root / VERIFIED
    make_folder(path.parent)
    with FileLock(path.parent / ".lock"):
        rows: dict[str, Mapping[str, object]] = {**read_verified(root)}
        today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
        rows[str(row["claim"])] = {**row, "date": today}
        write_text(path, csv_of(COLUMNS, (rows[name] for name in sorted(rows))))


def table(claims: Mapping[str, Claim], root: Path) -> Rows:
    """When each claim with a curve was last verified, the longest ago first."""
    found = read_verified(root)
    rows = []
    for name, claim in claims.items():
        row = found.get(name)
        if row is not None:
            equal = f"{row['equal']} of {row['values']}"
            rows.append((name, row["date"], row["machine"], equal, row["result"]))
        elif claim.curves:
            rows.append((name, NEVER, "", "", ""))
    rows.sort(key=lambda row: (row[1] != NEVER, row[1]))
    return [("claim", "last verified", "processor", "same digits", "result"), *rows]
