"""Nodes of onnxruntime's own operators, each with what it is fed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

DRAW = np.random.default_rng(0)


class Case(NamedTuple):
    """One node.

    Attributes:
        op: Its operator in `com.microsoft`.
        inputs: Arrays that are fed, by name; `None` for one that is left out.
        weights: Arrays that are initializers, by name.
        order: The node's inputs.
        attributes: As the node has them.
        outputs: How many outputs it names.
        domain: Where the operator is.
        since: The opset below which there is no way.
        without: Outputs that it does not name.
        tolerance: Absolute, of a result of size 1.
        dynamic: Axes of inputs whose sizes need not be known.
    """

    op: str
    inputs: Mapping[str, np.ndarray]
    weights: Mapping[str, np.ndarray] = {}
    order: Sequence[str] = ()
    attributes: Mapping[str, Any] = {}
    outputs: int = 1
    domain: str = "com.microsoft"
    since: int = 0
    without: Sequence[int] = ()
    tolerance: float = 1e-5
    dynamic: Mapping[str, Sequence[int]] = {}


def normal(*shape: int) -> np.ndarray:
    return DRAW.standard_normal(shape).astype(np.float32)


def half(*shape: int) -> np.ndarray:
    return normal(*shape).astype(np.float16)


def whole(most: int, *shape: int, dtype: Any = np.int32) -> np.ndarray:
    return DRAW.integers(0, most, shape).astype(dtype)


def bytes_of(*shape: int, dtype: Any = np.uint8) -> np.ndarray:
    limits = np.iinfo(dtype)
    return DRAW.integers(limits.min, limits.max + 1, shape).astype(dtype)


def single(value: float) -> np.ndarray:
    return np.array(value, np.float32)


def zero(value: int, dtype: Any = np.uint8) -> np.ndarray:
    return np.array(value, dtype)


def quantized(name: str, scale: float, point: int, dtype: Any = np.uint8) -> dict[str, np.ndarray]:
    return {f"{name}s": single(scale), f"{name}z": zero(point, dtype)}


def model_of(case: Case, opset: int) -> onnx.ModelProto:
    order = case.order or [*case.inputs, *case.weights]
    outputs = [f"y{i}" if i not in case.without else "" for i in range(case.outputs)]
    node = helper.make_node(
        case.op, order, outputs, name="it", domain=case.domain, **case.attributes
    )
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
            )
            for name, value in case.inputs.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in outputs if name],
        [numpy_helper.from_array(value, name) for name, value in case.weights.items()],
    )
    imports = [helper.make_opsetid("", opset)]
    if case.domain:
        imports.append(helper.make_opsetid(case.domain, 1))
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


S, H = 5, 8  # a length, and a hidden size
LENGTHS = np.array([3, 5], np.int32)
TABLES = {"cos": normal(16, 4), "sin": normal(16, 4)}
TABLES_OF_WORDS = {
    "wt": normal(20, H), "pt": normal(9, H), "g": normal(H), "b": normal(H)
}  # fmt: skip
QKV = {"w": normal(6, 24), "b": normal(24)}


def few_bits(bits: int, zeros: str = "", kind: Any = np.float32, columns: int = 70) -> Case:
    """A product with weights of `bits`, in blocks of 32, of which the last may be shorter."""
    count = -(-columns // 32)
    weights = {
        "b": bytes_of(9, count, 4 * bits),
        "s": DRAW.uniform(0.01, 0.1, (9, count)).astype(kind),
        **({"z": bytes_of(9, -(-count * bits // 8))} if zeros == "packed" else {}),
        **({"z": DRAW.uniform(0, 3, (9, count)).astype(kind)} if zeros == "floats" else {}),
        **({"z": whole(4, 9, count, dtype=kind)} if zeros == "whole" else {}),
    }
    sizes = {"K": columns, "N": 9, "bits": bits, "block_size": 32}
    x = normal(2, 3, columns).astype(kind)
    tolerance = 1e-2 if kind == np.float16 else 1e-5
    return Case("MatMulNBits", {"a": x}, weights, attributes=sizes, since=13, tolerance=tolerance)


def few_bits_of_table(bits: int, zeros: bool, kind: Any = np.float32) -> Case:
    """Rows of a table of 7 by 64, in blocks of 16."""
    weights = {
        "d": bytes_of(7, 8 * bits),
        "s": DRAW.uniform(0.01, 0.1, (7, 4)).astype(kind),
        **({"z": bytes_of(7, -(-4 * bits // 8))} if zeros else {}),
    }
    attributes = {"bits": bits, "block_size": 16, "gather_axis": 0, "quantize_axis": 1}
    ids = {"i": whole(7, 2, 3, dtype=np.int64)}
    order = ["d", "i", "s", *(["z"] if zeros else [])]
    return Case("GatherBlockQuantized", ids, weights, order, attributes)


DECODER = (
    "query key value past_key past_value seqlens_k total cos sin position_ids bias sink".split()
)
TURNED = {"do_rotary": 1}


def decoder(
    batch: int, length: int, past: int, ends: Sequence[int], total: int, **more: Any
) -> dict[str, np.ndarray]:
    """What a step of a decoder of four heads that share two of keys is fed, of width 16."""
    fed = (
        {"query": normal(batch, length, 128)}
        if more.pop("packed", False)
        else {
            "query": normal(batch, length, 64),
            "key": normal(batch, length, 32),
            "value": normal(batch, length, 32),
        }
    )
    if past:
        fed |= {"past_key": normal(batch, 2, past, 16), "past_value": normal(batch, 2, past, 16)}
    fed |= {"seqlens_k": np.array(ends, np.int32) - 1, "total": np.array(total, np.int32)}
    if more.pop("turned", True):
        fed |= {"cos": normal(32, 8), "sin": normal(32, 8)}
    return fed | more


def operands(fed: Mapping[str, np.ndarray]) -> list[str]:
    """The node's inputs, the last that is there the last."""
    names = [name if name in fed else "" for name in DECODER]
    return names[: max(index for index, name in enumerate(names) if name) + 1]


