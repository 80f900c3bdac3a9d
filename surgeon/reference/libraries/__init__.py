"""Operators of other tools that no runtime here has, each in numpy by its tool's documentation.

A function gets the node's attributes and the values of its inputs (None for one left out), and
gives the output, or a tuple of several.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx

from surgeon.reference.libraries import caffe2, qonnx, tensorrt

Function = Callable[..., Any]
TABLES: Mapping[str, Mapping[str, Function]] = {
    **dict.fromkeys(caffe2.DOMAINS, caffe2.TABLE),
    **dict.fromkeys(qonnx.DOMAINS, qonnx.TABLE),
    **dict.fromkeys(tensorrt.DOMAINS, tensorrt.TABLE),
}


def function_of(node: onnx.NodeProto) -> Function | None:
    """What executes a node of another tool's domain; None where nothing here does."""
    table = TABLES.get(node.domain)
    return None if table is None else table.get(node.op_type)
