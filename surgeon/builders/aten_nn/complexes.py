"""Complex values that the graph makes: which they are, and the parts of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.arguments import bind, maker_of_list
from surgeon.builders import parts
from surgeon.builders.aten_nn import complex_arithmetic as arithmetic
from surgeon.builders.aten_nn import complex_elimination as elimination
from surgeon.builders.aten_nn import complex_functions as functions
from surgeon.builders.aten_nn import complex_inverses as inverses
from surgeon.builders.aten_nn import complex_matrices as matrices
from surgeon.builders.aten_nn import complex_moments as moments
from surgeon.builders.aten_nn import complex_moves as moves
from surgeon.builders.aten_nn import complex_names as names
from surgeon.builders.aten_nn import complex_products as products
from surgeon.builders.aten_nn import complex_sums as sums
from surgeon.builders.aten_nn import complex_systems as systems
from surgeon.builders.aten_nn.complex_arithmetic import Operands, both_of, only
from surgeon.builders.aten_nn.frames import frames_of
from surgeon.builders.aten_nn.overlaps import signal_of
from surgeon.builders.aten_nn.transforms import Complex, axes_of, norm_of, transform
from surgeon.builders.scalar_types import COMPLEX_TYPES, PARTS, SCALAR_TYPES, number_of
from surgeon.links import maker_of
from surgeon.rewrite import Draft, Refused


def is_complex(draft: Draft, tensor: gs.Tensor) -> bool:
    """Whether it is made of complex values."""
    known: dict[int, bool] = draft.findings.setdefault("complex", {})
    for at in _operands_first(tensor, lambda t: _followed(draft, t), known):
        found = _constant(draft, at) is not None or _is_made(draft, at)
        known[id(at)] = found or any(known[id(t)] for t in _followed(draft, at))
    return known[id(tensor)]


def complex_of(draft: Draft, tensor: gs.Tensor) -> Complex:
    """Both parts of a value, from the node that makes it.

    Raises:
        Refused: That node has no real form here.
    """

    def behind(at: gs.Tensor) -> list[gs.Tensor]:
        if _is_made(draft, at):
            return []
        return [t for t in _followed(draft, at) if is_complex(draft, t)]

    known: dict[int, Complex] = draft.findings.setdefault("parts", {})
    for at in _operands_first(tensor, behind, known):
        node = _known_maker(at)
        several = node is not None and node.op in (*names.SPLITS, *moves.UNPACKING)
        if node is not None and several and maker_of_list(at) is None:
            operands = _operands(draft, at)
            made = moves.split(draft, node, operands) if node.op in names.SPLITS else operands
            known.update(zip(map(id, node.outputs), made, strict=True))
        else:
            known[id(at)] = _parts_of(draft, at)
    return known[id(tensor)]


def _operands_first(
    tensor: gs.Tensor, operands: Callable[[gs.Tensor], list[gs.Tensor]], known: Mapping[int, Any]
) -> Iterator[gs.Tensor]:
    """A value and what it is of, each once, behind its operands; not what is known."""
    waiting = [(tensor, False)]
    while waiting:
        at, is_ready = waiting.pop()
        if id(at) in known:
            continue
        if is_ready:
            yield at
            continue
        waiting.append((at, True))
        waiting.extend((t, False) for t in operands(at))


def _parts_of(draft: Draft, tensor: gs.Tensor) -> Complex:
    array = _constant(draft, tensor)
    if array is not None:
        return Complex(*(draft.constant(np.array(p), "part") for p in (array.real, array.imag)))
    node = _known_maker(tensor)
    if node is None:
        raise Refused("a complex value comes from outside the graph")
    if _is_made(draft, tensor):
        return _MADE[node.op](draft, node)
    if node.op not in _FOLLOWS:
        raise Refused(f"complex values of `{node.op}` have no standard form here")
    return _FOLLOWS[node.op](draft, node, _operands(draft, tensor))


def _known_maker(tensor: gs.Tensor) -> gs.Node | None:
    """The node that makes it, where it is of a domain whose operators are known."""
    node = maker_of(tensor)
    domains = ("aten", "prim", "", "ai.onnx")
    return node if node is not None and (node.domain or "") in domains else None


def _is_made(draft: Draft, tensor: gs.Tensor) -> bool:
    """Whether its node makes complex values, of whatever it is of."""
    node = _known_maker(tensor)
    return node is not None and node.op in _MADE and _gives_complex(draft, node)


def _gives_complex(draft: Draft, node: gs.Node) -> bool:
    if node.op in names.FRAMED:
        return arithmetic.gives_complex(draft, node)
    return node.op not in _OF_A_DTYPE or bool(_dtype_of_parts(draft, node))


def _constant(draft: Draft, tensor: gs.Tensor) -> Any:
    array = draft.facts.array(tensor)
    return array if array is not None and array.dtype.kind == "c" else None


def _followed(draft: Draft, tensor: gs.Tensor) -> list[gs.Tensor]:
    """The operands of its node that may be complex, where it is so if one of them is."""
    node = _known_maker(tensor)
    if node is None or not (node.op in _FOLLOWS or node.op in names.SPLITS or _cut_before(node)):
        return []
    if node.op in names.WITH_INFO and tensor is not node.outputs[0]:
        return []
    if (cut := _cut_before(node)) is not None:
        if cut.op not in moves.BROADCASTS:
            return list(cut.inputs[:1])
        node = cut
    named = names.OPERANDS.get(node.op)
    if named is None or node.domain != "aten":
        return list(node.inputs[names.PLACES.get(node.op, names.FIRST)])
    try:
        given = bind(node, draft.facts).given
    except Refused:
        return []
    found = [given.get(name) for name in named]
    return [t for one in found for t in (one if isinstance(one, list) else [one]) if t is not None]


def _operands(draft: Draft, tensor: gs.Tensor) -> list[Complex | gs.Tensor]:
    """What its node is of, the complex ones in their parts."""
    if (node := _known_maker(tensor)) is not None and (cut := _cut_before(node)) is not None:
        operands = [
            complex_of(draft, t) if is_complex(draft, t) else t for t in _followed(draft, tensor)
        ]
        return moves.listed(draft, node, cut, operands)
    followed = _followed(draft, tensor)
    behind = [_real_behind(draft, t) for t in followed]
    if not any(is_complex(draft, t) for t in behind):
        behind = followed  # what was made complex is so for what it is of
    return [complex_of(draft, t) if is_complex(draft, t) else t for t in behind]


def _cut_before(node: gs.Node) -> gs.Node | None:
    """The operator that cuts a value into the list whose elements a node is of."""
    if not node.inputs or node.op not in (*moves.UNPACKING, *moves.PLACES, *names.JOINS):
        return None
    cut = maker_of_list(node.inputs[0])
    lists = (*names.SPLITS, *moves.BROADCASTS, *moves.SLOPES)
    return cut if cut is not None and cut.op in lists else None


def _real_behind(draft: Draft, tensor: gs.Tensor) -> gs.Tensor:
    """What was made complex to meet a complex value, where it is real: a product takes it so."""
    node = maker_of(tensor)
    if node is None or node.op != "Cast" or node.attrs.get("to") not in PARTS:
        return tensor
    before = node.inputs[0]
    if not is_real(draft, before):
        return tensor
    return parts.cast(draft, before, PARTS[node.attrs["to"]])


def _padded(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """Both parts padded, with 0 where it is with a number."""
    args = bind(node, draft.facts)
    if args.has("value") and args.value("value") != 0:
        raise Refused("it is padded with a number, which the imaginary part is not")
    return moves.moved(draft, node, operands)


def _shaped(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """Both parts in the shape of another value, which may be complex too."""
    other = bind(node, draft.facts).tensor("other")
    like = complex_of(draft, other).real if is_complex(draft, other) else other
    both = both_of(only(operands))
    return Complex(*(moves.by_lowering(draft, node, self=part, other=like) for part in both))


# --------------------------------------------------------------------------------- transforms


def _transform(draft: Draft, node: gs.Node) -> Complex:
    """`fft_fft` and kin (x, n, dim, norm), and those of several axes."""
    args = bind(node, draft.facts)
    value = value_of(draft, args.tensor("self"))
    kind = node.op.removeprefix("fft_").rstrip("2n")
    half = kind in ("rfft", "ihfft")
    if half and value.imaginary is not None:
        raise Refused("it is of real values, and its input is complex")
    norm = args.value("norm")
    for axis, size in reversed(axes_of(draft, args, value)):  # the half is of the last
        inverse = kind.startswith("i")
        value = transform(draft, value, axis, size, norm, inverse=inverse, half=half)
        half = False
    return value


def _named_transform(draft: Draft, node: gs.Node) -> Complex:
    """`_fft_r2c` (self, dim, normalization, onesided) and `_fft_c2c` (..., forward)."""
    args = bind(node, draft.facts)
    value = value_of(draft, args.tensor("self"))
    rank = parts.rank_of(draft, value.real)
    inverse = node.op == "_fft_c2c" and not args.value("forward")
    half = node.op == "_fft_r2c" and bool(args.value("onesided"))
    norm = norm_of(args, inverse=inverse)
    for axis in reversed([int(d) % rank for d in np.ravel(args.value("dim"))]):
        value = transform(draft, value, axis, None, norm, inverse=inverse, half=half)
        half = False
    return value


def value_of(draft: Draft, x: gs.Tensor) -> Complex:
    """A value with one part or two."""
    if is_complex(draft, x):
        return complex_of(draft, x)
    dtype = parts.numpy_dtype(draft, x)
    if dtype.kind in "biu":  # PyTorch transforms integers in single precision
        return Complex(parts.cast(draft, x, parts.FLOAT), None)
    if not parts.is_float(dtype):
        raise Refused("its input is complex from outside the graph")
    return Complex(x, None)


def _short_time(draft: Draft, node: gs.Node) -> Complex:
    """`stft` and `istft`, where they give complex values."""
    args = bind(node, draft.facts)
    value = value_of(draft, args.tensor("self"))
    return (frames_of if node.op == "stft" else signal_of)(draft, args, value)


# ------------------------------------------------------------------- values of a complex dtype

_FILLS = ("zeros", "ones", "full", "eye")
CASTS = ("Cast", "to", "_to_copy")
_OF_A_DTYPE = (*CASTS, *_FILLS)


def _dtype_of_parts(draft: Draft, node: gs.Node) -> int:
    """ONNX's dtype of the parts of what a node gives in a complex dtype; 0 for real values."""
    if node.op == "Cast":
        return PARTS.get(int(node.attrs.get("to", 0)), 0)
    try:
        args = bind(node, draft.facts)
        told = args.value("dtype") if args.schema.takes("dtype") else None
    except Refused:
        return 0
    return PARTS.get(COMPLEX_TYPES.get(int(told or 0), 0), 0)


