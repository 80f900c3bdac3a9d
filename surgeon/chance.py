"""What is drawn at random, or never set: the operators, and the outputs that depend on them.

Two runs of such a model differ, so their numbers say nothing of a rewrite. Which outputs those are
is read from the wiring: two draws that happen to agree would tell a comparison that they need not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx

from surgeon import standard
from surgeon.schemas import ends_with_out
from surgeon.schemas.aliases import plain_name
from surgeon.spelling import names_operator

# These draw only while training; where the word for it stands among the inputs, from 0.
_SWITCHED: Mapping[str, int] = {
    **dict.fromkeys(
        "Dropout dropout native_dropout feature_dropout alpha_dropout "
        "feature_alpha_dropout".split(),
        2,
    ),
    "rrelu": 3,
    **dict.fromkeys(("rrelu_with_noise", "rrelu_with_noise_functional"), 4),
}
_SHARE = 1  # where the dropouts among them are told how much is dropped
_SWITCH_NAMES = frozenset({"train", "training"})
# Operators whose outputs differ from run to run: never merged, never folded.
RANDOM = frozenset(
    "rand rand_like randn randn_like randint randint_like randperm bernoulli multinomial normal "
    "normal_functional uniform exponential geometric cauchy log_normal random poisson binomial "
    "_fused_dropout _standard_gamma _sample_dirichlet".split()
).union(standard.DRAWING, _SWITCHED)
# What they give holds whatever memory held.
_UNSET = frozenset(
    "empty empty_like new_empty empty_strided empty_permuted new_empty_strided".split()
)
# Where the values stand among the outputs of what gives vectors as well.
_VALUES: Mapping[str, int] = {
    **dict.fromkeys(("svd", "linalg_svd", "_linalg_svd"), 1),
    **dict.fromkeys(("linalg_eigh", "_linalg_eigh", "symeig"), 0),
}
# Of the first input they take the sizes alone.
_OVERWRITES = frozenset("fill zero copy full_like new_zeros new_ones new_full".split())
# Their outputs depend on the sizes of their inputs alone.
_OF_SIZES = frozenset("Shape Size EyeLike size numel dim zeros_like ones_like".split())
# The sizes of their outputs depend on the sizes of their inputs alone.
_PLAIN = frozenset(
    "Abs Add And Cast Ceil Clip Concat Conv Cos Div Dropout Elu Equal Erf Exp Floor Gelu Gemm "
    "Greater GreaterOrEqual Identity IsInf IsNaN LayerNormalization LeakyRelu Less LessOrEqual Log "
    "LogSoftmax MatMul Max Min Mod Mul Neg Not Or Pow Reciprocal Relu Round Shape Sigmoid Sign Sin "
    "Size Softmax Softplus Sqrt Sub Sum Tan Tanh Transpose Where Xor".split()
)
_KEEPS_SIZES = RANDOM | _UNSET | _OVERWRITES | _PLAIN


def drawn_outputs(model: onnx.ModelProto) -> dict[str, bool]:
    """The outputs that depend on what is drawn or never set, and whether their sizes do too."""
    calls = _drawing_functions(model)
    values: set[str] = set()
    sizes: set[str] = set()
    constants = _constants(model.graph)
    more = True
    while more:  # once, unless nodes stand before what they read
        before = len(values) + len(sizes)
        for node in model.graph.node:
            _follow(node, constants, calls, values, sizes)
        more = len(values) + len(sizes) > before
    return {v.name: v.name in sizes for v in model.graph.output if v.name in values}


def chosen_outputs(model: onnx.ModelProto) -> set[str]:
    """The outputs that are vectors of which the direction is told alone, and not the sign."""
    found: set[str] = set()
    for node in model.graph.node:
        place = _VALUES.get(operator_of(node))
        if place is not None:
            found.update(name for index, name in enumerate(node.output) if index != place)
        elif node.op_type == "Identity" and node.input[0] in found:
            found.update(node.output)
    return found & {value.name for value in model.graph.output}


def _drawing_functions(model: onnx.ModelProto) -> set[tuple[str, str]]:
    """The model's functions that draw, or call one that does."""
    found: set[tuple[str, str]] = set()
    callers: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for function in model.functions:
        key, constants = (function.domain, function.name), _constants(function)
        for node in function.node:
            callers.setdefault((node.domain, node.op_type), []).append(key)
            if key not in found and _draws(node, constants):
                found.add(key)
    waiting = list(found)
    while waiting:
        further = {key for key in callers.get(waiting.pop(), ()) if key not in found}
        found |= further
        waiting += further
    return found


