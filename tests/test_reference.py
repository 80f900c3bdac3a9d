"""The witness: what its operators compute, and where they are not defined."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from reference_models import by_onnxruntime, normal, one_node, parse, run

from surgeon.reference import NoWitness, Reference, Undefined
from surgeon.reference.arguments import Call
from surgeon.reference.errors import Unsuited
from surgeon.reference.operators.pooling import bins
from surgeon.reference.releases import OldMeanings
from surgeon.reference.witness import NumpyWitness


def test_bins_are_those_of_the_definition() -> None:
    assert bins(7, 3) == [(0, 3), (2, 5), (4, 7)]
    assert bins(2, 5) == [(0, 1), (0, 1), (0, 2), (1, 2), (1, 2)]


@pytest.mark.parametrize("spelling", ["A+", "A", "N"])
def test_adaptive_pools_over_equal_windows_are_plain_pools(spelling: str) -> None:
    x = normal(2, 3, 8, 6)
    (mean,) = run("adaptive_avg_pool2d", [x, [4, 2]], spelling=spelling)
    want = by_onnxruntime("AveragePool", [x], kernel_shape=[2, 3], strides=[2, 3])
    np.testing.assert_allclose(mean, want, atol=1e-6)
    best, _ = run("adaptive_max_pool2d", [x, [4, 2]], outputs=2, spelling=spelling)
    want = by_onnxruntime("MaxPool", [x], kernel_shape=[2, 3], strides=[2, 3])
    np.testing.assert_array_equal(best, want)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_adaptive_pools_over_unequal_windows(axes: int) -> None:
    x = normal(2, 3, *(7, 5, 4)[:axes])
    size = [3, 2, 3][:axes]
    (mean,) = run(f"adaptive_avg_pool{axes}d", [x, size])
    best, place = run(f"adaptive_max_pool{axes}d", [x, size], outputs=2)
    for at in np.ndindex(*size):
        box = tuple(
            slice(i * n // count, -(-(i + 1) * n // count))
            for i, n, count in zip(at, x.shape[2:], size, strict=True)
        )
        window = x[(..., *box)].reshape(2, 3, -1)
        np.testing.assert_allclose(mean[(..., *at)], window.mean(-1), atol=1e-6)
        np.testing.assert_array_equal(best[(..., *at)], window.max(-1))
    flat = x.reshape(2, 3, -1)
    picked = np.take_along_axis(flat, place.reshape(2, 3, -1), -1)
    np.testing.assert_array_equal(picked.reshape(best.shape), best)
    assert place.dtype == np.int64


def test_a_maximum_of_many_small_planes_is_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, argmax = [], np.argmax
    monkeypatch.setattr(np, "argmax", lambda *a, **k: taken.append(1) or argmax(*a, **k))
    x = normal(2, 2048, 3, 3)
    best, place = run("max_pool2d_with_indices", [x, [3, 3], [1, 1], [1, 1], [1, 1], 0], outputs=2)
    want = by_onnxruntime("MaxPool", [x], kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1])
    np.testing.assert_array_equal(best, want)
    picked = np.take_along_axis(x.reshape(2, 2048, 9), place.reshape(2, 2048, 9), -1)
    np.testing.assert_array_equal(picked.reshape(best.shape), best)
    assert len(taken) < 10


def test_a_nan_wins_a_maximum() -> None:
    x = np.array([[[1, np.nan, 3, 2]]], np.float32)
    best, place = run("adaptive_max_pool1d", [x, [2]], outputs=2)
    assert np.isnan(best[0, 0, 0])
    assert place.tolist() == [[[1, 2]]]


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize(("stride", "padding", "dilation"), [(1, 0, 1), (2, 1, 1), (3, 2, 2)])
def test_convolutions_agree_with_conv(
    groups: int, stride: int, padding: int, dilation: int
) -> None:
    x, bias = normal(2, 4, 9, 8), normal(8)
    weight = normal(8, 4 // groups, 3, 2)
    tail = [False, [0, 0], groups, False, False, True, True]
    geometry = [[stride, stride], [padding, padding], [dilation, dilation]]
    (y,) = run("_convolution", [x, weight, bias, *geometry, *tail])
    want = by_onnxruntime(
        "Conv",
        [x, weight, bias],
        strides=[stride] * 2,
        pads=[padding] * 4,
        dilations=[dilation] * 2,
        group=groups,
    )
    np.testing.assert_allclose(y, want, atol=1e-5)
    (old,) = run("_convolution", [x, weight, bias, *geometry, *tail[:-1]])
    np.testing.assert_array_equal(old, y)
    (plain,) = run("conv2d", [x, weight, None, *geometry, groups])
    np.testing.assert_allclose(plain + bias[:, None, None], want, atol=1e-5)
    (single,) = run("conv2d", [x[0], weight, bias, *geometry, groups])
    np.testing.assert_array_equal(single, y[0])


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(
    ("stride", "padding", "extra", "dilation"), [(1, 0, 0, 1), (2, 1, 1, 1), (3, 1, 2, 2)]
)
def test_transposed_convolutions_agree_with_conv_transpose(
    groups: int, stride: int, padding: int, extra: int, dilation: int
) -> None:
    x, weight = normal(2, 4, 5, 6), normal(4, 3, 3, 2)
    bias = normal(3 * groups)
    square = [[stride, stride], [padding, padding]]
    want = by_onnxruntime(
        "ConvTranspose",
        [x, weight, bias],
        strides=[stride] * 2,
        pads=[padding] * 4,
        dilations=[dilation] * 2,
        output_padding=[extra] * 2,
        group=groups,
    )
    rest = [[dilation] * 2, True, [extra] * 2, groups]
    (y,) = run("convolution", [x, weight, bias, *square, *rest])
    np.testing.assert_allclose(y, want, atol=1e-5)
    (y,) = run("conv_transpose2d", [x, weight, bias, *square, [extra] * 2, groups, [dilation] * 2])
    np.testing.assert_allclose(y, want, atol=1e-5)


def test_padding_by_word() -> None:
    x, weight = normal(1, 2, 7), normal(3, 2, 4)
    (y,) = run("conv1d", [x, weight, None, [1], "same", [1], 1])
    want = by_onnxruntime("Conv", [x, weight], pads=[1, 2])
    np.testing.assert_allclose(y, want, atol=1e-5)


def test_groups_that_do_not_fit_are_undefined() -> None:
    x, weight = normal(1, 6, 5, 5), normal(6, 1, 3, 3)
    tail = [[1, 1], [1, 1], [1, 1], False, [0, 0], 2, False, False, True, True]
    with pytest.raises(Undefined) as caught:
        run("_convolution", [x, weight, None, *tail])
    assert caught.value.operator == "_convolution"
    assert "node 'y0' (org.pytorch.aten.ATen)" in str(caught.value)
    assert "need an input of 2 channels; it has 6" in caught.value.reason


def test_sizes_that_a_trace_left_as_fractions_are_cut() -> None:
    """`int(height * 2.5)` is traced as the product."""
    x = normal(1, 1, 2, 4)
    wanted = run("upsample_bilinear2d", [x, np.array([5, 9]), False, None])
    cut = run("upsample_bilinear2d", [x, np.array([5.0001, 9.9], np.float32), False, None])
    np.testing.assert_array_equal(wanted, cut)
    with pytest.raises(NoWitness, match=r"`dim` is 0\.5, no integer"):
        run("softmax", [x, np.float32(0.5), None])


@pytest.mark.parametrize(
    ("operator", "arguments", "because"),
    [
        ("put", [normal(4), np.array([0, 1]), normal(3), False], "3 values for 2 places"),
        ("pixel_shuffle", [normal(1, 3, 2, 2), 2], "3 channels are no multiple of 4"),
        ("pixel_unshuffle", [normal(1, 3, 2, 3), 2], "2 by 3 is no multiple of 2"),
        ("histogram", [normal(4), np.zeros(3, np.float32), None, False], "borders do not rise"),
        ("ldexp", [normal(2), np.array([200, 3])], "a power beyond its dtype"),
        ("prod", [np.full(30, 9), None], "a product of integers is beyond 2"),
        ("__rshift__", [normal(2), np.array([1])], "float32 is not shifted"),
        ("special_chebyshev_polynomial_u", [np.int8([90]), np.int8([98])], "beyond the dtype"),
        ("trapezoid.dx", [np.array([True, False]), 1, -1], "booleans have no integral"),
        (
            "grid_sampler",
            [normal(1, 2, 4, 4), normal(2, 3, 3, 2), 0, 0, True],
            "grids of 2 samples",
        ),
        ("topk", [normal(4), -1, 0, True, True], "-1 of 4 elements"),
        ("fill_diagonal", [normal(4), 1, False], "a diagonal of shape"),
        ("cross", [normal(4, 2), normal(4, 2), 1], "vectors of 2 and 2 elements"),
        ("linalg_cross", [normal(4, 1), normal(4, 3), -1], "vectors of 1 and 3 elements"),
        ("arange", [np.array(10**15), None, None, None, None], "counts 1000000000000000 numbers"),
        ("full", [np.array([1 << 50]), 1.0, None, None, None, None], "Unable to allocate"),
        ("_lfilter", [normal(1, 3, 9), normal(2, 2), normal(2, 2)], "2 filters for 3 channels"),
    ],
)
def test_what_no_shape_or_number_fits_is_undefined(
    operator: str, arguments: list[Any], because: str
) -> None:
    with pytest.raises(Undefined, match=because):
        run(operator, arguments)


def test_a_nearest_point_is_rounded_as_its_own_dtype_does() -> None:
    x, point = normal(1, 1, 1, 8), np.array([[[[0.49999997, 0]]]], np.float32)
    (y,) = run("grid_sampler", [x, point, 1, 0, False])
    assert y.item() == x[0, 0, 0, 6], "5.5 in single precision, which rounds to even"


def test_a_text_beyond_all_chances() -> None:
    logs = np.array([[[1000, 0]], [[0, -2000]]], np.float32)
    one, lengths = np.array([[0]]), np.array([1])
    (y,) = run("ctc_loss", [logs, one, np.array([2]), lengths, 1, 0, False])
    assert y.tolist() == [-1000]
    with pytest.raises(Undefined, match="too small"):
        run("ctc_loss", [-logs[1:], one, np.array([1]), lengths, 1, 0, False])


def test_quotients_of_floats_were_cut_before_1_13() -> None:
    a, b = np.array([-7.5, 7.5], np.float32), np.array([2, -2], np.float32)
    model = one_node("floor_divide", [a, b])
    model.producer_name = "pytorch"
    for version, wanted in (("1.12", [-3, -3]), ("1.13", [-4, -4])):
        model.producer_version = version
        assert Reference(model).run({"v0": a, "v1": b})["y0"].tolist() == wanted


def test_shapes_move_data() -> None:
    x = normal(2, 3, 4)
    assert run("flatten", [x, 1, -1])[0].shape == (2, 12)
    assert run("view", [x, [4, -1]])[0].shape == (4, 6)
    assert run("size", [x, 1])[0].tolist() == 3
    assert run("size", [x])[0].tolist() == [2, 3, 4]
    assert run("unsqueeze", [x, -1])[0].shape == (2, 3, 4, 1)
    np.testing.assert_array_equal(run("transpose", [x, 0, -1])[0], x.transpose(2, 1, 0))
    np.testing.assert_array_equal(run("relu", [x])[0], np.maximum(x, 0))
    with pytest.raises(Undefined, match="shape \\[5, -1\\]"):
        run("view", [x, [5, -1]])


def test_batch_norm_and_group_norm() -> None:
    x, scale, shift, mean = normal(2, 4, 5), normal(4), normal(4), normal(4)
    variance = np.abs(normal(4)) + 1
    (y,) = run("batch_norm", [x, scale, shift, mean, variance, False, 0.1, 1e-5, True])
    want = by_onnxruntime("BatchNormalization", [x, scale, shift, mean, variance], epsilon=1e-5)
    np.testing.assert_allclose(y, want, atol=1e-5)
    model = parse(
        """g (float[N,C,T] x, float[C] w, float[C] b) => (float[N,C,T] y) {
        y = ATen <cudnn_enabled = 1, eps = 1e-5, num_groups = 2, operator = "group_norm"> (x, w, b)
        }"""
    )
    grouped = x.reshape(2, 2, -1)
    centred = grouped - grouped.mean(-1, keepdims=True)
    want = (centred / np.sqrt(grouped.var(-1, keepdims=True) + 1e-5)).reshape(x.shape)
    y = Reference(model).run({"x": x, "w": scale, "b": shift})["y"]
    np.testing.assert_allclose(y, want * scale[:, None] + shift[:, None], atol=1e-5)


def test_an_operator_nobody_knows_is_named() -> None:
    with pytest.raises(NoWitness, match="`no_such_thing` has no witness"):
        run("no_such_thing", [normal(2)])
    with pytest.raises(NoWitness, match="3 arguments are given, it takes 2"):
        run("adaptive_avg_pool2d", [normal(1, 2, 3, 3), [1, 1], 1])


def test_steps_of_nothing_are_undefined() -> None:
    """A size of the input may be the step of its windows, and is 0 where there is no element."""
    x = normal(1, 1, 4, 4)
    model = one_node("avg_pool2d", [x, [2, 2], [0, 2], [0, 0], False, True, None])
    with pytest.raises(Undefined, match="avg_pool2d"):
        Reference(model).run({"v0": x})


@pytest.mark.parametrize(("cell", "gates"), [("gru", 3), ("rnn_tanh", 1)])
def test_of_two_biases_of_a_cell_one_may_be_absent(cell: str, gates: int) -> None:
    draw = np.random.default_rng(4).standard_normal
    x, hx, into, again = (draw(s) for s in ((2, 3), (2, 5), (5 * gates, 3), (5 * gates, 5)))
    bias, none = draw(5 * gates), np.zeros(5 * gates)
    for given, full in (((bias, None), (bias, none)), ((None, bias), (none, bias))):
        found, wanted = (
            run(f"{cell}_cell", [x, hx, into, again, *biases]) for biases in (given, full)
        )
        np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize(
    ("operator", "shapes"),
    [
        ("bilinear", [(2, 1), (2, 4), (5, 3, 4)]),
        ("bilinear", [(1, 3), (2, 4), (5, 3, 4)]),
        ("gru_cell", [(2, 1), (2, 4), (12, 3), (12, 4)]),
        ("lstm_cell", [(2, 3), [(2, 1), (2, 4)], (16, 3), (16, 4)]),
        ("scaled_dot_product_attention", [(1, 2, 5, 1), (1, 2, 6, 4), (1, 2, 6, 4)]),
        ("scaled_dot_product_attention", [(1, 2, 5, 4), (1, 2, 6, 4), (1, 2, 1, 4)]),
    ],
)
def test_sizes_of_1_are_no_other_sizes_in_sums_of_products(operator: str, shapes: Any) -> None:
    """PyTorch raises there, where numpy's einsum would take the one element many times."""
    values = [
        [np.ones(each, np.float32) for each in shape]
        if isinstance(shape, list)
        else np.ones(shape, np.float32)
        for shape in shapes
    ]
    with pytest.raises(Unsuited):
        NumpyWitness()(Call(operator, "", {}), values, where="")


