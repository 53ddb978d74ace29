"""``python -m tcalc``: the same command as ``tcalc``."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
