"""Whether two models can be used in each other's place: names, order, dtypes, ranks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from shlex import quote

import onnx

from surgeon.ends import defaults_of
from surgeon.errors import few

_MOST = 40  # inputs, or outputs, of a command
_FEW = 4  # names in words


def interface_fault(
    before: onnx.ModelProto,
    after: onnx.ModelProto,
    retyped: Collection[str] = (),
    recast: Collection[str] = (),
) -> str | None:
    """The first difference of the interfaces, in words; None where there is none.

    An input that has an initializer may leave. Declared output shapes are claims, often stale:
    they are not compared, the arrays are; nor the declared dtypes of the outputs `retyped`, and of
    the inputs and outputs `recast`.
    """
    optional = {tensor.name for tensor in before.graph.initializer}
    kept = {value.name for value in after.graph.input}
    wanted = [v for v in before.graph.input if v.name in kept or v.name not in optional]
    for kind, old, new in (
        ("input", wanted, list(after.graph.input)),
        ("output", list(before.graph.output), list(after.graph.output)),
    ):
        names, found = [v.name for v in old], [v.name for v in new]
        if sorted(names) != sorted(found):
            gone = [f"`{name}`" for name in names if name not in found]
            more = [f"`{name}`" for name in found if name not in names]
            changes = [f"{', '.join(gone)} left"] * bool(gone)
            changes += [f"{', '.join(more)} came"] * bool(more)
            return f"the {kind}s changed: {'; '.join(changes)}"
        if names != found:
            return f"the order of the {kind}s changed: {found}, not {names}"
        for was, became in zip(old, new, strict=True):
            typed = (kind == "input" or was.name not in retyped) and was.name not in recast
            if fault := _value_fault(was, became, shapes=kind == "input", typed=typed):
                return f"{kind} `{was.name}` of the result {fault} as in the original"
    return None


def _value_fault(
    was: onnx.ValueInfoProto, became: onnx.ValueInfoProto, *, shapes: bool, typed: bool
) -> str | None:
    kinds = was.type.WhichOneof("value"), became.type.WhichOneof("value")
    if None in kinds:
        return None
    if kinds[0] != kinds[1] and not typed:
        return None
    if kinds[0] != kinds[1]:
        return f"is a {kinds[1]}, not a {kinds[0]}"
    if kinds[0] != "tensor_type":
        return None
    old, new = was.type.tensor_type, became.type.tensor_type
    if typed and old.elem_type and new.elem_type and old.elem_type != new.elem_type:
        name = onnx.TensorProto.DataType.Name
        return f"has dtype {name(new.elem_type).lower()}, not {name(old.elem_type).lower()}"
    if not shapes or not (old.HasField("shape") and new.HasField("shape")):
        return None
    if len(old.shape.dim) != len(new.shape.dim):
        return f"has rank {len(new.shape.dim)}, not {len(old.shape.dim)}"
    for axis, (one, two) in enumerate(zip(old.shape.dim, new.shape.dim, strict=True)):
        if one.dim_value > 0 and two.dim_value > 0 and one.dim_value != two.dim_value:
            return f"has size {two.dim_value} along axis {axis}, not {one.dim_value}"
    return None


def defaults_gone(before: onnx.ModelProto, after: onnx.ModelProto) -> Iterator[str]:
    """What to say of inputs that had a value in the file, and are none of the result.

    Where every weight is listed among the inputs, as old converters did, that is no loss.
    """
    asked = {value.name for value in after.graph.input}
    gone = [value.name for value in defaults_of(before) if value.name not in asked]
    if gone:
        yield (
            f"{few(gone)} had a value in the file, and could be given another: the result has "
            "that value for ever"
        )


def renaming_mend(before: onnx.ModelProto, after: onnx.ModelProto) -> str:
    """How the second model is given the first's names and order; "" where types do not pair them.

    What has one name in both is paired; the rest by its order. Outputs that only the second has are
    left out.
    """
    weights = {tensor.name for tensor in before.graph.initializer}
    asked = {value.name for value in before.graph.input}
    came = [v.name for v in after.graph.input if v.name not in asked]
    if came and weights.issuperset(came):
        given = " ".join(f"--value {quote(name)}=FILE.npy" for name in came[:_FEW])
        return f"A has {'them' if came[1:] else 'it'} as weights: compare B with {given}."
    sides = []
    for option, old, new in (
        ("--from", before.graph.input, after.graph.input),
        ("--to", before.graph.output, after.graph.output),
    ):
        pairs = _paired(old, new, spare=option == "--to")
        if pairs is None or len(pairs) > _MOST:
            return ""
        sides.append((option, pairs))
    guessed = [
        f"`{b.name}` is `{a.name}`" for _, pairs in sides for a, b in pairs if a.name != b.name
    ]
    told = " ".join(
        f"{option} {quote(a.name if a.name == b.name else f'{a.name}={b.name}')}"
        for option, pairs in sides
        for a, b in pairs
    )
    given = f"`surgeon extract B OUT {told}`"
    if not guessed:
        return f"{given} gives B the interface of A."
    if len(guessed) > _FEW:
        guessed[_FEW:] = ["so on"]
    return f"If {', '.join(guessed)}, as types and order say, {given} gives B these names."


def _paired(
    old: Sequence[onnx.ValueInfoProto], new: Sequence[onnx.ValueInfoProto], *, spare: bool
) -> list[tuple[onnx.ValueInfoProto, onnx.ValueInfoProto]] | None:
    """Each value of the first with one of the second; None where that cannot be."""
    by_name = {value.name: value for value in new}
    names = {value.name for value in old}
    rest = [value for value in new if value.name not in names]
    untold = [value for value in old if value.name not in by_name]
    if len(untold) != len(rest) and not (spare and not untold):
        return None
    twins = {a.name: b for a, b in zip(untold, rest, strict=False)}
    pairs = [(value, by_name.get(value.name) or twins[value.name]) for value in old]
    if any(_value_fault(a, b, shapes=True, typed=True) for a, b in pairs):
        return None
    return pairs


def declaring_mend(operators: Sequence[str]) -> str:
    """What to say of operators that onnxruntime lacks; "" where there are none."""
    if not operators:
        return ""
    named = " ".join(f"--custom {quote(name)}" for name in operators[:_FEW])
    more = " ..." if len(operators) > _FEW else ""
    return (
        "Name the recipe that says with its `functions` what they compute (`--recipe FILE`), or "
        f"let B hold them, which then only runs: `{named}{more}`."
    )
