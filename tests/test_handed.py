"""What is given to the caller, where inputs have values in the file: the result loads as it is."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from truth import parse

import surgeon
from surgeon.runtime import Session
from surgeon.steps.asread import could_be_left
from surgeon.steps.ends import Ends

RNG = np.random.default_rng(0)
DEFAULTS = {  # a recipe, a graph whose second input has a value in the file, and that value
    "float32-ends": (
        "g (float16[n,16] x, float16[16] w) => (float16[n,16] y) { a = Mul (x, w) y = Exp (a) }",
        RNG.normal(size=16).astype(np.float16),
    ),
    "input-types": (
        "g (uint8[n,16] x, uint8[16] w) => (float[n,16] y)"
        "{ f = Cast <to = 1> (x) v = Cast <to = 1> (w) y = Mul (f, v) }",
        RNG.integers(1, 9, 16).astype(np.uint8),
    ),
    "channels-first": (
        "g (float[n,8,8,3] x, float[1,8,8,3] w) => (float[n,3,8,8] y) {"
        "t = Transpose <perm = [0, 3, 1, 2]> (x) v = Transpose <perm = [0, 3, 1, 2]> (w)"
        "y = Mul (t, v) }",
        RNG.normal(size=(1, 8, 8, 3)).astype(np.float32),
    ),
}


def with_value(text: str, value: np.ndarray) -> onnx.ModelProto:
    model = parse(text)
    model.graph.initializer.append(onnx.numpy_helper.from_array(value, "w"))
    return model


@pytest.mark.parametrize("recipe", DEFAULTS)
def test_an_input_with_a_value_in_the_file_stays_as_it_is(recipe: str) -> None:
    """The file said another type of it than its value has, and loaded nowhere."""
    model = with_value(*DEFAULTS[recipe])
    with surgeon.isolation():  # the optimisations of onnxruntime 1.29 end the process of halves
        result = surgeon.apply(model, recipe, require="equivalent")
    made = result.model.to_proto()
    Session(made)
    assert made.graph.input[1] == model.graph.input[1]
    assert made.graph.input[0] != model.graph.input[0]


def test_inspect_does_not_promise_it() -> None:
    for recipe in ("input-types", "channels-first"):
        model = with_value(*DEFAULTS[recipe])
        left = could_be_left(model)
        assert (left["types"] or left["order"]) == ("x",)


def test_what_does_not_load_with_its_new_interface_is_not_saved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is compared has the interface of the original."""

    def forgotten(self: Ends, proto: onnx.ModelProto) -> None:
        begin(self, proto)
        self.defaults = set()

    begin = Ends.__init__
    monkeypatch.setattr(Ends, "__init__", forgotten)
    said = "with the interface that it is given"
    for recipe, (text, value) in DEFAULTS.items():
        with pytest.raises(surgeon.VerifyError, match=said), surgeon.isolation():
            surgeon.apply(with_value(text, value), recipe)


def test_halves_that_a_body_reads_are_given_as_float32() -> None:
    """Compared with Casts in front of those that came in, onnxruntime loses `x/half`."""
    model = parse(
        "g (float16[n,16] x, bool c) => (float16[n,16] y, float16[n,16] z) { z = Relu (x)"
        "y = If (c) <then_branch = t () => (float16[n,16] p) { p = Neg (z) },"
        "            else_branch = e () => (float16[n,16] q) { q = Mul (x, z) }> }"
    )
    result = surgeon.apply(model, "float32-ends", require="equivalent").model.to_proto()
    assert {value.type.tensor_type.elem_type for value in result.graph.output} == {1}
    given = {"x": RNG.normal(size=(2, 16)).astype(np.float32), "c": np.array(False)}
    made = Session(result).run(given)
    whole = Session(model).run(given | {"x": given["x"].astype(np.float16)})
    assert (made["y"] == whole["y"].astype(np.float32)).all()


def test_an_output_that_the_file_gives_twice() -> None:
    model = parse(
        "g (float16[n,16] x) => (float16[n,16] y, float16[n,16] h) { h = Relu (x) y = Exp (h) }"
    )
    model.graph.output.append(model.graph.output[1])
    result = surgeon.apply(model, "float32-ends", require="equivalent").model.to_proto()
    assert [(v.name, v.type.tensor_type.elem_type) for v in result.graph.output] == [
        ("y", 1),
        ("h", 1),
        ("h", 1),
    ]
    assert [node.op_type for node in result.graph.node].count("Cast") == 3
