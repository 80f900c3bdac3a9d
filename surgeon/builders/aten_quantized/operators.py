"""PyTorch's operators of quantised tensors (`quantized::conv2d` ...), by ATen's of floats.

The exporter writes them into the domain of ATen. What tells them apart there is the number of
their arguments: the scale and the zero point of the result are among them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.arguments import CONSTRUCTORS
from surgeon.builders.bench import Bench
from surgeon.links import maker_of

Compute = Callable[[Bench, list[gs.Tensor]], gs.Tensor]


class Operands(NamedTuple):
    """What a quantised operator is given.

    Attributes:
        quantized: Its quantised operands.
        compute: The operator of floats, on these in floats.
        scale: Of the result.
        zero: Likewise.
    """

    quantized: list[gs.Tensor]
    compute: Compute
    scale: gs.Tensor
    zero: gs.Tensor


class _Form(NamedTuple):
    """How an operator's arguments stand.

    Attributes:
        given: How many there are.
        name: The operator of floats, ATen's or ONNX's.
        quantized: How many in front are quantised.
        rest: What that operator takes behind them: places among the arguments, or constants.
        ends: How many stand behind the scale and the zero point.
    """

    given: int
    name: str
    quantized: int = 1
    rest: Sequence[int | np.ndarray[Any, Any] | None] = ()
    ends: int = 0


def operands(node: gs.Node) -> Operands | None:
    """What a quantised operator is given; None for ATen's own operator of that name."""
    form = _FORMS.get(node.op) or _FORMS.get(node.op.removesuffix("_relu"))
    if form is None or len(node.inputs) != form.given:
        return None
    at = form.given - form.ends - 2
    quantized = list(node.inputs[: form.quantized])
    if form.name == "cat":
        producer = maker_of(quantized[0])
        if producer is None or producer.op not in CONSTRUCTORS:
            return None
        quantized = list(producer.inputs)

    def compute(c: Bench, values: list[gs.Tensor]) -> gs.Tensor:
        if form.name == "cat":
            values = [c.draft.op("ListConstruct", *values, domain="prim")]
        rest = [
            c.draft.constant(each)
            if isinstance(each, np.ndarray)
            else None
            if each is None or node.inputs[each].is_empty()
            else node.inputs[each]
            for each in form.rest
        ]
        domain = "" if form.name[0].isupper() else "aten"
        made: gs.Tensor = c.draft.op(form.name, *values, *rest, domain=domain)
        return made

    return Operands(quantized, compute, node.inputs[at], node.inputs[at + 1])


_NO, _NOUGHT = np.asarray(False), np.asarray(0.0)
_BATCH_NORM = _Form(8, "batch_norm", 1, (1, 2, 3, 4, _NO, _NOUGHT, 5, _NO))
_FORMS: Mapping[str, _Form] = {
    **{f"conv{n}d": _Form(9, f"conv{n}d", 2, (2, 3, 4, 5, 6)) for n in (1, 2, 3)},
    **{
        f"conv_transpose{n}d": _Form(10, f"conv_transpose{n}d", 2, (2, 3, 4, 5, 7, 6))
        for n in (1, 2, 3)
    },
    "linear": _Form(5, "linear", 2, (2,)),
    "add": _Form(4, "Add", 2),
    "mul": _Form(4, "Mul", 2),
    "matmul": _Form(4, "MatMul", 2),
    "cat": _Form(4, "cat", 1, (1,)),
    "hardswish": _Form(3, "hardswish"),
    "sigmoid": _Form(3, "Sigmoid"),
    "elu": _Form(6, "elu", 1, (3, 4, 5), ends=3),
    "celu": _Form(4, "celu", 1, (3,), ends=1),
    "leaky_relu": _Form(5, "leaky_relu", 1, (1,)),
    "prelu": _Form(4, "prelu", 1, (1,)),
    "softmax": _Form(4, "softmax", 1, (1, None)),
    "layer_norm": _Form(7, "layer_norm", 1, (1, 2, 3, 4, _NO)),
    "group_norm": _Form(7, "group_norm", 1, (1, 2, 3, 4, _NO)),
    "instance_norm": _Form(
        6, "instance_norm", 1, (1, 2, None, None, np.asarray(True), _NOUGHT, 3, _NO)
    ),
    **dict.fromkeys(("batch_norm", *(f"batch_norm{n}d" for n in (1, 2, 3))), _BATCH_NORM),
}
