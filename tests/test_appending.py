"""Lists that a Loop fills are results of its turns, however they were written and are read."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from truth import parse

import surgeon
from surgeon.reference import Reference
from surgeon.runtime import Session

LISTS = ("Sequence", "ListConstruct", "append", "ConcatFromSequence")
pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) / 7


def standard(body: str, behind: str, *, begins: str = "SequenceEmpty ()") -> str:
    """A Loop over the second axis of x that carries a list `all`, and what is read of it."""
    return f"""
        g (float[b,t,4] x) => (float y)
        <int64 one = {{1}}, bool go = {{1}}, int64[1] first = {{0}}, int64 front = {{0}},
         int64 last = {{-1}}, int64 second = {{1}}, float half = {{0.5}}> {{
            sizes = Shape (x) count = Gather (sizes, one)
            start = Gather <axis = 1> (x, front) none = {begins}
            h, all = Loop (count, go, start, none) <body = turn (
                int64 i, bool c, float[b,4] state, seq(float[p,q]) held) => (c2, h2, held2) {{
                c2 = Identity (c) row = Gather <axis = 1> (x, i)
                scaled = Mul (state, half) h2 = Add (scaled, row)
                {body}
            }}>
            {behind}
        }}"""


APPENDED = "held2 = SequenceInsert (held, h2)"
READS = {
    "stacked in front": "y = ConcatFromSequence <axis = 0, new_axis = 1> (all)",
    "stacked inside": "y = ConcatFromSequence <axis = 1, new_axis = 1> (all)",
    "stacked behind": "y = ConcatFromSequence <axis = -1, new_axis = 1> (all)",
    "joined in front": "y = ConcatFromSequence <axis = 0> (all)",
    "joined behind": "y = ConcatFromSequence <axis = 1> (all)",
    "its first": "y = SequenceAt (all, front)",
    "its last": "y = SequenceAt (all, last)",
    "how many": "n = SequenceLength (all) y = Cast <to = 1> (n)",
    "several": """
        p = ConcatFromSequence <axis = 1, new_axis = 1> (all) q = SequenceAt (all, last)
        r = Unsqueeze (q, first) s = Transpose <perm = [1, 0, 2]> (r) t = Add (p, s)
        n = SequenceLength (all) f = Cast <to = 1> (n) y = Mul (t, f)
    """,
}


def operators(graph: onnx.GraphProto) -> list[str]:
    """The operators of a graph and of its bodies."""
    found = []
    for node in graph.node:
        found.append(node.op_type)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found += operators(attribute.g)
    return found


def cleaned(text: str, opset: int = 13, *, stays: bool = False) -> onnx.ModelProto:
    """What `clean` makes of it, which computes the same at three sizes and has no list left."""
    model = parse(text, opset=opset)
    saved = surgeon.apply(model, "clean").model.to_proto()
    left = [op for op in operators(saved.graph) if op.startswith(LISTS)]
    assert bool(left) == stays, left
    for x in (X, X[:1], np.concatenate([X, X + 1, X - 2], 1)):
        want, got = (Session(m).run({"x": x})["y"] for m in (model, saved))
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-6)
    return saved


@pytest.mark.parametrize("read", READS)
def test_a_list_is_what_the_turns_give(read: str) -> None:
    for opset in (13, 18):
        cleaned(standard(APPENDED, READS[read]), opset)


@pytest.mark.parametrize("read", READS)
def test_what_is_put_in_front_of_the_others(read: str) -> None:
    cleaned(standard("held2 = SequenceInsert (held, row, front)", READS[read]))


@pytest.mark.parametrize("read", READS)
def test_a_list_in_which_something_is_before_the_first_turn(read: str) -> None:
    begins = "SequenceConstruct (start, start)"
    cleaned(standard(APPENDED, READS[read], begins=begins))
    front = "held2 = SequenceInsert (held, row, front)"
    cleaned(standard(front, READS[read], begins=begins))


@pytest.mark.parametrize("read", READS)
def test_what_a_turn_makes_of_what_the_last_one_put_there(read: str) -> None:
    body = """
        latest = SequenceAt (held, last) again = Mul (latest, half) more = Add (again, h2)
        held2 = SequenceInsert (held, more)
    """
    cleaned(standard(body, READS[read], begins="SequenceConstruct (start)"))
    cleaned(
        standard(body, READS[read], begins="SequenceConstruct (h0, start)").replace(
            "none =", "h0 = Neg (start) none ="
        )
    )


def test_what_grows_from_turn_to_turn_stays_a_list() -> None:
    body = """
        latest = SequenceAt (held, last) more = Concat <axis = 0> (latest, h2)
        held2 = SequenceInsert (held, more)
    """
    behind = READS["joined in front"]
    cleaned(standard(body, behind, begins="SequenceConstruct (start)"), stays=True)


@pytest.mark.parametrize("read", READS)
def test_several_that_every_turn_puts_there(read: str) -> None:
    body = "more = SequenceInsert (held, h2) o = Neg (row) held2 = SequenceInsert (more, o)"
    cleaned(standard(body, READS[read]))
    cleaned(standard(body, READS[read], begins="SequenceConstruct (start)"), 18)


def test_an_item_at_a_place_that_is_computed() -> None:
    for place in ("n = Sub (count, one)", "n = Sub (front, one)"):
        cleaned(standard(APPENDED, f"{place} y = SequenceAt (all, n)"))
        behind = f"p = SequenceAt (all, front) {place} q = SequenceAt (all, n) y = Add (p, q)"
        cleaned(standard(APPENDED, behind, begins="SequenceConstruct (start)"))


@pytest.mark.parametrize(
    ("bounds", "part"), [("1, 9223372036854775807", slice(1, None)), ("-2, -1", slice(-2, -1))]
)
def test_a_part_of_a_list(bounds: str, part: slice) -> None:
    """PyTorch's exporter writes it as a Slice, which no runtime loads."""
    start, end = bounds.split(", ")
    behind = """
        whole = ConcatFromSequence <axis = 0, new_axis = 1> (all)
        some = Slice (all, from, to, first) n = SequenceLength (some) f = Cast <to = 1> (n)
        joined = ConcatFromSequence <axis = 1, new_axis = 1> (some) y = Mul (joined, f)
    """
    text = standard(APPENDED, behind).replace("(float y)", "(float y, float whole)")
    text = text.replace(
        "<int64 one", f"<int64[1] from = {{{start}}}, int64[1] to = {{{end}}}, int64 one"
    )
    saved = surgeon.apply(parse(text, opset=13), "clean", verify=False).model.to_proto()
    assert not [op for op in operators(saved.graph) if op.startswith(LISTS)]
    found = Session(saved).run({"x": X})
    want = found["whole"][part]
    np.testing.assert_array_equal(found["y"], np.stack(list(want), 1) * len(want))


