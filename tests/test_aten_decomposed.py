"""What newer exporters leave: the names that PyTorch's layers have after decomposition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from aten_layer import Call, Held, holds, normal, refuses
from aten_node import Left, Written, close, expected, lowered, torch_witness

from surgeon.reference.arguments import Call as Asked
from surgeon.reference.witness import NumpyWitness

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

SPREAD = [Held(np.abs(normal(4)) + np.float32(0.5))]
AFFINE = [Held(normal(4)), Held(normal(4))]


def witnessed(operator: str, values: list[Any]) -> list[Any]:
    """What the witness alone says, of an operator that a torch for this machine cannot run."""
    name, _, overload = operator.partition(".")
    arrays = [v if isinstance(v, np.ndarray | str) or v is None else np.asarray(v) for v in values]
    found = NumpyWitness()(Asked(name, overload, {}), arrays, where="test")
    return list(found) if isinstance(found, tuple) else [found]


@pytest.mark.parametrize("opset", [9, 13, 18])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_groups_and_their_statistics(opset: int, dtype: Any) -> None:
    for shape in [(3, 4, 5), (2, 4, 3, 7), (2, 4)]:
        x, size = normal(*shape, dtype=dtype), int(np.prod(shape[2:]))
        for affine in (AFFINE, [None, None]):
            vectors = [None if v is None else Held(v.array.astype(dtype)) for v in affine]
            rest = [shape[0], 4, size, 2, 1e-3]
            for outputs in (1, 3):
                call = Call("native_group_norm", [x, *vectors, *rest], opset=opset)
                call.outputs = outputs
                if outputs == 3:  # onnxruntime's instance normalisation rounds half otherwise
                    holds(call)
    call = Call("native_group_norm", [normal(3, 4, 5), *AFFINE, 3, 4, 5, 2, 1e-5], outputs=3)
    call.dynamic = True
    holds(call)


@pytest.mark.parametrize("opset", [9, 14, 18])
@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 5), (1, 4, 5, 2)])
def test_statistics_of_the_batch(opset: int, shape: tuple[int, ...]) -> None:
    for dynamic in (False, True):
        call = Call("batch_norm", [normal(*shape), *AFFINE, None, None, True, 0.1, 1e-5, False])
        call.opset, call.dynamic = opset, dynamic
        if shape[0] > 1 or len(shape) > 2:
            holds(call)
    operator = "_native_batch_norm_legit.no_stats"
    values = [normal(*shape), None, None, True, 0.1, 1e-5]
    wanted = expected(operator, values)[:1]
    written = Written(operator, values, "A+", opset, dynamic=False)
    close(lowered(written, wanted, recipe="aten")[0], wanted[0])


@pytest.mark.parametrize(
    ("operator", "count"),
    [("_batch_norm_impl_index", 9), ("native_batch_norm", 8), ("_native_batch_norm_legit", 8)],
)
def test_running_statistics(operator: str, count: int) -> None:
    x = normal(2, 4, 3, 5)
    rest = [*AFFINE, Held(normal(4)), *SPREAD, False, 0.1, 1e-4, False]
    for opset in (9, 15):
        values = [x, *(v.array if isinstance(v, Held) else v for v in rest)][:count]
        written = Written(operator, values, "A+", opset, dynamic=opset == 9)
        wanted = expected(operator, values)[:1]
        close(lowered(written, wanted, recipe="aten")[0], wanted[0])
    trains = [x, *rest[:4], True, *rest[5:]][:count]
    refuses(Call(operator, trains), "training mode")


def test_library_names_of_batch_norm() -> None:
    """No torch without CUDA runs these: the witness alone is asked."""
    rest = [Held(normal(4)), *SPREAD, False, 0.1, 1e-4]
    values = [normal(2, 4, 3), *(v.array for v in AFFINE)]
    values += [v.array if isinstance(v, Held) else v for v in rest]
    plain = expected("native_batch_norm", values)[:1]
    for operator in ("cudnn_batch_norm", "miopen_batch_norm"):
        written = Written(operator, values, "A+", 13, dynamic=False)
        close(lowered(written, plain, recipe="aten")[0], plain[0])
    updates = [normal(2, 4, 3), *AFFINE, Held(normal(4)), *SPREAD, 0.1, 1e-4]
    refuses(Call("_batch_norm_with_update_functional", updates), "training mode")


ATTENTIONS: list[tuple[str, list[Any]]] = [
    ("_scaled_dot_product_flash_attention", [0.0, False, False]),
    ("_scaled_dot_product_flash_attention", [0.0, True, False]),
    ("_scaled_dot_product_efficient_attention", ["mask", False, 0.0, False]),
    ("_scaled_dot_product_efficient_attention", [None, False, 0.0, True]),
    ("_scaled_dot_product_cudnn_attention", ["mask", False, 0.0, False, False]),
    ("_scaled_dot_product_fused_attention_overrideable", ["mask", 0.0, False, False]),
    ("_scaled_dot_product_attention_math", ["mask", 0.0, False, None]),
]


@pytest.mark.parametrize(("operator", "rest"), ATTENTIONS)
@pytest.mark.parametrize("opset", [9, 13, 18])
def test_attention_of_every_kernel(operator: str, rest: list[Any], opset: int) -> None:
    """Only CUDA has most of them; PyTorch's own attention has the same result."""
    mask = np.where(normal(5, 5) > 1, -np.inf, normal(5, 5)).astype(np.float32)
    q, k, v = (normal(2, 3, 5, 4) for _ in range(3))
    causal = rest[2] if "math" in operator else rest[-2 if rest[-1] is False else -1] is True
    causal = {"flash": rest[1]}.get(operator.split("_")[4], causal)
    given = [mask if r == "mask" else r for r in rest]
    wanted = expected(
        "scaled_dot_product_attention",
        [q, k, v, mask if "mask" in [r for r in rest if isinstance(r, str)] else None, 0.0, causal],
    )
    for scale in (None, 0.4):
        if scale is not None:
            wanted = expected(
                "scaled_dot_product_attention",
                [q, k, v, mask if isinstance(rest[0], str) else None, 0.0, causal, scale],
            )
        written = Written(operator, [q, k, v, *given, scale], "A+", opset, dynamic=False)
        close(lowered(written, wanted, recipe="aten")[0], wanted[0])


