"""One graph joined to another: a recipe's extension in front of a model, or behind it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import onnx

from surgeon.document import suggest
from surgeon.errors import RecipeError, SurgeonError, few
from surgeon.extension import IN_FRONT, Extension, is_other, parse_extension, type_of
from surgeon.inferring import NotInferred, inferred
from surgeon.meanings import holds_at
from surgeon.nested import every_node
from surgeon.renaming import names_of_sizes, names_of_values, rename, unused
from surgeon.standard import STANDARD, opset_of
from surgeon.steps.irversion import OLDEST_IR, least_ir_version
from surgeon.steps.lowering import lower_opset
from surgeon.steps.raising import raise_opset

_IR = 8  # of the extension by itself, where its text names none
_UNTOLD = "unk__"  # begins the names that ONNX's inference makes up


class _Joint(NamedTuple):
    """Where a value of the extension and an end of the model become one."""

    own: onnx.ValueInfoProto
    end: onnx.ValueInfoProto


class Joining:
    """One extension and the model that it is joined to, which is changed.

    Raises:
        RecipeError: The extension cannot be had at the model's opset.
    """

    def __init__(self, whole: onnx.ModelProto, extension: Extension) -> None:
        self.whole, self.extension = whole, extension
        self.in_front = extension.place == IN_FRONT
        self.piece = self._at_opset(parse_extension(extension))
        self.graph, self.own = whole.graph, self.piece.graph
        constants = {tensor.name for tensor in self.graph.initializer}
        given = [value for value in self.graph.input if value.name not in constants]
        self.ends = given if self.in_front else list(self.graph.output)
        self.read = {} if self.in_front else {value.name: value for value in given}
        inner, outer = list(self.own.output), list(self.own.input)
        if not self.in_front:
            inner, outer = outer, inner
        brings = self.extension.brings
        self.meeting = [value for value in inner if value.name not in brings]
        self.brought = [value for value in inner if value.name in brings]
        self.outer = outer
        self._check_told(inner)

    def join(self) -> str:
        """Join them; what was done, in words.

        Raises:
            RecipeError: They do not fit one another.
        """
        joints = self._joints()
        met = [joint for joint in joints if any(joint.end is end for end in self.ends)]
        old = few([joint.end.name for joint in met])
        if self.in_front:
            self._infer()  # what it says nothing of meets the model too
        self._bind(joints)
        self._infer(joints)
        self._rename(joints, {joint.end.name for joint in met})
        self._fit_format()
        imported = {*STANDARD, *(entry.domain for entry in self.whole.opset_import)}
        new = [entry for entry in self.piece.opset_import if entry.domain not in imported]
        self.whole.opset_import.extend(new)
        nodes, field = list(self.graph.node), self.graph.input
        if not self.in_front:
            field = self.graph.output
        self._exchange(field, [joint.end.name for joint in met])
        del self.graph.node[:]
        own = list(self.own.node)
        self.graph.node.extend([*own, *nodes] if self.in_front else [*nodes, *own])
        self.graph.initializer.extend(self.own.initializer)
        self.graph.sparse_initializer.extend(self.own.sparse_initializer)
        kind, other = ("input", "output") if self.in_front else ("output", "input")
        further = self.graph.output if self.in_front else self.graph.input
        further.extend(_copy(value) for value in self.brought)
        also = f", and {other} {few([v.name for v in self.brought])}" if self.brought else ""
        where = f"in place of {kind} {old}" if met else f"beside the model's {kind}s"
        return f"{few([value.name for value in self.outer])} {where}{also}"

    def _check_told(self, inner: Sequence[onnx.ValueInfoProto]) -> None:
        """See that what is said of the extension's ends is said of ends that it has."""
        own, does = [v.name for v in inner], "gives" if self.in_front else "is given"
        for name in (*self.extension.brings, *(mine for mine, _ in self.extension.meets)):
            if name not in own:
                raise self._wrong(f"it {does} no `{name}`", suggest(name, own))

    def _fit_format(self) -> None:
        """See that the format of the model has what the other file brings."""
        if self.extension.file:
            needed = least_ir_version(self.piece)
            if needed > max(self.whole.ir_version, OLDEST_IR):
                self.whole.ir_version = needed

    def _joints(self) -> list[_Joint]:
        """By names; one alone meets one alone whatever they are called."""
        ends = {value.name: value for value in (*self.ends, *self.read.values())}
        ends.update((value.name, value) for value in self.ends)
        meets = dict(self.extension.meets)
        if len(self.meeting) == len(self.ends) == 1 and not meets:
            return [_Joint(self.meeting[0], self.ends[0])]
        for value in self.meeting:
            name = meets.get(value.name, value.name)
            if name not in ends:
                kind, does = ("input", "gives") if self.in_front else ("output", "is given")
                other = f"`{name}`" if name != value.name else "that name"
                raise self._wrong(
                    f"it {does} `{value.name}`, and the model has no {kind} of {other}",
                    f"The model's are {few([*ends]) or 'none'}: say with `meets` which it is, or "
                    "with `brings` that the whole is to have it too.",
                )
        joints = [_Joint(value, ends[meets.get(value.name, value.name)]) for value in self.meeting]
        met = {joint.end.name for joint in joints}
        beside = met.isdisjoint(value.name for value in self.ends)
        if (beside and self.in_front) or len(met) < len(joints):
            raise self._wrong("no two of its ends meet one of the model's, and one has to meet one")
        return joints

    def _bind(self, joints: Sequence[_Joint]) -> None:
        """The extension's sizes by what the model calls them, or how long they are."""
        bound: dict[str, Any] = {}
        for joint in joints:
            own, end = joint
            if is_other(own) != is_other(end) and end.type.WhichOneof("value"):
                raise self._unlike(joint)
            mine, models = own.type.tensor_type, end.type.tensor_type
            if not mine.HasField("shape") or not models.HasField("shape"):
                continue
            if len(mine.shape.dim) != len(models.shape.dim):
                raise self._unlike(joint)
            for here, there in zip(mine.shape.dim, models.shape.dim, strict=True):
                known = there.WhichOneof("value")
                if here.dim_param and known:
                    self._bind_size(here.dim_param, there, bound)
                elif (
                    here.WhichOneof("value") == "dim_value"
                    and here != there
                    and (known == "dim_value" or not self.in_front)  # what goes in may be of any
                ):
                    raise self._unlike(joint)
        taken, sizes = set(names_of_sizes(self.graph)), {}
        for name in sorted({*names_of_sizes(self.own)} - {*bound, ""}):
            if name in taken:
                sizes[name] = unused(name, taken)
        rename(self.own, sizes=sizes)
        for value in (*self.own.input, *self.own.output):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param in bound:
                    dim.CopyFrom(bound[dim.dim_param])
        for joint in joints if not self.in_front else ():
            if not _agree(joint.own, joint.end):
                raise self._unlike(joint)
        del self.own.value_info[:]

    def _bind_size(self, name: str, there: Any, bound: dict[str, Any]) -> None:
        """One of the extension's sizes by what stands there in the model.

        What exporters call the sizes of outputs is made up, and no other size than an input's.
        """
        before = bound.setdefault(name, there)
        if before == there:
            return
        given = {
            dim.dim_param
            for value in self.whole.graph.input
            for dim in value.type.tensor_type.shape.dim
        }
        told = [each for each in (before, there) if not each.dim_param or each.dim_param in given]
        if len(told) > 1:
            sizes = " and ".join(f"`{each.dim_param or each.dim_value}`" for each in told)
            raise self._wrong(
                f"its size `{name}` meets {sizes} of the model, which are not one",
                "Give what is of different sizes different names in the extension.",
            )
        bound[name] = told[0] if told else before

    def _infer(self, joints: Sequence[_Joint] = ()) -> None:
        """See that the extension computes what it says, of what it is given, and what is wanted."""
        asked = onnx.ModelProto()
        asked.CopyFrom(self.piece)
        for value in asked.graph.output:
            value.ClearField("type")  # what is inferred counts
        found = _inferred(asked)
        if isinstance(found, str):
            extension = self.extension
            if not extension.file or not isinstance(_inferred(parse_extension(extension)), str):
                raise self._wrong(f"ONNX refuses it: {found}")
            found = inferred(asked)  # it is so before it meets the model
        for value, told in zip(self.own.output, found.graph.output, strict=True):
            if not _agree(value, told, names=bool(joints)):
                if self.extension.file:  # exporters leave shapes of a trace
                    value.CopyFrom(told)
                    continue
                says = f"it says that `{value.name}` is {type_of(value)}"
                raise self._wrong(f"{says}, and computes {type_of(told)}")
            if not (value.type.tensor_type.elem_type or is_other(value)):
                raise self._wrong(f"it does not say of what type `{value.name}` is")
        for joint in joints if self.in_front else ():
            if not _agree(_copy(joint.end), joint.own):
                raise self._unlike(joint)

    def _rename(self, joints: Sequence[_Joint], joined: Collection[str]) -> None:
        """One name for what becomes one, and names that nothing else has for all others."""
        outer = {v.name for v in (*self.outer, *self.brought)}
        both = {*names_of_values(self.graph), *names_of_values(self.own)}
        kept = {v.name for v in (*self.graph.input, *self.graph.output)}.difference(joined)
        for name in sorted(outer & set(names_of_values(self.graph))):
            if name in kept:
                raise self._wrong(f"the model has an end `{name}` already", "Call it otherwise.")
            rename(self.graph, {name: unused(name, both)})
            both = {*names_of_values(self.graph), *both}
        theirs = set(names_of_values(self.graph))
        names = {joint.own.name: joint.end.name for joint in joints}
        if same := sorted(outer & names.keys()):
            raise self._wrong(f"it gives `{same[0]}` as it is given", "Put an Identity between.")
        for name in sorted({*names_of_values(self.own)} & theirs - names.keys() - {""}):
            names[name] = unused(name, both)
            both.add(names[name])
        rename(self.own, names)
        nodes = {node.name for node in every_node(self.graph.node)}
        rename(self.own, nodes={name: unused(name, nodes) for name in self._named() & nodes})

    def _named(self) -> set[str]:
        return {node.name for node in every_node(self.own.node)} - {""}

    def _exchange(self, ends: Any, joined: Collection[str]) -> None:
        """The outer values of the extension where the first end stood that is one no longer."""
        found, put = [], False
        for value in list(ends):
            if value.name not in joined:
                found.append(value)
            elif not put:
                found.extend(self.outer)
                put = True
        if not put:  # a model beside the other
            found.extend(self.outer)
        copies = [_copy(value) for value in found]
        del ends[:]
        ends.extend(copies)

    def _at_opset(self, piece: onnx.ModelProto) -> onnx.ModelProto:
        """The extension in the model's opset; one that names none is written in it."""
        written, opset = opset_of(piece), opset_of(self.whole) or 1
        if written is not None and not holds_at(piece.graph.node, written, opset):
            try:
                change = raise_opset if written < opset else lower_opset
                piece = change(piece, opset)
            except SurgeonError as error:
                raise self._wrong(
                    f"it is of opset {written}, the model of {opset}: {error.what}",
                    f"Write it for opset {opset}, or bring the model to {written} in a run before "
                    f"(`surgeon apply clean IN OUT --opset {written}`).",
                ) from None
        versions = dict.fromkeys((node.domain for node in every_node(piece.graph.node)), 1)
        known = {entry.domain: entry.version for entry in self.whole.opset_import}
        for entry in piece.opset_import:
            if entry.domain not in STANDARD and entry.version != known.get(
                entry.domain, entry.version
            ):
                raise self._wrong(
                    f"it has operators of `{entry.domain}` {entry.version}, and the model of "
                    f"{known[entry.domain]}",
                    "Export one of them with the other's version.",
                )
        versions |= {entry.domain: entry.version for entry in piece.opset_import} | {"": opset}
        del piece.opset_import[:]
        made = [onnx.helper.make_opsetid(*each) for each in versions.items()]
        piece.opset_import.extend(made)
        piece.ir_version = max(piece.ir_version, _IR)
        return piece

    def _unlike(self, joint: _Joint) -> RecipeError:
        return self._wrong(
            f"its `{joint.own.name}` is {type_of(joint.own)}, and `{joint.end.name}` of the model "
            f"{type_of(joint.end)}",
            "Names in place of numbers take any size; a Cast or a Reshape in the extension does "
            "the rest.",
        )

    def _wrong(self, what: str, mend: str = "") -> RecipeError:
        return RecipeError(
            what,
            where=self.extension.location,
            mend=mend or "Mend what is joined, or join it to another model.",
        )


