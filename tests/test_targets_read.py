"""The lists of operators that were read by hand, and what the table of targets has of them."""

import json
import re

import onnx
import pytest
from command import run
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

from surgeon.document import read
from surgeon.targets import make, target, targets

GIVEN = read(make.READ).plain()
# Domains that no schema is at hand for: the runtimes' own, and what they read of others.
OWN = {"org.openvinotoolkit", "mmdeploy"}


def known() -> set[str]:
    """The operators of ONNX, former ones too, and of onnxruntime, as recipes write them."""
    schemas = [*onnx.defs.get_all_schemas_with_history(), *get_all_operator_schema()]
    return {
        schema.name if schema.domain in ("", "ai.onnx") else f"{schema.domain}.{schema.name}"
        for schema in schemas
    }


def test_the_table_has_what_was_read() -> None:
    table = json.loads(make.TABLE.read_text(encoding="utf-8"))
    rows = make.by_hand()
    assert rows.keys() == GIVEN.keys()
    assert {name: table[name] for name in rows} == rows
    # Made anew without what else was read, the others stay as they are, and where they are.
    assert list(make.table({}, {}).items()) == list(table.items())


@pytest.mark.parametrize("name", GIVEN)
def test_each_list_says_where_it_is_from_and_names_operators_that_there_are(name: str) -> None:
    given = GIVEN[name]
    assert given.keys() <= {"title", "source", "opsets", "taken", "partly"}
    assert given["title"]
    assert re.search(r" of \S+/\S+ at [0-9a-f]{12}$| of \w+ [0-9.]+$", given["source"])
    operators = [*given["taken"], *given.get("partly", [])]
    assert len(operators) == len({*operators})
    there = {each for each in operators if each.rpartition(".")[0] not in OWN}
    assert there <= known() | {"com.microsoft.SimplifiedLayerNormalization"}  # OpenVINO's, beside
    wanted = target(name)
    assert (wanted.title, wanted.source) == (given["title"], given["source"])
    assert wanted.taken | wanted.partly == {*operators}


@pytest.mark.parametrize(
    ("name", "counted"),
    [  # by the rows of each document, as far as they name operators of ONNX
        *(("sentis", 144), ("barracuda", 73), ("burn", 161), ("migraphx", 162)),
        *(("onnx-mlir", 152), ("tidl", 57), ("esp-dl", 51), ("openvino", 234)),
        *(("paddle", 100), ("tinygrad", 171), ("tpu-mlir", 112), ("nxp", 108)),
    ],
)
def test_no_row_of_a_document_was_lost(name: str, counted: int) -> None:
    wanted = target(name)
    assert len(wanted.taken) + len(wanted.partly) == counted


@pytest.mark.parametrize(
    ("name", "taken", "partly", "refused"),
    [
        ("sentis", "GridSample STFT", "NonZero LSTM", "GRU If Loop QuantizeLinear"),
        ("barracuda", "Greater LSTM", "Gemm Resize", "Less Where Erf"),
        ("burn", "Einsum DeformConv ai.onnx.ml.Scaler", "MaxPool", "GlobalMaxPool Upsample"),
        ("migraphx", "com.microsoft.FastGelu LRN", "GridSample Scan", "Mish DFT STFT"),
        ("onnx-mlir", "Gelu NonZero", "Resize ArgMin", "GridSample RoiAlign EyeLike"),
        ("tidl", "HardSwish Exp", "Conv ReduceMean Erf", "Unsqueeze ReduceSum"),
        ("esp-dl", "PRelu Sigmoid", "Resize ReduceMean", "BatchNormalization ConvTranspose"),
        ("openvino", "NonMaxSuppression STFT", "SequenceAt", "Det LpPool Bernoulli"),
        ("paddle", "LSTM Dropout", "Mod IsInf", "GRU Einsum Tan"),
        (
            "tinygrad",
            "Einsum com.microsoft.QLinearAdd",
            "Resize",
            "LSTM NonMaxSuppression BitShift",
        ),
        ("tpu-mlir", "GRU Loop", "", "Gelu Selu Tan"),
        ("nxp", "LSTM com.microsoft.QGemm", "", "GRU Tan Softplus If QGemm"),
    ],
)
def test_what_documents_say_of_some(name: str, taken: str, partly: str, refused: str) -> None:
    wanted = target(name)
    assert wanted.taken >= {*taken.split()}
    assert wanted.partly >= {*partly.split()}
    assert (wanted.taken | wanted.partly).isdisjoint(refused.split())


def test_a_name_finds_the_list_of_its_newest_version() -> None:
    assert target("paddle").name == "paddle-1.6"
    assert target("sentis").name == "sentis-2.5"
    assert target("sentis").opsets == target("paddle").opsets == (7, 15)
    assert {"esp-dl", "onnx-mlir", "tpu-mlir"} <= {*targets()}


def test_the_help_names_each_list() -> None:
    stems = {re.sub(r"-[0-9].*", "", name) for name in targets()} - {"tensorrt"}
    for command in ("inspect", "apply"):
        said = run(command, "--help").output
        assert {stem for stem in stems if stem not in said} == set()