def _follow(
    node: onnx.NodeProto,
    constants: Mapping[str, onnx.TensorProto],
    calls: set[tuple[str, str]],
    values: set[str],
    sizes: set[str],
) -> None:
    operator = operator_of(node)
    reads = set(_reads(node))
    bodies = [a.g for a in node.attribute if a.HasField("g")]
    if operator in _OF_SIZES and node.domain != "prim":
        drawn = some_sizes = bool(reads & sizes)
    else:
        draws = _draws(node, constants) or (node.domain, node.op_type) in calls
        taken = set(node.input[1:]) if operator in _OVERWRITES else reads
        if (node.domain or "") not in standard.STANDARD and taken:
            taken -= _written_to(node, operator)
        drawn = draws or operator in _UNSET or bool(taken & values)
        opaque = drawn and (operator not in _KEEPS_SIZES or bool(bodies))
        some_sizes = bool(reads & sizes) or opaque
    names = [name for name in node.output if name]
    if drawn or some_sizes:
        values.update(names)
    if some_sizes:
        sizes.update(names)


def _written_to(node: onnx.NodeProto, operator: str) -> set[str]:
    """What a result is written to, `out=`, and of which nothing is read."""
    if node.attribute and not names_operator(node.domain, node.op_type):
        return set()
    written = len(node.input) > 1 and ends_with_out(operator, len(node.input))
    return {node.input[-1]} - set(node.input[:-1]) if written else set()


def operator_of(node: onnx.NodeProto) -> str:
    """The operator, of a fallback node PyTorch's."""
    if key := names_operator(node.domain, node.op_type):
        for attribute in node.attribute:
            if attribute.name == key:
                name: str = attribute.s.decode(errors="replace")
                return plain_name(name.rpartition("::")[2].partition(".")[0])
    plain: str | bytes = node.op_type  # protobuf gives bytes where it is no UTF-8
    return plain_name(plain) if isinstance(plain, str) else ""


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for inner in attribute.g.node if attribute.HasField("g") else ():
            yield from _reads(inner)
        yield from (value.name for value in attribute.g.output if attribute.HasField("g"))


def _draws(node: onnx.NodeProto, constants: Mapping[str, onnx.TensorProto]) -> bool:
    """Whether the node, or one in its bodies, draws."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            inner = {**constants, **_constants(attribute.g)}
            if any(_draws(member, inner) for member in attribute.g.node):
                return True
    operator = operator_of(node)
    if operator not in RANDOM:
        return False
    place = _SWITCHED.get(operator)
    if place is None:
        return True
    return _is_on(node, place, constants) and not _drops_nothing(node, constants)


def _is_on(node: onnx.NodeProto, place: int, constants: Mapping[str, onnx.TensorProto]) -> bool:
    """Whether a switch is on, or may be."""
    named = next((a for a in node.attribute if a.name in _SWITCH_NAMES), None)
    if named is not None:
        return bool(named.i)
    given = node.input[place] if place < len(node.input) else ""
    if not given:  # only `native_dropout` has no word for it: it trains then
        return operator_of(node) == "native_dropout"
    constant = constants.get(given)
    return constant is None or bool(onnx.numpy_helper.to_array(constant).any())


def _drops_nothing(node: onnx.NodeProto, constants: Mapping[str, onnx.TensorProto]) -> bool:
    """Whether it is a dropout of nothing, which gives what it reads in training too."""
    if "dropout" not in operator_of(node).lower() or len(node.input) <= _SHARE:
        return False
    share = constants.get(node.input[_SHARE])
    return share is not None and not onnx.numpy_helper.to_array(share).any()


def _constants(scope: onnx.GraphProto | onnx.FunctionProto) -> dict[str, onnx.TensorProto]:
    """Small constants by name; what lies outside the file is none."""
    found: dict[str, onnx.TensorProto] = {}
    if isinstance(scope, onnx.GraphProto):
        found = {t.name: t for t in scope.initializer if not t.external_data}
    for node in scope.node:
        if node.op_type == "Constant":
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.TENSOR and attribute.name == "value":
                    found[node.output[0]] = attribute.t
    return found
