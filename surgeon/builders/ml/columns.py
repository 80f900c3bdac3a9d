"""What is done to columns of features, each by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.bench import Bench
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

TYPE = onnx.TensorProto
_COMPUTED = frozenset({TYPE.FLOAT, TYPE.DOUBLE, TYPE.INT64, TYPE.INT32})


def computed_in(bench: Bench, x: gs.Tensor) -> int:
    """The dtype in which kernels compute: doubles stay, all else is in single precision."""
    dtype = bench.dtype(x)
    if dtype not in _COMPUTED:
        raise Refused(f"`{x.name}` holds no numbers that the operator takes")
    return TYPE.DOUBLE if dtype == TYPE.DOUBLE else TYPE.FLOAT


def listed(node: gs.Node, key: str, dtype: Any = np.float32) -> npt.NDArray[Any]:
    """An attribute that is a list of numbers; empty where it is not there."""
    return np.asarray(node.attrs.get(key, ()), dtype)


def plane(bench: Bench, x: gs.Tensor) -> gs.Tensor:
    """`x`, of which it is known that it has rows and columns."""
    if bench.rank(x) != 2:
        raise Refused(f"`{x.name}` has {bench.rank(x)} axes, and not rows and columns")
    return x


def scaler(draft: Draft, match: Match) -> gs.Tensor:
    """`Scaler (x)`: (x - offset) * scale."""
    bench, node = Bench(draft), match.root
    x = node.inputs[0]
    if bench.rank(x) not in (1, 2):
        raise Refused(f"`{x.name}` has {bench.rank(x)} axes")
    dtype = computed_in(bench, x)
    kind = onnx.helper.tensor_dtype_to_np_dtype(dtype)
    y = bench.cast(x, dtype)
    for op, key, idle in (("Sub", "offset", 0.0), ("Mul", "scale", 1.0)):
        numbers = listed(node, key)
        if not numbers.size:
            raise Refused(f"it has no `{key}`")
        if numbers.size > 1:
            _check_width(bench, x, numbers.size, key)
        if (numbers != idle).any():
            y = bench.op(op, y, draft.constant(numbers.astype(kind), key))
    y = bench.cast(y, TYPE.FLOAT)
    return bench.op("Identity", y) if y is x else y


def normalizer(draft: Draft, match: Match) -> gs.Tensor:
    """`Normalizer (x)`: each row by its maximum, or by its length; a row of zeros stays."""
    bench, node = Bench(draft), match.root
    rank = bench.rank(node.inputs[0])
    if rank not in (1, 2):
        raise Refused(f"`{node.inputs[0].name}` has {rank} axes")
    computed_in(bench, node.inputs[0])
    x = bench.cast(node.inputs[0], TYPE.FLOAT)
    name = str(node.attrs.get("norm", "MAX"))
    ops = {"MAX": "ReduceMax", "L1": "ReduceSum", "L2": "ReduceL2"}
    if name not in ops:
        raise Refused(f"nothing is known of the norm {name!r}")
    summed = bench.op("Abs", x) if name == "L1" else x  # OpenVINO's ReduceL1 is along all axes
    length = bench.op(ops[name], summed, bench.ints([rank - 1], "axes"), keepdims=1)
    one = bench.number(1, TYPE.FLOAT)
    made: gs.Tensor = bench.op("Div", x, bench.where(bench.is_nought(length), one, length))
    return made


def binarizer(draft: Draft, match: Match) -> gs.Tensor:
    """`Binarizer (x)`: 1 above the threshold, and else 0."""
    bench, node = Bench(draft), match.root
    dtype = bench.dtype(node.inputs[0])
    threshold = np.float32(node.attrs.get("threshold", 0.0))
    if dtype != TYPE.FLOAT:
        raise Refused("it is known for single precision alone")
    above = bench.op("Greater", node.inputs[0], bench.number(threshold, dtype))
    return bench.cast(above, dtype)


def imputer(draft: Draft, match: Match) -> gs.Tensor:
    """`Imputer (x)`: numbers in the place of what is missing."""
    bench, node = Bench(draft), match.root
    x = node.inputs[0]
    dtype = bench.dtype(x)
    if dtype not in (TYPE.FLOAT, TYPE.INT64):
        raise Refused("it is known for single precision and int64 alone")
    kind = onnx.helper.tensor_dtype_to_np_dtype(dtype)
    ending = "floats" if dtype == TYPE.FLOAT else "int64s"
    values = listed(node, f"imputed_value_{ending}", kind)
    missing = node.attrs.get(f"replaced_value_{ending[:-1]}", 0)
    if not values.size:
        raise Refused(f"it has no `imputed_value_{ending}`")
    if values.size > 1:
        _check_width(bench, x, values.size, f"imputed_value_{ending}")
        if bench.rank(x) > 2:
            raise Refused("it is known for rows and columns alone")
    if dtype == TYPE.FLOAT and np.isnan(missing):
        place = bench.op("IsNaN", x)
    else:
        place = bench.op("Equal", x, bench.number(missing, dtype))
    return bench.where(place, draft.constant(values, "imputed"), x)


def feature_vectorizer(draft: Draft, match: Match) -> gs.Tensor:
    """`FeatureVectorizer (x, ...)`: columns side by side, in single precision."""
    bench, node = Bench(draft), match.root
    widths = listed(node, "inputdimensions", np.int64).tolist()
    if len(widths) != len(node.inputs):
        raise Refused("it does not say how wide each of its inputs is")
    for x, width in zip(node.inputs, widths, strict=True):
        computed_in(bench, plane(bench, x))
        _check_width(bench, x, width, "inputdimensions")
    columns = [bench.cast(x, TYPE.FLOAT) for x in node.inputs]
    made: gs.Tensor = bench.op("Concat", *columns, axis=1)
    return made


def array_feature_extractor(draft: Draft, match: Match) -> gs.Tensor:
    """`ArrayFeatureExtractor (x, places)`: elements of the last axis."""
    bench, node = Bench(draft), match.root
    x, places = node.inputs
    rank = bench.rank(x)
    if not rank:
        raise Refused("it reads from a number")
    if rank == 1:
        x, rank = bench.unsqueeze(x, [0]), 2
    if bench.rank(places) != 1:
        places = bench.flat(places)
    made: gs.Tensor = bench.op("Gather", x, places, axis=rank - 1)
    return made


def _check_width(bench: Bench, x: gs.Tensor, width: int, key: str) -> None:
    """Whether the last axis is known to be as long as a list of numbers."""
    shape = bench.shape(x)
    if not shape or dims.equal(shape[-1], width) is not True:
        raise Refused(f"it is not known that `{x.name}` has {width} columns, as `{key}` has")
