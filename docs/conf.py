"""How the site is built: `sphinx-build -W docs OUT`, from nothing but the extra `docs`.

Nothing is fetched when pages are built or read: formulas are MathML that the library writes,
fonts and scripts are the theme's own files.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from machinery.models import write_models
from machinery.reference import write_reference

import tcalc as tc
from tcalc.languages.writing.where import is_wide

project = "tcalc"
author = "The tcalc authors"
copyright = author
version = release = tc.__version__
extensions = ["sphinx.ext.autodoc", "numpydoc", "myst_parser", "sphinx_gallery.gen_gallery"]
nitpicky = True
exclude_patterns = ["_build", "gallery", "machinery"]
html_theme = "furo"
html_title = f"tcalc {release}"
html_static_path = ["static"]
html_css_files = ["tables.css"]
html_show_sphinx = False
html_copy_source = False

autodoc_typehints = "none"  # docstrings have the types, in words
autodoc_member_order = "alphabetical"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "backreferences_dir": None,
    "capture_repr": ("_repr_html_", "__repr__"),
    "download_all_examples": False,
    "min_reported_time": 1e9,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "abort_on_example_error": True,
}
# A formula at the end of a cell is shown as such: what notebooks typeset, browsers set from MathML.
tc.Expr._repr_html_ = lambda e: tc.to_mathml(e, where=is_wide(e))  # type: ignore[attr-defined]


def setup(app: Any) -> None:
    app.connect("builder-inited", lambda app: write_reference(Path(app.srcdir)), priority=0)
    app.connect("builder-inited", lambda app: write_models(Path(app.srcdir)), priority=0)
