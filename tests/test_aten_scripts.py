"""What scripted modules do with numbers and lists, against Python's own lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnxruntime as ort
import pytest

import surgeon
from surgeon.errors import SurgeonError, VerifyError
from surgeon.reference import Reference

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)
MORE = np.full(3, 7, np.float32)
Change = Callable[[list[Any]], list[Any]]

# The list of rows, of which nothing but its making is known, and one of known elements.
OF_ROWS = "q = SplitToSequence <keepdims = 0> (x)"
KNOWN = (
    "a = Gather (x, zero) b = Gather (x, one) c = Gather (x, two) d = Gather (x, three) "
    "q = SequenceConstruct (a, b, c, d)"
)


def _popped(place: int) -> Change:
    return lambda rows: [row for at, row in enumerate(rows) if at != place % len(rows)]


def _inserted(place: int) -> Change:
    def change(rows: list[Any]) -> list[Any]:
        rows.insert(place, MORE)
        return rows

    return change


def _replaced(place: int) -> Change:
    def change(rows: list[Any]) -> list[Any]:
        rows[place] = MORE
        return rows

    return change


CALLS: list[tuple[str, str, Change]] = [
    ("append", "q, m", lambda rows: [*rows, MORE]),
    *((f"insert {p}", f"q, p{p}, m".replace("-", "_"), _inserted(p)) for p in (0, 2, -1, -9, 9)),
    *((f"pop {p}", f"q, p{p}".replace("-", "_"), _popped(p)) for p in (0, 2, -1, -3)),
    *((f"Delete {p}", f"q, p{p}".replace("-", "_"), _popped(p)) for p in (1, -2)),
    *((f"_set_item {p}", f"q, p{p}, m".replace("-", "_"), _replaced(p)) for p in (0, 3, -1, -4)),
    ("list", "q", lambda rows: rows),
    ("copy", "q", lambda rows: rows),
    ("add", "q, n", lambda rows: [*rows, MORE, MORE]),
    ("add", "n, q", lambda rows: [MORE, MORE, *rows]),
    ("extend", "q, n", lambda rows: [*rows, MORE, MORE]),
]
PLACES = sorted({int(name.split()[1]) for name, _, _ in CALLS if " " in name})


def _run(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options)
    found: list[Any] = session.run(None, feeds)
    return found


def _model(operator: str, arguments: str, making: str, *, computed: bool) -> onnx.ModelProto:
    names = [f"p{p}".replace("-", "_") for p in PLACES]
    words = {"zero": 0, "one": 1, "two": 2, "three": 3}
    every = [*zip(names, PLACES, strict=True), *words.items()]
    numbers = ", ".join(f"int64 {name} = {{{number}}}" for name, number in every)
    first, rest = arguments, ""
    if computed and "p" in arguments:
        place = next(part for part in arguments.split(", ") if part.startswith("p"))
        first, rest = arguments.replace(place, "i"), ", int64 i"
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]>
        g (float[N,3] x, float[3] m{rest}) => (float[K,3] y, int64 k)
          <{numbers}> {{
          {making}
          n = SequenceConstruct (m, m)
          s = org.pytorch.aten.ATen <operator = "{operator}", overload_name = "t"> ({first})
          y = ConcatFromSequence <axis = 0, new_axis = 1> (s)
          k = org.pytorch.aten.ATen <operator = "len", overload_name = "t"> (s)
        }}"""
    )


@pytest.mark.parametrize("making", [OF_ROWS, KNOWN], ids=["rows", "known"])
@pytest.mark.parametrize("computed", [False, True], ids=["constant", "computed"])
@pytest.mark.parametrize(
    ("call", "arguments", "change"), CALLS, ids=[f"{c} {a}" for c, a, _ in CALLS]
)
def test_a_list_is_changed_as_python_changes_it(
    call: str, arguments: str, change: Change, making: str, computed: bool
) -> None:
    operator, _, place = call.partition(" ")
    if computed and not place:
        return
    result = surgeon.apply(_model(operator, arguments, making, computed=computed), "aten")
    feeds = {"x": ROWS, "m": MORE} | ({"i": np.asarray(int(place))} if computed else {})
    y, k = _run(result.model.to_proto(), feeds)
    want = np.stack(change(list(ROWS)))
    np.testing.assert_array_equal(y, want)
    assert k == len(want)


