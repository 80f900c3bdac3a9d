"""`surgeon diff` on constants, attributes and types: what differs, and by how much."""

import numpy as np
import onnx
import pytest
from differing import compare_models, told
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from surgeon.difference import values

BY_ONE = "1 of 1 values differ, by 1 at most"


def model(*, attributes=(), constant=None, sparse=None, kind=None):
    """One node `own.Foo` that reads `x` and a constant `s`."""
    kind = kind or helper.make_tensor_type_proto(TensorProto.FLOAT, ["N"])
    node = helper.make_node("Foo", ["x", "s"], ["y"], domain="own")
    node.attribute.extend(attributes)
    nodes = [node]
    graph = helper.make_graph(
        nodes, "g", [helper.make_value_info("x", kind)], [helper.make_value_info("y", kind)]
    )
    if isinstance(constant, onnx.NodeProto):
        graph.node.insert(0, constant)
    elif sparse is not None:
        graph.sparse_initializer.append(sparse)
    else:
        tensor = constant if constant is not None else numpy_helper.from_array(np.float32(0), "s")
        graph.initializer.append(tensor)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def raw(kind, dims, data):
    return TensorProto(name="s", data_type=getattr(TensorProto, kind), dims=dims, raw_data=data)


def array(value):
    return numpy_helper.from_array(np.asarray(value), "s")


def texts(*held):
    return helper.make_tensor("s", TensorProto.STRING, [len(held)], [t.encode() for t in held])


@pytest.mark.parametrize(
    ("before", "after", "how"),
    [
        (
            array(np.float32([1, 2])),
            array(np.float32([np.nan, np.nan])),
            "2 of 2 values differ, 2 of them NaN in one model only",
        ),
        (
            array(np.float32([1, 2])),
            array(np.float32([np.nan, 7])),
            "2 of 2 values differ, by 5 at most, 1 of them NaN in one model only",
        ),
        (array(np.float32([1, 0])), array(np.float32([1, -0.0])), "zeros or NaNs of other bits"),
        (array([2**62 + 1]), array([2**62]), BY_ONE),
        (array([-(2**63)]), array([2**63 - 1]), f"1 of 1 values differ, by {2**64 - 1} at most"),
        (
            array(np.uint64([2**64 - 1])),
            array(np.uint64([0])),
            f"1 of 1 values differ, by {2**64 - 1} at most",
        ),
        (
            array(np.int8([-128, 1])),
            array(np.int8([127, 1])),
            "1 of 2 values differ, by 255 at most",
        ),
        (array(np.complex64([1 + 2j])), array(np.complex64([1 + 3j])), BY_ONE),
        (raw("BOOL", [1], b"\1"), raw("BOOL", [1], b"\2"), "the same values of other bits"),
        (
            raw("BFLOAT16", [1], b"\x80\x3f"),
            raw("BFLOAT16", [1], b"\xc0\x7f"),
            "1 of 1 values differ, 1 of them NaN in one model only",
        ),
        (raw("FLOAT8E5M2", [1], b"\x3c"), raw("FLOAT8E5M2", [1], b"\x40"), BY_ONE),
        (
            raw("INT4", [3], b"\x12\x03"),
            raw("INT4", [3], b"\x13\x03"),
            "1 of 3 values differ, by 1 at most",
        ),
        (texts("a", "b"), texts("a", "c"), "1 of 2 values differ"),
    ],
)
def test_how_values_differ_is_true_of_every_kind(tmp_path, before, after, how):
    found = compare_models(tmp_path, model(constant=before), model(constant=after))
    (change,) = told(found)["initializers"]
    assert change[2] == f"{change[1]}, {how}"


def test_what_comes_after_other_bits_is_looked_at_too(monkeypatch):
    monkeypatch.setattr(values, "_AT_ONCE", 2)
    one, other = np.float32([0, 1, 2, 3]), np.float32([-0.0, 1, 2, 7])
    assert values.how_differ(one, other) == "1 of 4 values differ, by 4 at most"


def sparse(held, places, dims):
    parts = (np.float32(held), np.int64(places))
    return helper.make_sparse_tensor(*map(numpy_helper.from_array, parts, ("s", "i")), dims)


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (sparse([5, 6], [1, 3], [4]), "sparse float [4] of 2 values, values at other places"),
        (sparse([5, 6], [1, 2], [5]), "sparse float [5] of 2 values"),
        (
            sparse([5, 7], [1, 2], [4]),
            "sparse float [4] of 2 values, 1 of 2 values differ, by 1 at most",
        ),
    ],
)
def test_a_sparse_constant_is_its_places_and_its_whole_size_too(tmp_path, after, said):
    before = model(sparse=sparse([5, 6], [1, 2], [4]))
    found = compare_models(tmp_path, before, model(sparse=after))
    assert told(found) == {"initializers": [("s", "sparse float [4] of 2 values", said)]}