FORWARDS: list[tuple[str, list[Any], bool]] = [
    ("_efficient_attention_forward", ["mask", None, None, None, None, 0.0, 0, False], False),
    ("_efficient_attention_forward", [None, None, None, 5, 5, 0.0, 1, True], True),
    ("_efficient_attention_forward", [None, None, None, 5, 5, 0.0, 2, False], True),
    ("_flash_attention_forward", [None, None, 5, 5, 0.0, False, False], False),
    ("_flash_attention_forward", [None, None, 5, 5, 0.0, True, False], True),
]


@pytest.mark.parametrize(("operator", "rest", "causal"), FORWARDS)
@pytest.mark.parametrize("opset", [9, 18])
@pytest.mark.parametrize("scale", [None, 0.4])
def test_kernels_of_attention(
    operator: str, rest: list[Any], causal: bool, opset: int, scale: float | None
) -> None:
    """Only CUDA has them; PyTorch's own attention is the same with two axes exchanged."""
    q, k, v = (normal(2, 5, 3, 4) for _ in range(3))
    mask = np.where(normal(5, 5) > 1, -np.inf, normal(5, 5)).astype(np.float32)
    given = [mask if r == "mask" else r for r in rest]
    used = mask if "mask" in rest else None
    turned = [np.ascontiguousarray(t.swapaxes(1, 2)) for t in (q, k, v)]
    wanted = expected("scaled_dot_product_attention", [*turned, used, 0.0, causal, scale])
    wanted = [wanted[0].swapaxes(1, 2)]
    close(witnessed(operator, [q, k, v, *given, scale])[0], wanted[0])
    written = Written(operator, [q, k, v, *given, scale], "A+", opset, dynamic=False)
    close(lowered(written, wanted, recipe="aten")[0], wanted[0])


