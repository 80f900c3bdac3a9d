"""Plugins for which nothing is written: refused by name, with what helps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

# What is wrong with some plugins, and those plugins.
_GROUPS: tuple[tuple[str, str], ...] = (
    (
        "compares boxes that are turned, and ONNX compares upright ones alone; export the network "
        "without its suppression, and do it behind the model",
        "TRTBatchedRotatedNMS TRTBatchedBEVNMS RotatedNMS_TRT",
    ),
    (
        "reads regions that are turned, for which nothing is written; export with "
        "`torch.nn.functional.grid_sample` in its place",
        "MMCVRoIAlignRotatedV2 MMCVMultiLevelRotatedRoiAlign",
    ),
    (
        "changes the scores of what is left after each box that it takes, in a loop of its own; "
        "export the network without it, and do it behind the model",
        "SoftNonMaxSuppression NMSMatch",
    ),
    (
        "decodes boxes by settings of the network that are not in the node; export its inputs, and "
        "do it behind the model",
        "NMS_TRT NMSDynamic_TRT GenerateDetection_TRT ProposalLayer_TRT RPROI_TRT "
        "MultilevelProposeROI_TRT DetectionLayer_TRT Region_TRT "
        "EfficientNMS_Implicit_TF_TRT EfficientNMS_Explicit_TF_TRT "
        "GenerateProposals BBoxTransform BoxWithNMSLimit CollectRpnProposals "
        "CollectAndDistributeFpnRpnProposals DistributeFpnProposals HeatmapMaxKeypoint "
        "BatchPermutation",
    ),
    (
        "gives a list of a length of its own, filled up with its last entry; export ONNX's "
        "NonMaxSuppression, which it stands for",
        "EfficientNMS_ONNX_TRT",
    ),
    (
        "is a kernel for which nothing is written; export with the module's plain PyTorch form",
        "MMCVCARAFE MMCVCARAFENaive MMCVBorderAlign MMCVMaskedConv2d MMCVPSAMask MMCVDeformRoIPool "
        "MMCVCAWeight MMCVCAMap MMCVRotatedFeatureAlign MMCVModulatedDeformConv2dV3 "
        "PyramidROIAlign_TRT MultilevelCropAndResize_TRT PriorBox_TRT GridAnchor_TRT "
        "GridAnchorRect_TRT Normalize_TRT CoordConvAC SpecialSlice_TRT FlattenConcat_TRT",
    ),
    (
        "reads what lies less than a pixel outside from the border, where the layer that it was "
        "exported of counts zeros; export with torchvision's `deform_conv2d` in its place",
        "DeformableConv2D",
    ),
    (
        "chooses boxes or regions by rules of its own; export the network without it, and do it "
        "behind the model",
        "DetectionOutput ExperimentalDetectronDetectionOutput "
        "ExperimentalDetectronGenerateProposalsSingleImage ExperimentalDetectronTopKROIs "
        "ExperimentalDetectronROIFeatureExtractor",
    ),
    (
        "takes the softmax of its weights in some versions and not in others; export with "
        "`torch.nn.functional.grid_sample` in its place",
        "MultiScaleDeformableAttnTRT MultiScaleDeformableAttnTRT2",
    ),
    (
        "adds up features by lists of which it is not known that they belong together; export with "
        "`index_add` in its place",
        "BEVPoolV2TRT",
    ),
    (
        "makes boxes for which nothing is written; export them as constants",
        "PriorBox PriorBoxClustered ExperimentalDetectronPriorGridGenerator",
    ),
)
REASONS: Mapping[str, str] = {name: why for why, names in _GROUPS for name in names.split()}


def refused(draft: Draft, match: Match) -> Any:
    """Nothing: says why the plugin stays, and what would help."""
    name = match.root.op
    raise Refused(f"`{name}` {REASONS[name]}")
