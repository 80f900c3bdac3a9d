"""How a file spells its operators, and what they are called here."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import onnx

from surgeon.standard import STANDARD, known_operators

_LIBRARIES = ("aten", "torchvision", "torchaudio", "quantized_decomposed", "torchao")
ATEN_DOMAINS = frozenset({*_LIBRARIES, *(f"org.pytorch.{name}" for name in _LIBRARIES)})
FALLBACK_DOMAINS = ATEN_DOMAINS | {"", "com.microsoft", "caffe2"}
# Of the fallback nodes of PyTorch's exporter and of ONNX Runtime's first trainer: the attribute
# that names the operator, and the domains they are met in.
_FALLBACKS = {"ATen": ("operator", FALLBACK_DOMAINS), "ATenOp": ("name", {"com.microsoft"})}
OVERLOAD, BY_NAME = "overload_name", "custom_attributes_json"  # the latter are arguments
PRIM_DOMAINS = frozenset({"org.pytorch.prim", "prim"})
LOST_WRITE = "Placeholder"  # without fallback it has no domain: a write whose operands are lost
CUT = {  # exporters drop an underscore
    f"__{name}_": f"__{name}__"
    for name in (
        *"and or xor lshift rshift iand ior ixor ilshift irshift".split(),
        *"getitem not is isnot contains".split(),
    )
}

# What loads plugins finds them by name; exporters write this or that domain beside it, or none.
_HOMES = {
    **dict.fromkeys(("mmcv", "mmdeploy"), "mmcv"),
    **dict.fromkeys(("TRT", "trt", "trt.plugins", "tensorrt", "TensorRT", "nvinfer"), "TRT"),
    **dict.fromkeys(("caffe2", "_caffe2", "org.pytorch._caffe2"), "caffe2"),
    "org.openvinotoolkit": "org.openvinotoolkit",
    "autograd": "autograd",
    "dropped": "dropped",
    "tensorflow": "tensorflow",
}
_WITHOUT_DOMAIN = {
    **dict.fromkeys(
        "grid_sampler cummax cummin NMSRotated RoIAlignRotated NMSMatch SoftNonMaxSuppression "
        "TRTBatchedNMS TRTBatchedRotatedNMS GridPriorsTRT ScaledDotProductAttentionTRT GatherTopk "
        "ModulatedDeformConv2d DeformConv2d".split(),
        "mmcv",
    ),
    **dict.fromkeys(
        "GroupNormalizationPlugin ModulatedDeformConv2dPlugin CustomGeluPluginDynamic "
        "CustomGeluPluginDynamicV2 EfficientNMSX GridSampler2DTRT GridSampler2DTRT2 "
        "GridSampler3DTRT GridSampler3DTRT2 ModulatedDeformableConv2dTRT "
        "ModulatedDeformableConv2dTRT2 RotateTRT RotateTRT2 InverseTRT BEVPoolV2TRT "
        "MultiScaleDeformableAttnTRT "
        "MultiScaleDeformableAttnTRT2".split(),
        "TRT",
    ),
    **dict.fromkeys(
        "FakeQuantize ExperimentalDetectronGroupNorm DetectionOutput PriorBox PriorBoxClustered "
        "ExperimentalDetectronDetectionOutput ExperimentalDetectronGenerateProposalsSingleImage "
        "ExperimentalDetectronPriorGridGenerator ExperimentalDetectronROIFeatureExtractor "
        "ExperimentalDetectronTopKROIs DeformableConv2D".split(),
        "org.openvinotoolkit",
    ),
    **dict.fromkeys(  # which ONNX had on trial
        "Affine ConstantFill Crop ImageScaler ParametricSoftplus Scale ScaledTanh".split(),
        "dropped",
    ),
    "Erfc": "tensorflow",  # which tf2onnx leaves as it is
}
# Functions of authors' own, which mean the same wherever they are met; but what ONNX has in its own
# domain, at this opset or another, is ONNX's there.
_AUTHORS = frozenset(
    "DCNv2 DCNv2_2 _DCNv2 DCNv2Function ModulatedDeformConv ModulatedDeformConvFunction "
    "ModulatedDeformConv2dFunction DeformConvFunction DeformConv2dFunction "
    "Mish MishImplementation MishFunction MemoryEfficientMish "
    "Swish SwishImplementation SwishFunction MemoryEfficientSwish SiLU "
    "HardSwish Hardswish HSwish".split()
)
_ALSO_STANDARD = frozenset({"Mish", "Swish", "HardSwish"})
_RUNTIMES = ("com.microsoft", "ai.onnx.", "org.pytorch.", "com.ms.")


@cache
def home(domain: str, operator: str) -> str:
    """The domain by which recipes call an operator that a file may have in several, or in none.

    TensorRT's own plugins end in `_TRT`, and those of OpenMMLab begin with `MMCV`.
    """
    if domain == "ai.onnx":
        domain = ""
    if operator.endswith("_TRT"):
        return "TRT"
    if operator.startswith("MMCV"):
        return "mmcv"
    if operator in _AUTHORS and _is_authors(domain, operator):
        return "autograd"
    return _HOMES.get(domain, domain) if domain else _WITHOUT_DOMAIN.get(operator, "")


def _is_authors(domain: str, operator: str) -> bool:
    """Whether a domain is none of a tool's that has the operator's name for something else."""
    if not domain:
        return operator not in _ALSO_STANDARD
    own = domain in _HOMES or domain in ATEN_DOMAINS or domain in PRIM_DOMAINS
    return not own and not domain.startswith(_RUNTIMES)


def names_operator(domain: str, operator: str) -> str:
    """The attribute in which a fallback node names PyTorch's operator; "" of any other node."""
    attribute, domains = _FALLBACKS.get(operator, ("", frozenset()))
    return attribute if domain in domains else ""


def named_operator(text: str) -> str:
    """PyTorch's operator by the name that a fallback node gives it."""
    plain = text.rpartition("::")[2]
    return CUT.get(plain, plain)


def operator_name(node: onnx.NodeProto) -> str:
    """The operator's name as recipes write it, whichever way the exporter spelled it."""
    domain = node.domain
    if key := names_operator(domain, node.op_type):
        named = (a.s.decode("utf-8", "replace") for a in node.attribute if a.name == key)
        return f"aten.{named_operator(next(named, '?'))}"
    if domain in ATEN_DOMAINS or (domain in STANDARD and node.op_type == LOST_WRITE):
        return f"aten.{node.op_type}"
    if domain in PRIM_DOMAINS:
        return f"prim.{node.op_type}"
    domain = home(domain, node.op_type)
    return f"{domain}.{node.op_type}" if domain else node.op_type


def is_foreign(name: str) -> bool:
    """Whether a name, as recipes and reports have it, is of an operator that is PyTorch's own."""
    return name.startswith(("aten.", "prim.", "org.pytorch.prim."))


def is_plugin(name: str) -> bool:
    """Whether a name, as files have it, is of an operator that runtimes find among plugins."""
    domain, _, operator = name.rpartition(".")
    return home(domain, operator) in _HOMES


def spelling(node: onnx.NodeProto) -> str:
    """Domain and operator as the file has them."""
    return f"{node.domain or 'ai.onnx'}.{node.op_type}"


def lacked(operators: Iterable[str]) -> str:
    """Operators that onnxruntime does not have, as `domain.Op`; of known ones not these types."""
    known = known_operators()
    return ", ".join(
        f"`{name}`{' of these types' * (name.removeprefix('ai.onnx.') in known)}"
        for name in operators
    )