def real_dtype(draft: Draft, node: gs.Node) -> int:
    """ONNX's dtype of what a node makes of a value in a real dtype.

    Raises:
        Refused: It is complex, or not told.
    """
    if node.op == "Cast":
        kind = int(node.attrs.get("to", 0))
    else:
        told = bind(node, draft.facts).value("dtype")
        kind = SCALAR_TYPES.get(-1 if told is None else int(told), 0)
    if not kind or kind in PARTS:
        raise Refused("it is no cast of a complex value to a real one")
    return kind


def _typed(draft: Draft, node: gs.Node) -> Complex:
    """`Cast`, `to` or `_to_copy` in a complex dtype; what is real has imaginary parts of 0."""
    kind, x = _dtype_of_parts(draft, node), node.inputs[0]
    if is_complex(draft, x):
        return Complex(*(parts.cast(draft, part, kind) for part in both_of(complex_of(draft, x))))
    if not is_real(draft, x):
        raise Refused("whether what is made complex is real is not known")
    real = parts.cast(draft, x, kind)
    return Complex(real, moves.none_beside(draft, real, kind))


def _kept(draft: Draft, node: gs.Node, operands: Operands) -> Complex:
    """`to` or `_to_copy` that names no dtype."""
    args = bind(node, draft.facts)
    if args.schema.takes("dtype") and args.value("dtype") is not None:
        raise Refused("a complex value becomes what is not known to be complex")
    return only(operands)


