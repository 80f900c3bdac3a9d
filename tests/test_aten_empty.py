"""ATen operators of no elements: no samples in a batch, or nothing to reduce."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from aten_node import Written, agrees, close, expected

import surgeon
from surgeon.reference.errors import Unsuited

ONNXRUNTIME = tuple(int(part) for part in ort.__version__.split(".")[:2])
R = np.random.default_rng(7)


def of(*shape: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    return R.standard_normal(shape).astype(dtype)


GROUPS: list[tuple[str, list[Any], int]] = [
    *(("adaptive_avg_pool1d", [of(2, 3, 8), [out]], 1) for out in (1, 3, 4)),
    *(("adaptive_avg_pool2d", [of(2, 3, 8, 6), out], 1) for out in ([5, 6], [4, 2], [1, 1])),
    *(("adaptive_avg_pool3d", [of(2, 3, 4, 8, 6), out], 1) for out in ([4, 4, 3], [3, 5, 4])),
    *(
        ("group_norm", [of(2, 6, *rest), 3, of(6), of(6), 1e-5, True], 1)
        for rest in ((), (4,), (4, 5))
    ),
    ("group_norm", [of(2, 6, 4, dtype=np.float64), 3, None, None, 1e-5, True], 1),
]


@pytest.mark.parametrize("opset", [9, 13, 18])
@pytest.mark.parametrize(("operator", "arguments", "outputs"), GROUPS)
def test_a_batch_of_no_samples(
    operator: str, arguments: list[Any], outputs: int, opset: int
) -> None:
    """The batch alone is known at run time only: none is a batch as well."""
    wanted = expected(operator, arguments)[:outputs]
    written = Written(operator, arguments, "A+", opset, dynamic=False)
    written.inputs[0].type.tensor_type.shape.dim[0].dim_param = "N"
    model = written.model(wanted, listed=False)
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "N"
    result = surgeon.apply(model, "aten", verify=False).model.to_proto()
    assert {n.domain for n in result.graph.node} <= {""}
    session = ort.InferenceSession(result.SerializeToString())
    name = written.inputs[0].name
    products = any(n.op_type == "MatMul" for n in result.graph.node)
    # onnxruntime has products of no matrices from 1.32
    for count in (2,) if products and ONNXRUNTIME < (1, 32) else (2, 0):
        x = arguments[0][:count]
        feeds = {**written.feeds, name: x}
        names = {i.name for i in session.get_inputs()}
        (y,) = session.run(None, {k: v for k, v in feeds.items() if k in names})
        (its,) = expected(operator, [x, *arguments[1:]])[:1]
        assert y.shape == its.shape
        close(y, its)


def test_a_grid_of_no_samples() -> None:
    x, grid = of(2, 3, 4, 5), of(2, 6, 7, 2)
    arguments = [x, grid, 0, 0, False]
    wanted = expected("grid_sampler", arguments)
    written = Written("grid_sampler", arguments, "A+", 13, dynamic=False)
    model = written.model(wanted, listed=False)
    for value in (*model.graph.input, *model.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    result = surgeon.apply(model, "aten", verify=False).model.to_proto()
    session = ort.InferenceSession(result.SerializeToString())
    names = [value.name for value in model.graph.input]
    for count in (2, 0):
        (y,) = session.run(None, dict(zip(names, (x[:count], grid[:count]), strict=True)))
        assert y.shape == (count, 3, 6, 7)
        close(y, wanted[0][:count])


def test_a_grid_over_nothing_has_no_answer() -> None:
    with pytest.raises(Unsuited, match="nothing to sample"):
        expected("grid_sampler", [of(2, 3, 4, 0), of(2, 6, 7, 2), 0, 0, False])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # numpy and PyTorch warn of means of nothing
@pytest.mark.parametrize("opset", [9, 13, 18])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_moments_of_nothing_are_no_numbers(opset: int, dtype: Any) -> None:
    x = of(3, 0, 2, dtype=dtype)
    calls: list[tuple[str, list[Any]]] = [("mean", [x, None]), ("mean.dim", [x, [1], True, None])]
    for keep in (False, True):
        for name in ("var", "std", "var_mean", "std_mean"):
            calls += [(f"{name}.dim", [x, [1], u, keep]) for u in (True, False)]
            calls += [(f"{name}.correction", [x, [0, 1], c, keep]) for c in (0, 2)]
            calls += [(f"{name}.correction", [x, [0], 1, keep])]
    calls += [(name, [x, u]) for name in ("var", "std") for u in (True, False)]
    for operator, arguments in calls:
        agrees(operator, arguments, {}, opset, dynamic=False)


@pytest.mark.filterwarnings("ignore")
def test_a_deviation_of_nothing_known_at_run_time_only() -> None:
    """Divided by no elements it is no number either."""
    written = Written("var.dim", [of(3, 2), [1], True, False], "A+", 13, dynamic=True)
    model = written.model([of(3)], listed=False)
    result = surgeon.apply(model, "aten", verify=False).model.to_proto()
    session = ort.InferenceSession(result.SerializeToString())
    (y,) = session.run(None, {written.inputs[0].name: of(3, 0)})
    assert y.shape == (3,)
    assert np.isnan(y).all()


@pytest.mark.parametrize("opset", [9, 13])
@pytest.mark.parametrize("dynamic", [False, True])
def test_no_truth_values_are_none_and_all(dynamic: bool, opset: int) -> None:
    """A sum and a product in booleans: PyTorch's 11 is bool."""
    for x in (np.zeros((0, 3), bool), np.array([[False, False], [True, False], [True, True]])):
        agrees("sum.dim_IntList", [x, [0], False, 11], {}, opset, dynamic=dynamic)
        agrees("prod.dim_int", [x, 0, True, 11], {}, opset, dynamic=dynamic)
        agrees("prod", [x, 11], {}, opset, dynamic=dynamic)


@pytest.mark.parametrize("opset", [9, 18])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i8", "i4", "i2", "u1"])
def test_the_median_of_nothing_at_all(dtype: str, opset: int) -> None:
    """No number; of integers what C makes of that."""
    for operator in ("median", "nanmedian"):
        agrees(operator, [np.zeros((3, 0), dtype)], {}, opset, dynamic=False)
