"""onnx's own node tests."""

import warnings
from functools import cache
from typing import Any


@cache
def cases() -> list[Any]:
    """onnx's node tests, which it makes anew each time they are asked for."""
    with warnings.catch_warnings():  # numpy's, about overflows that are meant
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        found = collect_testcases(None)
    return sorted((case for case in found if case.model is not None), key=lambda case: case.name)