LENGTHS_OF_CACHE = ("seqlens_k", "total")  # which go together with the sizes
STEPS: Mapping[str, tuple[Mapping[str, np.ndarray], Mapping[str, Any]]] = {
    "a prompt": (decoder(2, 5, 0, [5, 5], 5), TURNED),
    "a prompt, not turned": (decoder(2, 5, 0, [5, 5], 5, turned=False), {}),
    "a padded prompt": (decoder(2, 5, 0, [5, 3], 5), TURNED),
    "one more": (decoder(2, 1, 6, [7, 7], 7), TURNED),
    "one more of each length": (decoder(2, 1, 6, [7, 4], 7), TURNED),
    "several more": (decoder(1, 3, 6, [9], 9), TURNED),
    "a prompt into a buffer": (decoder(1, 3, 10, [3], 3), TURNED),
    "one more into a buffer": (decoder(1, 1, 10, [5], 5), TURNED),
    "a window": (decoder(1, 3, 6, [9], 9), {**TURNED, "local_window_size": 4}),
    "bounded, and a bias": (
        decoder(1, 3, 6, [9], 9, bias=normal(1, 4, 3, 9)),
        {**TURNED, "softcap": 2.0},
    ),
    "packed": (decoder(1, 3, 6, [9], 9, packed=True), TURNED),
    "neighbours": (decoder(1, 3, 6, [9], 9), {**TURNED, "rotary_interleaved": 1}),
    "at a place": (decoder(1, 1, 6, [7], 7, position_ids=np.array([[3]])), TURNED),
    "a prompt from a place": (
        decoder(2, 3, 0, [3, 3], 3, position_ids=np.array([[2, 9, 1], [7, 8, 9]])),
        TURNED,
    ),
    "a sink": (decoder(1, 3, 6, [9], 9, sink=normal(4)), TURNED),
    "smooth": (decoder(1, 3, 6, [9], 9), {**TURNED, "smooth_softmax": 1}),
    "of all that is there": (decoder(2, 5, 0, [5, 3], 5), {**TURNED, "causal": 0}),
    "scaled": (decoder(1, 3, 6, [9], 9), {**TURNED, "scale": 0.2}),
}

