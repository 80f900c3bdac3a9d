"""The first value at which two models part: by name, or by place where names differ."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from truth import model_of
from typer.testing import CliRunner

from surgeon.cli import app
from surgeon.verify import Parting, bisect, verify
from surgeon.verify import parting as searching

F32 = np.float32
LENGTH = 90


def chain(wrong: int | None = None, prefix: str = "v") -> onnx.ModelProto:
    """Alternately Sin and Neg, one of them another operator."""
    lines, last = [], "x"
    for place in range(LENGTH):
        operator = "Cos" if place == wrong else ("Sin", "Neg")[place % 2]
        name = "y" if place == LENGTH - 1 else f"{prefix}{place}"
        lines.append(f"{name} = {operator} ({last})")
        last = name
    return model_of("float[b,t] x", "\n".join(lines), "y")


def parted(first: onnx.ModelProto, second: onnx.ModelProto) -> Parting:
    verdict = verify(first, second)
    assert verdict.status == "differs"
    found = bisect(first, second, verdict)
    assert found is not None
    return found


@pytest.mark.parametrize("wrong", [0, 1, 44, 88, 89])
def test_the_first_value_that_differs_is_named(wrong: int) -> None:
    found = parted(chain(), chain(wrong))
    name, last = f"v{wrong}" if wrong < 89 else "y", f"v{wrong - 1}" if wrong else "x"
    operator = ("Sin", "Neg")[wrong % 2]
    assert found.differs.name == found.other == name
    assert found.agrees == ((last,) if wrong else ())
    assert found.before == (f"{name} = {operator} ({last})",)
    assert found.after == (f"{name} = Cos ({last})",)
    assert found.differs.max_absolute > 0.1
    assert found.tried < 40
    assert not found.by_place


def test_few_values_are_computed_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    run = searching._Side.run
    monkeypatch.setattr(
        searching._Side, "run", lambda s, f, names: (asked.append(len(names)), run(s, f, names))[1]
    )
    parted(chain(), chain(50))
    assert max(asked) <= searching.AT_ONCE
    assert len(asked) <= 8


def test_values_of_other_names_are_paired_by_place() -> None:
    found = parted(chain(), chain(44, "other"))
    assert (found.differs.name, found.other) == ("v45", "other45")  # a Cos has no place beside it
    assert found.agrees == ("v43",)
    assert found.before == ("v44 = Sin (v43)", "v45 = Neg (v44)")
    assert found.after == ("other44 = Cos (other43)", "other45 = Neg (other44)")
    assert found.by_place


def test_what_a_value_is_made_of_is_looked_at_too() -> None:
    """Branches: the difference in one of them is hidden from a search by order alone."""
    names = ["p", "q", "r", "s"]
    body = "\n".join(f"{n} = Sin (x)\n{n}1 = Neg ({n})\n{n}2 = Exp ({n}1)" for n in names)
    end = "\na = Add (p2, q2)\nc = Add (r2, s2)\ny = Add (a, c)"
    first = model_of("float[b,t] x", body + end, "y")
    second = model_of("float[b,t] x", body.replace("q1 = Neg (q)", "q1 = Abs (q)") + end, "y")
    found = parted(first, second)
    assert found.differs.name == "q1"
    assert found.agrees == ("q",)


def test_an_original_of_pytorchs_own_operators_is_searched_too() -> None:
    text = """<ir_version: 8, opset_import: ["": 17, "org.pytorch.aten": 1]>
    g (float[b,t] x) => (float[b,t] y) {
      a = Exp (x) c = org.pytorch.aten.ATen <operator = "sigmoid"> (a) y = Neg (c) }"""
    other = model_of("float[b,t] x", "a = Exp (x)\nc = Tanh (a)\ny = Neg (c)", "y")
    found = parted(onnx.parser.parse_model(text), other)
    assert found.agrees == ("a",)
    assert found.before == ("c = aten.sigmoid (a)",)
    assert found.after == ("c = Tanh (a)",)


def test_models_that_agree_have_nothing_to_bisect() -> None:
    assert bisect(chain(), chain(), verify(chain(), chain())) is None


@pytest.mark.slow
def test_the_command_prints_where(tmp_path: Path) -> None:
    paths = [str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")]
    onnx.save(chain(), paths[0])
    onnx.save(chain(44), paths[1])
    said = CliRunner().invoke(app, ["verify", *paths, "--bisect"])
    assert said.exit_code == 3
    for part in ("part at `v44`", "last that agree: `v43`", "v44 = Sin (v43)", "v44 = Cos (v43)"):
        assert part in said.output
    plain = json.loads(CliRunner().invoke(app, ["verify", *paths, "--bisect", "--json"]).stdout)
    assert plain["parting"]["differs"]["name"] == "v44"
    assert plain["parting"]["agrees"] == ["v43"]
    same = CliRunner().invoke(app, ["verify", paths[0], paths[0], "--bisect"])
    assert same.exit_code == 0
    assert "no value to bisect" in same.output


@pytest.mark.slow
def test_what_is_allowed_to_differ_is_passed_over(tmp_path: Path) -> None:
    text = "a = Mul (x, p) b = Neg (a) c = Mul (b, q) y = Neg (c)"
    first, second = (
        model_of("float[b,t] x", text, "y", 17, {"p": np.array(p, F32), "q": np.array(q, F32)})
        for p, q in ((1, 1), (1.01, 3))
    )
    paths = [str(tmp_path / name) for name in ("a.onnx", "b.onnx")]
    for model, path in zip((first, second), paths, strict=True):
        onnx.save(model, path)
    for options, differs in (((), "a"), (("--tolerance", "0.1"), "c")):
        command = ["verify", *paths, "--bisect", "--json", *options]
        plain = json.loads(CliRunner().invoke(app, command).stdout)
        assert plain["parting"]["differs"]["name"] == differs


def test_what_halves_on_the_way_explain_is_no_parting() -> None:
    first = model_of("float[n,3] x", "a = Mul (x, c) y = Neg (a)", "y", constants={"c": F32(0.3)})
    text = "h = Cast <to = 10> (x) a = Mul (h, c) b = Neg (a) y = Cast <to = 1> (b)"
    second = model_of("float[n,3] x", text, "y", constants={"c": np.float16(0.3)})
    verdict = verify(first, second)
    assert verdict.status == "differs"
    assert bisect(first, second, verdict) is None


@pytest.mark.parametrize("ends", ["float16", "float"])
def test_a_network_in_halves_is_searched_too(ends: str) -> None:
    """Where another tool has made it, and its values are called otherwise."""
    body = "{0}a = Sin ({1}) {0}b = {2} ({0}a) {0}c = {3} ({0}b) {0}d = Abs ({0}c) {4}"
    first = body.format("", "x", "Tanh", "Sigmoid", "y = Neg (d)")
    if ends == "float":
        second = "w = Cast <to = 10> (x) " + body.format("h", "w", "Tanh", "Softsign", "")
        second += " n = Neg (hd) y = Cast <to = 1> (n)"
    else:
        second = body.format("h", "x", "Tanh", "Softsign", "y = Neg (hd)")
    found = parted(model_of("float[n,3] x", first, "y"), model_of(f"{ends}[n,3] x", second, "y"))
    assert (found.agrees, found.differs.tolerance) == (("b",), 0.02)
    assert "c = Sigmoid (b)" in found.before
    assert "hc = Softsign (hb)" in found.after
