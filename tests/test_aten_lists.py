"""Lists that an operator cuts or makes, real and complex, and every way to read them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from aten_layer import normal
from complex_graphs import agree, aten, mended, model_of
from onnx import helper

from surgeon.errors import LeftoverError
from surgeon.reference import Reference

X, Z = normal(3, 8, 5), normal(3, 8, 5, 2)


def constant(name: str, value: Any) -> Any:
    return helper.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(value))


def prim(kind: str, names: list[str], made: list[str]) -> Any:
    return helper.make_node(kind, names, made, domain="prim")


NUMBERS = [
    *(constant(n, np.array(v)) for n, v in (("zero", 0), ("one", 1), ("last", -1), ("three", 3))),
    *(constant(n, np.array(v)) for n, v in (("sizes", [2, 4, 2]), ("cuts", [2, 5]))),
]
# Each makes three parts of [3, 8, 5], along its second axis.
CUTS: dict[str, list[str]] = {
    "split": ["three", "one"],
    "chunk": ["three", "one"],
    "split_with_sizes": ["sizes", "one"],
    "tensor_split": ["three", "one"],
    "tensor_split.indices": ["cuts", "one"],
    "hsplit.array": ["cuts"],
    "unbind": ["zero"],
}
READERS: dict[str, list[Any]] = {
    "unpacked": [prim("ListUnpack", ["list"], ["u", "p", "v"])],
    "one": [aten("__getitem__", ["list", "one"], "p", "t")],
    "the last": [aten("__getitem__", ["list", "last"], "p", "t")],
    "joined": [aten("cat", ["list", "one"], "p")],
}
CASES = [
    pytest.param(cut, reader, opset, marks=[] if opset == 9 else pytest.mark.slow)
    for cut in CUTS
    for reader in READERS
    for opset in (9, 11, 17)
]


def of_list(cut: str, reader: str, source: str) -> list[Any]:
    name, _, overload = cut.partition(".")
    return [*NUMBERS, aten(name, [source, *CUTS[cut]], "list", overload), *READERS[reader]]


def holds(nodes: list[Any], feeds: dict[str, Any], opset: int) -> None:
    """Lowered as the witness has it; PyTorch's own list is no argument of a call to it."""
    model = model_of(nodes, feeds, opset)
    (wanted,) = Reference(model).run(feeds).values()
    found = mended(model, feeds)
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(("cut", "reader", "opset"), CASES)
def test_parts_of_real_values(cut: str, reader: str, opset: int) -> None:
    nodes = [*of_list(cut, reader, "x"), helper.make_node("Identity", ["p"], ["y"])]
    holds(nodes, {"x": X}, opset)


@pytest.mark.parametrize(("cut", "reader", "opset"), CASES)
def test_parts_of_complex_values(cut: str, reader: str, opset: int) -> None:
    begin = aten("view_as_complex", ["z"], "a")
    nodes = [begin, *of_list(cut, reader, "a"), aten("view_as_real", ["p"], "y")]
    holds(nodes, {"z": Z}, opset)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("reader", ["at a place", "length"])
def test_what_needs_a_list(cut: str, reader: str) -> None:
    last = aten("len", ["list"], "y", "t")
    if reader == "at a place":
        last = aten("__getitem__", ["list", "at"], "y", "t")
    name, _, overload = cut.partition(".")
    nodes = [*NUMBERS, aten(name, ["x", *CUTS[cut]], "list", overload), last]
    feeds: dict[str, Any] = {"x": X}
    for at in (0, 2, -1) if reader == "at a place" else (None,):
        holds(nodes, feeds if at is None else {**feeds, "at": np.array(at)}, 13)


@pytest.mark.parametrize("opset", [9, 17])
@pytest.mark.parametrize("kind", ["meshgrid", "broadcast_tensors", "atleast_2d", "nonzero_numpy"])
def test_lists_that_are_not_cut(kind: str, opset: int) -> None:
    made = [prim("ListConstruct", ["p", "q"], ["pair"]), aten(kind, ["pair"], "list")]
    feeds: dict[str, Any] = {"p": X[0, 0], "q": X[1, 1]}
    if kind == "nonzero_numpy":
        made, feeds = [aten(kind, ["x"], "list")], {"x": np.rint(X)}
    for last in (
        aten("__getitem__", ["list", "last"], "y", "t"),
        aten("stack", ["list", "one"], "y"),
    ):
        holds([*NUMBERS, *made, last], feeds, opset)


