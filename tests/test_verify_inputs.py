"""What the compared models are run on: indices, numbers and tokens that they ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from verdicts import parse

import surgeon
from surgeon.errors import RecipeError
from surgeon.verify import Verdict, verify
from surgeon.verify.differing import differing_feeds
from surgeon.verify.given import read_given
from surgeon.verify.inputs import Drawing, draw, required_inputs
from surgeon.verify.limits import bounds


def test_indices_stay_within_what_their_reader_allows() -> None:
    text = """g (int64[n,t] ids, int32[n,t] kinds, float[n,t] x, int64[n,1] at, uint8[n] pixels)
        => (float[n,t,3] y, float[n,1] picked, float[n] p)
        <float[5,3] table = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14},
         float[2,3] other = {0, 1, 2, 3, 4, 5}> {
        k = Cast <to = 7> (kinds)
        a = Gather(table, ids)
        b = Gather(other, k)
        y = Add(a, b)
        picked = GatherElements <axis = 1> (x, at)
        p = Cast <to = 1> (pixels)
    }"""
    model = parse(text)
    inputs = required_inputs(model)
    allowed = bounds(model, inputs)
    assert {name: bound.high for name, bound in allowed.items()} == {
        "ids": 5,
        "kinds": 2,
        "at": "t",
    }
    feeds = draw(inputs, {"n": 50, "t": 7}, 0, allowed=allowed)
    assert set(feeds["ids"].reshape(-1)) == {0, 1, 2, 3, 4}
    assert set(feeds["kinds"].reshape(-1)) == {0, 1}
    assert feeds["at"].max() == 6
    assert feeds["pixels"].max() > 100
    again = draw(inputs, {"n": 50, "t": 7}, 0, allowed=allowed)
    assert all(np.array_equal(feeds[name], again[name]) for name in feeds)
    assert verify(model, model).status == "equivalent"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"shape": {"y": [1, 3]}}, "shape: the model has no input `y`"),
        ({"shape": {"x": [1]}}, "shape: input `x` has 2 dimensions, not 1"),
        ({"shape": {"x": [1, 5]}}, "shape: input `x` declares 3 where 5 is given"),
        ({"sizes": {"h": [64]}}, "sizes: no input has a dimension named `h`"),
        ({"sizes": {"n": "h"}}, "sizes: no input has a dimension named `h`"),
        ({"sizes": {"n": []}}, "sizes: `[]` is no list of sizes of `n`"),
        ({"sizes": {"n": 64}}, "sizes: `64` is no list of sizes of `n`"),
        ({"sizes": [64]}, "sizes: `sizes` is a `list`, and no mapping"),
        ({"seeds": 3}, "seeds: `3` is no list of seeds"),
        ({"seeds": [-1]}, "seeds: `[-1]` is no list of seeds"),
        ({"inputs": "x=ones"}, "inputs: `inputs` is a `str`, and no mapping"),
    ],
)
def test_what_the_model_lacks_is_not_passed_over(given: dict[str, Any], said: str) -> None:
    model = parse("g (float[n,3] x) => (float[n,3] y) { y = Neg(x) }")
    with pytest.raises(RecipeError) as raised:
        verify(model, model, **given)
    assert said in str(raised.value)


def test_sizes_are_of_dims_that_are_declared_told_or_without_a_name() -> None:
    model = parse("g (float[n,3,?] x) => (float[n,3,?] y) { y = Neg(x) }")
    assert _sizes(verify(model, model, sizes={"n": np.array([5]), "x.2": [7]})) == {5, 7}
    told = verify(model, model, shape={"x": ["b", 3, 4]}, sizes={"b": [6], "n": [5]})
    assert _sizes(told) == {6}


def _sizes(verdict: Verdict) -> set[int]:
    return {size for each in verdict.comparisons for size in each.sizes.values()}


BRANCHES = """g (float[n,t] x, int64 rate) => (float[n,t] y)
    <int64 wide = {{16000}}, float two = {{2}}> {{
    is = Equal(rate, wide)
    y = If <then_branch = a () => (float[n,t] p) {{ p = {then}(x, two) }},
            else_branch = b () => (float[n,t] q) {{ q = Neg(x) }}> (is)
}}"""


def test_a_number_that_the_model_asks_for_is_given_to_it() -> None:
    model, wrong = (parse(BRANCHES.format(then=operator)) for operator in ("Mul", "Add"))
    assert bounds(model, required_inputs(model))["rate"].marks == (16000,)
    verdict = verify(model, model)
    assert verdict.status == "equivalent"
    assert {c.by for c in verdict.comparisons} == {"onnxruntime", "onnxruntime where rate=16000"}
    verdict = verify(model, wrong)
    assert verdict.status == "differs"
    (bad, *_) = [c for c in verdict.comparisons if not c.agrees]
    assert bad.fixed == {"rate": 16000}
    assert Verdict.from_dict(verdict.to_dict()) == verdict
    feeds = differing_feeds(model, verdict)
    assert feeds is not None
    assert feeds["rate"] == 16000


TRUTH = """g (bool cached, float[n] x) => (float[n] y) {{
    y = If <then_branch = a () => (float[n] p) {{ p = {then}(x) }},
            else_branch = b () => (float[n] q) {{ q = {other}(x) }}> (cached)
}}"""


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("wrong", [("Tan", "Cos"), ("Sin", "Tan")])
def test_both_branches_run_whatever_the_seeds_draw(place: int, wrong: tuple[str, str]) -> None:
    """The seeds may draw one truth alone, which depends on the place of the input."""
    texts = (TRUTH.format(then=t, other=o) for t, o in (("Sin", "Cos"), wrong))
    before = "".join(f"float[2] x{k}, " for k in range(place))
    models = (parse(text.replace("g (", f"g ({before}")) for text in texts)
    assert verify(*models).status == "differs"


def test_a_single_number_is_each_of_a_few() -> None:
    """Two seeds draw two numbers, at whatever size: 0 was not among them."""
    text = """g (int64 at, float[n] x) => (float[n] y) <int64 few = {{{0}}}, float one = {{1}}> {{
        first = Less (at, few)
        more = Add (x, one)
        y = Where (first, more, x)
    }}"""
    model, wrong = (parse(text.format(few)) for few in (1, 0))
    verdict = verify(model, wrong)
    assert verdict.status == "differs"
    assert next(c.fixed for c in verdict.comparisons if not c.agrees) == {"at": 0}
    verdict = verify(model, model)
    assert [c.fixed for c in verdict.comparisons if c.fixed] == [{"at": 0}, {"at": 0}]
    assert verdict.not_compared == ()


def test_a_number_that_the_model_does_not_run_with_is_told() -> None:
    model = parse("""g (float[n,t] x, int64 rate) => (float[n,t] y)
        <int64 seven = {7}, int64[2] odd = {77, 13}> {
        is = Equal(rate, seven)
        y = If <then_branch = a () => (float[n,t] p) { p = Reshape(x, odd) },
                else_branch = b () => (float[n,t] q) { q = Neg(x) }> (is)
    }""")
    verdict = verify(model, model)
    assert verdict.status == "equivalent"
    assert [each.what for each in verdict.not_compared] == ["rate=7"]


def test_a_table_that_is_computed_bounds_its_indices() -> None:
    model = parse("""g (int64[n,t] ids, int8[90,3] table) => (float[n,t,3] y)
{
        wide = Cast <to = 1> (table)  two = Add(wide, wide)  y = Gather(two, ids)
    }""")
    assert bounds(model, required_inputs(model))["ids"].high == 90


@pytest.mark.parametrize("rows", ["90, 2", "-1, 2"])
def test_a_view_of_a_table_bounds_its_indices_where_it_says_how_many_rows(rows: str) -> None:
    model = parse(
        "g (int64[n] ids, float[180] w) => (float[n,2] y) "
        f"<int64[2] shape = {{{rows}}}> {{ t = Reshape (w, shape) y = Gather (t, ids) }}"
    )
    high = bounds(model, required_inputs(model))["ids"].high
    assert high == (90 if "90" in rows else 2), "else more than one row is tried"


def test_a_model_is_drawn_for_within_the_levels_of_the_other() -> None:
    text = "g (float[n,600] x) => (float[n,600] y)"
    levels = "<float s = {0.02}, int8 z = {0}> { q = QuantizeLinear (x, s, z) "
    other = parse(f"{text} {levels} y = DequantizeLinear (q, s, z) }}")
    plain = parse(f"{text} {{ y = Identity (x) }}")
    assert "x" in read_given(plain, None, (), other=other).specs
    assert surgeon.verify(plain, other, allow_approximate=0.05).status == "equivalent"


DECODER = """
    g (int64[b,s] ids, float[b,t] mask, float[b,2,p] past) => (float[b,2,q] kept, float[b,q] y)
    <float[3,2] w = {1, 2, 3, 4, 5, 6}, int64[1] one = {1}> {
      v = Gather (w, ids)
      u = Transpose <perm = [0, 2, 1]> (v)
      kept = Concat <axis = 2> (past, u)
      r = ReduceSum <keepdims = 0> (kept, one)
      y = Add (r, mask)
    }"""


def decoder() -> onnx.ModelProto:
    model = parse(DECODER)
    model.graph.input[1].type.tensor_type.shape.dim[1].dim_param = "p + s"
    return model


def test_a_size_that_is_called_by_a_formula_follows_the_others() -> None:
    found = surgeon.verify(decoder(), decoder())
    assert found.status == "equivalent"
    assert not found.not_compared
    tried = {(c.sizes["s"], c.sizes["p"]) for c in found.comparisons}
    assert len(tried) >= 4
    assert any(p == 0 for s, p in tried), "the first step, of which nothing was kept"
    assert any(s == 1 and p > 1 for s, p in tried), "a later one"
    assert all("p + s" not in c.sizes for c in found.comparisons)


def test_a_formula_of_which_somebody_says_the_size_has_that() -> None:
    found = verify(decoder(), decoder(), sizes={"p + s": [9], "p": [4], "s": [5]})
    assert found.status == "equivalent"
    assert {c.sizes["p + s"] for c in found.comparisons} == {9}


def test_lengths_of_samples_that_are_packed_fall() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 13, "org.pytorch.aten": 1]>
        g (float[b,t,4] x, int64[b] n) => (float[k,4] y, int64[m] sizes)
        <bool first = {1}, int64 long = {4}, bool no = {0}> {
            whole = org.pytorch.aten.ATen <operator = "to"> (n, long, no, no)
            y, sizes = org.pytorch.aten.ATen <operator = "_pack_padded_sequence"> (x, whole, first)
        }"""
    )
    inputs = required_inputs(model)
    allowed = bounds(model, inputs)
    assert (allowed["n"].low, allowed["n"].high, allowed["n"].falls) == (1, "t", True)
    lengths = draw(inputs, {"b": 9, "t": 6}, 0, allowed=allowed)["n"]
    assert (np.diff(lengths) <= 0).all()
    assert set(lengths.tolist()) <= set(range(1, 6))
    assert Drawing(inputs, allowed, "normal").describe()["n"] == "from 1 to below t, falling"


