"""Files that mean harm, and files that are broken: one clear error, soon, and nothing lost.

Each is made here by script and given to `surgeon apply` in a process of its own, with a limit of
time and memory (see `hostile_runs`).
"""

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no fork, and no limits, here")

EVERY = int(os.environ.get("SURGEON_EVERY", "5"))  # kind goes through the other commands too
SECONDS = 30  # these machines may be busy; alone, the slowest takes a few
SPACE = 6 << 30  # of addresses: onnxruntime and openblas reserve much that they never touch
PEAK = 1 << 30  # of memory in use
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
RECIPE = """\
surgeon: 1
name: double
steps:
  - rules:
      - id: double-neg
        why: Twice turned round is where it was.
        exact: bit
        match: |
          h = Neg (x)
          y = Neg (h)
        replace: y = Identity (x)
      - id: nothing-added
        why: A condition that reads values.
        exact: rounding
        match: y = Add (x, c)
        where: [c.value == 0]
        replace: y = Identity (x)
  - fold: {}
"""


class Runner:
    """A process that runs `surgeon` with limits."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("hostile_runs.py")
        self.process = subprocess.Popen(
            [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, *arguments: object, seconds: int = SECONDS) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        command = {"arguments": list(map(str, arguments)), "seconds": seconds, "memory": SPACE}
        print(json.dumps(command), file=self.process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@pytest.fixture(scope="module")
def surgeon() -> Iterator[Runner]:
    runner = Runner()
    yield runner
    assert runner.process.stdin is not None
    runner.process.stdin.close()
    runner.process.wait(timeout=SECONDS)


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "double.yaml"
    path.write_text(RECIPE)
    return path


def sampled(kinds: Iterable[str]) -> list[Any]:
    """One kind in three before a commit; the others are slow."""
    return [
        pytest.param(kind, marks=[pytest.mark.slow] if index % 3 else [])
        for index, kind in enumerate(kinds)
    ]


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def sane(answer: dict[str, Any], what: str) -> None:
    """What holds of every run: it ended by itself, soon, in bounds, without noise."""
    output = answer["output"]
    shown = f"{what}: {answer['code']} {output[:1500]}"
    assert answer["code"] >= 0, f"killed by a signal, or by the clock: {shown}"
    assert answer["seconds"] < SECONDS, shown
    assert answer["peak"] < PEAK, f"{answer['peak'] >> 20} MB: {shown}"
    assert "Traceback" not in output, shown
    assert "surgeon has a bug" not in output, shown
    assert "\x1b" not in output, shown
    assert "\x07" not in output, shown
    assert len(output) < 20_000, shown
    if answer["code"]:
        assert len(re.findall("^error: ", output, re.MULTILINE)) == 1, shown
        assert "\n   at: " in output, shown
        assert "\n mend: " in output, shown


def attempt(
    surgeon: Runner,
    rules: object,
    model: Path,
    codes: tuple[int, ...],
    phrase: str = "",
    options: tuple[str, ...] = (),
) -> str:
    """Apply, and see that it ended well or wrote nothing; gives what it printed."""
    folder = model.parent
    out = folder / "o.onnx"
    before = contents(folder)
    answer = surgeon("apply", rules, model, out, *options)
    sane(answer, model.name)
    printed = str(answer["output"])
    assert answer["code"] in codes, printed
    assert phrase in printed, printed
    after = contents(folder)
    written = after.pop("o.onnx", None)
    assert after == before, f"{sorted(after)} {sorted(before)}"
    if answer["code"]:
        assert written is None, "a failure left an output"
    else:
        assert written is not None
        onnx.ModelProto.FromString(written)
        out.unlink()
    return printed


def network(size: int = 4) -> onnx.ModelProto:
    """y = Neg(Neg(x)) * w + 0, with weights inside, a body, and a function."""
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17, "own" : 1]>
        net (float[n,{size}] x, bool go) => (float[n,{size}] y, float[n,{size}] z)
        <float[{size}] w = {{{",".join(str(i / 2) for i in range(size))}}}, float[1] zero = {{0}}>
        {{
            a = Neg(x)
            b = Neg(a)
            c = Mul(b, w)
            y = Add(c, zero)
            d = If (go) <then_branch = yes () => (float[n,{size}] t) {{ t = Neg(c) }},
                         else_branch = no () => (float[n,{size}] e) {{ e = Sin(c) }}>
            z = own.twice(d)
        }}
        <domain: "own", opset_import: ["" : 17]>
        twice (p) => (q) {{ q = Add(p, p) }}"""
    )


def graph_of(*nodes: onnx.NodeProto, **tensors: np.ndarray) -> onnx.ModelProto:
    """A model from `x`, float[n,4], to `y`."""
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        [onnx.numpy_helper.from_array(array, name) for name, array in tensors.items()],
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def save(folder: Path, model: onnx.ModelProto) -> Path:
    path = folder / "in.onnx"
    path.write_bytes(model.SerializeToString())
    return path


# ------------------------------------------------------------------------------ broken bytes


