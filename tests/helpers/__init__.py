"""What the tests share; each file is named after what it helps."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
"""The root of the repository."""