def test_kernels_of_attention_that_stay() -> None:
    q, k = normal(2, 5, 3, 4), normal(2, 7, 3, 4)
    name = "_flash_attention_forward"
    refuses(Call(name, [q, k, k, None, None, 5, 7, 0.0, True, False]), "not known to be as many")
    starts = np.array([0, 5, 10], np.int32)
    packed = [q, q, q, starts, starts, 5, 5, 0.0, False, False]
    refuses(Call(name, packed), "`cum_seq_q` is given")
    refuses(Call(name, [q, q, q, None, None, 5, 5, 0.0, False, False, None, 2, 2]), "a window")
    refuses(Call(name, [q, k[:, :, :1], k, None, None, 5, 7, 0.0, False, False]), "every head")
    name = "_efficient_attention_forward"
    masked = [q, k, k, normal(5, 7), None, None, None, None, 0.0, 1]
    refuses(Call(name, masked), "a mask and is causal")


def test_attention_that_stays() -> None:
    q, k = normal(2, 3, 5, 4), normal(2, 3, 7, 4)
    call = Call("_scaled_dot_product_flash_attention", [q, k, k, 0.0, True, False])
    refuses(call, "not known to be as many")
    call = Call("_scaled_dot_product_efficient_attention", [q, k, k, None, True, 0.5, False])
    refuses(call, "exported in training mode")
    written = Written(
        "_scaled_dot_product_flash_attention", [q, q, q, 0.0, False, False], "A+", 13, dynamic=False
    )
    with pytest.raises(Left):  # what training would save is read
        lowered(written, [q, q[..., 0]], recipe="aten")


KERNEL, BIAS = normal(6, 2, 3, 3), normal(6)
IMAGE, VOLUME = normal(2, 4, 7, 8), normal(1, 2, 5, 6, 4)
DEEP = normal(3, 2, 2, 3, 2)
WHOLE = normal(4, 2, 3, 3)
SUMMAND = normal(2, 6, 4, 4)
CONVOLUTIONS: list[tuple[str, list[Any]]] = [
    ("convolution_overrideable", [IMAGE, KERNEL, BIAS, [2, 1], [1, 0], [1, 1], False, [0, 0], 2]),
    ("mkldnn_convolution", [IMAGE, KERNEL, BIAS, [1, 0], [2, 1], [1, 2], 2]),
    ("miopen_convolution", [IMAGE, KERNEL, BIAS, [1, 0], [2, 1], [1, 2], 2, False, False]),
    ("cudnn_convolution", [IMAGE, KERNEL, [1, 0], [2, 1], [1, 2], 2, False, False, True]),
    ("cudnn_convolution_relu", [IMAGE, KERNEL, BIAS, [2, 1], [1, 0], [1, 2], 2]),
    ("thnn_conv2d", [IMAGE[:, :2], KERNEL, [3, 3], BIAS, [2, 1], [0, 1]]),
    ("slow_conv_dilated2d", [IMAGE[:, :2], KERNEL, [3, 3], None, [1, 1], [0, 1], [2, 1]]),
    ("slow_conv3d", [VOLUME, DEEP, [2, 3, 2], None, [1, 1, 1], [0, 1, 0]]),
    ("slow_conv_dilated3d", [VOLUME, DEEP, [2, 3, 2], None, [1] * 3, [0, 1, 0], [2, 1, 1]]),
    (
        "slow_conv_transpose2d",
        [IMAGE, WHOLE, [3, 3], normal(2), [2, 1], [1, 0], [1, 0], [1, 1]],
    ),
    (
        "cudnn_convolution_transpose",
        [IMAGE, WHOLE, [1, 0], [1, 0], [2, 1], [1, 1], 1, False, False, True],
    ),
    ("_nnpack_spatial_convolution", [IMAGE[:, :2], KERNEL, BIAS, [1, 0], [2, 1]]),
    ("_slow_conv2d_forward", [IMAGE[:, :2], KERNEL, [3, 3], BIAS, [2, 1], [0, 1]]),
    ("slow_conv3d_forward", [VOLUME, DEEP, [2, 3, 2], None, [1, 1, 1], [0, 1, 0]]),
    ("_conv_depthwise2d", [IMAGE, normal(8, 1, 3, 2), [3, 2], normal(8), [2, 1], [0, 1], [1, 2]]),
    (
        "conv_depthwise3d",
        [VOLUME, normal(2, 1, 2, 3, 2), [2, 3, 2], None, [1] * 3, [0] * 3, [1] * 3],
    ),
    ("_mps_convolution", [IMAGE, KERNEL, BIAS, [1, 0], [2, 1], [1, 2], 2]),
    ("_mps_convolution_transpose", [IMAGE, WHOLE, [1, 0], [1, 0], [2, 1], [1, 1], 1]),
    ("miopen_depthwise_convolution", [IMAGE, KERNEL, BIAS, [1, 0], [2, 1], [1, 2], 2, False, True]),
    *(
        (
            f"{name}_convolution_add_relu",
            [IMAGE, KERNEL, SUMMAND, a, BIAS, [2, 1], [1, 0], [1, 2], 2],
        )
        for name, a in (("cudnn", None), ("cudnn", -0.5), ("miopen", 2.0))
    ),
    ("_convolution_mode", [IMAGE, KERNEL, BIAS, [1, 1], "same", [2, 1], 2]),
    ("_convolution_mode", [IMAGE, normal(6, 2, 4, 2), None, [1, 1], "same", [1, 2], 2]),
    ("_convolution_mode", [IMAGE, KERNEL, BIAS, [2, 1], "valid", [2, 1], 2]),
    ("conv2d.padding", [IMAGE, normal(6, 4, 2, 4), None, [1, 1], "same", [1, 1], 1]),
]


