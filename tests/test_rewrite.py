"""The wiring: outputs are handed over, names are new, and what nobody reads goes."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs
import pytest
from truth import model_of, parse

from surgeon.facts import UNKNOWN, Facts
from surgeon.links import toposort
from surgeon.model import Model
from surgeon.rewrite import Surgery

F32 = np.float32


def open_up(
    body: str, outputs: str = "y", inputs: str = "float[b,t] x"
) -> tuple[Surgery, dict[str, gs.Tensor]]:
    model = Model(model_of(inputs, body, outputs))
    facts = Facts(model)
    facts.enter(model.graph)
    tensors = {t.name: t for n in model.graph.nodes for t in (*n.inputs, *n.outputs)}
    return Surgery(model, facts), tensors


def check_links(graph: gs.Graph) -> None:
    """Every link is there from both ends, as often as it is read."""
    alive = [n for n in graph.nodes if not getattr(n, "gone", False)]
    for node in alive:
        for tensor in node.inputs:
            count = sum(t is tensor for t in node.inputs)
            assert sum(n is node for n in tensor.outputs) == count
        for tensor in node.outputs:
            assert any(n is node for n in tensor.inputs) or tensor.is_empty()


def test_a_replacement_takes_over_the_output_under_its_name() -> None:
    surgery, t = open_up("a = Neg (x) y = Relu (a)")
    root = t["a"].inputs[0]
    draft = surgery.draft(surgery.model.graph, "a")
    new = draft.op("Abs", t["x"])
    surgery.hand_over(root, [(t["a"], new)])
    surgery.model.graph.nodes = [
        *(n for n in surgery.model.graph.nodes if n is not root),
        *draft.nodes,
    ]
    assert t["a"].inputs == [draft.nodes[0]]
    assert list(draft.nodes[0].origin.output) == ["a"]
    assert root.gone
    check_links(surgery.model.graph)


def test_a_value_that_is_there_already_takes_the_readers() -> None:
    surgery, t = open_up("a = Neg (x) c = Neg (a) y = Mul (c, c)")
    root = t["c"].inputs[0]
    surgery.hand_over(root, [(t["c"], t["x"])])
    assert [i.name for i in t["y"].inputs[0].inputs] == ["x", "x"]
    assert t["c"].became is t["x"]
    assert t["a"].inputs[0].gone, "nobody reads it any more"


def test_the_facts_of_a_value_go_with_it_when_an_earlier_replacement_takes_over() -> None:
    surgery, t = open_up("a = Neg (x) c = Neg (a) y = Relu (c)")
    draft = surgery.draft(surgery.model.graph, "a")
    surgery.hand_over(t["a"].inputs[0], [(t["a"], draft.op("Abs", t["x"]))])
    t["c"].fact = UNKNOWN
    surgery.facts.infer(draft.nodes[0])
    surgery.hand_over(t["c"].inputs[0], [(t["c"], t["a"])])
    assert t["c"].inputs == [draft.nodes[0]], "a drafted node takes over a second name"
    assert surgery.facts.of(t["c"]).rank == 2


def test_inner_nodes_with_other_readers_stay() -> None:
    surgery, t = open_up("a = Neg (x) c = Neg (a) y = Mul (c, a)")
    surgery.hand_over(t["c"].inputs[0], [(t["c"], t["x"])])
    assert not getattr(t["a"].inputs[0], "gone", False)
    check_links(surgery.model.graph)


def test_outputs_of_the_model_are_never_let_go() -> None:
    surgery, t = open_up("a = Neg (x) c = Neg (a) y = Relu (c)", "y a")
    surgery.hand_over(t["c"].inputs[0], [(t["c"], t["x"])])
    assert not getattr(t["a"].inputs[0], "gone", False)
    assert surgery.is_output(t["a"])
    assert not surgery.is_output(t["c"])


def test_readers_in_bodies_are_readers() -> None:
    proto = parse(
        "g (bool k, float[n] x) => (y) { a = Neg (x) c = Neg (a) "
        "y = If (k) <then_branch = p () => (r) { r = Relu (c) }, else_branch = q () => (s) { s = "
        "Abs (a) }> }"
    )
    model = Model(proto)
    surgery = Surgery(model, Facts(model))
    t = {t.name: t for g in model.graphs() for n in g.nodes for t in (*n.inputs, *n.outputs)}
    surgery.hand_over(t["c"].inputs[0], [(t["c"], t["x"])])
    assert t["r"].inputs[0].inputs[0] is t["x"]
    assert not getattr(t["a"].inputs[0], "gone", False)
    surgery.release(t["y"].inputs[0])
    assert t["r"].inputs[0].inputs == []
    assert not t["a"].outputs


def test_names_are_new() -> None:
    surgery, t = open_up('a = Neg (x) "y/Abs" = Relu (a) y = Exp ("y/Abs")')
    draft = surgery.draft(surgery.model.graph, "y")
    assert [draft.op("Abs", t["x"]).name for _ in range(2)] == ["y/Abs_2", "y/Abs_3"]
    assert draft.constant([1], "c").name == "y/c"
    assert draft.constant([1], "c").name == "y/c_2"
    assert surgery.fresh("new") == "new"
    assert surgery.fresh("new") == "new_2"


def test_a_discarded_draft_leaves_no_trace() -> None:
    surgery, t = open_up("a = Neg (x) y = Relu (a)")
    readers = list(t["x"].outputs)
    draft = surgery.draft(surgery.model.graph, "a")
    draft.op("Mul", draft.op("Abs", t["x"]), t["x"])
    assert len(t["x"].outputs) > len(readers)
    draft.discard()
    assert t["x"].outputs == readers
    assert draft.nodes == []


def test_drafted_values_have_facts_at_once() -> None:
    surgery, t = open_up("a = Neg (x) y = Relu (a)")
    draft = surgery.draft(surgery.model.graph, "a")
    made = draft.op("Transpose", t["x"], perm=[1, 0])
    assert str(surgery.facts.of(made).shape) == "(t, b)"
    first, second = draft.op("Split", made, draft.constant([1, 2]), outputs=2, axis=1)
    assert str(surgery.facts.of(second).shape) == "(t, 2)"
    assert first.name != second.name


def test_constants_of_python_lists_are_int64_and_arrays_as_they_are() -> None:
    surgery, _ = open_up("y = Relu (x)")
    draft = surgery.draft(surgery.model.graph, "y")
    assert draft.constant([1, 2]).values.dtype == np.int64
    assert draft.constant(np.array([1], np.int32)).values.dtype == np.int32
    assert draft.constant(np.array(1.5, F32)).values.shape == ()


def test_a_node_that_nobody_reads_is_dead() -> None:
    surgery, t = open_up("a = Neg (x) y = Relu (x)")
    assert surgery.is_dead(t["a"].inputs[0])
    assert not surgery.is_dead(t["y"].inputs[0])


@pytest.mark.slow
@pytest.mark.parametrize("count", [10_000])
def test_release_and_order_need_no_deep_stack(count: int) -> None:
    body = " ".join(f"v{i + 1} = Neg (v{i})" for i in range(count))
    surgery, t = open_up(f"v0 = Abs (x) {body} y = Relu (x)")
    assert len(toposort(surgery.model.graph)) == count + 2
    surgery.release(t[f"v{count}"].inputs[0])
    assert sum(getattr(n, "gone", False) for n in surgery.model.graph.nodes) == count + 1


def test_what_a_body_reads_keeps_its_producer_in_front() -> None:
    proto = parse(
        "g (bool k, float[n] x) => (y) { a = Neg (x) "
        "y = If (k) <then_branch = p () => (r) { r = Relu (a) }, else_branch = q () => (a) { }> }"
    )
    graph = Model(proto).graph
    graph.nodes.reverse()
    assert [n.op for n in toposort(graph)] == ["Neg", "If"]


def test_a_cycle_is_an_error_that_names_a_node() -> None:
    graph = Model(parse("g (float[n] x) => (y) { a = Add (x, x) c = Relu (a) y = Neg (c) }")).graph
    add, relu = graph.nodes[:2]
    add.inputs[1] = relu.outputs[0]
    with pytest.raises(ValueError, match=r"Add|Relu"):
        toposort(graph)


@pytest.mark.parametrize("step", [1, 7, 199])
def test_a_constant_of_many_readers_lists_all_that_stay_and_few_that_left(step: int) -> None:
    """Nodes leave in any order; `step` has no divisor in common with their number."""
    body = "c = Constant <value_float = 1.0> () " + " ".join(
        f"y{i} = Add (x, c)" for i in range(200)
    )
    surgery, t = open_up(body, "y0", "float x")
    add = t["y0"].inputs[0]
    surgery.to_constant(t["c"], np.ones((), F32), surgery.model.graph)
    nodes = [reader for reader in surgery.model.graph.nodes if reader.op == "Add"]
    constant = add.inputs[1]
    leaving = [node for i in range(200) if (node := nodes[i * step % 200]) is not add]
    for count, node in enumerate(leaving, 1):
        surgery.release(node)
        alive = [reader for reader in constant.outputs if not reader.gone]
        assert len(alive) == 200 - count
        assert len(constant.outputs) <= max(2 * len(alive), 64)
    assert constant.outputs == [add]
