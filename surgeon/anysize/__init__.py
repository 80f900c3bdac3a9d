"""Makes the sizes of a model dynamic that was exported for fixed ones.

The sizes are symbols, and every value's lengths are followed from the inputs to the outputs in
terms of them, by the facts that rules go by. What the trace froze of them (the shapes of Reshape
and Expand, the sizes of Resize, bounds of Slice, pools of a whole plane) is written for any, where
one reading alone holds. Where a number or a constant may depend on the sizes, or an operator is not
known, nothing is done, and it is named with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
import onnx_graphsurgeon as gs

from surgeon import dialect
from surgeon.anysize import shared
from surgeon.anysize.asking import asked_of, folded, of_sizes
from surgeon.anysize.carriers import CARRIERS, NAMING
from surgeon.anysize.freed import STEP, Clash, Finer, Freed, Size, refusal
from surgeon.anysize.running import check_sizes
from surgeon.anysize.sizes import Sizes, bodies_read, named
from surgeon.declared import length_of
from surgeon.dims import Dim
from surgeon.errors import SurgeonError
from surgeon.facts import Facts
from surgeon.fold import DEFAULT_LIMIT, Folder
from surgeon.frozen import Frozen
from surgeon.housekeeping import Housekeeper
from surgeon.links import toposort
from surgeon.model import Model
from surgeon.nested import WRITE_OUT, functions_left
from surgeon.opsets import Unavailable
from surgeon.rewrite import Surgery
from surgeon.standard import STANDARD

__all__ = ["EXACT", "STEP", "WHY", "Freed", "compared", "contract", "free_sizes"]

WHY = "Every operator computes at other sizes what it does at the file's."
EXACT = "rounding"  # a pool of a whole plane adds up in another order than a mean
_MEND = (
    "Export it with dynamic sizes, or cut the model in front of it: surgeon extract IN OUT --to "
    "VALUE."
)
_MOST_TRIED = 64
_MOST_WHOLE = 96  # pools of whole planes that are tried apart
_CHANNELS = (1, 3, 4)
_PLANES = {3: 1, 4: 2, 5: 3}  # how many sizes an input of so many axes has


def contract(freed: Freed) -> str:
    """What the model promises otherwise."""
    told = " x ".join(str(size.number) for size in freed.sizes)
    steps = {size.step for size in freed.sizes}
    if steps == {1}:
        others = "any size"
    elif len(steps) == 1:
        others = f"sizes that differ from these by multiples of {steps.pop()}"
    else:
        each = (f"multiples of {size.step} ({size.name})" for size in freed.sizes)
        others = f"sizes that differ from these by {' and '.join(each)}"
    least = " x ".join(map(str, freed.least))
    return (
        f"extends: the file is for {told}; the result computes the same layers at {others}, from "
        f"{least} on"
    )


def compared(tried: Sequence[str]) -> str:
    """What was compared, and what cannot be."""
    return (
        f"at the file's sizes the result gives what the original gives; at {', '.join(tried)} it "
        "runs, and its outputs are as large as they should be: what they hold there no original "
        "can tell"
    )


def free_sizes(
    proto: onnx.ModelProto,
    names: Sequence[str],
    *,
    chosen: Mapping[str, Mapping[int, str]] | None = None,
    check: bool = True,
    folder: Path | None = None,
) -> tuple[Freed, list[str]]:
    """The model with dynamic sizes of these names, in place of the numbers in the file.

    Args:
        proto: The model.
        names: Of the sizes of an input's planes: the last ones, where it has fewer.
        chosen: The axes of inputs that become dynamic, each with its name, in place of those that
            planes have.
        check: Whether to run both.
        folder: Where external data lie.

    Returns:
        The model, and at which other sizes it ran.

    Raises:
        SurgeonError: No input has fixed sizes, something may depend on them, or the two differ.
    """
    if proto.functions:
        raise refusal(f"the model has {functions_left(proto)}", WRITE_OUT)
    constants = {tensor.name for tensor in proto.graph.initializer}
    inputs = [value for value in proto.graph.input if value.name not in constants]
    axes = dict(chosen) if chosen else _axes(inputs, names)
    taken = {dim.dim_param for value in inputs for dim in _dims(value)}
    for name in {name for each in axes.values() for name in each.values()} & taken:
        raise refusal(f"a dimension is called `{name}` already", "Give it another name.")
    try:
        freed = _freed(proto, axes, _sizes(inputs, axes), folder)
    except SurgeonError as error:
        told = _alone(proto, axes, inputs, folder)
        raise refusal(f"{error.what}{told}", error.mend) from None
    return freed, check_sizes(proto, freed, folder) if check else []


def _freed(
    proto: onnx.ModelProto,
    axes: Mapping[str, Mapping[int, str]],
    sizes: tuple[Size, ...],
    folder: Path | None,
) -> Freed:
    """The model with these axes of its inputs dynamic.

    Raises:
        SurgeonError: It is left as it is.
    """
    try:
        return _with_pools(_prepared(_named(proto, axes), folder), sizes)
    except SurgeonError:  # sizes that are asked for in floats are numbers where they are folded
        asked = asked_of(proto, _named(proto, axes), folder)
        begun = _prepared(_named(folded(proto, folder), axes), folder)
        return _with_pools(begun, sizes, asked)


def _named(proto: onnx.ModelProto, axes: Mapping[str, Mapping[int, str]]) -> onnx.ModelProto:
    """A model whose inputs have dynamic axes, and which claims nothing of other values."""
    begun = onnx.ModelProto()
    begun.CopyFrom(proto)
    for value in begun.graph.input:
        for axis, name in axes.get(value.name, {}).items():
            _dims(value)[axis].dim_param = name
    del begun.graph.value_info[:]
    return begun


def _alone(
    proto: onnx.ModelProto,
    axes: Mapping[str, Mapping[int, str]],
    inputs: Sequence[onnx.ValueInfoProto],
    folder: Path | None,
) -> str:
    """Which of several sizes can be freed alone, and how that is said; ends a sentence."""
    names = dict.fromkeys(name for each in axes.values() for name in each.values())
    for name in names if len(names) > 1 else ():
        some = {
            key: {axis: each for axis, each in value.items() if each == name}
            for key, value in axes.items()
        }
        try:
            _with_pools(_prepared(_named(proto, some), folder), _sizes(inputs, some))
        except SurgeonError:
            continue
        told = " ".join(f"--shape {v.name}={_told(v, some)}" for v in inputs if some.get(v.name))
        return f"; the {name} alone can be freed: `{told}`"
    return ""


def _told(value: onnx.ValueInfoProto, axes: Mapping[str, Mapping[int, str]]) -> str:
    dims = (
        axes[value.name].get(axis, length_of(d) or d.dim_param or f"d{axis}")
        for axis, d in enumerate(_dims(value))
    )
    return ",".join(map(str, dims))


def _prepared(begun: onnx.ModelProto, folder: Path | None) -> Model:
    """The model with what is made of constants alone as constants; each walk begins with it."""
    model = Model(begun, folder=folder)
    dialect.strip_initializer_inputs(model, keep=False)
    facts = Facts(model)
    surgery = Surgery(model, facts)
    keeper = Housekeeper(facts, surgery, Folder(facts, DEFAULT_LIMIT, []), Counter())
    left: list[gs.Node] = []
    for node in toposort(model.graph):
        if (node.domain or "") in STANDARD:
            dialect.normalise(node, facts.opset, facts, surgery.is_output)
        if surgery.is_dead(node) or keeper.unwrap(node, model.graph):
            continue
        if all(isinstance(tensor, gs.Constant) for tensor in node.inputs):
            facts.infer(node)
            if not any(bodies_read(node)) and keeper.fold(node, model.graph):
                continue
        left.append(node)
    model.graph.nodes = [node for node in left if not node.__dict__.get("gone")]
    model.changed = len(left) < len(begun.graph.node)
    base = Model(model.to_proto() if model.changed else begun, folder=folder)
    assert base.sound is not None, "it is asked once for all"
    return base


def _dims(value: onnx.ValueInfoProto) -> Any:
    return value.type.tensor_type.shape.dim


def _axes(inputs: Sequence[onnx.ValueInfoProto], names: Sequence[str]) -> dict[str, dict[int, str]]:
    """The axes that planes have: the last ones, but where channels are last.

    Of further inputs those that are as large there as the first.
    """
    found: dict[str, dict[int, str]] = {}
    first: list[int] = []
    for value in inputs:
        lengths = [length_of(dim) or 0 for dim in _dims(value)]
        count = min(_PLANES.get(len(lengths), 0), len(names))
        if not count or (first and count != len(first)):
            continue
        begin = len(lengths) - count
        if len(lengths) > 3 and lengths[-1] in _CHANNELS and lengths[1] not in _CHANNELS:
            begin -= 1
        numbers = lengths[begin : begin + count]
        if not first:
            if not all(numbers):
                raise refusal(
                    f"the sizes of `{value.name}` are dynamic as they are; if the file runs at one "
                    f"size alone, numbers stand inside, and `--shape {value.name}=...` tells them",
                    "Leave the step out, or say for which size the file is.",
                )
            first = numbers
        if numbers == first:
            places = range(begin, begin + count)
            found[value.name] = dict(zip(places, names[-count:], strict=True))
    if not found:
        mend = "Name them, as in `--shape x=1,3,height,width`."
        raise refusal("no input has planes of fixed sizes", mend)
    return found


def _sizes(
    inputs: Sequence[onnx.ValueInfoProto], axes: Mapping[str, Mapping[int, str]]
) -> tuple[Size, ...]:
    found: dict[str, int] = {}
    for value in inputs:
        for axis, name in axes.get(value.name, {}).items():
            number = _dims(value)[axis].dim_value
            if number < 2 or found.setdefault(name, number) != number:
                what = f"`{name}` is {number} of `{value.name}`"
                raise refusal(what, "Give one name to what is as long, and more than one.")
    return tuple(Size(name, number) for name, number in found.items())


def _with_pools(
    begun: Model, sizes: tuple[Size, ...], asked: frozenset[str] = frozenset()
) -> Freed:
    """The model, where each pool of a whole plane can be nothing but one of any size.

    Raises:
        SurgeonError: One goes as a pool of its window as well, and gives something else.
    """
    try:
        freed, whole = _stepwise(begun, sizes, frozenset(), asked)
    except Frozen as error:
        raise refusal(str(error), _MEND) from None
    if len(whole) > _MOST_WHOLE:
        raise refusal(f"{len(whole)} pools have windows of the whole plane", _MEND)
    for title in whole:
        try:
            _stepwise(begun, freed.sizes, frozenset({title}), asked)
        except Clash:
            continue
        except Frozen:
            pass
        what = (
            f"the pool that makes `{title}` has a window of the whole plane: it may be one of that "
            "window at other sizes, or one of the whole plane"
        )
        raise refusal(what, _MEND)
    return freed


def _stepwise(
    begun: Model, sizes: tuple[Size, ...], plain: frozenset[str], asked: frozenset[str]
) -> tuple[Freed, list[str]]:
    """The model for sizes that are as far apart as it has to be, and no further.

    Raises:
        Frozen: Some node is for the sizes of the file alone.
    """
    for _ in range(_MOST_TRIED):
        for size in sizes:
            if size.step > size.number:
                raise Frozen(f"it wants steps of {size.step} where `{size.name}` is {size.number}")
        try:
            return _walked(begun, sizes, plain, asked)
        except Finer as finer:
            sizes = tuple(
                size._replace(step=size.step * finer.factor) if size.symbol == finer.name else size
                for size in sizes
            )
    raise Frozen("it wants ever larger steps")


def _walked(
    begun: Model, told: tuple[Size, ...], plain: frozenset[str], asked: frozenset[str]
) -> tuple[Freed, list[str]]:
    """The model, node by node; and the pools of whole planes.

    Raises:
        Frozen: A node is for the sizes of the file alone; says which, and why.
        Finer: Sizes have to be further apart.
    """
    model = begun.clone()
    dialect.strip_initializer_inputs(model, keep=False)
    facts = Facts(model, assumptions={size.name: size.dim for size in told})
    facts.enter(model.graph)
    sizes = Sizes(model, facts, told)
    sizes.plain, sizes.asked_before = plain, asked
    for tensor in model.graph.inputs:
        for axis, dim in enumerate(facts.of(tensor).shape or ()):
            if sizes.is_free(dim):
                sizes.pool.setdefault(dim, (tensor, axis))
    for node in toposort(model.graph):
        title = named(node)
        try:
            _carry(sizes, node)
        except Frozen as error:
            raise type(error)(f"{title} is for one size: {error}") from None
        except Unavailable as error:
            raise Frozen(f"{title} would be written otherwise: {error}") from None
        except (LookupError, StopIteration, TypeError, ValueError) as error:
            raise Frozen(f"{title} is not as its operator has it: {error}") from None
    for tensor in model.graph.outputs:
        if tensor.name in asked:
            raise Frozen(f"`{tensor.name}` is computed of the sizes alone")
    model.graph.nodes = [node for node in sizes.done if not node.__dict__.get("gone")]
    model.changed = True
    outputs = {t.name: facts.of(t).shape or () for t in model.graph.outputs}
    made = model.to_proto()
    for value in made.graph.output:
        _declare(sizes, value, outputs[value.name])
    made_of = (tensor for node in model.graph.nodes for tensor in node.outputs)
    lengths = (dim for tensor in made_of for dim in facts.of(tensor).shape or ())
    unknown = frozenset(dim for dim in lengths if not isinstance(dim, int))
    return Freed(made, told, outputs, unknown), sizes.whole


def _carry(sizes: Sizes, node: gs.Node) -> None:
    """One node, or what takes its place."""
    if sizes.surgery.is_dead(node):
        return
    if node.domain in STANDARD or not node.domain:
        dialect.normalise(node, sizes.facts.opset, sizes.facts, sizes.surgery.is_output)
        node.__dict__["normal"] = True
    if sizes.keeper.unwrap(node, sizes.model.graph):
        return
    before = len(sizes.done)
    of_sizes(sizes, node)
    held = sizes.held(node)
    inside = list(bodies_read(node))
    if inside:
        _inside(sizes, node, inside)
    elif held or node.op in NAMING or sizes.reads(node) or sizes.is_summed(node):
        carrier = CARRIERS.get(node.op) if (node.domain or "") in STANDARD else None
        if carrier is not None:
            carrier(sizes, node)
        elif held:
            raise Frozen("of this operator that is not known")
    if not node.__dict__.get("gone"):
        sizes.facts.infer(node)
        if not held and not inside and sizes.keeper.fold(node, sizes.model.graph):
            return
        sizes.done.append(node)
    for made in sizes.done[before:]:
        sizes.see_known(made)
        shared.follow(sizes, made)
        sizes.note(made)


def _inside(sizes: Sizes, node: gs.Node, read: Sequence[gs.Tensor]) -> None:
    """See that bodies read nothing that depends on the sizes."""
    if sizes.reads(node) or any(map(sizes.hangs, read)):
        raise Frozen("its bodies read what depends on the sizes")


def _declare(sizes: Sizes, value: onnx.ValueInfoProto, shape: Sequence[Dim]) -> None:
    """An output's lengths: under the names of the sizes where they are these."""
    tensor = value.type.tensor_type
    if not tensor.HasField("shape") or len(tensor.shape.dim) != len(shape):
        return
    names = {size.dim: size.name for size in sizes.sizes}
    for dim, length in zip(tensor.shape.dim, shape, strict=True):
        if sizes.is_free(length):
            dim.Clear()
            if length in names:
                dim.dim_param = names[length]
