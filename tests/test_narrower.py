"""A result of fixed sizes beside an original of dynamic ones: compared where both run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from truth import parse
from typer.testing import CliRunner

from surgeon import apply
from surgeon.cli import app
from surgeon.verify import bisect, verify

DYNAMIC = "g (float[n,t] x, float[n,t] m) => (float[n,t] y)"
NARROW = "g (float[2,3] x, float[2,3] m) => (float[2,3] y)"
BODY = "{ a = Abs (x) y = Mul (a, m) }"
SAID = "the result is fixed at n=2, t=3"


def both(tmp_path: Path, body: str = BODY, head: str = NARROW) -> tuple[str, str]:
    """Paths of a model with dynamic dims, and of one without."""
    paths = str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")
    onnx.save(parse(DYNAMIC + BODY), paths[0])
    onnx.save(parse(head + body), paths[1])
    return paths


def test_they_are_compared_at_the_sizes_of_the_second(tmp_path: Path) -> None:
    found = verify(*both(tmp_path))
    assert found.status == "runs"
    assert found.detail == (
        f"{SAID}: other sizes are not compared; its output agrees at 2 inputs, to the last bit"
    )
    assert found.mend == "Say that these sizes are meant: `--shape x=2,3 --shape m=2,3`."
    assert [(each.what, each.why) for each in found.not_compared] == [
        ("sizes other than n=2, t=3", SAID)
    ]


def test_a_dim_that_one_input_fixes_is_fixed_in_all(tmp_path: Path) -> None:
    head = "g (float[n,3] x, float[2,t] m) => (float[n,t] y)"
    found = verify(*both(tmp_path, head=head))
    assert found.status == "runs"
    assert found.detail.startswith("the result is fixed at t=3, n=2: ")


def test_one_dim_may_have_two_sizes(tmp_path: Path) -> None:
    square, other = (
        parse(f"g (float[{dims}] x) => (float[{dims}] y) {{ y = Abs (x) }}")
        for dims in ("n,n", "2,3")
    )
    found = verify(square, other)
    assert found.status == "runs"
    assert found.detail.startswith("the result is fixed at n=2, x.1=3: ")
    assert "--shape x=2,3" in found.mend


def test_the_sizes_that_are_asked_for_are_all_there_is_to_compare(tmp_path: Path) -> None:
    found = verify(*both(tmp_path), shape={"x": (2, 3), "m": (2, 3)})
    assert (found.status, found.mend, found.not_compared) == ("equivalent", "", ())


def test_a_difference_is_found_there_and_traced(tmp_path: Path) -> None:
    paths = both(tmp_path, "{ a = Neg (x) y = Mul (a, m) }")
    found = verify(*paths)
    assert found.status == "differs"
    parting = bisect(*paths, found)
    assert parting is not None
    assert parting.differs.name == "a"


def test_real_inputs_of_other_sizes_are_named(tmp_path: Path) -> None:
    for file, rows in (("right", 2), ("other", 4)):
        np.savez(tmp_path / f"{file}.npz", x=np.ones((rows, 3), "f4"), m=np.ones((rows, 3), "f4"))
    data = [tmp_path / "right.npz", tmp_path / "other.npz"]
    found = verify(*both(tmp_path), data=data)
    assert found.status == "runs"
    assert found.detail == f"data `other.npz`, which was given, was not compared: {SAID}"
    assert "right.npz" in {each.drawn for each in found.comparisons}


def test_recorded_outputs_of_other_sizes_are_named(tmp_path: Path) -> None:
    for file, rows in (("right", 2), ("other", 4)):
        ones = np.ones((rows, 3), "f4")
        np.savez(tmp_path / f"{file}.npz", x=ones, m=ones, y=ones)
    found = verify(*both(tmp_path), reference=[tmp_path / "right.npz", tmp_path / "other.npz"])
    assert found.status == "runs"
    assert ("recorded other.npz", SAID) in [(each.what, each.why) for each in found.not_compared]


@pytest.mark.slow
def test_the_command_says_so_and_may_require_more(tmp_path: Path) -> None:
    paths = both(tmp_path)
    result = CliRunner().invoke(app, ["verify", *paths])
    assert result.exit_code == 0, result.output
    assert f"runs: {SAID}" in result.output
    assert "mend: Say that these sizes are meant" in result.output
    strict = CliRunner().invoke(app, ["verify", *paths, "--require", "equivalent"])
    assert strict.exit_code == 3
    told = ["--shape", "x=2,3", "--shape", "m=2,3", "--require", "equivalent"]
    assert CliRunner().invoke(app, ["verify", *paths, *told]).exit_code == 0


@pytest.mark.parametrize("asked", [{}, {"x": (2, 3), "m": (2, 3)}])
def test_apply_narrows_nothing_by_itself(tmp_path: Path, asked: dict[str, tuple[int, int]]) -> None:
    source, _ = both(tmp_path)
    made = apply(source, "clean", shape=asked).model.to_proto()
    assert (made.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 2) == bool(asked)
    assert verify(source, made, narrowed=False).status == ("broken" if asked else "equivalent")


FLOATS = "g (float[n,3] x) => (float[n,3] y) { a = Exp (x) y = Sigmoid (a) }"


@pytest.mark.parametrize("kind", ["float16", "double"])
def test_ends_of_other_floats_are_compared_as_well(kind: str) -> None:
    """What goes in is rounded as the second takes it, which onnxruntime's own Casts would not."""
    other = FLOATS.replace("float[", f"{kind}[")
    for first, second in ((other, FLOATS), (FLOATS, other)):
        found = verify(parse(first), parse(second))
        assert found.status == "runs", found.detail
        assert found.detail.startswith("floats of another width at `x`, `y`; its output agrees at ")
    assert any(o.max_relative for c in found.comparisons for o in c.outputs) or kind == "double"
    wrong = verify(parse(FLOATS), parse(other.replace("Sigmoid", "Tanh")))
    assert wrong.status == "differs"
    parting = bisect(parse(FLOATS), parse(other.replace("Sigmoid", "Tanh")), wrong)
    assert parting is not None
    assert parting.agrees == ("a",)
    broken = verify(parse(FLOATS), parse(other), narrowed=False)
    assert broken.status == "broken"


def test_ends_of_whole_numbers_are_no_floats() -> None:
    found = verify(parse(FLOATS), parse(FLOATS.replace("float[n,3] x", "int32[n,3] x")))
    assert found.status == "broken"
