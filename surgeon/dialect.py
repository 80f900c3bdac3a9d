"""One form for what exporters say in many ways, before any rule looks.

The normal form is a view: a node that no rule touches is written back from its `origin`. ATen nodes
of every spelling become domain `aten`, op_type = operator, positional inputs; `prim` nodes become
domain `prim`; standard nodes get their newest form (see `opsets`).
"""

from __future__ import annotations

import onnx
import onnx_graphsurgeon as gs

from surgeon import opsets
from surgeon.facts import Facts
from surgeon.model import Model

ATEN = "aten"
PRIM = "prim"
_FALLBACK_DOMAINS = frozenset({"org.pytorch.aten", "aten", "com.microsoft", "", "caffe2"})
_ATEN_DOMAINS = frozenset({"org.pytorch.aten", "aten"})
_PRIM_DOMAINS = frozenset({"org.pytorch.prim", "prim"})
_CUT = {"__and_": "__and__", "__or_": "__or__", "__xor_": "__xor__"}  # exporters drop an underscore


def strip_initializer_inputs(model: Model, *, keep: bool) -> list[str]:
    """Take the initializers that are graph inputs too for constants, where the exporter meant so.

    torch 1.1 to 2.4 list every initializer as an input in fallback mode.

    Args:
        model: Its `overridable` names are cleared where they leave the inputs.
        keep: Keep them overridable, and so not constant.

    Returns:
        The names that leave the graph's inputs.
    """
    if keep or model.proto.producer_name != "pytorch":
        return []
    if model.proto.ir_version < 4:
        return []
    gone = sorted(model.overridable)
    model.overridable.clear()
    return gone


def normalise(node: gs.Node, opset: int, facts: Facts) -> None:
    """Bring one node to normal form, in place; `origin` keeps what the file says."""
    domain = node.domain or ""
    if node.op == "ATen" and domain in _FALLBACK_DOMAINS:
        operator = node.attrs.get("operator", "")
        _to_aten(node, _CUT.get(operator, operator), str(node.attrs.get("overload_name", "")))
    elif domain in _ATEN_DOMAINS and "overload" not in node.attrs:
        _to_aten(node, node.op, "")
    elif domain in _PRIM_DOMAINS:
        node.domain = PRIM
    elif domain in opsets.STANDARD:
        if any(isinstance(value, gs.Node.AttributeRef) for value in node.attrs.values()):
            node.domain = opsets.LEGACY  # the caller decides what it means
            return
        first = node.inputs[0] if node.inputs else None
        fact = None if first is None or first.is_empty() else facts.of(first)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(fact.dtype) if fact and fact.dtype else None
        opsets.raise_form(node, opset, dtype, fact.rank if fact else None)


def _to_aten(node: gs.Node, operator: str, overload: str) -> None:
    if node.origin_inputs is None:
        node.origin_inputs = tuple(node.inputs)
    rest = {k: v for k, v in node.attrs.items() if k not in ("operator", "overload_name")}
    node.op, node.domain = operator, ATEN
    node.attrs = {"overload": overload, **rest}


# Operators whose outputs differ from run to run: never merged, never folded.
RANDOM = frozenset(
    "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Multinomial Bernoulli Dropout "
    "rand rand_like randn randn_like randint randint_like randperm bernoulli dropout "
    "feature_dropout alpha_dropout multinomial normal uniform rrelu rrelu_with_noise poisson "
    "exponential".split()
)
