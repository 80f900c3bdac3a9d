"""Pairs of models for the tests of `surgeon diff`, and what it says of them."""

import json
from dataclasses import asdict
from pathlib import Path

import onnx
from onnx import parser
from typer.testing import CliRunner

from surgeon.cli import app
from surgeon.difference import Change, Difference, difference

KINDS = (
    *("header", "interface", "declared", "replaced", "changed", "renamed", "gone", "new"),
    "initializers",
)
Told = dict[str, list[tuple[str, str, str]]]


def compare(tmp_path: Path, before: str, after: str) -> Difference:
    return compare_models(tmp_path, parser.parse_model(before), parser.parse_model(after))


def compare_models(tmp_path: Path, before: onnx.ModelProto, after: onnx.ModelProto) -> Difference:
    """The difference, which text and JSON of the command say too."""
    paths = [str(tmp_path / name) for name in ("a.onnx", "b.onnx")]
    for path, model in zip(paths, (before, after), strict=True):
        onnx.save(model, path)
    found = difference(*paths)
    run = CliRunner().invoke
    data = json.loads(run(app, ["diff", *paths, "--json"]).stdout)
    assert data == json.loads(json.dumps({**asdict(found), "same": found.same}))
    shown = run(app, ["diff", *paths, "--exit-code"])
    assert shown.exit_code == (0 if found.same else 3)
    assert ("No difference" in shown.stdout) == found.same
    words = "".join(shown.stdout.split())
    for change in (each for changes in changed(found).values() for each in changes[:20]):
        assert "".join(change.name.split()) in words
    for text in found.aside:
        assert "".join(text.split()) in words
    return found


def changed(found: Difference) -> dict[str, tuple[Change, ...]]:
    """The kinds of change that there are."""
    return {kind: getattr(found, kind) for kind in KINDS if getattr(found, kind)}


def told(found: Difference) -> Told:
    """The same as plain tuples."""
    return {
        kind: [(c.name, c.before, c.after) for c in changes]
        for kind, changes in changed(found).items()
    }
