"""How nodes are spelled: the schemas of the witness, and arguments as they say."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import surgeon
from surgeon.reference.arguments import decode, fit
from surgeon.reference.operators.table import OPERATORS
from surgeon.reference.schema import Mismatch, parse_schema
from surgeon.schemas.aliases import plain_name


def test_a_schema_is_read() -> None:
    schema = parse_schema(
        "aten::f.over(Tensor(a!) self, SymInt[2] size, int[]? dim=None, *, float eps=1e-05, "
        'str mode="mean", Scalar alpha=1, ScalarType? dtype=None, Tensor?[] indices=[]) -> Tensor'
    )
    assert (schema.name, schema.overload) == ("f", "over")
    rows = [(p.name, p.type, p.is_list, p.count, p.optional) for p in schema.parameters]
    assert rows == [
        ("self", "Tensor", False, 0, False),
        ("size", "int", True, 2, False),
        ("dim", "int", True, 0, True),
        ("eps", "float", False, 0, False),
        ("mode", "str", False, 0, False),
        ("alpha", "Scalar", False, 0, False),
        ("dtype", "ScalarType", False, 0, True),
        ("indices", "Tensor", True, 0, False),
    ]
    assert [p.default for p in schema.parameters][3:6] == [1e-05, "mean", 1]


def test_every_schema_of_the_table_fits_its_function() -> None:
    for rows in OPERATORS.values():
        for text, function in rows:
            names = [p.name for p in parse_schema(text).parameters]
            code = function.__code__
            if code.co_flags & inspect.CO_VARKEYWORDS:  # it takes the rest and looks at none
                assert set(code.co_varnames[: code.co_argcount]) <= set(names), text
                continue
            taken = code.co_varnames[: code.co_argcount]
            required = taken[: len(taken) - len(function.__defaults__ or ())]
            assert set(required) <= set(names) <= set(taken), text


# Drawn at random, refused by a rule that says why, or read off what the witness carries with it or
# the node itself holds.
WITHOUT_A_FUNCTION = frozenset(
    "Constant _sample_dirichlet _standard_gamma binomial poisson "
    "_batch_norm_with_update _batch_norm_with_update_functional _linalg_eigvals eig linalg_eig "
    "linalg_eigvals linalg_ldl_factor linalg_ldl_factor_ex lstsq ps_roi_pool dequantize int_repr "
    "q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point".split()
)


def test_every_operator_that_has_a_rule_has_a_witness() -> None:
    """Else what a rule makes of it is compared with nothing."""
    rules = [rule for rule in surgeon.Recipe.load("aten").rules if not rule.only_refuses]
    roots = [rule.match.nodes[-1] for rule in rules]
    operators = {each for root in roots if root.domain == "aten" for each in root.operators}
    assert len(operators) > 700
    missing = {each for each in operators if plain_name(each) not in OPERATORS}
    assert missing - OPERATORS.keys() <= WITHOUT_A_FUNCTION


def node(op_type: str, domain: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, ["x"], ["y"], domain=domain, **attributes)


@pytest.mark.parametrize(
    ("spelled", "operator", "overload"),
    [
        (
            node("ATen", "org.pytorch.aten", operator="mul", overload_name="Tensor"),
            "mul",
            "Tensor",
        ),
        (node("ATen", "org.pytorch.aten", operator="celu"), "celu", ""),
        (node("ATen", "", operator="group_norm", eps=1.0), "group_norm", ""),
        (node("adaptive_avg_pool2d", "org.pytorch.aten"), "adaptive_avg_pool2d", ""),
        (node("ATen", "org.pytorch.aten", operator="__and_", overload_name=""), "__and__", ""),
        (node("__and__", "org.pytorch.aten"), "__and__", ""),
        (node("ATen", "com.microsoft", operator="aten::gelu", overload_name=""), "gelu", ""),
    ],
)
def test_every_spelling_names_its_operator(
    spelled: onnx.NodeProto, operator: str, overload: str
) -> None:
    call = decode(spelled)
    assert (call.operator, call.overload) == (operator, overload)
    assert set(call.attributes) == ({"eps"} if operator == "group_norm" else set())


def test_arguments_become_what_the_schema_says() -> None:
    text = "f(Tensor x, int n, float p, bool b, int[2] k, ScalarType? dtype, Scalar s, str? m) -> T"
    number = np.asarray
    values = [number(1.5), number(3), number(0.5), number(1), number(2), number(6), number(2.5), ""]
    call = decode(node("f", "org.pytorch.aten"))
    _, bound = fit([text], call, values)
    assert bound == {
        "x": 1.5,
        "n": 3,
        "p": 0.5,
        "b": True,
        "k": [2, 2],
        "dtype": np.float32,
        "s": 2.5,
        "m": "",
    }
    with pytest.raises(Mismatch, match=r"`n` is 0.5, no integer"):
        fit([text], call, [number(1.5), number(0.5), *values[2:]])
    with pytest.raises(Mismatch, match="9 arguments are given, it takes 8"):
        fit([text], call, [*values, number(1)])


def test_a_flattened_list_is_gathered() -> None:
    text = "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> T"
    call = decode(node("index_put", "org.pytorch.aten"))
    x = np.zeros(3)
    _, bound = fit([text], call, [x, x, x, x, np.asarray(1)])
    assert len(bound["indices"]) == 2
    assert bound["accumulate"] is True
    _, bound = fit([text], call, [x, [x, None], x, np.asarray(0)])
    assert bound["indices"][1] is None
    text = "einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> T"
    for more in ([], [None]):
        _, bound = fit([text], call, ["ij,jk->ik", np.eye(2), np.eye(2), *more])
        assert (len(bound["tensors"]), bound["path"]) == (2, None)


def test_a_list_of_tensors_of_several_shapes_is_no_number() -> None:
    """`gru` has nine arguments with a batch and without: where the weights stand tells which."""
    plain = "gru.input(Tensor input, Tensor hx, Tensor[] params, bool has_biases) -> T"
    packed = "gru.data(Tensor data, Tensor batch_sizes, Tensor hx, Tensor[] params) -> T"
    call = decode(node("gru", "org.pytorch.aten"))
    x, weights = np.zeros((4, 6)), [np.zeros((6, 6)), np.zeros((6, 2)), np.zeros(6)]
    index, bound = fit([plain, packed], call, [x, np.ones(2), x, weights])
    assert index == 1
    assert len(bound["params"]) == 3
