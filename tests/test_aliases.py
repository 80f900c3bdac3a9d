"""Operators of several names: PyTorch itself gives the same under each, and so does surgeon."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from aten_node import Left, Written, close, expected, lowered
from truth import parse

import surgeon
from surgeon.nested import every_node
from surgeon.schemas import overloads
from surgeon.schemas.aliases import ALIASES, plain_name

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
CALLS: dict[str, list[Any]] = {
    "alias_copy": [X],
    "as_strided_copy": [X, [3, 2], [4, 1], 2],
    "detach_copy": [X],
    "diagonal_copy": [X, 1, 0, 2],
    "expand_copy": [X[:1], [5, 3, 4]],
    "permute_copy": [X, [2, 0, 1]],
    "select_copy.int": [X, 1, -1],
    "slice_copy.Tensor": [X, 2, 1, 3, 1],
    "squeeze_copy.dim": [X[:1], 0],
    "t_copy": [X[0]],
    "transpose_copy.int": [X, 0, 2],
    "unfold_copy": [X, 2, 2, 1],
    "unsqueeze_copy": [X, 1],
    "view_copy": [X, [6, -1]],
    "narrow_copy": [X, 1, 1, 2],
    "lift_fresh_copy": [X],
    "_adaptive_avg_pool2d": [X, [2, 2]],
    "_is_all_true": [X > 0],
    "_is_any_true": [X > 0],
    "_logcumsumexp": [X, 1],
    "_stack": [[X, X], -1],
    "_unsafe_index.Tensor": [X, [np.array([1, 0]), None, np.array([0, 3])]],
    "_unsafe_index_put": [X, [np.array([1, 0])], X[::-1].copy(), False],
    "linalg_matmul": [X, X.transpose(0, 2, 1).copy()],
    "native_channel_shuffle": [np.tile(X[:, None], (1, 4, 1, 1)), 2],
    "ravel": [X],
    "special_round": [X, 2],
    "trapz.x": [X, X, 1],
    "zero": [X],
    "add_.Tensor": [X, X],
    "relu_": [X],
    "clamp_": [X, -0.5, 0.5],
    "__iand__.Tensor": [X > 0, X < 1],
    "masked_fill_.Scalar": [X, X > 0, 2.0],
}


@pytest.mark.slow
@pytest.mark.parametrize("operator", CALLS)
def test_it_is_what_the_plain_name_is(operator: str) -> None:
    arguments = CALLS[operator]
    wanted = expected(
        operator, [np.array(a) if isinstance(a, np.ndarray) else a for a in arguments]
    )
    written = Written(operator, arguments, "A+", 13, dynamic=False)
    for mine, its in zip(lowered(written, wanted, recipe="aten"), wanted, strict=True):
        assert mine.shape == its.shape
        close(mine, its)


def test_every_name_and_what_it_stands_for_are_operators() -> None:
    for name, other in ALIASES.items():
        assert overloads(name) or name.endswith("_") or name.startswith("__i"), name
        assert overloads(other), other
        assert plain_name(other) == other


@pytest.mark.parametrize(
    ("outputs", "kept"),
    [
        ("float[n,3] y, float[n,3] z", True),  # Neg reads what relu_ writes into
        ("float[n,3] y, float[n,3] c", True),  # the model's output is what relu_ writes into
        ("float[n,3] y", False),
    ],
)
def test_where_the_input_is_read_twice_the_order_is_not_known(outputs: str, kept: bool) -> None:
    reader = "z = Neg (c)" if " z" in outputs else ""
    model = parse(
        f"""g (float[n,3] x) => ({outputs}) {{
          c = Neg (x)
          y = org.pytorch.aten.relu_ (c)
          {reader}
        }}""",
        domains=', "org.pytorch.aten": 1',
    )
    result = surgeon.apply(model, "aten", verify=False, allow=["leftover"])
    left = "relu_" in [n.op_type for n in result.model.to_proto().graph.node]
    assert left == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("s = Div (c, two) y = org.pytorch.aten.__ixor__ (c, s)", False),  # c ^= c >> 1
        ("y = org.pytorch.aten.__ixor__ (c, two) s = Div (c, y)", True),
        ("v = Reshape (c, shape) y = org.pytorch.aten.__ixor__ (c, two) s = Neg (v)", True),
        ("v = Identity (c) y = org.pytorch.aten.__ixor__ (c, two) s = Neg (v)", True),
        ("d = Div (c, two) y = org.pytorch.aten.__ixor__ (c, d) s = Neg (c)", True),
        (
            """y = Loop (two, yes, x) <body = body (int64 i, bool go, int64[n] h)
              => (bool on, int64[n] next) {
                on = Identity (go) s = Div (c, two)
                w = org.pytorch.aten.__ixor__ (c, s) next = Add (w, h) }> s = Neg (x)""",
            True,
        ),
    ],
)
def test_what_was_computed_in_front_of_a_write_read_what_was_there(text: str, kept: bool) -> None:
    model = parse(
        "g (int64[n] x) => (int64[n] y, int64[m] s) "
        "<int64 two = {2}, int64[1] shape = {-1}, bool yes = {1}> { c = Add (x, two) " + text + "}",
        domains=', "org.pytorch.aten": 1',
    )
    result = surgeon.apply(model, "aten", allow=["leftover"])
    nodes = list(every_node(result.model.to_proto().graph.node))
    assert ("__ixor__" in [node.op_type for node in nodes]) == kept


def test_a_draw_into_its_input_is_a_draw() -> None:
    written = Written("normal_", [X, 2.0, 1.0], "A+", 13, dynamic=False)
    with pytest.raises(Left):
        lowered(written, [X], recipe="aten-shape")
    again = Written("normal_", [X, 2.0, 1.0], "A+", 13, dynamic=False)
    assert lowered(again, [X], recipe="aten-random")[0].shape == X.shape
