"""What expressions may ask of a value of the graph."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

PROPERTIES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "shape": ("The sizes: numbers, and symbols where they are dynamic.", "x.shape[1] == 1"),
        "rank": ("How many axes it has.", "x.rank == 4"),
        "dtype": ("The element type, by its name.", "x.dtype in [float16, float32]"),
        "value": (
            "The elements, where they are known: of a constant, or of shape arithmetic, which may "
            "hold symbols.",
            "scalar(size.value) == 1",
        ),
        "consumers": (
            "How many inputs of nodes read it, and one more where it is an output.",
            "h.consumers == 1",
        ),
        "is_constant": ("Whether it is a constant, or computed of constants.", "w.is_constant"),
        "maker": (
            "The operator that makes it, as patterns spell it; '' for an input or a constant.",
            "x.maker == 'Softmax'",
        ),
        "name": ("Its name in the model.", "x.name != ''"),
        "node": (
            "The name of the node that makes it; '' for an input or a constant.",
            "y.node == '/head/Conv'",
        ),
        "attributes": (
            "The names of the attributes that the node that makes it states, in newest form; of "
            "an input or a constant none.",
            "'perm' not in t.attributes",
        ),
        "views": (
            "Of a value written `x~`: the shapes in front of the views that were looked through, "
            "nearest to the reader first.",
            "len(x.views) == 1",
        ),
    }
)
"""What may be asked of a value, as `x.shape`: what it is, and an example."""
