"""Spreads, sums of exponentials and shapes of complex values that the graph makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from aten_layer import normal
from complex_graphs import agree, aten, call, constant, mended, model_of
from onnx import helper

from surgeon.reference import Reference

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead
BEGIN = [aten("view_as_complex", ["z"], "a"), aten("view_as_complex", ["w"], "b")]
PAIRS = aten("view_as_real", ["c"], "y")


def of_pairs(nodes: list[Any], **feeds: Any) -> None:
    begin = [node for node in BEGIN if node.input[0] in feeds]
    for opset in (9, 17):
        agree([*begin, *nodes, PAIRS], feeds, opset)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sizes", [(3, 5), (1, 5), (5,), (2, 1)])
def test_covariance(sizes: tuple[int, ...], dtype: Any) -> None:
    z = normal(*sizes, 2).astype(dtype)
    of_pairs(call("cov", "a", 0, None, None), z=z)
    if sizes[-1] > 1:
        of_pairs(call("cov", "a", 1, None, None), z=z)
        of_pairs(call("corrcoef", "a"), z=z)


def test_covariance_with_weights() -> None:
    often, share = np.array([1, 2, 1, 3]), np.abs(normal(4)) + 0.1
    for weights in ((often, None), (None, share), (often, share)):
        of_pairs(call("cov", "a", 1, *weights), z=normal(3, 4, 2))


@pytest.mark.parametrize("kind", ["var_mean", "std_mean"])
@pytest.mark.parametrize("dim", [1, -1])
def test_a_spread_and_a_mean(kind: str, dim: int) -> None:
    node = aten(kind, ["a", "dim", "one", "keep"], "v", "correction")
    node.output.append("c")
    begin = [constant("dim", [dim]), constant("one", 1), constant("keep", True)]
    both = [
        BEGIN[0],
        *begin,
        node,
        aten("abs", ["c"], "s"),
        aten("mul", ["s", "v"], "y"),
    ]
    for opset in (9, 17):
        agree(both, {"z": normal(3, 4, 5, 2)}, opset)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sizes", [(4, 5), (7,), (1,), ()])
def test_running_sums_of_exponentials(sizes: tuple[int, ...], dtype: Any) -> None:
    """Whose angles go beyond a half turn, as PyTorch's do."""
    for dim in range(-1, max(len(sizes), 1)):
        z = (3 * normal(*sizes, 2)).astype(dtype)
        of_pairs(call("logcumsumexp", "a", dim), z=z)


@pytest.mark.parametrize("first", [0, 2])
def test_running_sums_with_nothing_and_no_numbers(first: int) -> None:
    z = normal(6, 2)
    z[first, 0], z[first + 1, 0], z[4, 1] = -np.inf, -np.inf, np.nan
    model = model_of([BEGIN[0], *call("logcumsumexp", "a", 0), PAIRS], {"z": z})
    wanted = np.asarray(z[..., 0])
    wanted = np.logaddexp.accumulate(wanted)
    found = mended(model, {"z": z})
    (told,) = Reference(model).run({"z": z}).values()
    np.testing.assert_allclose(found, told, rtol=1e-5, atol=1e-5)
    assert np.isnan(found[4:]).all()
    assert not np.isnan(found[:4]).any()


def test_running_sums_over_an_axis_of_any_length() -> None:
    nodes = [BEGIN[0], *call("logcumsumexp", "a", 0), PAIRS]
    z = normal(3, 4, 2)
    model = model_of(nodes, {"z": z})
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    for length in (0, 1, 3):
        found = mended(model, {"z": z[:length]})
        assert found.shape == (length, 4, 2)


@pytest.mark.parametrize("sizes", [(3, 4), (2, 3, 4), ()])
def test_sums_of_exponentials(sizes: tuple[int, ...]) -> None:
    z, w = 3 * normal(*sizes, 2), 3 * normal(*sizes, 2)[::1]
    of_pairs(call("logaddexp", "a", "b"), z=z, w=np.roll(w, 1, 0))
    of_pairs(call("logsumexp", "a", [0], False), z=z)
    of_pairs(call("silu", "a"), z=z)


