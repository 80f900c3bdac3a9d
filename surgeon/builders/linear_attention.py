"""Linear attention: a state of keys and values that each token decays, corrects and reads.

With a state `S` of `[key width, value width]` a head, and a token's `q`, `k`, `v`, decay `g` and
rate `b`, it is `S <- exp(g) S`, then `S <- S + k b (v - S^T k)^T`, and gives `S^T q`. What a rule
lacks of these is left out: `linear` has neither decay nor rate, `gated` no rate, `delta` no decay.
The formulas are those of ONNX's LinearAttention.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import onnx_graphsurgeon as gs

from surgeon.builders.bench import TYPE, Bench, operand, whole_number
from surgeon.builders.turns import row_by_row
from surgeon.match import Match, attribute_of
from surgeon.rewrite import Draft, Refused

_FLOAT = int(TYPE.FLOAT)
RULES = {  # whether the state decays, and whether it is corrected
    "linear": (False, False),
    "gated": (True, False),
    "delta": (False, True),
    "gated_delta": (True, True),
}


@dataclass(frozen=True, slots=True)
class Heads:
    """How many there are, and how wide.

    Attributes:
        queries: Heads of queries.
        keys: Of keys.
        values: Of values, and of the state.
        width: Of a query and a key.
        wide: Of a value.
    """

    queries: int
    keys: int
    values: int
    width: int
    wide: int

    def __post_init__(self) -> None:
        """See that they go together.

        Raises:
            Refused: They do not.
        """
        least, most = sorted((self.queries, self.values))
        if min(least, self.keys, self.width) < 1 or most % least or self.values % self.keys:
            raise Refused(
                f"{self.queries} heads of queries, {self.keys} of keys and {self.values} of values "
                f"do not go together"
            )

    @property
    def read(self) -> int:
        """How many heads come out: each of the queries, or of the values where these are more."""
        return max(self.queries, self.values)


@dataclass(frozen=True, slots=True)
class Tokens:
    """What each token brings, in float32.

    Attributes:
        query: [batch, length, heads of queries, width].
        key: [batch, length, heads of keys, width].
        value: [batch, length, heads of values, width of values].
        decay: What the state is multiplied by is its exponential; [batch, length, heads of values,
            1 or width]; None where it does not decay.
        rate: [batch, length, heads of values or 1, 1]; None where nothing is corrected.
    """

    query: gs.Tensor
    key: gs.Tensor
    value: gs.Tensor
    decay: gs.Tensor | None
    rate: gs.Tensor | None


def linear_attention_in_turns(draft: Draft, match: Match) -> Any:
    """LinearAttention, token by token."""
    node = match.root
    return packed_linear_attention(draft, node, lambda key: attribute_of(node, key))


def packed_linear_attention(draft: Draft, node: gs.Node, given: Callable[[str], Any]) -> Any:
    """LinearAttention of heads that lie side by side: [batch, length, heads * width].

    Args:
        draft: Where the nodes go.
        node: The node, whose operands are query, key, value, state, decay and rate.
        given: The attribute of a name.

    Raises:
        Refused: A width is not known, heads do not go together, or an operand is missing.
    """
    c = Bench(draft)
    queries, count = whole_number(node, "q_num_heads"), whole_number(node, "kv_num_heads")
    query, key, value = node.inputs[:3]
    past, dtype = operand(node, 3), c.dtype(query)
    if min(queries, count) < 1 or not (width := _width(c, query) // queries):
        raise Refused(f"it has {queries} and {count} heads")
    heads = Heads(queries, _width(c, key) // width, count, width, _width(c, value) // count)
    decays, corrects = rule_of(given("update_rule"))
    decay, rate = (_needed(node, *each) for each in ((4, decays, "decay"), (5, corrects, "rate")))
    tokens = Tokens(
        scaled(c, _by_heads(c, query, queries, width), given("scale"), width),
        _by_heads(c, key, heads.keys, width),
        _by_heads(c, value, count, heads.wide),
        None if decay is None else _by_heads(c, decay, count, _width(c, decay) // count),
        None if rate is None else c.unsqueeze(c.cast(rate, _FLOAT), [3]),
    )
    if past is None:
        kind, sizes = dtype, [c.size(query, 0), count, width, heads.wide]
        state = c.filled(sizes, 0, _FLOAT)
    else:
        kind, state = c.dtype(past), c.cast(past, _FLOAT)
    y, state = attended(c, tokens, heads, state)
    y = c.op("Reshape", y, c.ints([0, 0, heads.read * heads.wide], "channels"))
    return c.cast(y, dtype), c.cast(state, kind)


def rule_of(name: Any) -> tuple[bool, bool]:
    """Whether a state decays by this rule, and whether it is corrected.

    Raises:
        Refused: Nobody knows the rule.
    """
    rule = RULES.get(name or "gated_delta")
    if rule is None:
        raise Refused(f"no rule {name!r} is known by which its state changes")
    return rule


def _needed(node: gs.Node, index: int, counts: bool, what: str) -> gs.Tensor | None:
    """An operand that its rule needs; one that it does not is passed over, as onnxruntime does."""
    if not counts:
        return None
    given = operand(node, index)
    if given is None:
        raise Refused(f"it has no {what}, which its rule needs")
    return given


def _width(c: Bench, x: gs.Tensor) -> int:
    shape = c.shape(x)
    if shape is None or len(shape) != 3 or not isinstance(shape[-1], int):
        raise Refused(f"how wide `{x.name}` is is not known, or it has not three axes")
    return shape[-1]


def scaled(c: Bench, query: gs.Tensor, scale: Any, width: int) -> gs.Tensor:
    """Queries times a number, which is 1 / sqrt (width) where none is given, or 0."""
    factor = float(scale or 0) or 1 / math.sqrt(width)
    made: gs.Tensor = c.op("Mul", query, c.number(factor, c.dtype(query)))
    return made


def _by_heads(c: Bench, x: gs.Tensor, heads: int, width: int) -> gs.Tensor:
    """[batch, length, heads, width] in float32."""
    wide = c.cast(x, _FLOAT)
    made: gs.Tensor = c.op("Reshape", wide, c.ints([0, 0, heads, width], "heads"))
    return made


def attended(
    c: Bench, tokens: Tokens, heads: Heads, state: gs.Tensor
) -> tuple[gs.Tensor, gs.Tensor]:
    """What the tokens read, [batch, length, heads, width of values], and the state after them.

    A single token takes one turn, which is written out; any other number takes a Scan.

    Args:
        c: Where the nodes go.
        tokens: What they bring.
        heads: How many there are, and how wide.
        state: [batch, heads of values, width, width of values] in float32.
    """
    few = heads.queries < heads.values
    query = _repeated(c, tokens.query, heads.queries, heads) if few else tokens.query
    rows = [query, _repeated(c, tokens.key, heads.keys, heads), tokens.value]
    rows += [c.op("Exp", tokens.decay)] if tokens.decay is not None else []
    rows += [tokens.rate] if tokens.rate is not None else []
    turn = _Turn(heads, tokens.decay is not None, tokens.rate is not None)
    if any(c.size(x, 1) == 1 for x in rows):  # of one, so are the others
        (after,), (y,) = turn(c.draft, [state], [c.squeeze(x, [1]) for x in rows])
        return c.op("Reshape", y, c.ints([0, 1, heads.read, heads.wide], "heads")), after
    first = [c.permute(x, [1, 0, 2, 3]) for x in rows]
    names = ["query", "key", "value", *["decay"] * turn.decays, *["rate"] * turn.corrects]
    (after,), (found,) = row_by_row(c.draft, [state], first, turn, names)
    y = c.permute(found, [1, 0, 2, 3, 4])
    return c.op("Reshape", y, c.ints([0, 0, heads.read, heads.wide], "heads")), after


def _repeated(c: Bench, x: gs.Tensor, own: int, heads: Heads) -> gs.Tensor:
    """Each head as often in a row as there are heads of values that share it."""
    if own == heads.values:
        return x
    repeats = c.ints([1, 1, 1, heads.values // own, 1], "repeats")
    each = c.op("Expand", c.unsqueeze(x, [3]), repeats)
    made: gs.Tensor = c.op("Reshape", each, c.ints([0, 0, heads.values, heads.width], "heads"))
    return made


@dataclass(frozen=True, slots=True)
class _Turn:
    """What one token does to the state, and reads from it.

    Attributes:
        heads: How many there are.
        decays: Whether the rows have what the state is multiplied by, behind query, key and value.
        corrects: Whether they have a rate, as the last.
    """

    heads: Heads
    decays: bool
    corrects: bool

    def __call__(
        self, draft: Draft, states: list[gs.Tensor], rows: list[gs.Tensor]
    ) -> tuple[list[gs.Tensor], list[gs.Tensor]]:
        """The next state; and [batch, heads, queries that share one, width of values]."""
        c, state = Bench(draft), states[0]
        query, key, value = rows[:3]
        line = c.unsqueeze(value, [2])
        if self.decays:
            state = c.op("Mul", state, c.unsqueeze(rows[3], [3]))
        if self.corrects:
            known = c.op("MatMul", c.unsqueeze(key, [2]), state)
            line = c.op("Mul", c.unsqueeze(rows[-1], [3]), c.op("Sub", line, known))
        state = c.op("Add", state, c.op("Mul", c.unsqueeze(key, [3]), line))
        shared = self.heads.read // self.heads.values
        sizes = c.ints([0, self.heads.values, shared, self.heads.width], "together")
        return [state], [c.op("MatMul", c.op("Reshape", query, sizes), state)]
