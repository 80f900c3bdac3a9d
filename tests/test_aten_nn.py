"""Layers that fell back: the lowering in onnxruntime, the witness and PyTorch say the same."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from aten_layer import GENERATOR, SPELLINGS, Call, holds, normal, opset_for, refuses
from aten_node import agrees
from truth import parse

import surgeon

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead


# ------------------------------------------------------------------------------------ upsampling

_SHAPES: dict[int, tuple[int, ...]] = {1: (2, 3, 7), 2: (2, 3, 5, 4), 3: (1, 2, 3, 4, 2)}
_TARGETS: dict[int, list[tuple[int, ...]]] = {
    1: [(7,), (1,), (15,), (4,)],
    2: [(5, 4), (1, 1), (9, 11), (2, 3)],
    3: [(5, 3, 4)],
}
_FACTORS: dict[int, list[float]] = {1: [2.0, 1.3], 2: [2.0, 0.6], 3: [1.5]}
_WEIGHTED: dict[str, int] = {
    "upsample_linear1d": 1,
    "upsample_bilinear2d": 2,
    "upsample_bicubic2d": 2,
    "upsample_trilinear3d": 3,
    "_upsample_bilinear2d_aa": 2,
    "_upsample_bicubic2d_aa": 2,
    "_upsample_lanczos2d_aa": 2,
}
_NEAREST: dict[str, int] = {
    f"{name}{n}d": n for name in ("upsample_nearest", "_upsample_nearest_exact") for n in (1, 2, 3)
}


@pytest.mark.parametrize("operator", [*_WEIGHTED, *_NEAREST])
@pytest.mark.parametrize("opset", [9, 11, 18])
def test_upsampling_to_a_size(operator: str, opset: int) -> None:
    spatial = {**_WEIGHTED, **_NEAREST}[operator]
    x = normal(*_SHAPES[spatial])
    flags: list[list[Any]] = [[]] if operator in _NEAREST else [[False], [True]]
    for index, (size, flag) in enumerate(itertools.product(_TARGETS[spatial], flags)):
        spelling = SPELLINGS[index % 3]
        for dynamic in (False, True):
            operands = [x, list(size), *flag]
            holds(Call(operator, operands, opset=opset, dynamic=dynamic, spelling=spelling))


@pytest.mark.parametrize("operator", [*_WEIGHTED, *_NEAREST])
@pytest.mark.parametrize("opset", [9, 13])
def test_upsampling_by_factors(operator: str, opset: int) -> None:
    spatial = {**_WEIGHTED, **_NEAREST}[operator]
    x = normal(*_SHAPES[spatial])
    flags: list[list[Any]] = [[]] if operator in _NEAREST else [[False], [True]]
    for factor, flag in itertools.product(_FACTORS[spatial], flags):
        for dynamic in (False, True):
            factors = np.array([factor] * spatial, np.float32).tolist()
            operands = [x, None, *flag, factors]
            holds(Call(operator, operands, overload="vec", opset=opset, dynamic=dynamic))


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.uint8])
def test_upsampling_other_dtypes(dtype: Any) -> None:
    x = np.abs(normal(1, 2, 4, 5) * 40).astype(dtype)
    holds(Call("upsample_nearest2d", [x, [7, 3], None, None]))
    if dtype != np.uint8:
        holds(Call("upsample_bilinear2d", [x, [7, 3], False, None, None]))


def test_a_scale_that_was_given_moves_the_source() -> None:
    x = normal(1, 2, 5, 5)
    for operator, flag in (("upsample_nearest2d", []), ("upsample_bilinear2d", [False])):
        holds(Call(operator, [x, [7, 7], *flag, 1.5, 1.5]))


@pytest.mark.parametrize("size", [[11, 9], [5, 5]])
def test_a_size_beside_a_scale_stays_whatever_the_input_measures(size: list[int]) -> None:
    """Resize by the scale alone would follow an input whose size is known at run time."""
    x = normal(1, 2, 5, 5)
    holds(Call("upsample_bilinear2d", [x, size, False, 2.0, 2.0], opset=13, dynamic=True))
    if size != [5, 5]:  # PyTorch's kernels for a CPU copy there, others do not
        holds(Call("upsample_nearest2d", [x, size, 2.0, 2.0], opset=13, dynamic=True))


@pytest.mark.parametrize("operator", _WEIGHTED)
@pytest.mark.parametrize("opset", [9, 13, 18])
def test_an_axis_whose_length_stays_is_copied(operator: str, opset: int) -> None:
    """Whatever factor was given, but by the cubic that is not antialiased."""
    spatial = _WEIGHTED[operator]
    for factor, dynamic in itertools.product((1.1, 1.25), (False, True)):
        for lengths in ((2, 3, 12), (3, 11, 2), (2, 2, 3)):
            x = normal(1, 2, *lengths[-spatial:])
            operands = [x, None, False, [factor] * spatial]
            holds(Call(operator, operands, overload="vec", opset=opset, dynamic=dynamic))


@pytest.mark.parametrize("opset", [9, 13])
def test_lengths_by_factors_are_products_in_double_precision(opset: int) -> None:
    """In single precision 45 * 1.4 is 63, 90 * 0.7 is 63 and 45 * 2.6 is 116."""
    for length, factor in ((45, 1.4), (90, 0.7), (45, 2.6), (100, 2.3), (69, 0.3)):
        x = normal(1, 2, length)
        for operator, flag in (("upsample_linear1d", [False]), ("upsample_nearest1d", [])):
            operands = [x, None, *flag, [factor]]
            holds(Call(operator, operands, overload="vec", opset=opset, dynamic=True))


# -------------------------------------------------------------------------------- fold and unfold

_GRIDS = [
    ([2, 2], [1, 1], [0, 0], [2, 2]),
    ([3, 2], [1, 2], [1, 0], [2, 1]),
    ([3, 3], [1, 1], [1, 1], [1, 1]),
    ([2, 3], [2, 1], [1, 1], [3, 2]),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unfold_and_fold(dtype: Any) -> None:
    for index, (kernel, dilation, padding, stride) in enumerate(_GRIDS):
        for dynamic, unbatched in ((False, False), (True, True), (True, False)):
            x = normal(2, 3, 8, 7, dtype=dtype)
            windows = [kernel, dilation, padding, stride]
            opset = opset_for(index, 9, 13, 18) if dtype == np.float32 else 13
            held = Call(
                "im2col", [x[0] if unbatched else x, *windows], opset=opset, dynamic=dynamic
            )
            holds(held)
            counts = [
                (n + 2 * p - d * (k - 1) - 1) // s + 1
                for n, k, d, p, s in zip((8, 7), kernel, dilation, padding, stride, strict=True)
            ]
            columns = normal(2, 3 * kernel[0] * kernel[1], counts[0] * counts[1], dtype=dtype)
            columns = columns[0] if unbatched else columns
            held = Call("col2im", [columns, [8, 7], *windows], opset=opset)
            holds(held)
            held.operator, held.spelling = "thnn_col2im", "A"
            holds(held)


# ------------------------------------------------------------------------------- normalisation


@pytest.mark.parametrize(("opset", "dtype"), [(9, np.float32), (13, np.float64), (17, np.float32)])
def test_normalisation(opset: int, dtype: Any) -> None:
    for rank, dynamic, affine in [
        (2, False, True),
        (2, True, False),
        (3, False, False),
        (4, True, True),
        (4, True, False),
    ]:
        x = normal(3, 6, *(4, 5)[: rank - 2], dtype=dtype)
        weight, bias = (normal(6, dtype=dtype), normal(6, dtype=dtype)) if affine else (None, None)
        mean, variance = normal(6, dtype=dtype), np.abs(normal(6, dtype=dtype)) + dtype(0.5)
        shared: dict[str, Any] = {"opset": opset, "dynamic": dynamic}
        for groups in (1, 3):
            holds(Call("group_norm", [x, groups, weight, bias, 1e-5, True], **shared))
        batch = [x, weight, bias, mean, variance, False, 0.1, 1e-5, True]
        holds(Call("batch_norm", batch, **shared))
        holds(Call("instance_norm", batch, **shared))
        if rank > 2:
            own = [x, weight, bias, None, None, True, 0.1, 1e-5, True]
            holds(Call("instance_norm", own, **shared))
        for count in (1, 2):
            shape = list(x.shape[-count:])
            if dynamic and not affine:
                shape = shape[-1:]
            gain, shift = (normal(*shape, dtype=dtype), normal(*shape, dtype=dtype))
            pair = [gain, shift] if affine else [None, None]
            holds(Call("layer_norm", [x, shape, *pair, 1e-5, True], **shared))
            holds(Call("native_layer_norm", [x, shape, *pair, 1e-5], outputs=3, **shared))
            holds(Call("rms_norm", [x, shape, pair[0], 1e-6], **shared))
            holds(Call("rms_norm", [x, shape, pair[0], None], **shared))
    v = normal(4, 3, 2, dtype=dtype)
    for dim in (0, 1, -1):
        axes = tuple(i for i in range(3) if dim == -1 or i != dim)
        g = np.abs(normal(*(1 if i in axes else v.shape[i] for i in range(3)), dtype=dtype))
        if dim != -1:
            holds(Call("_weight_norm", [v, g, dim], opset=opset))


def test_training_is_refused() -> None:
    x, one = normal(2, 3, 4), normal(3)
    refuses(Call("batch_norm", [x, one, one, one, one, True, 0.1, 1e-5, True]), "training mode")
    refuses(Call("batch_norm", [x, one, one, None, None, False, 0.1, 1e-5, True]), "statistics")


# -------------------------------------------------------------------------------------- pooling


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_average_pooling(spatial: int) -> None:
    shape = (2, 2, *(7, 6, 5)[:spatial])
    grid = itertools.product([(3, 2, 1), (2, 2, 0), (2, 3, 1)], (False, True), (False, True))
    for index, ((kernel, stride, padding), ceil, whole) in enumerate(grid):
        for divisor in (None, 5) if spatial > 1 else (None,):
            rest = [divisor] if spatial > 1 else []
            sizes = [[n] * spatial for n in (kernel, stride, padding)]
            for dynamic in (False, True):
                if dynamic and ceil and padding + stride > kernel:
                    continue
                operands = [normal(*shape), *sizes, ceil, whole, *rest]
                opset = opset_for(index, 11, 17) if dynamic else opset_for(index, 9, 17)
                holds(Call(f"avg_pool{spatial}d", operands, dynamic=dynamic, opset=opset))
            if ceil and divisor is None:
                operands = [normal(*shape, dtype=np.float64)[0], *sizes, ceil, whole, *rest]
                holds(Call(f"avg_pool{spatial}d", operands, spelling="N"))


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_maximum_pooling(spatial: int) -> None:
    shape = (2, 2, *(9, 8, 7)[:spatial])
    grid = itertools.product([(3, 2, 1, 1), (2, 2, 0, 1), (3, 1, 1, 2)], (False, True))
    for (kernel, stride, padding, dilation), ceil in grid:
        sizes = [[n] * spatial for n in (kernel, stride, padding, dilation)]
        for opset, dynamic in ((9, False), (12, False), (17, True)):
            operands = [normal(*shape), *sizes, ceil]
            holds(Call(f"max_pool{spatial}d", operands, opset=opset, dynamic=dynamic))
            if spatial > 1 and (opset > 9 or dilation == 1):
                name = f"max_pool{spatial}d_with_indices"
                holds(Call(name, operands, outputs=2, opset=opset, dynamic=dynamic))


def test_an_empty_stride_is_the_kernel() -> None:
    holds(Call("max_pool2d", [normal(1, 2, 6, 6), [2, 3], np.zeros(0, np.int64).tolist()]))


@pytest.mark.parametrize("kind", ["avg", "max"])
@pytest.mark.parametrize("opset", [9, 13])
def test_adaptive_pooling_of_lengths_known_at_run_time(kind: str, opset: int) -> None:
    for spatial in (1, 2, 3):
        for out in ([1, 3, 2], [7, 2, 3], [4, 1, 9]):
            x = normal(2, 3, *(7, 5, 6)[:spatial])
            name = f"adaptive_{kind}_pool{spatial}d"
            holds(Call(name, [x, out[:spatial]], opset=opset, dynamic=True))


@pytest.mark.parametrize("spatial", [1, 2, 3])
def test_indices_of_adaptive_maxima(spatial: int) -> None:
    for opset in (9, 13):
        x = normal(2, 3, *(7, 5, 4)[:spatial])
        name = f"adaptive_max_pool{spatial}d"
        holds(Call(name, [x, [3, 2, 4][:spatial]], outputs=2, opset=opset))


def test_places_in_bins_of_computed_lengths_are_least_ones() -> None:
    """Runtimes have Min of integers, and some lose what Where broadcasts."""
    model = parse(
        """
        g (float[2,3,t] x) => (float[2,3,3] y) <int64[1] size = {3}> {
          y, i = org.pytorch.aten.ATen <operator = "adaptive_max_pool1d"> (x, size)
        }
        """,
        domains=', "org.pytorch.aten": 1',
    )
    result = surgeon.apply(model, "aten", verify=False)
    operators = [node.op_type for node in result.model.to_proto().graph.node]
    assert "Min" in operators
    assert "Where" not in operators


# ---------------------------------------------------------------------------------------- grids


@pytest.mark.parametrize("opset", [11, 16, 20])
def test_grid_sampling(opset: int) -> None:
    for mode, padding, corners in itertools.product((0, 1, 2), (0, 1, 2), (False, True)):
        for dynamic in (corners, not corners)[: 1 if padding else 2]:
            plane, volume = normal(2, 3, 5, 4), normal(2, 3, 3, 4, 5)
            grid = GENERATOR.uniform(-1.6, 1.6, (2, 6, 3, 2)).astype(np.float32)
            space = GENERATOR.uniform(-1.6, 1.6, (2, 2, 3, 4, 3)).astype(np.float32)
            operands = [plane, grid, mode, padding, corners]
            call = Call("grid_sampler", operands, opset=opset, dynamic=dynamic)
            holds(call, tolerance=2e-4)
            if mode < 2:
                operands = [volume, space, mode, padding, corners]
                holds(Call("grid_sampler", operands, opset=opset, dynamic=dynamic), tolerance=2e-4)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_grid_sampling_reads_all_corners_at_once(mode: int) -> None:
    text = f"""
        g (float[2,3,5,4] x, float[2,6,3,2] grid) => (float[2,3,6,3] y)
          <int64 mode = {{{mode}}}, int64 zero = {{0}}> {{
          y = org.pytorch.aten.grid_sampler (x, grid, mode, zero, zero)
        }}"""
    model = parse(text, 13, domains=', "org.pytorch.aten": 1')
    graph = surgeon.apply(model, "aten").model.graph
    assert sum(n.op == "Gather" and n.attrs["axis"] == 0 for n in graph.nodes) == 1


def test_grid_sampling_between_two_samples() -> None:
    """Where PyTorch reflects and rounds, and ONNX rounds and reflects."""
    places = np.array([-6, -2.5, -1.5, -0.75, -0.25, 0, 0.25, 0.5, 1.25, 1.5, 2, 3], np.float32)
    grid = np.stack(np.meshgrid(places, places), -1)[None]
    for padding, corners, opset in itertools.product((0, 1, 2), (False, True), (11, 16, 20)):
        operands = [normal(1, 2, 4, 5), grid, 1, padding, corners]
        holds(Call("grid_sampler", operands, opset=opset))


@pytest.mark.parametrize("opset", [16, 20])
def test_grid_sampling_in_double_precision(opset: int) -> None:
    """Of which onnxruntime has GridSample from opset 20 on."""
    grid = GENERATOR.uniform(-1.6, 1.6, (2, 6, 3, 2))
    for mode in (0, 1, 2):
        operands = [normal(2, 3, 5, 4).astype(np.float64), grid, mode, 0, False]
        holds(Call("grid_sampler", operands, opset=opset))


@pytest.mark.parametrize("opset", [9, 17])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_affine_grids(opset: int, dtype: Any) -> None:
    for corners, size in itertools.product(
        (False, True), ([2, 3, 4, 5], [2, 1, 1, 3], [2, 3, 2, 3, 4])
    ):
        theta = normal(2, len(size) - 2, len(size) - 1, dtype=dtype)
        holds(Call("affine_grid_generator", [theta, size, corners], opset=opset))


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize("dynamic", [False, True])
def test_windows_and_steps_known_at_run_time(opset: int, dynamic: bool) -> None:
    rows = [(3, 2, 0, 1), (3, 1, 1, 1), (2, 3, 1, 2), (9, 1, 0, 1), (1, 1, 0, 1)]
    for kernel, stride, padding, dilation in rows:
        step, edge = [stride] * 2, [padding] * 2
        size = np.array([kernel, min(kernel, 4)])
        x = normal(2, 3, 9, 8)
        most = [x, size, step, edge, [dilation] * 2, False]
        for operands in (most, [x, [2, 4], np.array(step), [1, 2], [1, 1], False]):
            holds(Call("max_pool2d", operands, opset=opset, dynamic=dynamic))
            holds(Call("max_pool2d", [x[0].astype(np.int64), *operands[1:]], opset=opset))
            holds(Call("im2col", [x, *(operands[i] for i in (1, 4, 3, 2))], opset=opset))
        if dilation == 1:
            mean = [x.astype(np.float64), size, np.array(step), edge, False, True, None]
            holds(Call("avg_pool2d", mean, opset=opset, dynamic=dynamic))
    padded = [normal(2, 9), np.array([4]), [2], np.array([2]), [1], False]
    holds(Call("max_pool1d", padded, opset=opset, dynamic=dynamic))


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_convolution_whose_strides_are_known_at_run_time(opset: int, dynamic: bool) -> None:
    for kind in (np.float32, np.int64):
        x, w = (GENERATOR.integers(-9, 9, s).astype(kind) for s in ((2, 4, 9, 8), (6, 2, 3, 2)))
        for stride, padding in (((2, 3), (1, 0)), ((1, 1), (2, 1)), ((5, 2), (0, 1))):
            sizes = [np.array(stride), np.array(padding)]
            for given in (sizes, [sizes[0], list(padding)], [list(stride), sizes[1]]):
                for batch in (x, x[0]):
                    still = dynamic and kind == np.float32
                    call = [batch, w, None, *given, [1, 2], 2]
                    agrees("conv2d", call, {}, opset, dynamic=still)