def test_the_number_of_turns_is_known_behind_it() -> None:
    behind = READS["stacked inside"].replace("y =", "s =") + "\ny = Add (s, x)"
    saved = cleaned(standard(APPENDED, behind))
    shape = onnx.shape_inference.infer_shapes(saved).graph.output[0].type.tensor_type.shape
    assert len(shape.dim) == 3


def test_two_lists_and_what_the_loop_gave_before() -> None:
    text = """
        g (float[b,t,4] x) => (float y)
        <int64 one = {1}, bool go = {1}, int64 front = {0}, int64[2] axes = {0, 2}> {
            sizes = Shape (x) count = Gather (sizes, one)
            none = SequenceEmpty () nothing = SequenceEmpty () start = Gather <axis = 1> (x, front)
            all, h, others, rows = Loop (count, go, none, start, nothing) <body = turn (
                int64 i, bool c, seq(float) held, float[b,4] state, seq(float) kept)
                => (c2, held2, h2, kept2, row) {
                c2 = Identity (c) row = Gather <axis = 1> (x, i) h2 = Add (state, row)
                sum = ReduceSum <keepdims = 0> (h2) held2 = SequenceInsert (held, h2)
                kept2 = SequenceInsert (kept, sum)
            }>
            a = ConcatFromSequence <axis = 0, new_axis = 1> (all)
            b = ConcatFromSequence <axis = 0, new_axis = 1> (others)
            c = Unsqueeze (b, axes) d = Transpose <perm = [1, 0, 2]> (c)
            e = Add (a, rows) f = Add (e, h) y = Add (f, d)
        }"""
    cleaned(text)


def test_a_loop_that_ends_before_its_last_turn() -> None:
    body = f"{APPENDED} two = Add (one, one) few = Less (i, two) c3 = And (c, few)"
    text = standard(body, READS["stacked in front"]).replace("(c2, h2", "(c3, h2")
    cleaned(text)


