"""Layers that fell back: the lowering in onnxruntime, the witness and PyTorch say the same."""

from __future__ import annotations

import importlib.util
import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

import surgeon
from surgeon.reference import Reference
from surgeon.runtime import Session

pytestmark = pytest.mark.slow  # `make check` has the recipes' cases instead

HAS_TORCH = importlib.util.find_spec("torch") is not None
GENERATOR = np.random.default_rng(7)
SPELLINGS = ("A+", "A", "N")


def normal(*shape: int, dtype: Any = np.float32) -> Any:
    return GENERATOR.normal(size=shape).astype(dtype)


@dataclass
class Held:
    """An array that is a Constant of the model."""

    array: Any


@dataclass
class Call:
    """A node: arrays, also those in lists, are inputs of the model; all else is a Constant."""

    operator: str
    operands: list[Any]
    overload: str = ""
    outputs: int = 1
    opset: int = 17
    dynamic: bool = False
    spelling: str = "A+"
    before: list[tuple[str, list[Any]]] = field(default_factory=list)
    after: str = ""

    def model(self) -> onnx.ModelProto:
        """The model."""
        inputs, nodes = [], []

        def name(operand: Any, label: str) -> str:
            if operand is None:
                return ""
            if is_tensors(operand):
                members = [name(member, f"{label}_{i}") for i, member in enumerate(operand)]
                kind, domain = (
                    ("SequenceConstruct", "") if self.opset >= 11 else ("ListConstruct", "prim")
                )
                nodes.append(helper.make_node(kind, members, [label], domain=domain))
                return label
            if isinstance(operand, np.ndarray):
                kind = helper.np_dtype_to_tensor_dtype(operand.dtype)
                dims: list[Any] = list(operand.shape)
                if self.dynamic and operand.ndim > 1:
                    dims = [f"{label}_{i}" for i in range(operand.ndim)]
                    dims[1] = operand.shape[1]
                inputs.append(helper.make_tensor_value_info(label, kind, dims))
                return label
            if isinstance(operand, str):
                nodes.append(helper.make_node("Constant", [], [label], value=operand))
                return label
            array = operand.array if isinstance(operand, Held) else operand
            tensor = onnx.numpy_helper.from_array(np.asarray(array))
            nodes.append(helper.make_node("Constant", [], [label], value=tensor))
            return label

        def aten(operator: str, names: list[str], outputs: list[str], overload: str) -> None:
            attributes = {
                "A+": {"operator": operator, "overload_name": overload},
                "A": {"operator": operator},
                "N": {},
            }[self.spelling]
            kind = operator if self.spelling == "N" else "ATen"
            nodes.append(
                helper.make_node(kind, names, outputs, domain="org.pytorch.aten", **attributes)
            )

        made = [f"y{i}" for i in range(self.outputs)]
        names = [name(operand, f"v{i}") for i, operand in enumerate(self.operands)]
        chain = [*((op, rest) for op, rest in self.before), (self.operator, self.operands[1:])]
        current = names[0]
        for step, (operator, rest) in enumerate(chain):
            last = step == len(chain) - 1
            more = names[1:] if last else [name(o, f"w{step}_{i}") for i, o in enumerate(rest)]
            outputs = made if last and not self.after else [f"t{step}"]
            aten(operator, [current, *more], outputs, self.overload if last else "")
            current = outputs[0]
        if self.after:
            aten(self.after, [current], made, "")
        values = [onnx.ValueInfoProto(name=n) for n in made]
        graph = helper.make_graph(nodes, "g", inputs, values)
        opsets = [helper.make_opsetid("", self.opset), helper.make_opsetid("org.pytorch.aten", 1)]
        opsets.append(helper.make_opsetid("prim", 1))
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)

    @property
    def feeds(self) -> dict[str, Any]:
        """The model's inputs."""
        given = {f"v{i}": v for i, v in enumerate(self.operands)}
        for label, operand in list(given.items()):
            if is_tensors(operand):
                given |= {f"{label}_{i}": member for i, member in enumerate(operand)}
        return {label: v for label, v in given.items() if isinstance(v, np.ndarray)}

    def __str__(self) -> str:
        def show(o: Any) -> str:
            if is_tensors(o):
                return f"[{', '.join(map(show, o))}]"
            array = o.array if isinstance(o, Held) else o
            return f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else repr(o)

        shown = [show(o) for o in self.operands]
        rest = f"opset {self.opset}, dynamic {self.dynamic}, {self.spelling}"
        operator = f"{self.before} {self.operator}.{self.overload}({', '.join(shown)})"
        return f"{operator} {self.after}; {rest}"


