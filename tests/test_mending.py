"""What `verify` says to do: names, custom operators, approximate rules, and where to search."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from truth import parse
from typer.testing import CliRunner

from surgeon import provenance
from surgeon.cli import app
from surgeon.mending import with_mend
from surgeon.verify import Verdict, verify

FIRST = """g (int64[n,t] ids, float[n,t] m) => (float[n,t] y)
    { f = Cast <to = 1> (ids) y = Mul (f, m) }"""
OTHER = """g (int64[n,t] t0, float[n,t] t1) => (float[n,t] t9)
    { f = Cast <to = 1> (t0) t9 = Mul (f, t1) }"""
HALF = "float32-in-float16/multiplied-in-halves"


def logged(model: onnx.ModelProto, rules: dict[str, int], recipe: str = "mine") -> onnx.ModelProto:
    """The model with a log of one run."""
    run = {"surgeon": "1", "recipes": [{"name": recipe, "sha256": "0"}], "rules": rules}
    onnx.helper.set_model_props(model, {provenance.KEY: json.dumps([run])})
    return model


def test_other_names_are_paired_by_types_and_order() -> None:
    found = verify(parse(FIRST), parse(OTHER))
    assert found.status == "broken"
    assert found.detail == "the inputs changed: `ids`, `m` left; `t0`, `t1` came"
    assert found.mend == (
        "If `t0` is `ids`, `t1` is `m`, `t9` is `y`, as types and order say, "
        "`surgeon extract B OUT --from ids=t0 --from m=t1 --to y=t9` gives B these names."
    )


def test_what_the_mend_of_names_says_helps(tmp_path: Path) -> None:
    before, after, out = (str(tmp_path / f"{name}.onnx") for name in "abc")
    onnx.save(parse(FIRST), before)
    onnx.save(parse(OTHER), after)
    found = verify(before, after)
    command = found.mend.split("`")[-2].split()[1:]
    command[1:3] = [after, out]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert verify(before, out).status == "equivalent"


def test_another_order_has_a_command_too() -> None:
    swapped = parse(FIRST.replace("int64[n,t] ids, float[n,t] m", "float[n,t] m, int64[n,t] ids"))
    found = verify(parse(FIRST), swapped)
    assert found.detail == "the order of the inputs changed: ['m', 'ids'], not ['ids', 'm']"
    assert found.mend == (
        "`surgeon extract B OUT --from ids --from m --to y` gives B the interface of A."
    )


@pytest.mark.parametrize(
    "text",
    [
        OTHER.replace("int64[n,t] t0", "int32[n,t] t0"),
        OTHER.replace("float[n,t] t1", "float[n,t,1] t1"),
        OTHER.replace("float[n,t] t1", "float[n,t] t1, float[n] t2"),
    ],
)
def test_types_that_do_not_pair_name_no_command(text: str) -> None:
    assert verify(parse(FIRST), parse(text)).mend == ""


def custom(text: str) -> onnx.ModelProto:
    return parse(
        f"g (float[n] x) => (float[n] y) {{ {text} }}", domains=', "my": 1, "trt.plugins": 1'
    )


def test_operators_that_nothing_declares_name_the_options_and_the_log() -> None:
    models = custom("y = Relu (x)"), logged(custom("y = my.Silu (x)"), {})
    plain = verify(*models)
    assert (plain.status, plain.custom_operators) == ("broken", ("my.Silu",))
    assert plain.mend == (
        "Name the recipe that says with its `functions` what they compute (`--recipe FILE`), or "
        "let B hold them, which then only runs: `--custom my.Silu`."
    )
    assert with_mend(plain, models).mend == (f"{plain.mend[:-1]}; B's log names the recipe `mine`.")


def test_operators_of_a_bundled_recipe_name_it() -> None:
    models = custom("y = Relu (x)"), custom("y = trt.plugins.LayerNorm (x)")
    found = with_mend(verify(*models), models)
    assert found.mend == "Name the recipe that declares it: `--recipe replace-custom`."


def scaled(factor: float) -> onnx.ModelProto:
    return parse(
        f"g (float[n,8] x) => (float[n,8] y) <float f = {{{factor}}}> {{ y = Mul (x, f) }}"
    )


def test_rules_of_a_log_that_approximate_name_the_tolerance() -> None:
    models = scaled(1), logged(scaled(1.004), {HALF: 3, "no-ops/neutral": 1})
    found = with_mend(verify(*models), models)
    assert found.status == "differs"
    assert found.mend == (
        f"A log names rules that approximate (`{HALF}`), and their bound of 0.02 of an output's "
        "spread holds: where that is meant, say `--tolerance 0.02`."
    )
    assert verify(*models, allow_approximate=0.02).status == "equivalent"


@pytest.mark.parametrize(
    ("factor", "rules"), [(2.0, {HALF: 3}), (1.004, {"no-ops/neutral": 1}), (1.004, {})]
)
def test_else_a_difference_is_searched_for(factor: float, rules: dict[str, int]) -> None:
    models = scaled(1), logged(scaled(factor), rules)
    found = with_mend(verify(*models), models)
    assert found.mend == "`surgeon verify A B --bisect` finds the first value at which they part."
    assert with_mend(verify(*models), models, searched=True).mend == ""


def test_what_was_not_run_is_not_searched(tmp_path: Path) -> None:
    for name in "xz":
        text = f"g (float[2] {name}) => (float[2] y) {{ y = Relu ({name}) }}"
        onnx.save(parse(text), tmp_path / f"{name}.onnx")
    paths = [str(tmp_path / f"{name}.onnx") for name in "xz"]
    done = CliRunner().invoke(app, ["verify", *paths, "--bisect"])
    assert "nothing to bisect: the two were not compared" in done.output


def test_runs_that_made_both_say_nothing_of_their_difference() -> None:
    models = logged(scaled(1), {HALF: 3}), logged(scaled(1.004), {HALF: 3})
    assert "--bisect" in with_mend(verify(*models), models).mend


def test_an_equivalent_pair_needs_nothing() -> None:
    models = scaled(1), scaled(1)
    assert with_mend(Verdict("equivalent", ""), models).mend == ""


def test_the_mend_is_printed_and_in_json(tmp_path: Path) -> None:
    before, after = str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")
    onnx.save(parse(FIRST), before)
    onnx.save(parse(OTHER), after)
    said = CliRunner().invoke(app, ["verify", before, after])
    assert "mend: If `t0` is `ids`" in " ".join(said.output.split())
    quiet = CliRunner().invoke(app, ["verify", before, after, "--quiet"])
    assert "mend: If `t0` is `ids`" in " ".join(quiet.output.split())
    plain = CliRunner().invoke(app, ["verify", before, after, "--json"])
    assert json.loads(plain.output)["mend"].startswith("If `t0` is `ids`")


ROUNDED = {
    "levels": "q = QuantizeLinear (a, s, z) b = DequantizeLinear (q, s, z)",
    "halves": "h = Cast <to = 10> (a) b = Cast <to = 1> (h)",
}


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("levels", "B is quantised, and A is not: say how far off it may be, `--tolerance 0.1`"),
        ("halves", "B computes in halves, and A does not: say how far off it may be, "),
    ],
)
def test_what_rounds_where_the_other_does_not_asks_for_a_tolerance(way: str, said: str) -> None:
    text = "g (float[n,8] x) => (float[n,8] b) <float s = {0.03}, int8 z = {0}> { a = Tanh (x) "
    models = parse(f"{text} b = Identity (a) }}"), parse(f"{text} {ROUNDED[way]} }}")
    found = with_mend(verify(*models), models)
    assert found.status == "differs"
    assert said in found.mend
    assert "--bisect" in found.mend
    tolerance = float(found.mend.partition("--tolerance ")[2].partition("`")[0])
    assert verify(*models, allow_approximate=tolerance).status == "equivalent"
