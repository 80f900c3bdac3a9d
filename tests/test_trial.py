"""Every rewrite is compared with what it replaces: wrong ones are refused, right ones are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from trials import F32, Build, W, attempt, op
from truth import model_of

import surgeon
from surgeon.authoring import rule
from surgeon.isolation import isolation
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused
from surgeon.runtime import blind
from surgeon.trial.cutting import FAR


def split_swapped(d: Draft, v: Mapping[str, Any]) -> Any:
    first, second = d.op("Split", v["x"], d.constant([3, 1]), outputs=2, axis=1)
    return second, first


def slice_to(bound: Callable[[Draft, Any], Any]) -> Build:
    def build(d: Draft, v: Mapping[str, Any]) -> Any:
        return d.op("Slice", v["x"], d.constant([0]), bound(d, v["x"]), d.constant([1]))

    return build


def half_rounded_up(d: Draft, x: gs.Tensor) -> Any:
    """Right at even sizes only."""
    size = d.op("Gather", d.op("Shape", x), d.constant([1]))
    return d.op("Div", d.op("Add", size, d.constant([1])), d.constant([2]))


def half(d: Draft, x: gs.Tensor) -> Any:
    size = d.op("Gather", d.op("Shape", x), d.constant([1]))
    return d.op("Sub", size, half_rounded_up(d, x))


def softmax_from_parts(d: Draft, v: Mapping[str, Any]) -> Any:
    power = d.op("Exp", d.op("Sub", v["x"], d.op("ReduceMax", v["x"], d.constant([1]))))
    return d.op("Div", power, d.op("ReduceSum", power, d.constant([1])))


POOL = "y = AveragePool <*rest> (x)"
CONV = "y = Conv <pads = [1, 1, 1, 1]> (x, k, c)"
PADS = [1, 1, 1, 1]
WRONG: dict[str, tuple[str, str, Build]] = {
    "swapped operands": ("sub", "y = Sub (x, z)", op("Sub", "z", "x")),
    "another operator": ("sub", "y = Sub (x, z)", op("Add", "x", "z")),
    "another axis": ("softmax", "y = Softmax (x)", op("Softmax", "x", axis=2)),
    "another order": ("concat", "y = Concat <axis = 1> (x, z)", op("Concat", "z", "x", axis=1)),
    "padding counted": (
        "pool",
        POOL,
        op("AveragePool", "x", kernel_shape=[3, 3], strides=[2, 2], pads=PADS, count_include_pad=1),
    ),
    "maximum for mean": (
        "pool",
        POOL,
        op("MaxPool", "x", kernel_shape=[3, 3], strides=[2, 2], pads=PADS),
    ),
    "window off by one": (
        "pool",
        POOL,
        op("AveragePool", "x", kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 2, 2]),
    ),
    "window without an end": (
        "pool",
        POOL,
        op("AveragePool", "x", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 0, 0]),
    ),
    "lost bias": ("conv", CONV, op("Conv", "x", "k", pads=PADS)),
    "other padding": ("conv", CONV, op("Conv", "x", "k", "c", pads=[0, 1, 2, 1])),
    "kernel turned over": (
        "conv",
        CONV,
        lambda d, v: d.op("Conv", v["x"], d.constant(W[..., ::-1].copy()), v["c"], pads=PADS),
    ),
    "kernel a little off": (
        "conv",
        CONV,
        lambda d, v: d.op("Conv", v["x"], d.constant(W * F32(1.002)), v["c"], pads=PADS),
    ),
    "one weight off": (
        "gemm",
        "y = Gemm (x, k, c)",
        lambda d, v: d.op(
            "Gemm", v["x"], d.constant(W[0, 0] + np.eye(3, dtype=F32) * F32(1e-2)), v["c"]
        ),
    ),
    "transposed weight": ("gemm", "y = Gemm (x, k, c)", op("Gemm", "x", "k", "c", transB=1)),
    "wrong at odd sizes only": ("halves", "y = Slice (x, s, e, a)", slice_to(half_rounded_up)),
    "another dtype": ("cast", "y = Cast <to = 6> (x)", op("Cast", "x", to=7)),
    "sum for mean": (
        "mean",
        "y = ReduceMean <axes = [2]> (x)",
        lambda d, v: d.op("ReduceSum", v["x"], d.constant([2])),
    ),
    "another shape": (
        "mean",
        "y = ReduceMean <axes = [2]> (x)",
        lambda d, v: d.op("ReduceMean", v["x"], d.constant([2]), keepdims=0),
    ),
    "a strict comparison": ("bool", "y = Less (x, z)", op("GreaterOrEqual", "x", "z")),
    "nothing": ("transpose", "y = Transpose (x)", op("Relu", "x")),
    "no transpose": ("transpose", "y = Transpose (x)", op("Identity", "x")),
    "outputs in another order": ("split", "y, q = Split <axis = 1> (x, s)", split_swapped),
}
RIGHT: dict[str, tuple[str, str, Build]] = {
    "difference as a sum": (
        "sub",
        "y = Sub (x, z)",
        lambda d, v: d.op("Add", v["x"], d.op("Neg", v["z"])),
    ),
    "softmax from its parts": (
        "softmax",
        "y = Softmax (x)",
        softmax_from_parts,
    ),
    "pool as a sum of squares": (
        "pool",
        POOL,
        op("AveragePool", "x", kernel_shape=[3, 3], strides=[2, 2], pads=PADS, ceil_mode=0),
    ),
    "bias added behind": (
        "conv",
        CONV,
        lambda d, v: d.op(
            "Add",
            d.op("Conv", v["x"], v["k"], pads=PADS),
            d.constant(np.array([1, 2], F32).reshape(2, 1, 1)),
        ),
    ),
    "half the other way": ("halves", "y = Slice (x, s, e, a)", slice_to(half)),
    "mean from a sum": (
        "mean",
        "y = ReduceMean <axes = [2]> (x)",
        lambda d, v: d.op("GlobalAveragePool", v["x"]),
    ),
    "not greater or equal": (
        "bool",
        "y = Less (x, z)",
        lambda d, v: d.op("Not", d.op("GreaterOrEqual", v["x"], v["z"])),
    ),
    "transposed twice more": (
        "transpose",
        "y = Transpose (x)",
        lambda d, v: d.op("Transpose", d.op("Transpose", v["x"], perm=[1, 0, 2]), perm=[1, 2, 0]),
    ),
    "slices for a split": (
        "split",
        "y, q = Split <axis = 1> (x, s)",
        lambda d, v: (
            d.op("Slice", v["x"], d.constant([0]), d.constant([1]), d.constant([1])),
            d.op("Slice", v["x"], d.constant([1]), d.constant([4]), d.constant([1])),
        ),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rewrites_are_refused_with_a_reason(name: str) -> None:
    result = attempt(*WRONG[name])
    assert result.report.changes == ()
    assert not result.model.changed
    (miss,) = [m for m in result.report.misses if m.rule == "planted"]
    assert miss.reason.startswith("the replacement differs from what it replaces: ")
    assert " at " in miss.reason


@pytest.mark.parametrize("name", RIGHT)
def test_right_rewrites_are_not_refused(name: str) -> None:
    result = attempt(*RIGHT[name])
    assert result.report.fired.total() == 1
    assert result.report.pieces["compared"] == 1
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"


def test_a_rule_that_promises_bits_is_held_to_them() -> None:
    def rescaled(d: Draft, v: Mapping[str, Any]) -> Any:
        third = d.constant(np.array(1 / 3, F32))
        return d.op("Sub", d.op("Div", d.op("Mul", v["x"], third), third), v["z"])

    assert attempt("sub", "y = Sub (x, z)", rescaled).report.fired.total() == 1
    refused = attempt("sub", "y = Sub (x, z)", rescaled, exact="bit")
    assert refused.report.changes == ()


def test_the_reason_names_error_and_size() -> None:
    result = attempt(*WRONG["wrong at odd sizes only"])
    (reason,) = [m.reason for m in result.report.misses if m.rule == "planted"]
    assert reason == (
        "the replacement differs from what it replaces: its shape is [2, 2], not [2, 1] at b=2, t=3"
    )


@pytest.mark.parametrize("reads", [False, True], ids=["handed on", "read"])
def test_weights_that_are_handed_on_are_as_good_as_others(reads: bool) -> None:
    """One comparison serves all layers of a shape, unless the rewrite depends on their numbers."""

    @rule("y = MatMul (x, w)", exact="rounding")
    def turned(draft: Draft, found: Match) -> Any:
        x, w = found.values["x"], found.values["w"]
        assert x is not None
        assert w is not None
        if found.root.made:
            raise Refused("it was made here")
        if reads and draft.facts.array(w) is None:
            raise Refused("its weights are not known")
        rows = draft.op("Transpose", x, perm=[1, 0])
        product = draft.op("MatMul", draft.op("Transpose", w, perm=[1, 0]), rows)
        return draft.op("Transpose", product, perm=[1, 0])

    draw = np.random.default_rng(0)
    weights = {name: draw.normal(size=(5, 5)).astype(F32) for name in "uvw"}
    body = "a = MatMul (x, u) b = MatMul (a, v) y = MatMul (b, w)"
    report = surgeon.apply(model_of("float[n,5] x", body, "y", 17, weights), turned).report
    assert len(report.changes) == 3
    before = 0 if reads else 2
    assert report.pieces == {"compared": 3 - before, **({"compared before": 2} if before else {})}


def test_a_length_that_follows_from_another_is_found() -> None:
    """Three frames of 4 at a step of 2 make 8 places: l = 3 runs at no other t."""
    text = """<ir_version: 9, opset_import: ["": 18]>
        g (float[N,4,l] x, float[t] like) => (float[N,1,1,t] y)
        <int64[1] one = {1}, int64[2] block = {1, 4}> {
            long = Shape (like)
            image = Concat <axis = 0> (one, long)
            y = Col2Im <strides = [1, 2]> (x, image, block)
        }"""
    report = surgeon.apply(onnx.parser.parse_model(text), "col2im-to-conv-transpose").report
    assert report.pieces == {"compared": 1}


def test_a_kernel_of_no_length_is_not_tried() -> None:
    """At which onnxruntime's Conv never ends."""
    text = """<ir_version: 8, opset_import: ["": 13, "com.microsoft": 1]>
        g (float[N,3,6,6] x, float[4,3,K,3] w) => (float[N,4,R,4] y) {
            y = com.microsoft.FusedConv <activation = "Relu"> (x, w)
        }"""
    with isolation(timeout=30):
        report = surgeon.apply(onnx.parser.parse_model(text), "contrib").report
    assert report.pieces == {"compared": 1}