def test_powers_of_two() -> None:
    z, w = normal(3, 4, 2), normal(4, 2)
    of_pairs(call("ldexp", "a", "b"), z=z, w=w)
    of_pairs(call("ldexp", "a", np.array([1, 2, -3, 0]), overload="Tensor"), z=z)


@pytest.mark.parametrize("p", [1.0, 2.0, np.inf])
def test_parts_of_a_bounded_norm(p: float) -> None:
    of_pairs(call("renorm", "a", p, 1, 1.5), z=normal(3, 4, 2))


@pytest.mark.parametrize("increasing", [True, False])
def test_powers(increasing: bool) -> None:
    of_pairs(call("vander", "a", 4, increasing), z=normal(3, 2))
    of_pairs(call("linalg_vander", "a", None), z=normal(2, 3, 2))


def test_what_is_brought_into_the_shape_of_complex_values() -> None:
    z, w = normal(3, 4, 2), normal(2, 6, 2)
    for kind in ("view_as", "reshape_as"):
        of_pairs(call(kind, "a", "b"), z=z, w=w)
    of_pairs(call("expand_as", "a", "b"), z=z[:1], w=z)
    feeds = {"x": normal(12), "w": w}
    for kind in ("view_as", "reshape_as"):
        agree([BEGIN[1], aten(kind, ["x", "b"], "y")], feeds)


@pytest.mark.parametrize("kind", ["pixel_shuffle", "pixel_unshuffle", "channel_shuffle"])
def test_channels_that_are_moved(kind: str) -> None:
    of_pairs(call(kind, "a", 2), z=normal(1, 4, 4, 2, 2))


def test_values_on_a_diagonal_and_summed_to_a_shape() -> None:
    of_pairs(call("diagflat", "a", 1), z=normal(3, 2))
    of_pairs(call("sum_to_size", "a", [1, 4]), z=normal(3, 4, 2))


@pytest.mark.parametrize("dtype", [np.bool_, np.float32, np.float64, np.int64])
def test_a_cast_takes_the_real_part(dtype: Any) -> None:
    """As PyTorch warns; as booleans it is what is not 0."""
    z = normal(3, 4, 2) * 3
    z[0] = 0
    z[1, :, 0] = 0
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    cast = helper.make_node("Cast", ["a"], ["y"], to=kind)
    found = mended(model_of([BEGIN[0], cast], {"z": z}), {"z": z})
    wanted = (z != 0).any(-1) if dtype is np.bool_ else z[..., 0].astype(dtype)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("p", [1.0, 2.0])
def test_distances_of_pairs(p: float) -> None:
    nodes = call("pairwise_distance", "a", "b", p, 1e-2, True)
    nodes[-1].output[0] = "y"
    agree([*BEGIN, *nodes], {"z": normal(3, 4, 2), "w": normal(3, 4, 2)})


def test_complex_values_are_called_so() -> None:
    """Where no form is: the reason is not a rank that is not known."""
    import surgeon

    begin = [constant("k", [2, 2]), BEGIN[0]]
    nodes = [*begin, aten("avg_pool2d", ["a", "k", "k"], "c"), PAIRS]
    model = model_of(nodes, {"z": normal(1, 2, 4, 4, 2)})
    result = surgeon.apply(model, "aten", verify=False, allow=["leftover"], every_miss=True)
    reasons = [str(miss.reason) for miss in result.report.misses]
    assert any("its input is complex, and this is of real values" in one for one in reasons)
    assert not any("not known" in one for one in reasons), reasons


@pytest.mark.parametrize("opset", [11, 17])  # of the opsets that have SequenceAt
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("place", [0, 1, -1])
def test_slopes(place: int, order: int, opset: int) -> None:
    nodes = [
        BEGIN[0],
        *(constant(name, v) for name, v in (("dims", [0, 1]), ("order", order), ("at", place))),
        aten("gradient", ["a", "dims", "order"], "list", "array"),
        helper.make_node("SequenceAt", ["list", "at"], ["c"]),
        PAIRS,
    ]
    agree(nodes, {"z": normal(4, 5, 2)}, opset)


