"""What `import surgeon` gives: the names that it promises, and no more."""

import inspect
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from command_files import net

import surgeon
from surgeon.errors import RecipeError, SurgeonError

__all__ = ["net"]  # a fixture of `command_files`


def test_a_submodule_does_not_hide_the_function_of_its_name() -> None:
    code = (
        "import surgeon, surgeon.surgery, surgeon.verify, surgeon.export\n"
        "from surgeon.verify import Verdict\n"
        "assert callable(surgeon.verify) and callable(surgeon.export) and callable(surgeon.apply)\n"
        "assert surgeon.Verdict is Verdict and surgeon.verify is surgeon.verify\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_face_holds_what_it_names() -> None:
    for name in surgeon.__all__:
        assert getattr(surgeon, name) is not None
        assert name in dir(surgeon)
    assert set(dir(surgeon)) == {*surgeon.__all__, "__version__"}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = surgeon.nothing


def test_the_annotations_of_functions_can_be_read() -> None:
    for name in surgeon.__all__:
        function = getattr(surgeon, name)
        if inspect.isfunction(function):
            assert get_type_hints(function).keys() >= inspect.signature(function).parameters.keys()


def test_a_rule_in_python_is_a_recipe_too(net: Path, tmp_path: Path) -> None:
    @surgeon.rule("h = Neg (x)\ny = Neg (h)", why="Twice turned round.", exact="bit")
    def double_neg(build: Any, match: Any) -> Any:
        return build.op("Identity", match.values["x"])

    result = surgeon.apply(net, double_neg)
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"
    assert sum(result.report.after.values()) == 2
    with pytest.raises(SurgeonError):
        surgeon.apply(net, "no-such-recipe")


def test_what_is_no_model_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(surgeon.RecipeError, match="`int` is no model"):
        surgeon.apply(3, "clean")
    with pytest.raises(surgeon.ModelError, match="no such file"):
        surgeon.verify(tmp_path / "a.onnx", tmp_path / "b.onnx")


def test_looking_needs_no_command(net: Path) -> None:
    assert surgeon.inspect(net).operators
    assert surgeon.difference(net, net).same


def test_one_text_stands_where_several_may(net: Path) -> None:
    result = surgeon.apply(net, "exp-forms", allow="contract", assume="n >= 1")
    assert result.report.assumptions == surgeon.apply(net, assume=["n >= 1"]).report.assumptions
    with pytest.raises(surgeon.RecipeError, match="`all` is not a value of `allow`"):
        surgeon.apply(net, allow="all")
    (name,) = (value.name for value in surgeon.inspect(net).outputs)
    assert surgeon.extract(net, outputs=name).nodes == surgeon.extract(net, outputs=[name]).nodes


@pytest.mark.parametrize("option", ["shape", "values", "inputs"])
def test_options_by_name_are_no_texts(option: str, net: Path) -> None:
    with pytest.raises(surgeon.RecipeError, match=f"`{option}` is a `str`, and no mapping"):
        surgeon.apply(net, "clean", **{option: "x=1,2"})


def test_a_result_is_told_in_a_line(net: Path) -> None:
    result = surgeon.apply(net)
    assert repr(result) == f"<surgeon.Result of {net}: unchanged, 4 nodes -> 4>"


def test_a_rule_whose_function_gives_no_tensor_is_at_fault(net: Path) -> None:
    @surgeon.rule("y = Neg (x)", exact="bit")
    def forgetful(build: Any, match: Any) -> Any:
        build.op("Identity", match.values["x"])

    result = surgeon.apply(net, forgetful)
    assert result.report.status == "unchanged"
    assert "its function gave NoneType, not a tensor that `op` made" in result.report.failures[0]


def test_a_rule_whose_function_makes_a_node_of_no_operator_is_at_fault(net: Path) -> None:
    @surgeon.rule("y = Neg (x)", exact="bit")
    def misspelt(build: Any, match: Any) -> Any:
        return build.op("Rellu", match.values["x"])

    result = surgeon.apply(net, misspelt)
    assert result.report.status == "unchanged"
    assert "`Rellu` is no standard operator" in result.report.failures[0]


def test_a_rule_whose_function_gives_an_operator_an_attribute_of_no_opset_is_at_fault(
    net: Path,
) -> None:
    @surgeon.rule("y = Neg (x)", exact="bit")
    def misspelt(build: Any, match: Any) -> Any:
        return build.op("Softmax", match.values["x"], axi=1)

    failure = surgeon.apply(net, misspelt).report.failures[0]
    assert "has no attribute `axi`" in failure
    assert "plugin" not in failure


def test_a_rule_whose_function_reads_what_it_replaces_is_at_fault(net: Path) -> None:
    @surgeon.rule("y = Neg (x)", exact="bit")
    def itself(build: Any, match: Any) -> Any:
        return match.values["y"]

    @surgeon.rule("y = Neg (x)", exact="bit")
    def of_itself(build: Any, match: Any) -> Any:
        return build.op("Abs", match.values["y"])

    for each in (itself, of_itself):
        result = surgeon.apply(net, each, verify=False)
        assert result.report.status == "unchanged"
        assert "is made of the value that it replaces" in result.report.failures[0]


def test_a_rule_whose_function_gives_too_many_tensors_is_at_fault(net: Path) -> None:
    @surgeon.rule("y = Neg (x)", exact="bit")
    def twice(build: Any, match: Any) -> Any:
        return match.values["x"], match.values["x"]

    assert "it gave 2 tensors for 1 outputs" in surgeon.apply(net, twice).report.failures[0]


def test_a_rule_may_be_of_anything_that_can_be_called(net: Path) -> None:
    def kept(reason: str, build: Any, match: Any) -> Any:
        raise surgeon.Refused(reason)

    class Kept:
        def __call__(self, build: Any, match: Any) -> Any:
            raise surgeon.Refused("not here")

    for function in (partial(kept, "not here"), Kept()):
        made = surgeon.rule("y = Neg (x)", exact="bit")(function)
        assert surgeon.apply(net, made).report.misses[0].reason == "not here"


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"match": None}, "`match` is a `NoneType`, and no text"),
        ({"where": ["z.rank == 2"]}, "unknown name `z`"),
        ({"exact": "bit", "bound": 0.1}, "`bound` is 0.1 of a rule that is `bit`"),
        ({"function": 3}, "`int` is no function"),
    ],
)
def test_what_a_rule_says_is_read_where_it_is_written(options: dict[str, Any], what: str) -> None:
    function = options.pop("function", lambda build, match: None)
    with pytest.raises(RecipeError, match=re.escape(what)):
        surgeon.rule(**{"match": "y = Neg (x)", **options})(function)