def is_tensors(operand: Any) -> bool:
    """Whether it is a list of tensors."""
    return isinstance(operand, list) and any(isinstance(o, (np.ndarray, Held)) for o in operand)


def holds(call: Call, *, tolerance: float | None = None, witness: bool = True) -> None:
    """The three agree, or the failure prints the arguments."""
    model = call.model()
    result = surgeon.apply(model, "adaptive-pool", "aten-nn", verify=False)
    saved = result.model.to_proto()
    left = [n.op_type for n in saved.graph.node if n.domain not in ("", "ai.onnx")]
    assert not left, f"{call}: {left} left: {reasons(result)}"
    found = list(Session(saved).run(call.feeds).values())
    tellers = []
    if witness:
        tellers.append(("witness", list(Reference(model).run(call.feeds).values())))
    if HAS_TORCH and call.operator not in ("thnn_col2im", "thnn_im2col", "rfft"):
        from surgeon.reference.torch_witness import TorchWitness

        tellers.append(
            ("torch", list(Reference(model, witness=TorchWitness()).run(call.feeds).values()))
        )
    for teller, values in tellers:
        for got, want in zip(found, values, strict=True):
            assert got.dtype == want.dtype, f"{call}: {got.dtype}, {teller} {want.dtype}"
            assert got.shape == want.shape, f"{call}: {got.shape}, {teller} {want.shape}"
            if not got.size:
                continue
            limit = tolerance or (3e-3 if got.dtype == np.float16 else 2e-5)
            mine, its = (np.where(np.isnan(want), 0.0, t.astype(np.float64)) for t in (got, want))
            assert (np.isnan(got) == np.isnan(want)).all(), f"{call}: NaN elsewhere than {teller}"
            scale = max(1.0, float(np.abs(its).max()))
            error = float(np.abs(mine - its).max())
            assert error <= limit * scale, f"{call}: off by {error} from {teller}"


def reasons(result: Any) -> list[str]:
    return [str(miss.reason) for miss in result.report.misses]


def refuses(call: Call, because: str) -> None:
    """The node stays, for a reason that says this."""
    result = surgeon.apply(call.model(), "adaptive-pool", "aten-nn", verify=False, every_miss=True)
    assert any(because in reason for reason in reasons(result)), f"{call}: {reasons(result)}"


def opset_for(index: int, *choices: int) -> int:
    """One of the opsets, in turn: the grid is too large for every one."""
    return choices[index % len(choices)]


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
_RESIZED_AA = ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")
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
            if dynamic and operator in _RESIZED_AA and opset >= 18:
                continue  # where onnxruntime has its own antialiasing
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


@pytest.mark.parametrize("opset", [9, 17])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_affine_grids(opset: int, dtype: Any) -> None:
    for corners, size in itertools.product(
        (False, True), ([2, 3, 4, 5], [2, 1, 1, 3], [2, 3, 2, 3, 4])
    ):
        theta = normal(2, len(size) - 2, len(size) - 1, dtype=dtype)
        holds(Call("affine_grid_generator", [theta, size, corners], opset=opset))


# -------------------------------------------------------------------------------------- spectra


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transforms(dtype: Any) -> None:
    x = normal(3, 8, 5, dtype=dtype)
    for operator, dim, n, norm in itertools.product(
        ("fft_fft", "fft_ifft", "fft_rfft"), (-1, 1), (None, 4, 9), (None, "ortho", "forward")
    ):
        for after in ("view_as_real", "abs", "imag"):
            holds(Call(operator, [x, n, dim, norm], after=after, opset=9), witness=after != "abs")
        if n is None and norm is None:
            holds(Call(operator, [x, n, dim, norm], after="view_as_real", dynamic=True, opset=11))


def test_inverse_of_a_half_spectrum() -> None:
    x = normal(2, 7, 5, 2)
    for n, norm in itertools.product((None, 8, 7, 11), (None, "ortho")):
        before: list[tuple[str, list[Any]]] = [("view_as_complex", [])]
        holds(Call("fft_irfft", [x, n, 1, norm], before=before), tolerance=5e-5)
    before = [("fft_rfft", [None, -1, None]), ("mul", [0.5])]
    call = Call("fft_irfft", [normal(2, 16), None, -1, None], before=before)
    holds(call)