@pytest.mark.parametrize(
    ("operator", "values"),
    [
        ("col2im", [np.ones((1, 6, 3), np.float32), [0, 1], [6, 1], [1, 1], [6, 0], [3, 1]]),
        ("scatter_add", [np.zeros(3), 0, np.zeros(4, np.int64), np.ones(1)]),
    ],
)
def test_sizes_that_pytorch_refuses_are_refused(operator: str, values: Any) -> None:
    with pytest.raises(Unsuited):
        NumpyWitness()(Call(operator, "", {}), values, where="")


def test_lists_of_different_shapes_reach_operators_of_one_argument() -> None:
    witness = OldMeanings(NumpyWitness(), (1, 12))
    arrays = [np.arange(2), np.arange(3)]
    found = witness(Call("cartesian_prod", "", {}), [arrays], where="")
    assert found.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]


def test_what_is_real_in_a_transform_has_no_rounding_for_an_imaginary_part() -> None:
    x = normal(40, 6)
    for operator, angle in (("fft_fft", np.pi), ("fft_ifft", -np.pi)):
        (y,) = run(operator, [x, None, 1, None])
        for place in (0, 3):
            (found,) = run("angle", [y[y[:, place].real < 0, place]])
            assert found == pytest.approx(angle), operator
    (y,) = run("fft_fftn", [x.reshape(5, 8, 6), None, [1, 2], None])
    assert (y[:, (0, 0, 4, 4), (0, 3, 0, 3)].imag == 0).all()