def test_a_window_longer_than_its_input_leaves_no_place_to_view() -> None:
    """Of t = 1 it has none: the line of b * 0 places is viewed as [b, 0], where 0 keeps an axis."""
    text = """<ir_version: 6, opset_import: ["": 11, "org.pytorch.aten": 1]>
        g (float[b,2,t] x) => (float[b,l,1] y)
        <float[1,2,4] w = {1, 2, 3, 4, 5, 6, 7, 8}, int64[2] flat = {-1, 1}, int64 zero = {0},
         int64 two = {2}, int64[1] one = {1}> {
            c = Conv <strides = [2], pads = [1, 1]> (x, w)
            line = Reshape (c, flat)
            n = org.pytorch.aten.size (c, zero)
            l = org.pytorch.aten.size (c, two)
            first = Unsqueeze <axes = [0]> (n)
            second = Unsqueeze <axes = [0]> (l)
            sizes = Concat <axis = 0> (first, second, one)
            y = org.pytorch.aten.view (line, sizes)
        }"""
    report = surgeon.apply(onnx.parser.parse_model(text), "aten").report
    assert report.verdict is not None
    assert report.verdict.status == "equivalent"


def test_lengths_that_are_no_numbers_at_some_sizes_are_compared_at_others() -> None:
    """A remainder of four by a remainder, which is 0 where four divides the length."""
    text = """<ir_version: 8, opset_import: ["": 18]>
        g (float[2,h,w] x) => (y)
        <int64[2] four = {4, 4}, int64[2] both = {1, 2}, int64[4] none = {0, 0, 0, 0}> {
            shape = Shape (x)
            lengths = Gather (shape, both)
            over = Mod (lengths, four)
            rest = Mod (four, over)
            missing = Mod (rest, four)
            pads = Concat <axis = 0> (none, missing)
            y = Pad <mode = "reflect"> (x, pads)
        }"""
    report = surgeon.apply(onnx.parser.parse_model(text), "pad-to-concat").report
    assert report.pieces == {"compared": 1}
    assert report.fired.total() == 1