def _filled(draft: Draft, node: gs.Node) -> Complex:
    """`zeros`, `ones` and `full` of a complex dtype; what is filled in is real."""
    dtype = _dtype_of_parts(draft, node)
    number = draft.constant(np.array(number_of(dtype)), "dtype")
    real = moves.by_lowering(draft, node, dtype=number)
    return Complex(real, real if node.op == "zeros" else moves.none_beside(draft, real, dtype))


_MADE: Mapping[str, Callable[[Draft, gs.Node], Complex]] = {
    "view_as_complex": arithmetic.viewed,
    "complex": arithmetic.joined,
    "polar": arithmetic.polar,
    **dict.fromkeys(names.FRAMED, _short_time),
    **dict.fromkeys(CASTS, _typed),
    **dict.fromkeys(_FILLS, _filled),
    **dict.fromkeys((*names.SINGLE, *names.SEVERAL), _transform),
    **dict.fromkeys(names.NAMED, _named_transform),
}
_FOLLOWS: Mapping[str, Callable[[Draft, gs.Node, Operands], Complex]] = {
    **dict.fromkeys(names.SAME, moves.same),
    **dict.fromkeys(names.CONJUGATES, arithmetic.conjugate),
    **dict.fromkeys(("neg", "negative", "Neg"), arithmetic.negative),
    **dict.fromkeys(names.SUMS, arithmetic.added),
    **dict.fromkeys(names.PRODUCTS, arithmetic.product),
    **dict.fromkeys(names.QUOTIENTS, arithmetic.quotient),
    **dict.fromkeys(functions.FUNCTIONS, functions.function),
    **dict.fromkeys(inverses.FUNCTIONS, inverses.inverse),
    **dict.fromkeys(names.POWERS, inverses.power),
    "ldexp": functions.scaled_by_power,
    "logsumexp": inverses.logarithm_of_sum,
    "logaddexp": sums.log_added,
    "logcumsumexp": sums.log_cumulated,
    "cov": moments.covariance,
    "corrcoef": moments.correlation,
    "renorm": moments.bounded,
    "rms_norm": moments.by_root_of_squares,
    **dict.fromkeys(names.MOVES, moves.moved),
    **dict.fromkeys(names.LIKE_ANOTHER, _shaped),
    **dict.fromkeys(names.ADJOINTS, moves.adjoint),
    "prod": products.multiplied,
    "cumprod": products.cumulated,
    **dict.fromkeys(names.JOINS, moves.joined),
    **dict.fromkeys(("where", "Where", "masked_fill"), moves.chosen),
    **dict.fromkeys(moves.WRITES, moves.written),
    **dict.fromkeys(("zeros_like", "ones_like", "full_like"), moves.filled),
    **dict.fromkeys(("new_zeros", "new_ones", "new_full"), moves.filled),
    **dict.fromkeys(names.PADS, _padded),
    **dict.fromkeys(("to", "_to_copy"), _kept),
    **dict.fromkeys(names.STANDARD, moves.in_standard),
    **dict.fromkeys(names.MATRICES, moves.of_matrices),
    **dict.fromkeys(names.BILINEAR, moves.bilinear),
    **dict.fromkeys(("einsum", "Einsum"), products.contracted),
    "linear": moves.linear,
    "bilinear": products.of_two_and_weight,
    **dict.fromkeys(("addmm", "baddbmm", "addr", "addmv", "addbmm"), moves.added_product),
    **dict.fromkeys(("addcmul", "addcdiv"), moves.added_elements),
    "lerp": moves.between,
    **dict.fromkeys(("linalg_solve", "linalg_solve_ex"), systems.solved),
    "linalg_lstsq": systems.nearest,
    "diff": moves.differences,
    "linalg_solve_triangular": systems.by_triangle,
    "triangular_solve": systems.by_old_triangle,
    "linalg_tensorsolve": systems.by_tensor,
    "linalg_tensorinv": systems.inverse_tensor,
    **dict.fromkeys(("linalg_householder_product", "orgqr"), elimination.product_of_reflections),
    **dict.fromkeys(("im2col", "col2im"), moves.windowed),
    **dict.fromkeys(("cholesky_solve", "cholesky_inverse"), systems.by_factor),
    **dict.fromkeys(names.OF_BLOCKS, systems.inverted),
    **dict.fromkeys(("det", "linalg_det"), elimination.determinant),
    "logdet": elimination.log_determinant,
    **dict.fromkeys(names.CHAINS, products.chained),
    **dict.fromkeys(("vander", "linalg_vander"), products.powers),
    **dict.fromkeys(("linalg_cholesky", "linalg_cholesky_ex", "cholesky"), matrices.factor),
    **dict.fromkeys(("linalg_pinv", "pinverse"), matrices.pseudo_inverse),
    "Concat": moves.end_to_end,
    **dict.fromkeys(moves.PLACES, moves.same),
}


def is_real(draft: Draft, tensor: gs.Tensor) -> bool:
    """Whether it is known to hold real values."""
    dtype = draft.facts.of(tensor).dtype
    return bool(dtype) and dtype not in PARTS
