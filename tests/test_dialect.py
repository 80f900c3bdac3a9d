"""Every spelling of an ATen node comes to one form, and goes back as it stood."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper
from truth import infer, model_of, parse

import surgeon
from surgeon import dialect
from surgeon.errors import LeftoverError
from surgeon.facts import Facts
from surgeon.model import Model
from surgeon.recipe import Recipe

ATEN = ', "org.pytorch.aten": 1, "org.pytorch.prim": 1'
NEG = Recipe.parse(
    "surgeon: 1\nname: r\nrules:\n  - id: one\n    why: Because.\n    exact: bit\n"
    "    match: y = Neg (x)\n    replace: y = Abs (x)\n"
)


def normal(text: str) -> gs.Node:
    model = Model(parse(f"g (float[b,t] x, int64[1] k) => (y) {{ y = {text} }}", domains=ATEN))
    node = model.graph.nodes[0]
    dialect.normalise(node, model.opset, Facts(model), lambda tensor: False)
    return node


@pytest.mark.parametrize(
    ("text", "op", "overload"),
    [
        ('org.pytorch.aten.ATen <operator = "celu"> (x, k)', "celu", ""),
        ('org.pytorch.aten.ATen <operator = "celu", overload_name = "out"> (x, k)', "celu", "out"),
        ("org.pytorch.aten.celu (x, k)", "celu", ""),
        ('ATen <operator = "celu"> (x, k)', "celu", ""),
        ('org.pytorch.aten.ATen <operator = "__and_"> (x, k)', "__and__", ""),
        ('com.microsoft.ATen <operator = "aten::celu"> (x, k)', "celu", ""),
        ('com.microsoft.ATenOp <name = "aten::celu"> (x, k)', "celu", ""),
        ('com.microsoft.ATenOp <name = "aten::celu", overload_name = "out"> (x, k)', "celu", "out"),
    ],
)
def test_aten_nodes(text: str, op: str, overload: str) -> None:
    node = normal(text)
    assert (node.domain, node.op, node.attrs) == ("aten", op, {"overload": overload})
    assert [t.name for t in node.inputs] == ["x", "k"]


@pytest.mark.parametrize(("named", "op"), [("__ilshift_", "__lshift__"), ("add_", "add")])
def test_what_writes_into_its_input_says_so(named: str, op: str) -> None:
    node = normal(f'org.pytorch.aten.ATen <operator = "{named}"> (x, k)')
    assert (node.op, node.attrs) == (op, {"overload": "", dialect.WRITTEN: 1})


# operator and attributes, the inputs' dtype, and what `numpy` makes of them
BY_NAME = {
    'operator = "fmod", other = 2': (np.int64, lambda x: np.fmod(x, 2)),
    'operator = "add", other = 2.5': (np.int64, lambda x: (x + 2.5).astype(np.float32)),
    'operator = "sum", dim = 1': (np.float32, lambda x: x.sum(1)),
    'operator = "sum", dim = [1], keepdim = 1': (np.float32, lambda x: x.sum(1, keepdims=True)),
    'operator = "max", dim = 1': (np.float32, lambda x: x.max(1)),
    'operator = "max"': (np.float32, lambda x: x.max()),
    'operator = "linalg_norm", ord = "fro"': (np.float32, lambda x: np.linalg.norm(x, "fro")),
    'operator = "linalg_norm", ord = 1': (np.float32, lambda x: np.linalg.norm(x, 1)),
    'operator = "linalg_pinv", hermitian = 1': (np.float32, np.linalg.pinv),
    'operator = "norm", p = 1, dim = 1': (np.float32, lambda x: np.abs(x).sum(1)),
    'operator = "layer_norm", normalized_shape = 3': (
        np.float32,
        lambda x: (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True),
    ),
}


@pytest.mark.parametrize("said", BY_NAME)
def test_attributes_say_which_overload_it_is(said: str) -> None:
    dtype, wanted = BY_NAME[said]
    kind = "int64" if dtype is np.int64 else "float"
    model = parse(f"g ({kind}[3,3] x) => (y) {{ y = ATen <{said}> (x) }}", domains=ATEN)
    result = surgeon.apply(model, "aten", require="equivalent")
    x = np.array([[2, -3, 1], [-3, 5, 4], [1, 4, -7]], dtype)
    proto = result.model.to_proto().SerializeToString()
    made = ort.InferenceSession(proto, providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
    assert made.dtype == wanted(x).dtype
    np.testing.assert_allclose(made, wanted(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("said", ['dim = "last"', 'dim = ["a", "b"]'])
def test_a_text_is_no_number(said: str) -> None:
    model = parse(f'g (float[3,3] x) => (y) {{ y = ATen <operator = "softmax", {said}> (x) }}')
    with pytest.raises(LeftoverError, match="no signature with `dim`"):
        surgeon.apply(model, "aten")


def test_other_attributes_of_the_caffe2_era_stay() -> None:
    node = normal('ATen <operator = "topk", dim = 1> (x, k)')
    assert node.attrs == {"overload": "", "dim": 1}


TABLE = """<ir_version: 7, opset_import: ["": 12, "com.microsoft": 1]>
g (float[5,3] w, int64[n] i) => (float[n,3] y)
<int64 none = {{-1}}, bool no = {{0}}> {{
    y = com.microsoft.ATenOp <name = "aten::embedding"{}> (w, i{})
}}"""


@pytest.mark.parametrize(
    ("attributes", "rest"),
    [
        ("", ", none, no, no"),
        (r', custom_attributes_json = "{\"padding_idx\":1,\"scale_grad_by_freq\":false}"', ""),
    ],
)
def test_nodes_of_onnx_runtimes_first_trainer(attributes: str, rest: str) -> None:
    """Whose arguments are inputs, or were JSON in the first months."""
    report = surgeon.apply(onnx.parser.parse_model(TABLE.format(attributes, rest)), "aten").report
    assert report.before == {"aten.embedding": 1}
    assert report.after == {"Gather": 1}
    assert report.verdict is not None
    assert report.verdict.status == "equivalent"


BAGS = """<ir_version: 7, opset_import: ["": 9]>
g (int64[b,4] i, float[6,3] w) => (float[b,3] y) <int64[1] line = {-1}, int64[2] starts = {0, 4}> {
    j = Reshape (i, line)
    y, o, l, m = ATen <operator = "embedding_bag", mode = 1, padding_idx = 1, sparse = 0,
        include_last_offset = 0, scale_grad_by_freq = 0> (w, j, starts)
}"""


def test_attributes_stand_beside_an_argument_that_may_be_none() -> None:
    """PyTorch 1.10 and 1.11 at opset 9: the overload that has `padding_idx` asks for weights."""
    proto = onnx.parser.parse_model(BAGS)
    report = surgeon.apply(proto, "aten").report
    assert report.verdict is not None
    assert report.verdict.status == "equivalent"


def test_an_attribute_that_no_signature_has_is_not_passed_over() -> None:
    proto = parse('g (float[b,t] x) => (y) { y = ATen <operator = "relu", slope = 1> (x) }')
    with pytest.raises(LeftoverError, match="no signature with `slope` beside these"):
        surgeon.apply(proto, "aten", verify=False)


def test_arguments_that_cannot_be_read_leave_a_node_as_it_is() -> None:
    broken = TABLE.format(', custom_attributes_json = "{"', "")
    with pytest.raises(LeftoverError, match=r"`aten\.embedding` left"):
        surgeon.apply(onnx.parser.parse_model(broken), "aten")


def test_prim_nodes() -> None:
    node = normal("org.pytorch.prim.ListConstruct (k, k)")
    assert (node.domain, node.op) == ("prim", "ListConstruct")


def test_what_no_rule_touched_is_written_as_it_stood() -> None:
    texts = [
        'a = org.pytorch.aten.ATen <operator = "celu", overload_name = ""> (x, k)',
        'c = ATen <operator = "relu"> (a)',
        "d = org.pytorch.aten.relu (c)",
        "l = org.pytorch.prim.ListConstruct (k)",
        "m = ReduceMean <axes = [1]> (d)",
        "s = Softmax <axis = 0> (m)",
        "y = Neg (s)",
    ]
    proto = parse(
        f"g (float[b,t] x, int64[1] k) => (y, l) {{ {' '.join(texts)} }}", 11, domains=ATEN
    )
    result = surgeon.apply(proto, NEG, verify=False)
    assert result.report.fired.total() == 1
    assert list(result.model.to_proto().graph.node)[:6] == list(proto.graph.node)[:6]


def test_initializers_among_the_inputs() -> None:
    proto = model_of("float[b] x, float[1] w", "y = Add (x, w)", "y", constants={"w": [1.0]})
    proto.producer_name = "pytorch"
    model = Model(proto)
    assert dialect.strip_initializer_inputs(model, keep=True) == ""
    assert model.overridable == {"w"}
    assert dialect.strip_initializer_inputs(model, keep=False).endswith(
        "leave the inputs (`--keep-overridable` keeps them)"
    )
    assert model.overridable == set()
    proto.producer_name = "somebody"
    assert dialect.strip_initializer_inputs(Model(proto), keep=False) == ""
    proto.ir_version = 3  # which wants them there, overridable or not
    model = Model(proto)
    assert dialect.strip_initializer_inputs(model, keep=True) == ""
    assert model.overridable == {"w"}
    assert "as IR version 3 wants" in dialect.strip_initializer_inputs(model, keep=False)
    assert model.overridable == set()


def test_an_input_with_a_value_beside_weights_stays_one() -> None:
    """PyTorch's exporter lists every weight: what alone is listed is meant to be given."""
    given = {"h": [0.0], "w": [1.0]}
    proto = model_of(
        "float[1] x, float[1] h", "a = Mul (x, w) y = Add (a, h)", "y", constants=given
    )
    proto.producer_name = "pytorch"
    model = Model(proto)
    assert dialect.strip_initializer_inputs(model, keep=False) == ""
    assert model.overridable == {"h"}
    assert not model.clone().listed
    proto.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [1]))
    model = Model(proto)
    assert model.listed
    proto.graph.initializer.add(name="told", data_type=TensorProto.FLOAT, float_data=[1.0])
    assert model.with_proto(proto).listed, "what surgeon itself puts there is no weight of a file"