def test_texts_may_come_from_a_generator_and_no_number_stands_for_them(net: Path) -> None:
    result = surgeon.apply(net, "clean", keep=(name for name in ["Neg"]))
    assert not result.model.changed
    for options in ({"allow": None}, {"assume": 5}, {"opset": True}, {"reference": 5}):
        with pytest.raises(RecipeError):
            surgeon.apply(net, "clean", **options)  # type: ignore[arg-type]


def test_a_target_may_be_a_path_and_is_no_number(net: Path, tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("operators: [Neg]\n")
    assert surgeon.inspect(net, target=own).fit == surgeon.inspect(net, target=str(own)).fit
    assert surgeon.apply(net, target=own).report.status
    with pytest.raises(RecipeError, match="`target` is a `int`, and no name or path"):
        surgeon.apply(net, target=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"seeds": ()}, "`()` is no list of seeds"),
        ({"inputs": {"x": [1.0]}}, "how input `x` is drawn is a `list`, and no text"),
        ({"allow_approximate": "1"}, "'1' is no error that can be allowed"),
        ({"reference": 3}, "`reference` is a `int`"),
    ],
)
def test_a_comparison_is_asked_for_in_words_that_there_are(
    options: dict[str, Any], what: str, net: Path
) -> None:
    with pytest.raises(RecipeError, match=re.escape(what)):
        surgeon.verify(net, net, **options)


def test_a_check_may_be_asked_once_at_the_least_and_its_data_be_one_path(
    net: Path, tmp_path: Path
) -> None:
    for most in (0, "3", True):
        with pytest.raises(RecipeError, match="most"):
            surgeon.reduce(net, lambda path: True, most=most)  # type: ignore[arg-type]
        with pytest.raises(RecipeError, match="most"):
            surgeon.adapt(net, lambda path: True, most=most)  # type: ignore[arg-type]
    with pytest.raises(RecipeError, match=r"nothing\.npz"):
        surgeon.reduce(net, lambda path: True, data=str(tmp_path / "nothing.npz"))
