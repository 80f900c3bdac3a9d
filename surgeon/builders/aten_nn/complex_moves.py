"""What moves complex values or is linear in them: the same on either part."""

from __future__ import annotations

from typing import Any

import onnx_graphsurgeon as gs

from surgeon.arguments import Arguments, bind
from surgeon.builders.aten_nn.complex_arithmetic import (
    Operands,
    as_factor,
    both_of,
    four_products,
    only,
    refuse_mixed,
)
from surgeon.builders.aten_nn.transforms import Complex
from surgeon.rewrite import Draft, Refused


def same(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """The value as it is."""
    return only(operands)


def by_lowering(draft: Draft, node: gs.Node, **given: gs.Tensor) -> Any:
    """What the node makes of other arguments than its own, by its lowering for real values."""
    from surgeon.builders.aten_shape import LOWERINGS  # whose room is imported here alone
    from surgeon.builders.aten_shape.call import Call

    call = Call(draft, node)
    call.args = Arguments(call.args.schema, {**call.args.given, **given}, draft.facts)
    return LOWERINGS[node.op](call)


def moved(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """What moves data, on either part."""
    first = bind(node, draft.facts).schema.parameters[0].name
    both = both_of(only(operands))
    return Complex(*(by_lowering(draft, node, **{first: part}) for part in both))


def in_standard(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """A standard operator of ONNX, on either part."""
    value = only(operands)
    made = (draft.op(node.op, p, *node.inputs[1:], **node.attrs) for p in both_of(value))
    return Complex(*made)


def end_to_end(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`Concat`, of the real parts and of the imaginary ones."""
    pairs = zip(*(both_of(only([value])) for value in operands), strict=True)
    return Complex(*(draft.op("Concat", *some, **node.attrs) for some in pairs))


def of_matrices(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """A product of matrices, or `Einsum` of two."""
    if len(node.inputs) != 2:
        raise Refused(f"`{node.op}` of {len(node.inputs)} complex values has no form here")
    operator = node.op if node.op == "Einsum" else "MatMul"
    attributes = node.attrs if node.op == "Einsum" else {}

    def by(p: gs.Tensor, q: gs.Tensor) -> gs.Tensor:
        made: gs.Tensor = draft.op(operator, p, q, **attributes)
        return made

    a, b = operands
    if isinstance(a, Complex) and isinstance(b, Complex):
        refuse_mixed(draft, a, b)
        return four_products(draft, a, b, by)
    if isinstance(a, Complex):
        factor = as_factor(draft, b, a.real) if isinstance(b, gs.Tensor) else b
        return Complex(*(by(part, factor) for part in both_of(a)))
    assert isinstance(b, Complex)
    factor = as_factor(draft, a, b.real)
    return Complex(*(by(factor, part) for part in both_of(b)))
