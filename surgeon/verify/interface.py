"""Whether two models can be used in each other's place: names, order, dtypes, ranks."""

from __future__ import annotations

from collections.abc import Collection

import onnx


def interface_fault(
    before: onnx.ModelProto, after: onnx.ModelProto, retyped: Collection[str] = ()
) -> str | None:
    """The first difference of the interfaces, in words; None where there is none.

    An input that has an initializer may leave. Declared output shapes are claims, often stale:
    they are not compared, the arrays are; nor the declared dtypes of the outputs `retyped`.
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
            typed = kind == "input" or was.name not in retyped
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
