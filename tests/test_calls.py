"""Calls of model-local functions, written out where that makes no more nodes or says more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from truth import parse

import surgeon
from surgeon.chance import drawn_outputs
from surgeon.runtime import Session

F32 = np.float32
X = np.linspace(-2, 3, 6, dtype=F32).reshape(2, 3)


def repaired(proto: onnx.ModelProto, recipe: str = "clean", **options: Any) -> onnx.ModelProto:
    """What a recipe makes of a model, checked."""
    out = surgeon.apply(proto, recipe, **options).model.to_proto()
    onnx.checker.check_model(out)
    return out


def held(proto: onnx.ModelProto, feeds: Mapping[str, Any], recipe: str = "clean") -> list[str]:
    """The operators that are left of a model whose result computes what it did."""
    out = repaired(proto, recipe)
    wanted = Session(proto).run(dict(feeds))
    for name, value in Session(out).run(dict(feeds)).items():
        np.testing.assert_allclose(value, wanted[name], rtol=1e-6)
    return [node.op_type for top in (out.graph, *out.functions) for node in top.node]


def test_what_is_called_once_is_written_out() -> None:
    proto = parse(
        """
        g (float[n,3] x) => (float[n,3] y) { y = my.f (x) }
        <domain: "my", opset_import: ["": 17]>
        f (v) => (o) {
          c = Constant <value = float[3] {1, 2, 3}> () a = Add (v, c) s = Shape (v)
          r = Reshape (a, s) o = Neg (r) }
        """,
        domains=', "my": 1',
    )
    assert held(proto, {"x": X}) == ["Add", "Neg"]
    out = repaired(proto)
    assert not out.functions
    assert [entry.domain for entry in out.opset_import] == [""]


TWICE = """
    g (float[n,3] x) => (float[n,3] y) { a = my.f (x) b = my.f (a) y = Tanh (b) }
    <domain: "my", opset_import: ["": 17]>
    f (v) => (o) { BODY }
