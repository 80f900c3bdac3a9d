"""Values in the shape of the places they are written to, as PyTorch and its exporters mean it."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.aten_shape.call import Call, Size
from surgeon.builders.bench import dim_of
from surgeon.facts.fact import same_dims
from surgeon.rewrite import Refused


def as_indexed(
    c: Call,
    values: gs.Tensor,
    linear: gs.Tensor,
    rest: Sequence[Size | int],
    begin: int,
    data: Sequence[dims.Dim] | None,
) -> gs.Tensor:
    """The values in the shape of what the indices take of data of this shape."""
    inside = [c.size(linear, i) for i in range(c.rank(linear))]
    wanted = [*rest[:begin], *inside, *rest[begin:]]
    shape = c.shape(values)
    plain = list(map(dim_of, wanted))
    if (
        shape is not None
        and len(shape) == len(plain)
        and all(
            b is not None and dims.equal(a, b) is True for a, b in zip(shape, plain, strict=True)
        )
    ):
        return values
    if shape is not None and (_lacks_ones(shape, plain) or _was_flattened(shape, plain)):
        return c.reshape(values, wanted)
    lacking = None if shape is None else _ones_to_add(shape, plain, data)
    if shape is not None and lacking is None and _overflow(shape, plain):
        mine = ", ".join(map(str, shape))
        its = ", ".join("?" if d is None else str(d) for d in plain)
        raise Refused(
            f"its values of [{mine}] do not fit into [{its}], which its indices name" + _hint(c)
        )
    if lacking is not None:
        values = c.unsqueeze(values, lacking)
    elif shape is not None and len(shape) > len(wanted):  # ones in front
        extra = len(shape) - len(wanted)
        values = c.squeeze(values, list(range(extra)))
    return c.op("Expand", values, c.vector(wanted, "sizes"))


def _hint(c: Call) -> str:
    """What helps where an exporter took the sizes of what it wrote to for those of the values."""
    if not c.facts.model.is_before(1, 12):
        return ""
    return (
        "; PyTorch up to 1.11 writes so what is written behind another write, as a circular pad "
        "is; export with 2.0 or later"
    )


def _lacks_ones(shape: Sequence[dims.Dim], room: Sequence[dims.Dim | None]) -> bool:
    """Whether values are as many as the places they are for, but for axes of one place.

    PyTorch 1.5 to 1.10 write `x[:, 2] = v` with such an axis, which `v` lacks, and reshape `v`
    where they have a ScatterND. Where the values spread by themselves, it is the same.
    """
    mine, its = ([d for d in line if d is None or d != 1] for line in (shape, room))
    return len(mine) == len(its) and all(
        a is not None and b is not None and dims.equal(a, b) is True
        for a, b in zip(mine, its, strict=True)
    )


def _was_flattened(shape: Sequence[dims.Dim], room: Sequence[dims.Dim | None]) -> bool:
    """Whether values have more axes than the places they are for, and are as many.

    PyTorch 1.5 to 1.8 flatten indices of several axes in an assignment, but not what is assigned.
    """
    extra = len(shape) - len(room)
    known = [d for d in room if d is not None]
    if extra <= 0 or len(known) < len(room) or all(d == 1 for d in shape[:extra]):
        return False
    return dims.equal(dims.product(shape), dims.product(known)) is True


def _ones_to_add(
    shape: Sequence[dims.Dim],
    room: Sequence[dims.Dim | None],
    data: Sequence[dims.Dim] | None,
) -> list[int] | None:
    """The places of axes that values lack, as in `_lacks_ones`, where sizes are not proven equal.

    None where it may be that they spread by themselves, to other places, unless they are as long as
    the data, whose axes the room is of: a trace froze indices of all places of an axis.
    """
    ones = [i for i, b in enumerate(room) if b == 1]
    others = [i for i, b in enumerate(room) if b != 1]
    by_itself = range(len(room) - len(shape), len(room))
    if not ones or len(others) != len(shape):
        return None
    spread = [b for a, b in zip(shape, by_itself, strict=True) if room[b] == 1 and a != 1]
    alike = data is not None and len(data) == len(room)
    alike = alike and same_dims(tuple(shape), tuple(data[i] for i in others))  # type: ignore[index]
    apart = not (alike or _overflow(shape, room)) and any(
        a != b and room[b] != 1 for a, b in zip(others, by_itself, strict=True)
    )
    unlike = any(
        a != 1 and room[i] is not None and dims.equal(a, room[i]) is False  # type: ignore[arg-type]
        for a, i in zip(shape, others, strict=True)
    )
    return ones if spread and not apart and not unlike else None


def _overflow(shape: Sequence[dims.Dim], room: Sequence[dims.Dim | None]) -> bool:
    """Whether values provably do not spread to the places they are for."""
    pairs = zip(reversed(shape), [*reversed(room), *[1] * len(shape)], strict=False)
    return any(
        isinstance(a, int) and a != 1 and b is not None and dims.equal(a, b) is False
        for a, b in pairs
    )
