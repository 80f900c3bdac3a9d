"""What holds of a model that a recipe was applied to: it computes the same, with the same face."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

import surgeon
from surgeon.runtime import Session

F32, I64 = np.float32, np.int64
NAN, INF = F32("nan"), F32("inf")
RNG = np.random.default_rng(5)
Feeds = Mapping[str, Any]
SPECIAL = np.array([[-0.0, 0.0, NAN], [INF, -INF, -1.5]], F32)
EVERY = ("clean", "aten")


def noise(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(F32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, I64)


def given(proto: onnx.ModelProto, **tensors: Any) -> onnx.ModelProto:
    """The model with these initializers."""
    for name, value in tensors.items():
        array = value if isinstance(value, np.ndarray) else np.asarray(value)
        proto.graph.initializer.append(numpy_helper.from_array(array, name))
    return proto


def one(value: Any) -> np.ndarray:
    """A result as bits: -0.0 is not 0.0, and a NaN is as any other."""
    array = np.asarray(value)
    if array.dtype.kind not in "fc":
        return array
    return np.where(np.isnan(array), array.dtype.type(7), array)


def assert_same(wanted: Any, found: Any, rounding: bool) -> None:
    if isinstance(wanted, (list, dict)) or wanted is None:
        assert type(wanted) is type(found)
        pairs = wanted.items() if isinstance(wanted, dict) else enumerate(wanted or ())
        for key, value in pairs:
            assert_same(value, found[key], rounding)
        return
    wanted, found = np.asarray(wanted), np.asarray(found)
    assert (wanted.dtype, wanted.shape) == (found.dtype, found.shape)
    if rounding:
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    elif wanted.dtype == object:
        assert wanted.tolist() == found.tolist()
    else:
        np.testing.assert_array_equal(np.isnan(wanted), np.isnan(found)) if (
            wanted.dtype.kind in "fc"
        ) else None
        assert one(wanted).tobytes() == one(found).tobytes()


def run(proto: onnx.ModelProto, feeds: Feeds, witness: bool) -> list[Any]:
    if witness:
        return ReferenceEvaluator(proto).run(None, dict(feeds))
    return list(Session(proto).run(feeds).values())


def hold(
    proto: onnx.ModelProto,
    *runs: Feeds,
    rounding: bool = False,
    witness: bool = False,
    recipe: str = "clean",
) -> onnx.ModelProto:
    """What a recipe makes of a model, which computes the same and has the same face."""
    before = proto.SerializeToString(deterministic=True)
    after = surgeon.apply(proto, recipe, verify=False).model.to_proto()
    assert proto.SerializeToString(deterministic=True) == before
    # before IR version 4 the inputs list the initializers, constants that may go
    constants = {t.name for t in proto.graph.initializer} if proto.ir_version < 4 else set()
    faces = [[v for v in m.graph.input if v.name not in constants] for m in (proto, after)]
    assert faces[0] == faces[1]
    assert list(after.graph.output) == list(proto.graph.output)
    assert runs
    for feeds in runs:
        wanted, found = run(proto, feeds, witness), run(after, feeds, witness)
        assert_same(wanted, found, rounding)
    return after


def ops(graph: Any) -> list[str]:
    return [node.op_type for node in graph.node]