@pytest.mark.parametrize(("operator", "values"), CONVOLUTIONS)
@pytest.mark.parametrize("opset", [9, 13])
def test_convolutions_of_every_library(operator: str, values: list[Any], opset: int) -> None:
    elsewhere = (
        operator.startswith(
            ("cudnn", "miopen", "slow_conv_dil", "convolution_o", "_mps", "_nnpack")
        )
        or "depthwise" in operator
    )
    wanted = witnessed(operator, values) if elsewhere else expected(operator, values)
    written = Written(operator, values, "A+", opset, dynamic=False)
    close(lowered(written, wanted, recipe="aten")[0], wanted[0])


@pytest.mark.parametrize("opset", [9, 16, 20])
def test_grids_of_cudnn(opset: int) -> None:
    """What it has no arguments for is as PyTorch's own operator has it with these."""
    grid, theta = np.clip(normal(2, 5, 3, 2), -1.5, 1.5), normal(2, 2, 3)
    pairs: list[tuple[str, list[Any], str, list[Any]]] = [
        ("cudnn_grid_sampler", [IMAGE, grid], "grid_sampler", [IMAGE, grid, 0, 0, True]),
        (
            "cudnn_affine_grid_generator",
            [theta, 2, 3, 4, 5],
            "affine_grid_generator",
            [theta, [2, 3, 4, 5], True],
        ),
    ]
    for operator, values, own, same in pairs:
        wanted = expected(own, same)
        close(witnessed(operator, values)[0], wanted[0])
        written = Written(operator, values, "A+", opset, dynamic=False)
        close(lowered(written, wanted, recipe="aten")[0], wanted[0])


