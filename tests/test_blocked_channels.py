"""CNNs that onnxruntime saved with channels in blocks (`com.microsoft.nchwc`), taken out of them.

Files of this machine come from onnxruntime's own optimizer; those of others are made here, from
weights that are put into blocks by an order of loops, as MLAS's `reorder.cpp` does it.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper
from truth import parse

import surgeon
from surgeon import blocks
from surgeon.helpful import recipes_for
from surgeon.reference.executor import Reference
from surgeon.runtime import NotRunnable, Session, block_here

DOMAINS = f', "{blocks.DOMAIN}": 1'
HERE = pytest.mark.skipif(block_here() is None, reason="onnxruntime has no blocks here")


def normal(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32) / 2


def network(text: str, weights: dict[str, tuple[int, ...]]) -> onnx.ModelProto:
    model = parse(text)
    for seed, (name, shape) in enumerate(weights.items()):
        model.graph.initializer.append(numpy_helper.from_array(normal(*shape, seed=seed), name))
    return model


def optimised(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """As onnxruntime saves it with all that it can do on this machine."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.optimized_model_filepath = str(folder / "optimised.onnx")
    ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return onnx.load(options.optimized_model_filepath)


RESIDUAL = (
    """g (float[N,3,H,W] x) => (float[N,24,H,W] y, float[N,A,B,24] t, float[N,10,1,1] z) {
        c = Conv <pads = [1, 1, 1, 1]> (x, w1, b1)
        r = Relu (c)
        d = Conv <group = 24, pads = [1, 1, 1, 1]> (r, w2)
        e = Conv (d, w3, b3)
        y = Add (e, r)
        m = MaxPool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]> (y)
        h = Conv (m, w4)
        s = Sigmoid (h)
        u = Mul (h, s)
        t = Transpose <perm = [0, 2, 3, 1]> (m)
        g2 = GlobalAveragePool (u)
        z = Conv (g2, w5, b5)
    }""",
    {
        **{"w1": (24, 3, 3, 3), "b1": (24,), "w2": (24, 1, 3, 3), "w3": (24, 24, 1, 1)},
        **{"b3": (24,), "w4": (40, 24, 1, 1), "w5": (10, 40, 1, 1), "b5": (10,)},
    },
)
JOINED = (
    """g (float[N,3,16,16] x) => (float[N,112,32,32] y, float[N,48,16,16] z) {
        a = Conv (x, w1)
        b = Conv <group = 3> (a, w2, b2)
        j = Concat <axis = 1> (a, b)
        p = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (j)
        z = Tanh (b)
        i = Clip (p, low, high)
        q = Conv (i, w3)
        u = Resize <coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"> (q, , sc)
        v = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel"> (q, , sc)
        y = Add (u, v)
    }""",
    {"w1": (48, 3, 1, 1), "w2": (48, 16, 1, 1), "b2": (48,), "w3": (112, 96, 1, 1)},
)


@HERE
@pytest.mark.parametrize("text", [RESIDUAL, JOINED], ids=["residual", "joined"])
def test_what_onnxruntime_saved_here_is_the_network_again(
    text: tuple[str, dict[str, tuple[int, ...]]], tmp_path: Path
) -> None:
    model = network(*text)
    for name, values in {"low": -1, "high": 1}.items():
        model.graph.initializer.append(numpy_helper.from_array(np.float32(values), name))
    scales = np.array([1, 1, 2, 2], np.float32)
    model.graph.initializer.append(numpy_helper.from_array(scales, "sc"))
    saved = optimised(model, tmp_path)
    assert blocks.DOMAIN in {node.domain for node in saved.graph.node}
    told = blocks.told(saved)
    assert told in (None, block_here())
    result = surgeon.apply(saved, "blocks-as-here", "contrib", "clean", allow={"contract"})
    out = result.model.to_proto()
    assert {node.domain for node in out.graph.node} == {""}
    if told is not None:
        found = surgeon.apply(saved, "contrib", "clean").model.to_proto()
        assert {node.domain for node in found.graph.node} == {""}
    rows = sum(node.op_type == "Conv" for node in model.graph.node)
    assert sum(node.op_type == "Conv" for node in out.graph.node) == rows
    shape = (2, 3, 16, 16)
    feeds = {"x": normal(*shape)}
    wanted = Session(model).run(feeds)
    for name, array in Session(out).run(feeds).items():
        np.testing.assert_allclose(array, wanted[name], rtol=1e-4, atol=1e-5)


