"""What onnxruntime's own optimisations make of a result is told, where the original stays right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from verdicts import parse

import surgeon
from surgeon.isolation import isolation
from surgeon.runtime import Feeds, RunFailed, Session
from surgeon.verify import Verdict, verify
from surgeon.verify import optimised as module

SUM = "g (float[batch,3] x) => (float[batch,3] y) { y = Add (x, x) }"
SAME = "g (float[batch,3] x) => (float[batch,3] y) { t = Sum (x, x) y = Identity (t) }"
COUNTED = """g (float[T,3] x) => (float[T,3] y) {
    zero = Constant <value = int64 {0}> ()
    less = Constant <value = int64 {-1}> ()
    sizes = Shape (x)
    length = Gather (sizes, zero)
    last = Add (length, less)
    places = Range (last, less, less)
    y = Gather (x, places) }"""
SLICED = """g (float[T,3] x) => (float[T,3] y) {
    begin = Constant <value = int64[1] {-1}> ()
    end = Constant <value = int64[1] {-9223372036854775807}> ()
    axis = Constant <value = int64[1] {0}> ()
    y = Slice (x, begin, end, axis, begin) }"""


class Faulty:
    """A session whose optimisations do something to what a model gives."""

    def __init__(self, model: onnx.ModelProto, fault: Any) -> None:
        self.session, self.fault = Session(model), fault

    def run(self, feeds: Feeds, outputs: Sequence[str] | None = None) -> dict[str, Any]:
        return {name: self.fault(y) for name, y in self.session.run(feeds, outputs).items()}


def with_fault(monkeypatch: pytest.MonkeyPatch, fault: Any, *operators: str) -> Verdict:
    """The verdict where optimisations do something to models that hold one of the operators."""

    def opened(model: onnx.ModelProto, **_: Any) -> Any:
        hit = any(node.op_type in operators for node in model.graph.node)
        return Faulty(model, fault if hit else lambda y: y)

    monkeypatch.setattr(module, "open_session", opened)
    return verify(parse(SUM), parse(SAME))


def fails(_: Any) -> Any:
    raise RunFailed(where="here", text="it cannot be done")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (lambda y: y[:0], "`y`: its shape is [0, 3], not [2, 3] at batch=2"),
        (lambda y: 1.5 * y, "of its spread (allowed 0.0001) at batch=2"),
        (lambda y: np.where(y > 0, np.nan, y).astype(y.dtype), "NaN at "),
        (fails, "the run fails: it cannot be done at batch=2"),
    ],
    ids=["shape", "numbers", "nan", "fails"],
)
def test_a_result_that_optimisations_spoil_is_told(
    monkeypatch: pytest.MonkeyPatch, fault: Any, said: str
) -> None:
    verdict = with_fault(monkeypatch, fault, "Sum")
    assert verdict.status == "equivalent"
    (remark,) = verdict.remarks
    assert said in remark
    assert "ORT_DISABLE_ALL" in remark
    assert Verdict.from_dict(verdict.to_dict()) == verdict


@pytest.mark.parametrize(
    ("fault", "operators"),
    [
        (lambda y: y[:0], ("Sum", "Add")),
        (lambda y: y * np.float32(1 + 1e-6), ("Sum",)),
        (lambda y: y[:0], ()),
    ],
    ids=["the-original-too", "rounding", "no-fault"],
)
def test_what_was_so_before_or_is_rounding_is_not_told(
    monkeypatch: pytest.MonkeyPatch, fault: Any, operators: tuple[str, ...]
) -> None:
    assert with_fault(monkeypatch, fault, *operators).remarks == ()


def test_a_fault_of_onnxruntime_itself_is_found() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    if Session(parse(COUNTED), optimise=True).run({"x": x})["y"].shape == (2, 3):
        pytest.skip("this onnxruntime takes places counted down as they are")
    verdict = verify(parse(SLICED), parse(COUNTED))
    assert verdict.status == "equivalent"
    assert "`y`: its shape is [0, 3]" in verdict.remarks[0]


BROKEN_ONCE = {  # forms that a rule wrote, or let stand, and these optimisations broke
    "remainder-of-one": (
        9,
        """g (float[2,T] x) => (float[2,T] y) <int64[1] s = {-1}, int64[1] d = {1}> {
          y = org.pytorch.aten.ATen <operator = "roll", overload_name = ""> (x, s, d) }""",
    ),
    "new-axis-behind-a-view": (
        9,
        """g (float[3,4,4] x) => (float[3,2,1,8] y) <int64[3] s = {3, 2, 8}> {
          v = org.pytorch.aten.ATen <operator = "view", overload_name = ""> (r, s)
          r = Relu (x) u = Unsqueeze <axes = [-2]> (v) y = Neg (u) }""",
    ),
    "expanded-to-nothing": (
        13,
        """g (float[2,3] x) => (float[2,4] y) <int64[2] s = {2, 0}, int64[1] d = {1}, bool no = {0}>
        { k = org.pytorch.aten.ATen <operator = "sum", overload_name = "dim_IntList"> (x, d, yes, )
          yes = Constant <value = bool {1}> ()
          e = org.pytorch.aten.ATen <operator = "expand", overload_name = ""> (k, s, no)
          c = Concat <axis = 1> (e, x, k)
          y = Relu (c) }""",
    ),
    "counted-down": (
        17,
        COUNTED.replace("y = Gather (x, places)", "z = Gather (x, places) y = "
        'org.pytorch.aten.ATen <operator = "relu", overload_name = ""> (z)'),
    ),
    "norm-of-one-axis": (
        17,
        """g (float[4] x) => (float[4] y) <float e = {1e-5}, float w = {2.0}, float two = {2.0}> {
          q = Pow (x, two) m = ReduceMean <axes = [-1]> (q) u = Add (m, e) v = Sqrt (u)
          r = Reciprocal (v) n = Mul (x, r) z = Mul (n, w)
          y = org.pytorch.aten.ATen <operator = "relu", overload_name = ""> (z) }""",
    ),
}  # fmt: skip


@pytest.mark.parametrize("recipe", ["aten", "all"])
@pytest.mark.parametrize("name", BROKEN_ONCE)
def test_what_a_rule_writes_stays_under_optimisations(name: str, recipe: str) -> None:
    opset, text = BROKEN_ONCE[name]
    head = f'<ir_version: 8, opset_import: ["": {opset}, "org.pytorch.aten": 1]>'
    proto = onnx.parser.parse_model(head + text)
    recipes = ("aten", "clean") if recipe == "all" else (recipe,)
    verdict = surgeon.apply(proto, *recipes).report.verdict
    assert verdict is not None
    assert verdict.status == "equivalent"
    assert verdict.remarks == ()


def test_it_runs_in_the_worker_too() -> None:
    with isolation():
        assert verify(parse(SUM), parse(SAME)).remarks == ()
