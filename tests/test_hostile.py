"""Files that mean harm, and files that are broken: one clear error, soon, and nothing lost.

Each is made here by script and given to `surgeon apply` in a process of its own, with a limit of
time and memory (see `hostile_runs`). Of the bytes and graphs of models here; their data, bombs,
names and recipes have files of their own.
"""

import os
import random
import sys
from pathlib import Path

import onnx.parser
import pytest
from hostile_broken import BROKEN, size_below_zero, with_attribute
from hostile_command import (
    EVERY,
    Runner,
    attempt,
    batch_of,
    others,
    rules,
    sampled,
    sane,
    save,
    surgeon,
)
from hostile_models import network
from onnx import AttributeProto
from shares import every

__all__ = ["rules", "surgeon"]  # fixtures of `hostile_command`

pytestmark = [
    pytest.mark.slow,  # a process for each file
    pytest.mark.skipif(sys.platform == "win32", reason="no fork, and no limits, here"),
]


# ------------------------------------------------------------------------------ broken bytes


def test_the_whole_file_is_fine(surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    printed = attempt(surgeon, rules, save(tmp_path, network()), (0,))
    assert "double-neg" in printed


@pytest.mark.parametrize("seed", range(4))
def test_truncated_and_flipped(seed: int, surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    """A damaged file that still is a model may be mended, or refused by any of the documented."""
    whole = network().SerializeToString()
    chance = random.Random(seed)
    for _ in range(40 // EVERY):
        data = bytearray(
            whole[: chance.randrange(1, len(whole))] if chance.random() < 0.3 else whole
        )
        for _ in range(chance.choice((1, 1, 3, 10))):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path = tmp_path / "in.onnx"
        path.write_bytes(data)
        attempt(surgeon, rules, path, (0, 3, 4))


# ------------------------------------------------------------------------- graphs that are none


@pytest.mark.parametrize("kind", sampled(BROKEN)[:: every(2)])
def test_a_broken_model(kind: str, surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    make, codes, phrase = BROKEN[kind]
    path = save(tmp_path, make())
    attempt(surgeon, rules, path, codes, phrase)


@pytest.mark.parametrize("kind", list(BROKEN)[::EVERY])
def test_a_broken_model_elsewhere(kind: str, surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    make, codes, phrase = BROKEN[kind]
    path = save(folder, make())
    others(surgeon, rules, path, kind)
    attempt(surgeon, "shape-chains", path, codes, phrase, ("--no-verify",))


def test_a_batch_of_broken_models(surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    for index, (make, _, _) in enumerate(BROKEN.values()):
        (folder / f"{index}.onnx").write_bytes(make().SerializeToString())
    batch_of(surgeon, rules, folder, len(BROKEN))


def test_onnx_itself_ends_the_process(surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    path = save(folder, size_below_zero())
    others(surgeon, rules, path, "size below zero")
    for recipe in ("opset-11", "opset-19", "any-batch", "float32-in-float16"):
        attempt(surgeon, recipe, path, (0, 3, 4))


def test_a_constant_in_a_kind_of_its_own_is_read_or_left(
    surgeon: Runner, rules: Path, tmp_path: Path
) -> None:
    for kind in (AttributeProto.STRING, AttributeProto.STRINGS, AttributeProto.GRAPH):
        model = with_attribute("Constant", value_ints=[1, 2])
        node = model.graph.node[2]
        del node.input[:]
        node.attribute[0].type = kind
        attempt(surgeon, rules, save(tmp_path, model), (0, 3, 4))


def test_operands_of_what_takes_none(surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    model = with_attribute("RandomNormal", shape=[1])
    model.graph.node[1].domain = "own"  # so that nothing is known of its type
    model.opset_import.add(domain="own", version=1)
    attempt(surgeon, rules, save(tmp_path, model), (0, 3, 4))


@pytest.mark.parametrize("operator", ["If", "Loop"])
def test_a_body_that_gives_too_little(
    operator: str, surgeon: Runner, rules: Path, tmp_path: Path
) -> None:
    body = {
        "If": "y, e = If (c) <then_branch = t () => (float r) { r = Neg (x) }, "
        "else_branch = u () => (float s) { s = Exp (x) }>",
        "Loop": "y, e = Loop (n, c, x, x) <body = b (int64 i, bool d, float r, float s) => "
        "(bool f) { f = Identity (d) }>",
    }
    text = f"g (float x, bool c, int64 n) => (float y) {{ a = Neg (x) {body[operator]} }}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}')
    attempt(surgeon, rules, save(tmp_path, model), (0, 2, 3, 4))


@pytest.mark.parametrize("operator", ["ReduceSum", "Squeeze", "Max", "Add", "Gather", "Slice"])
def test_operators_without_operands(
    operator: str, surgeon: Runner, rules: Path, tmp_path: Path
) -> None:
    model = with_attribute(operator)
    del model.graph.node[2].input[:]
    attempt(surgeon, rules, save(tmp_path, model), (0, 3, 4))


@pytest.mark.parametrize("axes", [(2,), (2, 3), (0, 1, 2, 3)])
def test_a_cut_of_less_than_nothing(
    axes: tuple[int, ...], surgeon: Runner, rules: Path, tmp_path: Path
) -> None:
    """A window that is larger than the image leaves less than none."""
    ones, cut = "1" + ", 1" * (len(axes) - 1), ", ".join(map(str, axes))
    kind = f"int64[{len(axes)}]"
    text = f"""g (float[1,1,3,3] x, float[1,1,5,5] w) => (float[a,b,c,d] y, float[e,f,g,h] z)
    <{kind} s = {{{ones}}}, {kind} e = {{{ones}}}, {kind} k = {{{cut}}}> {{
      t = Conv (x, w) y = Slice (t, s, e, k) m = Slice (t, s, e, k) z = Neg (m) }}"""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 13]> {text}')
    attempt(surgeon, rules, save(tmp_path, model), (0, 3, 4))


def test_batch_dimensions_below_none(surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    """onnx's own inference reads in front of a list then, and the process ended in SIGSEGV."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 13]>
        g (float[3,n] x, int64[k,1] i) => (float[a] y) { y = GatherND <batch_dims = -2> (x, i) }"""
    )
    attempt(surgeon, rules, save(tmp_path, model), (0, 3, 4))


@pytest.mark.parametrize("place", ["cast", "input"])
def test_an_element_type_that_is_none(
    place: str, surgeon: Runner, rules: Path, tmp_path: Path
) -> None:
    model = with_attribute("Cast", to=34 if place == "cast" else 1)
    if place == "input":
        model.graph.input[0].type.tensor_type.elem_type = 34
    attempt(surgeon, rules, save(tmp_path, model), (0, 2, 3, 4))


def test_an_operator_that_is_a_list_is_none(surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    model = with_attribute("ATen", "k", operator=["add", "mul"])
    model.graph.node[2].domain = "org.pytorch.aten"
    model.opset_import.add(domain="org.pytorch.aten", version=1)
    attempt(surgeon, rules, save(tmp_path, model), (0, 3, 4))


def test_nodes_of_one_name_are_named_anew(surgeon: Runner, rules: Path, tmp_path: Path) -> None:
    model = network()
    for node in model.graph.node:
        node.name = "same"
    printed = attempt(surgeon, rules, save(tmp_path, model), (0,))
    assert "several nodes had one name, and got names of their own: `same`" in printed


# ------------------------------------------------------------------------------ external data


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