@pytest.mark.parametrize(
    ("nodes", "lost"),
    [
        ("s = org.pytorch.aten.append (q, m) y = SequenceAt (q, zero)", True),
        ("y = SequenceAt (q, zero) s = org.pytorch.aten.append (q, m)", False),
        ("s = org.pytorch.aten.append (q, m) y = SequenceAt (s, zero)", False),
        ("s = org.pytorch.aten.pop (q, zero) y = SequenceAt (q, zero)", True),
    ],
)
def test_a_change_that_nothing_reads_is_no_change_of_what_is_read(nodes: str, lost: bool) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]>
        g (float[N,3] x, float[3] m) => (float[3] y) <int64 zero = {{0}}> {{ {OF_ROWS} {nodes} }}"""
    )
    if not lost:
        surgeon.apply(model, "aten")
        return
    with pytest.raises(VerifyError, match="`q`: a list that is changed in place"):
        surgeon.apply(model, "aten")
    surgeon.apply(model, "aten", allow=["unread"])


def test_what_pytorch_before_1_8_changes_is_refused() -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 12, "org.pytorch.aten": 1],
            producer_name: "pytorch", producer_version: "1.5">
        g (float[N,3] x, float[3] m) => (float[3] y) <int64 zero = {{0}}> {{
          {OF_ROWS} s = org.pytorch.aten.pop (q, zero) y = SequenceAt (s, zero) }}"""
    )
    with pytest.raises(SurgeonError, match=r"before 1\.8 does not say"):
        surgeon.apply(model, "aten")


def test_the_type_of_a_list_in_a_loop_is_declared_as_it_is_proven() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]>
        g (float[N,3] x, int64 n) => (float[K,3] y) <bool yes = {1}, int64 zero = {0}> {
          q = SequenceConstruct (x)
          s, t = Loop (n, yes, q, x) <
            body = turn (int64 i, bool go, seq(float) r, float v)
              => (bool on, seq(float) l, float w) {
              on = Identity (go)
              w = Identity (v)
              l = org.pytorch.aten.append (r, v)
            }
          >
          y = org.pytorch.aten.cat (s, zero)
        }"""
    )
    body = model.graph.node[1].attribute[0].g
    body.input[2].type.Clear()
    body.input[3].type.Clear()
    body.output[1].type.sequence_type.elem_type.Clear()
    repaired = surgeon.apply(model, "aten").model.to_proto()
    (y,) = _run(repaired, {"x": ROWS, "n": np.asarray(2)})
    np.testing.assert_array_equal(y, np.concatenate([ROWS] * 3))


def test_items_that_turns_put_into_a_list_may_differ_in_size() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]>
        g (float[N] x, int64 n) => (int64[1] a, int64[1] b, bool[1] same)
          <bool yes = {1}, int64 zero = {0}, int64 one = {1}, int64[1] begin = {0}> {
          q = SequenceEmpty ()
          s = Loop (n, yes, q) <
            body = turn (int64 i, bool go, seq(float) r) => (bool on, seq(float) l) {
              on = Identity (go)
              j = Add (i, one)
              end = Unsqueeze (j, begin)
              v = Slice (x, begin, end)
              l = org.pytorch.aten.append (r, v)
            }
          >
          c = SequenceAt (s, zero)
          d = SequenceAt (s, one)
          a = Shape (c)
          b = Shape (d)
          same = Equal (a, b)
        }"""
    )
    aten = surgeon.apply(model, "aten").model.to_proto()
    repaired = surgeon.apply(aten, "clean").model.to_proto()
    a, b, same = _run(repaired, {"x": np.zeros(5, np.float32), "n": np.asarray(3)})
    assert (a, b, same) == (1, 2, False)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["size", "factor", "anew"])