def test_a_list_into_which_nothing_was_put_is_empty() -> None:
    text = standard(APPENDED, READS["how many"]).replace("Loop (count, go", "Loop (front, go")
    saved = surgeon.apply(parse(text, opset=13), "clean").model.to_proto()
    assert Session(saved).run({"x": X})["y"] == 0


@pytest.mark.parametrize(
    ("body", "behind", "begins"),
    [
        # of another shape every turn
        ("e = Add (i, one) n = Unsqueeze (e, first) axis = Add (first, one) "
         "part = Slice (x, first, n, axis) held2 = SequenceInsert (held, part)",
         "y = ConcatFromSequence <axis = 1> (all)", "SequenceEmpty ()"),
        # read inside, before the turn is over
        ("more = SequenceInsert (held, h2) n = SequenceLength (more) f = Cast <to = 1> (n) "
         "k = Mul (h2, f) held2 = SequenceInsert (more, k)", READS["stacked in front"],
         "SequenceEmpty ()"),
        # one is there before
        (APPENDED, READS["joined in front"], "SequenceConstruct (wide)"),
    ],
    ids=["other shapes", "read inside", "begun otherwise"],
)  # fmt: skip
def test_other_lists_stay(body: str, behind: str, begins: str) -> None:
    text = standard(body, behind, begins=begins)
    wide = "wide = Concat <axis = 0> (start, start) none ="
    cleaned(text.replace("none =", wide) if "wide" in begins else text, 16, stays=True)


def test_a_list_that_is_given_twice_stays() -> None:
    text = """
        g (float[b,t,4] x) => (float y) <int64 one = {1}, bool go = {1}> {
            sizes = Shape (x) count = Gather (sizes, one) none = SequenceEmpty ()
            all, before = Loop (count, go, none, none) <body = turn (
                int64 i, bool c, seq(float) held, seq(float) old) => (c2, held2, held3) {
                c2 = Identity (c) row = Gather <axis = 1> (x, i)
                held2 = SequenceInsert (held, row) held3 = Identity (held)
            }>
            p = ConcatFromSequence <axis = 1, new_axis = 1> (all)
            n = SequenceLength (before) f = Cast <to = 1> (n) y = Add (p, f)
        }"""
    cleaned(text, 16, stays=True)


def scripted(text: str, opset: int) -> onnx.ModelProto:
    """A model with lists of TorchScript's own, as PyTorch's exporter leaves them."""
    model = parse(text, opset=opset)
    for domain in ("org.pytorch.aten", "prim"):
        model.opset_import.add(domain=domain, version=1)
    return model


@pytest.mark.parametrize(
    "put",
    [
        "held2 = org.pytorch.aten.append (held, h2)",
        "listed = prim.ListConstruct (h2) held2 = org.pytorch.aten.add (held, listed)",
    ],
    ids=["append", "plus"],
)
def test_lists_of_scripts_before_onnx_had_any(put: str) -> None:
    text = standard(put, "y = org.pytorch.aten.stack (all, one)", begins="prim.ListConstruct ()")
    for opset in (9, 11, 13):
        model = scripted(text, opset)
        saved = surgeon.apply(model, "aten").model.to_proto()
        assert "Loop" in operators(saved.graph)
        assert not [op for op in operators(saved.graph) if op.startswith(LISTS)]
        got, want = (m.run({"x": X})["y"] for m in (Session(saved), Reference(model)))
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_a_loop_carries_something_where_it_must() -> None:
    text = """
        g (float[b,t,4] x) => (float y) <int64 one = {1}, bool go = {1}> {
            sizes = Shape (x) count = Gather (sizes, one) none = prim.ListConstruct ()
            all = Loop (count, go, none) <body = turn (int64 i, bool c, seq(float) held)
                => (c2, held2) {
                c2 = Identity (c) row = Gather <axis = 1> (x, i)
                held2 = org.pytorch.aten.append (held, row)
            }>
            y = org.pytorch.aten.stack (all, one)
        }"""
    for opset, carried in ((9, 1), (13, 0)):
        saved = surgeon.apply(scripted(text, opset), "aten").model.to_proto()
        loop = next(node for node in saved.graph.node if node.op_type == "Loop")
        assert len(loop.input) == 2 + carried
        np.testing.assert_array_equal(Session(saved).run({"x": X})["y"], X)
