"""What executes one foreign node: numpy functions by PyTorch's schemas, and TorchScript's lists."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from itertools import zip_longest
from typing import Any, Protocol

import numpy as np
import onnx

from surgeon.reference import libraries, quantized
from surgeon.reference.arguments import (
    Call,
    attribute_value,
    constant_value,
    decode,
    fit,
    is_prim,
    is_written_to,
    written_to,
)
from surgeon.reference.errors import NoWitness, Undefined, Unsuited
from surgeon.reference.operators.precision import Array, Computed
from surgeon.reference.operators.quantizing import Quantized, recognised
from surgeon.reference.schema import Mismatch
from surgeon.schemas import overloads
from surgeon.schemas.aliases import out_of_place, plain_name


class Witness(Protocol):
    """Executes one call of a PyTorch operator.

    A tuple stands for several outputs, a list for one output that is a list. An `Unsuited` among
    several is what is not defined if it is read.
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
        from surgeon.reference.operators.complex_values import of_complex
        from surgeon.reference.operators.table import OPERATORS

        if (like := quantized.first(values)) is not None:
            return quantized.execute(call, values, like, partial(self, where=where))
        rows = OPERATORS.get(call.operator) or OPERATORS.get(plain_name(call.operator))
        if rows is None:
            raise NoWitness(call.operator, where=where)
        values = _with_numbers(call, values)
        schemas = [schema for schema, _ in rows]
        try:
            index, arguments = fit(schemas, call, values)
        except Mismatch as error:
            if not is_written_to(schemas, values):
                raise NoWitness(call.operator, where=where, why=str(error)) from None
            return written_to(values[-1], self(call, values[:-1], where=where))
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # of a mean of nothing
                function = of_complex(plain_name(call.operator), values) or rows[index][1]
                result = function(**arguments)
                if out_of_place(call.operator) and isinstance(result, np.ndarray):
                    return result.astype(values[0].dtype, copy=False)  # it is written there
                return result
        # an index out of range, shapes that do not fit, strides of 0, sizes that nothing holds
        except (IndexError, ValueError, ZeroDivisionError, OverflowError, MemoryError) as error:
            raise Unsuited(str(error) or "it takes more memory than there is") from None
        except (TypeError, KeyError, AttributeError) as error:
            raise NoWitness(call.operator, where=where, why=str(error)) from None


def _with_numbers(call: Call, values: Sequence[Any]) -> Sequence[Any]:
    """What is given for a number beside tensors as one of Python's, where the overload says so."""
    named = [s for s in overloads(plain_name(call.operator)) if s.overload == call.overload]
    if not call.overload or not named or all(p.type != "Tensor" for p in named[0].parameters):
        return values
    kinds = [p.type for p in named[0].parameters]
    return [
        np.asarray(value.item()) if kind == "number" and isinstance(value, Computed) else value
        for kind, value in zip_longest(kinds[: len(values)], values)
    ]


_EXACT = frozenset(
    "to type_as _cast_Double _cast_Float _cast_Half floor ceil round trunc"
    " clamp clamp_min clamp_max max min maximum minimum neg abs relu where"
    " select slice view reshape squeeze unsqueeze expand expand_as flatten unbind split chunk"
    " permute transpose t cat stack clone contiguous detach alias gather index_select repeat"
    " item _local_scalar_dense Int Float ScalarImplicit FloatImplicit IntImplicit".split()
)  # they round nothing: they give values they were given, or whole numbers


class Trembling:
    """A witness whose results can be told to move by their own rounding.

    A value computed in the middle may decide on more than the inputs do: asin(tanh(x)) near 1 moves
    by what a rounding of tanh moves it, and a rounding of x is not seen there. What is exact by
    definition stays: sizes are held as floats too, and 2.9999998 is cut to another size than 3.

    Attributes:
        generator: Draws the movements; None for none.
    """

    def __init__(self, witness: Witness) -> None:
        self.witness = witness
        self.generator: np.random.Generator | None = None

    def __call__(self, call: Call, values: Sequence[Any], *, where: str) -> Any:
        """As `Witness`."""
        result = self.witness(call, values, where=where)
        if self.generator is None or call.operator in _EXACT or not _has_floats(values):
            return result
        return self._moved(result)

    def _moved(self, result: Any) -> Any:
        if isinstance(result, (list, tuple)):
            return type(result)(self._moved(item) for item in result)
        if not isinstance(result, np.ndarray) or result.dtype.kind not in "fc":
            return result
        assert self.generator is not None
        if result.dtype.kind == "c":  # either part by the rounding of the whole
            real, imaginary = self.generator.integers(-1, 2, (2, *result.shape))
            apart = np.abs(result) * np.finfo(result.dtype).eps
            return np.asarray(result + apart * (real + 1j * imaginary)).astype(result.dtype)
        steps: Any = self.generator.integers(-1, 2, result.shape)
        with np.errstate(all="ignore"):
            inward = (result * (1 - np.finfo(result.dtype).eps)).astype(result.dtype)
            outward = np.nextafter(result, np.copysign(np.inf, result).astype(result.dtype))
        outward = np.where(np.abs(result) == 1, result, outward)  # a tanh beyond 1 has no asin
        return np.asarray(np.choose(steps + 1, (inward, result, outward)))


def _has_floats(values: Sequence[Any]) -> bool:
    return any(
        _has_floats(each)
        if isinstance(each, list)
        else isinstance(each, np.ndarray) and each.dtype.kind in "fc"
        for each in values
    )


