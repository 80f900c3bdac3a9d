"""`surgeon reduce`: the smallest part of a model at which a check still fails."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from shares import some
from typer.testing import CliRunner

import surgeon
from surgeon.cli import app
from surgeon.errors import RecipeError, VerifyError
from surgeon.reducing import Reduction
from surgeon.reducing.command import Check, Outcome, write_plain
from surgeon.runtime import Session
from surgeon.sketching import sketch

RUN = CliRunner()
CHAIN = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,4] x) => (float[N,4] y) {
  a = Relu (x)
  b = Exp (a)
  c = Neg (b)
  d = Sin (c)
  e = Cos (d)
  y = Tanh (e)
}"""
SIZES = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,2,4] x) => (float[N,8] y) <int64 first = {0}, int64[1] axes = {0}> {
  a = Relu (x)
  s = Shape (a)
  n = Gather (s, first)
  u = Unsqueeze (n, axes)
  m = Constant <value = int64[1] {-1}> ()
  t = Concat <axis = 0> (u, m)
  r = Reshape (a, t)
  e = Exp (r)
  y = Tanh (e)
}"""
BRANCHES = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,4] x, bool c) => (float[N,4] y) {
  a = Relu (x)
  b = Exp (a)
  f = Neg (b)
  e = If (c) <then_branch = then () => (float[N,4] t) { t = Add (b, w) },
              else_branch = other () => (float[N,4] o) { o = Mul (a, w) }>
  y = Add (e, f)
}"""


def has(*operators: str) -> Callable[[Path], bool]:
    """A runtime that refuses a file in which all of these are."""

    def fails(path: Path) -> bool:
        proto = onnx.load(path)
        onnx.checker.check_model(proto, full_check=True)
        Session(proto)  # each part is a model that loads
        return set(operators) <= {node.op_type for node in proto.graph.node}

    return fails


def left(found: Reduction) -> list[str]:
    return [node.operator for node in found.nodes]


@pytest.mark.slow
@pytest.mark.parametrize("operator", ["Relu", "Neg", "Tanh"])
def test_one_node_is_left(operator: str) -> None:
    found = surgeon.reduce(onnx.parser.parse_model(CHAIN), has(operator))
    assert left(found) == [operator]
    assert (found.of, found.is_smallest) == (6, True)
    assert found.runs <= 11
    assert [value.shape for value in found.inputs] == [("N", 4)]
    Session(found.model.to_proto()).run({found.inputs[0].name: np.ones((2, 4), np.float32)})


@pytest.mark.slow
def test_what_fails_together_stays_and_what_is_between_goes() -> None:
    model = onnx.parser.parse_model(CHAIN)
    found = surgeon.reduce(model, has("Exp", "Cos"))
    assert left(found) == ["Exp", "Cos"]
    assert [value.name for value in found.inputs] == ["a", "d"]
    assert [value.name for value in found.outputs] == ["b", "e"]


@pytest.mark.slow
def test_sizes_are_computed_in_the_part() -> None:
    found = surgeon.reduce(onnx.parser.parse_model(SIZES), has("Reshape"))
    assert left(found) == ["Shape", "Gather", "Unsqueeze", "Concat", "Reshape"]
    assert [value.name for value in found.inputs] == ["a"], "and no target of a Reshape"


@pytest.mark.slow
def test_bodies_take_what_they_capture_along() -> None:
    model = onnx.parser.parse_model(BRANCHES)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(4, np.float32), "w"))
    found = surgeon.reduce(model, has("If"))
    assert left(found) == ["If"]
    assert {value.name for value in found.inputs} == {"a", "b", "c"}
    assert [t.name for t in found.model.to_proto().graph.initializer] == ["w"]


@pytest.mark.slow
def test_where_everything_is_needed_the_model_is_given_back() -> None:
    model = onnx.parser.parse_model(CHAIN)
    found = surgeon.reduce(model, has("Relu", "Exp", "Neg", "Sin", "Cos", "Tanh"))
    assert len(found.nodes) == found.of
    assert found.model.to_proto() == model


def test_a_model_of_constants_alone_has_no_part() -> None:
    text = "g () => (float[1] y) { y = Constant <value = float[1] {1}> () }"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}')
    found = surgeon.reduce(model, lambda path: True)
    assert (found.nodes, found.of) == ((), 0)


