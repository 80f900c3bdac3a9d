"""The arguments of an ATen node by name, whichever of its overloads and spellings the node is.

In memory an ATen node has positional inputs (see `dialect`); the operator's schemas say what each
is. A list of tensors comes as one input (a sequence) or flattened into several.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.facts import Facts
from surgeon.facts.fact import BOOL, INTEGERS, Array, Fact
from surgeon.links import maker_of
from surgeon.rewrite import Refused
from surgeon.schemas import Parameter, Schema, overloads

CONSTRUCTORS = frozenset({"SequenceConstruct", "ListConstruct", "TupleConstruct"})
# What gives a list of tensors, as one value where the file does not part it.
_LIST_MAKERS = frozenset(
    "split split_with_sizes split_copy chunk unbind tensor_split hsplit vsplit dsplit meshgrid "
    "broadcast_tensors nonzero_numpy unflatten_dense_tensors gradient".split()
)
_AT_LEAST = ("atleast_1d", "atleast_2d", "atleast_3d")  # of one tensor, or of a list of them
# Overloads that mean by the same name what Python's lists do, and not what tensors do.
_OF_LISTS: Mapping[str, frozenset[str]] = {
    "add": frozenset({"t"}),
    "mul": frozenset({"left_t", "right_"}),
    **dict.fromkeys(
        ("eq", "ne"),
        frozenset({"int_list", "float_list", "bool_list", "str_list", "Tensor_list"}),
    ),
    "index": frozenset({"list_int", "list_float", "list_bool", "list_str", "list_Tensor"}),
}
_PLAIN = frozenset({"int", "float", "number", "bool", "str", "Device"})


class Arguments(NamedTuple):
    """What a node was called with.

    Attributes:
        schema: The overload it was bound by.
        given: A tensor, a list of tensors, or None, by parameter.
    """

    schema: Schema
    given: Mapping[str, gs.Tensor | list[gs.Tensor] | None]
    facts: Facts

    def has(self, name: str) -> bool:
        """Whether the argument is there and not None."""
        return self.given.get(name) is not None

    def tensor(self, name: str) -> gs.Tensor:
        """A tensor argument.

        Raises:
            Refused: It is None.
        """
        found = self.given.get(name)
        if found is None or isinstance(found, list):
            raise Refused(f"`{name}` is not given")
        if self.facts.of(found).items is not None:
            raise Refused(f"`{name}` is a list of tensors")
        return found

    def first(self) -> gs.Tensor:
        """The first argument, a tensor, whatever the schema calls it."""
        return self.tensor(self.schema.parameters[0].name)

    def pair(self) -> tuple[gs.Tensor, gs.Tensor]:
        """The first two arguments, which are tensors, whatever the schema calls them."""
        return self.first(), self.tensor(self.schema.parameters[1].name)

    def optional(self, name: str) -> gs.Tensor | None:
        """A tensor argument, or None."""
        return self.tensor(name) if self.has(name) else None

    def tensors(self, name: str) -> list[gs.Tensor]:
        """A list of tensors; None inside a list is an empty tensor.

        Raises:
            Refused: Its elements are not known.
        """
        found = self.given.get(name)
        if found is None:
            return []
        if isinstance(found, list) and not any(maker_of_list(t) for t in found):
            return found
        raise Refused(f"the elements of `{name}` are not known")

    def value(self, name: str) -> Any:
        """A number, list, string, bool or None, or the schema's default.

        Raises:
            Refused: It is computed at run time; says by which name.
        """
        found = self.given.get(name)
        if found is None:
            position = self.schema.position(name)
            return None if position is None else self.schema.parameters[position].default
        if isinstance(found, list):
            return self._numbers(found, name)
        array = self.facts.array(_whole(found))
        if array is None:
            text = text_of(found)
            if text is not None:
                return text
            fact = self.facts.of(found)
            known = "" if fact.value is None else f" ({fact.value.tolist()}): fix it with `--shape`"
            raise Refused(f"`{name}` is known at run time only{known}")
        position = self.schema.position(name)
        kind = "" if position is None else self.schema.parameters[position].type
        plain = array.tolist()
        if kind == "bool":
            return [bool(v) for v in plain] if isinstance(plain, list) else bool(plain)
        position = self.schema.position(name)
        is_list = position is not None and self.schema.parameters[position].is_list
        if not is_list and isinstance(plain, list) and len(plain) == 1:
            return plain[0]
        return plain

    def dims(self, name: str) -> list[Any]:
        """A list of integers, symbolic ones included.

        Raises:
            Refused: They are not provable.
        """
        found = self.given.get(name)
        if isinstance(found, list):
            return [self._number(tensor, name) for tensor in found]
        if isinstance(found, gs.Tensor):
            known: Array | None = self.facts.of(found).value
            if known is None:
                known = self.facts.array(found)
            if known is not None:
                plain: list[Any] = known.reshape(-1).tolist()
                return plain
            raise Refused(f"`{name}` is known at run time only")
        value = self.value(name)
        return list(value) if isinstance(value, (list, tuple)) else [value]

    def _numbers(self, tensors: Sequence[gs.Tensor], name: str) -> list[Any]:
        """A list of numbers that scripts put together."""
        position = self.schema.position(name)
        parameter = None if position is None else self.schema.parameters[position]
        arrays = [None if t.is_empty() else self.facts.array(t) for t in tensors]
        known = [array.reshape(-1).tolist() for array in arrays if array is not None]
        are_numbers = parameter is not None and parameter.is_list and parameter.type in _PLAIN
        if not are_numbers or len(known) < len(arrays) or any(len(each) != 1 for each in known):
            raise Refused(f"`{name}` is a list of tensors")
        return [each[0] for each in known]

    def _number(self, tensor: gs.Tensor, name: str) -> Any:
        known = self.facts.of(tensor).value
        if known is None:
            known = self.facts.array(tensor)
        if known is None or known.size != 1:
            raise Refused(f"an element of `{name}` is known at run time only")
        return known.reshape(-1).tolist()[0]


def bind(node: gs.Node, facts: Facts) -> Arguments:
    """Name the inputs of an ATen node by the schema that fits best.

    Raises:
        Refused: No schema of the operator fits; says how many arguments there are. Or it has an
            attribute that `dialect` found no place for among them.
    """
    schemas = overloads(node.op)
    said = [name for name in node.attrs if name != "overload" and not name.startswith("_")]
    if said:
        raise Refused(f"`aten.{node.op}`: PyTorch has no signature with `{said[0]}` beside these")
    inputs = [_elements(t) for t in node.inputs]
    best: tuple[int, Arguments] | None = None
    of_types = ""
    for schema, found in ((s, f) for s in schemas for f in _fits(s, inputs)):
        of_types = " of these types"
        score = _score(schema, found, facts)
        if score is None or _gives_other(schema, node):
            continue
        if schema.overload == node.attrs.get("overload", ""):
            score += 1000 if schema.overload else 1  # the file says which it is
        if best is None or score > best[0]:
            best = score, Arguments(schema, found, facts)
    if best is None:
        count = f"no signature with {len(inputs)} arguments{of_types}"
        known = count if schemas else "no such operator"
        raise Refused(f"`aten.{node.op}`: PyTorch has {known}")
    return _refuse_lists(best[1], node.op)


def _refuse_lists(best: Arguments, operator: str) -> Arguments:
    """What it is bound to, where that is no overload whose meaning is that of Python's lists."""
    if best.schema.overload in _OF_LISTS.get(operator, ()):
        raise Refused(
            f"`aten.{operator}.{best.schema.overload}` is TorchScript's own, on lists; trace the "
            "model instead of scripting it"
        )
    return best