def execute(node: onnx.NodeProto, values: Sequence[Any], witness: Witness) -> list[Any]:
    """The outputs of a foreign node, one for each of its output names.

    Raises:
        Undefined: The operands lie outside the operator's definition.
        NoWitness: Nothing here executes it.
    """
    call = decode(node)
    where = f"node '{node.name or node.output[0]}' ({node.domain or 'ai.onnx'}.{node.op_type})"
    try:
        own = is_prim(node) or call.operator in ("DictConstruct", "SequenceConstruct")
        if libraries.is_known(node):
            result = _of_library(node, values, where)
        elif call.operator == "Constant":  # of truth values, which the exporter has no form of
            held = constant_value(node)
            result = None if held is None else np.asarray(held)
        elif own:
            result = _prim(node, values, where)
        else:
            result = witness(call, values, where=where)
    except Unsuited as error:
        raise Undefined(str(error), operator=call.operator, where=where) from None
    unpacked = any(a.name == "_outputs" for a in node.attribute)
    if isinstance(result, list) and (unpacked or len(node.output) > 1):
        result = tuple(result)
    results = list(result) if isinstance(result, tuple) else [result]
    if isinstance(result, tuple) and unpacked and len(results) != len(node.output):
        raise Undefined(
            f"{len(results)} parts for {len(node.output)} outputs",
            operator=call.operator,
            where=where,
        )
    if len(results) < len(node.output):
        raise NoWitness(
            call.operator, where=where, why=f"{len(node.output)} outputs, {len(results)} are known"
        )
    for place, each in enumerate(results):
        if isinstance(each, np.generic):  # of a list of numbers: onnxruntime takes arrays alone
            results[place] = np.asarray(each)
        elif isinstance(each, Unsuited):  # raised where it is read
            results[place] = Undefined(str(each), operator=call.operator, where=where)
    return results


def _is_no_text(attribute: onnx.AttributeProto) -> bool:
    """Whether it is of bytes that are no text, as Caffe2 holds weights."""
    try:
        attribute.s.decode()
    except UnicodeDecodeError:
        return True
    return False


def _of_library(node: onnx.NodeProto, values: Sequence[Any], where: str) -> Any:
    """Another tool's operator, by its documentation."""
    function = libraries.function_of(node)
    assert function is not None
    attributes = {a.name: a.s if _is_no_text(a) else attribute_value(a) for a in node.attribute}
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return function(attributes, *values)
    except (IndexError, ValueError, ZeroDivisionError, OverflowError, MemoryError) as error:
        raise Unsuited(str(error) or "it takes more memory than there is") from None
    except (TypeError, KeyError, AttributeError) as error:
        raise NoWitness(node.op_type, where=where, why=str(error)) from None


def _prim(node: onnx.NodeProto, values: Sequence[Any], where: str) -> Any:
    """TorchScript's own operators: they make lists and open them."""
    kind = node.op_type if is_prim(node) else decode(node).operator
    if kind == "TupleConstruct" and (tensor := recognised(values)) is not None:
        return tensor
    if kind in ("ListConstruct", "TupleConstruct", "SequenceConstruct"):
        return list(values)
    if kind == "DictConstruct":
        return {text(key): value for key, value in zip(values[::2], values[1::2], strict=True)}
    if kind in ("ListUnpack", "TupleUnpack"):
        found = values[0].parts if isinstance(values[0], Quantized) else list(values[0])
        if len(found) != len(node.output):
            raise Unsuited(f"{len(found)} values for {len(node.output)} outputs")
        return tuple(found)
    if kind == "ConstantChunk":
        return _chunked(node, values[0])
    if kind == "Constant":
        return constant_value(node)
    if kind in ("NumToTensor", "ImplicitTensorToNum", "Int", "Float", "Bool"):
        return values[0]
    if kind in ("max", "min") and len(values) == 2:
        return _larger(kind, *(np.asarray(value) for value in values))
    if kind == "device":
        return "cpu"
    if kind == "type" and values[0] == "cpu":  # of a device, a text of its own
        return "cpu"
    raise NoWitness(f"prim::{kind}", where=where)


def _larger(kind: str, a: Array, b: Array) -> Array:
    """Of two of Python's numbers; a float where one is."""
    if a.shape or b.shape:
        raise Unsuited("its operands are no numbers")
    dtype = (a if a.dtype.kind == "f" or b.dtype.kind != "f" else b).dtype
    return np.asarray(np.where(b > a if kind == "max" else b < a, b, a), dtype)


def text(value: Any) -> str:
    """A text, as a constant of PyTorch's or of the standard's own kind holds it."""
    word = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    word = word.decode() if isinstance(word, bytes) else word
    if not isinstance(word, str):
        raise Unsuited("its key is no text")
    return word


def _chunked(node: onnx.NodeProto, x: Any) -> tuple[Any, ...]:
    """As torch.chunk: parts of one size, of which the last may have fewer elements."""
    said = {a.name: a.i for a in node.attribute}
    places = np.arange(x.shape[said["dim"]])
    size = max(-(-len(places) // said["chunks"]), 1)
    parts = [places[places // size == i] for i in range(max(-(-len(places) // size), 1))]
    if len(parts) != len(node.output):
        raise Unsuited(f"{len(parts)} parts for {len(node.output)} outputs")
    return tuple(np.take(x, part, said["dim"]) for part in parts)