@pytest.mark.slow
def test_runs_are_counted() -> None:
    asked: list[int] = []

    def fails(path: Path) -> bool:
        nodes = len(onnx.load(path).graph.node)
        asked.append(nodes)
        return nodes == 6

    found = surgeon.reduce(onnx.parser.parse_model(CHAIN), fails, most=5)
    assert (found.is_smallest, len(found.nodes)) == (False, 6)
    assert asked[0] == 6
    assert len(asked) == found.runs <= 6, "and once more, to see the same"


@pytest.mark.slow
def test_no_part_is_asked_for_twice() -> None:
    asked: Counter[bytes] = Counter()

    def fails(path: Path) -> bool:
        asked[path.read_bytes()] += 1
        return has("Exp", "Cos")(path)

    surgeon.reduce(onnx.parser.parse_model(CHAIN), fails)
    assert sorted(asked.values())[-2:] == [1, 2], "but for the last, which is seen to fail again"


def test_a_whole_that_does_not_fail_is_an_error() -> None:
    with pytest.raises(RecipeError, match="the whole model does not fail"):
        surgeon.reduce(onnx.parser.parse_model(CHAIN), has("Erf"))


def test_what_does_not_fail_again_is_an_error() -> None:
    answers = iter([True, True, *[False] * 100])
    with pytest.raises(VerifyError, match="does not fail again"):
        surgeon.reduce(onnx.parser.parse_model(CHAIN), lambda path: next(answers))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(some(6, of=20)))
def test_of_a_graph_drawn_at_random_the_guilty_nodes_are_left(seed: int) -> None:
    """A check that fails where all of them are fails on nothing smaller than these."""
    rng = random.Random(seed)
    nodes, values = [], ["x"]
    for at in range(rng.randint(5, 40)):
        ends = [rng.choice(values[-4:]) for _ in range(2)]
        operator = rng.choice(["Add", "Mul", "Relu", "Neg"])
        read = ends if operator in ("Add", "Mul") else ends[:1]
        nodes.append(onnx.helper.make_node(operator, read, [f"v{at}"], name=f"n{at}"))
        values.append(f"v{at}")
    ends = [onnx.helper.make_tensor_value_info(n, 1, ["N"]) for n in ("x", values[-1])]
    graph = onnx.helper.make_graph(nodes, "g", ends[:1], ends[1:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)])
    guilty = {node.name for node in rng.sample(nodes, rng.randint(1, 3))}

    def fails(path: Path) -> bool:
        proto = onnx.load(path)
        onnx.checker.check_model(proto, full_check=True)
        return guilty <= {node.name for node in proto.graph.node}

    found = surgeon.reduce(model, fails)
    assert {node.name for node in found.nodes} == guilty


def refuses(operator: str, *, dynamic: bool = False) -> Callable[[Path], bool]:
    """A runtime without an operator, or without it where sizes are names."""

    def fails(path: Path) -> bool:
        graph = onnx.load(path).graph
        named = [d for v in graph.input for d in v.type.tensor_type.shape.dim if d.dim_param]
        return operator in {n.op_type for n in graph.node} and (not dynamic or bool(named))

    return fails


def test_recipes_behind_which_the_part_passes() -> None:
    text = CHAIN.replace("d = Sin (c)", "d = HardSwish (c)")
    found = surgeon.reduce(onnx.parser.parse_model(text), refuses("HardSwish"))
    assert left(found) == ["HardSwish"]
    mends = {mend.recipe: mend for mend in found.mends}
    assert "activations-decompose" in mends
    assert all(mend.allow == () and not mend.shaped for mend in found.mends)
    assert [mend.nodes for mend in found.mends] == sorted(mend.nodes for mend in found.mends)
    result = surgeon.apply(onnx.parser.parse_model(text), "activations-decompose")
    assert "HardSwish" not in result.report.after


def test_of_recipes_that_leave_as_many_nodes_the_narrow_comes_first() -> None:
    text = """
        <ir_version: 8, opset_import: ["": 13]>
        g (float[1,1,3,2] x) => (float[1,1,6,2] y) <float[4] s = {1, 1, 2, 1}> {
          y = Resize <mode = "cubic"> (x, , s)
        }
    """
    found = surgeon.reduce(onnx.parser.parse_model(text), refuses("Resize"))
    names = [mend.recipe for mend in found.mends if mend.nodes == found.mends[0].nodes]
    assert names[0] == "resize-decompose"
    assert "for-iree" in names