def test_the_whole_file_is_fine(surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    printed = attempt(surgeon, rules, save(tmp_path, network()), (0,))
    assert "double-neg" in printed


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))]
)
def test_truncated_and_flipped(seed: int, surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    """A damaged file that still is a model may be mended, or refused by any of the documented."""
    whole = network().SerializeToString()
    chance = random.Random(seed)
    for _ in range(25):
        data = bytearray(
            whole[: chance.randrange(1, len(whole))] if chance.random() < 0.3 else whole
        )
        for _ in range(chance.choice((1, 1, 3, 10))):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path = tmp_path / "in.onnx"
        path.write_bytes(data)
        attempt(surgeon, rules, path, (0, 3, 4))


# ------------------------------------------------------------------------- graphs that are none


def deep(levels: int) -> onnx.ModelProto:
    """An If in an If in an If; written by hand, for protobuf's writers recurse too."""
    model = graph_of(helper.make_node("Neg", ["x"], ["y"]), go=np.array(True))

    def field(number: int, data: bytes) -> bytes:
        length, size = b"", len(data)
        while size > 127:
            length += bytes([size & 127 | 128])
            size >>= 7
        return bytes([number << 3 | 2]) + length + bytes([size]) + data

    output = helper.make_tensor_value_info("t", FLOAT, None).SerializeToString()
    body = field(1, helper.make_node("Neg", ["x"], ["t"]).SerializeToString()) + field(12, output)
    for _ in range(levels):
        both = b""
        for name in (b"then_branch", b"else_branch")[:1]:
            both += field(5, field(1, name) + field(6, body) + b"\xa0\x01\x05")
        node = field(1, b"go") + field(2, b"t") + field(4, b"If") + both
        body = field(1, node) + field(12, output)
    data = model.SerializeToString() + field(7, body)
    holder = onnx.ModelProto()
    holder.doc_string = "unread"
    return _Bytes(data)  # type: ignore[return-value]


class _Bytes:
    """What `save` writes as it is."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def SerializeToString(self) -> bytes:  # noqa: N802 - protobuf's name
        return self.data


def calling(*functions: tuple[str, str], first: str = "f") -> onnx.ModelProto:
    """A model of functions, each of which calls another."""
    model = graph_of(helper.make_node(first, ["x"], ["y"], domain="own"))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    model.opset_import.append(opsets[1])
    for name, called in functions:
        node = helper.make_node(called, ["p"], ["q"], domain="own" if called in "fgh" else "")
        model.functions.append(helper.make_function("own", name, ["p"], ["q"], [node], opsets))
    return model


def with_tensor(**fields: Any) -> onnx.ModelProto:
    """x + w, where `w` is as the fields say."""
    model = graph_of(
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Neg", ["a"], ["b"]),
        helper.make_node("Add", ["b", "w"], ["y"]),
        w=np.arange(4, dtype=np.float32),
    )
    tensor = model.graph.initializer[0]
    for name, value in fields.items():
        tensor.ClearField(name)
        if isinstance(value, list):
            getattr(tensor, name).extend(value)
        else:
            setattr(tensor, name, value)
    return model


def with_attribute(op: str, *inputs: str, **attributes: Any) -> onnx.ModelProto:
    """One operator, of attributes as they are given, behind two Negs that a rule takes away."""
    node = helper.make_node(op, ["b", *inputs], ["y"], **attributes)
    return graph_of(
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Neg", ["a"], ["b"]),
        node,
        k=np.array([1], np.int64),
        w=np.ones((1, 1, 1, 1), np.float32),
    )


def edited(edit: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    model = network()
    edit(model)
    return model


def attribute_without_type() -> onnx.ModelProto:
    model = with_attribute("Transpose", perm=[1, 0])
    model.graph.node[2].attribute[0].type = onnx.AttributeProto.UNDEFINED
    return model


def attribute_of_another_kind() -> onnx.ModelProto:
    model = with_attribute("Transpose", perm=[1, 0])
    model.graph.node[2].attribute[0].type = onnx.AttributeProto.GRAPH
    return model


def body_that_is_not_there() -> onnx.ModelProto:
    """Found by `make fuzz`: an attribute said to be a graph, which holds none."""
    model = network()
    model.graph.node[4].attribute[1].ClearField("g")
    return model


def identity_of_nothing() -> onnx.ModelProto:
    """Found by `make fuzz`."""
    model = network()
    model.graph.node.add(op_type="Identity", output=["unread"])
    return model


def body_of_another_name() -> onnx.ModelProto:
    """Found by `make fuzz`."""
    model = endless_loop()
    model.graph.node[0].attribute[0].name = "bodi"
    return model


def segment() -> onnx.ModelProto:
    model = with_tensor()
    model.graph.initializer[0].segment.end = 2
    return model


def twice_named() -> onnx.ModelProto:
    """Two nodes that give `a`."""
    return graph_of(
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Sin", ["x"], ["a"]),
        helper.make_node("Neg", ["a"], ["y"]),
    )


def circle(*ops: str) -> onnx.ModelProto:
    return graph_of(
        helper.make_node("Add", ["x", "c"], ["a"]),
        helper.make_node(ops[0], ["a"], ["b"]),
        helper.make_node(ops[1], ["b"], ["c"]),
        helper.make_node("Neg", ["c"], ["y"]),
    )


def set_dims(model: onnx.ModelProto, *dims: int) -> None:
    shape = model.graph.input[0].type.tensor_type.shape
    shape.ClearField("dim")
    for dim in dims:
        shape.dim.add(dim_value=dim)


def shadowed() -> onnx.ModelProto:
    """A body that gives a name of the graph around it."""
    model = network()
    body = model.graph.node[4].attribute[0].g
    body.node[0].output[0] = body.output[0].name = "c"
    return model


BROKEN: dict[str, tuple[Callable[[], onnx.ModelProto], tuple[int, ...], str]] = {
    "deep: 12 bodies": (lambda: deep(12), (0, 3, 4), ""),
    "deep: 10,000 bodies": (lambda: deep(10_000), (4,), "protobuf cannot read it"),
    "cycle": (lambda: circle("Neg", "Sin"), (4,), "cycle"),
    "cycle that a rule would match": (lambda: circle("Neg", "Neg"), (4,), "cycle"),
    "node that reads itself": (
        lambda: graph_of(helper.make_node("Add", ["x", "y"], ["y"])),
        (4,),
        "cycle",
    ),
    "function that calls itself": (lambda: calling(("f", "f")), (4,), "calls itself"),
    "functions that call each other": (
        lambda: calling(("f", "g"), ("g", "h"), ("h", "f")),
        (4,),
        "calls itself",
    ),
    "two functions of a name": (lambda: calling(("f", "Neg"), ("f", "Sin")), (4,), "twice"),
    "function that is not there": (lambda: calling(("f", "g")), (0, 3, 4), ""),
    "dangling input": (
        lambda: edited(lambda m: m.graph.node[2].input.__setitem__(1, "nowhere")),
        (4,),
        "`nowhere`",
    ),
    "dangling input of a body": (
        lambda: edited(lambda m: m.graph.node[4].attribute[0].g.node[0].input.__setitem__(0, "no")),
        (4,),
        "`no`",
    ),
    "dangling input of a function": (
        lambda: edited(lambda m: m.functions[0].node[0].input.__setitem__(0, "no")),
        (4,),
        "`no`",
    ),
    "dangling output": (
        lambda: edited(lambda m: setattr(m.graph.output[0], "name", "nowhere")),
        (4,),
        "`nowhere`",
    ),
    "two values of a name": (twice_named, (4,), "`a`"),
    "value with the name of an input": (
        lambda: edited(lambda m: m.graph.node[0].output.__setitem__(0, "x")),
        (4,),
        "`x`",
    ),
    "value with the name of an initializer": (
        lambda: edited(lambda m: m.graph.node[0].output.__setitem__(0, "w")),
        (4,),
        "`w`",
    ),
    "two inputs of a name": (
        lambda: edited(lambda m: setattr(m.graph.input[1], "name", "x")),
        (4,),
        "`x`",
    ),
    "two initializers of a name": (
        lambda: edited(lambda m: setattr(m.graph.initializer[1], "name", "w")),
        (4,),
        "`w`",
    ),
    "value of a body with a name from outside": (shadowed, (0, 3, 4), ""),
    "body that is not there": (body_that_is_not_there, (4,), "holds no graph"),
    "body of another name": (body_of_another_name, (4,), "node `s` (Loop) has no `body`"),
    "Identity of nothing": (identity_of_nothing, (0, 3, 4), ""),
    "branch without outputs": (
        lambda: edited(lambda m: m.graph.node[4].attribute[0].g.ClearField("output")),
        (4,),
        "a branch of node `d` (If) gives fewer values than the node",
    ),
    "text that is not UTF-8": (
        lambda: _Bytes(network().SerializeToString().replace(b"twice", b"tw\xffce")),  # type: ignore[return-value]
        (4,),
        "is not UTF-8",
    ),
    "nodes without inputs": (
        lambda: edited(lambda m: m.graph.node[3].ClearField("input")),
        (0, 3, 4),
        "",
    ),
    "nodes without outputs": (
        lambda: edited(lambda m: m.graph.node[0].ClearField("output")),
        (4,),
        "",
    ),
    "node without an operator": (
        lambda: edited(lambda m: m.graph.node[2].ClearField("op_type")),
        (0, 3, 4),
        "",
    ),
    "unknown dtype": (lambda: with_tensor(data_type=99), (4,), "`w`"),
    "dtype of none": (lambda: with_tensor(data_type=0), (4,), "`w`"),
    "negative dims": (lambda: with_tensor(dims=[-4]), (4,), "`w`"),
    "huge dims": (lambda: with_tensor(dims=[2**62, 4]), (4,), "`w`"),
    "dims whose product wraps round": (lambda: with_tensor(dims=[2**32, 2**32]), (4,), "`w`"),
    "more dims than numpy has": (lambda: with_tensor(dims=[1] * 100), (0, 3, 4), ""),
    "initializer shorter than its shape": (lambda: with_tensor(dims=[400]), (4,), "`w`"),
    "initializer longer than its shape": (lambda: with_tensor(dims=[2]), (4,), "`w`"),
    "initializer without values": (lambda: with_tensor(raw_data=b""), (4,), "`w`"),
    "initializer of half a number": (lambda: with_tensor(raw_data=b"\0" * 15), (4,), "`w`"),
    "initializer with two kinds of values": (lambda: with_tensor(float_data=[1.0]), (0, 3, 4), ""),
    "segment": (segment, (4,), "`w`"),
    "negative dim of an input": (lambda: edited(lambda m: set_dims(m, -3, 4)), (0, 3, 4), ""),
    "huge input": (lambda: edited(lambda m: set_dims(m, 2**40, 4)), (0, 3, 4), ""),
    "input of 2^62": (lambda: edited(lambda m: set_dims(m, 2**62, 2**62)), (0, 3, 4), ""),
    "large input": (lambda: edited(lambda m: set_dims(m, 30_000_000, 4)), (0, 3, 4), ""),
    "input without a type": (
        lambda: edited(lambda m: m.graph.input[0].ClearField("type")),
        (0, 3, 4),
        "",
    ),
    "input of dtype 99": (
        lambda: edited(lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 99)),
        (0, 3, 4),
        "",
    ),
    "no operator set": (lambda: edited(lambda m: m.ClearField("opset_import")), (0, 3, 4), ""),
    "operator set 9999": (
        lambda: edited(lambda m: setattr(m.opset_import[0], "version", 9999)),
        (0, 3, 4),
        "",
    ),
    "operator set -1": (
        lambda: edited(lambda m: setattr(m.opset_import[0], "version", -1)),
        (0, 3, 4),
        "",
    ),
    "IR version 2^60": (lambda: edited(lambda m: setattr(m, "ir_version", 2**60)), (0, 3, 4), ""),
    "attribute without a type": (attribute_without_type, (0, 3, 4), ""),
    "attribute of another kind": (attribute_of_another_kind, (0, 3, 4), ""),
}
for _op, _inputs, _attributes in [
    ("Transpose", (), {"perm": "ab"}),
    ("Transpose", (), {"perm": [0, 0]}),
    ("Transpose", (), {"perm": [7, -9]}),
    ("Transpose", (), {"perm": 1.5}),
    ("Concat", ("b",), {}),
    ("Concat", ("b",), {"axis": 2**62}),
    ("Concat", ("b",), {"axis": [1]}),
    ("Softmax", (), {"axis": "one"}),
    ("Conv", ("w",), {"strides": [0, 0], "pads": [-9, 2**40]}),
    ("Conv", ("w",), {"kernel_shape": [2**40, 2**40]}),
    ("Cast", (), {"to": 99}),
    ("Cast", (), {"to": [1]}),
    ("Constant", (), {}),
    ("Gather", ("k",), {"axis": -99}),
    ("Split", ("k",), {"axis": 99}),
    ("Squeeze", ("k",), {"axes": [2**40]}),
    ("Reshape", ("k", "k", "k"), {"allowzero": "x"}),
    ("Slice", ("w", "w"), {}),
    ("Pad", ("k",), {"mode": b"\xff\xfe"}),
    ("If", (), {"then_branch": 1, "else_branch": 2.0}),
    ("Loop", ("k",), {"body": [1, 2]}),
    ("Einsum", ("b",), {"equation": "ij,ij," * 1000 + "->" * 50}),
    ("ConstantOfShape", (), {"value": "s"}),
    ("Resize", ("k",), {"mode": "linear", "axes": [99]}),
    ("LSTM", ("w", "w"), {"hidden_size": -(2**60)}),
]:
    BROKEN[f"{_op} {_attributes}"[:60]] = (
        lambda a=_op, b=_inputs, c=_attributes: with_attribute(a, *b, **c),
        (0, 3, 4),
        "",
    )


@pytest.mark.parametrize("kind", sampled(BROKEN))
def test_a_broken_model(kind: str, surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    make, codes, phrase = BROKEN[kind]
    path = save(tmp_path, make())
    attempt(surgeon, rules, path, codes, phrase)
    attempt(surgeon, "shape-chains", path, codes, phrase, ("--no-verify",))


def others(surgeon: Runner, rules: Path, path: Path, what: str, *, runs: bool = True) -> None:
    """The commands beside `apply`: an answer or one error, soon, and nothing written here."""
    before = contents(path.parent)
    for arguments in (
        ("inspect", path),
        ("diff", path, path),
        ("explain", rules, path),
        *([("verify", path, path, "--timeout", 10)] if runs else []),
    ):
        answer = surgeon(*arguments)
        printed = f"{what}: {arguments[0]}: {answer['code']} {answer['output'][:1500]}"
        assert answer["code"] in (0, 1, 3, 4), printed
        assert answer["seconds"] < SECONDS, printed
        assert "Traceback" not in answer["output"], printed
        assert "surgeon has a bug" not in answer["output"], printed
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", answer["output"]), (
            printed
        )
        assert contents(path.parent) == before, printed


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(BROKEN)[::EVERY])
def test_a_broken_model_elsewhere(kind: str, surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    others(surgeon, rules, save(folder, BROKEN[kind][0]()), kind)


@pytest.mark.slow
def test_a_batch_of_broken_models(surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    for index, (make, _, _) in enumerate(BROKEN.values()):
        (folder / f"{index}.onnx").write_bytes(make().SerializeToString())
    batch_of(surgeon, rules, folder, len(BROKEN))


def batch_of(surgeon: Runner, rules: Path, folder: Path, count: int) -> None:
    """Each of the broken models gets a row, and a good one among them its result."""
    dest = folder.parent / "dest"
    (folder / "good.onnx").write_bytes(network().SerializeToString())
    before = contents(folder)
    answer = surgeon("batch", rules, folder, dest, "--timeout", 60, seconds=600)
    assert answer["code"] == 1, answer["output"]
    assert "Traceback" not in answer["output"]
    rows = [json.loads(line) for line in (dest / "report.jsonl").read_text().splitlines()]
    assert len(rows) == count + 1
    found = {row["name"]: row["outcome"] for row in rows}
    assert found["good.onnx"] == "repaired"
    assert not {"crashed", "timeout", "failed"} & set(found.values()), found
    assert contents(folder) == before


def test_nodes_of_one_name_are_named_anew(surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    model = network()
    for node in model.graph.node:
        node.name = "same"
    printed = attempt(surgeon, rules, save(tmp_path, model), (0,))
    assert "several nodes had one name, and got names of their own: `same`" in printed


# ------------------------------------------------------------------------------ external data

WHERE: dict[str, tuple[dict[str, str], str]] = {
    "a way up": ({"location": "../secret.bin"}, "outside the model's folder"),
    "up and down": ({"location": "sub/../../secret.bin"}, "outside the model's folder"),
    "absolute": ({"location": "/etc/passwd"}, "outside the model's folder"),
    "a drive": ({"location": "C:\\secret.bin"}, "outside the model's folder"),
    "ways of Windows": ({"location": "..\\secret.bin"}, "outside the model's folder"),
    "a link": ({"location": "link.bin"}, "a link out of the model's folder"),
    "a folder that is a link": ({"location": "linked/secret.bin"}, "a link out of the model's"),
    "a device": ({"location": "zero.bin"}, "data file `zero.bin`"),
    "a pipe": ({"location": "pipe.bin"}, "data file `pipe.bin`"),
    "a folder": ({"location": "sub"}, "data file `sub`"),
    "nothing": ({}, "outside the model's folder"),
    "a NUL": ({"location": "a\0b"}, ""),
    "a name of 1 MB": ({"location": "n" * (1 << 20)}, ""),
    "escape codes": ({"location": "\x1b[2J\x07.bin"}, ""),
    "beyond the end": ({"location": "data.bin", "offset": "4096"}, "beyond the end"),
    "partly beyond the end": ({"location": "data.bin", "offset": "52"}, "beyond the end"),
    "a huge offset": ({"location": "data.bin", "offset": "9" * 18}, "beyond the end"),
    "a negative offset": ({"location": "data.bin", "offset": "-16"}, "offset"),
    "an offset of words": ({"location": "data.bin", "offset": "1e3"}, "offset"),
    "a negative length": ({"location": "data.bin", "length": "-16"}, "length"),
    "a length too short": ({"location": "data.bin", "length": "8"}, "bytes"),
    "a length too long": ({"location": "data.bin", "length": "64"}, "bytes"),
    "a length of 40 digits": ({"location": "data.bin", "length": "9" * 40}, "length"),
}


SECRET = b"secret" * 20


def reaching(kind: str, folder: Path) -> onnx.ModelProto:
    """A model in `folder` whose data lie where they should not; what it reaches for is there."""
    (folder / "sub").mkdir(parents=True, exist_ok=True)
    (folder.parent / "secret.bin").write_bytes(SECRET)
    (folder / "data.bin").write_bytes(b"\1" * 64)
    if not (folder / "pipe.bin").exists():
        (folder / "link.bin").symlink_to(folder.parent / "secret.bin")
        (folder / "zero.bin").symlink_to("/dev/zero")
        (folder / "linked").symlink_to(folder.parent)
        os.mkfifo(folder / "pipe.bin")
    model = with_tensor()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in WHERE[kind][0].items():
        tensor.external_data.add(key=key, value=value)
    return model


@pytest.mark.parametrize("kind", sampled(WHERE))
def test_external_data(kind: str, surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    folder, phrase = tmp_path / "model", WHERE[kind][1]
    path = save(folder, reaching(kind, folder))
    for options in ((), ("--no-verify",)):
        attempt(surgeon, rules, path, (4,), phrase, options)
    attempt(surgeon, rules, path, (4,), phrase, ("--reference", "witness"))
    assert (tmp_path / "secret.bin").read_bytes() == SECRET


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(WHERE)[::EVERY])
def test_external_data_elsewhere(kind: str, surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    others(surgeon, rules, save(folder, reaching(kind, folder)), kind)
    assert (tmp_path / "secret.bin").read_bytes() == SECRET


@pytest.mark.slow
def test_a_batch_with_external_data(surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    for index, kind in enumerate(WHERE):
        data = reaching(kind, folder).SerializeToString()
        (folder / f"{index}.onnx").write_bytes(data)
    batch_of(surgeon, rules, folder, len(WHERE))
    assert (tmp_path / "secret.bin").read_bytes() == SECRET
    for path in (tmp_path / "dest").rglob("*"):
        assert not path.is_file() or b"secretsecret" not in path.read_bytes(), path


def test_tensors_may_share_their_data(surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(np.arange(8, dtype=np.float32).tobytes())
    model = with_tensor()
    model.graph.node[2].output[0] = "c"
    model.graph.node.append(helper.make_node("Mul", ["c", "v"], ["y"]))
    model.graph.initializer.add().CopyFrom(model.graph.initializer[0])
    for index, tensor in enumerate(model.graph.initializer):
        tensor.name = "wv"[index]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="data.bin")
        tensor.external_data.add(key="offset", value=str(index * 8))
        tensor.external_data.add(key="length", value="16")
    attempt(surgeon, rules, save(tmp_path, model), (0,))


@pytest.mark.parametrize("kind", ["device", "pipe", "sparse", "folder", "name"])
def test_a_model_that_is_no_file(kind: str, surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.onnx"
    if kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(1 << 40)
    elif kind == "folder":
        path.mkdir()
    else:
        path = tmp_path / ("n" * 5000)
    answer = surgeon("apply", rules, path, tmp_path / "o.onnx")
    sane(answer, kind)
    assert answer["code"] == 4
    assert not (tmp_path / "o.onnx").exists()


# -------------------------------------------------------------------------------------- bombs


def bomb(op: str, *inputs: str, **tensors: np.ndarray) -> onnx.ModelProto:
    """y = x + the mean of what one node makes of constants."""
    return graph_of(
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Neg", ["a"], ["b"]),
        helper.make_node(op, list(inputs), ["big"]),
        helper.make_node("Cast", ["big"], ["wide"], to=FLOAT),
        helper.make_node("ReduceMean", ["wide"], ["mean"], keepdims=0),
        helper.make_node("Add", ["b", "mean"], ["y"]),
        **tensors,
    )


def doubling(times: int, *, of: str) -> onnx.ModelProto:
    """Each node gives twice what the one before gave."""
    nodes = [helper.make_node("Concat", [f"{of}", f"{of}"], ["d0"], axis=0)]
    for i in range(1, times):
        nodes.append(helper.make_node("Concat", [f"d{i - 1}", f"d{i - 1}"], [f"d{i}"], axis=0))
    nodes.append(helper.make_node("ReduceSum", [f"d{times - 1}"], ["s"], keepdims=0))
    nodes += [helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["b"])]
    nodes.append(helper.make_node("Add", ["b", "s"], ["y"]))
    return graph_of(*nodes, k=np.ones(1, np.float32))


def endless_loop() -> onnx.ModelProto:
    body = onnx.parser.parse_graph(
        "body (int64 i, bool go, float s) => (bool again, float t) "
        "{ again = Identity(go) t = Add(s, s) }"
    )
    return graph_of(
        helper.make_node("Loop", ["trips", "yes", "start"], ["s"], body=body),
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Neg", ["a"], ["b"]),
        helper.make_node("Add", ["b", "s"], ["y"]),
        trips=np.array(10**12),
        yes=np.array(True),
        start=np.float32(1),
    )


def function_bomb() -> onnx.ModelProto:
    model = calling(first="f0")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    for i in range(40):
        op, domain = (f"f{i + 1}", "own") if i < 39 else ("Neg", "")
        nodes = [
            helper.make_node(op, ["p"], ["r"], domain=domain),
            helper.make_node(op, ["r"], ["q"], domain=domain),
        ]
        model.functions.append(helper.make_function("own", f"f{i}", ["p"], ["q"], nodes, opsets))
    return model


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


ONE = np.ones((1, 1), np.float32)
BOMBS: dict[str, Callable[[], onnx.ModelProto]] = {
    "ConstantOfShape": lambda: bomb("ConstantOfShape", "s", s=i64(100_000, 100_000)),
    "ConstantOfShape of 2^62": lambda: bomb("ConstantOfShape", "s", s=i64(2**62, 4)),
    "ConstantOfShape of -1": lambda: bomb("ConstantOfShape", "s", s=i64(-1, 4)),
    "Expand": lambda: bomb("Expand", "k", "s", k=ONE, s=i64(10_000, 10_000_000)),
    "Tile": lambda: bomb("Tile", "k", "s", k=ONE, s=i64(100_000, 1_000_000)),
    "Tile of 2^62": lambda: bomb("Tile", "k", "s", k=ONE, s=i64(2**62, 2**62)),
    "Range": lambda: bomb("Range", "z", "n", "o", z=np.array(0), n=np.array(10**10), o=np.array(1)),
    "Range of floats": lambda: bomb(
        "Range", "z", "n", "o", z=np.float32(0), n=np.float32(1e30), o=np.float32(1e-30)
    ),
    "Range of step 0": lambda: bomb(
        "Range", "z", "n", "o", z=np.array(0), n=np.array(10), o=np.array(0)
    ),
    "OneHot": lambda: bomb(
        "OneHot", "k", "n", "v", k=i64(0), n=np.array(10**12), v=np.array([0, 1], np.float32)
    ),
    "Pad": lambda: bomb("Pad", "k", "s", k=ONE, s=i64(10**6, 10**6, 10**6, 10**6)),
    "Reshape": lambda: bomb("Reshape", "k", "s", k=ONE, s=i64(2**40, 2**40)),
    "NonZero": lambda: bomb("NonZero", "k", k=ONE),
    "41 Concats of a constant": lambda: doubling(41, of="k"),
    "41 Concats of the input": lambda: doubling(41, of="x"),
    "functions that call twice": function_bomb,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb(kind: str, surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    path = save(tmp_path, BOMBS[kind]())
    if "Concats" not in kind:  # who runs such a model needs its memory
        attempt(surgeon, rules, path, (0, 3, 4))
    for recipe in (rules, "shape-chains"):
        attempt(surgeon, recipe, path, (0, 4), options=("--no-verify",))


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb_elsewhere(kind: str, surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    path = save(tmp_path, BOMBS[kind]())
    others(surgeon, rules, path, kind, runs="Concats" not in kind)


def test_a_loop_without_end_is_not_unrolled(surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    path = save(tmp_path, endless_loop())
    attempt(surgeon, rules, path, (0,), options=("--no-verify",))


@pytest.mark.slow
def test_what_is_folded_has_a_limit(surgeon: Runner, tmp_path: Path) -> None:
    """400 MB of ones stay a node, where the recipe does not ask for more."""
    for op, tensors in (
        ("Tile", {"k": ONE, "s": i64(10_000, 10_000)}),
        ("Expand", {"k": ONE, "s": i64(10_000, 10_000)}),
        ("ConstantOfShape", {"s": i64(10_000, 10_000)}),
    ):
        path = save(tmp_path, bomb(op, *tensors, **tensors))
        attempt(surgeon, "shape-chains", path, (0,), options=("--no-verify",))


# -------------------------------------------------------------------------------------- names

NAMES = {
    "newlines": "a\nerror: b\r\nc",
    "escape codes": "\x1b]0;title\x07\x1b[2J\x9b31m",
    "a path": "../../../tmp/evil/\\..\\x",
    "1 MB": "n" * (1 << 20),
    "both ways": "\u202eevil\u202d\u2066",
    "NUL": "a\0b",
    "markup": "[red]x[/red] {x} %s `",
}


def renamed(name: str) -> onnx.ModelProto:
    """Everything that has a name is called so, with a number behind."""
    model = network()
    new = {"": ""}

    def other(old: str) -> str:
        return new.setdefault(old, f"{name}{len(new)}")

    graphs: list[Any] = [model.graph]
    model.producer_name = model.graph.name = model.doc_string = name
    while graphs:
        graph = graphs.pop()
        for value in (*graph.input, *graph.output, *graph.initializer):
            value.name = other(value.name)
        for node in graph.node:
            node.name = other(f"node {node.output[0]}")
            node.doc_string = name
            node.input[:] = [other(n) for n in node.input]
            node.output[:] = [other(n) for n in node.output]
            graphs += [a.g for a in node.attribute]
    shape = model.graph.input[0].type.tensor_type.shape
    shape.dim[0].dim_param = name
    return model


@pytest.mark.slow
@pytest.mark.parametrize("kind", NAMES)
def test_names(kind: str, surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    path = save(tmp_path, renamed(NAMES[kind]))
    attempt(surgeon, rules, path, (0, 3, 4), options=("-v",))
    for arguments in (("inspect", path), ("explain", rules, path), ("verify", path, path)):
        sane(surgeon(*arguments), f"{arguments[0]} {kind}")
    assert set(contents(tmp_path)) == {"in.onnx", "double.yaml"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", NAMES)
def test_names_of_operators(kind: str, surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    model = network()
    for node in model.graph.node[2:4]:
        node.op_type, node.domain = NAMES[kind], NAMES[kind][:999]
    model.opset_import.add(domain=NAMES[kind][:999], version=1)
    path = save(tmp_path, model)
    attempt(surgeon, rules, path, (0, 3, 4), options=("-v",))
    for arguments in (("inspect", path), ("explain", "aten", path)):
        sane(surgeon(*arguments), f"{arguments[0]} {kind}")


@pytest.mark.slow
def test_strings_of_16_mb(surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    model = network()
    model.doc_string = model.graph.node[0].doc_string = "d" * (1 << 24)
    model.metadata_props.add(key="k" * (1 << 20), value="v" * (1 << 24))
    attempt(surgeon, rules, save(tmp_path, model), (0,))


# ------------------------------------------------------------------------------------ recipes

ALIASES = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)}, *{chr(97 + i)}]\n" for i in range(24)
)
RECIPES: dict[str, str] = {
    "a name that no file has": f"surgeon: 1\nname: x\nsteps: [{{use: {'s' * 5000}}}]\n",
    "a path that no file has": f"surgeon: 1\nname: x\nsteps: [{{use: ./{'s' * 5000}.yaml}}]\n",
    "alias bomb": ALIASES,
    "alias of itself": "a: &a [*a]\n",
    "merge": "surgeon: 1\n<<: {name: x}\n",
    "100,000 lists": "a: " + "[" * 100_000,
    "100,000 mappings": "a: " + "{a: " * 100_000,
    "1,000 levels": "".join(f"{' ' * i}a:\n" for i in range(1000)),
    "tag": "surgeon: !!python/object/apply:os.system [touch evil]\n",
    "binary": "surgeon: !!binary aGVsbG8=\n",
    "5 MB": "a: " + "x" * (5 << 20),
    "key of 1 MB": "k" * (1 << 20) + ": 1\n",
    "escape codes": 'surgeon: 1\nname: "\\e[2J\\a"\nrules: []\n',
    "a key of escape codes": 'surgeon: 1\n"\\e[2J\\a\\n": 1\n',
    "raw escape codes": "surgeon: 1\nname: \x1b[2J\n",
    "a recipe that uses itself": "surgeon: 1\nname: x\nsteps: [{use: ./bad.yaml}]\n",
    "a path up": "surgeon: 1\nname: x\nsteps: [{use: ../../../../etc/passwd}]\n",
    "a device": "surgeon: 1\nname: x\nsteps: [{use: /dev/zero}]\n",
    "not UTF-8": "surgeon: \udcff\n",
}


@pytest.mark.parametrize("kind", RECIPES)
def test_a_recipe(kind: str, surgeon: Runner, tmp_path: Path) -> None:
    path = save(tmp_path, network())
    (tmp_path / "bad.yaml").write_bytes(RECIPES[kind].encode(errors="surrogateescape"))
    harmless = kind == "escape codes"
    attempt(surgeon, tmp_path / "bad.yaml", path, (0,) if harmless else (2,))


RULE = """\
surgeon: 1
name: bad
rules:
  - id: bad
    why: Because a test says so.
    exact: bit
    match: {match}
    where:
      - "{where}"
    let:
      v: "{let}"
    replace: {replace}
"""
EXPRESSIONS = [
    "9**9**9",
    "9**9**9 > 1",
    "[0]*10**12",
    "[0] * 1000000000000 == []",
    "'x' * 10**12",
    "range(10**12) == []",
    "[[i for i in range(10**6)] for j in range(10**6)]",
    "zeros([100000, 100000])",
    "ones([10**6, 10**6]) == 0",
    "arange(10**12)",
    "full([10**9], 1)",
    "reshape(range(4), [2**40, 2**40])",
    "1 << 10**12",
    "(1 << 60) << 60",
    "x.__class__",
    "x.shape.__class__.__mro__",
    "().__class__.__bases__[0].__subclasses__()",
    "__import__('os').system('touch evil')",
    "open('/etc/passwd')",
    "getattr(x, 'gs')",
    "eval('1')",
    "lambda: 1",
    "[y for y in iter(int, 1)]",
    "x.shape[10**30]",
    "x.name",
    "f'{x}'",
    "x := 1",
    "0" * 3000,
    "(" * 2000 + ")" * 2000,
    "not " * 1500 + "1",
    "pooling_matrix(10**6, 10**6)",
    "repeat(range(1000), 10**9)",
    "concat([range(1000)] * 1000)",
    "sum([i * j for i in range(1000) for j in range(1000)])",
    "1 / 0 > 0",
    "5 % 0 == 0",
    "x.shape[0] ** 5000 == 1",
    "((x.shape[0] + 1) ** 64 + 1) ** 64 == 1",
    "(x.shape[0] + x.shape[1] + 1) ** 200 == 1",
    "max(x.shape[0], 2) // (x.shape[0] - x.shape[0]) == 1",
]


@pytest.mark.slow
@pytest.mark.parametrize("text", EXPRESSIONS, ids=range(len(EXPRESSIONS)))
def test_an_expression(text: str, surgeon: Runner, tmp_path: Path) -> None:
    path = save(tmp_path, network())
    for where, let in ((text, "1"), ("1 == 1", text)):
        recipe = RULE.format(match="y = Sin (x)", where=where, let=let, replace="y = Sin (x)")
        (tmp_path / "bad.yaml").write_text(recipe)
        attempt(surgeon, tmp_path / "bad.yaml", path, (0, 2, 6))


PATTERNS = [
    "y = Sin (x)" * 5000,
    "(" * 10_000,
    "y = " + "Neg (" * 3000 + "x" + ")" * 3000,
    "y = Sin <" + "a = 1, " * 5000 + "b = 2> (x)",
    "y = \x1b[2J (x)",
    "y = Sin <a = 9999999999999999999999999999> (x)",
    "",
]


@pytest.mark.slow
@pytest.mark.parametrize("text", PATTERNS, ids=range(len(PATTERNS)))
def test_a_pattern(text: str, surgeon: Runner, tmp_path: Path) -> None:
    path = save(tmp_path, network())
    for match, replace in ((text, "y = Sin (x)"), ("y = Sin (x)", text)):
        quoted = [json.dumps(part) for part in (match, replace)]
        recipe = RULE.format(match=quoted[0], where="1 == 1", let="1", replace=quoted[1])
        (tmp_path / "bad.yaml").write_text(recipe)
        attempt(surgeon, tmp_path / "bad.yaml", path, (2,))