@pytest.mark.parametrize("length", [1, 2, 7, 19])
def test_products_along_an_axis_of_many(length: int) -> None:
    z = (normal(2, length, 3, 2) + 0.5).astype(np.float32)
    for keep in (True, False):
        of_pairs(call("prod", "a", 1, keep, None, overload="dim_int"), z=z)
    of_pairs(call("cumprod", "a", 1, None), z=z)
    of_pairs(call("prod", "a", None), z=z[:1, :, :1])


def test_sums_and_products_in_a_complex_dtype() -> None:
    complex128 = 10
    of_pairs(call("prod", "a", 1, True, complex128, overload="dim_int"), z=normal(3, 4, 2))
    of_pairs(call("cumsum", "a", 1, complex128), z=normal(3, 4, 2))
    of_pairs(call("sum", "a", [0], False, complex128, overload="dim_IntList"), z=normal(3, 4, 2))


def test_products_of_matrices_that_are_added() -> None:
    head = [aten("view_as_complex", ["v"], "d")]
    scales = [constant("beta", 0.5), constant("alpha", 2.0)]
    x, rows, columns = normal(3, 4, 2), normal(2, 3, 5, 2), normal(2, 5, 4, 2)
    nodes = [*head, *scales, aten("addbmm", ["a", "b", "d", "beta", "alpha"], "c")]
    of_pairs(nodes, z=x, w=rows, v=columns)
    nodes = [*head, *scales, aten("addmv", ["a", "b", "d", "beta", "alpha"], "c")]
    of_pairs(nodes, z=x[:, 0], w=rows[0], v=columns[0, :, 0])


def test_differences_behind_what_stands_before() -> None:
    nodes = [constant("one", 1), aten("diff", ["a", "one", "one", "b", "b"], "c")]
    of_pairs(nodes, z=normal(3, 4, 2), w=normal(3, 2, 2))


def test_norms_of_one_number() -> None:
    nodes = call("linalg_vector_norm", "a", 2, [0], True, None)
    nodes[-1].output[0] = "y"
    agree([BEGIN[0], *nodes], {"z": normal(2)})


@pytest.mark.parametrize("lots", [(2,), (2, 3), ()])
def test_a_bilinear_layer(lots: tuple[int, ...]) -> None:
    head = [aten("view_as_complex", [name], f"c{name}") for name in ("k", "o")]
    z, w, k, o = normal(*lots, 3, 2), normal(*lots, 4, 2), normal(5, 3, 4, 2), normal(5, 2)
    for bias, rest in ((["co"], {"o": o}), ([""], {})):
        nodes = [*head[: 1 + len(rest)], aten("bilinear", ["a", "b", "ck", *bias], "c")]
        of_pairs(nodes, z=z, w=w, k=k, **rest)


@pytest.mark.parametrize("opset", [9, 17])
def test_a_logarithm_of_what_was_made_complex_for_it(opset: int) -> None:
    """As people take logarithms of numbers below 0."""
    x = normal(3, 4)
    nodes = [helper.make_node("Cast", ["x"], ["a"], to=14), *call("log", "a"), PAIRS]
    found = mended(model_of(nodes, {"x": x}, opset), {"x": x})
    wanted = np.log(x.astype(np.complex128))
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], wanted, rtol=1e-5, atol=1e-6)


def test_an_identity_of_complex_matrices_on_a_device() -> None:
    complex64 = constant("kind", 9)
    device = helper.make_node("Constant", [], ["device"], value_string="cpu")
    eye = aten("eye", ["count", "kind", "", "device", ""], "e")
    solved = aten("linalg_solve", ["a", "e"], "c")
    of_pairs([constant("count", 3), complex64, device, eye, solved], z=normal(2, 3, 3, 2))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("eps", [None, 1e-3])
def test_values_over_the_root_of_their_squares(dtype: Any, eps: float | None) -> None:
    """Which are no squared magnitudes; of small values it is all of the eps."""
    for scale in (1.0, 1e-9):
        z, w = ((scale * normal(*sizes, 2)).astype(dtype) for sizes in ((2, 3, 4), (3, 4)))
        of_pairs(call("rms_norm", "a", [4], None, eps), z=z)
        of_pairs(call("rms_norm", "a", [3, 4], "b", eps), z=z, w=w / dtype(scale))