def test_a_sparse_constant_in_other_words_is_the_same(tmp_path):
    one = model(sparse=sparse([5, 6], [0, 3], [2, 2]))
    for places, held in (([3, 0], [6, 5]), ([[0, 0], [1, 1]], [5, 6])):
        assert compare_models(tmp_path, one, model(sparse=sparse(held, places, [2, 2]))).same


@pytest.mark.parametrize(
    ("written", "same"),
    [
        ({"value_float": 1.5}, np.float32(1.5)),
        ({"value_floats": [1.5, 2.0]}, np.float32([1.5, 2])),
        ({"value_int": 3}, np.int64(3)),
        ({"value_ints": [3, 4]}, np.int64([3, 4])),
    ],
)
def test_a_constant_is_its_value_however_it_is_written(tmp_path, written, same):
    node = helper.make_node("Constant", [], ["s"], **written)
    found = compare_models(tmp_path, model(constant=node), model(constant=array(same)))
    assert told(found) == {}
    assert found.operators == {"Constant": (1, 0)}
    found = compare_models(tmp_path, model(constant=node), model(constant=array(same + 1)))
    assert list(told(found)) == ["initializers"]


def test_a_constant_is_what_its_kind_says(tmp_path):
    node = helper.make_node("Constant", [], ["s"], sparse_value=sparse([5], [1], [4]))
    other = onnx.NodeProto()
    other.CopyFrom(node)
    other.attribute[0].type = AttributeProto.SPARSE_TENSORS
    found = compare_models(tmp_path, model(constant=node), model(constant=other))
    assert told(found) == {"replaced": [("s", "constant", "Constant")]}


def attribute(kind, **held):
    made = AttributeProto(name="a", type=getattr(AttributeProto, kind))
    for field, value in held.items():
        if isinstance(value, list):
            getattr(made, field).extend(value)
        elif hasattr(value, "ListFields"):
            getattr(made, field).CopyFrom(value)
        else:
            setattr(made, field, value)
    return made


def graph(operator):
    given = helper.make_tensor_value_info("p", TensorProto.FLOAT, None)
    return helper.make_graph([helper.make_node(operator, ["x"], ["p"])], "b", [], [given])


PLACED = "sparse float [4] of 1 value"
ONE, TWO = (numpy_helper.from_array(np.float32([each])) for each in (1, 2))
KIND, OTHER = (helper.make_tensor_type_proto(TensorProto.FLOAT, [each]) for each in (2, 3))


@pytest.mark.parametrize(
    ("before", "after", "place", "was", "now"),
    [
        (attribute("FLOAT", f=0.1), attribute("FLOAT", f=0.2), "a", "0.1", "0.2"),
        (attribute("FLOAT", f=0.0), attribute("FLOAT", f=-0.0), "a", "0.0", "-0.0"),
        (attribute("INT", i=1), attribute("FLOAT", f=1.0), "a", "1", "1.0"),
        (attribute("INT", i=1), attribute("INTS", ints=[1]), "a", "1", "[1]"),
        (attribute("INTS"), attribute("FLOATS"), "a", "no ints", "no floats"),
        (attribute("STRING", s=b"x"), attribute("STRING", s=b"\xff"), "a", "'x'", "b'\\xff'"),
        (
            attribute("STRINGS", strings=[b"x"]),
            attribute("STRINGS", strings=[b"y"]),
            "a",
            "['x']",
            "['y']",
        ),
        (
            attribute("TENSOR", t=ONE),
            attribute("TENSOR", t=TWO),
            "a",
            "float [1]",
            f"float [1], {BY_ONE}",
        ),
        (
            attribute("TENSORS", tensors=[ONE, ONE]),
            attribute("TENSORS", tensors=[ONE, TWO]),
            "a[1]",
            "float [1]",
            f"float [1], {BY_ONE}",
        ),
        (
            attribute("TENSORS", tensors=[ONE]),
            attribute("TENSORS", tensors=[ONE, TWO]),
            "a[1]",
            "none",
            "float [1]",
        ),
        (
            attribute("SPARSE_TENSOR", sparse_tensor=sparse([1], [0], [4])),
            attribute("SPARSE_TENSOR", sparse_tensor=sparse([1], [2], [4])),
            "a",
            PLACED,
            f"{PLACED}, values at other places",
        ),
        (
            attribute("SPARSE_TENSORS", sparse_tensors=[sparse([1], [0], [4])]),
            attribute("SPARSE_TENSORS", sparse_tensors=[sparse([1], [0], [5])]),
            "a[0]",
            PLACED,
            "sparse float [5] of 1 value",
        ),
        (
            attribute("TYPE_PROTO", tp=KIND),
            attribute("TYPE_PROTO", tp=OTHER),
            "a",
            "float32 [2]",
            "float32 [3]",
        ),
        (
            attribute("TYPE_PROTOS", type_protos=[KIND]),
            attribute("TYPE_PROTOS", type_protos=[OTHER]),
            "a[0]",
            "float32 [2]",
            "float32 [3]",
        ),
        (attribute("GRAPH", g=graph("Neg")), attribute("INT", i=3), "a", "graph", "3"),
        (
            attribute("GRAPHS", graphs=[graph("Neg")]),
            attribute("GRAPHS", graphs=[graph("Neg")] * 2),
            "a[1]",
            "none",
            "graph",
        ),
    ],
)
def test_an_attribute_of_every_kind_is_compared(tmp_path, before, after, place, was, now):
    found = compare_models(tmp_path, model(attributes=[before]), model(attributes=[after]))
    assert told(found)["changed"] == [(f"y (own.Foo) attribute {place}", was, now)]


