"""What simplifiers get wrong of names, functions and chance."""

from __future__ import annotations

import numpy as np
from never_wrong import F32, given, hold, noise
from truth import parse

import surgeon
from surgeon.runtime import Session


def test_nodes_of_one_name_are_named_apart() -> None:
    """onnxruntime refuses a file with two nodes of one name, so the copy has two names."""
    proto = parse(
        "g (float[N] x) => (float[N] y) { a = Neg (x) b = Exp (a) c = Identity (b) y = Relu (c) }"
    )
    for node in proto.graph.node:
        node.name = "same"
    after = surgeon.apply(proto, "clean", verify=False).model.to_proto()
    names = [node.name for node in after.graph.node]
    assert len(set(names)) == len(names) == 3
    x = noise(3)
    found = Session(after).run({"x": x})["y"]
    np.testing.assert_allclose(found, np.maximum(np.exp(-x), 0), rtol=1e-6)


def test_a_body_gives_each_value_once() -> None:
    """onnxruntime leaves the second of two outputs of one name as the memory was."""
    proto = parse(
        """
        g (bool p, float[N] x) => (float[N] y) {
          a, b, c = If (p) <
            then_branch = t () => (float[N] u, float[N] u, float[N] u) { u = Neg (x) },
            else_branch = e () => (float[N] v, float[N] w, float[N] v) {
              v = Exp (x) w = Relu (x) u_2 = Abs (x) }>
          d = Sub (a, b) e = Mul (d, c) y = Add (e, b)
        }
        """
    )
    result = surgeon.apply(proto, "clean")
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"
    assert "a body gave one value as several of its outputs" in result.report.remarks[0]
    assert all(name in result.report.remarks[0] for name in ("`u`", "`v`"))
    session = Session(result.model.to_proto())
    for x in (noise(3), noise(1)):
        for truth, wanted in (
            (True, -x),
            (False, (np.exp(x) - np.maximum(x, 0)) * np.exp(x) + np.maximum(x, 0)),
        ):
            found = session.run({"p": np.array(truth), "x": x})["y"]
            np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_a_body_that_gives_a_value_around_it_gives_a_copy() -> None:
    """onnxruntime refuses the file."""
    proto = parse(
        """
        g (bool p, float[N] x) => (float[N] y) {
          a = Neg (x)
          b, c = If (p) <
            then_branch = t () => (float[N] a, float[N] x) { x_2 = Exp (a) },
            else_branch = e () => (float[N] v, float[N] a) { v = Exp (x) }>
          y = Sub (b, c)
        }
        """
    )
    result = surgeon.apply(proto, "clean")
    assert "or one of the graph around it" in result.report.remarks[0]
    session = Session(result.model.to_proto())
    x = noise(3)
    for truth, wanted in ((True, -2 * x), (False, np.exp(x) + x)):
        found = session.run({"p": np.array(truth), "x": x})["y"]
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_functions_called_from_functions_and_from_bodies() -> None:
    proto = parse(
        """
        g (bool p, float[N,3] x) => (float[N,3] y, float[N,3] z) {
          i = Identity (x) a = my.outer <slope = 0.5> (i)
          y = If (p) <then_branch = t () => (float[N,3] r) { r = my.inner (a) },
                      else_branch = e () => (float[N,3] q) { q = my.outer <slope = 2.0> (a) }>
          z = my.inner (i)
        }
        <domain: "my", opset_import: ["": 17]>
        inner (v) => (o) { s = Shape (v) r = Reshape (v, s) k = Identity (r) o = Neg (k) }
        <domain: "my", opset_import: ["": 17, "my": 1]>
        outer <slope> (v) => (o) {
          a = my.inner (v) b = LeakyRelu <alpha: float = @slope> (a) o = my.inner (b) }
        """,
        domains=', "my": 1',
    )
    x = noise(2, 3)
    after = hold(proto, *({"p": np.array(p), "x": x} for p in (True, False)))
    assert [f.name for f in after.functions] == ["inner", "outer"]


def test_random_operators_are_neither_merged_nor_folded() -> None:
    proto = given(
        parse(
            """g (float[2,3] x) => (float[2,3] y, float[2,3] z, int64[1,9] w) {
              a = RandomNormal <shape = [2, 3], seed = 1.0> ()
              b = RandomNormal <shape = [2, 3], seed = 1.0> ()
              c = RandomUniformLike (k)
              d = RandomUniformLike (k)
              e = Bernoulli (k)
              f = Bernoulli (k)
              h = Dropout (k, half, yes)
              i = Dropout (k, half, yes)
              l = Multinomial <sample_size = 9, dtype = 7> (n)
              m = Multinomial <sample_size = 9, dtype = 7> (n)
              w = Sub (l, m)
              y = Sum (a, b, c, d, x)
              z = Sum (e, f, h, i, x)
            }"""
        ),
        k=np.full((2, 3), 0.5, F32),
        n=np.zeros((1, 4), F32),
        half=F32(0.5),
        yes=np.array(True),
    )
    found = surgeon.apply(proto, "clean", verify=False).report.after
    for op in ("RandomNormal", "RandomUniformLike", "Bernoulli", "Dropout", "Multinomial"):
        assert found[op] == 2