def test_sizes_at_which_joined_parts_do_not_fit_are_not_tried() -> None:
    """At which onnxruntime joins what stood in memory, on either side something else."""
    text = """<ir_version: 9, opset_import: ["": 18]>
        g (float[N,4,H] u, float[2,4,K] v) => (float[N,R,4] z, float[N,4,R] y) {
            a = Transpose <perm = [0, 2, 1]> (u)
            b = Transpose <perm = [0, 2, 1]> (v)
            c = Concat <axis = 1> (a, b)
            z = Softmax <axis = -1> (c)
            y = Transpose <perm = [0, 2, 1]> (z)
        }"""
    report = surgeon.apply(onnx.parser.parse_model(text), "no-ops").report
    assert not report.refusals
    assert report.fired.total()


def both_spread(d: Draft, v: Mapping[str, Any]) -> Any:
    """Wrong where the second is longer, as another that is not in the piece made it."""
    one = d.op("Where", d.constant(np.array(True)), v["f"], v["e"])
    return d.op("Concat", one, v["e"], axis=0)


def second_spread(d: Draft, v: Mapping[str, Any]) -> Any:
    """Right, as the second is what the first was broadcast to already; runs at no other sizes."""
    return d.op("Concat", v["f"], d.op("Where", d.constant(np.array(True)), v["e"], v["f"]), axis=0)