"""


@pytest.mark.parametrize(
    ("body", "left"),
    [
        pytest.param(
            "a = Exp (v) b = Neg (a) o = Relu (b)",
            ["f", "f", "Tanh", "Exp", "Neg", "Relu"],
            id="more nodes than calls and function",
        ),
        pytest.param(
            "a = Exp (v) o = Neg (a)", ["Exp", "Neg", "Exp", "Neg", "Tanh"], id="as many nodes"
        ),
        pytest.param(
            "s = Shape (v) r = Reshape (v, s) i = Identity (r) o = Exp (i)",
            ["Exp", "Exp", "Tanh"],
            id="few once it was cleaned",
        ),
        pytest.param("o = Identity (v)", ["Tanh"], id="none"),
    ],
)
def test_what_is_called_twice_is_written_out_where_that_is_no_more(
    body: str, left: list[str]
) -> None:
    proto = parse(TWICE.replace("BODY", body), domains=', "my": 1')
    assert held(proto, {"x": X}) == left


def test_attributes_go_from_the_call_to_the_nodes_that_refer_to_them() -> None:
    """One is given, one has a default, one is left out; one is read in a body."""
    proto = parse(
        """
        g (bool p, float[n,3] x) => (float[n,3] y) { y = my.f <slope = 0.5> (p, x) }
        <domain: "my", opset_import: ["": 17]>
        f <slope, axis, power: float = 2.0> (p, v) => (o) {
          k = Constant <value_float: float = @power> ()
          a = Softmax <axis: int = @axis> (v)
          b = Pow (a, k)
          o = If (p) <then_branch = t () => (r) { r = LeakyRelu <alpha: float = @slope> (v) },
                      else_branch = e () => (q) { q = Elu <alpha: float = @slope> (b) }> }
        """,
        domains=', "my": 1',
        ir=9,
    )
    for p in (True, False):
        left = held(proto, {"p": np.array(p), "x": X})
        assert "f" not in left
        assert "If" in left
    inner = [a.g for n in repaired(proto).graph.node for a in n.attribute if a.HasField("g")]
    alphas = [a.f for body in inner for n in body.node for a in n.attribute if a.name == "alpha"]
    assert alphas == [0.5, 0.5]


def test_calls_in_functions_and_bodies_hand_their_attributes_on() -> None:
    proto = parse(
        """
        g (bool p, float[n,3] x) => (float[n,3] y) {
          y = If (p) <then_branch = t () => (float[n,3] r) { r = my.outer <slope = 0.25> (x) },
                      else_branch = e () => (float[n,3] q) { q = Neg (x) }> }
        <domain: "my", opset_import: ["": 17]>
        inner <alpha> (v) => (o) { o = LeakyRelu <alpha: float = @alpha> (v) }
        <domain: "my", opset_import: ["": 17, "my": 1]>
        outer <slope> (v) => (o) { a = my.inner <alpha: float = @slope> (v) o = Exp (a) }
        """,
        domains=', "my": 1',
    )
    for p in (True, False):
        assert held(proto, {"p": np.array(p), "x": X}) == ["If"]
    assert not repaired(proto).functions


def test_an_output_may_be_an_input_or_come_twice_and_an_input_be_left_out() -> None:
    proto = parse(
        """
        g (float[n,3] x) => (float[n,3] y, float[n,3] z, float[n,3] w) {
          y, z, w = my.f (x) }
        <domain: "my", opset_import: ["": 17]>
        f (v, low, high) => (o, same, twice) { o = Clip (v, low, high) same = Identity (v)
          twice = Identity (o) }
        """,
        domains=', "my": 1',
    )
    left = held(proto, {"x": X})
    assert "f" not in left
    assert left.count("Identity") <= 3


@pytest.mark.parametrize("domain", ["com.microsoft", "com.microsoft.nchwc"])
def test_what_a_runtime_may_have_a_kernel_for_stays_a_call(domain: str) -> None:
    proto = parse(
        f"""
        g (float[n,3] x) => (float[n,3] y) {{ a = {domain}.Own (x) y = Neg (a) }}
        <domain: "{domain}", opset_import: ["": 17]>
        Own (v) => (o) {{ a = Identity (v) o = Exp (a) }}
        """,
        domains=f', "{domain}": 1',
    )
    out = repaired(proto, verify=False)
    assert [node.op_type for node in out.graph.node] == ["Own", "Neg"]
    assert [node.op_type for node in out.functions[0].node] == ["Exp"]


def test_a_function_of_another_opset_stays_as_it_is() -> None:
    """The same words mean other things there."""
    proto = parse(
        """
        g (float[n,3] x) => (float[n,3] y) { a = Identity (x) y = my.f (a) }
        <domain: "my", opset_import: ["": 18]>
        f (v) => (o) { a = Identity (v) o = Neg (a) }
        """,
        domains=', "my": 1',
    )
    out = repaired(proto, verify=False)
    assert out.functions[0] == proto.functions[0]
    assert [node.op_type for node in out.graph.node] == ["f"]


def test_a_function_of_fallback_nodes_alone_imports_what_becomes_of_them() -> None:
    proto = parse(
        """
        g (float[n,3] x, float[m] z) => (float[a,b] y, float[c] q) {
          y = my.f (x) q = my.f (z) }
        <domain: "my", opset_import: ["org.pytorch.aten": 0]>
        f (v) => (o) {
          a = org.pytorch.aten.ATen <operator = "log1p", overload_name = ""> (v)
          o = org.pytorch.aten.ATen <operator = "square", overload_name = ""> (a) }
        """,
        domains=', "my": 1, "org.pytorch.aten": 1',
    )
    out = repaired(proto, "aten")
    assert [(e.domain, e.version) for e in out.functions[0].opset_import] == [("", 17)]
    found = Session(out).run({"x": np.abs(X), "z": np.ones(4, F32)})
    np.testing.assert_allclose(found["y"], np.log1p(np.abs(X)) ** 2, rtol=1e-5)


def test_a_fallback_node_that_needs_to_know_its_call_is_mended_there() -> None:
    """The rank differs from call to call, and so does what the node becomes."""
    proto = parse(
        """
        g (float[2,3] x, float[2,3,4] z) => (float[a,b] y, float[c,d,e] q) {
          y = my.f (x) q = my.f (z) }
        <domain: "my", opset_import: ["": 17, "org.pytorch.aten": 1]>
        f (v) => (o) { a = Exp (v)
          b = org.pytorch.aten.ATen <operator = "numpy_T", overload_name = ""> (a) o = Neg (b) }
        """,
        domains=', "my": 1, "org.pytorch.aten": 1',
    )
    out = repaired(proto, "aten")
    assert not out.functions
    x, z = np.ones((2, 3), F32), np.arange(24, dtype=F32).reshape(2, 3, 4)
    found = Session(out).run({"x": x, "z": z})
    np.testing.assert_allclose(found["y"], -np.exp(x.T), rtol=1e-6)
    np.testing.assert_allclose(found["q"], -np.exp(z.T), rtol=1e-6)


def test_standard_functions_stay_where_nodes_need_not_be_few() -> None:
    proto = parse(
        """
        g (float[n,3] x) => (float[n,3] y) {
          a = my.f (x) y = org.pytorch.aten.ATen <operator = "expm1", overload_name = ""> (a) }
        <domain: "my", opset_import: ["": 17]>
        f (v) => (o) { a = Exp (v) o = Neg (a) }
        """,
        domains=', "my": 1, "org.pytorch.aten": 1',
    )
    out = repaired(proto, "aten")
    assert [node.op_type for node in out.functions[0].node] == ["Exp", "Neg"]
    assert [entry.domain for entry in out.opset_import] == ["", "my"]


@pytest.mark.slow
@pytest.mark.parametrize("domain", ["my", "pkg.onnxscript.torch_lib"])
@pytest.mark.parametrize("depth", [5, 17])
def test_functions_that_call_one_another_twice_do_not_grow_without_bounds(
    domain: str, depth: int
) -> None:
    """Of 17 levels it would be a quarter of a million nodes, if all were written out."""
    levels = "".join(
        f"""<domain: "{domain}", opset_import: ["": 17, "{domain}": 1]>
        f{i} (v) => (o) {{ a = {domain}.f{i - 1} (v) o = {domain}.f{i - 1} (a) }}"""
        for i in range(1, depth)
    )
    proto = parse(
        f"""
        g (float[3] x) => (float[3] y) {{ a = {domain}.f{depth - 1} (x) y = Neg (a) }}
        <domain: "{domain}", opset_import: ["": 17]>
        f0 (v) => (o) {{ a = Sin (v) o = Cos (a) }}
        {levels}
        """,
        domains=f', "{domain}": 1',
    )
    out = repaired(proto, verify=False)
    assert sum(len(top.node) for top in (out.graph, *out.functions)) < 20_000
    if depth == 5:  # onnxruntime writes them all out
        x = np.ones(3, F32)
        found, wanted = Session(out).run({"x": x})["y"], Session(proto).run({"x": x})["y"]
        np.testing.assert_allclose(found, wanted)


def test_functions_of_one_name_are_told_apart_by_their_overload() -> None:
    proto = parse(
        """
        g (float[n,3] x) => (float[n,3] y) { a = my.f (x) y = my.f (a) }
        <domain: "my", opset_import: ["": 17]>
        f (v) => (o) { a = Identity (v) o = Neg (a) }
        <domain: "my", opset_import: ["": 17]>
        f (v) => (o) { a = Identity (v) o = Exp (a) }
        """,
        domains=', "my": 1',
        ir=10,
    )
    proto.functions[1].overload = proto.graph.node[1].overload = "exp"
    assert held(proto, {"x": X}) == ["Neg", "Exp"]


def test_a_function_that_nothing_calls_goes_where_nodes_are_to_be_few() -> None:
    proto = parse(
        """
        g (float[n,3] x) => (float[n,3] y) {
          y = org.pytorch.aten.ATen <operator = "expm1", overload_name = ""> (x) }
        <domain: "my", opset_import: ["": 17, "my": 1]>
        outer (v) => (o) { a = my.inner (v) o = Neg (a) }
        <domain: "my", opset_import: ["": 17]>
        inner (v) => (o) { o = Exp (v) }
        """,
        domains=', "my": 1, "org.pytorch.aten": 1',
    )
    assert [f.name for f in repaired(proto, "aten").functions] == ["outer", "inner"]
    assert not repaired(repaired(proto, "aten")).functions


def test_what_a_function_draws_is_drawn_whoever_calls_it() -> None:
    proto = parse(
        """
        g (float[2,3] x) => (float[2,3] y, float[2,3] z) { y = my.outer (x) z = my.plain (x) }
        <domain: "my", opset_import: ["": 17, "my": 1]>
        outer (v) => (o) { a = my.inner (v) o = Neg (a) }
        <domain: "my", opset_import: ["": 17]>
        inner (v) => (o) { o = RandomNormalLike (v) }
        <domain: "my", opset_import: ["": 17]>
        plain (v) => (o) { o = Neg (v) }
        """,
        domains=', "my": 1',
    )
    assert drawn_outputs(proto) == {"y": True}
