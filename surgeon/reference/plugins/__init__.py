"""The witness's plugins: operators of TensorRT's, of OpenMMLab's, of Caffe2's and of authors'.

Their functions take the values of a node's inputs and its attributes by name, and are written from
the documentation beside each plugin. A runtime finds plugins by name, and so does this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import onnx

from surgeon.standard import STANDARD

# Which module has which operators, by where they come from.
_MODULES: Mapping[tuple[str, str], str] = {
    ("TRT", "EfficientNMS_TRT EfficientNMSX_TRT EfficientNMSX"): "detections",
    ("TRT", "BatchedNMS_TRT BatchedNMSDynamic_TRT"): "detections",
    ("mmcv", "TRTBatchedNMS NonMaxSuppression"): "detections",
    ("TRT", "ROIAlign_TRT ModulatedDeformConv2d"): "regions",
    ("mmcv", "MMCVRoiAlign MMCVRoIAlign MMCVMultiLevelRoiAlign"): "regions",
    ("mmcv", "MMCVModulatedDeformConv2d ModulatedDeformConv2d"): "regions",
    ("mmcv", "MMCVDeformConv2d DeformConv2d"): "regions",
    ("mmcv", "grid_sampler GatherTopk"): "reading",
    ("TRT", "MultiscaleDeformableAttnPlugin_TRT"): "reading",
    ("mmcv", "MMCVMultiScaleDeformableAttention MMCVMultiScaleDeformableAttn"): "reading",
    ("mmcv", "MMCVMultiScaleDeformAttn"): "reading",
    ("TRT", "InstanceNormalization_TRT GroupNormalizationPlugin LReLU_TRT"): "layers",
    ("TRT", "GridSampler2DTRT GridSampler2DTRT2 GridSampler3DTRT GridSampler3DTRT2"): "bev",
    ("TRT", "ModulatedDeformableConv2dTRT ModulatedDeformableConv2dTRT2"): "bev",
    ("TRT", "RotateTRT RotateTRT2 InverseTRT"): "bev",
    ("mmcv", "MMCVInstanceNormalization MMCVCornerPool cummax cummin"): "layers",
    ("mmcv", "ScaledDotProductAttentionTRT GridPriorsTRT"): "layers",
    ("caffe2", "AliasWithName CopyCPUToGPU CopyGPUToCPU ResizeNearest UpsampleNearest"): "layers",
    ("caffe2", "RoIAlign"): "regions",
    ("mmcv", "NMSRotated MMCVRoIAlignRotated RoIAlignRotated"): "rotated",
    ("", "DCNv2 DCNv2_2 _DCNv2 DCNv2Function ModulatedDeformConv"): "authors",
    ("", "ModulatedDeformConvFunction ModulatedDeformConv2dFunction"): "authors",
    ("", "DeformConvFunction DeformConv2dFunction"): "authors",
    ("", "Mish MishImplementation MishFunction MemoryEfficientMish"): "authors",
    ("", "Swish SwishImplementation SwishFunction MemoryEfficientSwish SiLU"): "authors",
    ("", "HardSwish Hardswish HSwish"): "authors",
}
_DOMAINS: Mapping[str, frozenset[str]] = {
    "TRT": frozenset({"TRT", "trt", "trt.plugins", "tensorrt", "TensorRT", "nvinfer"}),
    "mmcv": frozenset({"mmcv", "mmdeploy"}),
    "caffe2": frozenset({"caffe2", "_caffe2", "org.pytorch._caffe2"}),
}
# Names that ONNX has for something else, or has at some opset.
_STANDARD = frozenset({"NonMaxSuppression", "Mish", "Swish", "HardSwish"})
_TOOLS = ("com.microsoft", "ai.onnx.", "org.pytorch.", "org.openvinotoolkit")


@cache
def _module(domain: str, operator: str) -> str | None:
    for (source, names), module in _MODULES.items():
        if operator not in names.split():
            continue
        own = operator.endswith("_TRT") or operator.startswith("MMCV")
        homeless = domain in STANDARD and source != "caffe2" and operator not in _STANDARD
        if not source:  # of anyone's, but of no tool's
            tools = any(domain in domains for domains in _DOMAINS.values())
            own = domain not in STANDARD and not tools and not domain.startswith(_TOOLS)
        if own or homeless or domain in _DOMAINS.get(source, ()):
            return module
    return None


def is_plugin(node: onnx.NodeProto) -> bool:
    """Whether this is a plugin that there is a function for."""
    return _module(node.domain, node.op_type) is not None


def function_of(node: onnx.NodeProto) -> Callable[..., Any] | None:
    """What executes a plugin, given its attributes and the values of its inputs."""
    name = _module(node.domain, node.op_type)
    if name is None:
        return None
    function = import_module(f"{__name__}.{name}").TABLE[node.op_type]

    def run(said: Mapping[str, Any], *values: Any) -> Any:
        return function(list(values), {key: _plain(value) for key, value in said.items()})

    return run


def _plain(value: Any) -> Any:
    """An attribute as it is meant: a list or a tensor of one number is that number."""
    if isinstance(value, np.ndarray):
        value = value.reshape(-1).tolist()
    return value[0] if isinstance(value, list) and len(value) == 1 else value