def maker_of_list(tensor: gs.Tensor) -> gs.Node | None:
    """The ATen operator that gives a list as one value; None for other values."""
    made = maker_of(tensor)
    if made is None or made.domain != "aten":
        return None
    if len(made.outputs) > 1 or "_outputs" in made.attrs:
        return None
    if made.op == "where":
        return made if len(made.inputs) == 1 else None
    if made.op in _AT_LEAST:
        of_list = made.inputs and isinstance(_elements(made.inputs[0]), list)
        return made if of_list else None
    return made if made.op in _LIST_MAKERS else None


def _whole(tensor: gs.Tensor) -> gs.Tensor:
    """The line that a list of numbers is cut from, one by one, as scripts make it; else itself."""
    made = maker_of(tensor)
    if made is None or made.op != "SplitToSequence" or len(made.inputs) != 1:
        return tensor
    return tensor if made.attrs.get("keepdims", 1) or made.attrs.get("axis", 0) else made.inputs[0]


def _elements(tensor: gs.Tensor) -> gs.Tensor | list[gs.Tensor] | None:
    """A list of tensors where a node makes one; None for an omitted input."""
    if tensor.is_empty():
        return None
    producer = maker_of(tensor)
    if producer is not None and producer.op in CONSTRUCTORS:
        return list(producer.inputs)
    return tensor


