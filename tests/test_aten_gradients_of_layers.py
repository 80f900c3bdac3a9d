"""Gradients of layers and losses, and whole modules whose result is a derivative."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from aten_layer import HAS_TORCH
from aten_node import Calls, Written, agrees, close, each, expected, lowered

import surgeon
from surgeon.reference.arguments import Call
from surgeon.reference.witness import NumpyWitness

R = np.random.default_rng(3)
F = np.float32
CALLS = Calls()
add = CALLS.add
ALL = [True, True, True]


def normal(*shape: int, dtype: Any = F) -> Any:
    return np.asarray(R.normal(size=shape) * 2).astype(dtype)


# losses: at their bends, of one sample, and with what is ignored
X, T = normal(3, 4), normal(3, 4)
X[0, :3] = T[0, :3] + np.array([0, 1, -1], F)
SHARES = 1 / (1 + np.exp(-X))
SHARES[1, 1:3] = 0, 1
LABELS, WEIGHTS = np.array([0, -100, 2]), np.abs(normal(4))
PLANES, PIXELS = normal(2, 4, 3, 2), R.integers(0, 4, (2, 3, 2))
NAMES = np.array([[0, 3, -1, 1], [2, -1, 0, 0], [-1, 0, 0, 0]])
NAMED = np.array([[1, 0, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0]], F)
for reduction in (0, 1, 2):
    g = normal(3, 4) if reduction == 0 else normal()
    row = normal(3) if reduction == 0 else normal()
    add("mse_loss_backward", g, X, T, reduction)
    for bend in (0.0, 0.5, 1.0):
        add("smooth_l1_loss_backward", g, X, T, reduction, bend)
        add("huber_loss_backward", g, X, T, reduction, bend + 0.25)
    add("soft_margin_loss_backward", g, X, np.sign(T), reduction)
    for weight in (None, WEIGHTS):
        add("binary_cross_entropy_backward", g, SHARES, (T > 0).astype(F), weight, reduction)
        nll = [weight, reduction, -100]
        add("nll_loss_forward", X, LABELS, *nll, outputs=2)
        add("nll_loss_forward", X[0], LABELS[2], *nll, outputs=2)
        add("nll_loss2d_forward", PLANES, PIXELS, *nll, outputs=2)
        total = np.asarray(2.5, F)
        add("nll_loss_backward", row, X, LABELS, *nll, total)
        add("nll_loss_backward", row, X, np.array([0, 1, 2]), weight, reduction, 2, total)
        add("nll_loss_backward", normal(), X[0], LABELS[2], *nll, total)
        pixels = normal(2, 3, 2) if reduction == 0 else normal()
        add("nll_loss2d_backward", pixels, PLANES, PIXELS, *nll, total)
        for power in (1, 2):
            labels = np.array([0, 3, 2])
            add("multi_margin_loss_backward", row, X, labels, power, 0.5, weight, reduction)
            add(
                "multi_margin_loss_backward",
                normal(),
                X[0],
                labels[1],
                power,
                1.0,
                weight,
                reduction,
            )
    add("multilabel_margin_loss_forward", X, NAMES, reduction, outputs=2)
    add("multilabel_margin_loss_backward", row, X, NAMES, reduction, NAMED)
    add("multilabel_margin_loss_backward", normal(), X[0], NAMES[0], reduction, NAMED[0])

# normalisation
for kind in (F, np.float64):
    x, g = normal(2, 6, 4, dtype=kind), normal(2, 6, 4, dtype=kind)
    for sizes in ([4], [6, 4], [2, 6, 4]):
        axes = tuple(range(3 - len(sizes), 3))
        mean, spread = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
        given = [g, x, sizes, mean, 1 / np.sqrt(spread + kind(1e-3))]
        pair = [normal(*sizes, dtype=kind) for _ in range(2)]
        add("native_layer_norm_backward", *given, *pair, ALL, outputs=3)
        add("native_layer_norm_backward", *given, None, None, [True, False, False], outputs=1)
    mean, spread = (normal(6, dtype=kind), np.abs(normal(6, dtype=kind)) + kind(0.1))
    for trains in (False, True):
        stats = [mean, spread, x.mean((0, 2)), 1 / np.sqrt(x.var((0, 2)) + kind(1e-3))]
        weight = normal(6, dtype=kind)
        add("native_batch_norm_backward", g, x, weight, *stats, trains, 1e-3, ALL, outputs=3)
        rows = [g[:, :, 0], x[:, :, 0]]
        add("native_batch_norm_backward", *rows, weight, *stats, trains, 1e-3, ALL, outputs=3)
    groups = x.reshape(2, 3, -1)
    stats = [groups.mean(-1), 1 / np.sqrt(groups.var(-1) + kind(1e-3))]
    for weight in (None, normal(6, dtype=kind)):
        mask = [True, weight is not None, weight is not None]
        call = [g, x, *stats, weight, 2, 6, 4, 3, mask]
        add("native_group_norm_backward", *call, outputs=3 if weight is not None else 1)
for dim in (0, 2):
    v = normal(3, 4, 2)
    lengths = np.sqrt((v * v).sum(tuple({0, 1, 2} - {dim}), keepdims=True))
    g = normal(*lengths.shape)
    add("_weight_norm_interface", v, g, dim, outputs=2)
    add("_weight_norm_interface_backward", normal(3, 4, 2), v, g, lengths, dim, outputs=2)
PLACES = np.array([[[[0, 3], [16, 24]], [[6, 6], [11, 13]]]])
add(
    "fractional_max_pool2d_backward", normal(1, 2, 2, 2), normal(1, 2, 5, 5), [2, 2], [2, 2], PLACES
)
PLACES = np.array([[[[0]], [[33]]], [[[33]], [[7]]]])
add(
    "fractional_max_pool3d_backward",
    normal(2, 2, 1, 1),
    normal(2, 3, 4, 5),
    [2, 2, 2],
    [2, 1, 1],
    PLACES,
)

for mode, padding in ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)):
    for corners in (False, True):
        farthest = 1.5 if mode == 2 else 4  # where cubic shares cancel, single precision is coarse
        grid = R.uniform(-farthest, farthest, (2, 4, 5, 2)).astype(F)
        call = [normal(2, 3, 4, 5), normal(2, 3, 5, 6), grid, mode, padding, corners]
        add("grid_sampler_2d_backward", *call, [True, True], outputs=2, least=11)
        add("grid_sampler_2d_backward", *call, [True, False], outputs=1)
        if mode == 2:  # of planes alone
            double = [x.astype(np.float64) if isinstance(x, np.ndarray) else x for x in call]
            double[2] = R.uniform(-4, 4, (2, 4, 5, 2))
            add("grid_sampler_2d_backward", *double, [True, True], outputs=2, least=11)
            continue
        grid = R.uniform(-1.3, 1.3, (2, 2, 3, 4, 3)).astype(F)
        call = [normal(2, 2, 2, 3, 4), normal(2, 2, 3, 4, 5), grid, mode, padding, corners]
        add("grid_sampler_3d_backward", *call, [True, True], outputs=2, least=11)
for corners in (False, True):
    add("affine_grid_generator_backward", normal(2, 3, 4, 2), [2, 3, 3, 4], corners)
    add("affine_grid_generator_backward", normal(2, 3, 1, 5, 3), [2, 3, 3, 1, 5], corners)


@pytest.mark.slow
@pytest.mark.parametrize(("operator", "arguments", "options", "opset", "dynamic"), each(CALLS))
def test_lowered_as_the_witness(
    operator: str, arguments: list[Any], options: dict[str, Any], opset: int, dynamic: bool
) -> None:
    agrees(operator, arguments, options, opset, dynamic=dynamic)


# input and weight, steps, padding, dilation, whether it is transposed, output padding, groups
CONVOLUTIONS: list[tuple[Any, ...]] = [
    ((2, 3, 8), (4, 3, 3), [1], [1], [1], False, [0], 1),
    ((2, 3, 9), (4, 3, 3), [2], [1], [2], False, [0], 1),
    ((2, 3, 7, 9), (4, 3, 3, 2), [3, 2], [1, 0], [1, 2], False, [0, 0], 1),
    ((2, 4, 7, 9), (6, 2, 3, 2), [3, 2], [1, 0], [1, 2], False, [0, 0], 2),
    ((2, 4, 7, 9), (8, 1, 3, 3), [2, 1], [1], [1, 1], False, [0, 0], 4),
    ((1, 2, 4, 5, 6), (4, 1, 2, 3, 2), [1, 2, 1], [0, 1, 0], [1, 1, 2], False, [0] * 3, 2),
    ((2, 3, 5, 6), (3, 4, 3, 2), [2, 3], [1, 0], [2, 1], True, [1, 2], 1),
    ((2, 3, 5, 6), (3, 4, 3, 2), [1, 1], [1, 0], [2, 1], True, [1, 0], 1),
    ((2, 4, 5, 6), (4, 3, 3, 2), [2, 3], [1, 0], [2, 1], True, [1, 2], 2),
]


def _of_convolution(case: tuple[Any, ...]) -> list[Any]:
    x, w, stride, padding, dilation, turned, extra, groups = case
    spatial = len(w) - 2
    stride, padding, dilation, extra = (
        each * (spatial // len(each)) for each in (stride, padding, dilation, extra)
    )
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, w[2:], strict=True)]
    each = zip(x[2:], stride, padding, reach, extra, strict=True)
    out = [
        (n - 1) * s - 2 * p + r + e if turned else (n + 2 * p - r) // s + 1
        for n, s, p, r, e in each
    ]
    gradient = normal(x[0], w[1] * groups if turned else w[0], *out)
    rest = [stride, padding, dilation, turned, extra, groups, ALL]
    return [gradient, normal(*x), normal(*w), [gradient.shape[1]], *rest]


@pytest.mark.slow
@pytest.mark.parametrize("opset", [9, 13, 18])
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_gradients_of_convolutions(case: tuple[Any, ...], opset: int) -> None:
    """Of any batch; of any length where each window is one step from the next, or transposed."""
    arguments = _of_convolution(case)
    wanted = expected("convolution_backward", arguments)
    anywhere = case[5] or set(case[2]) == {1}
    for free in (False, True):
        written = Written("convolution_backward", arguments, "A+", opset, dynamic=False)
        for value in written.inputs[:2] if free else ():
            dims = value.type.tensor_type.shape.dim
            dims[0].dim_param = "N"
            for axis in range(2, len(dims)) if anywhere else ():
                dims[axis].dim_param = f"{value.name}_{axis}"
        for mine, its in zip(lowered(written, wanted, recipe="aten"), wanted, strict=True):
            assert mine.shape == its.shape
            close(mine, its)


def test_what_the_mask_leaves_out_is_nothing() -> None:
    arguments = [*_of_convolution(CONVOLUTIONS[0])[:-1], np.array([False, True, False])]
    first, second, third = NumpyWitness()(
        Call("convolution_backward", "", {}),
        [np.asarray(v) if isinstance(v, list) else v for v in arguments],
        where="test",
    )
    assert first is third is None
    assert second.shape == (4, 3, 3)


def _net(kind: str) -> tuple[Any, tuple[int, ...]]:
    import torch
    from torch import nn

    torch.manual_seed(0)
    nets: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
        "convolution": (lambda: nn.Conv2d(4, 6, 3, stride=2, groups=2), (2, 4, 8, 9)),
        "transposed": (lambda: nn.ConvTranspose1d(3, 4, 3, stride=2, output_padding=1), (2, 3, 5)),
        "batch norm": (lambda: nn.BatchNorm2d(3).eval(), (2, 3, 4, 5)),
        "layer norm": (lambda: nn.LayerNorm(5), (2, 3, 5)),
        "group norm": (lambda: nn.GroupNorm(2, 4), (2, 4, 5)),
        "instance norm": (lambda: nn.InstanceNorm2d(3, affine=True), (2, 3, 4, 5)),
    }
    make, shape = nets[kind]
    return make(), shape


@pytest.mark.slow
@pytest.mark.skipif(not HAS_TORCH, reason="PyTorch exports it")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "kind",
    ["convolution", "transposed", "batch norm", "layer norm", "group norm", "instance norm"],
)
def test_a_module_traced_with_its_derivative(kind: str) -> None:
    """By make_fx, then scripted: the mask is a list of truth values, which has no Constant."""
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx

    net, shape = _net(kind)
    names = [name for name, _ in net.named_parameters()]
    given = (torch.randn(shape), *(p.detach() for p in net.parameters()))

    def derivative(*values: Any) -> Any:
        leaves = [v.detach().requires_grad_(True) for v in values]
        y = torch.func.functional_call(net, dict(zip(names, leaves[1:], strict=True)), leaves[0])
        return torch.autograd.grad((y * y * y).sum(), leaves)

    traced = make_fx(derivative)(*given)
    wanted = [t.numpy() for t in traced(*given)]
    for node in traced.graph.nodes:
        if isinstance(node.target, torch._ops.OpOverload):
            node.target = node.target.overloadpacket
    traced.graph.eliminate_dead_code()
    traced.recompile()
    logging.getLogger("torch.onnx").setLevel(logging.CRITICAL)
    file = io.BytesIO()
    torch.onnx.export(
        torch.jit.script(traced),
        given,
        file,
        dynamo=False,
        opset_version=17,
        operator_export_type=torch.onnx.OperatorExportTypes.ONNX_ATEN_FALLBACK,
        do_constant_folding=False,
    )
    model = onnx.load_from_string(file.getvalue())
    result = surgeon.apply(model, "aten")
    assert result.report.verdict.status == "equivalent"
    session = ort.InferenceSession(result.model.to_proto().SerializeToString())
    feeds = {i.name: t.numpy() for i, t in zip(model.graph.input, given, strict=True)}
    read = {i.name for i in session.get_inputs()}
    feeds = {name: value for name, value in feeds.items() if name in read}
    for mine, its in zip(session.run(None, feeds), wanted, strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-4, atol=1e-4)