def test_tokens_that_the_model_asks_for_are_among_them() -> None:
    model = parse("""g (int64[n,t] ids, int64[n,t] mask, float[90,3] table) =>
        (float[n,t,3] y, bool[n,t] p, bool[n,t] m)
        <int64 pad = {77}, int64 none = {0}, int64 out = {99}> {
        y = Gather(table, ids)  p = Equal(ids, pad)  m = Equal(mask, none)  o = Equal(ids, out)
    }""")
    inputs = required_inputs(model)
    allowed = bounds(model, inputs)
    assert {name: (b.high, b.marks) for name, b in allowed.items()} == {"ids": (90, (77,))}
    feeds = draw(inputs, {"n": 8, "t": 16}, 0, allowed=allowed)
    assert 16 < (feeds["ids"] == 77).sum() < 64
    said = Drawing(inputs, allowed, "normal").describe()
    assert said["ids"] == "from 0 to below 90, 77 among them"


@pytest.mark.parametrize(
    "text",
    [
        """g (float16[n] h, double[n] d, bool[n] b, string[n] s)
        => (float16[n] a, double[n] c, bool[n] e, string[n] t)
        { a = Neg(h)  c = Neg(d)  e = Not(b)  t = Identity(s) }""",
        """g (bfloat16[n] f, bool[n] b) => (bfloat16[n] g, bool[n] e)
        { g = Cast <to = 16> (f)  e = Not(b) }""",
    ],
)
def test_inputs_of_every_kind_are_drawn(text: str) -> None:
    model = parse(text)
    verdict = verify(model, model)
    assert verdict.status == "equivalent", verdict.detail
    assert "weak" not in verdict.detail


