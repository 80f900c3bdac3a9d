"""`fake_quantize_*`: floats rounded to the steps of a quantised number, still floats.

They are arithmetic in floats, exactly PyTorch's; or, where a recipe asks for it, a QuantizeLinear
and a DequantizeLinear, by which runtimes know that a network is to run in integers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.aten_math.ranges import chosen
from surgeon.builders.aten_math.work import BOOL, DOUBLE, FLOAT, INT64, Work
from surgeon.builders.bench import Bench
from surgeon.builders.levels import levels
from surgeon.builders.pairs import along
from surgeon.facts.kinds import FLOATS
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused


def fake_quantize(work: Work) -> gs.Tensor:
    """Of a tensor or of each channel; as it was where that is switched off."""
    given = work.args.tensor("self")
    dtype = work.dtype(given)
    if dtype not in FLOATS:
        raise Refused("PyTorch rounds floats to steps alone")
    if _switch(work) is False:
        return given
    # halves by way of single precision, as PyTorch multiplies them by a scale of it
    x = given if dtype in (FLOAT, DOUBLE) else work.cast(given, FLOAT)
    scale, zero = (_of_channel(work, x, each) for each in _given(work))
    ends = [float(work.args.value(n)) for n in ("quant_min", "quant_max")]
    together = False
    if "learnable" in work.name:  # where it is no whole number yet
        low, high = (work.number(end, FLOAT) for end in ends)
        zero = work.extreme("Min", work.extreme("Max", work.op("Round", zero), low), high)
    elif _is_of_floats(work):  # of channels PyTorch takes it as it is, of a tensor what is whole
        together = _axis(work) is not None
        zero = zero if together else work.cast(work.cast(zero, INT64), FLOAT)
    kind = work.dtype(x)
    zero = work.cast(zero, kind)
    steps = levels(work.draft, x, scale, zero, *ends, together=together)
    # PyTorch multiplies in single precision, and in double only those of channels
    kind = FLOAT if _axis(work) is None else kind
    apart = work.cast(work.op("Sub", steps, zero), kind)
    made: gs.Tensor = work.op("Mul", apart, work.cast(scale, kind))
    return _where_on(work, work.cast(made, dtype), given)


def observed(work: Work) -> gs.Tensor:
    """`fused_moving_avg_obs_fake_quant`: its observer off, by the range that it has seen."""
    _check_observer(work)
    return fake_quantize(work)


def observer_as_off(draft: Draft, match: Match) -> gs.Tensor:
    """The same whatever the observer: by the scale that the file holds."""
    return fake_quantize(Work(draft, match.root))


def fake_quantize_as_pair(draft: Draft, match: Match, observed: bool = False) -> gs.Tensor:
    """Any of `FUNCTIONS`, where its levels are among those of 8 bits, and known.

    Levels at the ends that are not to be used are cut off before it is quantised, as some
    runtimes want the pair to stand together.

    Args:
        draft: Where the nodes go.
        match: The operator.
        observed: Whether its observer may be on; the scale is that which the file holds.
    """
    work, c = Work(draft, match.root), Bench(draft)
    x = work.args.tensor("self")
    if work.dtype(x) != FLOAT:
        raise Refused("a pair of nodes quantises single precision alone")
    if work.args.schema.takes("observer_on") and not observed:
        _check_observer(work)
    axis = _axis(work)
    shape = [] if axis is None else [-1]
    scale, zero = (_known(work, given).reshape(shape) for given in _given(work))
    low, high = (int(work.args.value(n)) for n in ("quant_min", "quant_max"))
    if "learnable" not in work.name and not np.array_equal(zero, np.rint(zero)):
        raise Refused("its zero point is no whole number, which a pair of nodes takes")
    zero = np.asarray(np.clip(np.rint(zero), low, high))
    kind = next((k for k in (np.int8, np.uint8) if _within(k, low, high)), None)
    if kind is None:
        raise Refused(f"its levels go from {low} to {high}, and 8 bits do not hold them")
    ends = np.iinfo(kind)
    if (low, high) != (ends.min, ends.max):
        behind = [] if axis is None else [1] * (work.rank(x) - axis % work.rank(x) - 1)
        least, most = (
            draft.constant(np.asarray((end - zero) * scale, np.float32).reshape([*shape, *behind]))
            for end in (low, high)
        )
        x = work.extreme("Min", work.extreme("Max", x, least), most)
    step = draft.constant(np.asarray(scale, np.float32), "scale")
    level = draft.constant(np.asarray(zero, kind), "zero_point")
    where = along(c, step, axis or 0)
    quantized = c.op("QuantizeLinear", x, step, level, **where)
    made: gs.Tensor = c.op("DequantizeLinear", quantized, step, level, **where)
    return _where_on(work, made, work.args.tensor("self"))


def _is_of_floats(work: Work) -> bool:
    takes = work.args.schema.takes("zero_point")
    return takes and work.dtype(work.args.tensor("zero_point")) in FLOATS


def _within(kind: type, low: int, high: int) -> bool:
    return bool(np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)


def _given(work: Work) -> tuple[gs.Tensor, gs.Tensor]:
    """Scale and zero point; an observer, on or off, has them of the range that it has seen."""
    if not work.args.schema.takes("running_min"):
        return work.args.tensor("scale"), work.args.tensor("zero_point")
    least, most = (_known(work, work.args.tensor(f"running_{end}")) for end in ("min", "max"))
    ends = [int(work.args.value(n)) for n in ("quant_min", "quant_max")]
    if not (np.isfinite([least, most]).all() and (least <= most).all()):
        raise Refused("its observer has seen no range")
    even = bool(work.args.value("symmetric_quant"))
    scale, zero = chosen(least.reshape(-1), most.reshape(-1), *ends, symmetric=even)
    return work.draft.constant(scale, "scale"), work.draft.constant(zero, "zero_point")


def _known(work: Work, given: gs.Tensor) -> np.ndarray:
    array = work.facts.array(given)
    if array is None:
        raise Refused(f"`{given.name}` is known at run time only")
    return array


def _check_observer(work: Work) -> None:
    on = work.facts.array(work.args.tensor("observer_on"))
    if on is None or on.any():
        state = "may be on" if on is None else "is on"
        raise Refused(
            f"its observer {state}: it follows the range of what it is given while it runs; switch "
            "it off (`module.apply(torch.ao.quantization.disable_observer)`) before the export, or "
            "take the scale that the file holds with `--allow approximate`"
        )


def _where_on(work: Work, made: gs.Tensor, x: gs.Tensor) -> gs.Tensor:
    known, name = _switch(work), _switch_of(work)
    if name is None or known is True:
        return made
    if known is False:
        return x
    on = work.cast(work.args.tensor(name), BOOL)
    return work.where(work.draft.op("Reshape", on, work.axes([])), made, x)


def _switch_of(work: Work) -> str | None:
    return next((n for n in _SWITCHES if work.args.schema.takes(n)), None)


def _switch(work: Work) -> bool | None:
    """Whether it is switched on, where that is known; without a switch it is."""
    name = _switch_of(work)
    if name is None:
        return True
    known = work.facts.array(work.args.tensor(name))
    return None if known is None or known.size != 1 else bool(known.item())


def _of_channel(work: Work, x: gs.Tensor, given: gs.Tensor) -> gs.Tensor:
    value = work.cast(given, FLOAT)
    axis = _axis(work)
    if axis is None:
        return work.draft.op("Reshape", value, work.axes([]))
    rank = work.rank(x)
    behind = rank - axis % rank - 1
    return work.draft.op("Unsqueeze", value, work.axes(range(1, behind + 1))) if behind else value


def _axis(work: Work) -> int | None:
    """The axis of the channels; None where all elements have one scale."""
    if work.args.schema.takes("ch_axis"):
        return int(work.args.value("ch_axis")) if work.args.value("per_row_fake_quant") else None
    return int(work.args.value("axis")) if work.args.schema.takes("axis") else None


_SWITCHES = ("fake_quant_enabled", "fake_quant_on")
_KINDS = ("", "_cachemask")  # the mask is for training
FUNCTIONS: Mapping[str, Callable[[Work], gs.Tensor]] = {
    **dict.fromkeys(
        (f"fake_quantize_per_{of}_affine{kind}" for of in ("tensor", "channel") for kind in _KINDS),
        fake_quantize,
    ),
    **dict.fromkeys(
        (
            "_fake_quantize_learnable_per_tensor_affine",
            "_fake_quantize_learnable_per_channel_affine",
            "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
        ),
        fake_quantize,
    ),
    **dict.fromkeys(
        ("fused_moving_avg_obs_fake_quant", "_fused_moving_avg_obs_fq_helper"), observed
    ),
}