@pytest.mark.slow
def test_recipes_that_have_to_be_allowed_come_last() -> None:
    text = CHAIN.replace("d = Sin (c)", "d = Erf (c)")
    found = surgeon.reduce(onnx.parser.parse_model(text), refuses("Erf"))
    assert ("erf-decompose", ("approximate",)) in [(m.recipe, m.allow) for m in found.mends]
    assert {mend.allow for mend in found.mends} == {("approximate",)}


@pytest.mark.slow
def test_sizes_that_have_to_be_numbers() -> None:
    found = surgeon.reduce(onnx.parser.parse_model(SIZES), refuses("Reshape", dynamic=True))
    assert [(mend.recipe, mend.shaped) for mend in found.mends] == [("clean", True)]


def test_what_fails_in_another_way_is_no_mend() -> None:
    text = CHAIN.replace("d = Sin (c)", "d = HardSwish (c)")
    model = onnx.parser.parse_model(text)
    asked = []

    def passes(path: Path) -> bool:
        asked.append(path)
        return False

    found = surgeon.reduce(model, refuses("HardSwish"), passes=passes)
    assert found.mends == ()
    assert asked
    begin = f"surgeon recipes new NAME --of OUT --to {found.outputs[0].name}"
    assert begin in surgeon.shown(found)
    end = {"outputs": found.outputs[0].name}
    assert (
        sketch(found.model, "hard-swish", **end).fires == sketch(model, "other", **end).fires == 1
    )


def test_the_numbers_beside_a_part_are_those_of_the_whole() -> None:
    """A runtime that computes Cos wrongly: seen of the part that has it, by its own inputs."""
    model = onnx.parser.parse_model(CHAIN.replace("N,4", "3,4"))
    seen = []

    def fails(path: Path) -> bool:
        proto = onnx.load(path)
        given = np.load(path.with_suffix(".npz"))
        feeds = {name[3:]: given[name] for name in given if name.startswith("in.")}
        expected = {name[4:]: given[name] for name in given if name.startswith("out.")}
        assert set(expected) == {value.name for value in proto.graph.output}
        for name, value in Session(proto).run(feeds).items():
            np.testing.assert_array_equal(value, expected[name])
        for node in proto.graph.node:
            node.op_type = "Sin" if node.op_type == "Cos" else node.op_type
        wrong = Session(proto).run(feeds)
        seen.append(len(proto.graph.node))
        return any(not np.array_equal(value, expected[name]) for name, value in wrong.items())

    assert left(surgeon.reduce(model, fails, data=())) == ["Cos"]
    assert seen[0] == 6


def test_numbers_need_sizes(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(CHAIN)
    drawn = []

    def fails_on_drawn(path: Path) -> bool:
        given = np.load(path.with_suffix(".npz"))
        drawn.extend(given[name].shape for name in given)
        return has("Cos")(path)

    assert left(surgeon.reduce(model, fails_on_drawn, data=())) == ["Cos"]
    assert len(set(drawn)) == 1, "at one size at which it runs"
    bad = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17, "my": 1]> g (float[n,4] x) => (float[n,4] y) '
        "{ a = my.Op (x)  y = Cos (a) }"
    )
    with pytest.raises(RecipeError, match="no sizes of its dynamic dimensions") as caught:
        surgeon.reduce(bad, has("Cos"), data=())
    assert "--data" in caught.value.mend
    np.savez(tmp_path / "x.npz", x=np.ones((5, 4), np.float32))
    sizes = []

    def fails(path: Path) -> bool:
        given = np.load(path.with_suffix(".npz"))
        sizes.extend(given[name].shape for name in given)
        return has("Cos")(path)

    assert left(surgeon.reduce(model, fails, data=[tmp_path / "x.npz"])) == ["Cos"]
    assert set(sizes) == {(5, 4)}


