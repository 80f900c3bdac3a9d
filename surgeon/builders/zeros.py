"""What is zero: a summand or bias, which changes but the sign of a zero, and a first state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims
from surgeon.builders.cleaning import beside_constant
from surgeon.builders.fills import number_of
from surgeon.builders.known_norms import see_no_untrained_norm
from surgeon.facts import Facts
from surgeon.facts.fact import INTEGERS, Array, same_dims
from surgeon.facts.kinds import FLOATS
from surgeon.links import maker_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused
from surgeon.standard import STANDARD

# Operators that give the same for 0.0 and -0.0, of which there are others: see `_forgets`.
_FORGET = frozenset(
    "Abs And ArgMax ArgMin Cos Cosh Equal Exp Greater GreaterOrEqual HardSigmoid IsInf IsNaN Less "
    "LessOrEqual Log LogSoftmax NonZero Not Or ReduceL1 ReduceL2 ReduceLogSumExp ReduceSumSquare "
    "Shape Sigmoid Sign Size Softmax Softplus Xor".split()
)
_WHOLE = frozenset({*INTEGERS, onnx.TensorProto.BOOL})
_NUMBERS = _WHOLE | FLOATS
# Operators that give 0.0 where they give a zero; of these, where their operands do; those of any.
_UPRIGHT = frozenset(
    "Abs Cosh Exp ReduceL1 ReduceL2 ReduceSumSquare Sigmoid Softmax Softplus".split()
)
_KEEP_UPRIGHT: Mapping[str, slice] = {
    **dict.fromkeys(("Concat", "Max", "Min"), slice(None)),
    **dict.fromkeys(("MaxPool", "ReduceMax", "ReduceMin", "ReduceSum", "Relu"), slice(1)),
    **dict.fromkeys(("ScatterElements", "ScatterND"), slice(0, None, 2)),
    "Where": slice(1, None),
}
_MOVES = frozenset(
    "Cast Expand Gather Identity Reshape Slice Split Squeeze Tile Transpose Unsqueeze".split()
)

_LENGTHS = 4  # the operand of a recurrent layer
_HOLDS_LENGTHS = frozenset({onnx.TensorProto.INT32, onnx.TensorProto.INT64})


def plus_zero(draft: Draft, match: Match) -> gs.Tensor:
    """x + 0.0 is x, but where x is -0.0; and nothing behind it may tell the two apart."""
    facts, node = draft.facts, match.root
    x, array = beside_constant(draft, match)
    if array.dtype.kind != "f" or (array.size and array.item(0) != 0) or array.any():
        raise Refused("its constant is no zero of floating point")
    if array.ndim and not same_dims(facts.of(x).shape, facts.of(node.outputs[0]).shape):
        raise Refused("its constant may make the result larger")
    see_no_untrained_norm(draft, node)
    teller = _tells_zeros_apart(draft, node.outputs[0])
    if teller and not _is_upright(facts, x):
        raise Refused(f"it may matter whether it is 0.0 or -0.0: {teller}")
    return x


def without_zero_bias(draft: Draft, match: Match) -> gs.Tensor:
    """A Conv or ConvTranspose without its bias of zeros, where nothing tells 0.0 and -0.0 apart."""
    node = match.root
    bias = draft.facts.array(node.inputs[2])
    if bias is None or bias.dtype.kind != "f" or bias.any():
        raise Refused("its bias is not known to be zero everywhere")
    teller = "" if np.signbit(bias).all() else _tells_zeros_apart(draft, node.outputs[0])
    if teller:
        raise Refused(f"it may matter whether it is 0.0 or -0.0: {teller}")
    y: gs.Tensor = draft.op(node.op, *node.inputs[:2], **node.attrs)
    return y


def _tells_zeros_apart(draft: Draft, start: gs.Tensor) -> str:
    """What reads the value, at any distance, and could differ by more than the sign of a zero.

    Every value behind it is looked at once for all summands of a model: a node that stands there
    is replaced by one that divides by no more than it did.
    """
    known: dict[int, tuple[gs.Tensor, str]] = draft.surgery.findings.setdefault("zeros", {})
    own = {id(tensor) for tensor in draft.surgery.model.graph.outputs}
    stack = [start]
    while stack:
        tensor = stack[-1]
        if id(tensor) in known:
            stack.pop()
            continue
        teller, behind = _readers(draft, tensor, own)
        waiting = [] if teller else [t for t in behind if id(t) not in known]
        if waiting:
            stack += waiting
            continue
        found = teller or next((known[id(t)][1] for t in behind if known[id(t)][1]), "")
        known[id(tensor)] = tensor, found
        stack.pop()
    return known[id(start)][1]


def _readers(draft: Draft, tensor: gs.Tensor, own: set[int]) -> tuple[str, list[gs.Tensor]]:
    """Who tells zeros apart among those that read the value; what the others make of it."""
    behind: list[gs.Tensor] = []
    if draft.surgery.is_output(tensor) and id(tensor) not in own:
        return "it leaves a body", behind
    for node in tensor.outputs:
        if (node.domain or "") not in STANDARD or _holds_graphs(node):
            return f"`{node.op}` reads it", behind
        if _divides_by(draft.facts, node, tensor):
            return f"`{node.op}` divides by it", behind
        if _writes_sign(draft.facts, node):
            return f"`{node.op}` writes its sign out", behind
        if not _forgets(draft.facts, node, tensor):
            behind += node.outputs
    return "", behind


def _holds_graphs(node: gs.Node) -> bool:
    return any(isinstance(value, gs.Graph) for value in node.attrs.values())


def _divides_by(facts: Facts, node: gs.Node, tensor: gs.Tensor) -> bool:
    """Whether an infinity's sign depends on the sign of this zero."""
    if node.op == "Reciprocal":
        return True
    if node.op in ("Div", "QuantizeLinear"):
        return len(node.inputs) > 1 and node.inputs[1] is tensor
    if node.op == "Pow" and node.inputs[0] is tensor:
        exponent = _array(facts, node.inputs[1])
        return exponent is None or bool((exponent < 0).any())
    return False


