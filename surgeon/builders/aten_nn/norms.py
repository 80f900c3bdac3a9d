"""PyTorch's normalisation layers at inference."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon.arguments import Arguments, bind
from surgeon.builders import parts
from surgeon.builders.scalar_types import finfo
from surgeon.builders.standardising import (
    column_of,
    groups_normalised,
    in_groups,
    layer_normalised,
    rms_normalised,
    spelled_layer_norm,
    standardised,
    vector_of,
)
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused


def _affine(draft: Draft, y: gs.Tensor, args: Arguments, rank: int) -> gs.Tensor:
    for name, operator in (("weight", "Mul"), ("bias", "Add")):
        vector = args.optional(name)
        if vector is not None:
            vector = _cast_like(draft, vector, y)
            y = draft.op(operator, y, column_of(draft, vector, rank))
    return y


def _cast_like(draft: Draft, tensor: gs.Tensor, like: gs.Tensor) -> gs.Tensor:
    """In the dtype of another; as it is where either is not known."""
    kinds = draft.facts.of(tensor).dtype, draft.facts.of(like).dtype
    return parts.cast(draft, tensor, kinds[1]) if all(kinds) else tensor


def group_norm(draft: Draft, match: Match) -> Any:
    """`aten.group_norm (x, num_groups, weight, bias, eps)` as instance normalisation of groups."""
    args = bind(match.root, draft.facts)
    return _group_norm(draft, args, int(args.value("num_groups")))


def native_group_norm(draft: Draft, match: Match) -> Any:
    """`aten.native_group_norm`, which gives the mean and the reciprocal deviation as well."""
    args = bind(match.root, draft.facts)
    groups = int(args.value("group"))
    y = _group_norm(draft, args, groups)
    if not any(parts.is_read(draft, t) for t in match.root.outputs[1:]):
        return y, y, y  # the other two are read by nobody
    x = args.tensor("input")
    _, *both = _standardised(draft, in_groups(draft, x, groups), [2], float(args.value("eps")))
    return y, *_as_statistics(draft, args, (parts.squeeze(draft, t, 2) for t in both))


def _group_norm(draft: Draft, args: Arguments, groups: int) -> gs.Tensor:
    x = args.tensor("input")
    rank = draft.facts.of(x).rank
    if rank is None and (args.has("weight") or args.has("bias")):
        raise Refused("the rank of its input is not known")
    eps = float(args.value("eps"))
    y = groups_normalised(draft, x, groups, eps, parts.numpy_dtype(draft, x))
    return _affine(draft, y, args, rank or 0)


def _count_normalised(draft: Draft, args: Arguments) -> int:
    """How many axes `normalized_shape` names."""
    found = args.given.get("normalized_shape")
    if isinstance(found, list):
        return len(found)
    if found is not None:
        shape = draft.facts.of(found).shape
        if shape is not None and len(shape) == 1 and isinstance(shape[0], int):
            return shape[0]
    return len(args.dims("normalized_shape"))


def layer_norm(draft: Draft, match: Match) -> Any:
    """`aten.layer_norm (x, normalized_shape, weight, bias, eps)`."""
    args = bind(match.root, draft.facts)
    x, count = args.tensor("input"), _count_normalised(draft, args)
    weight, bias = args.optional("weight"), args.optional("bias")
    wide, weight, bias = _in_one_dtype(draft, args, x, weight, bias)
    y = layer_normalised(draft, wide, count, weight, bias, float(args.value("eps")))
    return _cast_like(draft, y, x)


def native_layer_norm(draft: Draft, match: Match) -> Any:
    """`aten.native_layer_norm`, which gives the mean and the reciprocal deviation as well."""
    args = bind(match.root, draft.facts)
    x, count = args.tensor("input"), _count_normalised(draft, args)
    weight, bias = args.optional("weight"), args.optional("bias")
    wide, weight, bias = _in_one_dtype(draft, args, x, weight, bias)
    y, *both = spelled_layer_norm(draft, wide, count, weight, bias, float(args.value("eps")))
    return _cast_like(draft, y, x), *both


def _in_one_dtype(draft: Draft, args: Arguments, *given: gs.Tensor | None) -> list[Any]:
    """An input and its parameters: halves go with parameters in single precision."""
    if not all(draft.facts.of(t).dtype for t in given if t is not None):
        return list(given)
    kind = onnx.helper.np_dtype_to_tensor_dtype(_kind_of_statistics(draft, args))
    return [None if t is None else parts.cast(draft, t, kind) for t in given]


def batch_norm(draft: Draft, match: Match) -> Any:
    """`aten.batch_norm` in any of its names: with running statistics, or with none at all.

    A layer that tracks no statistics takes those of its batch at inference as well.
    """
    args = bind(match.root, draft.facts)
    trains = args.schema.takes("training") and args.value("training")
    if trains and not args.has("running_mean") and not args.has("running_var"):
        return _by_batch(draft, args)
    if trains or "_with_update" in match.root.op:
        raise Refused("it is in training mode; export the model after `model.eval()`")
    return _batch_norm(draft, args)


def native_batch_norm(draft: Draft, match: Match) -> Any:
    """The same with what it saves for training: the statistics of the batch, or nothing."""
    y, args = batch_norm(draft, match), bind(match.root, draft.facts)
    x = args.tensor("input")
    if args.has("running_mean"):
        none = draft.constant(np.zeros(0, _kind_of_statistics(draft, args)), "none")
        return y, none, none
    rank = parts.rank_of(draft, x)
    rest = [0, *range(2, rank)]
    _, *both = _standardised(draft, x, rest, _eps(args))
    return y, *_as_statistics(draft, args, (parts.squeeze(draft, t, *rest) for t in both))


def _as_statistics(draft: Draft, args: Arguments, both: Iterable[gs.Tensor]) -> list[gs.Tensor]:
    wanted = onnx.helper.np_dtype_to_tensor_dtype(_kind_of_statistics(draft, args))
    return [parts.cast(draft, t, wanted) for t in both]


def _kind_of_statistics(draft: Draft, args: Arguments) -> np.dtype[Any]:
    """The dtype of the input, or single where any parameter of a half's is."""
    own = parts.numpy_dtype(draft, args.tensor("input"))
    several = ("weight", "bias", "running_mean", "running_var")
    names = [n for n in several if args.schema.takes(n) and args.has(n)]
    kinds = [parts.numpy_dtype(draft, args.tensor(n)) for n in names]
    single = np.dtype(np.float32)
    return single if own.itemsize == 2 and single in kinds else own