BARRED = normal(3, 4, 5)
BARRED[0, :, 1] = BARRED[1, 2] = -np.inf
OTHERS: list[tuple[str, list[Any]]] = [
    ("_safe_softmax", [BARRED, -1]),
    ("_safe_softmax", [BARRED, 1]),
    ("_safe_softmax", [BARRED.astype(np.float64), 1]),
    ("item", [normal(1, 1)]),
    ("_local_scalar_dense", [np.asarray(3)]),
    ("is_nonzero", [np.asarray([0.5], np.float32)]),
    ("is_nonzero", [np.asarray(0)]),
    ("_reshape_alias", [BARRED, [4, 15], [15, 1]]),
    ("_shape_as_tensor", [BARRED]),
    ("_fused_rms_norm", [normal(3, 4, 5), [4, 5], normal(4, 5), 1e-3]),
    ("_weight_norm_interface", [normal(3, 4, 5), normal(3, 1, 1), 0]),
    ("sym_size.int", [BARRED, -2]),
    ("sym_numel", [BARRED]),
    ("_aminmax", [BARRED]),
    ("_neg_view", [BARRED]),
    ("native_norm", [normal(3, 4), 2.0]),
    ("mkldnn_linear", [normal(3, 4), normal(5, 4), normal(5)]),
    ("mkldnn_max_pool2d", [normal(1, 2, 6, 6), [2, 2], [2, 2], [0, 0], [1, 1], False]),
]


@pytest.mark.parametrize(("operator", "values"), OTHERS)
@pytest.mark.parametrize("opset", [9, 11, 18])
@pytest.mark.parametrize("dynamic", [False, True])
def test_private_names(operator: str, values: list[Any], opset: int, dynamic: bool) -> None:
    wanted = (witnessed if operator in ("item", "_local_scalar_dense") else expected)(
        operator, values
    )  # PyTorch gives a number of Python's, which has no dtype
    count = 1 if operator in ("_fused_rms_norm", "_weight_norm_interface") else len(wanted)
    written = Written(operator, values, "A+", opset, dynamic=dynamic)
    for mine, its in zip(lowered(written, wanted[:count], recipe="aten"), wanted, strict=False):
        assert mine.dtype == its.dtype
        assert mine.shape == its.shape
        close(mine, its)


SCORES, NAMED = np.log(np.abs(normal(5, 4)) + 0.1).astype(np.float32), np.array([0, 3, 1, 1, -100])
STEPS = [np.array([0.25, 0.5, 0.125, 1], np.float32), np.array([0, 1, -1, 2], np.int32)]
FORWARD: list[tuple[str, list[Any]]] = [
    *(("nll_loss_forward", [SCORES, NAMED, w, k, -100]) for w in (None, normal(4)) for k in (0, 1)),
    ("nll_loss2d_forward", [normal(2, 3, 4, 5), np.arange(40).reshape(2, 4, 5) % 3, None, 2, 1]),
    ("multilabel_margin_loss_forward", [SCORES, np.array([[1, 2, -1, 0]] * 5), 1]),
    ("log_sigmoid_forward", [normal(3, 4) * 9]),
    ("fake_quantize_per_tensor_affine_cachemask", [normal(3, 4), 0.013, -2, -128, 127]),
    ("fake_quantize_per_channel_affine_cachemask", [normal(3, 4), *STEPS, 1, -4, 11]),
    *(
        (
            "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
            [normal(3, 4), *(s[:1] for s in STEPS), np.array([on], np.int64), -4, 11],
        )
        for on in (0, 1)
    ),
]


@pytest.mark.parametrize(("operator", "values"), FORWARD)
@pytest.mark.parametrize("opset", [9, 13])
def test_what_training_keeps_is_left_out(operator: str, values: list[Any], opset: int) -> None:
    wanted = witnessed(operator, values)[:1]
    if (torch := torch_witness()) is not None:
        arrays = [v if isinstance(v, np.ndarray) or v is None else np.asarray(v) for v in values]
        close(wanted[0], torch(Asked(operator, "", {}), arrays, where="test")[0])
    written = Written(operator, values, "A+", opset, dynamic=False)
    close(lowered(written, wanted, recipe="aten")[0], wanted[0])
