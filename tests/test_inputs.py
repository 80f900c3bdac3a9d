"""Inputs as the user says them: drawn in a way of their own, or real ones from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from truth import model_of, parse
from typer.testing import CliRunner

import surgeon
from surgeon.authoring import rule
from surgeon.cli import app
from surgeon.errors import RecipeError
from surgeon.match import Match
from surgeon.rewrite import Draft
from surgeon.verify import bisect, verify
from surgeon.verify.inputs import Drawing, required_inputs
from surgeon.verify.specs import read_spec

F32 = np.float32
SHAPE = (40, 64)
# Spec, dtype, what holds of what is drawn
DRAWN: dict[str, tuple[str, Any]] = {
    "uniform(2,3)": ("float32", lambda a: a.min() >= 2 and a.max() <= 3 and a.std() > 0.2),
    "uniform": ("float16", lambda a: a.min() >= 0 and a.max() <= 1),
    "normal(5,0.1)": ("float32", lambda a: abs(a.mean() - 5) < 0.05 and 0.05 < a.std() < 0.2),
    "ints(-3,4)": ("int64", lambda a: set(np.unique(a)) == set(range(-3, 4))),
    "ints( 0 , 2 )": ("float32", lambda a: set(np.unique(a)) == {0.0, 1.0}),
    "bool": ("bool", lambda a: 0.3 < a.mean() < 0.7),
    "ones": ("int32", lambda a: (a == 1).all()),
    "zeros": ("float64", lambda a: (a == 0).all()),
    "mask": ("int64", lambda a: (np.diff(a, axis=1) <= 0).all() and a[0].all() and a[:, 0].all()),
    "lengths": ("int32", lambda a: a.min() >= 1 and a.max() == 64),
    "lengths(9)": ("int32", lambda a: a.min() >= 1 and a.max() == 9),
    "image": ("uint8", lambda a: a.max() > 200 and abs(np.diff(a.astype(int))[:, :7]).mean() < 20),
    "tokens(30522)": ("int64", lambda a: a.min() >= 0 and 20000 < a.max() < 30522),
    "values(1,2.5)": ("float32", lambda a: set(np.unique(a)) == {1.0, 2.5}),
}


@pytest.mark.parametrize("text", DRAWN)
def test_each_spec_draws_what_it_says(text: str) -> None:
    dtype, holds = DRAWN[text]
    spec = read_spec("x", text, np.dtype(dtype))
    first, again, other = (
        spec.draw(np.random.default_rng(s), np.dtype(dtype), SHAPE, {"x": SHAPE}) for s in (0, 0, 1)
    )
    assert first.dtype == dtype
    assert first.shape == SHAPE
    assert holds(first)
    assert np.array_equal(first, again)
    assert text in ("ones", "zeros") or not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("text", "dtype", "what", "mend"),
    [
        ("unifrom(0,1)", "float32", "`unifrom(0,1)` is no way to draw an input", "`uniform`?"),
        ("normal(0,", "float32", "`normal(0,` is no way", "Write one of `uniform(0,1)`"),
        ("__import__('os')", "float32", "is no way to draw an input", "Write one of"),
        ("uniform(1)", "float32", "`uniform(0,1)` is written with 1 argument", "`uniform(0,1)`"),
        ("tokens", "int64", "`tokens(30522)` is written with 0 arguments", "`tokens(30522)`"),
        ("ints(0,9**9)", "int64", "an argument is no number", "Write it as `ints(0,1000)`."),
        ("ints(5,5)", "int64", "`5,5` bounds nothing to draw from", "`ints(0,1000)`"),
        ("ints(0,1e300)", "int64", "`0,1e300` bounds nothing", "`ints(0,1000)`"),
        ("uniform(0,nan)", "float32", "`0,nan` bounds nothing", "`uniform(0,1)`"),
        ("normal", "int64", "`normal` does not draw int64, which input `x` is", "`tokens(30522)`"),
        ("tokens(9)", "float32", "`tokens` does not draw float32", "`image`"),
        ("mask", "object", "`mask` does not draw object", "`--data`"),
    ],
)
def test_what_makes_no_sense_is_said(text: str, dtype: str, what: str, mend: str) -> None:
    with pytest.raises(RecipeError) as caught:
        read_spec("x", text, np.dtype(dtype))
    assert what in caught.value.what
    assert mend in caught.value.mend


def test_masks_and_lengths_are_known_by_their_names() -> None:
    proto = model_of(
        "float[b,t,3] x, int64[b,t] attention_mask, int64[b] x_lens, int64[b,t] other",
        "y = Identity (x)\nz = Identity (attention_mask)\nw = Identity (x_lens)\n"
        "v = Identity (other)",
        "y z w v",
    )
    drawing = Drawing(required_inputs(proto), {}, "normal")
    feeds = drawing.feeds({"b": 3, "t": 37}, 0)
    assert feeds["attention_mask"][0].all()
    assert (np.diff(feeds["attention_mask"]) <= 0).all()
    assert set(np.unique(feeds["attention_mask"])) == {0, 1}
    assert feeds["x_lens"].max() == 37
    assert set(np.unique(feeds["other"])) == {0, 1, 2}
    assert drawing.describe() == {
        "x": "normal",
        "attention_mask": "mask",
        "x_lens": "lengths",
        "other": "small integers",
    }


# Wrong beyond 50 alone: no normal number is so large.
WRONG = model_of("float[b,t] x", "k = Constant <value_float = 50.0> ()\ny = Clip (x, , k)", "y")
RIGHT = model_of("float[b,t] x", "y = Identity (x)", "y")


def test_what_the_user_says_of_an_input_finds_what_drawn_ones_do_not() -> None:
    assert verify(RIGHT, WRONG).status == "equivalent"
    found = verify(RIGHT, WRONG, inputs={"x": "uniform(0,100)"})
    assert found.status == "differs"
    assert found.inputs == {"x": "uniform(0,100)"}
    parting = bisect(RIGHT, WRONG, found, inputs={"x": "uniform(0,100)"})
    assert parting is not None
    assert parting.differs.name == "y"
    with pytest.raises(RecipeError, match=r"the model has no input `X`"):
        verify(RIGHT, WRONG, inputs={"X": "ones"})


def written(folder: Path) -> dict[str, Path]:
    """The same set in each form."""
    x = np.linspace(0, 100, 12, dtype=F32).reshape(3, 4)
    np.savez(folder / "plain.npz", x=x)
    np.savez(folder / "named.npz", **{"in.x": x, "out.y": x})
    packed = folder / "packed"
    packed.mkdir()
    np.savez(packed / "a.npz", x=np.zeros((2, 2), F32))
    np.savez(packed / "b.npz", x=x)
    official = folder / "official" / "test_data_set_0"
    official.mkdir(parents=True)
    (official / "input_0.pb").write_bytes(onnx.numpy_helper.from_array(x).SerializeToString())
    return {
        "plain": folder / "plain.npz",
        "named": folder / "named.npz",
        "packed": packed,
        "official": folder / "official",
        "one": official,
    }


@pytest.mark.parametrize("form", ["plain", "named", "packed", "official", "one"])
def test_real_inputs_are_compared_beside_drawn_ones(tmp_path: Path, form: str) -> None:
    path = written(tmp_path)[form]
    found = verify(RIGHT, WRONG, data=path)
    assert found.status == "differs"
    given = [c for c in found.comparisons if c.seed < 0]
    assert dict(given[-1].sizes) == {"b": 3, "t": 4}
    assert len(given) == (2 if form == "packed" else 1)
    assert any(c.seed >= 0 for c in found.comparisons)
    assert f"data {given[-1].drawn}" in found.detail
    parting = bisect(RIGHT, WRONG, found, data=path)
    assert parting is not None
    assert parting.differs.max_absolute == 50


def test_data_that_do_not_fit_are_said_to(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", X=np.ones((2, 2), F32))
    np.savez(tmp_path / "dtype.npz", x=np.ones((2, 2)))
    np.savez(tmp_path / "rank.npz", x=np.ones(2, F32))
    (tmp_path / "broken.npz").write_bytes(b"PK")
    (tmp_path / "empty").mkdir()
    np.save(tmp_path / "plain.npy", np.ones((2, 2), F32))
    for name, what, mend in (
        ("other.npz", "it holds nothing for input `x`", "Save it as `x`: `X`, which"),
        ("broken.npz", "it cannot be read", "Name files of plain arrays."),
        ("empty", "there are no inputs", "keyed by input names"),
        ("nothing", "there is no such file", "keyed by input names"),
        ("plain.npy", "inputs are not read from a file of this kind (.npy)", "keyed by input"),
        ("dtype.npz", "its input `x` is float64, and the model's is float32", "astype(numpy."),
        ("rank.npz", "its input `x` has the shape [2], and the model's is [", "of this model"),
    ):
        with pytest.raises(RecipeError) as caught:
            verify(RIGHT, RIGHT, data=tmp_path / name)
        assert what in caught.value.what
        assert mend in caught.value.mend
    np.savez(tmp_path / "strange.npz", qqq=np.ones((2, 2), F32))
    listed = onnx.parser.parse_model(
        '<ir_version: 7, opset_import: ["" : 17]> g (float[2] x, float[2] w) => (float[2] y) '
        "<float[2] w = {1, 2}> { y = Add (x, w) }"
    )
    with pytest.raises(RecipeError, match=r"inputs are `x`\."):
        verify(listed, listed, data=tmp_path / "strange.npz")
    with pytest.raises(RecipeError, match="with recorded outputs no other inputs"):
        verify(RIGHT, RIGHT, data=tmp_path / "dtype.npz", reference=tmp_path / "dtype.npz")


@rule("y = Relu (x)", exact="rounding")
def wrong_far_out(draft: Draft, match: Match) -> Any:
    """Wrong about 5000 alone, where nothing that is drawn lies."""
    x = match.values["x"]
    part, low, high = (draft.constant(np.array(n, F32)) for n in (2e-4, 0.999, 1.001))
    share = draft.op("Mul", x, part)
    far = draft.op("And", draft.op("Greater", share, low), draft.op("Less", share, high))
    right = draft.op("Max", x, draft.constant(np.array(0, F32)))
    return draft.op("Where", far, draft.op("Neg", x), right)


def test_a_rewrite_is_held_to_what_the_original_computes_on_real_inputs(tmp_path: Path) -> None:
    """5000.5 comes up behind a product; the piece alone is drawn where it is right."""
    body = "k = Constant <value_float = 10001.0> ()\na = Mul (x, k)\nc = Relu (a)\ny = Neg (c)"
    model = model_of("float[b,t] x", body, "y")
    assert surgeon.apply(model, wrong_far_out, verify=False).report.fired.total() == 1
    np.savez(tmp_path / "real.npz", x=np.full((2, 5), 0.5, F32))
    report = surgeon.apply(model, wrong_far_out, data=tmp_path / "real.npz").report
    (refusal,) = report.refusals
    assert refusal.drawn == "real"
    assert refusal.sizes == {"b": 2, "t": 5}
    assert refusal.reason.endswith("b=2, t=5, of the original's own values on the given data")
    np.savez(tmp_path / "real.npz", x=np.full((2, 5), 0.25, F32))
    report = surgeon.apply(model, wrong_far_out, data=tmp_path / "real.npz").report
    assert report.fired.total() == 1
    assert report.pieces["compared on real values"] == 1


@pytest.mark.slow
def test_the_commands_take_both(tmp_path: Path) -> None:
    paths = [str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")]
    onnx.save(RIGHT, paths[0])
    onnx.save(WRONG, paths[1])
    data = str(written(tmp_path)["plain"])
    assert CliRunner().invoke(app, ["verify", *paths]).exit_code == 0
    said = CliRunner().invoke(app, ["verify", *paths, "--input", "x=uniform(0,100)", "--json"])
    assert said.exit_code == 3
    assert json.loads(said.stdout)["inputs"] == {"x": "uniform(0,100)"}
    assert CliRunner().invoke(app, ["verify", *paths, "--data", data]).exit_code == 3
    wrong = CliRunner().invoke(app, ["verify", *paths, "--input", "x=tokns(9)"])
    assert wrong.exit_code == 2
    assert "Did you mean `tokens`?" in " ".join(wrong.output.split())
    assert CliRunner().invoke(app, ["verify", *paths, "--input", "ones"]).exit_code == 2
    out = str(tmp_path / "out.onnx")
    arguments = ["apply", "no-ops", paths[0], out, "--input", "x=uniform(0,100)", "--data", data]
    assert CliRunner().invoke(app, arguments).exit_code == 0


@pytest.mark.parametrize(
    "text",
    [
        "g (seq(float[n,3]) x) => (float[m,3] y) { y = ConcatFromSequence <axis = 0> (x) }",
        """g (seq(float) x) => (float y) <int64 last = {-1}> { y = SequenceAt (x, last) }""",
        """g (seq(string[n]) x) => (string[n] y) <int64 third = {2}>
        { y = SequenceAt (x, third) }""",
        """g (seq(float16[2]) x, float16[2] z) => (seq(float16[2]) y)
        { y = SequenceInsert (x, z) }""",
        "g (optional(float[n]) x) => (float[n] y) { y = OptionalGetElement (x) }",
    ],
    ids=["joined", "scalars", "long enough", "given out", "optional"],
)
def test_sequences_are_drawn_at_several_lengths(text: str) -> None:
    model = parse(text)
    verdict = verify(model, model)
    assert verdict.status == "equivalent", verdict.detail
    lengths = {c.sizes["x.length"] for c in verdict.comparisons if "x.length" in c.sizes}
    assert "seq" not in text or len(lengths) == 3


def test_what_reads_a_sequence_otherwise_is_found_wrong() -> None:
    text = "g (seq(float[n]) x) => (float y) <int64 at = {%d}> { a = SequenceAt (x, at) \
        y = ReduceSum <keepdims = 0> (a) }"
    assert verify(parse(text % 0), parse(text % -1)).status == "differs"
    assert verify(parse(text % 0), parse(text % 0)).status == "equivalent"


def test_the_shape_that_is_given_is_that_of_each_in_a_sequence() -> None:
    model = parse("g (seq(float[]) x) => (float[] y) <int64 at = {0}> { y = SequenceAt (x, at) }")
    assert "the rank of input `x`" in verify(model, model).detail
    verdict = verify(model, model, shape={"x": (2, "n")})
    assert verdict.status == "equivalent"
    assert {tuple(c.sizes) for c in verdict.comparisons} == {("x.length", "n")}