@pytest.mark.slow
def test_texts_beside_a_part_are_read_without_pickle() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (string[2] x) => (string[2] y) '
        "{ a = Identity (x) y = Identity (a) }"
    )
    seen = []

    def fails(path: Path) -> bool:
        with np.load(path.with_suffix(".npz")) as arrays:
            seen.extend(arrays[name].dtype.kind for name in arrays.files)
        return True

    surgeon.reduce(model, fails, data=(), most=1)
    assert set(seen) == {"U"}


@pytest.mark.slow
@pytest.mark.parametrize("large", [False, True])
def test_data_outside_come_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, large: bool
) -> None:
    text = CHAIN.replace("y = Tanh (e)", "y = MatMul (e, w)")
    model = onnx.parser.parse_model(text)
    weight = np.arange(16, dtype=np.float32).reshape(4, 4)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    source, target = tmp_path / "in.onnx", tmp_path / "far" / "part.onnx"
    target.parent.mkdir()
    onnx.save(model, source, save_as_external_data=True, size_threshold=0)
    if large:
        monkeypatch.setattr("surgeon.reducing.asking._LARGE", 0)
    places = set()

    def fails(path: Path) -> bool:
        places.add(path.parent)
        assert path.parent == tmp_path or list(path.parent.iterdir()) == [path]
        path.with_name(f"{path.name}.data").write_bytes(b"made by the check, or of new weights")
        return has("MatMul")(path)

    found = surgeon.reduce(source, fails)
    found.model.save(target)
    assert (tmp_path in places) == large, "where the weights lie, and are not copied"
    assert not [each for each in tmp_path.iterdir() if each.name.startswith(".")]
    assert left(found) == ["MatMul"]
    assert np.array_equal(
        onnx.numpy_helper.to_array(onnx.load(target).graph.initializer[0]), weight
    )


# ------------------------------------------------------------------------------- the command

SCRIPT = """
import sys
content = open(sys.argv[1], "rb").read()  # which costs less than to import onnx
names = [name for name in ("Relu", "Exp", "Neg", "Sin", "Cos", "Tanh") if name.encode() in content]
if len(names) < 2:
    print("too small"); sys.exit(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
if sys.argv[2] in names:
    print("cannot compile", sys.argv[2]); sys.exit(1)
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    """A runtime that refuses an operator, and files of a single node for a reason of its own."""
    path = tmp_path / "runtime.py"
    path.write_text(SCRIPT)
    return f'"{sys.executable}" "{path}"'


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "in.onnx"
    onnx.save(onnx.parser.parse_model(CHAIN), path)
    return path


@pytest.mark.slow
def test_a_command_that_fails(model: Path, script: str) -> None:
    target = model.with_name("part.onnx")
    arguments = ["reduce", str(model), str(target), "--check", f"{script} {{}} Cos"]
    done = RUN.invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert "1 node of 6 fails" in done.output, "for another reason, which is shown"
    assert "cannot compile Cos" in done.output
    assert "too small" in done.output
    assert "may fail for another reason" in done.output
    assert len(onnx.load(target).graph.node) == 1

    done = RUN.invoke(app, [*arguments, "--saying", "cannot compile", "--json"])
    told = json.loads(done.stdout)
    assert [node["operator"] for node in told["nodes"]] in (["Sin", "Cos"], ["Cos", "Tanh"])
    assert told["whole"]["last_line"] == told["part"]["last_line"] == "cannot compile Cos"
    assert len(onnx.load(target).graph.node) == 2
    assert RUN.invoke(app, ["log", str(target)]).exit_code == 0
    done = RUN.invoke(app, [*arguments, "--saying", "cannot compile"])
    assert "may fail for another reason" not in done.output


def test_another_exit_status_is_another_failure(model: Path, script: str) -> None:
    target = model.with_name("part.onnx")
    arguments = ["reduce", str(model), str(target), "--check", f"{script} {{model}} Cos 7", "-q"]
    assert RUN.invoke(app, arguments).exit_code == 0
    assert len(onnx.load(target).graph.node) == 2


@pytest.mark.parametrize(
    ("whole", "part", "same"),
    [
        ("err 0.084", "err 5.8", True),
        ("GRU_14 has no rule, 2 inputs", "GRU_0 has no rule, 2 inputs", True),
        ("unsupported ['HardSwish', 'ReduceL2']", "unsupported ['ReduceL2']", True),
        ("lacks: Erf, Elu, Selu, Celu, Mish", "lacks: Selu", True),
        ("lacks: Erf, Elu, Selu, Celu, Mish", "empty net", False),
        ("map::at", "empty net", False),
        ("", "empty net", False),
        ("", "", True),
    ],
)
def test_two_lines_that_say_the_same(whole: str, part: str, same: bool) -> None:
    assert Outcome(1, whole).says_the_same(Outcome(1, part)) is same


@pytest.mark.parametrize("head", ["Stack backtrace:", "stack backtrace:"])
def test_the_last_line_is_in_front_of_a_list_of_calls(head: str) -> None:
    """As programs in Rust write it, tract's among them: all end in the same call."""
    calls = (
        f"\n\n{head}\n   0: std::backtrace::capture\n             at ./main.rs:4:1\n  31: _start"
    )
    one, other = (
        Outcome(1, f"running pass\n\n{said}{calls}\n") for said in ("Bool is no number", "No axis")
    )
    assert one.last_line == "Bool is no number"
    assert not one.says_the_same(other)
    assert Outcome(1, calls).last_line == "31: _start"


