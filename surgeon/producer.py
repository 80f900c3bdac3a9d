"""Which release of PyTorch wrote a file."""

from __future__ import annotations

import onnx

from surgeon.numerals import natural


def release_of(model: onnx.ModelProto) -> tuple[int, int] | None:
    """The release that wrote the file, as it says; None for other producers.

    1.4.0 calls itself 1.3.
    """
    if model.producer_name != "pytorch":
        return None
    first, _, rest = model.producer_version.split("+")[0].partition(".")
    major, minor = natural(first), natural(rest.partition(".")[0] or "0")
    return None if major is None or minor is None else (major, minor)