def test_a_node_is_normal_once() -> None:
    """A second look does not take an attribute for an operator's name."""
    _, tensors = infer(
        parse(
            'g (float[b] x) => (y) { y = org.pytorch.aten.ATen <operator = "relu"> (x) }',
            domains=ATEN,
        )
    )
    node = tensors["y"].inputs[0]
    assert (node.op, node.domain) == ("relu", "aten")


def test_a_write_into_what_others_read_too_is_left_with_that_reason() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13, "org.pytorch.aten": 1]> '
        "g (float[2] x, float[2] w) => (float[2] y, float[2] z) "
        "{ y = org.pytorch.aten.mul_ (x, w) z = Neg (x) }"
    )
    with pytest.raises(
        LeftoverError, match=r"`aten.mul_` writes into its input, which other nodes"
    ):
        surgeon.apply(model, "aten")


def test_a_lost_write_without_a_domain_is_pytorchs() -> None:
    """`FALLTHROUGH` leaves it as if it were of the standard."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[2] x) => (float[2] y) '
        '{ y = Placeholder <name = "index_put_"> (x) }'
    )
    with pytest.raises(LeftoverError) as left:
        surgeon.apply(model, "aten")
    assert left.value.what.startswith("`aten.Placeholder` left, which no runtime knows")
    assert "the indices and the values are lost" in left.value.what