@pytest.mark.parametrize(
    ("mode", "rank"),
    [
        *((mode, rank) for mode in ("nearest", "nearest-exact", "area") for rank in (3, 4, 5)),
        *(("linear", 3), ("bilinear", 4), ("bicubic", 4), ("trilinear", 5)),
    ],
)
def test_interpolation_is_that_of_pytorch(mode: str, rank: int, how: str) -> None:
    torch = pytest.importorskip("torch")
    shape = (2, 3, 7, 5, 6)[:rank]
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    size = [9, 4, 8][: rank - 2]
    given: dict[str, Any] = {"size": size} if how == "size" else {"scale_factor": 1.7}
    if how == "anew":
        given["recompute_scale_factor"] = True
    if mode.endswith(("linear", "cubic")):
        given["align_corners"] = how == "size"
    want = torch.nn.functional.interpolate(torch.from_numpy(x), mode=mode, **given).numpy()
    arguments = ["x", "size" if how == "size" else "", "" if how == "size" else "factor", "mode"]
    arguments += ["corners" if "align_corners" in given else "", "yes" if how == "anew" else ""]
    dims = ",".join(f"d{i}" for i in range(rank))
    inputs = dims if mode != "nearest-exact" else ",".join(map(str, shape))
    sizes = ", ".join(map(str, size))
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]>
        g (float[{inputs}] x) => (float[{dims.replace("d", "e")}] y)
          <int64[{rank - 2}] size = {{{sizes}}}, double factor = {{1.7}}, bool yes = {{1}},
           bool corners = {{{int(how == "size")}}}> {{
          mode = Constant <value_string = "{mode}"> ()
          y = org.pytorch.aten.ATen <operator = "__interpolate"> ({", ".join(arguments)}, )
        }}"""
    )
    result = surgeon.apply(model, "aten")
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"
    (y,) = _run(result.model.to_proto(), {"x": x})
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("bound", ["start", "end"])
def test_a_bound_that_a_script_left_out_is_where_the_axis_begins_or_ends(bound: str) -> None:
    make, number = onnx.helper.make_node, onnx.helper.make_tensor
    left_out = make("Unsqueeze", [""], ["nothing"], axes=[0])
    bounds = ["nothing", "half"] if bound == "start" else ["half", "nothing"]
    nodes = [
        make("Shape", ["x"], ["shape"]),
        make("Slice", ["shape"], ["length"], starts=[1], ends=[2], axes=[0]),
        make("Div", ["length", "two"], ["half"]),
        left_out,
        make("DynamicSlice", ["x", *bounds, "axis"], ["part"]),
        make("ATen", ["part"], ["y"], domain="org.pytorch.aten", operator="relu"),
    ]
    value, real = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    constants = [number(n, onnx.TensorProto.INT64, [1], [v]) for n, v in (("two", 2), ("axis", 1))]
    graph = onnx.helper.make_graph(
        nodes, "g", [value("x", real, ["n", "m"])], [value("y", real, ["n", "k"])], constants
    )
    opsets = [onnx.helper.make_opsetid("", 9), onnx.helper.make_opsetid("org.pytorch.aten", 1)]
    result = surgeon.apply(
        onnx.helper.make_model(graph, opset_imports=opsets, ir_version=4), "aten"
    )
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"
    for length in (1, 2, 7):
        x = np.random.default_rng(length).normal(size=(3, length)).astype(np.float32)
        part = x[:, : length // 2] if bound == "start" else x[:, length // 2 :]
        np.testing.assert_array_equal(
            _run(result.model.to_proto(), {"x": x})[0], np.maximum(part, 0)
        )


def test_numbers_out_of_a_list_go_into_standard_operators() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 13, "org.pytorch.aten": 1, "prim": 1]>
        g (float[n,m] x) => (float[k] y) <int64[1] first = {0}> {
          s = org.pytorch.aten.ATen <operator = "size"> (x)
          a, b = prim.ListUnpack (s)
          c = Mul (a, b)
          to = Unsqueeze (c, first)
          y = Reshape (x, to)
        }"""
    )
    result = surgeon.apply(model, "aten")
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"


@pytest.mark.parametrize(
    ("operator", "overload", "second"),
    [
        ("mul", "left_t", "int64 b"),
        ("eq", "int_list", "int64[M] b"),
        ("ne", "int_list", "int64[M] b"),
        ("index", "list_int", "int64 b"),
    ],
)
def test_what_python_does_with_lists_is_not_what_tensors_do(
    operator: str, overload: str, second: str
) -> None:
    """[1, 2] * 2 has four elements, and two lists are equal or not as a whole."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]>
        g (int64[N] a, {second}) => (int64[K] y) {{
          y = org.pytorch.aten.ATen
            <operator = "{operator}", overload_name = "{overload}"> (a, b)
        }}"""
    )
    with pytest.raises(SurgeonError, match="is TorchScript's own, on lists"):
        surgeon.apply(model, "aten", verify=False)
    feeds = {"a": np.array([1, 2]), "b": np.array([2] if "[" in second else 2)}
    with pytest.raises(SurgeonError, match="is of Python's lists"):
        Reference(model).run(feeds)


def test_the_first_of_what_may_be_a_list_is_not_the_list() -> None:
    """Old files write an element of a list of one as that element and a place."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "my.domain": 1, "org.pytorch.aten": 1]>
        g (float[N] x) => (float[K] y) <int64 zero = {0}> {
          s = my.domain.Parts (x)
          y = org.pytorch.aten.ATen <operator = "__getitem__"> (s, zero)
        }"""
    )
    with pytest.raises(SurgeonError, match="whether `s` is a list or its only element is not"):
        surgeon.apply(model, "aten", verify=False)


