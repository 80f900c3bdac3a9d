"""`surgeon recipes which`: complaints found by words."""

from __future__ import annotations

import re

import pytest
from command import run

from surgeon.complaints import complaints, operators_in
from surgeon.errors import RecipeError
from surgeon.recipe import bundled


def test_without_words_every_complaint_is_there() -> None:
    found = complaints()
    named = {word.strip("`,;()") for each in found for word in each.recipes.split()}
    assert len(found) > 50
    assert {name for name in bundled() if not name.startswith("for-")} <= named
    assert not any("](" in part for each in found for part in each)


def test_words_are_looked_for_in_any_case_and_all_of_them() -> None:
    (found,) = complaints(["FIXED AT EXPORT", "batch", "wanted", "any size", "items"])
    assert found.recipes.startswith("`any-batch`")


def test_an_operator_brings_the_recipes_about_it() -> None:
    assert complaints(["GridSample"])[-1].recipes == "`grid-forms`, `out-of-opset`"


def test_operators_that_are_words_of_any_sentence_are_meant_as_they_are_spelled() -> None:
    (where,) = complaints(["Where"])
    assert where.about == "Where: recipes with rules about it"
    assert all(re.search(r"\bIf\b", " ".join(each)) for each in complaints(["If"]))
    assert len(complaints(["where"])) > 10


def test_rows_that_are_about_a_word_stand_before_those_whose_help_names_it() -> None:
    about = [each.about for each in complaints(["Resize"])]
    assert next(
        at for at, text in enumerate(about) if text.startswith("Einsum, CumSum")
    ) < about.index("Resize: recipes with rules about it")
    assert about[-2].startswith("a smaller graph")
    assert not complaints(["quantize"])[0].about.startswith("ATen")


@pytest.mark.parametrize(
    ("message", "about"),
    [
        ("Unsupported ONNX opset version: 19", "a model whose opset is above"),
        ("No Op registered for GridSample with domain_version of 11", "ConstantFill, ImageScaler"),
        (
            "Type Error: Type parameter (T) of Optype (Add) bound to different types "
            "(tensor(float16) and tensor(float) in node ()",
            "operands whose types do not match",
        ),
        (
            "Type Error: Type 'tensor(float16)' of input parameter (x) of operator (Range) in node "
            "() is invalid.",
            "operands whose types do not match",
        ),
        (
            'Assertion failed: !attrs.count("reduction"): Attribute reduction is not supported.',
            "attributes that an older parser",
        ),
        (
            "The input tensor cannot be reshaped to the requested shape. Input shape:{1,80,128}, "
            "requested shape:{3,-1,4,32}",
            "a batch that was fixed",
        ),
        ("The following operators are not supported for frontend ONNX: ATen", "ATen nodes"),
        ("Failed to find kernel for FusedConv types are incompatible", "`com.microsoft` nodes"),
        ("Unsupported ONNX data type: STRING (8)", "strings"),
        ("int64 is not supported", "int64 in a network"),
        ("These Op Not Support: ONNX::GRU", "LSTM and GRU"),
        ("Dynamic shape is not supported for now", "sizes that are dynamic"),
        ("exceeds maximum protobuf size of 2GB", "weights in many data files"),
        ("[TRT] importPad: failed", "Pad, or pads that are computed"),
        ("Pad_Pad_14:out0", "Pad, or pads that are computed"),
        ("onnx_hardsigmoid", "activations"),
        ("operation_type='If'", "an If"),
        ("Attribute ceil_mode in operator MaxPool is not supported", "pools of `ceil_mode`"),
        ("Unexpected input data type. Actual: (tensor(double)) , expected:", "inputs or outputs"),
        ("however 'x' has been used as output names multiple times.", '"Duplicate definition'),
        ("ML Program: Rank 6 tensor not supported; max rank 5", "products of values"),
        ("The input shape ['batch', 3] is not support! please set the 'inputs'", "sizes that are"),
        ("Non-zero zero point is not supported", "zero points that are not 0"),
        ("IShuffleLayer applied to Reshape: reshape changes volume", "a batch that was fixed"),
        ("RuntimeError: Unsupported data type: FLOAT16", "bfloat16 or float16, where float32"),
        ("The model's opset version 18 is not supported, only opset 12 to 16", "a model whose op"),
        ("QNN: Failed to validate op ElementWiseMultiply_12", "what Qualcomm's QNN refuses"),
        ("Tensor rank 5 is not supported", "values of five axes"),
        ("Unsupported operator: ScaledDotProductAttention", "Attention (`ScaledDot"),
        ("asymmetric padding is not supported", "uneven pads"),
        ("Conv3D not supported", "convolutions and pools of volumes"),
        ("model too large", "weights in many data files"),
        ("strip weights", "a file without its weights"),
        ("fold batchnorm into conv", "a smaller graph"),
        ("IIfConditionalOutputLayer", "an If ("),
        ("error: (-215:Assertion failed) constBlobs.find(node_proto.input(1))", "sizes that are"),
        ("Found invalid zeroPt. zeroPt must be all zeros", "zero points that are not 0"),
    ],
)
def test_a_message_is_read_whatever_stands_around_what_it_means(message: str, about: str) -> None:
    assert complaints([message])[0].about.startswith(about)
    assert complaints(message.split())[0].about.startswith(about)


