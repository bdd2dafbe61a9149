"""``python -m lightning_rl``: the same as the command ``lightning-rl``."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        # The present folder, whose files are not to be run; Python has found this package there or
        # elsewhere.
        del sys.path[0]
    # Processes that are spawned run this file by its path, as they have to find it.
    sys.modules["__main__"].__spec__ = None
    from lightning_rl.cli import entry_point

    entry_point()
elif __name__ == "__mp_main__":
    import importlib
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    importlib.import_module("lightning_rl")
    del sys.path[0]