def _standardised(
    draft: Draft, x: gs.Tensor, axes: list[int], eps: float
) -> tuple[gs.Tensor, gs.Tensor, gs.Tensor]:
    """Of halves in single precision, as PyTorch sums them."""
    dtype = parts.numpy_dtype(draft, x)
    if dtype.itemsize == 2:
        x, dtype = parts.cast(draft, x, onnx.TensorProto.FLOAT), np.dtype(np.float32)
    return standardised(draft, x, axes, eps, dtype)


def _by_batch(draft: Draft, args: Arguments) -> gs.Tensor:
    """By mean and variance of each channel over the batch."""
    x = args.tensor("input")
    rank = parts.rank_of(draft, x)
    if rank < 2:
        raise Refused(f"its input has rank {rank}")
    y = _standardised(draft, x, [0, *range(2, rank)], _eps(args))[0]
    y = _affine(draft, y, args, rank)
    return _cast_like(draft, y, x)


def _eps(args: Arguments) -> float:
    return float(args.value("eps" if args.schema.takes("eps") else "epsilon"))


def _batch_norm(draft: Draft, args: Arguments) -> gs.Tensor:
    x = args.tensor("input")
    dtype = parts.numpy_dtype(draft, x)
    if not args.has("running_mean") or not args.has("running_var"):
        raise Refused("it has no running statistics; export a model that tracks them")
    if (rank := draft.facts.of(x).rank) is not None and rank < 2:
        raise Refused(f"its input has rank {rank}")
    mean, variance = args.tensor("running_mean"), args.tensor("running_var")
    weight, bias = args.optional("weight"), args.optional("bias")
    weight = _filled(draft, 1, x, mean, dtype) if weight is None else weight
    bias = _filled(draft, 0, x, mean, dtype) if bias is None else bias
    wide, rest = x, [weight, bias, mean, variance]
    if draft.facts.opset < 15:  # from there on parameters and statistics have dtypes of their own
        wide, *rest = _in_one_dtype(draft, args, x, *rest)
    return _cast_like(draft, draft.op("BatchNormalization", wide, *rest, epsilon=_eps(args)), x)


