"""What a file says beside its graph: taken out, or set, and surgeon's own log is not lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from command import run
from command_files import refused
from onnx.helper import set_model_props
from truth import parse

import surgeon
from surgeon.recipe import HeaderStep, PlainMetadataStep, Recipe
from surgeon.render import log, text

NET = """g (float[n,4] x, bool c) => (float[n,4] y) <float[4] w = {1, 2, 3, 4}> {
  a = local.f (x)
  b = Add (a, w)
  y = If (c) <
    then_branch = t () => (float[n,4] p) { p = Exp (b) },
    else_branch = e () => (float[n,4] r) { r = Neg (b) }>
}
<domain: "local", opset_import: ["": 17]>
f (v) => (z) { u = Tanh (v) z = Neg (u) }"""
HEAD = "surgeon: 1\nname: r\nsteps:\n"
MAX = """  - rules:
      - id: as-max
        why: The larger of a number and its negative.
        exact: rounding
        match: y = Abs (x)
        replace: |
          n = Neg (x)
          y = Max (n, x)
"""


def noted() -> onnx.ModelProto:
    """A model with something to say at every place."""
    model = parse(NET, domains=', "local": 1', ir=10)
    graph = model.graph
    branch = graph.node[2].attribute[0]
    holders: list[Any] = [
        *(model, graph, *graph.node, *graph.input, *graph.output, *graph.initializer, branch),
        *(branch.g, *branch.g.node, *branch.g.output, model.functions[0]),
        *model.functions[0].node,
    ]
    for holder in holders:
        holder.doc_string = "said"
        if hasattr(holder, "metadata_props"):
            holder.metadata_props.add(key="stack", value="file.py, line 12")
    model.producer_name, model.producer_version = "pytorch", "2.5"
    return model


def without(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same, with nothing said at all."""
    plain = parse(NET, domains=', "local": 1', ir=10)
    plain.producer_name, plain.producer_version = model.producer_name, model.producer_version
    return plain


def test_all_that_is_said_leaves_and_nothing_else() -> None:
    model = noted()
    before = model.SerializeToString()
    result = surgeon.apply(model, "no-metadata", require="equivalent")
    assert model.SerializeToString() == before
    found = result.model.to_proto()
    assert [entry.key for entry in found.metadata_props] == ["surgeon.log"]
    del found.metadata_props[:]
    assert found == without(model)
    assert any("doc strings and metadata left out: " in r for r in result.report.remarks)
    assert surgeon.apply(result.model, "no-metadata").report.status == "unchanged"


def test_what_surgeon_noted_stays() -> None:
    model = parse("g (float[2,3] x) => (float[2,3] y) { a = Tanh (x) y = Abs (a) }", ir=10)
    model.graph.node[0].doc_string = "said"
    first = surgeon.apply(model, Recipe.parse(HEAD + MAX)).model.to_proto()
    stamps = [list(node.metadata_props) for node in first.graph.node]
    assert any(stamps)
    second = surgeon.apply(first, "no-metadata").model.to_proto()
    assert [list(node.metadata_props) for node in second.graph.node] == stamps
    assert not any(node.doc_string for node in second.graph.node)
    (log,) = [entry for entry in second.metadata_props if entry.key == "surgeon.log"]
    assert '"r"' in log.value
    assert '"no-metadata"' in log.value


def test_what_is_said_of_the_model_itself_stays_where_asked() -> None:
    found = surgeon.apply(noted(), Recipe.parse(HEAD + "  - plain-metadata: inside\n")).model
    proto = found.to_proto()
    assert (proto.doc_string, proto.metadata_props[0].key) == ("said", "stack")
    assert str(proto.graph).count("stack") == str(proto.functions).count("said") == 0


def test_a_run_that_ends_where_it_began_has_taken_it_out_all_the_same() -> None:
    """Rules undo one another here, and whether they do is seen of the graph alone."""
    model = parse("g (float[2,3] x) => (float[2,3] y) { y = Tanh (x) }")
    model.graph.node[0].doc_string = "said"
    back = (
        "  - rules: [{id: a, why: w, exact: bit, match: y = Tanh (x), replace: y = my.T (x)}]\n"
        "  - rules: [{id: b, why: w, exact: bit, match: y = my.T (x), replace: y = Tanh (x)}]\n"
    )
    there = Recipe.parse(HEAD.replace("steps", "custom: [my.T]\nsteps") + back)
    assert surgeon.apply(model, there, verify=False).report.status == "unchanged"
    result = surgeon.apply(model, there, "no-metadata", verify=False)
    assert result.model.changed
    assert result.model.to_proto().graph.node[0].doc_string == ""