def test_a_place_that_is_computed_in_a_list_of_complex_values_is_refused() -> None:
    begin = aten("view_as_complex", ["z"], "a")
    nodes = [begin, *NUMBERS, aten("tensor_split", ["a", "three", "one"], "list")]
    nodes += [aten("__getitem__", ["list", "at"], "p", "t"), aten("view_as_real", ["p"], "y")]
    feeds = {"z": Z, "at": np.array(1)}
    with pytest.raises(LeftoverError):
        mended(model_of(nodes, feeds), feeds)


def test_parts_of_run_time_sizes_are_read_at_known_places() -> None:
    model = model_of([*of_list("tensor_split", "the last", "x")], {"x": X}, 13)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "N"
    model.graph.node.append(helper.make_node("Identity", ["p"], ["y"]))
    for length in (8, 7, 2):
        np.testing.assert_array_equal(
            mended(model, {"x": X[:, :length]}), np.array_split(X[:, :length], 3, 1)[-1]
        )


WRITTEN: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "index_put": ([aten("index_put", ["a", "l", "b", "no"], "d")], {"i": np.array([2, 0, 1])}),
    "index_put, added": (
        [aten("index_put", ["a", "l", "b", "yes"], "d")],
        {"i": np.array([2, 0, 2])},
    ),
    "index_copy": ([aten("index_copy", ["a", "zero", "i", "b"], "d")], {"i": np.array([2, 0, 1])}),
    "index_add": (
        [aten("index_add", ["a", "zero", "i", "b", "half"], "d")],
        {"i": np.array([2, 0, 2])},
    ),
    "index_fill": (
        [aten("index_fill", ["a", "zero", "i", "number"], "d", "int_Scalar")],
        {"i": np.array([2, 0])},
    ),
    "scatter": (
        [aten("scatter", ["a", "one", "i", "b"], "d", "src")],
        {"i": np.argsort(X, 1)},
    ),
    "scatter of a number": (
        [aten("scatter", ["a", "one", "i", "half"], "d", "value")],
        {"i": np.argsort(X, 1)[:, :3]},
    ),
    "scatter_add": (
        [aten("scatter_add", ["a", "one", "i", "b"], "d")],
        {"i": np.argsort(X, 1) % 3},
    ),
    "masked_scatter": ([aten("masked_scatter", ["a", "i", "b"], "d")], {"i": X > 0}),
    "masked_select": ([aten("masked_select", ["a", "i"], "d")], {"i": X > 0}),
    "fill": ([aten("fill", ["a", "number"], "d", "Scalar")], {}),
}


@pytest.mark.slow
@pytest.mark.parametrize("opset", [9, 11, 17])
@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_into_complex_values(name: str, opset: int) -> None:
    nodes, feeds = WRITTEN[name]
    begin = [
        *NUMBERS,
        *(constant(n, np.array(v)) for n, v in (("yes", True), ("no", False), ("half", 0.5))),
        constant("number", np.array(1 + 2j)),
        aten("view_as_complex", ["z"], "a"),
        *([aten("view_as_complex", ["w"], "b")] if "b" in nodes[0].input else []),
        *([prim("ListConstruct", ["i"], ["l"])] if "l" in nodes[0].input else []),
    ]
    given = {"z": Z, **({"w": Z[::-1].copy()} if "b" in nodes[0].input else {}), **feeds}
    agree([*begin, *nodes, aten("view_as_real", ["d"], "y")], given, opset)


@pytest.mark.parametrize("opset", [9, 17])
def test_which_complex_values_are_there(opset: int) -> None:
    z = Z.copy()
    z[0], z[1, ..., 0], z[2, 3] = 0, 0, 0
    begin = [*NUMBERS, constant("no", np.array(False)), aten("view_as_complex", ["z"], "a")]
    for kind, rest in (("any", ["one", "no"]), ("all", ["one", "no"]), ("any", [])):
        agree([*begin, aten(kind, ["a", *rest], "y", "dim" if rest else "")], {"z": z}, opset)
    agree([*begin, aten("nonzero", ["a"], "y")], {"z": z}, opset)