def _filled(
    draft: Draft, number: float, x: gs.Tensor, vector: gs.Tensor, dtype: np.dtype[Any]
) -> gs.Tensor:
    """A number for each channel, of which there are as many as a vector has elements."""
    channels = _channels(draft, x, vector)
    if channels is not None:
        return vector_of(draft, number, channels, dtype)
    made: gs.Tensor = draft.op(
        "Expand", draft.constant(np.array(number, dtype)), draft.op("Shape", vector)
    )
    return made


def _channels(draft: Draft, x: gs.Tensor, *others: gs.Tensor | None) -> int | None:
    for vector in others:
        shape = None if vector is None else draft.facts.of(vector).shape
        if shape is not None and len(shape) == 1 and isinstance(shape[0], int):
            return shape[0]
    shape = draft.facts.of(x).shape
    return shape[1] if shape is not None and len(shape) > 1 and isinstance(shape[1], int) else None


def instance_norm(draft: Draft, match: Match) -> Any:
    """`aten.instance_norm`, by its input's statistics or by running ones."""
    args = bind(match.root, draft.facts)
    if not args.value("use_input_stats"):
        return _batch_norm(draft, args)
    x = args.tensor("input")
    dtype, eps = parts.numpy_dtype(draft, x), float(args.value("eps"))
    rank = parts.rank_of(draft, x)
    if rank < 3:
        raise Refused(f"its input has rank {rank}")
    weight, bias = args.optional("weight"), args.optional("bias")
    alone = weight is None and bias is None and _channels(draft, x) is None
    if dtype.name not in ("float32", "float16") or alone:
        y = standardised(draft, x, list(range(2, rank)), eps, dtype)[0]
        return _affine(draft, y, args, rank)
    if weight is None:
        weight = _filled(draft, 1, x, x if bias is None else bias, dtype)
    bias = _filled(draft, 0, x, weight, dtype) if bias is None else bias
    return draft.op("InstanceNormalization", x, weight, bias, epsilon=eps)


def rms_norm(draft: Draft, match: Match) -> Any:
    """`aten.rms_norm (x, normalized_shape, weight, eps)`: x / sqrt(mean(x * x) + eps) * weight."""
    args = bind(match.root, draft.facts)
    x, count = args.tensor("input"), _count_normalised(draft, args)
    dtype = parts.numpy_dtype(draft, x)
    if not parts.is_float(dtype):
        raise Refused(f"its input is {dtype.name}")
    eps = args.value("eps")
    if eps is None:  # that of the dtype that it is computed in
        eps = finfo(np.float64 if dtype == np.float64 else np.float32).eps
    return rms_normalised(draft, x, count, args.optional("weight"), float(eps))


def weight_norm(draft: Draft, match: Match) -> Any:
    """`aten._weight_norm (v, g, dim)`: v * g / norm of v over every axis but `dim`."""
    return weight_norm_with_lengths(draft, match)[0]


def weight_norm_with_lengths(draft: Draft, match: Match) -> Any:
    """`aten._weight_norm_interface`, which gives the norms of v as well, in the shape of g."""
    args = bind(match.root, draft.facts)
    v, g = args.tensor("v"), args.tensor("g")
    rank, dim = parts.rank_of(draft, v), int(args.value("dim"))
    axes = [i for i in range(rank) if dim == -1 or i != dim % rank]
    if axes:
        norm = draft.op("ReduceL2", v, draft.constant(axes, "axes"), keepdims=1)
    else:
        norm = draft.op("Abs", v)
    return draft.op("Mul", v, draft.op("Div", g, norm)), norm