def _fits(
    schema: Schema, inputs: Sequence[gs.Tensor | list[gs.Tensor] | None], done: int = 0
) -> Iterator[dict[str, gs.Tensor | list[gs.Tensor] | None]]:
    """The inputs by parameter, in every way that fits; flattened lists of tensors gathered.

    What stands behind a flattened list may be left out as far as it has defaults. `done` counts the
    parameters in front whose lists are gathered already.
    """
    parameters = schema.parameters
    lists = (i for i, p in enumerate(parameters) if p.is_tensors and i >= done)
    first = next(lists, None)
    if first is None or any(isinstance(v, list) for v in inputs[done:]):
        if (found := _fit(schema, inputs)) is not None:
            yield found
        return
    after = parameters[first + 1 :]
    if any(p.is_tensors for p in after):  # an LSTM's states, which are two, and its weights
        pair = [
            t if isinstance(t, gs.Tensor) else gs.Variable.empty()
            for t in inputs[first : first + 2]
        ]
        yield from _fits(schema, [*inputs[:first], pair, *inputs[first + 2 :]], done=first + 1)
        return
    for behind in range(len(after), sum(p.required for p in after) - 1, -1):
        count = len(inputs) - first - behind
        if count < 0:
            continue
        taken = inputs[first : first + count]
        flat = [t if isinstance(t, gs.Tensor) else gs.Variable.empty() for t in taken]
        gathered = [*inputs[:first], flat, *inputs[first + count :]]
        if (found := _fit(schema, gathered)) is not None:
            yield found


def _fit(
    schema: Schema, inputs: Sequence[gs.Tensor | list[gs.Tensor] | None]
) -> dict[str, gs.Tensor | list[gs.Tensor] | None] | None:
    """The inputs by parameter; None where they do not fit."""
    if len(inputs) > len(schema.parameters):
        return None
    found: dict[str, gs.Tensor | list[gs.Tensor] | None] = {}
    for index, parameter in enumerate(schema.parameters):
        value = inputs[index] if index < len(inputs) else None
        if value is None and parameter.required and not parameter.optional:
            return None
        found[parameter.name] = value
    return found


def _gives_other(schema: Schema, node: gs.Node) -> bool:
    """Whether the count of a node's values is that of another overload.

    PyTorch writes every argument of a call: `max(x, dim)` has a third, and indices as well; of the
    overloads of `gradient` one has three. Where the node names its overload, nothing is counted.
    """
    if schema.overload and schema.overload == node.attrs.get("overload"):
        return False
    if schema.name == "gradient" and len(node.inputs) == 3:
        return len(schema.parameters) != 3
    if schema.name not in ("max", "min") or len(node.inputs) != 2:
        return False
    return (len(node.outputs) == 2) == (schema.overload == "other")