def test_a_dry_run_writes_nothing(model: Path, script: str) -> None:
    target = model.with_name("part.onnx")
    arguments = ["reduce", str(model), str(target), "--check", f"{script} {{}} Cos", "--dry-run"]
    assert RUN.invoke(app, arguments).exit_code == 0
    assert not target.exists()


WRONG = {
    "nothing to fail": ("{script} {{}} Erf", "the command does not fail on the whole model"),
    "no place for the model": ("{script} Cos", "does not say where the model goes"),
    "no such program": ("no-such-program {{}}", "`no-such-program` cannot be run"),
    "words for a shell": ("{script} {{}} Cos | grep cannot", "no shell reads the command"),
    "an open quote": ("'{{}}", "the command cannot be read"),
    "nothing": ("", "does not say where the model goes"),
}


@pytest.mark.parametrize(("command", "phrase"), WRONG.values(), ids=WRONG)
def test_a_command_that_is_wrong(model: Path, script: str, command: str, phrase: str) -> None:
    target = model.with_name("part.onnx")
    target.write_text("old")
    given = command.format(script=script)
    done = RUN.invoke(app, ["reduce", str(model), str(target), "--check", given])
    assert done.exit_code == 2
    assert phrase in done.output
    assert target.read_text() == "old"


def test_words_that_the_command_does_not_say(model: Path, script: str) -> None:
    arguments = ["reduce", str(model), str(model.with_name("part.onnx"))]
    done = RUN.invoke(app, [*arguments, "--check", f"{script} {{}} Cos", "--saying", "segfault"])
    assert done.exit_code == 2
    assert "does not say `segfault`" in done.output
    assert "cannot compile Cos" in done.output


@pytest.mark.slow
def test_a_command_that_does_not_end(tmp_path: Path) -> None:
    path = tmp_path / "sleep.py"
    path.write_text("import time\nprint('on my way', flush=True)\ntime.sleep(60)")
    check = Check(f'"{sys.executable}" "{path}" {{}}', timeout=1.5)
    found = check.run(tmp_path / "m.onnx")
    assert (found.status, found.ending, found.last_line) == (None, "no end in time", "on my way")
    assert check.fails(tmp_path / "m.onnx"), "as it is on the whole, so it may be on a part"


def test_names_with_spaces(tmp_path: Path) -> None:
    path = tmp_path / "say.py"
    path.write_text("import sys\nprint(*sys.argv[1:], sep='|')")
    check = Check(f'"{sys.executable}" "{path}" --onnx={{}} "a b" {{data}}')
    assert check.wants_data
    folder = tmp_path / "with space"
    said = check.run(folder / "part.onnx").last_line
    assert said == f"--onnx={folder / 'part.onnx'}|a b|{folder / 'part.npz'}"


