"""What onnxruntime's optimizers fuse for GPUs alone into products and convolutions.

By its `ContribOperators.md`. Each operator is computed in double precision and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from surgeon.reference.errors import Unsuited
from surgeon.reference.libraries.activations import activated
from surgeon.reference.operators.convolution import convolution
from surgeon.reference.operators.math_activations import softmax
from surgeon.reference.operators.precision import Array, narrow, wide

Said = Mapping[str, Any]


def swiglu(said: Said, gate: Array, up: Array | None = None) -> Array:
    """G sigmoid (alpha G) (L + beta), G and L clamped; one operand holds both, the gate first."""
    if up is None:
        gate, up = np.split(gate, 2, axis=-1)
    return _gated(said, gate, up)


def _gated(said: Said, gate: Array, up: Array) -> Array:
    g, linear = wide(gate), wide(up)
    if (limit := said.get("limit", 0.0)) > 0:
        g, linear = np.minimum(g, limit), np.clip(linear, -limit, limit)
    with np.errstate(over="ignore"):
        y = g / (1 + np.exp(-said.get("activation_alpha", 1.0) * g))
    if said.get("round_activation"):
        y = wide(narrow(y, gate))
    return narrow(y * (linear + said.get("activation_beta", 0.0)), gate)


def router_gate_up(said: Said, x: Array, w: Array) -> tuple[Array, Array]:
    """The first columns of a product, and the gated halves of the others."""
    y, size = narrow(wide(x) @ wide(w), x), said["router_size"]
    gate, up = np.split(y[..., size:], 2, axis=-1)
    return y[..., :size], _gated(said, gate, up)


def _normalised(said: Said, x: Array, skip: Array | None, scale: Array | None, eps: float) -> Any:
    """The sum, and what is multiplied: it by the root of the mean of its squares, if at all."""
    total = wide(x) if skip is None else wide(x) + wide(skip)
    if scale is None:
        return total, total
    mean = np.mean(total * total, axis=-1, keepdims=True)
    return total, total / np.sqrt(mean + said.get("epsilon", eps)) * wide(scale)


def _by_few_bits(
    said: Said, rows: int, a: Array, packed: Array, scales: Array, bias: Array | None
) -> Array:
    """A product with rows of a few bits: (q - the middle) * the scale of its block."""
    bits, size, columns = said.get("bits", 4), said["block_size"], said["K"]
    places = np.arange(0, 8, bits)
    levels = (packed.reshape(rows, -1)[..., None] >> places) & ((1 << bits) - 1)
    levels = levels.reshape(rows, -1, size).astype(np.float64) - (1 << (bits - 1))
    weight = levels * wide(scales).reshape(rows, -1, 1)
    y: Array = a @ weight.reshape(rows, -1)[:, :columns].T
    return y if bias is None else y + wide(bias)


def n_bits_qkv(
    said: Said, a: Array, skip: Array | None, scale: Array, *parts: Array | None
) -> tuple[Array, ...]:
    """Three products of what is normalised, and the sum that it is of."""
    total, x = _normalised(said, a, skip, scale, 1e-6)
    three = [(*parts, *[None] * 9)[at : at + 3] for at in (0, 3, 6)]
    rows = (said["Nq"], said["Nkv"], said["Nkv"])
    made = [_by_few_bits(said, n, x, *each) for n, each in zip(rows, three, strict=True)]  # type: ignore[arg-type]
    return tuple(narrow(y, a) for y in (*made, total))


def n_bits_mlp(
    said: Said, a: Array, skip: Array | None, scale: Array | None, *parts: Array | None
) -> tuple[Array, ...]:
    """silu (gate) times up, and the sum that was normalised."""
    if said["activation"] not in ("silu", b"silu"):
        raise Unsuited(f"its activation is {said['activation']}")
    total, x = _normalised(said, a, skip, scale, 1e-5)
    both = [(*parts, *[None] * 6)[at : at + 3] for at in (0, 3)]
    gate, up = (_by_few_bits(said, said["N"], x, *each) for each in both)  # type: ignore[arg-type]
    with np.errstate(over="ignore"):
        y = gate / (1 + np.exp(-gate)) * up
    return narrow(y, a), narrow(total, a)


def fused_conv_channels_last(
    said: Said, x: Array, weight: Array, bias: Array | None = None, z: Array | None = None
) -> Array:
    """activation (Conv (x, weight, bias) + z); channels come last but for those of the weight."""
    if x.ndim != 4 or said.get("auto_pad", "NOTSET") not in ("NOTSET", b"NOTSET"):
        raise Unsuited("it is of no plane, or pads by itself")
    pads = said.get("pads", [0] * 4)
    padded = np.pad(np.moveaxis(x, -1, 1), [(0, 0), (0, 0), pads[::2], pads[1::2]])
    strides, dilations = said.get("strides", [1, 1]), said.get("dilations", [1, 1])
    arguments = strides, [0, 0], dilations, False, [0, 0], said.get("group", 1)
    y = np.moveaxis(wide(convolution(padded, weight, bias, *arguments)), 1, -1)
    if z is not None:
        y = y + wide(z)
    return narrow(activated(said.get("activation", ""), y, said.get("activation_params", ())), x)


def fused_matmul_activation(said: Said, a: Array, b: Array) -> Array:
    """activation (alpha a b), of operands that may be transposed."""
    if said.get("transBatchA") or said.get("transBatchB") or min(a.ndim, b.ndim) < 2:
        raise Unsuited("the batch of an operand is turned, or it is a vector")
    left, right = (
        wide(x).swapaxes(-1, -2) if said.get(f"trans{side}") else wide(x)
        for x, side in ((a, "A"), (b, "B"))
    )
    y, name = said.get("alpha", 1.0) * (left @ right), said["activation"]
    if name in ("Softmax", b"Softmax"):
        return narrow(softmax(y, said.get("activation_axis", -1), None), a)
    numbers = [
        said[f"activation_{key}"] for key in ("alpha", "beta") if f"activation_{key}" in said
    ]
    return narrow(activated(name, y, numbers), a)


TABLE: Mapping[str, Callable[..., Any]] = {
    "FusedMatMulActivation": fused_matmul_activation,
    "MatMulNBitsMlp": n_bits_mlp,
    "MatMulNBitsQkv": n_bits_qkv,
    "NhwcFusedConv": fused_conv_channels_last,
    "RouterGateUpProj": router_gate_up,
    "SwiGLU": swiglu,
}
