"""Loops drawn at random that keep shapes, or ranks, or neither: what they compute stays."""

import random
from collections.abc import Iterable, Iterator

import numpy as np
import onnx
import pytest
from truth import parse

import surgeon
from surgeon.runtime import NotRunnable, RunFailed, Session

F32 = np.float32
SHAPES = ("a,b", "2,2", "a,a", "b,c", "2,3")
STEPS = (  # `@` is the result, `$` an operand, `%` another
    "@ = Relu ($)",
    "@ = Transpose ($)",
    "@ = Concat <axis = 0> ($, $)",
    "@ = Concat <axis = 0> ($, %)",
    "@s = Shape ($) @ = Reshape ($, @s)",
    "@s = Shape (%) @ = Expand ($, @s)",
    "@ = Add ($, %)",
    "@ = Slice ($, zero, two, zero)",
    "@ = Unsqueeze ($, zero)",
    "@ = Flatten <axis = 1> ($)",
    "@ = ReduceSum <keepdims = 0> ($, zero)",
    "@ = ReduceSum <keepdims = 1> ($, zero)",
    "@s = Shape ($) @p = ReduceProd <keepdims = 1> (@s) @ = Reshape ($, @p)",
)


LISTED = (  # what is read of a list behind the Loop: a line of sizes, and a value
    """
    p = SequenceAt (all, first) q = SequenceAt (all, second) ps = Shape (p) qs = Shape (q)
    sizes = Concat <axis = 0> (ps, qs) sum = Add (p, q)
    """,
    "sum = ConcatFromSequence <axis = 0, new_axis = 1> (all) sizes = Shape (sum)",
    "sum = ConcatFromSequence <axis = -1, new_axis = 1> (all) sizes = Shape (sum)",
    "sum = ConcatFromSequence <axis = 0> (all) sizes = Shape (sum)",
    "sum = ConcatFromSequence <axis = -1> (all) sizes = Shape (sum)",
    "n = SequenceLength (all) sizes = Unsqueeze (n, zero) sum = SequenceAt (all, first)",
)


