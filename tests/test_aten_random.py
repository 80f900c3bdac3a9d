"""Random operators: the lowered draws against the distributions that PyTorch documents.

Moments of 40,000 draws; no test of chance: a bound is eight standard errors wide or more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from aten_node import Left, Written, lowered
from truth import parse

import surgeon
from surgeon.chance import drawn_outputs
from surgeon.reference import Reference

N = 40_000
ZEROS = np.zeros(N, np.float32)
HALVES = np.zeros(N, np.float16)
WIDE = np.zeros(N, np.float64)
COUNTS = np.zeros(N, np.int64)
P = np.full(N, 0.3, np.float32)
ONES = np.ones(N, np.float32)
THIRD = 12**-0.5
# Operator, arguments, the result's dtype, mean and deviation, least and greatest value.
Draw = tuple[str, list[Any], Any, float, float, float, float]
DRAWS: list[Draw] = [
    ("rand", [[N], 6], np.float32, 0.5, THIRD, 0, 1),
    ("rand", [[N], 5], np.float16, 0.5, THIRD, 0, 1),
    ("rand", [[N], 7], np.float64, 0.5, THIRD, 0, 1),
    ("rand_like", [ZEROS, 7], np.float64, 0.5, THIRD, 0, 1),
    ("randn", [[N], None], np.float32, 0, 1, -9, 9),
    ("randn_like", [HALVES], np.float16, 0, 1, -9, 9),
    ("randint", [7, [N], 4], np.int64, 3, 2, 0, 6),
    ("randint.low", [-3, 7, [N], 6], np.float32, 1.5, (99 / 12) ** 0.5, -3, 6),
    ("randint_like", [ZEROS, 5], np.float32, 2, 2**0.5, 0, 4),
    ("randint_like.low_dtype", [COUNTS, 2, 4], np.int64, 2.5, 0.5, 2, 3),
    ("random.from", [COUNTS, 2, 9], np.int64, 5, 2, 2, 8),
    ("random", [HALVES], np.float16, 1024, 2049 * THIRD, 0, 2048),
    ("bernoulli", [P], np.float32, 0.3, 0.21**0.5, 0, 1),
    ("bernoulli.p", [COUNTS, 0.7], np.int64, 0.7, 0.21**0.5, 0, 1),
    ("bernoulli.Tensor", [ZEROS, P], np.float32, 0.3, 0.21**0.5, 0, 1),
    ("normal.float_float", [2.0, 3.0, [N], 6], np.float32, 2, 3, -25, 29),
    ("normal.Tensor_float", [P, 2.0], np.float32, 0.3, 2, -18, 18),
    ("normal.float_Tensor", [1.5, P], np.float32, 1.5, 0.3, -2, 5),
    ("normal.Tensor_Tensor", [P, P], np.float32, 0.3, 0.3, -3, 4),
    ("normal_functional", [HALVES, 4.0, 2.0], np.float16, 4, 2, -14, 22),
    ("uniform", [ZEROS, -2.0, 3.0], np.float32, 0.5, 5 * THIRD, -2, 3),
    ("exponential", [ZEROS, 2.0], np.float32, 0.5, 0.5, 0, 15),
    ("geometric", [COUNTS, 0.25], np.int64, 4, 12**0.5, 1, 200),
    ("log_normal", [ZEROS, 0.5, 0.5], np.float32, 1.8682, 0.99569, 0, 200),
    ("randperm", [N, 4], np.int64, (N - 1) / 2, N * THIRD, 0, N - 1),
    ("multinomial", [np.array([1, 2, 0, 5], np.float32), N, True], np.int64, 2.125, 1.166, 0, 3),
    ("dropout", [ONES, 0.3, True], np.float32, 1, (0.3 / 0.7) ** 0.5, 0, 1.43),
    ("native_dropout", [ONES, 0.3, True], np.float32, 1, (0.3 / 0.7) ** 0.5, 0, 1.43),
    ("rrelu", [-ONES, 0.1, 0.3, True], np.float32, -0.2, 0.2 * THIRD, -0.3, -0.1),
    ("rrelu_with_noise", [-ONES, ONES, 0.1, 0.3, True], np.float32, -0.2, 0.2 * THIRD, -0.3, -0.1),
]
IDS = [f"{d[0]}-{np.dtype(d[2]).name}" for d in DRAWS]


def holds(y: Any, draw: Draw) -> None:
    """Dtype, shape, support and two moments."""
    _, _, dtype, mean, deviation, least, greatest = draw
    assert y.dtype == dtype
    assert y.shape == (N,)
    y = y.astype(np.float64)
    assert y.min() >= least - 1e-6
    assert y.max() <= greatest + 1e-6
    assert abs(y.mean() - mean) < 8 * deviation / N**0.5 + 1e-3
    assert abs(y.std() / deviation - 1) < 0.15


@pytest.mark.slow
@pytest.mark.parametrize("draw", DRAWS, ids=IDS)
@pytest.mark.parametrize("opset", [9, 13, 18])
def test_draws_are_of_the_distribution(draw: Draw, opset: int) -> None:
    operator, arguments, dtype, *_ = draw
    outputs = [np.zeros(N, dtype)]
    written = Written(operator, arguments, "A+", opset, dynamic=opset == 13)
    holds(lowered(written, outputs, recipe="aten-random")[0], draw)


@pytest.mark.parametrize("draw", DRAWS, ids=IDS)
def test_the_witness_draws_the_same_distribution(draw: Draw) -> None:
    operator, arguments, dtype, *_ = draw
    written = Written(operator, arguments, "A+", 13, dynamic=False)
    model = written.model([np.zeros(N, dtype)], listed=False)
    holds(Reference(model).run(written.feeds)["y0"], draw)


def test_weights_without_putting_back_are_drawn_in_order() -> None:
    weights = np.tile(np.array([1, 2, 0, 5], np.float32), (8_000, 1))
    written = Written("multinomial", [weights, 3, False], "A+", 13, dynamic=True)
    (y,) = lowered(written, [np.zeros((8_000, 3), np.int64)], recipe="aten-random")
    assert (np.sort(y, 1) == [0, 1, 3]).all()  # each once, and never what weighs nothing
    shares = np.bincount(y[:, 0], minlength=4) / len(y)
    assert np.abs(shares - [1 / 8, 2 / 8, 0, 5 / 8]).max() < 0.05


def test_a_channel_is_dropped_whole_and_the_least_value_takes_its_place() -> None:
    x = np.random.default_rng(0).normal(size=(200, 50, 4)).astype(np.float32)
    for operator in ("feature_dropout", "feature_alpha_dropout"):
        written = Written(operator, [x, 0.4, True], "A+", 13, dynamic=True)
        (y,) = lowered(written, [x], recipe="aten-random")
        whole = np.ptp(y, axis=2) == 0
        assert abs(whole.mean() - 0.4) < 0.05
    assert abs(y.mean()) < 0.05
    assert abs(y.std() - 1) < 0.05  # which alpha dropout keeps


def test_a_permutation_holds_each_number_once() -> None:
    written = Written("randperm", [97, 4], "A+", 13, dynamic=False)
    (y,) = lowered(written, [COUNTS[:97]], recipe="aten-random")
    assert sorted(y) == list(range(97))


def test_what_no_runtime_draws_is_refused_by_name() -> None:
    with pytest.raises(Left, match="draws from a Poisson distribution"):
        lowered(Written("poisson", [ZEROS], "A+", 13, dynamic=False), [ZEROS], recipe="aten")


ATEN = ', "org.pytorch.aten": 1'


def test_what_hangs_on_a_draw_is_never_equivalent_nor_different() -> None:
    model = parse(
        """g (float[n,3] x) => (float[n,3] y, float[n,3] z, int64[2] s) {
          r = org.pytorch.aten.randn_like (x)
          y = Add (x, r)
          z = Neg (x)
          s = Shape (r)
        }""",
        domains=ATEN,
    )
    assert drawn_outputs(model) == {"y": False}
    result = surgeon.apply(model, "aten").report
    verdict = result.verdict
    assert verdict is not None
    assert verdict.status == "runs"
    assert "`y` was not compared: the original draws it at random" in verdict.detail
    assert all({o.name for o in c.outputs} == {"z", "s"} for c in verdict.comparisons)


def test_a_draw_nobody_sees_is_no_matter() -> None:
    model = parse(
        """g (float[n,3] x) => (float[n,3] y) <float p = {0.5}, bool no = {0}> {
          d = org.pytorch.aten.dropout (x, p, no)
          r = org.pytorch.aten.rand_like (d)
          s = Shape (r)
          y = Expand (d, s)
        }""",
        domains=ATEN,
    )
    assert drawn_outputs(model) == {}
    verdict = surgeon.apply(model, "aten").report.verdict
    assert verdict is not None
    assert verdict.status == "equivalent"


DROPOUT = """g (float[n,3] x, float p) => (float[n,3] y)
  <float none = {0}, float half = {0.5}, bool yes = {1}> {
  d = Dropout (x, %s, yes)
  y = Relu (d)
}"""


@pytest.mark.parametrize(
    ("share", "drawn"), [("none", {}), ("half", {"y": False}), ("p", {"y": False})]
)
def test_a_dropout_of_nothing_draws_nothing(share: str, drawn: dict[str, bool]) -> None:
    model = parse(DROPOUT % share)
    assert drawn_outputs(model) == drawn
    assert surgeon.verify(model, model).status == ("runs" if drawn else "equivalent")


def test_another_dtype_or_shape_of_a_draw_is_a_difference() -> None:
    text = "g (float[n,3] x) => (float[n,K] y) { r = RandomNormalLike (x)  y = %s (r) }"
    other = text % "Transpose"
    verdict = surgeon.verify(parse(text % "Neg"), parse(other))
    assert verdict.status == "differs"
    assert "its shape is" in verdict.detail


def test_sizes_that_are_drawn_are_not_compared() -> None:
    text = """g (float[n] x) => (int64[1,K] y) {
      r = RandomNormalLike (x)
      b = Relu (r)
      y = NonZero (b)
    }"""
    assert drawn_outputs(parse(text)) == {"y": True}
    assert surgeon.verify(parse(text), parse(text)).status == "runs"


def test_a_draw_in_a_function_or_a_body_is_seen() -> None:
    model = parse(
        """g (float[n] x, bool c) => (float[n] y, float[n] z, float[n] w) {
          y = local.outer (x)
          z = If (c) <
            then_branch = t () => (float[n] a) { a = RandomNormalLike (x) },
            else_branch = e () => (float[n] b) { b = Neg (x) }
          >
          w = Neg (x)
        }
        <domain: "local", opset_import: ["": 17, "local": 1]>
        outer (a) => (b) { b = local.inner (a) }
        <domain: "local", opset_import: ["": 17]>
        inner (a) => (b) { r = RandomUniformLike (a)  b = Add (a, r) }
        """,
        domains=', "local": 1',
    )
    assert set(drawn_outputs(model)) == {"y", "z"}
