"""Matrix products and contractions: MatMul, Gemm, and Einsum with what it is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx_graphsurgeon as gs

from surgeon.arguments import Arguments
from surgeon.builders.aten_shape.call import NARROW, TYPE, Call
from surgeon.builders.aten_shape.lists import mesh
from surgeon.builders.bench import Size
from surgeon.builders.contraction import contract, parse, product
from surgeon.builders.scalar_types import promote
from surgeon.facts.kinds import FLOATS
from surgeon.links import maker_of
from surgeon.rewrite import Refused


def _matmul(c: Call) -> gs.Tensor:
    return product(c, *_in_wanted(c, c.args.pair()))


def _in_wanted(c: Call, operands: Sequence[gs.Tensor]) -> Sequence[gs.Tensor]:
    """Operands in the dtype of the output where the call names one: halves added up in single."""
    if not c.args.schema.takes("out_dtype"):
        return operands
    dtype = c.wanted_dtype(c.dtype(operands[-1]), "out_dtype")
    return [c.cast(operand, dtype) for operand in operands]


def _integer_product(c: Call) -> gs.Tensor:
    """`_int_mm`: of bytes, added up in int32."""
    first, second = c.tensor(), c.tensor("mat2")
    if {c.dtype(first), c.dtype(second)} != {TYPE.INT8}:
        raise Refused("PyTorch has it of int8 alone")
    if c.opset >= 10:
        return c.op("MatMulInteger", first, second)
    return c.op("MatMul", c.cast(first, TYPE.INT32), c.cast(second, TYPE.INT32))


def _outer(c: Call) -> gs.Tensor:
    first, second = c.promoted(list(c.args.pair()))
    times = "And" if c.dtype(first) == TYPE.BOOL else "Mul"
    return c.op(times, c.unsqueeze(first, [1]), c.unsqueeze(second, [0]))


def _scaled(c: Call, x: gs.Tensor, factor: Any) -> gs.Tensor:
    if factor in (None, 1):
        return x
    return c.op("Mul", x, c.number(factor, c.dtype(x)))


def _add_product(c: Call) -> gs.Tensor:
    """`beta * self + alpha * (a @ b)`, of every form."""
    kind = c.node.op
    names = [p.name for p in c.args.schema.parameters if p.type == "Tensor"]
    given = [c.tensor(n) for n in names[:3]]
    bias, first, second = c.promoted(given) if kind == "addr" else _in_wanted(c, given)
    alpha, beta = c.value("alpha"), c.value("beta")
    if kind == "addr" and c.dtype(first) == TYPE.BOOL:
        return _either(c, bias, first, second)
    if kind == "_addmm_activation":
        if c.value("use_gelu"):
            raise Refused("its GELU is one formula on a CPU and another on a GPU")
    elif kind == "addmm" and alpha in (None, 1) and beta in (None, 1):
        rank = c.facts.of(bias).rank
        if c.dtype(first) == TYPE.FLOAT and rank is not None and rank <= 2:
            return _gemm(c, first, second, bias)
    if kind == "addr":
        total = c.op("Mul", c.unsqueeze(first, [1]), c.unsqueeze(second, [0]))
    else:
        total = product(c, first, second)
    if kind == "addbmm":
        total = c.op("ReduceSum", total, c.ints([0], "axes"), keepdims=0)
    total = _scaled(c, total, alpha)
    if beta != 0:  # else what it is multiplied with is not looked at, NaN included
        total = c.op("Add", _scaled(c, bias, beta), total)
    return total


def _activated(c: Call) -> gs.Tensor:
    """`_addmm_activation`: what is above 0 of a sum, after it has wrapped."""
    x = _of_narrow(_add_product)(c)
    if c.dtype(x) in FLOATS:
        return c.op("Relu", x)
    nought = c.number(0, c.dtype(x))
    return c.where(c.op("Less", x, nought), nought, x)


def _either(c: Call, bias: gs.Tensor, first: gs.Tensor, second: gs.Tensor) -> gs.Tensor:
    """`addr` of booleans: what both hold, or the first holds; a factor leaves a term in or out."""
    both = c.op("And", c.unsqueeze(first, [1]), c.unsqueeze(second, [0]))
    alpha, beta = (c.number(bool(c.value(n)), TYPE.BOOL) for n in ("alpha", "beta"))
    made: gs.Tensor = c.op("Or", c.op("And", bias, beta), c.op("And", both, alpha))
    return made


def _gemm(c: Call, first: gs.Tensor, second: gs.Tensor, bias: gs.Tensor) -> gs.Tensor:
    extra = {}
    producer = maker_of(second)
    if (
        producer is not None
        and producer.op == "Transpose"
        and (producer.domain or "") == ""
        and list(producer.attrs.get("perm", (1, 0))) == [1, 0]
    ):
        second, extra = producer.inputs[0], {"transB": 1}
    return c.op("Gemm", first, second, bias, **extra)


def _linear(c: Call) -> gs.Tensor:
    x, weight = c.tensor("input"), c.tensor("weight")
    bias = c.args.optional("bias")
    if c.rank(weight) == 1:
        y = product(c, x, weight)
        return y if bias is None else c.op("Add", y, bias)
    if bias is not None and c.facts.of(x).rank == 2 and c.dtype(x) == TYPE.FLOAT:
        return c.op("Gemm", x, weight, bias, transB=1)
    y = product(c, x, c.permute(weight, [1, 0]))
    return y if bias is None else c.op("Add", y, bias)


def _chain(c: Call) -> gs.Tensor:
    name = c.args.schema.parameters[0].name
    tensors = c.args.tensors(name)
    if not tensors:
        raise Refused("it has no operands")
    if len(tensors) > 2 and (best := _order_of(c, tensors)) is not None:
        return best
    result = tensors[0]
    for other in tensors[1:]:
        result = product(c, result, other)
    return result


def _order_of(c: Call, tensors: Sequence[gs.Tensor]) -> gs.Tensor | None:
    """Three matrices in the cheaper order, where their sizes are known."""
    if len(tensors) != 3 or any(c.rank(t) != 2 for t in tensors):
        return None
    a, b = c.sizes(tensors[0])
    d, e = c.sizes(tensors[2])
    if isinstance(a, int) and isinstance(b, int) and isinstance(d, int) and isinstance(e, int):
        if a * b * d + a * d * e <= b * d * e + a * b * e:
            return None
        return product(c, tensors[0], product(c, tensors[1], tensors[2]))
    return None


# ------------------------------------------------------------------ contractions


def _einsum(c: Call) -> gs.Tensor:
    if c.args.schema.overload == "sublist":
        raise Refused("its operands are given as sublists")
    equation = str(c.value("equation")).replace(" ", "")
    tensors = c.args.tensors("tensors")
    labels, wanted = parse(equation, [c.rank(t) for t in tensors])
    if c.dtype(tensors[0]) not in (*FLOATS, TYPE.INT64) and _is_by_sum(c, tensors, labels, wanted):
        tensors = [c.cast(t, TYPE.INT64) for t in tensors]
    kinds = (TYPE.FLOAT, TYPE.DOUBLE, TYPE.INT64, TYPE.INT32)
    if c.opset >= 12 and c.dtype(tensors[0]) in kinds and _dots_agree(c, equation, tensors):
        return c.op("Einsum", *tensors, equation=equation)
    return contract(c, tensors, labels, wanted)


def _is_by_sum(
    c: Call,
    tensors: Sequence[gs.Tensor],
    labels: Sequence[Sequence[str]],
    wanted: Sequence[str],
) -> bool:
    """Whether PyTorch sums one operand by itself, which makes int64 of integers.

    What two operands share is summed by `bmm`, which leaves their dtype.
    """
    lengths: dict[str, list[Size | int]] = {}
    for tensor, has in zip(tensors, labels, strict=True):
        for label, axis in {one: i for i, one in enumerate(has) if one not in wanted}.items():
            lengths.setdefault(label, []).append(c.size(tensor, axis))
    if len(tensors) == 1:
        return bool(lengths)
    several = [[size for size in sizes if size != 1] for sizes in lengths.values()]
    alone = [sizes[0] for sizes in several if len(sizes) == 1]
    if any(not isinstance(size, int) for size in alone):
        raise Refused("whether there is a sum, which gives int64, is known at run time only")
    if alone and any(len(sizes) > 1 for sizes in several):
        raise Refused("it sums some integers in their own dtype, and others in int64")
    return bool(alone)


def _dots_agree(c: Call, equation: str, tensors: Sequence[gs.Tensor]) -> bool:
    """Whether the ellipsis stands for the same axes everywhere: onnx broadcasts no others."""
    found = set()
    left, arrow, right = equation.partition("->")
    if arrow and "..." in left and "..." not in right:  # summed, which onnxruntime does not do
        return False
    for term, tensor in zip(left.split(","), tensors, strict=False):
        before, dots, after = term.partition("...")
        if not dots:
            continue
        shape = c.shape(tensor)
        if shape is None:
            return False
        found.add(tuple(shape[len(before) : len(shape) - len(after)]))
    return len(found) <= 1


def _tensordot(c: Call) -> gs.Tensor:
    a, b = c.tensor(), c.tensor("other")
    ranks = c.rank(a), c.rank(b)
    mine = [c.axis(int(d), ranks[0]) for d in c.args.dims("dims_self")]
    its = [c.axis(int(d), ranks[1]) for d in c.args.dims("dims_other")]
    left = [f"a{i}" for i in range(ranks[0])]
    right = [f"b{i}" for i in range(ranks[1])]
    for i, j in zip(mine, its, strict=True):
        right[j] = left[i]
    wanted = [one for one in left if one not in right] + [one for one in right if one not in left]
    return contract(c, [a, b], [left, right], wanted)


def _trilinear(c: Call) -> gs.Tensor:
    """Three tensors multiplied where their axes meet, and summed over some."""
    tensors = [c.tensor(f"i{i}") for i in (1, 2, 3)]
    added = [[int(d) for d in c.args.dims(f"expand{i}")] for i in (1, 2, 3)]
    ranks = {c.rank(t) + len(more) for t, more in zip(tensors, added, strict=True)}
    if len(ranks) != 1:
        raise Refused("its operands have no common rank")
    (rank,) = ranks
    gone = {c.axis(int(d), rank) for d in c.args.dims("sumdim")}
    labels = [
        [f"a{i}" for i in range(rank) if i not in {c.axis(d, rank) for d in more}] for more in added
    ]
    return contract(c, tensors, labels, [f"a{i}" for i in range(rank) if i not in gone])


def _combination(c: Call) -> gs.Tensor:
    """Rows of coefficients, each of which weighs the lines of the input."""
    x, weights = c.tensor("input"), c.tensor("coefficients")
    behind = [f"a{i}" for i in range(1, c.rank(x))]
    labels = [["n", "k"], ["k", *behind]]
    return contract(c, [weights, x], labels, ["n", *behind], repeats=False)


def _bilinear(c: Call) -> gs.Tensor:
    a, b, weight = c.tensor("input1"), c.tensor("input2"), c.tensor("weight")
    lots = [f"n{i}" for i in range(c.rank(a) - 1)]
    labels = [[*lots, "i"], ["o", "i", "j"], [*lots, "j"]]
    y = contract(c, [a, weight, b], labels, [*lots, "o"], repeats=False)
    bias = c.args.optional("bias")
    return y if bias is None else c.op("Add", y, bias)


def _dot(c: Call) -> gs.Tensor:
    a, b = c.args.pair()
    if c.node.op == "vdot":
        c.dtype(a)  # known, and so not complex: that would be conjugated
    if c.node.op == "inner":
        if c.rank(a) == 0 or c.rank(b) == 0:
            return c.op("Mul", a, b)
        left = [f"a{i}" for i in range(c.rank(a) - 1)]
        right = [f"b{i}" for i in range(c.rank(b) - 1)]
        labels = [[*left, "k"], [*right, "k"]]
        return contract(c, [a, b], labels, [*left, *right], repeats=False)
    return product(c, a, b)


def _cross(c: Call) -> gs.Tensor:
    a, b = c.promoted([c.tensor(), c.tensor("other")])
    rank = max(c.rank(a), c.rank(b))
    if c.node.op == "linalg_cross" or c.has("dim"):
        axis = c.axis(c.integer("dim"), rank)
    else:
        lengths = c.sizes(a)
        if any(
            not isinstance(n, int) for n in lengths[: lengths.index(3) if 3 in lengths else None]
        ):
            raise Refused("which of its dims has 3 elements first is known at run time only")
        axis = lengths.index(3)
    a, b = (c.unsqueeze(t, list(range(rank - c.rank(t)))) for t in (a, b))
    after, behind = c.ints([1, 2, 0], "after"), c.ints([2, 0, 1], "behind")
    return c.op(
        "Sub",
        c.op("Mul", c.op("Gather", a, after, axis=axis), c.op("Gather", b, behind, axis=axis)),
        c.op("Mul", c.op("Gather", a, behind, axis=axis), c.op("Gather", b, after, axis=axis)),
    )


def _cartesian_prod(c: Call) -> gs.Tensor:
    tensors = c.args.tensors("tensors")
    if len(tensors) == 1:
        return tensors[0]
    columns = [c.op("Reshape", t, c.ints([-1, 1], "target")) for t in mesh(c, tensors)]
    return c.concat(columns, 1)


def _conv_tbc(c: Call) -> gs.Tensor:
    """A convolution of [time, batch, channels] with [kernel, in, out]."""
    x, weight, pad = c.tensor(), c.tensor("weight"), c.integer("pad")
    if c.dtype(x) == TYPE.DOUBLE or c.dtype(x) not in FLOATS:  # of which runtimes convolve none
        return _conv_by_products(c, x, weight, pad)
    made = c.op(
        "Conv",
        c.permute(x, [1, 2, 0]),
        c.permute(weight, [2, 1, 0]),
        c.tensor("bias"),
        pads=[pad, pad],
    )
    return c.permute(made, [2, 0, 1])


def _conv_by_products(c: Call, x: gs.Tensor, weight: gs.Tensor, pad: int) -> gs.Tensor:
    """The same by a product of matrices for each place in a kernel."""
    kernel, (length, batch, inner) = c.size(weight, 0), c.sizes(x)
    if not isinstance(kernel, int):
        raise Refused("how wide its kernel is is known at run time only")
    if pad:
        edge = c.filled([pad, batch, inner], 0, c.dtype(x))
        x, length = c.concat([edge, x, edge], 0), c.add(length, 2 * pad)
    last = c.sub(length, kernel - 1)
    total = c.tensor("bias")
    for place in range(kernel):
        here = c.slice(x, 0, place, c.add(last, place))
        line = c.op("Gather", weight, c.number(place, TYPE.INT64), axis=0)
        total = c.op("Add", total, product(c, here, line))
    return total


def _of_narrow(lowering: Callable[[Call], gs.Tensor]) -> Callable[[Call], gs.Tensor]:
    """The same of integers of 8 and 16 bits, by way of int32: sums of products wrap alike."""

    def run(c: Call) -> gs.Tensor:
        types = {p.name: p.type for p in c.args.schema.parameters}
        operands = {
            name: given
            for name, given in c.args.given.items()
            if isinstance(given, gs.Tensor) and types[name] == "Tensor"
        }
        kinds = {c.facts.of(x).dtype for x in operands.values()}
        if not kinds <= NARROW:
            return lowering(c)
        wide = {name: c.cast(x, TYPE.INT32) for name, x in operands.items()}
        c.args = Arguments(c.args.schema, {**c.args.given, **wide}, c.facts)
        return c.cast(lowering(c), promote(*kinds))

    return run


LOWERINGS: Mapping[str, Callable[[Call], Any]] = {
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "linalg_matmul"), _matmul),
    "_int_mm": _integer_product,
    **dict.fromkeys(("dot", "vdot", "inner"), _dot),
    **dict.fromkeys(("outer", "ger"), _of_narrow(_outer)),
    **dict.fromkeys(("addmm", "addmv", "baddbmm", "addbmm", "addr"), _of_narrow(_add_product)),
    "_addmm_activation": _activated,
    "linear": _of_narrow(_linear),
    **dict.fromkeys(("chain_matmul", "linalg_multi_dot"), _chain),
    "einsum": _einsum,
    "tensordot": _tensordot,
    "bilinear": _of_narrow(_bilinear),
    "_trilinear": _trilinear,
    "_compute_linear_combination": _combination,
    **dict.fromkeys(("cross", "linalg_cross"), _of_narrow(_cross)),
    "cartesian_prod": _cartesian_prod,
    "conv_tbc": _of_narrow(_conv_tbc),
}
