"""Output shapes of other tools' operators, by the standard operator whose shape each has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import onnx

from surgeon import blocks
from surgeon.facts import ml, nchwc
from surgeon.facts.fact import Fact
from surgeon.facts.likeness import Form, by_form
from surgeon.facts.question import Question

_T = onnx.TensorProto
_ROUNDED = Form("Add", (0, 1))  # as its operand, or as the scales where these have more places
_QUANTISERS = ("ExtendedQuantizeLinear", "VitisQuantizeLinear")
_DEQUANTISERS = ("ExtendedDequantizeLinear", "VitisDequantizeLinear")
_LIKE_FIRST = (
    *("BFPQuantizeDequantize", "BFPFixNeuron", "MXQuantizeDequantize", "MXFixNeuron"),
    *("ExtendedInstanceNormalization", "VitisInstanceNormalization"),
)
DOMAINS: Mapping[str, Mapping[str, Form | Callable[[Question], list[Fact] | None]]] = (
    MappingProxyType(
        {
            blocks.DOMAIN: nchwc.TABLE,
            ml.DOMAIN: ml.TABLE,
            "qonnx.custom_op.general": dict.fromkeys(
                ("Quant", "IntQuant", "BipolarQuant", "Trunc", "FloatQuant"), _ROUNDED
            ),
            "org.openvinotoolkit": dict.fromkeys(
                (
                    "FakeQuantize",
                    "GroupNorm",
                    "ExperimentalDetectronGroupNorm",
                    "Normalize",
                    "Swish",
                ),
                Form("Identity", (0,)),
            ),
            "com.amd.quark": {
                **dict.fromkeys(_QUANTISERS, Form("Identity", (0,), 2)),
                **dict.fromkeys(_DEQUANTISERS, Form("Identity", (0,), 1)),
                **dict.fromkeys(_LIKE_FIRST, Form("Identity", (0,))),
            },
            "trt": {
                "TRT_FP8QuantizeLinear": Form("Identity", (0,), None, int(_T.FLOAT8E4M3FN)),
                "TRT_INT4QuantizeLinear": Form("Identity", (0,), None, int(_T.INT4)),
                "TRT_FP8DequantizeLinear": Form("Identity", (0,), 1),
                "TRT_INT4DequantizeLinear": Form("Identity", (0,), 1),
                "TRT_MXFP8DequantizeLinear": Form("Identity", (0,), None, int(_T.FLOAT)),
            },
        }
    )
)


def facts(domain: str, op: str, question: Question) -> list[Fact] | None:
    """What is known of the outputs of an operator of such a domain; None where nothing is."""
    form = DOMAINS[domain].get(op)
    if form is None:
        return None
    return by_form(form, question) if isinstance(form, Form) else form(question)