def test_a_step_sets_what_the_file_says_of_itself() -> None:
    text = (
        "  - header:\n      metadata: {author: me, stack: }\n      doc-string: ''\n"
        "      graph-name: net\n      domain: com.example\n      model-version: 3\n"
    )
    recipe = Recipe.parse(HEAD + text)
    result = surgeon.apply(noted(), recipe, require="equivalent")
    found = result.model.to_proto()
    held = {entry.key: entry.value for entry in found.metadata_props}
    assert held.pop("surgeon.log")
    assert held == {"author": "me"}
    assert (found.doc_string, found.graph.name) == ("", "net")
    assert (found.domain, found.model_version) == ("com.example", 3)
    assert found.graph.node[0].doc_string == "said"
    said = "set in the file: `graph-name`, `model-version`, `domain` and 1 more; taken out of it: "
    assert result.report.remarks == (said + "`doc-string`, `stack`",)
    assert surgeon.apply(result.model, recipe).report.status == "unchanged"
    assert recipe.steps[0] == HeaderStep(
        (("author", "me"), ("stack", None)),
        (
            ("doc-string", ""),
            ("graph-name", "net"),
            ("domain", "com.example"),
            ("model-version", 3),
        ),
    )
    shown = run("recipes", "show", "no-metadata")
    assert "leave out doc strings and metadata" in shown.output
    assert Recipe.load("no-metadata").steps == (PlainMetadataStep(inside=False),)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("header: {}", "`header` says nothing"),
        ("header: {metadata: {surgeon.log: x}}", "`surgeon.log` is a key of surgeon's own log"),
        ("header: {metadata: {a: 3}}", "`a` is `3`, not text"),
        ("header: {producer: x}", "unknown key `producer`"),
        ("header: {graph-name: ''}", "`graph-name`"),
        ("plain-metadata: outside", "`plain-metadata` is `outside`"),
    ],
)
def test_a_step_that_says_nothing_or_what_it_cannot_is_refused(step: str, said: str) -> None:
    with pytest.raises(surgeon.RecipeError) as caught:
        Recipe.parse(f"{HEAD}  - {step}\n")
    assert said in str(caught.value)


def test_the_option_sets_entries_and_takes_them_out(tmp_path: Path) -> None:
    model = parse("g (float[2,3] x) => (float[2,3] y) { y = Tanh (x) }")
    set_model_props(model, {"names": "cat", "stale": "1"})
    onnx.save(model, tmp_path / "m.onnx")
    told = ["--metadata", "author=a = b", "--metadata", "stale=", "--reproducible"]
    ran = run("apply", "clean", tmp_path / "m.onnx", tmp_path / "o.onnx", *told)
    assert ran.exit_code == 0, ran.output
    held = {entry.key: entry.value for entry in onnx.load(tmp_path / "o.onnx").metadata_props}
    assert {key: held[key] for key in ("names", "author")} == {"names": "cat", "author": "a = b"}
    assert "stale" not in held
    assert '"metadata": "author, stale"' in held["surgeon.log"]
    again = surgeon.apply(tmp_path / "o.onnx", "clean", metadata={"author": "a = b", "stale": None})
    assert again.report.status == "unchanged"
    for wrong, said in (
        ("author", "`author` is no entry of metadata"),
        ("surgeon.log=x", "`surgeon.log` is a key of surgeon's own log"),
    ):
        ran = run("apply", "clean", tmp_path / "m.onnx", tmp_path / "p.onnx", "--metadata", wrong)
        refused(ran, 2, said)
    with pytest.raises(surgeon.RecipeError, match=r"^metadata: the metadata `a` is no text"):
        surgeon.apply(model, "clean", metadata={"a": 3})  # type: ignore[dict-item]


def test_a_log_of_very_many_runs_is_shown_from_its_end() -> None:
    said = text(log([{"surgeon": f"0.{each}"} for each in range(1003)])).splitlines()
    assert said[0] == "3 runs before these: see --json"
    assert said[1].strip() == "4. surgeon 0.3"
    assert "1003. surgeon 0.1002" in said[-1] + said[-2]