def _inferred(model: onnx.ModelProto) -> onnx.ModelProto | str:
    """The model with its types and shapes; why ONNX refuses it, where it does."""
    try:
        return inferred(model, check_type=True, strict=True, data_prop=True)
    except NotInferred as error:
        return str(error).splitlines()[-1]


def _copy(value: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
    copy = onnx.ValueInfoProto()
    copy.CopyFrom(value)
    return copy


def _agree(said: onnx.ValueInfoProto, known: onnx.ValueInfoProto, *, names: bool = True) -> bool:
    """Whether a value may be what is said of it; what is known beside that is said now.

    Args:
        said: Is changed.
        known: The value as it is.
        names: Whether sizes that are said by name are known better too.
    """
    mine, other = said.type.tensor_type, known.type.tensor_type
    if not other.elem_type:
        return True
    if mine.elem_type not in (0, other.elem_type):
        return False
    mine.elem_type = other.elem_type
    if not mine.HasField("shape") or not other.HasField("shape"):
        if other.HasField("shape"):
            mine.shape.CopyFrom(other.shape)
        return True
    if len(mine.shape.dim) != len(other.shape.dim):
        return False
    for here, there in zip(mine.shape.dim, other.shape.dim, strict=True):
        if here.HasField("dim_value") and there.HasField("dim_value") and here != there:
            return False
        better = not here.HasField("dim_value") if names else not here.WhichOneof("value")
        if here.WhichOneof("value") and there.dim_param.startswith(_UNTOLD):
            continue  # a size that inference knows nothing of
        if better and there.WhichOneof("value"):
            here.CopyFrom(there)
    return True
