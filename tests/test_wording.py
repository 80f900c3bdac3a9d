"""An error that leaves a call speaks of its arguments, and on the command line of options."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import run
from command_files import net, recipe, refused
from typer.main import get_command

import surgeon
from surgeon import wording
from surgeon.cli import COMMANDS, app
from surgeon.wording import in_python, place_in_python

__all__ = ["net"]


@pytest.mark.parametrize(
    ("said", "called"),
    [
        ("`--no-verify`", "`verify=False`"),
        ("say `--allow contract`.", 'say `allow="contract"`.'),
        ("`--shape x=1,3,height,-1`", '`shape={"x": [1, 3, "height", -1]}`'),
        ("`--shape INPUT=...`", '`shape={"INPUT": ...}`'),
        ("`--shape a=1 --shape b=2,n`", '`shape={"a": [1], "b": [2, "n"]}`'),
        ("`--value sr=16000`", '`values={"sr": 16000}`'),
        ("`--input ids=tokens(30522)`", '`inputs={"ids": "tokens(30522)"}`'),
        ("`--assume 'n == 1' --assume 'm <= 512'`", '`assume=["n == 1", "m <= 512"]`'),
        ("`--reference FILE.npz`", '`reference="FILE.npz"`'),
        ("`--custom my.Op`", '`custom=["my.Op"]`'),
        ("`--custom-ops libops.so`", '`surgeon.custom_ops("libops.so")`'),
        ("`--opset N`", "`opset=N`"),
        ("with `--timeout`", "with `timeout`"),
        ("`--report out.json`", "`error.report`"),
        ("`--external-data pack`", '`external_data="pack"`'),
        ("`surgeon extract IN OUT --to x`", "`surgeon extract IN OUT --to x`"),
        ("`--check --source FILE`", "`--check --source FILE`"),
        ("`--assume 'n == 1`", "`--assume 'n == 1`"),
    ],
)
def test_options_are_arguments(said: str, called: str) -> None:
    assert in_python(said) == called


def test_a_place_may_be_an_option() -> None:
    assert place_in_python("--shape") == "shape"
    assert place_in_python("--data x.npz") == 'data="x.npz"'
    assert place_in_python("net.onnx") == "net.onnx"


def test_each_option_is_one_and_each_argument_too() -> None:
    group = get_command(app)
    options = {
        name
        for command in COMMANDS
        for param in group.commands[command].params  # type: ignore[attr-defined]
        for name in param.opts
    }
    tables = (wording._MAPPINGS, wording._TEXTS, wording._NUMBERS)
    words = {**wording._FLAGS, **{key: name for table in tables for key, name in table.items()}}
    assert words.keys() <= options
    calls = [getattr(surgeon, name) for name in surgeon.__all__]
    functions = [each for each in calls if inspect.isfunction(each)] + [surgeon.Model.save]
    known = {name for each in functions for name in inspect.signature(each).parameters}
    assert {word.partition("=")[0] for word in words.values()} <= known


@pytest.mark.parametrize(
    ("given", "options", "phrases"),
    [
        ({"shape": {"q": [1]}}, ["--shape", "q=1"], ("shape: the model has no input `q`",)),
        ({"assume": "n % 2"}, ["--assume", "n % 2"], ("assume: surgeon cannot use",)),
        ({"values": {"q": 1}}, ["--value", "q=1"], ("values: the model has no input `q`",)),
        ({"data": "no.npz"}, ["--data", "no.npz"], ('data="no.npz": there is no such file',)),
        ({"target": "no"}, ["--target", "no"], ("target: there is no list of what `no` takes",)),
        (
            {"values": {"x": 1}},
            ["--value", "x=1"],
            ("values: input `x`: 1 number", '`shape={"x": [1, 4]}`'),
        ),
    ],
)
def test_one_refusal_in_both_ways(
    net: Path, given: dict[str, Any], options: list[str], phrases: tuple[str, ...]
) -> None:
    with pytest.raises(surgeon.RecipeError) as raised:
        surgeon.apply(net, "clean", **given)
    for phrase in phrases:
        assert phrase in str(raised.value)
    assert "--" not in str(raised.value)
    assert raised.value.where.startswith(options[0])  # type: ignore[union-attr]
    refused(run("apply", "clean", net, net.with_name("o.onnx"), *options), 2, options[0])


def test_what_a_result_lacks_is_said_so_too(net: Path) -> None:
    wrong = recipe(net.parent, "Sin (x)", "Cos (x)")
    with pytest.raises(surgeon.VerifyError) as raised:
        surgeon.apply(net, wrong, strict=True)
    said = "Read the report (`error.report`); leave out the recipe or the rule, or leave out "
    assert said + "`strict=True`." in str(raised.value)
    assert raised.value.report is not None


@pytest.mark.parametrize(
    "asked",
    [
        {"require": "equivalent"},
        {"reference": "onnxruntime"},
        {"data": "x.npz"},
        {"inputs": {"x": "ones"}},
        {"save_partial": True},
        {"keep_evidence": "found"},
    ],
)
def test_no_call_asks_for_a_comparison_that_it_leaves_out(
    net: Path, asked: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(surgeon.RecipeError, match="`verify=False` leaves out what another"):
        surgeon.apply(net, "clean", verify=False, **asked)


def test_what_rewrites_are_compared_on_may_be_given_without_the_whole(net: Path) -> None:
    result = surgeon.apply(net, "clean", verify=False, check=True, inputs={"x": "ones"})
    assert result.report.status == "unchecked"
    with pytest.raises(surgeon.RecipeError, match="leaves out what another"):
        surgeon.apply(net, "clean", verify=False, check=True, require="equivalent")


def test_parts_and_folders_refuse_the_same(net: Path, tmp_path: Path) -> None:
    with pytest.raises(surgeon.RecipeError, match="`verify=False` leaves out what another"):
        surgeon.extract(net, outputs=["b"], verify=False, require="equivalent")
    with pytest.raises(surgeon.RecipeError, match="`verify=False` leaves out what another"):
        surgeon.batch(net, tmp_path / "out", "clean", verify=False, reference="onnxruntime")
    with pytest.raises(surgeon.RecipeError, match="`memory` is a `str`, and no integer"):
        surgeon.batch(net, tmp_path / "out", "clean", memory="8G")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"shape": {"x": [1, None]}}, "shape: `None` is no length of a dimension of input `x`"),
        ({"shape": {"x": [True, 2]}}, "shape: `True` is no length of a dimension of input `x`"),
        ({"shape": {"x": [1, 2.0]}}, "shape: `2.0` is no length of a dimension of input `x`"),
        ({"shape": {"x": 2}}, "shape: the shape of input `x` is a `int`, and no list"),
        ({"shape": {"x": "1,n"}}, "mend: Give a list: [1, 'n']."),
        ({"shape": "x=1,2"}, "shape: `shape` is a `str`, and no mapping"),
        ({"data": {"x": np.zeros(2)}}, "data: `data` is a `dict`, and no path"),
        ({"data": np.zeros(2)}, "data: `data` is a `ndarray`, and no path"),
        ({"data": [{"x": np.zeros(2)}]}, "data: `data` is a `dict`, and no path"),
    ],
)
def test_what_is_of_another_kind_is_refused_in_words(
    net: Path, given: dict[str, Any], said: str
) -> None:
    for call in (
        lambda: surgeon.apply(net, "clean", **given),
        lambda: surgeon.verify(net, net, **given),
    ):
        with pytest.raises(surgeon.RecipeError) as raised:
            call()
        assert said in str(raised.value)


def test_numbers_of_numpy_are_numbers(net: Path) -> None:
    for dims in (np.array([1, 4]), [np.int64(1), 4]):
        report = surgeon.apply(net, "clean", shape={"x": dims}).report
        assert report.assumptions == ("x=[1, 4]",)
        assert surgeon.verify(net, net, shape={"x": dims}).status == "equivalent"


def test_a_command_is_no_function(net: Path) -> None:
    with pytest.raises(surgeon.RecipeError, match="fails: `fails` is a `str`, and no function"):
        surgeon.reduce(net, "trtexec {}")  # type: ignore[arg-type]
    with pytest.raises(surgeon.RecipeError, match="passes: `passes` is a `str`, and no function"):
        surgeon.adapt(net, "trtexec {}")  # type: ignore[arg-type]


def test_a_way_to_carry_data_is_one(net: Path, tmp_path: Path) -> None:
    with pytest.raises(surgeon.RecipeError, match="external_data: `inlined` is no way"):
        surgeon.Model.load(net).save(tmp_path / "o.onnx", external_data="inlined")
    assert not (tmp_path / "o.onnx").exists()


def test_what_a_search_requires_of_the_end_is_not_asked_on_the_way(net: Path) -> None:
    found = surgeon.adapt(net, lambda _: True, "clean", require="equivalent")
    assert found.result.report.status == "equivalent"
