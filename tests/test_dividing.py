"""Where a model is cut in two, so that a runtime takes one part (`inspect --target`)."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from typer.testing import CliRunner

import surgeon
from surgeon.cli import app
from surgeon.dividing import Division, divide
from surgeon.extraction.fewest import Graph
from surgeon.model import Model
from surgeon.runtime import Session

RUN = CliRunner()
DETECTOR = """<ir_version: 8, opset_import: ["": 17]>
g (float[1,3,8,8] x) => (int64[K,3] picked, float[K,4] boxes)
<int64[1] most = {5}, float[1] iou = {0.5}, float[1] least = {0.1},
 int64[3] flat = {1, 4, 64}, int64[3] rows = {1, 1, 64},
 int64[1] last = {2}, int64[1] end = {3}, int64[1] axis = {1}, int64[1] none = {0}> {
  f = Conv <pads = [1, 1, 1, 1]> (x, w)
  r = Relu (f)
  b = Conv <pads = [1, 1, 1, 1]> (r, wb)
  c = Conv <pads = [1, 1, 1, 1]> (r, wc)
  bf = Reshape (b, flat)
  bt = Transpose <perm = [0, 2, 1]> (bf)
  cf = Reshape (c, rows)
  s = Sigmoid (cf)
  picked = NonMaxSuppression (bt, s, most, iou, least)
  i = Slice (picked, last, end, axis)
  j = Squeeze (i, axis)
  q = Squeeze (bt, none)
  boxes = Gather (q, j)
}"""
SOUND = """<ir_version: 8, opset_import: ["": 17]>
g (float[1,64,1] x, float[1,1,1] gain) => (float[1,5,4] y, float[1,64,1] louder)
<int64 step = {8}, float[16] window = {1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1}, int64 part = {0}> {
  louder = Mul (x, gain)
  s = STFT <onesided = 1> (louder, step, window)
  p = Gather <axis = 3> (s, part)
  a = Abs (p)
  t = Transpose <perm = [0, 2, 1]> (a)
  c = Conv (t, w)
  r = Relu (c)
  m = Mul (r, gain)
  d = Conv (m, v)
  y = Sigmoid (d)
}"""


def weighted(text: str, **shapes: tuple[int, ...]) -> onnx.ModelProto:
    model = onnx.parser.parse_model(text)
    rng = np.random.default_rng(0)
    for name, shape in shapes.items():
        weights = rng.normal(size=shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weights, name))
    onnx.checker.check_model(model)
    return model


def detector() -> onnx.ModelProto:
    return weighted(DETECTOR, w=(6, 3, 3, 3), wb=(4, 6, 3, 3), wc=(1, 6, 3, 3))


def sound() -> onnx.ModelProto:
    return weighted(SOUND, w=(6, 9, 1), v=(5, 6, 4))


def options(words: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {"inputs": [], "outputs": []}
    for option, name in (
        itertools.batched(words, 2)
        if hasattr(itertools, "batched")
        else zip(words[::2], words[1::2], strict=True)
    ):
        found["inputs" if option == "--from" else "outputs"].append(name)
    return found


def both(model: onnx.ModelProto, division: Division, feeds: dict[str, Any]) -> dict[str, Any]:
    """What the two parts give together."""
    known = dict(feeds)
    for words in (division.first, division.second):
        part = surgeon.extract(model, **options(words)).model.to_proto()  # type: ignore[arg-type]
        known |= Session(part).run({v.name: known[v.name] for v in part.graph.input})
    return known


@pytest.mark.parametrize("given_out", [False, True])
def test_the_boxes_of_a_detector_are_picked_elsewhere(*, given_out: bool) -> None:
    model = detector()
    if given_out:  # an input that is an output too is no part's
        model.graph.output.add(name="x", type=model.graph.input[0].type)
    division = divide(Model(model), ["NonMaxSuppression"])
    assert division is not None
    assert (division.taken, division.nodes, division.of) == ("first", 8, 13)
    assert set(division.values) == {"bt", "s"}, "as late as may be, where `q` would be a third"
    x = {"x": np.random.default_rng(1).normal(size=(1, 3, 8, 8)).astype(np.float32)}
    parts = both(model, division, x)
    for name, value in Session(model).run(x).items():
        np.testing.assert_array_equal(parts[name], value)


def test_a_spectrum_is_computed_elsewhere() -> None:
    model = sound()
    division = divide(Model(model), ["STFT"])
    assert division is not None
    assert (division.taken, division.nodes) == ("second", 8)
    assert division.values == ("s",)
    rng = np.random.default_rng(1)
    feeds = {
        "x": rng.normal(size=(1, 64, 1)).astype(np.float32),
        "gain": np.array([[[2.0]]], np.float32),
    }
    parts = both(model, division, feeds)
    for name, value in Session(model).run(feeds).items():
        np.testing.assert_array_equal(parts[name], value)


def test_what_stands_in_a_body_or_a_function_counts() -> None:
    text = """<ir_version: 8, opset_import: ["": 17, "my": 1]>
    g (float[2,4] x, bool c) => (float[2,4] y) {
      a = MatMul (x, w)
      b = Relu (a)
      i = If (c) <then_branch = then () => (float[2,4] t) { t = Det1 (b) },
                  else_branch = other () => (float[2,4] o) { o = Neg (b) }>
      y = my.F (i)
    }
    <domain: "my", opset_import: ["": 17]> F (u) => (v) { v = Erf (u) }"""
    model = onnx.parser.parse_model(text.replace("Det1", "Erf"))
    weight = onnx.numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
    model.graph.initializer.append(weight)
    division = divide(Model(model), ["Erf"])
    assert division is not None
    assert division.values == ("b",)
    model.graph.node[2].attribute[0].g.node[0].op_type = "Abs"
    division = divide(Model(model), ["Erf"])
    assert division is not None
    assert division.values == ("i",), "what the function holds alone"


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("a = Relu (x) y = Erf (a)", "Erf"),  # nothing that an accelerator is for
        ("a = Erf (x) b = MatMul (a, w) y = Erf (b)", "Relu"),  # nothing is refused
        ("a = Erf (x) b = MatMul (a, w) c = MatMul (b, a) y = Erf (c)", "MatMul"),
    ],
)
def test_where_there_is_nothing_to_cut(text: str, refused: str) -> None:
    head = '<ir_version: 8, opset_import: ["": 17]> g (float[4,4] x) => (float[4,4] y) '
    model = onnx.parser.parse_model(f"{head}{{ {text} }}")
    weight = onnx.numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
    model.graph.initializer.append(weight)
    assert divide(Model(model), [refused]) is None


@pytest.mark.slow
def test_the_command_line_says_it(tmp_path: Path) -> None:
    source, front, rest = (tmp_path / f"{name}.onnx" for name in ("in", "front", "rest"))
    onnx.save(detector(), source)
    own = tmp_path / "npu.yaml"
    own.write_text("operators: [Conv, Relu, Reshape, Transpose, Sigmoid, Slice, Squeeze, Gather]")
    said = RUN.invoke(app, ["inspect", str(source), "--target", str(own), "--json"])
    told = json.loads(said.stdout)["division"]
    assert (told["taken"], told["nodes"], told["of"]) == ("first", 8, 13)
    for target, words in ((front, told["first"]), (rest, told["second"])):
        done = RUN.invoke(app, ["extract", str(source), str(target), *words])
        assert done.exit_code == 0, done.output
    said = RUN.invoke(app, ["inspect", str(front), "--target", str(own)])
    assert "Every operator is on its list." in said.output
    assert "cut in two" not in said.output
    said = RUN.invoke(app, ["inspect", str(source), "--target", str(own)])
    assert "8 of 13 nodes stand in front of NonMaxSuppression" in " ".join(said.output.split())


@pytest.mark.parametrize("seed", range(60))
def test_no_smaller_cut_is_there(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.randint(4, 10)
    gives = {at: [f"v{at}"] for at in range(count)}
    reads = {at: [f"v{other}" for other in range(at) if rng.random() < 0.4] for at in range(count)}
    firm = {f"v{at}" for at in range(count) if rng.random() < 0.2}
    order = list(range(count))
    sources, sinks = order[: rng.randint(1, 2)], order[-rng.randint(1, 2) :]
    graph = Graph(reads, gives, lambda name: name not in firm)

    def parts(cut: Sequence[str]) -> bool:
        reached = set(sources)
        for at in range(count):
            if any(n not in cut and int(n[1:]) in reached for n in reads[at]):
                reached.add(at)
        return reached.isdisjoint(sinks)

    soft = [f"v{at}" for at in range(count) if f"v{at}" not in firm]
    smallest = next(
        (size for size in range(4) if any(map(parts, itertools.combinations(soft, size)))), None
    )
    for late in (True, False):
        cut = graph.cut(sources, sinks, most=3, late=late)
        assert (None if cut is None else len(cut)) == smallest
        assert cut is None or (parts(cut) and firm.isdisjoint(cut))
