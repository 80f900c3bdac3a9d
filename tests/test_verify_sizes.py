"""The sizes at which models are compared: found, given, demanded by weights, frozen by tracing."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from verdicts import F32, SCALE, frozen, parse, sizes_of

from surgeon.errors import ForeignError
from surgeon.verify import Verdict, originals, verify
from surgeon.verify.growth import Growth
from surgeon.verify.inputs import required_inputs
from surgeon.verify.sizes import candidates, dynamic_dims, fits


def test_a_batch_that_tracing_froze_is_compared_sample_by_sample() -> None:
    before, after = frozen()
    verdict = verify(before, after)
    assert verdict.status == "equivalent", verdict.detail
    ways = {c.sizes["batch"]: c.by for c in verdict.comparisons}
    assert ways == {
        2: "witness",
        4: "witness, sample by sample",
        5: "witness, sample by sample",
        1: "witness, sample by sample",
    }
    assert len({c.sizes["time"] for c in verdict.comparisons}) >= 3


def test_lengths_of_different_names_are_no_samples() -> None:
    text = """g (float[rows,3] x, float[edges] line) => (int64[rows,3] y)
        <bool no = {0}, int64[1] last = {2}, int64[1] first = {0}> { BODY }"""
    before = parse(text.replace("BODY", "y = org.pytorch.aten.bucketize (x, line, no, no)"))
    opset = before.opset_import.add()
    opset.domain, opset.version = "org.pytorch.aten", 1
    after = parse(
        text.replace(
            "BODY",
            """column = Unsqueeze (x, last)
            below = Less (line, column)
            counted = Cast <to = 7> (below)
            y = ReduceSum <keepdims = 0> (counted, last)""",
        )
    )
    verdict = verify(before, after)  # the witness runs where the edges are in order, of one at most
    assert verdict.status != "differs", verdict.detail


def test_what_is_right_at_the_frozen_batch_only_is_found_wrong_elsewhere() -> None:
    before, after = frozen()
    after.graph.node[-1].output[0] = "sum"
    after.graph.node.append(helper.make_node("Shape", ["x"], ["s4"], end=1))
    after.graph.node.append(helper.make_node("Cast", ["s4"], ["f4"], to=TensorProto.FLOAT))
    half = onnx.numpy_helper.from_array(np.array([0.5], F32), "half")
    after.graph.initializer.append(half)
    after.graph.node.append(helper.make_node("Mul", ["f4", "half"], ["one4"]))
    after.graph.node.append(helper.make_node("Mul", ["sum", "one4"], ["y"]))
    verdict = verify(before, after)
    assert verdict.status == "differs"
    assert "sample by sample" in verdict.detail


def test_a_squeeze_that_drops_a_batch_of_one_is_reported_and_no_difference() -> None:
    before, after = frozen()
    for model in (before, after):
        model.graph.node[-1].output[0] = "all"
        axes = onnx.numpy_helper.from_array(np.array([1, 2]), "plane")
        model.graph.initializer.append(axes)
        nodes = [
            helper.make_node("ReduceMean", ["all"], ["m"], axes=[2], keepdims=1),
            helper.make_node("Squeeze", ["m"], ["y"]),
        ]
        model.graph.node.extend(nodes)
        del model.graph.output[0].type.tensor_type.shape.dim[2]
    verdict = verify(before, after)
    assert verdict.status == "equivalent", verdict.detail
    (skipped,) = verdict.not_compared
    assert skipped.what == "batch=1"
    assert "has shape [2], and samples of the original put together [1, 2]" in skipped.why


def beside_frozen(*nodes: onnx.NodeProto, **constants: Any) -> Verdict:
    """The verdict on models with a frozen batch where nodes give a further output, `z`."""
    before, after = frozen()
    for model in (before, after):
        for name, numbers in constants.items():
            tensor = onnx.numpy_helper.from_array(np.array(numbers), name)
            model.graph.initializer.append(tensor)
        model.graph.node.extend(nodes)
        model.graph.output.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, None))
    return verify(before, after)


def test_what_hangs_on_other_samples_is_not_put_together() -> None:
    verdict = beside_frozen(
        helper.make_node("ReduceMean", ["x"], ["m"], axes=[0]),
        helper.make_node("Sub", ["x", "m"], ["z"]),
    )
    assert verdict.status == "equivalent", verdict.detail
    (skipped,) = verdict.not_compared
    assert skipped.what == "output `z` at batch other than 2"
    assert skipped.why == "its samples depend on one another"
    larger = [c for c in verdict.comparisons if c.by.endswith("sample by sample")]
    assert {o.name for c in larger for o in c.outputs} == {"y"}
    assert {o.name for c in verdict.comparisons for o in c.outputs} == {"y", "z"}


@pytest.mark.parametrize("where", ["along the batch", "to the last of it"])
def test_what_hangs_on_where_samples_stand_is_not_put_together(where: str) -> None:
    nodes = [helper.make_node("CumSum", ["x", "along"], ["z"])]
    if where == "to the last of it":
        nodes = [
            helper.make_node("GatherND", ["x", "last"], ["l"]),
            helper.make_node("Add", ["l", "l"], ["twice"]),
            helper.make_node("ScatterND", ["x", "last", "twice"], ["z"]),
        ]
    verdict = beside_frozen(*nodes, along=0, last=[[-1]])
    assert verdict.status == "equivalent", verdict.detail
    (skipped,) = verdict.not_compared
    assert skipped.what == "output `z` at batch other than 2"
    assert skipped.why == "its samples depend on where they stand"


def test_what_does_not_follow_the_batch_is_not_put_together() -> None:
    before, after = frozen()
    for model in (before, after):
        for name, of in (("u", "x"), ("n", "w")):
            model.graph.node.append(helper.make_node("Shape", [of], [f"{name}0"], end=1))
            model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.INT64, None))
        model.graph.node.append(helper.make_node("Add", ["u0", "i0"], ["u"]))
        model.graph.node.append(helper.make_node("Expand", ["n0", "u0"], ["n"]))
        zero = onnx.numpy_helper.from_array(np.array([0]), "i0")
        if model is before:  # the other has one of this name
            model.graph.initializer.append(zero)
    verdict = verify(before, after)
    assert verdict.status == "equivalent", verdict.detail
    skipped = {each.what: each.why for each in verdict.not_compared}
    assert skipped == {
        "output `u` at batch other than 2": "no input moves it",
        "output `n` at batch other than 2": "no input moves it",
    }


def test_an_output_of_one_row_is_no_sample_of_a_batch_of_one() -> None:
    text = """g (float[batch,4] x) => (float[batch,4] y, float[1,4] m) <int64[2] to = {1, 4}> {
        m = ReduceMean <axes = [0]> (x) TAIL }"""
    frozen_at_one = parse(text.replace("TAIL", "y = Reshape (x, to)"))
    free = parse(text.replace("TAIL", "y = Identity (x)"))
    verdict = verify(frozen_at_one, free)
    assert verdict.status == "equivalent", verdict.detail
    (skipped,) = verdict.not_compared
    assert skipped.what == "output `m` at batch other than 1"
    assert skipped.why.startswith("it is as long at a larger batch")
    larger = [c for c in verdict.comparisons if c.sizes["batch"] > 1]
    assert {o.name for c in larger for o in c.outputs} == {"y"}


def test_a_size_without_numbers_asks_for_no_other_inputs() -> None:
    """The deviation of one row is no number; on ones all of it would be rounding."""
    text = """g (float[t,6] x) => (float[6] y, float[t] z) <float one = {1.0}> {
        m = ReduceMean <axes = [0]> (x)  d = Sub (x, m)  q = Mul (d, d)
        s = ReduceSum <keepdims = 0> (q, first)  n = Shape <end = 1> (x)
        f = Cast <to = 1> (n)  k = Sub (f, one)  y = Div (s, k)
        z = ReduceMean <axes = [1], keepdims = 0> (x) }"""
    model = parse(text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([0]), "first"))
    verdict = verify(model, model)
    assert verdict.status == "equivalent", verdict.detail
    assert verdict.inputs == {"x": "normal"}
    assert 1 in {c.sizes["t"] for c in verdict.comparisons}


def test_a_length_that_is_too_long_is_not_put_down_to_the_batch() -> None:
    """Places are counted by a mask of 0 to 2, and a table holds 64 of them."""
    model = parse("""g (int64[b,s] mask) => (float[b,s,1] y)
        <int64 axis = {1}> {
            places = CumSum (mask, axis) at = Mul (places, mask)
            y = Gather (table, at) }""")
    table = np.arange(64, dtype=np.float32).reshape(64, 1)
    model.graph.initializer.append(onnx.numpy_helper.from_array(table, "table"))
    found = verify(model, model)
    assert found.status == "equivalent"
    assert {c.sizes["b"] for c in found.comparisons} >= {1, 2, 3}
    assert not found.not_compared


def test_a_batch_defined_nowhere_else_is_reported() -> None:
    before, _ = frozen()
    verdict = verify(before, before)
    assert verdict.status == "runs"
    (skipped,) = verdict.not_compared
    assert skipped.what == "batch other than 2"
    assert "nor is the result" in skipped.why


def test_a_size_the_original_wants_is_searched_for() -> None:
    text = """g (float[n,3,t] x) => (float[n,3,8,u] y) <int64[4] to = {0, 0, 8, -1}> {
        y = Reshape(x, to) }"""
    verdict = verify(parse(text), parse(text))
    assert verdict.status == "equivalent"
    times = {c.sizes["t"] for c in verdict.comparisons}
    assert len(times) >= 3
    assert all(t % 8 == 0 for t in times)
    fixed = parse(
        "g (float[n,t] x) => (float[n,24,2] y) <int64[3] to = {0, 24, 2}> { y = Reshape(x, to) }"
    )
    verdict = verify(fixed, fixed)
    assert (verdict.status, sizes_of(verdict)) == ("equivalent", [(1, 48), (2, 48), (3, 48)])
    assert [n.what for n in verdict.not_compared] == ["t other than 48"]


def test_lengths_of_sounds_are_tried_with_one_batch() -> None:
    """Feature extractors run from some hundred samples on, and some take one sound at a time."""
    text = """g (float[batch,n] x) => (float[1,2] y) <int64[1] start = {1199},
        int64[1] end = {1201}, int64[1] axes = {1}, int64[2] shape = {1, 2}> {
        cut = Slice (x, start, end, axes) y = Reshape (cut, shape) }"""
    verdict = verify(parse(text), parse(text))
    assert verdict.status == "equivalent"
    assert {1600, 16_000} <= {c.sizes["n"] for c in verdict.comparisons}


def test_a_dim_on_two_axes_stays_smaller_than_others() -> None:
    model = parse("g (float[n,3,s,s] x, float[n,t] z) => (float[n,3,s,s] y) { y = Relu (x) }")
    inputs = required_inputs(model)
    lists = candidates(dynamic_dims(inputs), inputs, {})
    assert max(lists["s"][:3]) == 64
    assert max(lists["t"][:3]) == 100


def test_a_mask_as_long_as_what_is_kept_and_new_is_found() -> None:
    model = parse(
        """g (float[n,p] kept, float[n,t] x, float[n,m] mask) => (float[n,k] y)
        <int64 zero = {0}, int64 one = {1}> {
            c = Concat <axis = 1> (kept, x)  s = Shape (c)  k = Gather (s, one)
            r = Range (zero, k, one)  g = Gather <axis = 1> (mask, r)  y = Mul (c, g) }"""
    )
    verdict = verify(model, model)
    assert verdict.status == "equivalent", verdict.detail
    found = verdict.comparisons[0].sizes
    assert found["m"] >= found["p"] + found["t"]


def test_the_batch_of_a_recurrent_state_is_that_of_the_input() -> None:
    text = """g (float[a,b] x, float[1,c,2] h) => (float[a,2] y, float[1,a,2] k) {
        z, k = GRU <hidden_size = 2> (s, w, r, , , h) y = Squeeze (k, zero) s = Unsqueeze (x, zero)
        }"""
    proto = parse(text)
    for name, array in (
        ("w", np.ones((1, 6, 96), F32)),
        ("r", np.ones((1, 6, 2), F32)),
        ("zero", np.array([0])),
    ):
        proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    proto.graph.node.insert(0, proto.graph.node.pop())
    verdict = verify(proto, proto)
    assert verdict.status == "equivalent"
    assert all(c.sizes["a"] == c.sizes["c"] and c.sizes["b"] == 96 for c in verdict.comparisons)


def test_an_original_that_crashes_is_not_tried_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[int] = []

    def crash(*_: object) -> None:
        tries.append(1)
        raise ForeignError("onnxruntime crashed (SIGFPE)", where="run", mend="")

    monkeypatch.setattr(originals.Side, "run", crash)
    verdict = verify(parse(SCALE), parse(SCALE))
    assert verdict.status == "runs"
    assert 20 < len(tries) < 50
    assert "no input was found on which the original runs: onnxruntime crashed" in verdict.detail


def test_sizes_and_shapes_that_are_given_are_the_only_ones() -> None:
    text = "g (float[n,a] x, float[n,b] z) => (float[n,c] y) { y = Concat <axis = 1> (x, z) }"
    verdict = verify(parse(text), parse(text), sizes={"a": [5], "n": [1, 4], "b": "a"})
    assert {tuple(sorted(c.sizes.items())) for c in verdict.comparisons} == {
        (("a", 5), ("n", 1)),
        (("a", 5), ("n", 4)),
    }
    assert not verdict.not_compared
    verdict = verify(parse(text), parse(text), shape={"x": [2, 7], "z": [2, "b"]})
    assert {tuple(c.sizes) for c in verdict.comparisons} == {("b",)}


def test_tied_dims_of_two_names_are_found_and_free_ones_differ() -> None:
    tied = parse("g (float[a,2] x, float[b,2] z) => (float[c,2] y) { y = Add(x, z) }")
    verdict = verify(tied, tied)
    assert verdict.status == "equivalent"
    assert len({c.sizes["a"] for c in verdict.comparisons}) >= 3
    free = parse(
        "g (float[1,a] x, float[1,b] z) => (float[1,c] y) { y = Concat <axis = 1> (x, z) }"
    )
    assert any(c.sizes["a"] != c.sizes["b"] for c in verify(free, free).comparisons)


@pytest.mark.parametrize(
    ("body", "channels"),
    [
        pytest.param("i = Cast <to = 1> (x) y = Conv <group = 2> (i, w)", 14, id="Conv"),
        pytest.param("a = Relu (x) y = BatchNormalization (x, s, s, s, s)", 11, id="norm"),
        pytest.param("r = my.f (x, w) y = Identity (r)", 7, id="in a function"),
        pytest.param(
            """o = Constant <value = int64 {1}> () f = Constant <value = bool {0}> ()
            y = org.pytorch.aten._convolution (x, w, , ones, none, ones, f, none, o, f, f, f)""",
            7,
            id="of PyTorch's exporter",
        ),
    ],
)
def test_channels_that_a_weight_demands_are_given(body: str, channels: int) -> None:
    """Whoever names every dim leaves a network that runs with one number of channels."""
    model = parse(f"""g (float[n,c,h,w_] x) => (float[n,d,i,j] y)
        <float[11] s = {{1,2,3,4,5,6,7,8,9,10,11}},
         int64[2] ones = {{1,1}}, int64[2] none = {{0,0}}> {{
        {body}
    }}
    <domain: "my", opset_import: ["": 17]>
    f (v, u) => (o) {{ o = Conv (v, u) }}""")
    weight = np.random.default_rng(0).normal(size=(4, 7, 3, 3)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    if "my.f" not in body:
        del model.functions[:]
    verdict = verify(model, model)
    assert not verdict.not_compared
    assert {each.sizes["c"] for each in verdict.comparisons} == {channels}
    assert len({each.sizes["h"] for each in verdict.comparisons}) > 1


@pytest.mark.parametrize("batch_first", [0, 1])
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize(("operator", "gates"), [("lstm", 4), ("gru", 3), ("rnn_tanh", 1)])
def test_a_recurrent_layer_of_which_nothing_is_fixed_is_compared(
    operator: str, gates: int, listed: bool, batch_first: int
) -> None:
    """Width, number of layers and width of the states are what the weights want."""
    states = ["h", "c"] if operator == "lstm" else ["h"]
    weights = ["wi", "wh", "bi", "bh"]
    lists = f"hx = SequenceConstruct ({', '.join(states)})" if listed and len(states) > 1 else ""
    lists += f" ws = SequenceConstruct ({', '.join(weights)})" if listed else ""
    between = ["hx"] if listed and len(states) > 1 else states
    names = ", ".join(["x", *between, *(["ws"] if listed else weights)])
    inputs = ", ".join(f"float[{s}0, {s}1, {s}2] {s}" for s in states)
    model = parse(f"""g (float[x0, x1, x2] x, {inputs}) => (float[a, b, d] y)
        <bool yes = {{1}}, bool no = {{0}}, int64 one = {{1}}, double zero = {{0}},
         bool first = {{{batch_first}}}> {{
        {lists}
        y, {", ".join(f"l{s}" for s in states)} =
            org.pytorch.aten.{operator} ({names}, yes, one, zero, no, no, first)
    }}""")
    generator = np.random.default_rng(0)
    shapes = [(gates * 5, 4), (gates * 5, 5), (gates * 5,), (gates * 5,)]
    for name, shape in zip(weights, shapes, strict=True):
        weight = generator.normal(size=shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weight, name))
    verdict = verify(model, model)
    assert not verdict.not_compared
    wanted = {"x2": 4, **{f"{s}{axis}": size for s in states for axis, size in ((0, 1), (2, 5))}}
    assert all({d: c.sizes[d] for d in wanted} == wanted for c in verdict.comparisons)
    assert len({c.sizes["x0"] for c in verdict.comparisons}) > 1


def test_both_operands_of_a_bilinear_form_are_as_wide_as_its_weight() -> None:
    model = parse("""g (float[a, b, c] x, float[d, e, f] z) => (float[p, q, r] y) {
        y = org.pytorch.aten.bilinear (x, z, w, )
    }""")
    weight = np.random.default_rng(0).normal(size=(6, 4, 5)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    verdict = verify(model, model)
    assert not verdict.not_compared
    assert {(c.sizes["c"], c.sizes["f"]) for c in verdict.comparisons} == {(4, 5)}


def test_sizes_far_beyond_one_that_runs_are_not_tried() -> None:
    """What takes the square of a length takes a minute there, only to fail."""
    text = """g (float[2,n] x) => (float[2,37] y) <int64[2] shape = {2, 37}> {
        z = Reshape (x, shape) y = Relu (z) }"""
    said: list[str] = []
    verdict = verify(parse(text), parse(text), progress=said.append)
    assert verdict.status == "equivalent"
    assert {c.sizes["n"] for c in verdict.comparisons} == {37}
    tried = {int(line.split("n=")[1].split(",")[0].split()[0]) for line in said if "n=" in line}
    assert 37 < max(tried) <= 32 * 37


def test_the_sizes_of_a_trace_are_tried_where_no_other_runs() -> None:
    """Places of 3 rows of 29 are written to, as the output says; the result says of what."""
    rows, columns = "{0, 1, 2}", f"{{{', '.join(map(str, range(29)))}}}"
    before = parse(
        f"""g (float[n,t] x) => (float[3,29] y) <int64[3,1] i = {rows}, int64[29] j = {columns}> {{
            f = Relu(x)
            y = org.pytorch.aten.index_put(x, i, j, f)
        }}"""
    )
    verdict = verify(before, parse("g (float[n,t] x) => (float[n,t] y) { y = Relu(x) }"))
    assert verdict.status == "equivalent"
    assert {tuple(c.sizes.values()) for c in verdict.comparisons} == {(3, 29)}
    assert verdict.not_compared[-1].what == "other sizes than those of the trace"


def test_images_are_smaller_where_each_place_meets_each() -> None:
    """Of 64 by 37 places each with each is 5.6 million; of channels before, a few thousand."""
    text = """g (float[n,3,h,w] x) => (float[n,p,q] y) <int64[3] to = {0, 3, -1}> {
        line = Reshape (x, to) column = Transpose <perm = [0, 2, 1]> (line) BODY }"""
    some, all_ = (
        parse(text.replace("BODY", body))
        for body in ("y = MatMul (line, column)", "y = MatMul (column, line)")
    )
    assert max(c.sizes["h"] for c in verify(some, some).comparisons) == 100
    found = verify(all_, all_)
    assert found.status == "equivalent"
    assert {c.sizes["h"] for c in found.comparisons} == {9, 16, 24}
    assert Growth(all_).elements({"n": 2, "h": 64, "w": 37}) == 2 * (64 * 37) ** 2
    assert Growth(all_).elements({"n": 2, "h": 64}) == 0
    inputs = required_inputs(all_)
    assert fits({"n": 1, "h": 512, "w": 512}, inputs)
    assert not fits({"n": 1, "h": 512, "w": 512}, inputs, Growth(all_))
    assert fits({"n": 1, "h": 64, "w": 64}, inputs, Growth(all_))
    assert Growth(all_).is_moderate({"n": 2, "h": 64, "w": 37})
    assert not Growth(all_).is_moderate({"n": 2, "h": 224, "w": 224})


def test_images_are_smaller_where_each_of_what_is_found_meets_each() -> None:
    """How many are not 0 is known at run time only, and may be all."""
    text = """g (float[n,3,h,w] x) => (int64[k] y)
            <int64[2] row = {1, -1}, int64[2] column = {-1, 1}, int64 at = {3}> {
        whole = Cast <to = 7> (x) found = NonZero (whole) one = Gather <axis = 0> (found, at)
        r = Reshape (one, row) c = Reshape (one, column) less = Less (r, c)
        n = Cast <to = 7> (less) y = ReduceMax <axes = [1], keepdims = 0> (n) }"""
    model = parse(text)
    count = 2 * 3 * 64 * 37
    assert Growth(model).elements({"n": 2, "h": 64, "w": 37}) == count**2
    assert {c.sizes["h"] for c in verify(model, model).comparisons} == {9, 16, 24}


def test_what_is_added_is_as_long_as_one_of_both() -> None:
    model = parse("g (float[p,q,2] a, float[r,t,2] b) => (float[u,v,2] y) { y = Add (a, b) }")
    sizes = {"p": 2, "q": 64, "r": 2, "t": 64}
    assert Growth(model).elements(sizes) == 2 * 64 * 2


def test_what_is_reshaped_has_as_many_elements_as_it_had() -> None:
    """Windows of an optimum Swin: of lengths that one Reshape after the other brings in."""
    text = "g (float[n,h,w] x, int64[2] k, int64[1] l) => (float[p,q] y) <int64[1] all = {-1}> {"
    sizes = {"n": 2, "h": 64, "w": 37}
    body = "a = Reshape (x, k) b = Neg (a) c = Reshape (b, all) "
    assert Growth(parse(f"{text} {body} y = Reshape (c, k) }}")).elements(sizes) <= 2 * 64 * 37
    one = "k1 = Concat <axis = 0> (l, all) y = Reshape (x, k1) }"
    assert Growth(parse(f"{text} {one}")).elements(sizes) <= 2 * 64 * 37


def test_what_is_cut_or_multiplied_is_no_longer_than_it_was_there() -> None:
    model = parse("""g (float[n,t,8] x, int64[1] l, int64[1] r) => (float[n,p,q] y)
            <int64[1] zero = {0}, int64[1] axis = {1}> {
        a = Slice (x, zero, l, axis) b = Slice (x, zero, r, axis)
        t = Transpose <perm = [0, 2, 1]> (b) y = MatMul (a, t) }""")
    assert Growth(model).elements({"n": 2, "t": 64}) == 2 * 64 * 64


def test_an_image_of_half_the_resolution_of_another_is_found() -> None:
    """Each dim has a name of its own, and both of the larger one are twice those of the smaller."""
    model = parse("""g (float[n,2,h,w] x, float[n,2,p,q] z) => (float[n,2,h,w] y) {
        s = Shape (x) half = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (z)
        same = Reshape (half, s) y = Add (x, same) }""")
    found = verify(model, model)
    assert found.status == "equivalent"
    assert all(c.sizes["p"] == 2 * c.sizes["h"] for c in found.comparisons)


def test_what_is_large_at_every_size_is_compared() -> None:
    model = parse("""g (float[n,1,4] x) => (float[n,4] y) <int64[3] s = {1, 10000000, 4}> {
        c = Expand (x, s) y = ReduceMax <axes = [1], keepdims = 0> (c) }""")
    growth = Growth(model)
    assert growth.elements({"n": 3}) > 1 << 25
    assert fits({"n": 3}, required_inputs(model), growth)


@pytest.mark.slow
def test_sizes_at_which_a_value_becomes_huge_are_not_tried_where_others_fail() -> None:
    """It runs where every place is a channel too: 8 by 8 of 64, and not 224 by 224 of them."""
    text = """g (float[n,64,h,w] x) => (float[n,p,q] y) <int64[3] to = {0, 64, -1}> {
        line = Reshape (x, to) column = Transpose <perm = [0, 2, 1]> (line)
        all = MatMul (column, line) y = Add (all, line) }"""
    found = verify(parse(text), parse(text))
    assert found.status == "equivalent"
    assert all(c.sizes["h"] * c.sizes["w"] <= 64 for c in found.comparisons)


@pytest.mark.parametrize("target", [[0, 0, -1], [0, -1, 6]])
def test_a_decoder_is_compared_where_nothing_is_kept_yet(target: list[int]) -> None:
    text = """g (float[b,p,2,3] past, float[b,t,2,3] new, float[b,s] mask) => (float[b,s,6] y)
        <int64[3] to = {TARGET}, int64[1] at = {-1}> {
            all = Concat <axis = 1> (past, new)
            BODY
            column = Unsqueeze (mask, at)
            y = Mul (rows, column)
        }"""
    one = "rows = Reshape (all, to)"
    two = "a = Reshape (past, to) b = Reshape (new, to) rows = Concat <axis = 1> (a, b)"
    before = parse(text.replace("BODY", one).replace("TARGET", "0, 0, 6"))
    after = parse(text.replace("BODY", two).replace("TARGET", ", ".join(map(str, target))))
    verdict = verify(before, after)
    assert 0 in {c.sizes["p"] for c in verdict.comparisons} or "p=0" in verdict.detail
    assert verdict.status == ("broken" if target[-1] == -1 else "equivalent"), verdict.detail


def test_a_value_that_is_joined_with_itself_is_not_kept_from_a_run() -> None:
    text = """g (float[b,h,2] x) => (float[b,n,2] y, float[b,h,2] z) <int64[3] to = {0, TO, 2}> {
        y = Concat <axis = 1> (x, x)  z = Reshape (x, to) }"""
    verdict = verify(parse(text.replace("TO", "0")), parse(text.replace("TO", "-1")))
    assert verdict.status == "equivalent", verdict.detail
    assert 0 not in {c.sizes["h"] for c in verdict.comparisons}
