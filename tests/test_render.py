"""What is printed: strangers' text made harmless, and every part of a report in words."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Group

from surgeon import render
from surgeon.batch import Row
from surgeon.dividing import Division
from surgeon.errors import LeftoverError, Location, ModelError
from surgeon.explaining import Asked, Explanation
from surgeon.recipe import Recipe
from surgeon.refusing import refuse_leftovers
from surgeon.render import checks, words
from surgeon.render.batch import batch
from surgeon.report import Change, Missed, Refusal, Report
from surgeon.verify import Comparison, NotCompared, OutputCheck, Verdict

EVIL = "a\x1b[31mb\n\u202ec[bold]d[/bold]"


def change(rule: str = "to-one", contract: str | None = None) -> Change:
    return Change(
        rule=rule,
        recipe="adaptive-pool",
        why="An output size of 1x1 is the mean over the whole plane.",
        exact="rounding",
        contract=contract,
        node="node '/pool' (aten.adaptive_avg_pool2d)",
        before=("adaptive_avg_pool2d", "Shape", "Shape"),
        after=("GlobalAveragePool",),
        location="recipes/adaptive-pool.yaml:11:5",
    )


def missed(matched: int = 1, reason: str = "`x.rank == 4` is not provable") -> Missed:
    return Missed(
        rule="uneven",
        recipe="adaptive-pool",
        node="node '/pool' (aten.adaptive_avg_pool2d)",
        matched=matched,
        total=2,
        reason=reason,
        location="recipes/adaptive-pool.yaml:30:9",
    )


def output(name: str = "y", **changed: object) -> OutputCheck:
    fields: dict[str, object] = {
        "name": name,
        "dtype": "float32",
        "max_absolute": 2e-7,
        "max_relative": 1e-7,
        "ulp": 1.0,
        "tolerance": 1e-4,
        "agrees": True,
    }
    return OutputCheck(**{**fields, **changed})  # type: ignore[arg-type]


def verdict(status: str = "equivalent", *outputs: OutputCheck, **changed: object) -> Verdict:
    comparison = Comparison({"batch": 2}, 0, "witness", outputs or (output(),))
    fields: dict[str, object] = {"comparisons": (comparison,), **changed}
    return Verdict(status, "1 output agrees at 1 input", **fields)  # type: ignore[arg-type]


def report(**changed: object) -> Report:
    fields: dict[str, object] = {
        "source": "in.onnx",
        "recipes": ("adaptive-pool",),
        "changes": (change(), change()),
        "misses": (missed(),),
        "housekeeping": {"constants folded": 3, "equal nodes merged": 1},
        "remarks": ("3 initializers are constants",),
        "assumptions": ("t % 32 == 0",),
        "before": {"aten.adaptive_avg_pool2d": 2, "Shape": 4, "Conv": 1, "Relu": 5},
        "after": {"GlobalAveragePool": 2, "Conv": 3, "Relu": 5},
        "verdict": verdict(),
        "pieces": {"compared": 2, "compared before": 5, "not compared: it is random": 1},
        "seconds": {"load": 0.25, "sweep": 1.5},
        "opset": 17,
    }
    return Report(**{**fields, **changed})  # type: ignore[arg-type]


def said(found: Report, **options: bool) -> str:
    return render.text(render.report(found, **options))


def test_text_of_strangers_is_one_line_without_hidden_characters() -> None:
    assert words.clean(EVIL) == r"a\x1b[31mb\n\u202ec[bold]d[/bold]"
    assert words.clean("höhe 高さ → ok") == "höhe 高さ → ok"
    assert words.clean("a\udc80b") == r"a\udc80b"


def test_a_long_name_loses_its_middle() -> None:
    short = words.name("/layers" * 1000)
    assert len(short) <= words.NAME
    assert " ... " in short


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1,023 bytes"),
        (1024, "1 KiB"),
        (200_000, "195 KiB"),
        (1_023_999, "1,000 KiB"),
        (1024**2, "1 MiB"),
        (5 * 1024**4, "5,120 GiB"),
    ],
)
def test_sizes_are_readable(number: int, expected: str) -> None:
    assert words.size(number) == expected


def test_lists_and_counts() -> None:
    assert words.listed([]) == ""
    assert words.listed(["a"]) == "a"
    assert words.listed(["a", "b", "c"]) == "a, b and c"
    assert words.listed(list("abcde"), 2) == "a, b and 3 more"
    assert words.count(1, "node") == "1 node"
    assert words.count(1234, "node") == "1,234 nodes"
    assert words.seconds(0.0123) == "0.012 s"
    assert words.seconds(61.2) == "61 s"
    assert words.shape(None) == "of unknown rank"
    assert words.shape([1, "t", None]) == "[1, t, ?]"


def test_an_error_says_what_where_and_how_to_mend_it() -> None:
    error = ModelError("the file is empty", where=Location("a.onnx", 2, 3), mend="Export it again.")
    expected = "error: the file is empty\n   at: a.onnx:2:3\n mend: Export it again.\n"
    assert render.text(render.error(error)) == expected


def test_a_report_tells_what_went_and_what_came() -> None:
    text = said(report())
    lines = [line.split() for line in text.splitlines()]
    assert "adaptive-pool: 12 nodes -> 10" in text
    assert ["aten.adaptive_avg_pool2d", "2", "-", "gone"] in lines
    assert ["Shape", "4", "-", "gone"] in lines
    assert ["GlobalAveragePool", "-", "2", "new"] in lines
    assert ["Conv", "1", "3", "+2"] in lines
    assert ["1", "other", "operator", "5", "5"] in lines
    assert not any(line[:1] == ["Relu"] for line in lines)


def test_a_report_tells_which_rules_fired_and_why() -> None:
    text = said(report())
    assert "2 x  adaptive-pool/to-one  rounding" in text
    assert "An output size of 1x1 is the mean over the whole plane." in text
    assert "3 constants folded, 1 equal node merged" in text
    assert "- 3 initializers are constants" in text
    assert "- t % 32 == 0" in text
    assert "1.8 s (load 0.25 s, sweep 1.5 s)" in text


def test_a_contract_is_quoted_with_its_rules() -> None:
    text = said(report(changes=(change("any-batch", contract="extends: any batch"),)))
    assert "- extends: any batch (adaptive-pool/any-batch)" in text


def test_where_nothing_fired_the_nearest_misses_are_printed() -> None:
    same = {"Relu": 5}
    text = said(report(changes=(), before=same, after=same, verdict=None, pieces={}))
    assert "no rule fired" in text
    assert "node '/pool' (aten.adaptive_avg_pool2d)" in text
    assert "adaptive-pool/uneven at recipes/adaptive-pool.yaml:30:9" in text
    assert "1 of 2 nodes matched; `x.rank == 4` is not provable" in text
    assert "nothing to compare: nothing was changed" in text


def test_where_clean_has_nothing_to_do_no_misses_are_printed() -> None:
    same = {"Relu": 5}
    idle = report(changes=(), before=same, after=same, verdict=None, pieces={})
    idle = idle._replace(recipes=("clean",))
    assert "nothing to do" in said(idle)
    assert "Nearest misses" not in said(idle)
    assert "Nearest misses" in said(idle, verbose=True)


def test_misses_stay_out_of_the_way_of_a_success_unless_asked_for() -> None:
    assert "Nearest misses" not in said(report())
    verbose = said(report(), verbose=True)
    assert "Nearest misses" in verbose
    assert "adaptive_avg_pool2d, 2 x Shape -> GlobalAveragePool" in verbose
    assert "Relu" in verbose


def test_of_many_misses_the_nearest_come_first() -> None:
    many = (*(missed(0, f"reason {n}") for n in range(9)), missed(2, "so near"))
    text = said(report(changes=(), misses=many))
    assert text.index("so near") < text.index("reason 0")
    assert "and 4 more" in text


def test_a_result_that_was_not_compared_says_so() -> None:
    assert "the whole model was not compared: that was not asked for" in said(report(verdict=None))


def test_a_report_tells_how_many_rewrites_were_compared_by_themselves() -> None:
    text = said(report())
    assert "2 compared with what they replace, 5 like one of these" in text
    assert "1 not compared: it is random" in text


def test_a_verdict_tells_inputs_sizes_and_the_largest_error() -> None:
    text = render.text(render.verdict(verdict()))
    assert text.startswith("equivalent: 1 output agrees at 1 input")
    assert "1 input  against witness  at batch=2, seeds 0" in text
    assert "agrees  largest error 1e-07 of its spread (allowed 0.0001), 2e-07 absolute" in text
    doubted = output(max_relative=0.002, doubted=True, weak="rounding alone moves the original's")
    told = " ".join(render.text(render.verdict(verdict("runs", doubted))).split())
    assert "0.002 of its spread (allowed 0.0001, and rounding alone moves the original's" in told


def test_a_verdict_never_says_proven() -> None:
    for status in ("equivalent", "runs", "differs", "broken"):
        assert "prove" not in render.text(render.verdict(verdict(status))).lower()


def test_a_verdict_tells_what_differs_first() -> None:
    bad = output(agrees=False, max_relative=0.5, max_absolute=3.0)
    first = Comparison({"t": 1}, 0, "witness", (output(max_relative=0.9),))
    second = Comparison({"t": 2}, 0, "witness", (bad,))
    text = render.text(render.verdict(verdict("differs", comparisons=(first, second))))
    assert "differs  largest error 0.5 of its spread" in text


def test_a_verdict_tells_what_it_does_not_cover() -> None:
    found = verdict(
        "runs",
        output(weak="no input moves it"),
        not_compared=(NotCompared("batch=3", "the original does not run there"),),
        custom_operators=("my.domain.Op",),
    )
    text = render.text(render.verdict(found))
    assert "not compared: batch=3: the original does not run there" in text
    assert "weak on 1 input: output `y`: no input moves it" in text
    assert "onnxruntime lacks: my.domain.Op" in text


def explained(found: Report, label: str | None = None) -> Explanation:
    operator = "" if label is None else label.rpartition(".")[2].rstrip(")")
    asked = None if label is None else (Asked(label, "", operator, frozenset({label})),)
    return Explanation(found, asked, frozenset())


def test_names_of_strangers_reach_no_terminal_as_they_are() -> None:
    evil = report(
        source=EVIL,
        remarks=(EVIL,),
        before={EVIL: 2},
        after={EVIL + "x": 3},
        misses=(missed(reason=EVIL),),
        verdict=verdict("runs", output(EVIL), not_compared=(NotCompared(EVIL, EVIL),)),
    )
    for text in (
        said(evil, verbose=True),
        render.text(render.explanation(explained(evil))),
        render.text(render.explanation(explained(evil, missed().node))),
        render.html(render.report(evil, verbose=True)),
    ):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "[bold]d[/bold]" in text  # not taken for markup


def test_an_explanation_groups_equal_reasons() -> None:
    found = report(misses=(missed(), missed(), missed(2, "another")))
    text = render.text(render.explanation(explained(found)))
    assert text.index("1 x  adaptive-pool/uneven") < text.index("2 x  adaptive-pool/uneven")
    assert "1 of 2 nodes matched; `x.rank == 4` is not provable" in text


def test_reasons_that_differ_in_names_alone_are_one() -> None:
    found = report(misses=tuple(missed(reason=f"node '/{n}' (ai.onnx.Add) it is") for n in "ab"))
    text = render.text(render.explanation(explained(found)))
    assert "2 x  adaptive-pool/uneven" in text
    assert "node '/a' or '/b' (ai.onnx.Add) it is" in text


def test_an_explanation_of_one_node_tells_what_fired_there_too() -> None:
    label = "node '/pool' (aten.adaptive_avg_pool2d)"
    text = render.text(render.explanation(explained(report(), label)))
    assert "Fired here" in text
    assert "is not compared here" in text
    assert "Did not fire here" in text
    other = render.text(render.explanation(explained(report(), "node 'z' (ai.onnx.Relu)")))
    assert "No rule of `adaptive-pool` ends at `Relu`." in other


def test_explanation_data_is_json() -> None:
    plain = render.explanation_data(explained(report()))
    assert json.loads(json.dumps(plain))["misses"][0]["location"].endswith(":30:9")


def test_a_page_stands_by_itself() -> None:
    page = render.html(render.report(report()))
    assert page.lstrip().startswith("<!DOCTYPE html>")
    assert "adaptive-pool" in page


def test_what_was_refused_is_the_first_reason_why_a_node_is_left() -> None:
    refusal = Refusal(
        *("real-of-complex", "aten-nn", "node 'a' (aten.angle)", "the replacement differs"),
        *({"b": 3}, "normal", 0, 1.0, 1.0),
    )
    with pytest.raises(LeftoverError) as caught:
        refuse_leftovers(report(after={"aten.angle": 1}, refusals=(refusal,)))
    told = "`aten.angle` left, which no runtime knows (real-of-complex at node 'a' (aten.angle): "
    assert caught.value.what.startswith(told + "the replacement differs; uneven: `x.rank")


def test_a_command_to_be_copied_is_one_line_however_narrow_the_terminal() -> None:
    ends = tuple(part for i in range(9) for part in ("--to", f"/layers.{i}/attn/Expand_output_0"))
    found = Division(("Equal",), "first", 3, 9, ("x",), ends, ends)
    lines = render.text(render.division(found, Path("in.onnx")), width=40).splitlines()
    assert lines[-2] == f"  surgeon extract in.onnx FRONT.onnx {' '.join(ends)}"
    assert lines[-1] == f"  surgeon extract in.onnx REST.onnx {' '.join(ends)}"
    line = words.indented(words.command(f"Try: surgeon apply {'clean ' * 20}OUT", "dim"))
    assert render.text(Group(line), width=40).splitlines() == [
        f"  Try: surgeon apply {'clean ' * 20}OUT"
    ]


def test_why_nothing_was_compared_is_said_once() -> None:
    why = "no input was found: the run fails"
    gaps = (NotCompared("any input", why), NotCompared("output `z`", "it is random"))
    said = f"it loads, and was not compared: {why}"
    found = replace(verdict("runs", not_compared=gaps), detail=said, comparisons=())
    text = render.text(checks.verdict(found), width=200)
    assert text.count(why) == 1
    assert "output `z`: it is random" in text


def test_a_batch_tells_which_files_are_not_all_that_was_asked_for() -> None:
    agrees = ("equivalent", "1 output agrees")
    said = ("not on the list of npu: `Where`",)
    rows = [Row("a.onnx", "repaired", verdict=agrees, remarks=said, left_out=said)]
    text = render.text(batch([*rows, Row("b.onnx", "repaired", verdict=agrees)]))
    assert text.splitlines()[0] == "1  repaired  changed, and the result was checked"
    assert "what was asked for was not all done: see Remarks" in text


def test_a_recipe_without_rules_is_listed_by_its_steps() -> None:
    names = ("any-size", "camera", "lost-sums", "gelu-fuse")
    listed = render.text(render.recipes([Recipe.load(name) for name in names]), width=200)
    assert listed.count("  1 step  ") == 3
    assert "0 rules" not in listed
