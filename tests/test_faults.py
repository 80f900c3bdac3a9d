"""What mends that of which onnxruntime complains."""

from __future__ import annotations

import pytest

from surgeon.faults import mend_of

UNEQUAL = "[ShapeInferenceError] Can't merge shape info. Both inferred and declared dimension"


def test_operands_of_several_types_are_mended_first() -> None:
    said = "Type (tensor(float16)) of output arg (a) does not match expected type (tensor(float))"
    assert mend_of(said) == "state-shapes"
    assert mend_of(said, ["Div"]) == "operand-types"
    assert mend_of(said, ["com.chip.Div"]) == "state-shapes"


@pytest.mark.parametrize(
    ("said", "mend"),
    [
        (f"Node (a) Op (Loop) {UNEQUAL} have values but they differ.", "state-shapes"),
        (f"Node () Op (Concat) {UNEQUAL} have values but they differ.", ""),  # the parts differ
        ("This is an invalid model. Model input (x0) does not have type information.", ""),
        (
            "Type Error: Type parameter (T) of Optype (Add) bound to different types",
            "operand-types",
        ),
        ("Type 'tensor(int64)' of input parameter (7) of operator (TopK)", "operand-types"),
        ("something else", None),
    ],
)
def test_recipes_are_named_where_they_help(said: str, mend: str | None) -> None:
    assert mend_of(said) == mend