def test_words_of_english_are_no_operators_where_nothing_calls_them_so() -> None:
    assert operators_in("If the Shape does Not fit, Range and Size are wrong") == []
    assert operators_in("No importer registered for op: Mod") == ["Mod"]
    assert operators_in("Slice does not support axes; Range op is not supported") == [
        *("Slice", "Range")
    ]
    assert operators_in("If not supported, Loop may support it") == []
    assert operators_in("in `Where`, ONNX::Range and Slice(13)") == ["Where", "Range", "Slice"]
    assert operators_in("not supported by MNN: Not Support op GRU; Unsupported Range here") == [
        *("GRU", "Range")
    ]
    assert operators_in("SimplifiedLayerNormalization, reducel2") == [
        *("SimplifiedLayerNormalization", "ReduceL2")
    ]


def test_an_operator_that_a_message_names_brings_its_recipes_too() -> None:
    found = complaints(["No Op registered for GridSample with domain_version of 11"])
    assert found[1].about.startswith("GridSample: by cubics")
    assert found[-1].about == "GridSample: recipes with rules about it"


def test_a_type_that_a_message_names_counts_beside_an_operator() -> None:
    found = complaints(["Node /Cast: Unsupported data type INT64 for op Gather"])
    assert any(each.recipes.startswith("`clean int64-in-int32`") for each in found)


def test_a_sentence_about_nothing_finds_nothing() -> None:
    with pytest.raises(RecipeError, match="no complaint speaks of") as raised:
        complaints(["I want to eat pizza now"])
    assert "fewer words" in raised.value.mend


def test_other_names_are_found_as_they_are_called() -> None:
    assert "`rename`" in complaints(["rename"])[0].recipes


@pytest.mark.parametrize(
    ("word", "mend"),
    [
        ("GridSampl", "GridSample"),
        ("xyzzy", "fewer words"),
        ("zzz nonsense", "fewer words"),
        ("renamed", "Did you mean `rename`?"),
        ("MelWeightMatrix", "No recipe has rules about MelWeightMatrix."),
        ("no implementation for MelWeightMatrix(17) node", "No recipe has rules about MelW"),
    ],
)
def test_what_nothing_speaks_of(word: str, mend: str) -> None:
    with pytest.raises(RecipeError, match="no complaint speaks of") as raised:
        complaints([word, "of nothing"])
    assert mend in raised.value.mend


def test_the_command_says_so() -> None:
    said = run("recipes", "which", "GridSample").output
    assert "GridSample: by cubics" in said
    assert "grid-forms" in said
    assert run("recipes", "which", "xyzzy").exit_code == 2
