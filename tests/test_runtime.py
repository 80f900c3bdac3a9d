"""onnxruntime behind its one door, and the worker that survives its crashes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from truth import model_of

from surgeon.errors import ForeignError
from surgeon.isolation import cell, isolation, open_session
from surgeon.reference import Undefined
from surgeon.reference.executor import Reference
from surgeon.runtime import NotRunnable, RunFailed, Session, without_schema
from surgeon.workers import Worker


def parse(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


RELU = '<ir_version: 8, opset_import: ["": 17]> g (float[N,3] x) => (float[N,3] y) {y = Relu(x)}'


def test_a_session_names_its_ports_and_runs() -> None:
    session = Session(parse(RELU))
    assert [(p.name, p.type, p.shape) for p in session.inputs] == [("x", "tensor(float)", ("N", 3))]
    y = session.run({"x": np.array([[-1, 0, 2]], np.float32)})["y"]
    assert y.tolist() == [[0, 0, 2]]


def test_the_operators_that_are_missing_are_all_named() -> None:
    model = parse(
        """<ir_version: 8, opset_import: ["": 17, "my": 1, "org.pytorch.aten": 1]>
        g (float[N,3] x) => (float[N,3] y) {
            a = my.Foo(x)  b = org.pytorch.aten.ATen <operator = "gelu"> (a)  y = Relu(b) }"""
    )
    with pytest.raises(NotRunnable) as caught:
        Session(model)
    assert caught.value.operators == ("my.Foo", "org.pytorch.aten.ATen")
    assert "is not a registered function/op" in caught.value.text


def test_a_model_local_function_is_no_missing_operator() -> None:
    model = parse(
        """<ir_version: 8, opset_import: ["": 17, "my": 1]>
        g (float[N,3] x) => (float[N,3] y) { y = my.Twice(x) }
        <domain: "my", opset_import: ["": 17]> Twice (a) => (b) { b = Add(a, a) }"""
    )
    assert without_schema(model) == ()
    assert Session(model).run({"x": np.ones((1, 3), np.float32)})["y"].tolist() == [[2, 2, 2]]


def test_an_invalid_model_is_told_in_onnxruntimes_words() -> None:
    model = parse(
        '<ir_version: 8, opset_import: ["": 17]> g (int8[N,3] x) => (int8[N,3] y) {y = Softmax(x)}'
    )
    with pytest.raises(NotRunnable, match="of operator \\(Softmax\\)") as caught:
        Session(model)
    assert caught.value.operators == ()


def test_an_operator_without_a_kernel_is_named() -> None:
    model = parse(
        '<ir_version: 8, opset_import: ["": 17]> g (double[N,3] x) => (double[N,3] y) {y = Elu(x)}'
    )
    with pytest.raises(NotRunnable) as caught:
        Session(model)
    assert caught.value.operators == ("ai.onnx.Elu",)


def test_a_run_that_fails_says_why() -> None:
    with pytest.raises(RunFailed, match="Invalid rank for input: x"):
        Session(parse(RELU)).run({"x": np.ones(3, np.float32)})


@pytest.mark.parametrize("shape", [(0, 3, 1), (4, 0, 1)])
def test_recurrent_layers_of_no_elements_are_not_tried(shape: tuple[int, ...]) -> None:
    weights = {"w": np.ones((1, 3, 1), np.float32), "r": np.ones((1, 3, 1), np.float32)}
    model = model_of("float[t,b,1] x", "y = GRU <hidden_size = 1> (x, w, r)", "y", 13, weights)
    session = Session(model)
    with pytest.raises(RunFailed, match="no steps, rows or planes of nothing"):
        session.run({"x": np.zeros(shape, np.float32)})
    assert session.run({"x": np.zeros((4, 3, 1), np.float32)})["y"].shape == (4, 1, 3, 1)


def test_features_of_no_rows_are_not_put_side_by_side() -> None:
    text = """<ir_version: 8, opset_import: ["": 15, "ai.onnx.ml": 3]>
        g (int64[N,2] a) => (float[N,2] y) {
            y = ai.onnx.ml.FeatureVectorizer <inputdimensions = [2]> (a)
        }"""
    session = Session(parse(text))
    with pytest.raises(RunFailed, match="no steps, rows or planes of nothing"):
        session.run({"a": np.zeros((0, 2), np.int64)})
    assert session.run({"a": np.ones((3, 2), np.int64)})["y"].shape == (3, 2)


def test_an_einsum_of_no_elements_ends_no_witness() -> None:
    text = """<ir_version: 7, opset_import: ["": 12, "org.pytorch.aten": 1]>
        g (float[b,t,2] x) => (float[b,t,t] y) {
            r = org.pytorch.aten.relu (x)
            y = Einsum <equation = "bid,bjd->bij"> (r, r)
        }"""
    reference = Reference(parse(text))
    with pytest.raises(Undefined, match="divides by the length of an axis"):
        reference.run({"x": np.zeros((2, 0, 2), np.float32)})
    assert reference.run({"x": np.ones((2, 3, 2), np.float32)})["y"].shape == (2, 3, 3)


@pytest.mark.parametrize("shape", [(0, 3, 1), (4, 0, 1)])
def test_nor_are_those_whose_weights_are_bytes(shape: tuple[int, ...]) -> None:
    text = """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
        g (float[T,N,1] x) => (float[T,1,N,1] y)
        <uint8[1,1,4] w = {1, 2, 3, 4}, float[1] s = {0.1}, uint8[1] z = {2}> {
            y = com.microsoft.DynamicQuantizeLSTM <hidden_size = 1> (x, w, w, , , , , , s, z, s, z)
        }"""
    session = Session(parse(text))
    with pytest.raises(RunFailed, match="no steps, rows or planes of nothing"):
        session.run({"x": np.zeros(shape, np.float32)})
    assert session.run({"x": np.zeros((4, 3, 1), np.float32)})["y"].shape == (4, 1, 3, 1)


@pytest.mark.parametrize("dtype", ["float16", "float"])
def test_planes_of_nothing_are_not_tried(dtype: str) -> None:
    """Of float32 they end the process where they are made inside, not where they are fed."""
    model = parse(
        f"""<ir_version: 8, opset_import: ["": 17]> g ({dtype}[n,2,h,w] x) => ({dtype}[n,2,h,w] y)
        <{dtype}[2] s = {{1, 1}}, {dtype}[2] b = {{0, 0}}> {{
            a = Abs (x)
            y = InstanceNormalization (a, s, b)
        }}"""
    )
    kind = np.float16 if dtype == "float16" else np.float32
    with pytest.raises(RunFailed, match="rows or planes of nothing"):
        Session(model).run({"x": np.zeros((1, 2, 0, 3), kind)})
    assert Session(model).run({"x": np.zeros((1, 2, 1, 3), kind)})["y"].shape == (1, 2, 1, 3)


def test_unique_rows_of_nothing_are_not_tried() -> None:
    rows, elements = (
        Session(
            parse(f'<ir_version: 8, opset_import: ["": 17]> g (float[N,T] x) => ({out}) {body}')
        )
        for out, body in (
            ("float[n,t] y", "{ y = Unique <axis = 0> (x) }"),
            ("float[n] y", "{ y = Unique (x) }"),
        )
    )
    nothing = {"x": np.zeros((3, 0), np.float32)}
    with pytest.raises(RunFailed, match="rows or planes of nothing"):
        rows.run(nothing)
    assert elements.run(nothing)["y"].shape == (0,)
    assert rows.run({"x": np.zeros((3, 2), np.float32)})["y"].shape == (1, 2)


def test_bfloat16_goes_in_and_comes_out() -> None:
    model = parse(
        """<ir_version: 8, opset_import: ["": 17]> g (float[N] x, bfloat16[N] b) => (bfloat16[N] y)
        { f = Cast <to = 1> (b)  s = Add(f, x)  y = Cast <to = 16> (s) }"""
    )
    feeds = {"x": np.ones(2, np.float32), "b": np.array([0.5, 2], ml_dtypes.bfloat16)}
    y = Session(model).run(feeds)["y"]
    assert y.dtype == ml_dtypes.bfloat16
    assert y.astype(np.float32).tolist() == [1.5, 3]


def test_a_number_of_bfloat16_stays_without_axes() -> None:
    model = parse(
        """<ir_version: 8, opset_import: ["": 17]> g (bfloat16 b) => (float y)
        { y = Cast <to = 1> (b) }"""
    )
    y = Session(model).run({"b": np.asarray(0.5, ml_dtypes.bfloat16)})["y"]
    assert y.shape == ()
    assert y == 0.5


def test_external_data_is_found_by_path_and_by_folder(tmp_path: Path) -> None:
    model = parse(
        '<ir_version: 8, opset_import: ["": 17]> g (float[N,3] x) => (float[N,3] y) {y = Add(x, w)}'
    )
    weights = np.arange(3, dtype=np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="model.data", size_threshold=0)
    slim = onnx.load(path, load_external_data=False)
    assert not slim.graph.initializer[0].raw_data
    feeds = {"x": np.zeros((1, 3), np.float32)}
    assert Session(path).run(feeds)["y"].tolist() == [[0, 1, 2]]
    assert Session(slim, folder=tmp_path).run(feeds)["y"].tolist() == [[0, 1, 2]]


def test_an_isolated_session_does_the_same_and_raises_the_same() -> None:
    with isolation():
        session = open_session(parse(RELU))
        assert not isinstance(session, Session)
        assert session.run({"x": -np.ones((1, 3), np.float32)})["y"].tolist() == [[0, 0, 0]]
        with pytest.raises(RunFailed, match="Invalid rank"):
            session.run({"x": np.ones(3, np.float32)})
        unknown = parse(RELU.replace("Relu", "Ruel"))
        with pytest.raises(NotRunnable) as caught:
            open_session(unknown)
        assert caught.value.operators == ("ai.onnx.Ruel",)


def test_a_crash_is_an_error_and_the_worker_goes_on() -> None:
    with isolation():
        session = open_session(parse(RELU))
        here = cell()
        assert here is not None
        with pytest.raises(ForeignError, match="`os:abort` crashed"):
            here.worker.call("os:abort")
        with pytest.raises(ForeignError, match=r"`os:_exit` crashed \(exit code 5\)"):
            here.worker.call("os:_exit", 5)
        assert here.worker.call("math:sqrt", 9) == 3
        assert session.run({"x": np.ones((1, 3), np.float32)})["y"].tolist() == [[1, 1, 1]]


def test_what_a_task_raises_is_raised_here() -> None:
    with Worker() as worker, pytest.raises(ValueError, match=r"math domain|nonnegative"):
        worker.call("math:sqrt", -1)


def test_a_task_that_hangs_is_ended() -> None:
    with Worker() as worker:
        assert worker.call("math:sqrt", 4) == 2
        begin = time.monotonic()
        with pytest.raises(ForeignError, match=r"`time:sleep` did not end within 0.2 seconds"):
            worker.call("time:sleep", 60, timeout=0.2)
        assert time.monotonic() - begin < 20
        assert worker.call("math:sqrt", 4) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited on Linux only")
def test_exhausted_memory_is_named() -> None:
    with Worker() as worker:
        with pytest.raises(ForeignError, match="ran out of memory"):
            worker.call("builtins:bytearray", 8 << 30, memory=2 << 30)
        assert worker.call("math:sqrt", 4) == 2


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="asks for a process by its number")
def test_the_worker_dies_with_its_parent() -> None:
    code = (
        "import os; from surgeon.workers import Worker; w = Worker();"
        "print(w.call('os:getpid'), flush=True); os._exit(0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    number = int(ran.stdout)
    for _ in range(100):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("the worker outlives its parent")


def test_what_has_no_kernel_is_named_with_its_domain() -> None:
    """onnxruntime gives the name alone, whatever the domain is."""
    model = parse(
        """<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]>
        g (float[N,S,4] x, float[4] b, float[N,S,4] k) => (float[N,S,4] y)
        { y = com.microsoft.BiasAdd (x, b, k) }"""
    )
    with pytest.raises(NotRunnable) as caught:
        Session(model)
    assert caught.value.operators == ("com.microsoft.BiasAdd",)
