"""``python -m tcalc``: the same command as ``tcalc``."""

from .app.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