def _writes_sign(facts: Facts, node: gs.Node) -> bool:
    """Whether it makes texts or bits of numbers, in which the sign of a zero stands."""
    made = facts.of(node.outputs[0]).dtype
    return node.op == "BitCast" or (node.op in ("Cast", "CastLike") and made not in _NUMBERS)


def _forgets(facts: Facts, node: gs.Node, tensor: gs.Tensor) -> bool:
    """Whether the node gives the same to the bit whichever zero it reads."""
    if node.op in _FORGET:
        return True
    if node.op in ("Cast", "CastLike"):
        return facts.of(node.outputs[0]).dtype in _WHOLE
    if node.op == "Pow":
        return node.inputs[0] is tensor and _is_even(_array(facts, node.inputs[1]))
    if node.op == "Mul":
        return node.inputs[0] is node.inputs[1]
    if node.op in ("Add", "Sub"):
        other = node.inputs[1] if node.inputs[0] is tensor else node.inputs[0]
        array = _array(facts, other)
        return array is not None and bool(np.all(array != 0))
    return False


def _is_even(exponent: Array | None) -> bool:
    if exponent is None or exponent.dtype == object:
        return False
    return bool(np.all((exponent > 0) & (exponent % 2 == 0)))


def _is_upright(facts: Facts, tensor: gs.Tensor) -> bool:
    """Whether no element is -0.0, by what makes it."""
    waiting, seen = [tensor], {id(tensor)}
    while waiting:
        at = waiting.pop()
        array = _array(facts, at)
        if array is not None:
            if array.dtype == object or (np.signbit(array) & (array == 0)).any():
                return False
            continue
        node = maker_of(at)
        if node is None or (node.domain or "") not in STANDARD:
            return False
        kept = _KEEP_UPRIGHT.get(node.op, slice(1) if node.op in _MOVES else slice(0))
        behind = node.inputs[kept]
        if node.op in ("Cast", "CastLike") and facts.of(node.inputs[0]).dtype in _WHOLE:
            continue
        if node.op in _UPRIGHT or (node.op == "Mul" and node.inputs[0] is node.inputs[1]):
            continue
        if not behind:
            return False
        waiting += [t for t in behind if id(t) not in seen]
        seen.update(map(id, behind))
    return True


def _array(facts: Facts, tensor: gs.Tensor) -> Array | None:
    """The values of a constant, also of a Constant behind, which the sweep has not come to."""
    for node in tensor.inputs:
        if node.op == "Constant" and (node.domain or "") in STANDARD:
            facts.infer(node)
    return facts.array(tensor)


def is_zero(draft: Draft, tensor: gs.Tensor) -> bool:
    """Whether every element is proven to be 0; the replacement then rests on what makes it."""
    return is_number(draft, tensor, 0)


