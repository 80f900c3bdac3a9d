"""`surgeon diff` on bodies, functions, annotations and training, and on what does not count."""

import onnx
import pytest
from differing import compare, compare_models, told
from onnx import TensorProto, helper, parser

HEAD = '<ir_version: 10, opset_import: ["": 17, "f": 1]>'
FUNCTION = f"""{HEAD} g (float[4] x, float[4] z) => (float[4] y, float[4] w) {{
  a = Abs (x)
  y, w = f.F (a, z)
}}
<domain: "f", opset_import: ["": 17]> F <alpha: float = 0.1> (p, q) => (b, d) {{
  b = LeakyRelu <alpha: float = @alpha> (p)
  d = Sub (p, q)
}}"""
BODIES = f"""{HEAD}
g (float[4] x, float[4] z, bool c, int64 n) => (float[4] y, float[4] w, float[4] u, float[4] v) {{
  a = Abs (x)
  y, w = If (c) <
    then_branch = t () => (float[4] p, float[4] q) {{ p = Neg (a) q = Exp (a) }},
    else_branch = e () => (float[4] r, float[4] s) {{ r = Abs (a) s = Neg (a) }}
  >
  u, v = Loop (n, , x, z) <
    body = b (int64 i, bool k, float[4] l, float[4] m) => (bool k2, float[4] l2, float[4] m2) {{
      k2 = Identity (k) l2 = Sub (l, m) m2 = Neg (m)
    }}
  >
}}"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("(p, q) =>", "(q, p) =>", ("f.F/order of the inputs", "p, q", "q, p")),
        ("(b, d)", "(d, b)", ("f.F/order of the outputs", "b, d", "d, b")),
        ("= 0.1", "= 0.2", ("f.F/attribute alpha", "0.1", "0.2")),
        ("<alpha: float = 0.1>", "<alpha>", ("f.F/attribute alpha", "0.1", "required")),
        ('["": 17]> F', '["": 13]> F', ("f.F/opset of ai.onnx", "17", "13")),
    ],
)
def test_what_a_function_declares_is_compared(tmp_path, old, new, expected):
    assert FUNCTION.count(old) == 1
    found = compare(tmp_path, FUNCTION, FUNCTION.replace(old, new))
    assert told(found) == {"declared": [expected]}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "(float[4] p, float[4] q)",
            "(float[4] q, float[4] p)",
            ("y.then_branch/order of the outputs", "p, q", "q, p"),
        ),
        (
            "float[4] l2, float[4] m2)",
            "float[4] m2, float[4] l2)",
            ("u.body/order of the outputs", "k2, l2, m2", "k2, m2, l2"),
        ),
        (
            "float[4] l, float[4] m)",
            "float[4] m, float[4] l)",
            ("u.body/order of the inputs", "i, k, l, m", "i, k, m, l"),
        ),
        (
            "float[4] l, float[4] m)",
            "float[5] l, float[4] m)",
            ("u.body/input l", "float32 [4]", "float32 [5]"),
        ),
        (
            "float[4] p, float[4] q)",
            "float[4] p, float[4] p)",
            ("y.then_branch/outputs", "p, q", "p, p"),
        ),
    ],
)
def test_what_a_body_declares_is_compared(tmp_path, old, new, expected):
    assert BODIES.count(old) == 1
    found = compare(tmp_path, BODIES, BODIES.replace(old, new))
    assert told(found) == {"declared": [expected]}


def test_an_input_of_a_body_with_another_name_is_told_once(tmp_path):
    after = BODIES.replace("float[4] l,", "float[4] l1,").replace("Sub (l, m)", "Sub (l1, m)")
    found = compare(tmp_path, BODIES, after)
    assert told(found) == {"declared": [("u.body/inputs", "i, k, l, m", "i, k, l1, m")]}


def test_a_name_is_known_where_it_stands(tmp_path):
    """The function's `p` is not what the graph calls `p` now, nor one branch's the other's."""
    after = FUNCTION.replace("a = Abs", "p = Abs").replace("f.F (a", "f.F (p")
    assert told(compare(tmp_path, FUNCTION, after)) == {"renamed": [("Abs", "a", "p")]}
    before = BODIES.replace("s = Neg (a)", "h = Neg (a) s = Abs (h)")
    after = before.replace("p = Neg", "h = Neg").replace("(float[4] p,", "(float[4] h,")
    found = compare(tmp_path, before, after)
    assert told(found) == {"renamed": [("y.then_branch/Neg", "p", "h")]}


