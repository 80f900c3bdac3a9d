"""Further operators that read complex values or make lists of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from aten_layer import normal
from complex_graphs import BEGIN, agree, aten, constant, mended, model_of, of_values
from onnx import helper

from surgeon.errors import LeftoverError

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

Z, W = normal(3, 4, 2), normal(3, 4, 2)
STRANGE = Z.copy()
STRANGE[0, 0] = np.nan, 0
STRANGE[0, 1] = np.inf, np.nan
STRANGE[1, 1] = 1, -np.inf
STRANGE[2] = 0
STRANGE[2, 1] = 0, 1


@pytest.mark.parametrize("operator", ["logical_and", "logical_or", "logical_xor"])
def test_truth_of_two_values(operator: str) -> None:
    of_values([aten(operator, ["a", "b"], "y")], {"z": STRANGE, "w": W})
    real = np.array([0, 1, 0, 2], np.float32)
    of_values([aten(operator, ["a", "r"], "y")], {"z": STRANGE, "r": real})
    of_values([aten(operator, ["r", "a"], "y")], {"z": STRANGE, "r": real})


@pytest.mark.parametrize("operator", ["logical_not", "count_nonzero", "isreal", "absolute"])
def test_what_is_read_of_one_value(operator: str) -> None:
    of_values([aten(operator, ["a"], "y")], {"z": STRANGE if operator != "absolute" else Z})


def test_counts_along_axes() -> None:
    nodes = [constant("dim", [0, 1]), aten("count_nonzero", ["a", "dim"], "y", "dim_IntList")]
    of_values(nodes, {"z": STRANGE})


@pytest.mark.parametrize("numbers", [(), (1.0, 2.0, 3.0), (1.0, np.inf, -np.inf)])
def test_each_part_is_made_a_number(numbers: tuple[float, ...]) -> None:
    names = [f"n{i}" for i in range(len(numbers))]
    nodes = [constant(*pair) for pair in zip(names, numbers, strict=True)]
    nodes += [aten("nan_to_num", ["a", *names], "d"), aten("view_as_real", ["d"], "y")]
    of_values(nodes, {"z": STRANGE})


@pytest.mark.parametrize("axis", [0, -1])
def test_running_products(axis: int) -> None:
    nodes = [constant("dim", axis), aten("cumprod", ["a", "dim"], "d")]
    of_values([*nodes, aten("view_as_real", ["d"], "y")], {"z": Z})


@pytest.mark.parametrize("operator", "subtract multiply divide true_divide".split())
def test_the_longer_names_of_arithmetic(operator: str) -> None:
    nodes = [aten(operator, ["a", "b"], "c"), aten("negative", ["c"], "d")]
    of_values([*nodes, aten("view_as_real", ["d"], "y")], {"z": Z, "w": W})


@pytest.mark.parametrize("operator", ["fliplr", "flipud", "atleast_3d"])
def test_further_moves(operator: str) -> None:
    of_values([aten(operator, ["a"], "d"), aten("view_as_real", ["d"], "y")], {"z": Z})


def listed(*names: str) -> Any:
    return helper.make_node("ListConstruct", list(names), ["l"], domain="prim")


@pytest.mark.parametrize("second", ["w", "r"])
def test_blocks_of_a_matrix(second: str) -> None:
    feeds = {"z": Z, second: W if second == "w" else W[..., 0]}
    nodes = [listed("a", "b" if second == "w" else "r"), aten("block_diag", ["l"], "d")]
    of_values([*nodes, aten("view_as_real", ["d"], "y")], feeds)


@pytest.mark.parametrize("index", [0, 1])
def test_values_that_are_broadcast(index: int) -> None:
    unpacked = helper.make_node("ListUnpack", ["m"], ["first", "second"], domain="prim")
    nodes = [listed("a", "b"), aten("broadcast_tensors", ["l"], "m"), unpacked]
    nodes.append(aten("view_as_real", [unpacked.output[index]], "y"))
    of_values(nodes, {"z": Z[:, :1], "w": W[0]})


def test_real_values_beside_complex_ones_are_not_broadcast() -> None:
    unpacked = helper.make_node("ListUnpack", ["m"], ["first", "second"], domain="prim")
    nodes = [BEGIN[0], listed("a", "r"), aten("broadcast_tensors", ["l"], "m"), unpacked]
    feeds = {"z": Z[:, :1], "r": W[0, :, 0]}
    with pytest.raises(LeftoverError):
        mended(model_of([*nodes, aten("view_as_real", ["first"], "y")], feeds), feeds)


@pytest.mark.parametrize("opset", [9, 17])
def test_a_line_at_a_place_of_run_time(opset: int) -> None:
    nodes = [BEGIN[0], constant("one", 1), aten("unbind", ["a", "one"], "l", "int")]
    nodes += [aten("__getitem__", ["l", "i"], "d", "t"), aten("view_as_real", ["d"], "y")]
    for place in (2, -1):
        feeds = {"z": Z, "i": np.array(place)}
        np.testing.assert_array_equal(mended(model_of(nodes, feeds, opset), feeds), Z[:, place])


@pytest.mark.parametrize("operator", ["rsqrt", "tan", "exp2"])
def test_further_functions_of_one_value(operator: str) -> None:
    of_values([aten(operator, ["a"], "d"), aten("view_as_real", ["d"], "y")], {"z": Z})


@pytest.mark.parametrize("exponent", [0.3, 2.5])
def test_powers_by_positive_numbers(exponent: float) -> None:
    nodes = [constant("e", exponent), aten("pow", ["a", "e"], "d")]
    feeds = {"z": np.where(np.isfinite(STRANGE), STRANGE, 2)}
    of_values([*nodes, aten("view_as_real", ["d"], "y")], feeds)


@pytest.mark.parametrize("operator", ["var", "std"])
def test_how_far_values_spread(operator: str) -> None:
    of_values([aten(operator, ["a"], "y")], {"z": Z})
    rest = [constant("dim", [0]), constant("less", 2), constant("keeps", True)]
    nodes = [*rest, aten(operator, ["a", "dim", "less", "keeps"], "y", "correction")]
    of_values(nodes, {"z": Z})


@pytest.mark.parametrize("order", [1.0, 2.0, np.inf])
def test_how_far_values_are_apart(order: float) -> None:
    of_values([constant("p", order), aten("dist", ["a", "b", "p"], "y")], {"z": Z, "w": W})
    feeds = {"z": Z, "r": W[..., 0]}
    of_values([constant("p", order), aten("dist", ["r", "a", "p"], "y")], feeds)


@pytest.mark.parametrize("operator", ["linalg_vecdot", "linalg_cross"])
def test_products_of_vectors(operator: str) -> None:
    """The first is conjugated in the one, and not in the other."""
    nodes = [aten(operator, ["a", "b"], "d"), aten("view_as_real", ["d"], "y")]
    of_values(nodes, {"z": Z[:, :3], "w": W[:, :3]})


@pytest.mark.parametrize("operator", ["prod", "cumprod"])
def test_a_product_along_an_axis_of_a_single_value(operator: str) -> None:
    nodes = [
        constant("dim", 0),
        aten(operator, ["a", "dim"], "d", "dim_int" * (operator == "prod")),
    ]
    of_values([*nodes, aten("view_as_real", ["d"], "y")], {"z": Z[0, 0]})


EQUATIONS = ("ka,bkl,la->ba", "bki,bij,blj->bkl", "ij,jk,kl,li", "...i,...j,ij->...", "ij,kl,ij->l")
SHAPES: dict[str, int] = {"a": 3, "b": 2, "k": 4, "l": 5, "i": 3, "j": 2}


@pytest.mark.parametrize("standard", [False, True])
@pytest.mark.parametrize("equation", [*EQUATIONS, "ii->i", "bij->ji"])
def test_sums_of_products_of_any_number_of_values(equation: str, standard: bool) -> None:
    terms = equation.partition("->")[0].split(",")
    names = [f"v{n}" for n in range(len(terms))]
    feeds, nodes = {}, []
    for name, term in zip(names, terms, strict=True):
        sizes = [SHAPES[label] for label in term.replace("...", "b")]
        if name == "v1" and len(terms) == 3:  # beside complex ones a real one
            feeds["real" if not standard else name] = normal(*sizes)
            if not standard:  # PyTorch wants one dtype
                nodes += [constant("kind", 9), aten("to", ["real", "kind"], name, "dtype")]
            continue
        feeds[f"{name}.pairs"] = normal(*sizes, 2)
        nodes.append(aten("view_as_complex", [f"{name}.pairs"], name))
    if standard:
        nodes.append(helper.make_node("Einsum", names, ["d"], equation=equation))
    else:
        nodes.append(helper.make_node("Constant", [], ["equation"], value_string=equation))
        nodes.append(helper.make_node("ListConstruct", names, ["list"], domain="prim"))
        nodes.append(aten("einsum", ["equation", "list"], "d"))
    agree([*nodes, aten("view_as_real", ["d"], "y")], feeds, 17)