def test_outputs_no_input_moves_are_weak() -> None:
    text = """g (float[n,2] x) => (float[n,2] y, float[2] c) <float[2] k = {1, 2}> {
        y = Neg(x)  c = Identity(k) }"""
    verdict = verify(parse(text), parse(text))
    weak = {o.name: o.weak for c in verdict.comparisons for o in c.outputs}
    assert weak == {"y": None, "c": "no input moves it"}
    assert "weak" not in verdict.detail
    zero = parse("g (float[n,2] x) => (float[n,2] y) <float k = {0.0}> { y = Mul(x, k) }")
    verdict = verify(zero, zero)
    assert verdict.status == "equivalent"
    constant = parse("g (float[n,2] x) => (float[m] y) { s = Shape(x)  y = Cast <to = 1> (s) }")
    verdict = verify(constant, constant)
    assert verdict.status == "equivalent"
    assert "the comparison is weak (`y`: only the inputs' sizes move it)" in verdict.detail


def test_inputs_on_which_there_are_numbers_are_preferred() -> None:
    model = parse(
        "g (float[n] x) => (float[n] y) { m = Neg(x)  z = Sub(x, m)  a = Abs(x) "
        "n = Neg(a) l = Log(n) w = Exp(x) q = Sqrt(n)  y = Mul(q, w) }"
    )
    verdict = verify(model, model)
    assert verdict.status == "equivalent"
    assert not any(o.weak == "it is NaN throughout" for c in verdict.comparisons for o in c.outputs)


