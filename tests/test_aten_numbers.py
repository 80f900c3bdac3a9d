"""Functions of Python's numbers alone, and what a computed number makes of the tensors it meets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import pytest
from aten_call import HAS_TORCH
from complex_graphs import agree, aten, mended, model_of
from onnx import helper

from surgeon.reference import Reference

# Overloads, what they are given, and what PyTorch makes of it.
CALLS: dict[str, tuple[list[Any], Any]] = {
    "sqrt.int": ([7], 7**0.5),
    "sqrt.float": ([-1.0], np.nan),
    "sqrt.Scalar": ([7], float(np.sqrt(np.float32(7)))),
    "exp.int": ([-3], np.exp(-3.0)),
    "log.float": ([0.0], -np.inf),
    "log.int_int": ([7, 3], np.log(7) / np.log(3)),
    "log10.int": ([1000], 3.0),
    "cos.float": ([-0.6], np.cos(-0.6)),
    "tan.int": ([2], np.tan(2.0)),
    "sinh.float": ([0.7], np.sinh(0.7)),
    "round.int": ([7], 7.0),
    "round.float": ([2.5], 2.0),
    "round.Scalar": ([-1.5], -2.0),
    "fabs.int": ([-3], 3.0),
    "neg.int": ([3], -3),
    "neg.Scalar": ([2.5], -2.5),
    "angle.int": ([-3], np.pi),
    "degrees.float": ([0.5], np.degrees(0.5)),
    "radians.int": ([90], np.pi / 2),
    "isnan.float": ([np.nan], True),
    "copysign.int": ([7, -3], -7.0),
    "fmod.int": ([-7, 3], -1.0),
    "fmod.float_int": ([7.5, -3], 1.5),
    "mathremainder.int": ([7, 2], -1.0),
    "mathremainder.float": ([7.5, 2.0], -0.5),
    "remainder.float_int": ([-7.5, 2], 0.5),
    "gcd.int": ([-12, 18], 6),
    "__round_to_zero_floordiv.int": ([-7, 2], -3),
    "floordiv.float": ([-7.5, 2.0], -4.0),
    "add.float": ([0.1, 0.2], 0.1 + 0.2),
    "div.int": ([7, 3], 7 / 3),
    "atan2.int": ([7, 3], np.arctan2(7.0, 3.0)),
    "atan.float": ([1.5], np.arctan(1.5)),
    "erf.float": ([0.3], 0.3286267594591274),
    "pow.int": ([7, 3], 343.0),
    "gamma.float": ([4.5], 11.63172839656745),
    "gamma.int": ([5], 24.0),
    "factorial.int": ([5], 120),
}
# Of these two come at once, and of PyTorch's own operators the first is not reached by its name.
PAIRS: dict[str, list[tuple[list[Any], tuple[Any, Any]]]] = {
    "divmod.int": [([7, 3], (2, 1)), ([-7, 3], (-3, 2)), ([7, -3], (-3, -2)), ([-6, 3], (-2, 0))],
    "divmod.float": [([7.5, 2.0], (3.0, 1.5)), ([-7.5, 2.0], (-4.0, 0.5))],
    "divmod.int_float": [([7, -2.0], (-4.0, -1.0))],
    "modf": [([2.75], (0.75, 2.0)), ([-2.75], (-0.75, -2.0))],
}


def call(name: str, given: list[Any], opset: int, *, known: bool) -> tuple[Any, Any]:
    operator, _, overload = name.partition(".")
    names = [f"a{index}" for index in range(len(given))]
    feeds = dict(zip(names, map(np.asarray, given), strict=True))
    nodes = [aten(operator, names, "y", overload)]
    if known:
        nodes = [constant(n, v) for n, v in feeds.items()] + nodes
        feeds = {}
    model = model_of(nodes, feeds, opset)
    (told,) = Reference(model).run(feeds).values()
    return mended(model, feeds), told


def constant(name: str, value: Any) -> Any:
    return helper.make_node("Constant", [], [name], value=onnx.numpy_helper.from_array(value))


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_functions_of_numbers(name: str, known: bool) -> None:
    given, wanted = CALLS[name]
    if HAS_TORCH:
        import torch

        operator, _, overload = name.partition(".")
        its = getattr(getattr(torch.ops.aten, operator), overload)(*given)
        assert type(its) is type(np.asarray(wanted).item())
        np.testing.assert_allclose(its, wanted, rtol=1e-7)
    for opset in (13,) if known else (9, 17):
        for found in call(name, given, opset, known=known):
            assert found.dtype == np.asarray(wanted).dtype
            np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("name", PAIRS)
def test_two_numbers_at_once(name: str, place: int) -> None:
    operator, _, overload = name.partition(".")
    for given, wanted in PAIRS[name]:
        names = [f"a{index}" for index in range(len(given))]
        feeds = dict(zip(names, map(np.asarray, given), strict=True))
        outputs = ["y", "other"] if place == 0 else ["other", "y"]
        node = aten(operator, names, "y", overload)
        del node.output[:]
        node.output.extend(outputs)
        for opset in (9, 17):
            model = model_of([node], feeds, opset)
            (told,) = Reference(model).run(feeds).values()
            for found in (told, mended(model, feeds)):
                assert found.dtype == np.asarray(wanted[place]).dtype
                np.testing.assert_allclose(found, wanted[place], rtol=1e-12)


@pytest.mark.parametrize("number", [-0.5, -1.5, -2.25, 0.25, 30.5])
def test_gamma_on_either_side(number: float) -> None:
    for found in call("gamma.float", [number], 17, known=False):
        np.testing.assert_allclose(found, math.gamma(number), rtol=1e-11)


def test_factorials_in_64_bits() -> None:
    for number in (0, 1, 20):
        for found in call("factorial.int", [number], 9, known=False):
            assert found == math.factorial(number)


# What is done with a number n that a model computes, and the overload that says it is one.
MEETS: dict[str, list[str]] = {
    "mul.Scalar": ["x", "n"],
    "add.Scalar": ["x", "n", "one"],
    "rsub.Scalar": ["x", "n", "one"],
    "div.Scalar": ["x", "n"],
    "pow.Tensor_Scalar": ["x", "n"],
    "pow.Scalar": ["n", "x"],
    "remainder.Scalar": ["x", "n"],
    "xlogy.Scalar_Other": ["x", "n"],
    "where.ScalarOther": ["m", "x", "n"],
}


@pytest.mark.slow
@pytest.mark.parametrize("opset", [9, 17])
@pytest.mark.parametrize("name", MEETS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64, np.uint8])
def test_a_number_promotes_no_tensor(name: str, dtype: Any, opset: int) -> None:
    """Whether the tensor has axes or none: a tensor without axes would be promoted."""
    operator, _, overload = name.partition(".")
    whole = np.array([[1, 2, 3], [4, 5, 6]]).astype(dtype)
    for x in (whole, whole[1, 1:2].reshape(())):
        feeds = {"k": np.array(7), "x": x}
        if "m" in MEETS[name]:
            feeds["m"] = whole > 2
        nodes = [
            constant("one", np.array(1)),
            aten("sqrt", ["k"], "n", "int"),
            aten(operator, MEETS[name], "y", overload),
        ]
        if dtype == np.float16:
            model = model_of(nodes, feeds, opset)
            (told,) = Reference(model).run(feeds).values()
            found = mended(model, feeds)
            assert found.dtype == told.dtype == dtype
            np.testing.assert_allclose(found, told, rtol=2e-3, atol=2e-3)
        else:
            agree(nodes, feeds, opset)