def is_number(draft: Draft, tensor: gs.Tensor, number: int) -> bool:
    """Whether every element is proven to be this; the replacement then rests on what makes it."""
    waiting, premises = [tensor], {id(tensor): tensor}
    while waiting:
        tensor = waiting.pop()
        array = draft.facts.array(tensor)
        if array is not None:
            if array.dtype == object or (array != number).any():
                return False
            continue
        for source in _number_as(draft.facts, tensor, number):
            if source is None:
                return False
            if id(source) not in premises:
                premises[id(source)] = source
                waiting.append(source)
    draft.premises.extend(t for t in premises.values() if t.inputs)
    return True


def _number_as(facts: Facts, tensor: gs.Tensor, number: int) -> Sequence[gs.Tensor | None]:
    """What has to be this number for a computed value to be; None where that is not known."""
    producer = maker_of(tensor)
    if producer is None or (producer.domain or "") not in STANDARD:
        return [None]
    if producer.op == "ConstantOfShape":
        return [None] if np.any(number_of(producer) != number) else []
    if producer.op == "Concat":
        return list(producer.inputs)
    if producer.op == "Cast" and number and facts.of(tensor).dtype not in _HOLDS_LENGTHS:
        return [None]
    return [producer.inputs[0] if producer.op in _MOVES else None]


def full_lengths(draft: Draft, match: Match) -> tuple[gs.Tensor, ...]:
    """An LSTM, GRU or RNN whose sequences are as long as its input, which is what it takes unsaid.

    Lengths for a batch that may be another than the input's stay: such a model has no value.
    """
    node, facts = match.root, draft.facts
    operands = [None if t.is_empty() else t for t in node.inputs]
    lengths = operands[_LENGTHS] if len(operands) > _LENGTHS else None
    if lengths is None:
        raise Refused("it is told no lengths")
    steps, batch = (1, 0) if node.attrs.get("layout") else (0, 1)
    mine, its = (facts.of(t).shape for t in (lengths, node.inputs[0]))
    if mine is None or its is None or dims.equal(mine[0], its[batch]) is not True:
        raise Refused("its lengths may be for another batch than its input has")
    if not _are_all(draft, lengths, its[steps]):
        raise Refused("its lengths are not all known to be that of its input")
    operands[_LENGTHS] = None
    return _layer_of(draft, node, operands)


def _are_all(draft: Draft, lengths: gs.Tensor, steps: dims.Dim) -> bool:
    """Whether every length is provably this one, a number or a symbol."""
    if isinstance(steps, int):
        return is_number(draft, lengths, steps)
    said = draft.facts.of(lengths).value
    if said is None or not all(dims.equal(each, steps) is True for each in said.reshape(-1)):
        return False
    draft.premises.append(lengths)
    return True


def zero_state(draft: Draft, match: Match) -> tuple[gs.Tensor, ...]:
    """An LSTM, GRU or RNN that begins in zeros, which is what it does where it is told nothing.

    Zeros for a batch that may be another than the input's stay: such a model has no value.
    """
    node, facts = match.root, draft.facts
    operands = [None if t.is_empty() else t for t in node.inputs]
    batch = 0 if node.attrs.get("layout") else 1
    dropped = False
    for index in range(5, min(len(operands), 7)):
        state = operands[index]
        if state is None or not is_zero(draft, state):
            continue
        mine, its = (facts.of(t).shape for t in (state, node.inputs[0]))
        if mine is None or its is None or dims.equal(mine[batch], its[batch]) is not True:
            raise Refused("its zeros may be for another batch than its input has")
        operands[index], dropped = None, True
    if not dropped:
        raise Refused("it begins in nothing, or in what is not proven to be zero")
    return _layer_of(draft, node, operands)


def _layer_of(
    draft: Draft, node: gs.Node, operands: Sequence[gs.Tensor | None]
) -> tuple[gs.Tensor, ...]:
    """The layer of other operands, and as many outputs as the rule names."""
    count = len(node.outputs)
    operands = list(operands)
    while operands[-1] is None:
        operands.pop()
    made = draft.op(node.op, *operands, outputs=count, **node.attrs)
    results = (made,) if count == 1 else tuple(made)
    wanted = 3 if node.op == "LSTM" else 2  # outputs that are left out at the end stand for nothing
    return results + results[:1] * (wanted - count)
