"""Programs that were wrong once: what `random_programs.Generator` could have drawn."""

from __future__ import annotations

from tests.random_programs import Program

#: Seeds of data, and programs.
CORPUS = [
    (
        2021,
        Program(
            {"u": ("n", 2), "v": ("m",)},
            {"m": 3, "n": 3},
            [
                ("einsum", (0,), {"spec": "zi->", "sizes": {}}),
                ("binary", (0, 2), {"name": "add"}),
                ("reduction", (3,), {"name": "sum", "axis": 0}),
                ("reduction", (3,), {"name": "prod", "axis": 0}),
                ("binary", (4, 5), {"name": "ratio"}),
                ("binary", (4, 5), {"name": "add"}),
                ("outer", (5, 5), {"name": "subtract"}),
            ],
        ),
    ),
    (
        3199,
        Program(
            {"u": (2, "n")},
            {"m": 3, "n": 3},
            [
                ("branch", (0, 0, 0), {}),
                ("einsum", (0, 1, 0), {"spec": "il,ix,kl->kx", "sizes": {}}),
                ("reduction", (2,), {"name": "sum", "axis": 0}),
                ("reduction", (2,), {"name": "max", "axis": 1}),
                ("const", (), {"data": 0.5, "like": ()}),
                ("binary", (0, 2), {"name": "subtract"}),
                ("reduction", (6,), {"name": "prod", "axis": 1}),
                ("unary", (6,), {"name": "relu"}),
            ],
        ),
    ),
    (
        4065,
        Program(
            {"u": (3, "m"), "v": (2,), "w": ("n", "m")},
            {"m": 2, "n": 3},
            [
                ("einsum", (0, 0), {"spec": "nj,xj->n", "sizes": {}}),
                ("branch", (1, 1, 1), {}),
                ("binary", (1, 1), {"name": "ratio"}),
                ("outer", (3, 5), {"name": "subtract"}),
                ("einsum", (6,), {"spec": "jz->", "sizes": {}}),
            ],
        ),
    ),
    (
        5113,
        Program(
            {"u": ("n",), "v": (3,), "w": (3,)},
            {"m": 2, "n": 2},
            [
                ("outer", (0, 2), {"name": "add"}),
                ("einsum", (2, 3, 3), {"spec": "z,lz,lz->xl", "sizes": {"x": "m"}}),
                ("einsum", (4, 4), {"spec": "yz,yx->lx", "sizes": {"l": 2}}),
                ("unary", (4,), {"name": "halved"}),
                ("transpose", (5,), {"axes": [0, 1]}),
                ("reduction", (5,), {"name": "min", "axis": 0}),
                ("einsum", (8, 3), {"spec": "k,iy->yk", "sizes": {}}),
                ("einsum", (8,), {"spec": "l->lnl", "sizes": {"n": "m"}}),
            ],
        ),
    ),
    (
        6075,
        Program(
            {"u": (2,), "v": (2,), "w": ("m", 2)},
            {"m": 2, "n": 3},
            [
                ("binary", (0, 1), {"name": "multiply"}),
                ("outer", (1, 0), {"name": "multiply"}),
                ("unary", (4,), {"name": "tanh"}),
                ("einsum", (4,), {"spec": "nl->n", "sizes": {}}),
                ("outer", (6, 6), {"name": "subtract"}),
                ("einsum", (7, 7), {"spec": "ya,ny->kna", "sizes": {"k": 2}}),
                ("matrix", (7,), {"name": "inv", "extent": 2}),
                ("einsum", (4, 8), {"spec": "zz,nan->za", "sizes": {}}),
            ],
        ),
    ),
    (
        225331026622,
        Program(
            {"u": (2,), "v": (2, 2)},
            {"m": 3, "n": 3},
            [
                ("eye", (), {"extent": 2}),
                ("ones", (), {"like": (2, 2)}),
                ("einsum", (), {"spec": "->", "sizes": {}}),
                ("einsum", (0, 3), {"spec": "j,jj->", "sizes": {}}),
                ("einsum", (2,), {"spec": "bl->lb", "sizes": {}}),
                ("einsum", (6,), {"spec": "yy->y", "sizes": {}}),
                ("reduction", (6,), {"name": "min", "axis": 1}),
                ("einsum", (7, 6, 6), {"spec": "n,ni,ii->ni", "sizes": {}}),
            ],
        ),
    ),
    (
        0,
        Program(
            {"u": ("m", "m"), "v": (2,), "w": ("n", "m")},
            {"m": 3, "n": 2},
            [
                ("einsum", (1,), {"spec": "i->ijj", "sizes": {"j": 3}}),
                ("binary", (3, 3), {"name": "ratio"}),
                ("join", (4, 4), {}),
            ],
        ),
    ),
    (
        20100412,
        Program(
            {"u": ("n", "n")},
            {"m": 2, "n": 2},
            [("unary", (0,), {"name": "tanh"}), ("matrix", (0,), {"name": "inv", "extent": "n"})],
        ),
    ),
    (
        20100722,
        Program(
            {"u": (0, "m")},
            {"m": 3, "n": 3},
            [
                ("einsum", (0, 0), {"spec": "jz,jz->j", "sizes": {}}),
                ("einsum", (0, 0), {"spec": "xa,xa->xj", "sizes": {"j": "n"}}),
                ("binary", (2, 2), {"name": "multiply"}),
                ("einsum", (0, 0), {"spec": "xz,xz->x", "sizes": {}}),
                ("branch", (3, 3, 2), {}),
                ("unary", (2,), {"name": "log1psq"}),
                ("branch", (2, 5, 6), {}),
                ("reduction", (7,), {"name": "cumsum", "axis": 0}),
            ],
        ),
    ),
    (
        20140190,
        Program(
            {"u": (2,)},
            {"m": 3, "n": 2},
            [("unary", (0,), {"name": "relu"}), ("reduction", (1,), {"name": "prod", "axis": 0})],
        ),
    ),
    (
        20131620,
        Program(
            {"u": ("m", "m")},
            {"m": 3, "n": 2},
            [
                ("transpose", (0,), {"axes": [1, 0]}),
                ("binary", (1, 1), {"name": "add"}),
                ("unary", (2,), {"name": "cube"}),
            ],
        ),
    ),
    (
        20161767,
        Program(
            {"u": (3, 2)},
            {"m": 3, "n": 2},
            [
                ("matrix", (0,), {"name": "inv", "extent": 3}),
                ("einsum", (1,), {"spec": "la->n", "sizes": {"n": "m"}}),
                ("einsum", (2, 0, 2), {"spec": "j,ia,j->", "sizes": {}}),
                ("loop", (2, 3), {"extent": "m"}),
            ],
        ),
    ),
    (
        20122453,
        Program(
            {"u": ("n",), "w": (2, "m")},
            {"m": 2, "n": 3},
            [
                ("einsum", (1, 0, 0), {"spec": "za,x,j->axj", "sizes": {}}),
                ("reduction", (2,), {"name": "max", "axis": 1}),
                ("unary", (3,), {"name": "abs"}),
            ],
        ),
    ),
    (
        20171663,
        Program(
            {"u": ("m",)},
            {"m": 2, "n": 2},
            [
                ("reduction", (0,), {"name": "sum", "axis": 0}),
                ("einsum", (1, 0, 1), {"spec": ",b,->b", "sizes": {}}),
                ("reduction", (2,), {"name": "prod", "axis": 0}),
            ],
        ),
    ),
    (
        50022366,
        Program(
            {"u": ("m", "m")},
            {"m": 1, "n": 2},
            [
                ("slice", (0,), {"axis": 1, "cut": (None, None, -1)}),
                ("einsum", (1, 0), {"spec": "jj,jj->x", "sizes": {"x": "m"}}),
            ],
        ),
    ),
    (
        55002026,
        Program(
            {"u": ("m", "m")},
            {"m": 1, "n": 1},
            [
                ("unary", (0,), {"name": "softplus"}),
                ("einsum", (1, 1, 1), {"spec": "kk,ja,bk->jka", "sizes": {}}),
                ("einsum", (2,), {"spec": "naa->", "sizes": {}}),
                ("einsum", (1, 3), {"spec": "zz,->z", "sizes": {}}),
            ],
        ),
    ),
    (
        56007241,
        Program(
            {"u": ("m",)},
            {"m": 2, "n": 2},
            [
                ("diagonal", (0,), {"name": "diag", "spec": "i->ii"}),
                ("unary", (1,), {"name": "cos"}),
                ("reduction", (2,), {"name": "min", "axis": 1}),
            ],
        ),
    ),
    (
        66000677,
        Program(
            {"u": ("n", 2), "v": (2, "m")},
            {"m": 2, "n": 1},
            [
                ("einsum", (1, 0), {"spec": "jx,aj->akx", "sizes": {"k": 2}}),
                ("gather", (2,), {"index": [0, 0]}),
            ],
        ),
    ),
    (
        68019032,
        Program(
            {"u": (), "v": ("n", 3)},
            {"m": 2, "n": 3},
            [
                ("einsum", (1,), {"spec": "ky->k", "sizes": {}}),
                ("einsum", (2, 1, 0), {"spec": "a,jy,->jaa", "sizes": {}}),
                ("reduction", (3,), {"name": "max", "axis": 0}),
            ],
        ),
    ),
    (
        68010001,
        Program(
            {"u": (), "v": (), "w": ("n",)},
            {"m": 2, "n": 2},
            [
                ("unary", (0,), {"name": "cube"}),
                ("unary", (3,), {"name": "negative"}),
                ("branch", (4, 3, 4), {}),
                ("branch", (5, 5, 0), {}),
                ("branch", (6, 4, 6), {}),
            ],
        ),
    ),
    (
        80006184,
        Program(
            {"u": ("n",), "v": (1, "n"), "w": ("m", "m")},
            {"m": 2, "n": 2},
            [
                ("ones", (), {"like": ("n", "n")}),
                ("einsum", (3, 3), {"spec": "nn,aa->", "sizes": {}}),
                ("unary", (4,), {"name": "cube"}),
            ],
        ),
    ),
    (
        80044007,
        Program(
            {"u": ("m", 2)},
            {"m": 3, "n": 3},
            [
                ("const", (), {"data": 2.0, "like": ()}),
                ("matrix", (0,), {"name": "inv", "extent": "m"}),
                ("binary", (2, 1), {"name": "subtract"}),
                ("matrix", (3,), {"name": "inv", "extent": "m"}),
            ],
        ),
    ),
    (
        80061958,
        Program(
            {"u": (0,)},
            {"m": 3, "n": 3},
            [
                ("outer", (0, 0), {"name": "subtract"}),
                ("slice", (1,), {"axis": 0, "cut": (None, None, -1)}),
                ("einsum", (0, 2, 0), {"spec": "x,ly,n->yl", "sizes": {}}),
                ("reduction", (3,), {"name": "cumsum", "axis": 1}),
            ],
        ),
    ),
    (
        81020015,
        Program(
            {"u": ("m", "m")},
            {"m": 2, "n": 2},
            [
                ("einsum", (0,), {"spec": "ll->l", "sizes": {}}),
                ("outer", (1, 1), {"name": "subtract"}),
                ("matrix", (2,), {"name": "inv", "extent": "m"}),
            ],
        ),
    ),
    (
        81078713,
        Program(
            {"u": ("m",)},
            {"m": 2, "n": 2},
            [
                ("outer", (0, 0), {"name": "ratio"}),
                ("gather", (1,), {"index": [0, 0]}),
                ("matrix", (2,), {"name": "inv", "extent": 2}),
                ("binary", (3, 3), {"name": "multiply"}),
            ],
        ),
    ),
    (
        81128784,
        Program(
            {"u": ("n", "n")},
            {"m": 2, "n": 1},
            [
                ("roll", (0,), {"shift": -1}),
                ("binary", (1, 1), {"name": "ratio"}),
                ("roll", (2,), {"shift": -1}),
            ],
        ),
    ),
    (
        91078063,
        Program(
            {"u": ("m",)},
            {"m": 2, "n": 3},
            [
                ("binary", (0, 0), {"name": "subtract"}),
                ("reduction", (1,), {"name": "logsumexp", "axis": 0}),
                ("loop", (1, 2), {"extent": "m"}),
                ("loop", (0, 3), {"extent": "m"}),
            ],
        ),
    ),
    (
        93003008,
        Program(
            {"u": (2, "m"), "v": (2,)},
            {"m": 1, "n": 2},
            [
                ("slice", (0,), {"axis": 1, "cut": (None, None, -1)}),
                ("join", (0, 2), {}),
                ("matrix", (3,), {"name": "inv", "extent": 4}),
                ("reduction", (4,), {"name": "min", "axis": 1}),
            ],
        ),
    ),
    (
        95035570,
        Program(
            {"u": (2,)},
            {"m": 3, "n": 2},
            [
                ("binary", (0, 0), {"name": "ratio"}),
                ("einsum", (0, 1, 1), {"spec": "i,k,i->k", "sizes": {}}),
                ("einsum", (1, 2, 2), {"spec": "a,a,y->y", "sizes": {}}),
                ("reduction", (2,), {"name": "sum", "axis": 0}),
                ("einsum", (3, 1, 4), {"spec": "b,b,->b", "sizes": {}}),
            ],
        ),
    ),
    (
        800000008,
        Program(
            {"u": (3, 2), "v": ("m",)}, {"m": 3, "n": 3},
            [("affine", (0, 0), {
                "ranges": (1, 3, 3, 3), "kept": 2, "order": "",
                "factors": ((True, (((0, 0, 0, 1), 1), ((-2, 0, 0, 0), -1))),
                            (True, (((2, 0, 0, 1), 2), ((0, 0, 1, 1), -1)))),
            })],
        ),
    ),
]  # fmt: skip
