"""How a file spells its operators, and what they are called here."""

from __future__ import annotations

import onnx

_LIBRARIES = ("aten", "torchvision", "torchaudio", "quantized_decomposed", "torchao")
ATEN_DOMAINS = frozenset({*_LIBRARIES, *(f"org.pytorch.{name}" for name in _LIBRARIES)})
FALLBACK_DOMAINS = ATEN_DOMAINS | {"", "com.microsoft", "caffe2"}
PRIM_DOMAINS = frozenset({"org.pytorch.prim", "prim"})
LOST_WRITE = "Placeholder"  # without fallback it has no domain: a write whose operands are lost
CUT = {  # exporters drop an underscore
    f"__{name}_": f"__{name}__"
    for name in (
        *"and or xor lshift rshift iand ior ixor ilshift irshift".split(),
        *"getitem not is isnot contains".split(),
    )
}


def operator_name(node: onnx.NodeProto) -> str:
    """The operator's name as recipes write it, whichever way the exporter spelled it."""
    domain = node.domain
    if node.op_type == "ATen" and domain in FALLBACK_DOMAINS:
        named = (a.s.decode("utf-8", "replace") for a in node.attribute if a.name == "operator")
        operator = next(named, "?")
        return f"aten.{CUT.get(operator, operator)}"
    if domain in ATEN_DOMAINS or (domain in ("", "ai.onnx") and node.op_type == LOST_WRITE):
        return f"aten.{node.op_type}"
    if domain in PRIM_DOMAINS:
        return f"prim.{node.op_type}"
    return node.op_type if domain in ("", "ai.onnx") else f"{domain}.{node.op_type}"


def is_foreign(name: str) -> bool:
    """Whether a name, as recipes and reports have it, is of an operator that is PyTorch's own."""
    return name.startswith(("aten.", "prim.", "org.pytorch.prim."))


def spelling(node: onnx.NodeProto) -> str:
    """Domain and operator as the file has them."""
    return f"{node.domain or 'ai.onnx'}.{node.op_type}"