ALIGNED = """<ir_version: 8, opset_import: ["": 13, "org.pytorch.aten": 1]>
g (float[b,9,5] x, int64[b,3] labels, int64[b] steps, int64[b] lengths) => (float[b] y)
<int64 zero = {0}, bool no = {0}> {
    p = LogSoftmax <axis = 2> (x)
    t = Transpose <perm = [1, 0, 2]> (p)
    y = org.pytorch.aten.ATen <operator = "ctc_loss", overload_name = "Tensor">
        (t, labels, steps, lengths, zero, zero, no)
}"""


def test_labels_and_lengths_of_texts_are_within_what_they_count() -> None:
    model = onnx.parser.parse_model(ALIGNED)
    found = bounds(model, required_inputs(model))
    known = {name: (bound.low, bound.high) for name, bound in found.items()}
    assert known == {"labels": (1, 5), "steps": (5, 10), "lengths": (0, 4)}
    result = surgeon.apply(model, "aten")
    assert not result.report.refusals
    assert result.report.verdict is not None
    assert result.report.verdict.status == "equivalent"


def test_labels_of_texts_one_behind_the_other_suffice_for_all() -> None:
    text = ALIGNED.replace("int64[b,3]", "int64[7]").replace("[b", "[2")
    model = onnx.parser.parse_model(
        text.replace("zero, zero, no", "last, zero, no").replace(
            "int64 zero = {0}", "int64 zero = {0}, int64 last = {4}"
        )
    )
    found = bounds(model, required_inputs(model))
    known = {name: (bound.low, bound.high) for name, bound in found.items()}
    assert known == {"labels": (0, 4), "steps": (5, 10), "lengths": (0, 4)}
