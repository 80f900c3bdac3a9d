"""Sizes at which a model's operators fit together, where no usual ones do: told by its facts."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from truth import parse

from surgeon.verify import verify
from surgeon.verify.equations import fitting_sizes, joint_sizes
from surgeon.verify.inputs import required_inputs

F32 = np.float32

ROWS = (
    {"w": (1, 20, 23), "r": (1, 20, 5)},
    """
    g (float[frames, bins] x) => (float[frames, 1, 5] y) {
      s = Unsqueeze <axes = [1]> (x)
      h, last, cell = LSTM <hidden_size = 5> (s, w, r)
      y = Squeeze <axes = [1]> (h)
    }
    """,
)
BEHIND_A_VIEW = (  # (bins - 2) // 2 columns of 3 channels, of each frame: 21 of them
    {"k": (3, 1, 1, 3), "w": (21, 4)},
    """
    g (float[frames, bins] x) => (float[rows, 4] y) <int64[2] rows = {-1, 21}> {
      s = Unsqueeze <axes = [0, 1]> (x)
      c = Conv (s, k)
      p = MaxPool <kernel_shape = [1, 2], strides = [1, 2]> (c)
      t = Transpose <perm = [0, 2, 3, 1]> (p)
      r = Reshape (t, rows)
      y = MatMul (r, w)
    }
    """,
)
SIDES = (  # of an image: 3 channels of (height // 8) * (width // 8)
    {"k": (3, 3, 8, 8), "w": (432, 2)},
    """
    g (float[n, 3, height, width] x) => (float[n, 2] y) {
      c = Conv <strides = [8, 8]> (x, k)
      f = Flatten (c)
      y = Gemm (f, w)
    }
    """,
)
LONG = (
    {"k": (2, 1, 700)},
    "g (float[1, 1, samples] x) => (float[1, 2, m] y) { y = Conv (x, k) }",
)
ADDED = (
    {"place": (1, 77, 6)},
    "g (float[n, tokens, 6] x) => (float[n, tokens, 6] y) { y = Add (x, place) }",
)

FROZEN = """
g (float[b, 4, h, w] x) => (float[2, 4, 8, 6] y) <int64[4] target = {2, 4, 8, 6}> {
  t = Transpose <perm = [0, 1, 3, 2]> (x)
  r = Reshape (t, target)
  y = Relu (r)
}
"""
FROZEN_ROWS = """
g (float[b, 4, h, w] x, bool[b, h, w] mask) => (float[2, 4, 48] y)
    <int64[3] target = {2, 4, 48}, float none = {0}> {
  m = Unsqueeze <axes = [1]> (mask)
  c = Where (m, none, x)
  y = Reshape (c, target)
}
"""


def network(weights: dict[str, tuple[int, ...]], text: str) -> onnx.ModelProto:
    model = parse(text, opset=11)
    rng = np.random.default_rng(0)
    for name, shape in weights.items():
        array = rng.normal(size=shape).astype(F32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return model


@pytest.mark.parametrize(
    ("told", "found"),
    [
        (ROWS, {"bins": [23]}),
        (BEHIND_A_VIEW, {"bins": [100, 16, 17]}),
        (SIDES, {"height": [100, 96, 97], "width": [100, 96, 97]}),
        (LONG, {"samples": [700, 701, 702]}),
        (ADDED, {"tokens": [77, 1]}),
    ],
)
def test_sizes_that_fit(told: tuple[dict, str], found: dict[str, list[int]]) -> None:
    model = network(*told)
    assert fitting_sizes(model, required_inputs(model)) == found


def test_where_usual_sizes_fit_there_is_nothing_to_say() -> None:
    model = parse(
        "g (float[n, a] x, float[n, b] z) => (float[n, c] y) { y = Concat<axis=1>(x, z) }"
    )
    assert fitting_sizes(model, required_inputs(model)) == {}


def test_where_none_fit_none_are_said() -> None:
    """Two weights want what cannot be."""
    body = "p = MatMul (x, w) q = MatMul (x, v) y = Add (p, q)"
    text = f"g (float[n, a] x) => (float[n, 2] y) {{ {body} }}"
    model = network({"w": (23, 2), "v": (29, 2)}, text)
    assert fitting_sizes(model, required_inputs(model)) == {}


@pytest.mark.parametrize("told", [ROWS, BEHIND_A_VIEW])
def test_what_runs_at_few_sizes_is_compared(told: tuple[dict, str]) -> None:
    model = network(*told)
    verdict = verify(model, model)
    assert verdict.status == "equivalent"
    frames = {each.sizes["frames"] for each in verdict.comparisons}
    assert len(frames) >= 3
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    changed.graph.initializer[-1].raw_data = (
        onnx.numpy_helper.to_array(model.graph.initializer[-1]) * F32(1.5)
    ).tobytes()
    assert verify(model, changed).status == "differs"


@pytest.mark.parametrize(
    ("text", "found"),
    [(FROZEN, {"b": [2], "h": [6], "w": [8]}), (FROZEN_ROWS, {"b": [2], "h": [4], "w": [12]})],
)
def test_what_a_trace_froze_is_compared_where_all_dims_fit_together(
    text: str, found: dict[str, list[int]]
) -> None:
    model = network({}, text)
    assert fitting_sizes(model, required_inputs(model)) == {}
    assert next(joint_sizes(model, required_inputs(model))) == found
    verdict = verify(model, model)
    assert verdict.status == "equivalent"
    assert [each.sizes for each in verdict.comparisons] == [
        {dim: n[0] for dim, n in found.items()}
    ] * 2
    assert [each.what for each in verdict.not_compared] == [
        "other sizes than those at which its parts fit"
    ]
    other = network({}, text.replace("Relu (r)", "Abs (r)").replace("none = {0}", "none = {1}"))
    assert verify(model, other).status == "differs"


def test_sizes_at_which_joined_parts_do_not_fit_are_not_compared() -> None:
    """A trace of 96 columns cuts twelve parts of 8; of fewer, the last have nothing left.

    onnxruntime joins them all the same, to whatever stood in memory.
    """
    ends = range(8, 104, 8)
    numbers = "".join(f", int64[1] n{end} = {{{end}}}" for end in ends)
    cuts = "".join(f"p{end} = Slice (x, n{end - 8}, n{end}, one)\n" for end in ends)
    cuts += "".join(f"u{end} = Unsqueeze (p{end}, one)\n" for end in ends)
    parts = ", ".join(f"u{end}" for end in ends)
    text = f"""<ir_version: 9, opset_import: ["": 18]>
        g (float[rows, columns] x) => (y) <int64[1] n0 = {{0}}, int64[1] one = {{1}}{numbers}> {{
            {cuts} c = Concat <axis = 1> ({parts})
            y = Relu (c)
        }}"""
    model = onnx.parser.parse_model(text)
    verdict = verify(model, model)
    assert verdict.status == "equivalent"
    assert min(each.sizes["columns"] for each in verdict.comparisons) >= 96