@pytest.mark.slow
def test_a_command_that_fails_on_everything_is_doubted(model: Path, script: str) -> None:
    """A wrong option of the runtime's tool says of each model what it says of yours."""
    arguments = ["reduce", str(model), str(model.with_name("part.onnx")), "--check"]
    for code in ("import sys; sys.exit('no such option')", "raise SystemExit(3)"):
        path = model.with_name("tool.py")
        path.write_text(code)
        done = RUN.invoke(app, [*arguments, f'"{sys.executable}" "{path}" {{}}'])
        assert done.exit_code == 0, done.output
        assert (
            "warning: the command fails on a model of one Relu as it does on yours" in done.stderr
        )
    assert "exit status 3; it said nothing" in done.output
    done = RUN.invoke(app, [*arguments, f"{script} {{}} Cos"])
    assert done.exit_code == 0, done.output
    assert "warning" not in done.stderr


@pytest.mark.slow
def test_a_command_that_hangs_on_everything_is_asked_twice(model: Path) -> None:
    path, count = model.with_name("sleep.py"), model.with_name("count")
    path.write_text(
        f"import time\nopen({str(count)!r}, 'a').write('.')\n"
        "print('on my way', flush=True)\ntime.sleep(60)"
    )
    check = f'"{sys.executable}" "{path}" {{}}'
    for command in ("reduce", "adapt"):
        count.unlink(missing_ok=True)
        arguments = [command, str(model), str(model.with_name("part.onnx")), "--timeout", "1.5"]
        done = RUN.invoke(app, [*arguments, "--check", check])
        assert done.exit_code == 2, done.output
        assert "nor does it for a model of one Relu" in done.output
        assert count.read_text() == ".."


@pytest.mark.slow
@pytest.mark.parametrize("ruin", ["path.unlink()", "path.write_bytes(bytes([255, 255]))"])
def test_a_command_may_ruin_the_file_it_is_given(model: Path, ruin: str) -> None:
    """Converters that write over what they read, and end before they have."""
    script = model.with_name("ruin.py")
    script.write_text(
        "import pathlib, sys\npath = pathlib.Path(sys.argv[1])\n"
        f"failed = b'Cos' in path.read_bytes()\n{ruin}\nsys.exit(failed)"
    )
    target = model.with_name("part.onnx")
    check = f'"{sys.executable}" "{script}" {{}}'
    done = RUN.invoke(app, ["reduce", str(model), str(target), "--check", check, "--most", "2"])
    assert done.exit_code == 0, done.output
    assert target.exists()


def test_data_that_the_command_is_not_given(model: Path, script: str) -> None:
    arguments = ["reduce", str(model), str(model.with_name("part.onnx")), "--data", "x.npz"]
    done = RUN.invoke(app, [*arguments, "--check", f"{script} {{}} Cos"])
    assert done.exit_code == 2
    assert "the command is given no inputs" in done.output


def test_the_plain_model_is_one_that_runs_and_of_the_same_versions(tmp_path: Path) -> None:
    like = onnx.parser.parse_model(
        '<ir_version: 7, opset_import: ["": 13, "my": 1]> g (float[1] x) => (float[1] y) '
        "{ y = my.Foo (x) }"
    )
    onnx.save(like, tmp_path / "like.onnx")
    write_plain(tmp_path / "plain.onnx", tmp_path / "like.onnx")
    plain = onnx.load(tmp_path / "plain.onnx")
    onnx.checker.check_model(plain, full_check=True)
    assert (plain.ir_version, plain.opset_import[0].version) == (7, 13)
    values = np.load(tmp_path / "plain.npz")
    assert np.array_equal(Session(plain).run({"x": values["in.x"]})["y"], values["out.y"])


def test_weights_among_the_inputs_are_counted_apart(model: Path, script: str) -> None:
    """As files of PyTorch before 1.9 list them."""
    listed = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> '
        "g (float[2, 3] x, float[3] w) => (float[2, 3] y) "
        "<float[3] w = {1, 2, 3}> { a = Cos (x) b = Add (a, w) y = Sin (b) }"
    )
    onnx.save(listed, model)
    found = surgeon.reduce(
        model, lambda path: "Add" in [n.op_type for n in onnx.load(path).graph.node]
    )
    assert [value.name for value in found.inputs] == ["a"]
    part = surgeon.extract(model, outputs="b")
    assert [value.name for value in part.inputs] == ["x"]
    for text in (surgeon.shown(found), surgeon.shown(part)):
        assert "1 weight is an input too, which `listed-constants` ends" in text
