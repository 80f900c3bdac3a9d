"""Operators that nothing replaces: each one that PyTorch has is refused with a reason."""

from __future__ import annotations

import re

import pytest
from onnx import TensorProto, helper

import surgeon
from surgeon.builders.refused import REASONS
from surgeon.handbook import pages
from surgeon.recipe import Recipe, bundled
from surgeon.schemas import _lines, is_known, overloads
from surgeon.schemas.aliases import plain_name

# PyTorch's own trials, and names of its oldest releases that stand for a function in Python.
_NO_OPERATORS = re.compile(r"_test_|_foobar|__")


def test_the_recipe_names_what_has_a_reason() -> None:
    rules = Recipe.load(str(bundled()["aten-refused"])).rules
    assert {name for rule in rules for name in rule.match.nodes[-1].operators} == set(REASONS)
    # which the exporter made, or has of `quantized::`
    strange = ["linear_dynamic", "linear_dynamic_fp16", "linear_relu_dynamic", "If", "PythonOp"]
    assert [name for name in REASONS if not is_known(name)] == strange


def test_every_operator_on_tensors_has_a_rule_or_a_reason() -> None:
    page = pages()["operators.md"]
    known = set(re.findall(r"^\| `(\w+)` ", page, re.MULTILINE)) | set(REASONS)
    lists = {"split", "split_with_sizes", "chunk", "unbind", "tensor_split", "hsplit", "vsplit"}
    lists |= {"dsplit", "meshgrid", "broadcast_tensors", "nonzero_numpy"}
    lists |= {"unflatten_dense_tensors", "gradient", "_histogramdd_bin_edges"}
    lists |= {"quantize_per_tensor", "quantize_per_channel"}
    # these by the rules on what opens a list, or takes floats out of a quantised tensor
    missing = [
        name
        for name in _lines()
        if not {name, plain_name(name)} & (known | lists)
        and not _NO_OPERATORS.match(name)
        and any(p.type == "Tensor" for s in overloads(name) for p in s.parameters)
    ]
    assert not missing
    assert not [name for name in REASONS if f"| `{name}` " in page]


@pytest.mark.parametrize("operator", ["to_sparse", "hash_tensor", "quantize_per_tensor_dynamic"])
def test_what_is_left_says_why(operator: str) -> None:
    node = helper.make_node(operator, ["x"], ["y"], domain="org.pytorch.aten")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("org.pytorch.aten", 1)]
    model = helper.make_model(
        helper.make_graph([node], "g", [x], [y]), opset_imports=opsets, ir_version=8
    )
    with pytest.raises(surgeon.SurgeonError, match=re.escape(REASONS[operator])):
        surgeon.apply(model, "aten")


@pytest.mark.parametrize("operator", ["_assert_async", "sym_constrain_range"])
def test_an_assertion_that_gives_nothing_is_gone(operator: str) -> None:
    nodes = [
        helper.make_node(operator, ["x"], [], domain="org.pytorch.aten"),
        helper.make_node("Relu", ["x"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("org.pytorch.aten", 1)]
    model = helper.make_model(
        helper.make_graph(nodes, "g", [x], [y]), opset_imports=opsets, ir_version=8
    )
    made = surgeon.apply(model, "aten").model.to_proto()
    assert [node.op_type for node in made.graph.node] == ["Relu"]