def test_a_call_of_another_overload_is_another_call(tmp_path):
    model = parser.parse_model(FUNCTION)
    model.functions.append(model.functions[0])
    model.functions[1].overload = "v2"
    model.functions[1].node[0].op_type = "Elu"
    other = onnx.ModelProto()
    other.CopyFrom(model)
    other.graph.node[1].overload = "v2"
    found = compare_models(tmp_path, model, other)
    assert told(found) == {"changed": [("y (f.F) overload", "none", "v2")]}
    other.CopyFrom(model)
    other.functions[0].node[0].op_type = "Celu"
    found = compare_models(tmp_path, model, other)
    assert told(found) == {"replaced": [("f.F/b", "LeakyRelu", "Celu")]}


def test_a_function_that_came_is_told_with_its_signature(tmp_path):
    after = FUNCTION + ' <domain: "f", opset_import: ["": 17]> G (p) => (q) { q = Neg (p) }'
    found = compare(tmp_path, FUNCTION, after)
    assert told(found) == {
        "declared": [("function f.G", "", "(p) => (q)")],
        "new": [("f.G/q", "", "Neg")],
    }


def annotated(name="a", scale="x"):
    model = parser.parse_model(BODIES)
    annotation = model.graph.quantization_annotation.add(tensor_name=name)
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value=scale)
    return model


def test_an_annotation_counts(tmp_path):
    found = compare_models(tmp_path, annotated(), annotated(scale="z"))
    place = "quantization_annotation a quant_parameter_tensor_names SCALE_TENSOR"
    assert told(found) == {"declared": [(place, "x", "z")]}
    assert not compare_models(tmp_path, annotated(), parser.parse_model(BODIES)).same
    twice = [annotated(), annotated()]
    for model, scale in zip(twice, "xz", strict=True):
        model.graph.quantization_annotation.extend(annotated().graph.quantization_annotation)
        model.graph.quantization_annotation[0].quant_parameter_tensor_names[0].value = scale
    assert told(compare_models(tmp_path, *twice)) == {"declared": [(place, "x", "z")]}
    renamed = annotated("a1")
    renamed.graph.node[0].output[0] = "a1"
    for attribute in renamed.graph.node[1].attribute:
        for node in attribute.g.node:
            node.input[0] = "a1"
    found = compare_models(tmp_path, annotated(), renamed)
    assert told(found) == {"renamed": [("Abs", "a", "a1")]}


def trained(operator, bound="x"):
    model = parser.parse_model(BODIES)
    given = helper.make_tensor_value_info("t", TensorProto.FLOAT, [4])
    step = helper.make_graph([helper.make_node(operator, ["x"], ["t"])], "step", [], [given])
    model.training_info.add(algorithm=step).update_binding.add(key=bound, value="t")
    return model


def test_training_counts(tmp_path):
    found = compare_models(tmp_path, trained("Neg"), trained("Abs"))
    assert told(found) == {"replaced": [("training algorithm/t", "Neg", "Abs")]}
    found = compare_models(tmp_path, trained("Neg"), trained("Neg", bound="z"))
    assert told(found)["header"] == [
        ("training_info 0 update_binding x", "t", ""),
        ("training_info 0 update_binding z", "", "t"),
    ]
    assert not compare_models(tmp_path, trained("Neg"), parser.parse_model(BODIES)).same