def test_arithmetic_of_complex_values() -> None:
    x = normal(3, 8)
    spectrum: tuple[str, list[Any]] = ("fft_fft", [None, -1, None])
    for after in ("view_as_real", "real", "imag"):
        for operator, rest in (("add", [0.5, 1]), ("sub", [2, 1]), ("mul", [0.5]), ("div", [3.0])):
            holds(Call(operator, [x, *rest], before=[spectrum], after=after))
        for operator in ("neg", "_conj"):
            holds(Call(operator, [x], before=[spectrum], after=after))
        holds(Call("add", [x, normal(8), 1], before=[spectrum], after=after))
        holds(Call("sub", [x[:1], x, 1], before=[spectrum], after=after))
    refuses(Call("mul", [x, normal(8).astype("d")], before=[spectrum], after="imag"), "in double")
    refuses(Call("add", [x, 0.5, 2], before=[spectrum], after="imag"), "a multiple")


def test_a_filter_of_spectra() -> None:
    def node(kind: str, names: list[str], made: str) -> Any:
        attributes = {"operator": kind, "overload_name": ""}
        return helper.make_node("ATen", names, [made], domain="org.pytorch.aten", **attributes)

    nodes = [
        node("fft_rfft2", ["x"], "c"),
        node("view_as_complex", ["w"], "f"),
        node("mul", ["c", "f"], "p"),
        node("sub", ["p", "c"], "d"),
        node("fft_irfft2", ["d"], "y"),
    ]
    inputs = [
        helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 8, 6]),
        helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, [8, 4, 2]),
    ]
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name="y")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("org.pytorch.aten", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    result = surgeon.apply(model, "aten-nn")
    assert result.report.verdict.status == "equivalent"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transforms_of_several_axes(dtype: Any) -> None:
    x = normal(3, 8, 5, dtype=dtype)
    for kind, norm in itertools.product(("fft", "ifft", "rfft"), (None, "ortho", "forward")):
        for sizes, axes in ((None, [-2, -1]), ([4, 6], [0, 2]), (None, [1])):
            operands = [x, sizes, axes, norm]
            holds(Call(f"fft_{kind}2", operands, after="view_as_real"))
            holds(Call(f"fft_{kind}n", operands, after="imag", opset=9))
        holds(Call(f"fft_{kind}n", [x, None, None, norm], after="view_as_real"))
        holds(Call(f"fft_{kind}n", [x, [6, 4], None, norm], after="view_as_real"))
        holds(Call(f"fft_{kind}2", [x, [-1, 4], [0, 1], norm], after="real"), witness=False)
    before: list[tuple[str, list[Any]]] = [("view_as_complex", [])]
    for norm, sizes in itertools.product((None, "ortho"), (None, [6, 9])):
        for operator in ("fft_irfft2", "fft_irfftn"):
            operands = [normal(3, 8, 5, 2, dtype=dtype), sizes, [-2, -1], norm]
            holds(Call(operator, operands, before=before), tolerance=5e-5)


def test_short_time_transforms() -> None:
    window = np.hanning(17)[:16].astype(np.float32).tolist()
    x = normal(2, 70)
    for hop, normalized, onesided in itertools.product((4, 8), (False, True), (True, False)):
        operands = [x, 16, hop, 16, None, normalized, onesided, True, None]
        for dynamic in (False, True):
            holds(Call("stft", operands, after="view_as_real", dynamic=dynamic), tolerance=5e-5)
        operands = [x, 16, hop, 16, np.float32(window), True, "reflect", normalized, onesided, True]
        operands[4] = [float(v) for v in window]
    spectrum = normal(2, 9, 6, 2)
    for normalized, length in itertools.product((False, True), (None, 36)):
        operands = [spectrum, 16, 8, 16, None, True, normalized, None, length, False]
        before: list[tuple[str, list[Any]]] = [("view_as_complex", [])]
        holds(Call("istft", operands, before=before), tolerance=5e-5)


def test_the_old_rfft() -> None:
    for normalized, onesided in itertools.product((False, True), (False, True)):
        holds(Call("rfft", [normal(3, 10), 1, normalized, onesided], spelling="A", opset=9))


def test_complex_values_that_leave_are_refused() -> None:
    refuses(Call("fft_irfft", [normal(2, 9).astype(np.complex64), None, -1, None]), "complex")