@HERE
def test_the_witness_computes_what_the_kernels_compute(tmp_path: Path) -> None:
    saved = optimised(network(*RESIDUAL), tmp_path)
    feeds = {"x": normal(1, 3, 7, 9)}
    wanted = Session(saved).run(feeds)
    for name, array in Reference(saved).run(feeds).items():
        np.testing.assert_allclose(array, wanted[name], rtol=1e-4, atol=1e-5)


def put_in_blocks(w: np.ndarray[Any, Any], block: int, *, direct: bool) -> np.ndarray[Any, Any]:
    """A weight as MLAS orders it: `direct` where its input, or each channel, is in no blocks."""
    made, read, *kernel = w.shape
    made_padded = -(-made // block) * block
    read_padded = read if direct else -(-read // block) * block
    padded = np.zeros((made_padded, read_padded, *kernel), np.float32)
    padded[:made, :read] = w
    lanes = []
    inner = 1 if direct else block
    for o, i, h, v in product(
        range(0, made_padded, block), range(0, read_padded, inner), *map(range, kernel)
    ):
        for lane in range(inner):
            lanes.extend(padded[o : o + block, i + lane, h, v])
    return np.array(lanes, np.float32).reshape(padded.shape)


def of_other_machine(block: int) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """A network, and the same in blocks of so many channels."""
    w1, w2, w3 = normal(20, 3, 3, 3), normal(20, 1, 3, 3, seed=1), normal(12, 20, 1, 1, seed=2)
    plain = parse(
        """g (float[N,3,H,W] x) => (float[N,12,H,W] y) {
            a = Conv <pads = [1, 1, 1, 1]> (x, w1)
            b = Conv <group = 20, pads = [1, 1, 1, 1]> (a, w2)
            c = Add (a, b)
            d = Relu (c)
            y = Conv (d, w3)
        }"""
    )
    width = -(-20 // block) * block
    depthwise = f'group = {width}, pads = [1, 1, 1, 1], activation = "Relu"'
    blocked = parse(
        f"""g (float[N,3,H,W] x) => (float[N,12,H,W] y) {{
            a = {blocks.DOMAIN}.Conv <pads = [1, 1, 1, 1]> (x, w1)
            d = {blocks.DOMAIN}.Conv <{depthwise}> (a, w2, , a)
            e = {blocks.DOMAIN}.Conv (d, w3)
            y = {blocks.DOMAIN}.ReorderOutput <channels = 12> (e)
        }}""",
        domains=DOMAINS,
    )
    for name, w in {"w1": w1, "w2": w2, "w3": w3}.items():
        plain.graph.initializer.append(numpy_helper.from_array(w, name))
        turned = put_in_blocks(w, block, direct=name != "w3")
        blocked.graph.initializer.append(numpy_helper.from_array(turned, name))
    return plain, blocked


@pytest.mark.parametrize("block", [8, 16])
def test_blocks_of_another_machine_are_told_by_the_file(block: int) -> None:
    plain, blocked = of_other_machine(block)
    assert blocks.told(blocked) == block
    if block != block_here():
        with pytest.raises(NotRunnable, match=r"nchwc"):
            Session(blocked)
    result = surgeon.apply(blocked, "contrib", "clean")
    assert result.report.status == "equivalent"
    out = result.model.to_proto()
    assert {node.domain for node in out.graph.node} == {""}
    feeds = {"x": normal(2, 3, 6, 5, seed=7)}
    wanted = Session(plain).run(feeds)["y"]
    np.testing.assert_allclose(Session(out).run(feeds)["y"], wanted, rtol=1e-4, atol=1e-5)


def test_a_file_that_leaves_the_size_open_is_asked_about() -> None:
    """All channels are multiples of 16."""
    blocked = parse(
        f"""g (float[N,16,4,4] x) => (float[N,32,4,4] y) {{
            b = {blocks.DOMAIN}.ReorderInput (x)
            c = {blocks.DOMAIN}.Conv (b, w)
            y = {blocks.DOMAIN}.ReorderOutput <channels = 32> (c)
        }}""",
        domains=DOMAINS,
    )
    w = put_in_blocks(normal(32, 16, 1, 1), 8, direct=False)
    blocked.graph.initializer.append(numpy_helper.from_array(w, "w"))
    assert blocks.told(blocked) is None
    result = surgeon.apply(blocked, "contrib")
    assert not result.model.changed
    assert any("nothing in the file tells which" in miss.reason for miss in result.report.misses)


def of_many(block: int, *, trained: bool) -> onnx.ModelProto:
    """Six Convs of 64 channels, whose filters differ in size where they are trained."""
    lines = [f"y0 = {blocks.DOMAIN}.ReorderInput (x)"]
    lines += [f"y{i + 1} = {blocks.DOMAIN}.Conv (y{i}, w{i})" for i in range(6)]
    lines += [f"y = {blocks.DOMAIN}.ReorderOutput <channels = 64> (y6)"]
    text = f"g (float[N,64,4,4] x) => (float[N,64,4,4] y) {{ {' '.join(lines)} }}"
    model = parse(text, domains=DOMAINS)
    for i in range(6):
        w = normal(64, 64, 1, 1, seed=i) / 8
        if trained:
            w = w * np.exp(normal(64, 1, 1, 1, seed=i + 9))
        turned = put_in_blocks(w.astype(np.float32), block, direct=False)
        model.graph.initializer.append(numpy_helper.from_array(turned, f"w{i}"))
    return model


@pytest.mark.parametrize("block", [8, 16])
def test_what_looks_like_another_machine_is_not_taken_for_this_one(block: int) -> None:
    model = of_many(block, trained=True)
    assert blocks.told(model) is None
    assert blocks.likelier(model) == block
    (miss,) = surgeon.apply(model, "contrib").report.misses
    assert f"nothing in the file tells which (its weights look like {block})" in miss.reason
    result = surgeon.apply(model, "blocks-as-here", allow={"contract"})
    assert result.model.changed is (block == block_here())
    if block != block_here() is not None:
        assert any("look like others" in miss.reason for miss in result.report.misses)


@pytest.mark.parametrize("block", [8, 16])
def test_weights_that_were_never_trained_look_like_neither(block: int) -> None:
    assert blocks.likelier(of_many(block, trained=False)) is None


def weighed(dims: tuple[int, ...], **said: int) -> onnx.ModelProto:
    node = helper.make_node("Conv", ["x", "w"], ["y"], domain=blocks.DOMAIN, **said)
    w = helper.make_tensor("w", TensorProto.FLOAT, dims, np.ones(dims, np.float32).ravel())
    graph = helper.make_graph([node], "g", [], [], [w])
    opsets = [helper.make_opsetid(blocks.DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets)


@pytest.mark.parametrize(
    ("dims", "group", "told"),
    [
        ((24, 3, 1, 1), 1, 8),
        ((32, 24, 1, 1), 1, 8),
        ((32, 8, 1, 1), 1, None),  # eight that are in a block, or fewer than sixteen that are not
        ((32, 12, 1, 1), 1, 16),
        ((32, 32, 1, 1), 1, None),
        ((64, 8, 1, 1), 8, 8),
        ((48, 16, 1, 1), 2, 8),
        ((48, 1, 3, 3), 48, None),
        ((40, 1, 3, 3), 40, 8),
    ],
)
def test_what_the_shape_of_a_weight_tells(
    dims: tuple[int, ...], group: int, told: int | None
) -> None:
    assert blocks.told(weighed(dims, group=group)) == told


def test_a_file_that_contradicts_itself_tells_nothing() -> None:
    model = weighed((24, 3, 1, 1))
    model.graph.MergeFrom(weighed((32, 12, 1, 1)).graph)
    model.graph.node[1].input[1] = model.graph.initializer[1].name = "v"
    assert blocks.told(model) is None


def test_a_weight_of_nothing_tells_nothing() -> None:
    model = weighed((16, 0, 1, 1))
    assert blocks.told(model) is None
    assert blocks.likelier(model) is None


def test_channels_that_fit_no_weight_are_refused() -> None:
    _, blocked = of_other_machine(8)
    end = blocked.graph.node[3]
    del end.attribute[:]
    end.attribute.append(helper.make_attribute("channels", 9))  # of 12 that the weight makes
    result = surgeon.apply(blocked, "contrib")
    assert not result.model.changed
    assert any("9 channels" in miss.reason for miss in result.report.misses)


def test_every_operator_on_blocks_is_told_the_recipes_that_take_the_stretch() -> None:
    for name in ("Conv", "MaxPool", "ReorderInput", "Upsample"):
        assert "contrib" in recipes_for(f"{blocks.DOMAIN}.{name}")
    assert recipes_for("com.microsoft.nobody") == ()