def test_types_of_inner_values_count_where_both_declare_them(tmp_path):
    none, one, other = (parser.parse_model(BODIES) for _ in range(3))
    for model, size in ((one, 4), (other, "N")):
        model.graph.value_info.append(helper.make_tensor_value_info("a", 1, [size]))
    found = compare_models(tmp_path, one, other)
    assert told(found) == {"declared": [("type of a", "float32 [4]", "float32 [N]")]}
    found = compare_models(tmp_path, none, one)
    assert found.same
    assert found.aside == ("types of inner values that one model does not declare",)


def test_what_does_not_count_is_named(tmp_path):
    def changed(change):
        model = parser.parse_model(BODIES)
        change(model)
        return compare_models(tmp_path, parser.parse_model(BODIES), model)

    for change, aside in (
        (lambda m: setattr(m.graph.node[0], "name", "n"), "names of nodes"),
        (lambda m: setattr(m.graph.node[0], "doc_string", "n"), "doc strings"),
        (lambda m: setattr(m.graph, "doc_string", "n"), "doc strings"),
        (lambda m: setattr(m.graph, "name", "n"), "names of graphs"),
        (
            lambda m: m.graph.node[0].metadata_props.add(key="k", value="v"),
            "metadata of nodes and graphs",
        ),
        (
            lambda m: setattr(m.graph.input[0], "doc_string", "n"),
            "how the files hold the same: order, storage, texts of values",
        ),
        (lambda m: m.graph.node.append(m.graph.node.pop(1)), "order of nodes"),
    ):
        found = changed(change)
        assert found.same
        assert found.aside == (aside,)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("y = own.Two (a)", "none, y = own.Two (a)", ("y (own.Two) outputs", "y", "none, y")),
        ("y = own.Two (a)", "y, m = own.Two (a)", ("y (own.Two) outputs", "y", "y, m")),
        (
            "b = aten.foo (a)",
            'b = ATen <operator = "foo"> (a)',
            ("b (aten.foo) op_type", "foo", "ATen"),
        ),
    ],
)
def test_outputs_count_by_place_and_operators_by_their_spelling(tmp_path, old, new, expected):
    before = HEAD + " g (float[4] x) => (y, b) { a = Abs (x) y = own.Two (a) b = aten.foo (a) }"
    assert before.count(old) == 1
    one, other = (parser.parse_model(text) for text in (before, before.replace(old, new)))
    for node in other.graph.node:
        for index, name in enumerate(node.output):
            node.output[index] = "" if name == "none" else name
    assert told(compare_models(tmp_path, one, other))["changed"][0] == expected


def test_values_that_one_node_gives_now_are_not_gone(tmp_path):
    before = HEAD + " g (float[4] x) => (y) { a = Neg (x) b = Abs (x) y = Add (a, b) }"
    after = before.replace("a = Neg (x) b = Abs (x)", "a, b = own.Two (x)")
    found = compare(tmp_path, before, after)
    assert sorted(told(found)["replaced"]) == [("a", "Neg", "own.Two"), ("b", "Abs", "own.Two")]
    assert list(told(found)) == ["replaced"]


def test_names_that_two_values_have_exchanged_do_not_look_the_same(tmp_path):
    before = HEAD + " g (float[4] x) => (y) { a, b = own.Two (x) y = Sub (a, b) }"
    after = before.replace("a, b = own", "b, a = own")
    found = compare(tmp_path, before, after)
    assert told(found) == {
        "renamed": [("own.Two", "a, b", "b, a")],
        "changed": [
            ("y (Sub) input 0", "a", "a (before: b)"),
            ("y (Sub) input 1", "b", "b (before: a)"),
        ],
    }


def test_texts_of_the_header_are_told_whole_in_json(tmp_path):
    one, other = (parser.parse_model(BODIES) for _ in range(2))
    for model, end in ((one, "1"), (other, "2")):
        model.metadata_props.add(key="k", value="z" * 3000 + end)
    ((_, was, now),) = told(compare_models(tmp_path, one, other))["header"]
    assert (was[-1], now[-1], len(was)) == ("1", "2", 3001)