def test_a_length_that_others_are_broadcast_to_is_as_these_say() -> None:
    pattern = "y = Concat <axis = 0> (f, e)"
    result = attempt("spread", pattern, second_spread)
    assert not result.report.refusals
    assert result.report.fired.total() == 1
    (refusal,) = attempt("spread", pattern, both_spread).report.refusals
    assert refusal.sizes["p"] == 1 < refusal.sizes["e.0"]


def test_batches_that_are_added_fit_in_front_of_a_norm() -> None:
    """onnxruntime adds what it finds where they do not."""
    text = """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
        g (float[p,q,2] a, float[r,t,2] b) => (float[u,v,2] y)
        <float[2,2] k = {1, 2, 3, 4}, float[2] w = {1, 2}, float[2] z = {0.5, 1}> {
            e = Add (a, b)
            f = MatMul (a, k)
            y = com.microsoft.SkipLayerNormalization <epsilon = 0.1> (f, e, w, z)
        }"""
    report = surgeon.apply(onnx.parser.parse_model(text), "contrib").report
    assert not report.refusals
    assert report.fired.total() == 1


def test_an_operator_that_ends_a_release_on_nothing_is_not_tried_there() -> None:
    assert "TopK" in blind("1.30.2")
    assert "TopK" not in blind("1.31.0")


@pytest.mark.parametrize("steps", [12, 13, 14, 60, 1200])
@pytest.mark.parametrize("off", [0.0, 0.5])
def test_a_replacement_that_reads_far_behind_is_judged_by_all_that_is_between(
    steps: int, off: float, tmp_path: Path
) -> None:
    @rule("y = Add (x, c)", exact="rounding")
    def summed(draft: Draft, found: Match) -> Any:
        tensor, total = found.root.outputs[0], off
        if not draft.surgery.is_output(tensor) or not found.root.inputs[0].inputs:
            raise Refused("it is not the whole chain")
        while tensor.inputs:
            step = tensor.inputs[0]
            total += float(draft.facts.array(step.inputs[1]))
            tensor = step.inputs[0]
        return draft.op("Add", tensor, draft.constant(np.array(total, F32)))

    names = ["x", *(f"v{i}" for i in range(1, steps)), "y"]
    body = " ".join(f"{b} = Add ({a}, c)" for a, b in pairwise(names))
    model = model_of("float[n,3] x", body, "y", 17, {"c": np.array(0.5, F32)})
    report = surgeon.apply(model, summed, keep_evidence=tmp_path / "evidence").report
    fires = off == 0.0 and steps <= FAR
    assert len(report.changes) == fires
    assert len(report.refusals) == (not fires)
    assert len(list(tmp_path.glob("evidence/*"))) == (not fires)


def test_what_a_chain_reads_at_every_step_is_one_value_at_all_of_them() -> None:
    names = ["x", *(f"v{i}" for i in range(1, 40)), "y"]
    body = " ".join(f"{b} = Concat <axis = 1> ({a}, x)" for a, b in pairwise(names))
    report = surgeon.apply(model_of("float[n,3] x", body, "y"), "no-ops").report
    assert report.after == {"Concat": 1}
    assert report.refusals == ()


def zero_slope(d: Draft, v: Mapping[str, Any]) -> Any:
    return d.op("Max", v["x"], d.op("Mul", v["x"], d.constant(F32(0))))  # 0 times infinity


def no_difference(d: Draft, v: Mapping[str, Any]) -> Any:
    apart = d.op("Sub", v["x"], v["z"])  # infinity less infinity
    return d.op("Not", d.op("Cast", apart, to=onnx.TensorProto.BOOL))


@pytest.mark.parametrize(
    ("line", "build"),
    [("y = LeakyRelu <alpha = 0.0> (x)", zero_slope), ("y = Equal (x, z)", no_difference)],
    ids=["LeakyRelu", "Equal"],
)
def test_infinities_are_compared_where_a_rule_promises_the_same_bits(
    line: str, build: Build
) -> None:
    @rule(line, exact="bit")
    def planted(draft: Draft, match: Match) -> Any:
        return build(draft, match.values)

    report = surgeon.apply(model_of("float[n] x, float[n] z", line, "y"), planted).report
    assert not report.fired
    assert "differs" in report.misses[0].reason
