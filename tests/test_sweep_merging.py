"""What the walk merges and folds, and what it leaves: equal nodes, constants, their limits."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import onnx
import pytest
from sweeping import F32, FOLD, ints, ops
from truth import model_of, parse

import surgeon
from surgeon.recipe import Recipe
from surgeon.runtime import Session


def test_random_nodes_are_neither_merged_nor_folded() -> None:
    proto = parse(
        """
        g (float[2,3] x) => (float[2,3] y) {
          a = RandomNormal <shape = [2, 3]> ()
          b = RandomNormal <shape = [2, 3]> ()
          c = RandomUniformLike (x)
          d = RandomUniformLike (x)
          e = Sub (a, b)
          f = Sub (c, d)
          h = Bernoulli (x)
          i = Bernoulli (x)
          j = Sub (h, i)
          k = Sum (e, f, j)
          l = Relu (x)
          m = Relu (x)
          o = Sub (l, m)
          y = Add (k, o)
        }
        """
    )
    result = surgeon.apply(proto, FOLD, verify=False)
    counts = result.report.after
    assert counts["RandomNormal"] == counts["RandomUniformLike"] == counts["Bernoulli"] == 2
    assert counts["Relu"] == 1


def test_equal_nodes_merge_by_attributes_inputs_and_constants() -> None:
    proto = model_of(
        "float[n,4] x",
        "a = Softmax <axis = 0> (x) b = Softmax <axis = 1> (x) c = Softmax <axis = 0> (x) "
        "d = Add (x, k) e = Add (x, l) f = Add (x, m) y = Sum (a, b, c, d, e, f)",
        "y",
        constants={"k": F32(1), "l": F32(1), "m": F32(2)},
    )
    result = surgeon.apply(proto, FOLD)
    assert result.report.after == {"Softmax": 2, "Add": 2, "Sum": 1}
    assert result.report.housekeeping["equal nodes merged"] == 2


def test_an_output_that_an_earlier_node_computes_too_is_made_by_that_node() -> None:
    proto = model_of("float[n,4] x", "a = Relu (x) b = Neg (a) y = Relu (x) z = Exp (y)", "b y z")
    result = surgeon.apply(proto, FOLD)
    assert result.report.after == {"Relu": 1, "Neg": 1, "Exp": 1}
    assert [o.name for o in result.model.to_proto().graph.output] == ["b", "y", "z"]


def test_two_outputs_of_one_value_stay_two() -> None:
    proto = model_of("float[n,4] x", "y = Relu (x) z = Relu (x)", "y z")
    result = surgeon.apply(proto, FOLD, verify=False)
    assert result.report.after == {"Relu": 2}


def test_constants_of_other_dtypes_or_shapes_are_not_equal() -> None:
    proto = model_of(
        "float[n] x",
        "a = Cast <to = 7> (x) b = Cast <to = 6> (x) c = Add (a, k) d = Add (b, l) e = Add (x, f) "
        "h = Add (x, i) o = Cast <to = 1> (c) p = Cast <to = 1> (d) y = Sum (o, p, e, h)",
        "y",
        constants={
            "k": np.int64(0),
            "l": np.int32(0),
            "f": F32(0),
            "i": F32(-0.0),
        },
    )
    result = surgeon.apply(proto, FOLD)
    assert result.report.after["Add"] == 4


def test_constants_of_equal_bytes_and_other_dtypes_are_not_equal() -> None:
    proto = model_of(
        "float[n] x",
        "a = CastLike (x, k) b = CastLike (x, l) c = Cast <to = 1> (b) y = Add (a, c)",
        "y",
        constants={"k": F32(0), "l": np.int32(0)},
    )
    assert surgeon.apply(proto, FOLD).report.after["CastLike"] == 2


def test_nodes_of_foreign_domains_are_not_merged() -> None:
    proto = parse(
        "g (float[n] x) => (float[n] y) { a = my.Draw (x) b = my.Draw (x) y = Add (a, b) }",
        domains=', "my": 1',
    )
    result = surgeon.apply(proto, FOLD, verify=False)
    assert result.report.after["my.Draw"] == 2


@pytest.mark.parametrize(
    ("body", "constants"),
    [
        ("y = ConstantOfShape (s)", {"s": ints(100_000, 100_000)}),
        ("y = Range (o, e, p)", {"o": np.int64(0), "e": np.int64(10**9), "p": np.int64(1)}),
        ("y = Tile (o, s)", {"o": np.ones((1, 1), F32), "s": ints(100_000, 100_000)}),
        ("y = Expand (o, s)", {"o": np.ones((1, 1), F32), "s": ints(100_000, 100_000)}),
        ("y = Pad (o, s)", {"o": np.ones((1, 1), F32), "s": ints(0, 0, 100_000, 100_000)}),
        (
            "y = Resize (o, , s)",
            {"o": np.ones((1, 1, 1, 1), F32), "s": np.array([1, 1, 1e5, 1e5], F32)},
        ),
        ("y = MatMul (o, e)", {"o": np.ones((60_000, 1), F32), "e": np.ones((1, 60_000), F32)}),
        ("y = Add (o, e)", {"o": np.ones((60_000, 1), F32), "e": np.ones((1, 60_000), F32)}),
        ("y = OneHot (i, e, o)", {"i": ints(1, 2), "e": np.int64(10**10), "o": np.ones(2, F32)}),
        (
            "a = Expand (o, s) b = Shape (a) y = ConstantOfShape (b)",
            {"o": np.ones((1, 1), F32), "s": ints(10**5, 10**5)},
        ),
        (
            "a = Tile (o, s) b = Tile (a, s) c = Tile (b, s) y = Tile (c, s)",
            {"o": np.ones((1, 1), F32), "s": ints(200, 200)},
        ),
    ],
)
def test_folding_does_not_bloat_a_file(body: str, constants: dict[str, Any]) -> None:
    proto = model_of("float[1] x", f"{body} q = Relu (x)", "y q", constants=constants)
    start = time.perf_counter()
    result = surgeon.apply(proto, FOLD, verify=False)
    assert time.perf_counter() - start < 2
    assert result.model.to_proto().ByteSize() < proto.ByteSize() + 4 * (1 << 20)
    assert any("y" in node.output for node in result.model.to_proto().graph.node)


def test_folding_with_a_limit_of_its_own() -> None:
    body = "a = Expand (o, s) y = Add (x, a)"
    proto = model_of("float[2048] x", body, "y", constants={"o": np.ones(1, F32), "s": ints(2048)})
    small = Recipe.parse("surgeon: 1\nname: f\nsteps:\n  - fold: {max_bytes: 4096}\n")
    assert surgeon.apply(proto, FOLD).report.after == {"Add": 1}
    assert surgeon.apply(proto, small).report.after == {"Expand": 1, "Add": 1}


def test_constants_are_folded_by_onnxruntime_where_numpy_has_no_such_operator() -> None:
    proto = model_of(
        "float[2,2] x",
        "a = Gemm (k, k) b = Softmax (a) c = Erf (b) d = Cast <to = 10> (c) e = Cast <to = 1> "
        "(d) y = Add (x, e)",
        "y",
        constants={"k": np.ones((2, 2), F32)},
    )
    result = surgeon.apply(proto, FOLD)
    assert result.report.after == {"Add": 1}
    feeds = {"x": np.ones((2, 2), F32)}
    found = Session(result.model.to_proto()).run(feeds)["y"]
    np.testing.assert_array_equal(found, Session(proto).run(feeds)["y"])


def test_an_output_that_is_constant_is_a_constant_node() -> None:
    proto = model_of("float[n] x", "y = Neg (k) q = Relu (x)", "y q", constants={"k": F32(2)})
    result = surgeon.apply(proto, FOLD)
    assert sorted(ops(result.model.to_proto().graph)) == ["Constant", "Relu"]
    found = Session(result.model.to_proto()).run({"x": F32([1, -1])})
    np.testing.assert_array_equal(found["y"], F32(-2))


def test_constants_inside_functions_have_their_values() -> None:
    proto = parse(
        """
        g (float[2,3] x) => (float[6] y) { y = my.f (x) }
        <domain: "my", opset_import: ["": 17]>
        f (v) => (o) {
          k = Constant <value = int64[1] {-1}> () s = Neg (k) t = Neg (s) o = Reshape (v, t)
        }
        """,
        domains=', "my": 1',
    )
    result = surgeon.apply(proto, FOLD)
    assert result.report.after == {"my.f": 1, "Reshape": 1}


def test_what_cannot_be_computed_stays() -> None:
    proto = model_of(
        "float[2] x",
        "a = my.Secret (k) b = Reshape (k, s) y = Add (x, a)",
        "y b",
        constants={"k": np.ones(2, F32), "s": ints(3)},
    )
    proto.opset_import.append(onnx.helper.make_opsetid("my", 1))
    result = surgeon.apply(proto, FOLD, verify=False)
    assert result.report.after == {"Add": 1, "my.Secret": 1, "Reshape": 1}


def test_equal_chains_that_rules_made_are_merged_in_one_walk() -> None:
    nodes = (
        'a = org.pytorch.aten.ATen <operator = "inverse"> (x) '
        'b = org.pytorch.aten.ATen <operator = "linalg_inv"> (x) y = Add (a, b)'
    )
    proto = model_of("float[n,9,9] x", nodes, "y")
    proto.opset_import.append(onnx.helper.make_opsetid("org.pytorch.aten", 1))
    whole = surgeon.apply(proto, "aten-linalg", verify=False).report.after
    single = surgeon.apply(
        model_of("float[n,9,9] x", nodes.partition(" b = ")[0].replace("a =", "y ="), "y"),
        "aten-linalg",
        verify=False,
    ).report.after
    assert whole == {**single, "Add": single.get("Add", 0) + 1}