@pytest.mark.parametrize(
    ("operator", "overload", "given", "wanted"),  # which PyTorch 2.13 gives
    [
        ("mul", "int_float", (100, 0.29), 28.999999999999996),
        ("add", "float_int", (0.1, 3), 3.1),
        ("sub", "int_float", (1, 0.9), 0.09999999999999998),
        ("div", "int", (1, 3), 1 / 3),
        ("pow", "int", (7, -1), 1 / 7),
        ("pow", "float", (-1.0, 0.5), np.nan),
    ],
)
def test_fractions_are_doubles_and_their_floors_whole(
    operator: str, overload: str, given: tuple[Any, Any], wanted: float
) -> None:
    """The first is what the model is given: an integer, or a double."""
    kind, other = ("int64" if isinstance(number, int) else "double" for number in given)
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]>
        g ({kind} a) => (double x, int64 y)
          <{other} b = {{{given[1]}}}, int64 two = {{2}}> {{
          x = org.pytorch.aten.ATen <operator = "{operator}", overload_name = "{overload}"> (a, b)
          z = org.pytorch.aten.ATen <operator = "pow", overload_name = "int"> (two, two)
          y = org.pytorch.aten.ATen <operator = "ceil", overload_name = "Scalar"> (z)
        }}"""
    )
    feeds = {"a": np.asarray(given[0])}
    [x, y] = Reference(model).run(feeds).values()
    found = _run(surgeon.apply(model, "aten", verify=False).model.to_proto(), feeds)
    for mine in ([x, y], found):
        assert [each.dtype for each in mine] == [np.float64, np.int64]
        np.testing.assert_allclose(mine[0], wanted, rtol=1e-15)
        assert mine[1] == 4


def test_a_size_that_a_fraction_tells_is_that_of_doubles() -> None:
    """Of 100 * 0.29 single precision makes 29."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]>
        g (int64 n) => (int64 y) <double part = {0.29}> {
          a = org.pytorch.aten.ATen <operator = "mul", overload_name = "int_float"> (n, part)
          y = org.pytorch.aten.ATen <operator = "floor", overload_name = "float"> (a)
        }"""
    )
    result = surgeon.apply(model, "aten")
    assert result.report.verdict.status == "equivalent"
    assert _run(result.model.to_proto(), {"n": np.asarray(100)}) == [28]


def test_axes_that_a_script_lists_and_changes_are_known() -> None:
    """`d = list(range(x.dim())); d.append(d.pop(1)); x.permute(d)`."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 13, "org.pytorch.aten": 1]>
        g (float[b,4,h] x) => (float[b,h,4] y) <int64 one = {1}, int64 three = {3}, bool on = {1}> {
          none = SequenceEmpty <dtype = 7> ()
          all = Loop (three, on, none) <body = body (int64 i, bool c, seq(int64) s)
            => (bool d, seq(int64) t) { t = SequenceInsert (s, i) d = Identity (c) }>
          axis = SequenceAt (all, one)
          rest = SequenceErase (all, one)
          axes = SequenceInsert (rest, axis)
          y = org.pytorch.aten.ATen <operator = "permute"> (x, axes)
        }"""
    )
    result = surgeon.apply(model, "aten")
    assert result.report.verdict.status == "equivalent"
    assert [node.op_type for node in result.model.to_proto().graph.node] == ["Transpose"]


@pytest.mark.parametrize(
    "made",
    [
        "n = SequenceEmpty () q = SequenceInsert (n, half) factors = SequenceInsert (q, half)",
        "factors = SplitToSequence <keepdims = 0> (halves)",
    ],
)
def test_numbers_that_a_script_lists_one_by_one(made: str) -> None:
    """`F.interpolate(x, scale_factor=1.5)` in a script puts a factor for each axis into a list."""
    text = f"""
<ir_version: 8, opset_import: ["": 13, "org.pytorch.aten": 1]>
g (float[b,1,4,6] x) => (float[b,1,6,9] y)
<float half = {{1.5}}, float[2] halves = {{1.5, 1.5}}, bool no = {{0}}> {{
  {made}
  y = org.pytorch.aten.ATen <operator = "upsample_bicubic2d"> (x, , no, factors)
}}"""
    result = surgeon.apply(onnx.parser.parse_model(text), "aten")
    assert [n.op_type for n in result.model.to_proto().graph.node][-1] == "Resize"
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent", result.report.verdict.detail
