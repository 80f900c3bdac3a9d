"""What `scatter-cast` makes of assignments that PyTorch wrote for one place only."""

from __future__ import annotations

import numpy as np
import pytest
from truth import parse

import surgeon
from surgeon.runtime import Session


@pytest.mark.parametrize("width", [3, 1])
def test_a_row_is_written_to_as_many_places_as_there_are(width: int) -> None:
    proto = parse(
        f"g (float[4,5,3] x, int64[n,2] i, float[{width}] row) => (float[4,5,3] y) "
        "<int64[1] zero = {0}, int64[1] one = {1}, int64[1] three = {3}> { "
        "s = Shape (i) n = Slice (s, zero, one) t = Concat <axis = 0> (n, three) "
        "rows = Reshape (row, t) y = ScatterND (x, i, rows) }"
    )
    out = surgeon.apply(proto, "scatter-cast", allow=["contract"]).model.to_proto()
    x, row = np.zeros((4, 5, 3), np.float32), np.arange(1, width + 1, dtype=np.float32)
    for places in ([[2, 1]], [[0, 0], [3, 4], [1, 2]]):
        wanted = x.copy()
        wanted[tuple(np.array(places).T)] = row
        found = Session(out).run({"x": x, "i": np.array(places), "row": row})["y"]
        np.testing.assert_array_equal(found, wanted)