CASES: dict[str, Case] = {
    **{
        f"product with weights of {bits} bits, zeros {zeros or 'left out'}": few_bits(bits, zeros)
        for bits, zeros in (
            *((bits, zeros) for bits in (2, 4, 8) for zeros in ("", "packed")),
            (4, "floats"), (4, "whole"),
        )
    },
    "product with weights of 4 bits, whole blocks": few_bits(4, columns=64),
    "product with weights of 4 bits, in halves": few_bits(4, "packed", np.float16),
    **{
        f"rows of {bits} bits, {'' if zeros else 'no '}zero points": few_bits_of_table(bits, zeros)
        for bits in (2, 4, 8) for zeros in (True, False)
    },
    "conv": Case("FusedConv", {"x": normal(1, 3, 6, 6)}, {"w": normal(4, 3, 3, 3)}),
    **{
        f"conv {name}": Case(
            "FusedConv",
            {"x": normal(2, 4, 7, 6)},
            {"w": normal(4, 2, 3, 3), "b": normal(4)},
            attributes={
                "activation": name, "pads": [1, 1, 1, 1], "group": 2, "kernel_shape": [3, 3],
                **({"activation_params": numbers} if numbers else {}),
            },
        )
        for name, numbers in (
            ("Relu", []), ("Sigmoid", []), ("Tanh", []), ("LeakyRelu", [0.3]),
            ("Clip", [-0.5, 0.5]), ("HardSigmoid", [0.3, 0.4]),
        )
    },
    "conv and sum": Case(
        "FusedConv",
        {"x": normal(1, 3, 6, 6), "z": normal(1, 4, 4, 4)},
        {"w": normal(4, 3, 3, 3), "b": normal(4)},
        ["x", "w", "b", "z"],
        {"activation": "Relu"},
    ),
    "conv and sum, no bias": Case(
        "FusedConv",
        {"x": normal(1, 3, 6, 6), "z": normal(1, 4, 4, 4)},
        {"w": normal(4, 3, 3, 3)},
        ["x", "w", "", "z"],
        {"activation": "LeakyRelu", "activation_params": [0.2]},
    ),
    **{
        f"gemm {name}": Case(
            "FusedGemm",
            {"a": normal(3, 4), "b": normal(5, 4), "c": normal(5)},
            attributes={"activation": name, "transB": 1, "alpha": 0.5, **numbers},
        )
        for name, numbers in (
            ("Relu", {}), ("Sigmoid", {}), ("LeakyRelu", {"activation_alpha": 0.2}),
            ("Elu", {"activation_alpha": 0.7}),
            ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}),
            ("Selu", {"activation_alpha": 1.5, "activation_gamma": 1.1}),
            ("ThresholdedRelu", {"activation_alpha": 0.4}), ("Softplus", {}), ("Softsign", {}),
        )
    },
    "matmul": Case(
        "FusedMatMul", {"a": normal(2, 3, 4), "b": normal(4, 5)}, attributes={"alpha": 2.0}
    ),
    "matmul of turned": Case(
        "FusedMatMul",
        {"a": normal(2, 4, 3), "b": normal(2, 5, 4)},
        attributes={"transA": 1, "transB": 1, "alpha": 0.125},
    ),
    "matmul of a vector": Case(
        "FusedMatMul", {"a": normal(4), "b": normal(5, 4)}, attributes={"transB": 1}
    ),
    "matmul, rows in front": Case(
        "FusedMatMul",
        {"a": normal(3, 2, 4), "b": normal(2, 4, 5)},
        attributes={"transBatchA": 1},
    ),
    "matmul, rows in front of both, turned": Case(
        "FusedMatMul",
        {"a": normal(4, 2, 6, 3), "b": normal(5, 2, 6, 4)},
        attributes={"transBatchA": 1, "transA": 1, "transBatchB": 1, "transB": 1},
    ),
    "matmul by its old name": Case(
        "TransposeMatMul", {"a": normal(2, 4, 3), "b": normal(2, 4, 5)}, attributes={"transA": 1}
    ),
    "gelu": Case("Gelu", {"x": normal(3, 4)}),
    "gelu of a sum": Case("BiasGelu", {"x": normal(3, 4)}, {"b": normal(4)}),
    "fast gelu": Case("FastGelu", {"x": normal(3, 4)}),
    "fast gelu of a sum": Case("FastGelu", {"x": normal(3, 4)}, {"b": normal(4)}),
    "quick gelu": Case("QuickGelu", {"x": normal(3, 4)}),
    "silu": Case("QuickGelu", {"x": normal(3, 4)}, attributes={"alpha": 1.0}),
    "skip norm": Case(
        "SkipLayerNormalization",
        {"x": normal(2, S, H), "s": normal(2, S, H)},
        {"g": normal(H), "be": normal(H)},
        attributes={"epsilon": 1e-5},
    ),
    "skip norm of halves": Case(
        "SkipLayerNormalization",
        {"x": half(2, S, H), "s": half(2, S, H)},
        {"g": half(H), "be": half(H)},
        tolerance=4e-3,
    ),
    "skip norm with a bias and the sum": Case(
        "SkipLayerNormalization",
        {"x": normal(2, S, H), "s": normal(S, H)},
        {"g": normal(H), "b": normal(H)},
        ["x", "s", "g", "", "b"],
        outputs=4,
        without=(1, 2),
    ),
    "skip rms": Case(
        "SkipSimplifiedLayerNormalization",
        {"x": normal(2, S, H), "s": normal(2, S, H)},
        {"g": normal(H)},
        attributes={"epsilon": 1e-5},
    ),
    "skip rms with a bias and the sum": Case(
        "SkipSimplifiedLayerNormalization",
        {"x": normal(2, S, H), "s": normal(2, S, H)},
        {"g": normal(H), "b": normal(H)},
        outputs=4,
        without=(1, 2),
    ),
    "rms": Case(
        "SimplifiedLayerNormalization", {"x": normal(2, S, H)}, {"g": normal(H)}, domain=""
    ),
    "rms over two axes": Case(
        "SimplifiedLayerNormalization",
        {"x": normal(2, S, H)},
        {"g": normal(S, H)},
        attributes={"axis": 1, "epsilon": 0.01},
        domain="",
    ),
    "norm before its time": Case(
        "LayerNormalization", {"x": normal(2, S, H)}, {"g": normal(H), "b": normal(H)}, domain=""
    ),
    "embedding": Case(
        "EmbedLayerNormalization",
        {"i": whole(20, 2, S), "k": whole(2, 2, S), "m": whole(2, 2, S)},
        {**TABLES_OF_WORDS, "kt": normal(2, H)},
        ["i", "k", "wt", "pt", "kt", "g", "b", "m"],
        outputs=2,
    ),
    "embedding without kinds": Case(
        "EmbedLayerNormalization",
        {"i": whole(20, 2, S), "p": whole(9, 1, S)},
        TABLES_OF_WORDS,
        ["i", "", "wt", "pt", "", "g", "b", "", "p"],
        outputs=3,
    ),
    "attention": Case("Attention", {"x": normal(2, S, 6)}, QKV, attributes={"num_heads": 2}),
    "attention, causal": Case(
        "Attention", {"x": normal(2, S, 6)}, QKV, attributes={"num_heads": 4, "unidirectional": 1}
    ),
    "attention, scaled": Case(
        "Attention", {"x": normal(2, S, 6)}, QKV, attributes={"num_heads": 2, "scale": 0.3}
    ),
    "attention, values of their own width": Case(
        "Attention",
        {"x": normal(2, S, 6)},
        {"w": normal(6, 8 + 8 + 4), "b": normal(20)},
        attributes={"num_heads": 2, "qkv_hidden_sizes": [8, 8, 4]},
    ),
    "attention, masked": Case(
        "Attention",
        {"x": normal(2, S, 6), "m": whole(2, 2, S)},
        QKV,
        ["x", "w", "b", "m"],
        {"num_heads": 2},
    ),
    "attention, masked by pairs": Case(
        "Attention",
        {"x": normal(2, S, 6), "m": whole(2, 2, S, S)},
        QKV,
        ["x", "w", "b", "m"],
        {"num_heads": 2, "mask_filter_value": -5.0},
    ),
    "attention, masked and causal": Case(
        "Attention",
        {"x": normal(2, S, 6), "m": np.array([[0, 0, 1, 1, 1], [1, 1, 1, 0, 0]], np.int32)},
        QKV,
        ["x", "w", "b", "m"],
        {"num_heads": 2, "unidirectional": 1},
    ),
    "attention, lengths": Case(
        "Attention",
        {"x": normal(2, S, 6), "m": LENGTHS},
        QKV,
        ["x", "w", "b", "m"],
        {"num_heads": 2},
    ),
    "attention, lengths and beginnings": Case(
        "Attention",
        {"x": normal(2, S, 6), "m": np.array([4, 5, 1, 2], np.int32)},
        QKV,
        ["x", "w", "b", "m"],
        {"num_heads": 2},
    ),
    "attention, a past": Case(
        "Attention",
        {"x": normal(2, S, 6), "p": normal(2, 2, 2, 3, 4)},
        QKV,
        ["x", "w", "b", "", "p"],
        {"num_heads": 2, "unidirectional": 1},
        outputs=2,
    ),
    "attention, a bias": Case(
        "Attention",
        {"x": normal(2, S, 6), "a": normal(1, 2, S, S)},
        QKV,
        ["x", "w", "b", "", "", "a"],
        {"num_heads": 2},
    ),
    "attention, a state to begin with": Case(
        "Attention", {"x": normal(2, S, 6)}, QKV, attributes={"num_heads": 2}, outputs=2
    ),
    "heads": Case(
        "MultiHeadAttention",
        {"q": normal(2, S, H), "k": normal(2, 7, H), "v": normal(2, 7, 4)},
        attributes={"num_heads": 2},
    ),
    "heads with a bias and a mask": Case(
        "MultiHeadAttention",
        {"q": normal(2, S, H), "k": normal(2, 7, H), "v": normal(2, 7, H), "m": whole(2, 2, 7)},
        {"b": normal(3 * H)},
        ["q", "k", "v", "b", "m"],
        {"num_heads": 4},
    ),
    "heads with lengths": Case(
        "MultiHeadAttention",
        {"q": normal(2, S, H), "k": normal(2, 7, H), "v": normal(2, 7, H), "m": LENGTHS},
        order=["q", "k", "v", "", "m"],
        attributes={"num_heads": 2, "scale": 0.5},
    ),
    "heads with a past, causal": Case(
        "MultiHeadAttention",
        {
            "q": normal(2, S, H), "k": normal(2, S, H), "v": normal(2, S, H),
            "a": normal(2, 1, S, S + 3), "pk": normal(2, 2, 3, 4), "pv": normal(2, 2, 3, 4),
        },
        order=["q", "k", "v", "", "", "a", "pk", "pv"],
        attributes={"num_heads": 2, "unidirectional": 1},
        outputs=3,
    ),
    "heads across": Case(
        "MultiHeadAttention",
        {"q": normal(2, S, H), "k": normal(2, 2, 7, 4), "v": normal(2, 2, 7, 4)},
        attributes={"num_heads": 2},
    ),
    **{
        f"grouped heads, {name}": Case(
            "GroupQueryAttention",
            {name: value for name, value in fed.items() if name not in LENGTHS_OF_CACHE},
            {name: fed[name] for name in LENGTHS_OF_CACHE},
            operands(fed),
            {"num_heads": 4, "kv_num_heads": 2, **attributes},
            outputs=3,
        )
        for name, (fed, attributes) in STEPS.items()
    },
    "rotary": Case(
        "RotaryEmbedding",
        {"x": normal(2, S, 16), "p": whole(16, 2, S, dtype=np.int64)},
        TABLES,
    ),
    "rotary of neighbours, from a place": Case(
        "RotaryEmbedding",
        {"x": normal(2, 3, S, 8), "p": np.array([4], np.int64)},
        TABLES,
        attributes={"interleaved": 1},
    ),
    "rotary of one place": Case(
        "RotaryEmbedding", {"x": normal(1, 1, 16), "p": np.array([4], np.int64)}, TABLES
    ),
    "rotary of a part": Case(
        "RotaryEmbedding",
        {"x": normal(2, S, 24), "p": whole(16, 2, S, dtype=np.int64)},
        TABLES,
        attributes={"rotary_embedding_dim": 8, "num_heads": 2},
    ),
    **{
        f"quantized {op}": Case(
            f"QLinear{op}",
            {"x": bytes_of(2, 3, 6, 6)},
            {**quantized("x", 0.04, 120), **quantized("y", scale, point)},
            ["x", "xs", "xz", "ys", "yz"],
            attributes,
            )
        for op, scale, point, attributes in (
            ("Sigmoid", 1 / 256, 0, {}),
            ("LeakyRelu", 0.02, 60, {"alpha": 0.2}),
        )
    },
    "quantized join": Case(
        "QLinearConcat",
        {"a": bytes_of(2, 3), "b": bytes_of(2, 4)},
        {**quantized("a", 0.02, 120), **quantized("b", 0.01, 10), **quantized("y", 0.03, 100)},
        ["ys", "yz", "a", "as", "az", "b", "bs", "bz"],
        {"axis": 1},
    ),
    "quantized choice": Case(
        "QLinearWhere",
        {"c": whole(2, 3, 4, dtype=np.bool_), "a": bytes_of(3, 4), "b": bytes_of(3, 1)},
        {**quantized("a", 0.02, 120), **quantized("b", 0.01, 10), **quantized("y", 0.03, 100)},
        ["c", "a", "as", "az", "b", "bs", "bz", "ys", "yz"],
    ),
    "quantized gemm in floats, scales by column": Case(
        "QGemm",
        {"a": bytes_of(3, 4)},
        {
            # of 7 bits, as its sums saturate on processors without the instructions of VNNI
            "b": bytes_of(5, 4, dtype=np.int8) // 2,
            "c": whole(2000, 5), **quantized("a", 0.02, 120),
            "bs": np.abs(normal(5)), "bz": np.zeros(5, np.int8),
        },
        ["a", "as", "az", "b", "bs", "bz", "c"],
        {"transB": 1},
        since=13,
    ),
    "quantized": Case("QuantizeLinear", {"x": normal(3, 4)}, quantized("x", 0.02, 120)),
    "quantized to 16 bits": Case(
        "QuantizeLinear", {"x": normal(3, 4)}, quantized("x", 0.0002, 3000, np.uint16), since=21
    ),
    "dequantized by row": Case(
        "DequantizeLinear",
        {"x": bytes_of(3, 4)},
        {"s": np.abs(normal(3)), "z": bytes_of(3)},
        attributes={"axis": 0},
        since=13,
    ),
    "dynamic product": Case(
        "DynamicQuantizeMatMul",
        {"a": normal(2, 3, 4)},
        {
            "b": bytes_of(4, 5, dtype=np.int8), "s": single(0.03), "z": zero(4, np.int8),
            "c": normal(5),
        },
    ),
    "dynamic product by column": Case(
        "DynamicQuantizeMatMul",
        {"a": normal(2, 3, 4)},
        {"b": bytes_of(4, 5), "s": np.abs(normal(5)), "z": bytes_of(5)},
    ),
    "integers to floats": Case(
        "MatMulIntegerToFloat",
        {"a": bytes_of(2, 3, 4), "as": single(0.02), "az": zero(7)},
        {"b": bytes_of(4, 5), "bs": single(0.03), "bz": zero(120), "c": normal(5)},
        ["a", "b", "as", "bs", "az", "bz", "c"],
    ),
    "integers to floats, no zeros": Case(
        "MatMulIntegerToFloat",
        {"a": bytes_of(3, 4)},
        {"b": bytes_of(4, 5), "as": single(0.02), "bs": np.abs(normal(5))},
        ["a", "b", "as", "bs"],
    ),
}  # fmt: skip
