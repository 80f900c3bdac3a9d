"""Verdicts: what counts as the same, what does not, and what could not be compared."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from truth import model_of
from verdicts import F32, SCALE, frozen, parse, sizes_of

import surgeon
from surgeon.errors import RecipeError
from surgeon.verify import Verdict, verify


def test_equal_models_are_equivalent_at_several_sizes_and_seeds() -> None:
    told: list[str] = []
    other = parse("g (float[batch,3] x) => (float[batch,3] y) { y = Add(x, x) }")
    verdict = verify(parse(SCALE), other, progress=told.append)
    assert verdict.status == "equivalent"
    assert verdict.detail == "its output agrees at 6 inputs, to the last bit"
    assert sizes_of(verdict) == [(1,), (2,), (3,)]
    assert {c.seed for c in verdict.comparisons} == {0, 1}
    assert {c.by for c in verdict.comparisons} == {"onnxruntime"}
    assert told[0] == "compare at batch=2, seed 0"


def test_a_difference_names_output_size_and_seed() -> None:
    other = parse(SCALE.replace("{2.0}", "{2.1}"))
    verdict = verify(parse(SCALE), other)
    assert verdict.status == "differs"
    assert verdict.detail.startswith("`y`: error ")
    assert "of its spread (allowed 0.0001), at batch=" in verdict.detail
    assert "seed " in verdict.detail
    assert verify(parse(SCALE), other, allow_approximate=0.5).status == "equivalent"


def test_a_difference_at_one_size_only_is_found() -> None:
    text = """g (float[1,time] x) => (float[1,half] y) {{
        y = AveragePool <kernel_shape = [2], strides = [2], ceil_mode = {ceil}> (z)
        axis = Constant <value = int64[1] {{0}}> ()
        z = Unsqueeze(x, axis) }}"""
    before, after = (parse(text.format(ceil=c).replace("y =", "p =", 1)) for c in (0, 1))
    for model in (before, after):
        model.graph.node.append(helper.make_node("Squeeze", ["p", "axis"], ["y"]))
        nodes = sorted(
            model.graph.node,
            key=lambda n: ["Constant", "Unsqueeze", "AveragePool", "Squeeze"].index(n.op_type),
        )
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    verdict = verify(before, after)
    assert verdict.status == "differs"
    assert "its shape is [1, 19], not [1, 18], at time=37" in verdict.detail


def test_a_verdict_survives_json() -> None:
    verdict = verify(parse(SCALE), parse(SCALE.replace("{2.0}", "{2.1}")))
    assert Verdict.from_dict(json.loads(json.dumps(verdict.to_dict()))) == verdict
    shape = verify(
        parse(SCALE),
        parse(
            SCALE.replace("Mul(x, k)", "Expand(x, three)").replace(
                "float k = {2.0}", "int64[3] three = {1, 1, 1}"
            )
        ),
    )
    assert shape.status == "differs"
    assert Verdict.from_dict(json.loads(json.dumps(shape.to_dict(), allow_nan=False))) == shape


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        (SCALE.replace("x)", "z)").replace("(x,", "(z,"), "the inputs changed: `x` left; `z` came"),
        (SCALE.replace("y)", "z)").replace("y =", "z ="), "the outputs changed: `y` left"),
        (SCALE.replace("float", "double"), "input `x` of the result has dtype double, not float"),
        (
            SCALE.replace("[batch,3]", "[batch,a,b]"),
            "input `x` of the result has rank 3, not 2 as in the original",
        ),
        (SCALE.replace("[batch,3]", "[batch,4]"), "input `x` of the result has size 4 along"),
        (SCALE.replace("Mul(x, k)", "Mystery(x, k)"), "onnxruntime has no `ai.onnx.Mystery`"),
        (SCALE.replace("Mul(x, k)", "Or(x, k)"), "the result does not load: the model does not"),
        (SCALE.replace("batch", "2", 1), "the result does not run at batch=1"),
    ],
)
def test_a_broken_result_is_told_why(text: str, detail: str) -> None:
    verdict = verify(parse(SCALE), parse(text), narrowed=False)
    assert verdict.status == "broken"
    assert detail in verdict.detail


def test_the_order_of_outputs_counts() -> None:
    two = "g (float[2] x) => (float[2] a, float[2] b) { a = Neg(x)  b = Abs(x) }"
    verdict = verify(
        parse(two), parse(two.replace("float[2] a, float[2] b", "float[2] b, float[2] a"))
    )
    assert verdict.status == "broken"
    assert "the order of the outputs changed" in verdict.detail


def test_an_overridable_initializer_may_leave_the_inputs() -> None:
    before = parse(SCALE)
    before.graph.input.append(helper.make_tensor_value_info("k", TensorProto.FLOAT, []))
    assert verify(before, parse(SCALE)).status == "equivalent"
    assert verify(before, before).status == "equivalent"
    assert verify(parse(SCALE), before).status == "broken"


def test_an_input_with_a_value_beside_weights_is_missed(tmp_path: Path) -> None:
    text = "g (float[N] x, float k) => (float[N] y) { a = Mul (x, k) y = Add (a, w) }"
    before = parse(text.replace("float k", "float k, float w"))
    before.graph.initializer.extend(
        numpy_helper.from_array(np.float32(number), name) for number, name in ((2, "k"), (3, "w"))
    )
    after = parse(text.replace(", float k", ""))
    after.graph.initializer.extend(before.graph.initializer)
    assert not verify(before, after).remarks, "every weight is listed"
    del before.graph.input[2]
    verdict = verify(before, after)
    assert verdict.status == "equivalent"
    assert "`k` had a value in the file, and could be given another" in verdict.remarks[0]
    for k, compared in ((2, True), (5, False)):
        np.savez(tmp_path / "run.npz", x=np.ones(3, F32), k=F32(k))
        found = verify(before, after, data=tmp_path / "run.npz")
        assert found.status == ("equivalent" if compared else "runs")
        assert any(each.drawn == "run.npz" for each in found.comparisons) == compared
        assert [each.what for each in found.not_compared] == ["data `run.npz`"] * (not compared)


POOL = """g (float[N,3,H,W] x) => (float[N,3,1,1] y) <int64[2] one = {1, 1}> {
    y = org.pytorch.aten.ATen <operator = "adaptive_avg_pool2d", overload_name = ""> (x, one) }"""


def test_an_original_with_aten_nodes_is_run_by_the_witness() -> None:
    after = parse("g (float[N,3,H,W] x) => (float[N,3,1,1] y) { y = GlobalAveragePool(x) }")
    verdict = verify(parse(POOL), after)
    assert verdict.status == "equivalent"
    assert {c.by for c in verdict.comparisons} == {"witness"}
    assert len({c.sizes["H"] for c in verdict.comparisons}) >= 3
    assert any(c.sizes["H"] % 2 for c in verdict.comparisons)
    wrong = parse("g (float[N,3,H,W] x) => (float[N,3,1,1] y) { y = GlobalMaxPool(x) }")
    assert verify(parse(POOL), wrong).status == "differs"


def test_aten_nodes_that_stay_are_custom_operators_and_still_compared() -> None:
    verdict = verify(parse(POOL), parse(POOL))
    assert verdict.status == "runs"
    assert verdict.custom_operators == ("org.pytorch.aten.ATen",)
    assert verdict.comparisons
    wrong = parse(POOL.replace("avg_pool2d", "max_pool2d"))
    assert verify(parse(POOL), wrong).status == "differs"


def test_custom_operators_are_those_of_the_input_and_those_declared() -> None:
    custom = parse("g (float[2] x) => (float[2] y) { y = my.Thing(x) }")
    verdict = verify(custom, custom)
    assert (verdict.status, verdict.custom_operators) == ("runs", ("my.Thing",))
    plain = parse("g (float[2] x) => (float[2] y) { y = Neg(x) }")
    assert verify(plain, custom).status == "broken"
    assert verify(plain, custom, custom={"my.Thing"}).status == "runs"
    assert verify(plain, custom, custom={"my.*"}).status == "runs"
    assert verify(plain, custom, custom={"my"}).status == "runs"
    assert verify(plain, custom, custom={"my.Think", "m", "my.Thing.x"}).status == "broken"
    assert verify(custom, plain).status == "runs"
    assert verify(custom, plain).detail.startswith("it loads, and was not compared: `my.Thing`")


def test_outputs_drawn_at_random_are_not_compared() -> None:
    model = parse(
        "g (float[n] x) => (float[n] y, float[n] z) { y = RandomNormalLike(x)  z = Neg(x) }"
    )
    verdict = verify(model, model)
    assert verdict.status == "runs"
    assert "`y` was not compared: the original draws it at random, or never" in verdict.detail
    assert [n.what for n in verdict.not_compared] == ["output `y`"]
    assert {o.name for c in verdict.comparisons for o in c.outputs} == {"z"}


def test_what_memory_held_is_not_compared_until_it_is_filled() -> None:
    """`torch.empty` gives what memory held; `fill_` and `copy_` take only its sizes."""
    text = (
        "g (float[2] x) => (float[2] y, float[2] z) {"
        " size = Shape(x)  held = aten.empty(size)  y = aten.abs(held)"
        " three = Constant<value_float = 3.0>()  z = aten.fill(held, three) }"
    )
    verdict = verify(parse(text), parse(text))
    assert [n.what for n in verdict.not_compared] == ["output `y`"]
    assert {o.name for c in verdict.comparisons for o in c.outputs} == {"z"}
    wrong = parse(text.replace("3.0", "4.0"))
    assert verify(parse(text), wrong).status == "differs"


def test_an_input_of_unknown_rank_wants_a_shape() -> None:
    model = parse(SCALE)
    model.graph.input[0].type.tensor_type.ClearField("shape")
    verdict = verify(model, model)
    assert verdict.status == "runs"
    assert "the rank of input `x` is not declared" in verdict.detail
    assert verify(model, model, shape={"x": ["batch", 3]}).status == "equivalent"


def test_recorded_outputs_stand_for_the_original(tmp_path: Path) -> None:
    x = np.arange(6, dtype=F32).reshape(2, 3)
    np.savez(tmp_path / "run.0.npz", **{"in.x": x, "out.y": 2 * x})
    np.savez(tmp_path / "run.1.npz", x=-x, y=-2 * x)
    after = parse(SCALE)
    unknown = parse(SCALE.replace("Mul", "my.Mul"))
    for reference in (tmp_path, tmp_path / "run.0.npz", str(tmp_path / "run.*.npz")):
        verdict = verify(unknown, after, reference=reference)
        assert verdict.status == "equivalent"
    assert [c.by for c in verdict.comparisons] == ["recorded run.0.npz", "recorded run.1.npz"]
    assert dict(verdict.comparisons[0].sizes) == {"batch": 2}
    np.savez(tmp_path / "run.1.npz", x=x, y=3 * x)
    verdict = verify(unknown, after, reference=tmp_path)
    assert verdict.status == "differs"
    assert "recorded run.1.npz" in verdict.detail


def test_a_reference_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="`nonsense` is no reference"):
        verify(parse(SCALE), parse(SCALE), reference="nonsense")
    np.savez(tmp_path / "bad.npz", z=np.zeros(1))
    with pytest.raises(RecipeError, match="it holds nothing for input `x`"):
        verify(parse(SCALE), parse(SCALE), reference=tmp_path / "bad.npz")
    with pytest.raises(RecipeError, match=r"nowhere\.npz"):
        verify(parse(SCALE), parse(SCALE), reference=tmp_path / "nowhere.npz")


def test_in_a_worker_the_verdict_is_the_same() -> None:
    assert verify(parse(POOL), parse(POOL), isolated=True) == verify(parse(POOL), parse(POOL))
    after = parse(SCALE.replace("{2.0}", "{2.1}"))
    assert verify(parse(SCALE), after, isolated=True) == verify(parse(SCALE), after)


def test_models_are_read_from_files(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(parse(SCALE), path)
    assert verify(path, str(path)).status == "equivalent"


def test_the_given_models_are_not_touched() -> None:
    before, after = frozen()
    copies = before.SerializeToString(), after.SerializeToString()
    verify(before, after)
    assert (before.SerializeToString(), after.SerializeToString()) == copies


@pytest.mark.slow
@pytest.mark.corpus
def test_a_real_export_against_itself(corpus: Path) -> None:
    path = corpus / "models/dymn04_dynBT__t2.4.1__fallback.onnx"
    verdict = verify(path, path)
    assert verdict.status == "runs"
    assert len({c.sizes["input0_d3"] for c in verdict.comparisons}) == 3
    assert all(c.agrees for c in verdict.comparisons)
    recorded = sorted(path.parent.glob(path.stem + ".0.npz"))
    verdict = verify(path, path, reference=recorded)
    assert (verdict.status, verdict.comparisons[0].agrees) == ("runs", True)


def test_an_option_has_a_value_that_there_is() -> None:
    for wrong in ({"require": "equivalnt"}, {"allow": ["aproximate"]}):
        with pytest.raises(RecipeError, match="is not a value of") as caught:
            surgeon.apply(parse(SCALE), "no-ops", **wrong)  # type: ignore[arg-type]
        assert "Did you mean" in caught.value.mend


def test_a_limit_that_is_too_low_blames_no_rewrite(monkeypatch: pytest.MonkeyPatch) -> None:
    from surgeon.errors import TimeUp
    from surgeon.verify import whole

    def late(*_: object) -> None:
        raise TimeUp("it did not end", where="worker", mend="Give it more with `--timeout`.")

    monkeypatch.setattr(whole, "open_result", late)
    with pytest.raises(TimeUp, match="Give it more with `timeout`"):
        verify(parse(SCALE), parse(SCALE))


def test_where_neither_loads_the_original_is_named() -> None:
    unknown = parse(SCALE.replace("Mul", "AveragePool <kernel_shape = [3, 3, 3, 3]>"))
    verdict = verify(unknown, unknown)
    assert verdict.status == "broken"
    assert verdict.detail.startswith("neither the original nor the result loads: ")


def test_data_on_which_the_original_fails_are_refused(tmp_path: Path) -> None:
    model = parse(
        """
        g (float[3,2] x, int64[n] i) => (float[n,2] y) { y = Gather (x, i) }
        """
    )
    np.savez(tmp_path / "far.npz", x=np.ones((3, 2), F32), i=np.array([9]))
    with pytest.raises(RecipeError, match="does not run on it"):
        verify(model, model, data=tmp_path / "far.npz")


def test_a_verdict_has_no_truth_value() -> None:
    with pytest.raises(TypeError, match="neither true nor false: compare its status"):
        bool(verify(parse(SCALE), parse(SCALE)))


def test_where_larger_values_part_them_it_is_told() -> None:
    """Numbers around 0 meet no bound at 6, and a file of somebody else's may have one."""

    def model(nodes: str) -> onnx.ModelProto:
        return model_of("float[n,8] x", nodes, "y", constants={"lo": F32(0), "hi": F32(6)})

    plain, bounded = model("y = Relu (x)"), model("y = Clip (x, lo, hi)")
    found = verify(plain, bounded)
    assert found.status == "equivalent"
    (remark,) = found.remarks
    assert "on values 32 times as large" in remark
    told = remark.rpartition("--input '")[2].removesuffix("'`")
    name, _, spec = told.partition("=")
    assert verify(plain, bounded, inputs={name: spec}).status == "differs"
    assert verify(plain, bounded, inputs={"x": "uniform(0,1)"}).remarks == ()
    assert verify(plain, bounded, allow_approximate=2.0).remarks == ()
    assert verify(plain, model("y = Max (x, lo)")).remarks == ()
    spelled = "e = Exp (x) s = Sub (e, lo) y = Sub (s, lo)"  # infinite, there
    assert verify(model("y = Exp (x)"), model(spelled)).remarks == ()


