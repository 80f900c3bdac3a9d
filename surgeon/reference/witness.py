"""What executes one foreign node: numpy functions by PyTorch's schemas, and TorchScript's lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import onnx

from surgeon.reference.arguments import Call, constant_value, decode, fit, is_prim
from surgeon.reference.errors import NoWitness, Undefined, Unsuited
from surgeon.reference.schema import Mismatch


class Witness(Protocol):
    """Executes one call of a PyTorch operator.

    A tuple stands for several outputs, a list for one output that is a list.
    """

    def __call__(self, call: Call, values: Sequence[Any], *, where: str) -> Any:
        """The operator's result on the values of the node's inputs (None for an empty name)."""


class NumpyWitness:
    """The numpy functions of `surgeon.reference.operators`."""

    def __call__(self, call: Call, values: Sequence[Any], *, where: str) -> Any:
        """As `Witness`.

        Raises:
            NoWitness: No function, or none of its schemas fits the arguments.
            Unsuited: The operands lie outside the operator's definition.
        """
        from surgeon.reference.operators import OPERATORS

        rows = OPERATORS.get(call.operator)
        if rows is None:
            raise NoWitness(call.operator, where=where)
        try:
            index, arguments = fit([schema for schema, _ in rows], call, values)
        except Mismatch as error:
            raise NoWitness(call.operator, where=where, why=str(error)) from None
        try:
            with np.errstate(all="ignore"):
                return rows[index][1](**arguments)
        except (IndexError, ValueError) as error:  # an index out of range, shapes that do not fit
            raise Unsuited(str(error)) from None
        except (TypeError, KeyError, AttributeError) as error:
            raise NoWitness(call.operator, where=where, why=str(error)) from None


def execute(node: onnx.NodeProto, values: Sequence[Any], witness: Witness) -> list[Any]:
    """The outputs of a foreign node, one for each of its output names.

    Raises:
        Undefined: The operands lie outside the operator's definition.
        NoWitness: Nothing here executes it.
    """
    call = decode(node)
    where = f"node '{node.name or node.output[0]}' ({node.domain or 'ai.onnx'}.{node.op_type})"
    try:
        result = _prim(node, values, where) if is_prim(node) else witness(call, values, where=where)
    except Unsuited as error:
        raise Undefined(str(error), operator=call.operator, where=where) from None
    if isinstance(result, list) and len(node.output) > 1:
        result = tuple(result)
    results = list(result) if isinstance(result, tuple) else [result]
    if len(results) < len(node.output):
        raise NoWitness(
            call.operator, where=where, why=f"{len(node.output)} outputs, {len(results)} are known"
        )
    return results


def _prim(node: onnx.NodeProto, values: Sequence[Any], where: str) -> Any:
    """TorchScript's own operators: they make lists and open them."""
    kind = node.op_type
    if kind in ("ListConstruct", "TupleConstruct"):
        return list(values)
    if kind in ("ListUnpack", "TupleUnpack"):
        found = values[0] if isinstance(values[0], list) else list(values[0])
        if len(found) != len(node.output):
            raise Unsuited(f"{len(found)} values for {len(node.output)} outputs")
        return tuple(found)
    if kind == "Constant":
        return constant_value(node)
    if kind in ("NumToTensor", "ImplicitTensorToNum", "Int", "Float", "Bool"):
        return values[0]
    raise NoWitness(f"prim::{kind}", where=where)
