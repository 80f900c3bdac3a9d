"""Least lengths of inputs: those at which the kernels of all Convs fit."""

from __future__ import annotations

import onnx
import pytest

import surgeon
from surgeon.dims import symbol
from surgeon.facts.fitting import Fitting

HEAD = '<ir_version: 8, opset_import: ["": 13]>'


@pytest.mark.parametrize(
    ("kernel", "attributes", "least"),
    [
        (3, {}, 3),
        (3, {"pads": [1, 1]}, 1),
        (3, {"pads": [0, 1], "dilations": [2]}, 4),
        (7, {"pads": [3, 3], "strides": [4]}, 1),
        (2, {"auto_pad": "VALID", "pads": [1, 1]}, 2),
        (5, {"auto_pad": "SAME_UPPER"}, None),
        (3, {"pads": [1, 2]}, None),
    ],
)
def test_a_kernel_needs_its_length(
    kernel: int, attributes: dict[str, object], least: int | None
) -> None:
    fitting = Fitting()
    fitting.learn((1, 2, symbol("t")), (4, 2, kernel), attributes)
    assert fitting.least.get("t") == least


def test_the_largest_need_counts_through_quotients() -> None:
    fitting, t = Fitting(), symbol("t")
    fitting.learn((1, 2, t), (4, 2, 10), {"strides": [5]})
    fitting.learn((1, 2, (t - 10) // 5 + 1), (4, 2, 3), {"strides": [2]})
    assert fitting.least == {"t": 20}
    fitting.learn((1, 2, t * symbol("u")), (4, 2, 99), {})  # of two lengths nothing follows
    assert fitting.least == {"t": 20}


def test_nothing_is_taken_where_nothing_hangs_on_it() -> None:
    fitting = Fitting()
    fitting.learn((1, 2, symbol("t")), (4, 2, 3), {})
    assert fitting.news({"t"}, {}) == {}
    fitting.asked = True
    assert fitting.news(set(), {}) == {}
    assert fitting.news({"t"}, {"t": symbol("t")}) == {}  # the user said something else
    assert fitting.news({"t", "t-3"}, {}) == {"t": symbol("t-3'") + 3}  # another one's name
    assert fitting.news({"t"}, {}) == {}


def model(conv: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f"""{HEAD}
        g (float[N,1,T] x, bool c) => (float[N,K,1] y)
          <float[1,1,3] w = {{1.0, 2.0, 3.0}}, int64[1] zero = {{0}}, int64[1] two = {{2}},
           int64[1] three = {{3}}, int64[1] rest = {{-1}}, int64[1] one = {{1}}> {{
            s = Shape (x)
            n = Gather (s, zero)
            t = Gather (s, two)
            a = Sub (t, three)
            b = Div (a, two)
            k = Add (b, one)
            {conv}
            p = Transpose <perm = [0, 2, 1]> (h)
            l = Concat <axis = 0> (n, k, rest)
            y = Reshape (p, l)
        }}"""
    )


def remarks(proto: onnx.ModelProto) -> str:
    return " ".join(surgeon.apply(proto, "clean").report.remarks)


def test_the_report_says_what_follows() -> None:
    said = remarks(model("h = Conv <strides = [2]> (x, w)"))
    assert (
        "dimension `T` is 3 or more wherever the model has a value: below, a Conv has a kernel "
        "larger than its input"
    ) in said


def test_a_conv_that_need_not_run_says_nothing() -> None:
    branches = """h = If (c) <then_branch = then () => (float[N,1,K] a) {
            a = Conv <strides = [2]> (x, w) },
        else_branch = other () => (float[N,1,K] b) {
            b = MaxPool <strides = [2], kernel_shape = [3]> (x) }>"""
    assert "wherever" not in remarks(model(branches))