def test_what_is_nan_throughout_says_nothing() -> None:
    def model(factor: float) -> onnx.ModelProto:
        nodes = "e = Sub (x, hundred) r = Sqrt (e) y = Mul (r, f)"
        return model_of("float[n] x", nodes, "y", constants={"hundred": F32(100), "f": F32(factor)})

    found = verify(model(1), model(7))
    assert found.status == "runs"
    assert "output `y` was not compared: it is NaN throughout" in found.detail
    assert verify(model(1), model(7), inputs={"x": "uniform(100,200)"}).status == "differs"


def test_where_integers_below_0_part_them_it_is_told() -> None:
    """They are drawn as places and sizes are, from 0 on."""

    def model(nodes: str) -> onnx.ModelProto:
        return model_of("int64[n,8] x", nodes, "y", constants={"one": np.array(1)})

    plain, other = model("y = Abs (x)"), model("y = Identity (x)")
    found = verify(plain, other)
    assert found.status == "equivalent"
    (remark,) = found.remarks
    assert "on integers from -9 to 9" in remark
    assert verify(plain, other, inputs={"x": "ints(-9,10)"}).status == "differs"
    assert verify(plain, other, inputs={"x": "ints(0,10)"}).remarks == ()
    assert verify(plain, model("a = Mul (x, one) y = Abs (a)")).remarks == ()