class Drawn:
    """A model with a Loop, and now and then one in that; nothing is declared of what it carries."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.shapes = {"x": rng.choice(SHAPES[:3]), "z": rng.choice(SHAPES)}
        count = rng.randint(1, 3)
        ys = [f"y{i}" for i in range(count)]
        self.listed = rng.random() < 0.3
        loop = self.loop(ys, ["x", *rng.choices(["x", "z"], k=count - 1)], ["x", "z"], 0)
        given = ", ".join(f"float[{shape}] {name}" for name, shape in self.shapes.items())
        outs = [*(f"float {y}" for y in ys), "int64 size"]
        loop += " size = Size (y0) "
        if self.listed:
            loop = f"none = SequenceEmpty () {loop} {rng.choice(LISTED)}"
            outs += ["int64[d] sizes", "float sum"]
        self.model = parse(
            f"g ({given}, int64 count) => ({', '.join(outs)}) "
            "<int64[1] zero = {0}, int64[1] two = {2}, int64 first = {0}, int64 second = {1}> "
            f"{{ {loop} }}"
        )
        for tensor in undeclared(self.model.graph):
            tensor.ClearField("shape")

    def loop(self, outs: list[str], begins: list[str], around: list[str], depth: int) -> str:
        """A Loop, as text."""
        rng, at = self.rng, f"{depth}"
        carried = [f"v{at}_{i}" for i in range(len(begins))]
        values, lines = [*carried, *around], [f"o{at} = Identity (k{at})"]
        made: list[str] = []
        for index in range(rng.randint(1, 6)):
            made.append(f"t{at}_{index}")
            step = rng.choice(STEPS).replace("@", made[-1])
            lines.append(step.replace("$", rng.choice(values)).replace("%", rng.choice(values)))
            values.append(made[-1])
        if depth == 0 and rng.random() < 0.4:
            made.append("w")
            lines.append(self.loop(["w"], [rng.choice(values)], around, 1))
        ends: list[str] = []
        for index in range(len(begins)):
            left = [name for name in made if name not in ends]
            if left and rng.random() < 0.7:
                ends.append(rng.choice(left))
            else:
                ends.append(f"e{at}_{index}")
                lines.append(f"{ends[-1]} = Neg ({rng.choice(values)})")
        head = ", ".join([f"int64 i{at}", f"bool k{at}", *(f"float {v}" for v in carried)])
        tail = ", ".join([f"bool o{at}", *(f"float {end}" for end in ends)])
        if depth == 0 and self.listed:
            head, tail = f"{head}, seq(float) list", f"{tail}, seq(float) longer"
            lines.append(self.longer(values))
            outs, begins = [*outs, "all"], [*begins, "none"]
        body = f"b{at} ({head}) => ({tail}) {{ {' '.join(lines)} }}"
        return f"{', '.join(outs)} = Loop (count, , {', '.join(begins)}) <body = {body}>"

    def longer(self, values: list[str]) -> str:
        """What puts a value into the list: the turn, or one branch of an If or both."""
        rng = self.rng
        place = rng.choice(("", "", ", first"))
        ends = [f"SequenceInsert (list, {rng.choice(values)}{place})" for _ in range(2)]
        kind = rng.choice(("turn", "turn", "one", "both"))
        if kind == "turn":
            return f"longer = {ends[0]}"
        if kind == "one":
            ends[rng.randrange(2)] = "Identity (list)"
        branches = [
            f"{branch}_branch = {branch} () => (seq(float) {branch}_end) {{ {branch}_end = {end} }}"
            for branch, end in zip(("then", "else"), ends, strict=True)
        ]
        return (
            "turn = Mod (i0, two) last = Squeeze (turn, zero) odd = Cast <to = 9> (last) "
            f"longer = If (odd) <{', '.join(branches)}>"
        )

    def feeds(self) -> Iterator[dict[str, np.ndarray]]:
        """Inputs of several sizes, for no turn and more."""
        for count in range(4):
            for a, b, c in ((2, 2, 2), (2, 3, 2), (3, 2, 3)):
                sizes = {"a": a, "b": b, "c": c, "2": 2, "3": 3}
                rng = np.random.default_rng(count)
                yield {"count": np.array(count)} | {
                    name: rng.normal(size=[sizes[d] for d in shape.split(",")]).astype(F32)
                    for name, shape in self.shapes.items()
                }


def undeclared(graph: onnx.GraphProto) -> Iterator[onnx.TypeProto.Tensor]:
    """The floats that bodies are given and give, and that a graph gives."""
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == attribute.GRAPH:
                yield from floats(attribute.g.input)
                yield from undeclared(attribute.g)
    yield from floats(graph.output)


def floats(values: Iterable[onnx.ValueInfoProto]) -> Iterator[onnx.TypeProto.Tensor]:
    """The types of tensors of floats, and of those in lists."""
    for value in values:
        listed = value.type.HasField("sequence_type")
        type_ = value.type.sequence_type.elem_type if listed else value.type
        if type_.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            yield type_.tensor_type


@pytest.mark.slow
def test_what_loops_compute_stays_whatever_they_carry() -> None:
    fired = ran = 0
    for seed in range(150):
        drawn = Drawn(seed)
        try:
            before = Session(drawn.model)
        except NotRunnable:
            continue  # its shapes contradict one another
        result = surgeon.apply(drawn.model, "clean", verify=False)
        after = None
        for feeds in drawn.feeds():
            try:
                wanted = before.run(feeds)
            except RunFailed:
                continue  # these sizes do
            if after is None:
                try:
                    after = Session(result.model.to_proto())
                except NotRunnable:
                    assert feeds["count"] == 0
                    break  # they do at every turn, which is known now
            found = after.run(feeds)
            for name, value in wanted.items():
                np.testing.assert_allclose(
                    found[name], value, rtol=1e-5, atol=1e-6, err_msg=f"{seed}"
                )
            ran += 1
        fired += bool(result.report.changes)
    assert ran > 800
    assert fired > 40


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_loop_that_grows_grows(turns: int) -> None:
    """A size that was taken for granted must not be found in what stands behind the Loop either."""
    proto = parse(
        """
        g (float[n,2] x, int64 count) => (float[m,2] y, int64 size) <int64[1] two = {2}> {
          y = Loop (count, , x) <body =
            b (int64 i, bool k, float[c,d] v) => (bool o, float[e,f] u) {
              o = Identity (k) s = Shape (x) r = Expand (x, s) u = Concat <axis = 0> (v, r)
            }>
          size = Size (y)
        }
        """
    )
    result = surgeon.apply(proto, "clean")
    found = Session(result.model.to_proto()).run(
        {"x": np.ones((3, 2), F32), "count": np.array(turns)}
    )
    assert found["size"] == 6 * (turns + 1)


def test_items_of_a_list_are_as_long_as_their_turn_made_them() -> None:
    proto = parse(
        """
        g (float[n] x, int64 count) => (bool[1] same)
          <int64 first = {0}, int64 second = {1}, int64[1] zero = {0}>
        {
          none = SequenceEmpty ()
          all = Loop (count, , none) <body =
            b (int64 i, bool k, seq(float[m]) list) => (bool o, seq(float[l]) longer) {
              o = Identity (k)
              turn = Unsqueeze (i, zero)
              head = Slice (x, zero, turn, zero)
              longer = SequenceInsert (list, head)
            }>
          p = SequenceAt (all, first)
          q = SequenceAt (all, second)
          sp = Shape (p)
          sq = Shape (q)
          same = Equal (sp, sq)
        }
        """
    )
    result = surgeon.apply(proto, "clean", verify=False)
    feeds = {"x": np.ones(5, F32), "count": np.array(3)}
    assert not Session(result.model.to_proto()).run(feeds)["same"].any()
