"""Whether a model of dynamic sizes gives what the file gives, and runs at others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import onnx

from surgeon import dims
from surgeon.anysize.freed import Freed, Size, refusal
from surgeon.aside import room_aside
from surgeon.errors import SurgeonError
from surgeon.isolation import open_session
from surgeon.verify.compare import compare_arrays
from surgeon.verify.inputs import draw, required_inputs
from surgeon.verify.limits import bounds
from surgeon.verify.sizes import dynamic_dims

_MEND = "Report it with the model."
_OTHER = 2  # what dims have that are dynamic anyway
_FEW = 3  # other sizes that are tried


@room_aside()
def check_sizes(before: onnx.ModelProto, freed: Freed, folder: Path | None) -> list[str]:
    """Run both at the sizes of the file, and the result at others; gives these.

    Raises:
        SurgeonError: The two differ, or the result does not run, or gives other sizes than it
            should.
    """
    one, many = open_session(before, folder=folder), open_session(freed.model, folder=folder)
    inputs = required_inputs(freed.model)
    allowed = bounds(before, inputs)
    names = {size.name for size in freed.sizes}
    others = dynamic_dims(inputs, names).keys()
    tried: list[str] = []
    for seed, counts in enumerate([tuple(s.number for s in freed.sizes), *_others(freed.sizes)]):
        told = dict.fromkeys(others - names, _OTHER)
        told.update({size.name: n for size, n in zip(freed.sizes, counts, strict=True)})
        feeds = draw(inputs, told, seed, allowed=allowed)
        at = " x ".join(map(str, counts))
        if not seed:
            wanted = one.run(feeds)
            found = many.run(feeds, list(wanted))
            for name, expected in wanted.items():
                if not (check := compare_arrays(name, expected, found[name])).agrees:
                    said = check.fault or f"by {check.max_relative:.2g} of its spread"
                    raise refusal(f"`{name}` differs at the file's sizes: {said}", _MEND)
            continue
        try:
            found = many.run(feeds)
        except SurgeonError as error:
            raise refusal(f"the result does not run at {at}: {error.what}", _MEND) from None
        _as_told(freed, counts, found, at)
        tried.append(at)
    return tried


def _others(sizes: tuple[Size, ...]) -> Iterator[tuple[int, ...]]:
    """Sizes that are one and two steps from those of the file, each in its own way."""
    for turn in range(_FEW):
        yield tuple(
            size.number + size.step * _steps(size, (turn + place) % _FEW)
            for place, size in enumerate(sizes)
        )


def _steps(size: Size, turn: int) -> int:
    """How many steps from the file's own size; fewer elements where there is room."""
    unit = max(1, size.number // size.step // 4)
    return (1, -unit if size.number // size.step > 1 else 2, unit + 1)[turn]


def _as_told(freed: Freed, counts: tuple[int, ...], found: Mapping[str, object], at: str) -> None:
    """See that outputs are as large as they should be."""
    values = {size.symbol: n // size.step for size, n in zip(freed.sizes, counts, strict=True)}
    for name, shape in freed.outputs.items():
        have = getattr(found.get(name), "shape", None)
        for axis, dim in enumerate(shape):
            if have is None or not dims.symbols(dim) <= values.keys():
                continue
            if (wanted := dims.evaluate(dim, values)) != have[axis]:
                said = f"axis {axis} of `{name}` is {have[axis]} at {at}, not {wanted}"
                raise refusal(said, _MEND)
