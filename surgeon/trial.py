"""The check of one rewrite, before it is spliced: the matched piece against its replacement.

Both are cut out as tiny models with the same inputs, and compared on seeded inputs that agree with
the facts: a value that is known symbolically is given its value, attentions that are proven to sum
to 1 do. The original piece may hold ATen nodes: the witness runs it then. This proves nothing.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from surgeon import dims, edges
from surgeon.chance import drawn_outputs
from surgeon.edges import NORMAL
from surgeon.errors import ForeignError
from surgeon.facts import Fact, Facts
from surgeon.facts.fact import INTEGERS, Array
from surgeon.firing import Pairs
from surgeon.links import current
from surgeon.match import Match
from surgeon.model import Model
from surgeon.recipe import Rule
from surgeon.reference import NoWitness, Undefined
from surgeon.rewrite import Draft
from surgeon.runtime import NotRunnable, RunFailed
from surgeon.verify import OutputCheck, check_pair
from surgeon.verify.compare import TOLERANCES

WANTED = 2  # sets of inputs that both pieces must take
_DEPTH = 12  # how far behind the match the replacement's operands may lie
_LARGEST = 1 << 26  # bytes of constants in a piece
_LARGEST_INPUT = 1 << 22  # elements of one drawn input
# What every symbol is, one set at a time, until both pieces ran on enough of them.
_SIZES: tuple[tuple[int, ...], ...] = (
    (2, 3, 5, 4, 7, 6),
    (3, 5, 4, 7, 2, 6),
    (2,),
    (3,),
    (1,),
    (4,),
    (8,),
    (16,),
    (32,),
    (37, 64, 45),
)
_FURTHER: tuple[tuple[int, ...], ...] = ((5, 7, 9, 8, 11, 6), (12, 17, 10))
_EDGES = 2  # sets of each kind of edge values


@dataclass(slots=True)
class Trial:
    """Compares rewrites of one model; each distinct piece once.

    Attributes:
        counts: How many were compared, and how many were not, by reason.
        failures: Where onnxruntime crashed, hung or ran out of memory.
    """

    model: Model
    facts: Facts
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    _known: dict[str, str | None] = field(default_factory=dict)

    def __call__(self, rule: Rule, match: Match, draft: Draft, pairs: Pairs) -> str | None:
        """The reason to refuse the rewrite, or None."""
        if rule.exact == "approximate" and rule.bound is None:
            self.counts["not compared: it is approximate"] += 1
            return None
        pairs = [*pairs, *(pair for _, others in draft.also for pair in others)]
        piece = self._cut(match, draft, pairs)
        if isinstance(piece, str):
            self.counts[f"not compared: {piece}"] += 1
            return None
        key = piece.key(rule)
        if key in self._known:
            self.counts["compared before"] += 1
            return self._known[key]
        try:
            verdict = self._known[key] = self._compare(rule, piece)
        except ForeignError as error:  # which of the two is at fault, the whole model's check says
            self.counts[f"not compared: {error.what[:120]}"] += 1
            self.failures.append(f"the check of `{rule.recipe}/{rule.id}`: {error.what[:500]}")
            verdict = self._known[key] = None
        return verdict

    def _compare(self, rule: Rule, piece: _Piece) -> str | None:
        ran = 0
        why = "no sizes at which it is defined"
        at: Mapping[str, int] = {}
        for sizes in _SIZES:
            point = dict(zip(piece.symbols, _cycle(sizes), strict=False))
            try:
                bad = self._differs(rule, piece, point, NORMAL, ran)
            except (KeyError, ValueError) as error:
                why = f"its sizes are not decided by `{error}`"
                continue
            except (Undefined, RunFailed) as error:
                why = f"it does not run: {error.what[:120]}"
                continue
            except (NotRunnable, NoWitness) as error:
                self.counts[f"not compared: {error.what[:120]}"] += 1
                return None
            if bad is not None:
                return bad
            ran += 1
            at = point
            if ran == WANTED or not piece.symbols:
                break
        if ran and drawn_outputs(piece.at(at, seed=0)[0]):
            self.counts["compared by dtype and shape: it draws at random"] += 1
            return None
        self.counts["compared" if ran else f"not compared: {why}"] += 1
        return self._further(rule, piece, at) if ran else None

    def _further(self, rule: Rule, piece: _Piece, at: Mapping[str, int]) -> str | None:
        """Values and sizes that few models see, and at which rewrites are wrong; where both run."""
        styles = edges.styles(
            {
                node.op if node.op == "ATen" or node.domain == "aten" else node.origin.op_type
                for node in (*piece.nodes, *piece.draft)
            },
            integers=any(fact.dtype in INTEGERS for _, fact in piece.inputs),
            exact=rule.exact == "bit",
        )
        if not styles:
            return None
        points = [at, *(dict(zip(piece.symbols, _cycle(s), strict=False)) for s in _FURTHER)]
        # a symbol that stands for a part of another (`n<=6`) is no larger than it says
        bounded = any("<" in name or "-" in name for name in piece.symbols)
        for point in points[: 1 if bounded or not piece.symbols else None]:
            wanted = [(style, seed) for style in styles for seed in range(_EDGES)]
            if point is not at:
                wanted = [(NORMAL, 0), *((style, _EDGES) for style in styles[:1])]
            for style, seed in wanted:
                try:
                    bad = self._differs(rule, piece, point, style, seed)
                except (KeyError, ValueError, Undefined, RunFailed, NotRunnable, NoWitness):
                    continue
                if bad is not None:
                    return bad
        return None

    def _differs(
        self, rule: Rule, piece: _Piece, point: Mapping[str, int], style: str, seed: int
    ) -> str | None:
        """How the two pieces differ at these sizes, or None.

        Raises:
            KeyError, ValueError: The sizes make no piece.
            NotRunnable, RunFailed, Undefined, NoWitness: One of the two does not run.
        """
        before, after, feeds = piece.at(point, seed=seed, style=style)
        checks = check_pair(
            before,
            after,
            feeds_list=[feeds],
            exact="bit" if rule.exact == "bit" else "rounding",
            tolerance=rule.bound,
            folder=self.model.folder,
        )
        exact = rule.exact == "bit" or style == NORMAL
        bad = next((c for c in checks if not c.agrees and (exact or not _saturated(c))), None)
        if bad is None:
            return None
        at = ", ".join(f"{k}={v}" for k, v in point.items()) or "its fixed sizes"
        what = bad.fault or f"error {bad.max_absolute:.3g}, {bad.max_relative:.3g} of spread"
        drawn_of = "" if style == NORMAL else f", {edges.WORDS[style]}"
        return f"the replacement differs from what it replaces: {what} at {at}{drawn_of}"

    def _makers(self, tensor: gs.Tensor) -> Iterator[gs.Node]:
        """The nodes that make a value, back to what the facts know the value of."""
        stack, seen = [current(tensor)], set()
        while stack:
            tensor = stack.pop()
            if tensor.inputs and self.facts.of(tensor).value is None and id(tensor) not in seen:
                seen.add(id(tensor))
                yield tensor.inputs[0]
                stack.extend(_operands(tensor.inputs[0]))

    def _cut(self, match: Match, draft: Draft, pairs: Pairs) -> _Piece | str:
        """The two pieces, or why they cannot be cut out."""
        inside = {id(t) for node in draft.nodes for t in node.outputs}
        operands: dict[int, gs.Tensor] = {}
        for node in draft.nodes:
            for tensor in _operands(node):
                if not tensor.is_empty() and id(tensor) not in inside:
                    operands[id(tensor)] = tensor
        for _, new in pairs:
            if id(new) not in inside:
                operands[id(new)] = new
        roots = [old.inputs[0] for old, _ in pairs if old.inputs]
        keep = {id(n) for n in match.nodes} | {id(n) for v in match.views.values() for n in v}
        keep |= {id(n) for t in draft.premises for n in self._makers(t)}
        nodes = _behind(roots, keep, set(operands))
        if nodes is None:
            return "it reaches too far back"
        made = {id(t) for node in nodes for t in node.outputs}
        for node in nodes:
            for tensor in _operands(node):
                if not tensor.is_empty() and id(tensor) not in made:
                    operands[id(tensor)] = tensor
        outside = [t for t in operands.values() if id(t) not in made]
        if any(isinstance(v, gs.Graph) for node in nodes for v in node.attrs.values()):
            return "it holds a body"
        constants: dict[str, Array] = {}
        inputs: list[tuple[gs.Tensor, Fact]] = []
        symbols: dict[str, None] = {}
        size = 0
        for tensor in outside:
            fact = self.facts.of(tensor)
            array = self.facts.array(tensor)
            if array is not None:
                size += array.nbytes
                if size > _LARGEST:
                    return "its constants are large"
                constants[tensor.name] = array
                continue
            if fact.shape is None or not fact.dtype:
                return "an operand's shape is not known"
            inputs.append((tensor, fact))
            parts = list(fact.shape) + (fact.value.reshape(-1).tolist() if fact.symbolic else [])  # type: ignore[union-attr]
            for part in parts:
                symbols.update(dict.fromkeys(sorted(dims.symbols(part))))
        return _Piece(self.model, nodes, draft.nodes, pairs, constants, inputs, tuple(symbols))


@dataclass(frozen=True, slots=True)
class _Piece:
    """A match and its replacement, cut out."""

    model: Model
    nodes: Sequence[gs.Node]
    draft: Sequence[gs.Node]
    pairs: Pairs
    constants: Mapping[str, Array]
    inputs: Sequence[tuple[gs.Tensor, Fact]]
    symbols: tuple[str, ...]

    def key(self, rule: Rule) -> str:
        """What makes two pieces the same: rule, operators, attributes, shapes and constants."""
        digest = hashlib.sha256(f"{rule.location}".encode())
        names: dict[str, str] = {}

        def number(name: str) -> str:
            return names.setdefault(name, f"v{len(names)}") if name else ""

        for node in (*self.nodes, None, *self.draft):
            if node is None:
                digest.update(b"|")
                continue
            origin = node.origin
            reads = ",".join(number(t.name) for t in _operands(node))
            gives = ",".join(number(t.name) for t in node.outputs)
            digest.update(f"{origin.domain}.{origin.op_type}({reads})->{gives};".encode())
            for attribute in origin.attribute:
                digest.update(attribute.SerializeToString(deterministic=True))
        for tensor, fact in self.inputs:
            value = fact.value.reshape(-1).tolist() if fact.value is not None else None
            known = (fact.dtype, fact.shape, value, fact.unit_axis, fact.not_negative)
            text = f"{number(tensor.name)}:{known}"
            digest.update(text.encode())
        for name, array in self.constants.items():
            digest.update(f"{number(name)}:{array.dtype}{array.shape}".encode())
            digest.update(array.tobytes())
        return digest.hexdigest()

    def at(
        self, point: Mapping[str, int], *, seed: int, style: str = NORMAL
    ) -> tuple[onnx.ModelProto, onnx.ModelProto, dict[str, Array]]:
        """Both models and their inputs where every symbol has a size.

        Raises:
            KeyError: A symbol has none.
            ValueError: A dimension comes out negative, or an input too large.
        """
        rng = np.random.default_rng(seed)
        feeds: dict[str, Array] = {}
        fixed = dict(self.constants)
        for tensor, fact in self.inputs:
            shape = tuple(dims.evaluate(d, point) for d in fact.shape or ())
            if any(d < 0 for d in shape):
                raise ValueError("a negative dimension")
            if int(np.prod(shape, dtype=object)) > _LARGEST_INPUT:
                raise ValueError("a large dimension")
            if fact.value is not None:
                numbers = [dims.evaluate(d, point) for d in fact.value.reshape(-1).tolist()]
                dtype = onnx.helper.tensor_dtype_to_np_dtype(fact.dtype)
                fixed[tensor.name] = np.array(numbers, dtype).reshape(shape)
            else:
                feeds[tensor.name] = edges.draw(rng, fact, shape, style)
        before = self._model(self.nodes, [old for old, _ in self.pairs], feeds, fixed)
        after = self._model(self.draft, [new for _, new in self.pairs], feeds, fixed)
        return before, after, feeds

    def _model(
        self,
        nodes: Sequence[gs.Node],
        outputs: Sequence[gs.Tensor],
        feeds: Mapping[str, Array],
        fixed: Mapping[str, Array],
    ) -> onnx.ModelProto:
        graph = onnx.GraphProto(name="piece")
        read: set[str] = set()
        for node in nodes:
            proto = onnx.NodeProto()
            proto.CopyFrom(node.origin)
            proto.ClearField("doc_string")
            names = [t.name for t in _operands(node)]
            del proto.input[:]
            proto.input.extend(names)
            del proto.output[:]
            proto.output.extend(t.name for t in node.outputs)
            read.update(names)
            graph.node.append(proto)
        for index, tensor in enumerate(outputs):
            graph.node.append(
                onnx.helper.make_node("Identity", [tensor.name], [f"surgeon.output.{index}"])
            )
            graph.output.append(onnx.ValueInfoProto(name=f"surgeon.output.{index}"))
            read.add(tensor.name)
        for name, array in fixed.items():
            if name in read:
                graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        for name, array in feeds.items():
            dtype = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
            graph.input.append(onnx.helper.make_tensor_value_info(name, dtype, array.shape))
        version = max(self.model.proto.ir_version, 4)
        model = onnx.helper.make_model(graph, ir_version=version)
        model.producer_name = self.model.proto.producer_name  # some operators' meanings hang on it
        model.producer_version = self.model.proto.producer_version
        del model.opset_import[:]
        model.opset_import.extend(self.model.proto.opset_import)
        return model


def _operands(node: gs.Node) -> list[gs.Tensor]:
    """What the node's protobuf reads: in the model's own form, as things stand now."""
    tensors = node.inputs if node.origin_inputs is None else node.origin_inputs
    return [current(t) for t in tensors]


def _behind(roots: Sequence[gs.Node], keep: set[int], stop: set[int]) -> list[gs.Node] | None:
    """The nodes that lead from the tensors in `stop` to the roots, producers first.

    Matched nodes always belong; nodes behind them only where the replacement reads behind them too.
    """
    reached: dict[int, bool] = {}
    order: list[gs.Node] = []

    def visit(node: gs.Node, depth: int) -> bool:
        if id(node) in reached:
            return reached[id(node)]
        reached[id(node)] = False
        found = False
        for tensor in _operands(node):
            if id(tensor) in stop:
                found = True
            elif tensor.inputs and (depth < _DEPTH or id(tensor.inputs[0]) in keep):
                found = visit(tensor.inputs[0], depth + 1) or found
        belongs = found or id(node) in keep
        reached[id(node)] = belongs
        if belongs:
            order.append(node)
        return belongs

    for root in roots:
        if not visit(root, 0):
            return None
    return order


def _saturated(check: OutputCheck) -> bool:
    """Whether an error is large only beside a spread that edge values made very small."""
    known = TOLERANCES.get(check.dtype)
    return not check.fault and known is not None and check.max_absolute <= 5 * known[1]


def _cycle(sizes: Sequence[int]) -> Iterator[int]:
    while True:
        yield from sizes
