"""Models whose Hessians are solved with compressed, as a page: ``python -m web.examples OUT``.

Every module here is one model: its docstring is the text of the page, and ``main(folder)`` fits it,
writes its figures into the folder and returns what it found.
"""

from __future__ import annotations
