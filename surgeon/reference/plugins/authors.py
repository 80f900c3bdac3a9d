"""Functions of authors' own, by the names that they are exported by.

DCNv2's is the layer of "Deformable ConvNets v2" (CharlesShang/DCNv2, mmdetection before mmcv);
Mish, Swish and HardSwish are what their papers define.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from surgeon.reference.errors import NoWitness
from surgeon.reference.operators.precision import narrow, wide
from surgeon.reference.plugins import regions

Array = NDArray[Any]
Said = Mapping[str, Any]
# of an activation: how it was called, and whether it writes over its input
_SAYS_NOTHING = frozenset("name module inplace info plugin_version plugin_namespace".split())


def _plainly(said: Said) -> dict[str, Any]:
    """Arguments that are texts as numbers, and those of rows and columns in one."""
    found: dict[str, Any] = {}
    for key, value in said.items():
        text = value.decode() if isinstance(value, bytes) else value
        found[key] = int(text) if isinstance(text, str) and text.isdigit() else value
    for name in ("stride", "padding", "dilation"):
        if f"{name}_h" in found:
            found[name] = [found[f"{name}_h"], found[f"{name}_w"]]
    return found


def modulated(values: list[Any], said: Said) -> Array:
    """(x, offset, mask, weight, bias?)."""
    return regions.modulated_deform_conv(values, _plainly(said))


def unmodulated(values: list[Any], said: Said) -> Array:
    """(x, offset, weight, bias?)."""
    return regions.deform_conv(values, _plainly(said))


def _nothing_more(name: str, said: Said) -> None:
    """See that no attribute says that the operator is another than its name does.

    Raises:
        NoWitness: One may.
    """
    more = next(iter({*said} - _SAYS_NOTHING), None)
    if more is not None:
        raise NoWitness(name, where="", why=f"what `{more}` means is not known")


def mish(values: list[Any], said: Said) -> Array:
    """Misra, 2019: x * tanh(log(1 + exp(x)))."""
    _nothing_more("Mish", said)
    x = wide(values[0])
    return narrow(x * np.tanh(np.logaddexp(0, x)), values[0])


def swish(values: list[Any], said: Said) -> Array:
    """Ramachandran et al., 2017, with a beta of 1: x / (1 + exp(-x))."""
    _nothing_more("Swish", said)
    x = wide(values[0])
    return narrow(x * np.exp(-np.logaddexp(0, -x)), values[0])


def hard_swish(values: list[Any], said: Said) -> Array:
    """Howard et al., 2019: x * relu6(x + 3) / 6."""
    _nothing_more("HardSwish", said)
    x = wide(values[0])
    return narrow(x * np.clip(x + 3, 0, 6) / 6, values[0])


_NAMES: Mapping[Callable[[list[Any], Said], Any], str] = {
    modulated: "DCNv2 DCNv2_2 _DCNv2 DCNv2Function ModulatedDeformConv "
    "ModulatedDeformConvFunction ModulatedDeformConv2dFunction",
    unmodulated: "DeformConvFunction DeformConv2dFunction",
    mish: "Mish MishImplementation MishFunction MemoryEfficientMish",
    swish: "Swish SwishImplementation SwishFunction MemoryEfficientSwish SiLU",
    hard_swish: "HardSwish Hardswish HSwish",
}
TABLE: Mapping[str, Callable[[list[Any], dict[str, Any]], Any]] = {
    name: function for function, names in _NAMES.items() for name in names.split()
}
