"""Digests of what expressions are made of.

`hashlib` loads OpenSSL, which takes as long as a twentieth of tcalc's import; the digest itself is
the interpreter's own.
"""

from __future__ import annotations

try:
    from _blake2 import blake2b as blake2b
except ImportError:  # another interpreter
    from hashlib import blake2b as blake2b
