"""Operators of other tools that no runtime here has, each in numpy by its tool's documentation.

A function gets the node's attributes and the values of its inputs (None for one left out), and
gives the output, or a tuple of several.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx

from surgeon.reference import plugins
from surgeon.reference.libraries import (
    caffe2,
    internal_nhwc,
    nchwc,
    onnx_trials,
    onnxruntime,
    openvino,
    qonnx,
    quark,
    tensorrt,
)
from surgeon.standard import STANDARD

Function = Callable[..., Any]
TABLES: Mapping[str, Mapping[str, Function]] = {
    **dict.fromkeys(caffe2.DOMAINS, caffe2.TABLE),
    **dict.fromkeys(openvino.DOMAINS, openvino.TABLE),
    **dict.fromkeys(
        STANDARD,
        {name: openvino.TABLE[name] for name in openvino.HOMELESS}
        | dict(onnx_trials.DROPPED)
        | dict(onnx_trials.TENSORFLOW),
    ),
    **onnx_trials.EARLY,
    **dict.fromkeys(internal_nhwc.DOMAINS, internal_nhwc.TABLE),
    **dict.fromkeys(nchwc.DOMAINS, nchwc.TABLE),
    **dict.fromkeys(onnxruntime.DOMAINS, onnxruntime.TABLE),
    **dict.fromkeys(qonnx.DOMAINS, qonnx.TABLE),
    **dict.fromkeys(quark.DOMAINS, quark.TABLE),
    **dict.fromkeys(tensorrt.DOMAINS, tensorrt.TABLE),
}


def is_known(node: onnx.NodeProto) -> bool:
    """Whether this is another tool's operator, or a plugin, that is executed here."""
    if node.domain in onnxruntime.DOMAINS:
        return onnxruntime.is_known(node)
    return node.op_type in TABLES.get(node.domain, {}) or plugins.is_plugin(node)


def function_of(node: onnx.NodeProto) -> Function | None:
    """What executes another tool's operator, or a plugin; None where nothing here does."""
    found = TABLES.get(node.domain, {}).get(node.op_type)
    return found or plugins.function_of(node)