def test_bodies_of_a_list_are_paired_by_their_places(tmp_path):
    one, other = (
        model(attributes=[attribute("GRAPHS", graphs=[graph(each), graph("Abs")])])
        for each in ("Neg", "Exp")
    )
    assert told(compare_models(tmp_path, one, other)) == {"replaced": [("y.a[0]/p", "Neg", "Exp")]}
    gone = compare_models(tmp_path, model(attributes=[attribute("GRAPH", g=graph("Neg"))]), model())
    assert told(gone)["changed"] == [("y (own.Foo) attribute a", "graph", "none")]


def test_a_long_attribute_is_shown_where_it_differs(tmp_path):
    numbers = list(range(1000, 1500))
    one, other = (
        model(attributes=[attribute("INTS", ints=[*numbers, last])]) for last in (7777, 8888)
    )
    ((_, was, now),) = told(compare_models(tmp_path, one, other))["changed"]
    assert was.endswith("1499, 7777]")
    assert now.endswith("1499, 8888]")


def tensor_kind(size, denotation="", whole=""):
    kind = helper.make_tensor_type_proto(TensorProto.FLOAT, [size])
    kind.tensor_type.shape.dim[0].denotation = denotation
    kind.denotation = whole
    return kind


def map_kind(key):
    kind = onnx.TypeProto()
    kind.map_type.key_type = key
    kind.map_type.value_type.CopyFrom(KIND)
    return kind


@pytest.mark.parametrize(
    ("before", "after", "was", "now"),
    [
        (tensor_kind(3), tensor_kind("3"), "float32 [3]", "float32 ['3']"),
        (
            tensor_kind("N"),
            tensor_kind("N", "DATA_BATCH"),
            "float32 [N]",
            "float32 [N (DATA_BATCH)]",
        ),
        (tensor_kind("N"), tensor_kind("N", whole="IMAGE"), "float32 [N]", "float32 [N] (IMAGE)"),
        (
            helper.make_sequence_type_proto(KIND),
            helper.make_sequence_type_proto(OTHER),
            "sequence of float32 [2]",
            "sequence of float32 [3]",
        ),
        (
            helper.make_optional_type_proto(KIND),
            helper.make_optional_type_proto(OTHER),
            "optional of float32 [2]",
            "optional of float32 [3]",
        ),
        (
            map_kind(TensorProto.INT64),
            map_kind(TensorProto.STRING),
            "map of int64 to float32 [2]",
            "map of string to float32 [2]",
        ),
        (
            KIND,
            helper.make_sparse_tensor_type_proto(TensorProto.FLOAT, [2]),
            "float32 [2]",
            "sparse float32 [2]",
        ),
    ],
)
def test_types_are_told_with_all_that_they_hold(tmp_path, before, after, was, now):
    found = compare_models(tmp_path, model(kind=before), model(kind=after))
    assert told(found) == {"interface": [("input x", was, now), ("output y", was, now)]}