def _score(
    schema: Schema, found: Mapping[str, gs.Tensor | list[gs.Tensor] | None], facts: Facts
) -> int | None:
    """How well types agree; None where one does not."""
    score = 0
    for parameter in schema.parameters:
        value = found[parameter.name]
        if value is None:
            continue
        agrees = _agrees(parameter, value, facts)
        if agrees is False:
            return None
        score += 2 if agrees else 0
        if parameter.type == "int" and isinstance(value, gs.Tensor):
            dtype = facts.of(value).dtype
            score -= bool(dtype) and dtype not in INTEGERS
    return score


def _agrees(parameter: Parameter, value: gs.Tensor | list[gs.Tensor], facts: Facts) -> bool | None:
    """Whether a value is of a parameter's type; None where that is not known."""
    if isinstance(value, list):
        return _list_agrees(parameter, value, facts)
    if _is_device(value):
        return parameter.type == "Device"
    text = text_of(value)
    if text is not None or parameter.type in ("str", "Device"):
        return (text is not None) == (parameter.type in ("str", "Device"))
    if parameter.type == "Tensor":
        return None if parameter.is_list else True
    return _number_agrees(parameter, facts.of(value)) if parameter.type in _PLAIN else None


def _list_agrees(parameter: Parameter, values: list[gs.Tensor], facts: Facts) -> bool | None:
    if values and all(t.is_empty() for t in values):  # of what was left out, perhaps
        return None if parameter.is_list else False
    if parameter.type in _PLAIN and any(_is_row(facts, t) for t in values):
        return False
    return parameter.is_list


def _number_agrees(parameter: Parameter, fact: Fact) -> bool | None:
    """The same of a value that is to be a number, or a row of them."""
    if fact.rank is not None:
        if parameter.is_list and fact.rank != 1:
            return False
        if not parameter.is_list and fact.rank != 0 and fact.shape != (1,):
            return False
    if parameter.type == "bool" and fact.dtype and fact.dtype not in (BOOL, *INTEGERS):
        return False
    if parameter.type == "float" and fact.dtype == BOOL:
        return False
    if fact.dtype and parameter.type == "int" and fact.dtype not in INTEGERS:
        # sizes that were computed from scale factors are traced as floats, empty lists as well
        return None if parameter.is_list else False
    if fact.rank == 1 and not parameter.is_list:  # a list of one, sooner
        return None
    return True if fact.dtype else None


def _is_row(facts: Facts, tensor: gs.Tensor) -> bool:
    """Whether it is known to be more than a number, and so no element of a list of numbers."""
    return facts.of(tensor).shape not in (None, (), (1,))


def _is_device(tensor: gs.Tensor) -> bool:
    """Whether it is where another tensor lies, as scripted modules ask."""
    producer = maker_of(tensor)
    return producer is not None and (producer.domain, producer.op) == ("prim", "device")


def text_of(tensor: gs.Tensor) -> str | None:
    """The text that a Constant of PyTorch's exporter holds in an attribute outside the standard."""
    producer = maker_of(tensor)
    if producer is not None and producer.op == "Constant":
        value = producer.attrs.get("value")
        if isinstance(value, (str, bytes)):
            return value.decode(errors="replace") if isinstance(value, bytes) else value
        value = producer.attrs.get("value_string")
        if isinstance(value, (str, bytes)):
            return value.decode(errors="replace") if isinstance(value, bytes) else value
    if isinstance(tensor, gs.Constant):
        proto = getattr(tensor._values, "tensor", None)
        if proto is not None and getattr(proto, "data_type", None) != onnx.TensorProto.STRING:
            return None  # and is not read: weights would stay in memory
        values = np.asarray(tensor.values)
        if values.dtype.kind in "OUS" and values.size == 1:
            item = values.reshape(-1)[0]
            return item.decode(errors="replace") if isinstance(item, bytes) else str(item)
    return None
