"""Keys' kernel of cubic interpolation."""

from __future__ import annotations

import numpy as np

from surgeon.builders.parts import Array


def cubic_weight(distance: Array, a: float) -> Array:
    """The weight of an element at a distance of places; `a` is the kernel's coefficient."""
    d = distance
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))
