"""Broken recipes, models and paths: one message, an exit code, and no file lost."""

import os
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from command import run
from command_files import HEAD, net, recipe, refused
from onnx import TensorProto

from surgeon.cli.options import read_shapes

__all__ = ["net"]  # a fixture of `command_files`

BAD_RECIPES = {
    "operator": ("match: y = Neg (x)", "match: y = Ngg (x)", ":7:12", "Did you mean `Neg`?"),
    "attribute": (
        "replace: y = Relu (x)",
        "replace: y = Softmax <axs = 1> (x)",
        ":8:",
        "Did you mean `axis`?",
    ),
    "key": (
        "    exact:",
        "    wher: [x.rank == 2]\n    exact:",
        ":6:5",
        "Did you mean `where`?",
    ),
    "name": ("replace: y = Relu (x)", "replace: y = Relu (z)", ":8:", "unknown name `z`"),
    "not YAML": ("rules:", "rules: [", "", "it is not YAML"),
}


@pytest.mark.parametrize("kind", BAD_RECIPES)
def test_a_wrong_recipe(kind: str, net: Path, tmp_path: Path) -> None:
    good, bad, place, mend = BAD_RECIPES[kind]
    path = recipe(tmp_path)
    path.write_text(path.read_text().replace(good, bad))
    refused(run("apply", path, net, tmp_path / "o.onnx"), 2, f"{path}{place}", mend)
    assert not (tmp_path / "o.onnx").exists()


def test_a_mistyped_bundled_recipe(net: Path, tmp_path: Path) -> None:
    refused(run("apply", "dynm", net, tmp_path / "o.onnx"), 2, "Did you mean `dymn`?")


BAD_MODELS = {
    "missing": (None, "no such file"),
    "empty": (b"", "the file is empty"),
    "zip": (b"PK\x03\x04" + b"\0" * 99, "a zip archive"),
    "html": (b"<!DOCTYPE html><html>Not found</html>", "an HTML page"),
    "noise": (bytes(range(256)), "no ONNX model"),
}


@pytest.mark.parametrize("command", ["apply", "inspect", "verify", "explain"])
@pytest.mark.parametrize("kind", BAD_MODELS)
def test_a_file_that_is_no_model(kind: str, command: str, double: Path, tmp_path: Path) -> None:
    data, phrase = BAD_MODELS[kind]
    path = tmp_path / "in.onnx"
    if data is not None:
        path.write_bytes(data)
    arguments = {
        "apply": [double, path, tmp_path / "o.onnx"],
        "inspect": [path],
        "verify": [path, path],
        "explain": [double, path],
    }[command]
    refused(run(command, *arguments), 4, phrase, str(path))
    assert not (tmp_path / "o.onnx").exists()


@pytest.mark.parametrize("keep", [0.05, 0.5, 0.9, 0.999])
def test_a_truncated_model(keep: float, samples: Path, tmp_path: Path) -> None:
    data = (samples / "flatten_pool" / "flatten_pool.onnx").read_bytes()
    path = tmp_path / "in.onnx"
    path.write_bytes(data[: int(len(data) * keep)])
    refused(run("apply", "shape-chains", path, tmp_path / "o.onnx"), 4, "truncated")
    assert not (tmp_path / "o.onnx").exists()


def test_missing_external_data(net: Path, double: Path, tmp_path: Path) -> None:
    model = onnx.load(net)
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="gone.bin")
    model.graph.initializer.append(tensor)
    model.graph.node[-1].input[1] = "w"
    net.write_bytes(model.SerializeToString())
    refused(run("apply", double, net, tmp_path / "o.onnx", "--no-verify"), 4, "gone.bin")
    refused(run("apply", "clean", net, tmp_path / "o.onnx"), 4, "`gone.bin` is missing")
    assert not (tmp_path / "o.onnx").exists()


def test_an_output_in_a_folder_that_is_not_there(net: Path, double: Path, tmp_path: Path) -> None:
    out = tmp_path / "no" / "o.onnx"
    refused(run("apply", double, net, out), 5, f"the folder `{out.parent}` does not exist")
    assert not out.parent.exists()


def test_an_output_in_a_read_only_folder(net: Path, double: Path, tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o555)
    if os.access(folder, os.W_OK):
        pytest.skip("permissions do not bind this user")
    refused(run("apply", double, net, folder / "o.onnx"), 5, "may not be written to")


def test_an_output_that_is_a_folder(net: Path, double: Path, tmp_path: Path) -> None:
    refused(run("apply", double, net, tmp_path), 5, "is a folder", str(tmp_path / "net.onnx"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no such files here")
def test_an_output_that_is_no_regular_file(net: Path, double: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    refused(run("apply", double, net, tmp_path / "pipe"), 5, "no regular file")


def test_an_output_that_is_the_input(net: Path, double: Path, tmp_path: Path) -> None:
    before = net.read_bytes()
    (tmp_path / "link.onnx").symlink_to(net)
    for out in (net, tmp_path / "." / "net.onnx", tmp_path / "link.onnx"):
        refused(run("apply", double, net, out), 5, "the output is the file that is read")
    assert net.read_bytes() == before


def test_files_that_would_be_written_over(net: Path, double: Path, tmp_path: Path) -> None:
    out = tmp_path / "o.onnx"
    recorded = tmp_path / "r.json"
    np.savez(tmp_path / "r.npz", x=1)
    (tmp_path / "r.npz").rename(recorded)
    refused(
        run("apply", double, net, out, "--reference", recorded, "--report", recorded),
        5,
        "the report is the file that is read",
    )
    both = tmp_path / "both.json"
    refused(run("apply", double, net, both, "--report", both), 2, "the report is the output too")
    refused(run("apply", double, net, out, "--log-file", net), 5, "no log of surgeon")
    refused(run("apply", double, net, tmp_path / "none" / "r"), 5)
    refused(run("apply", double, net, out, "--report", tmp_path / "no" / "r.json"), 5)
    assert not out.exists()


def test_data_values_and_what_a_recipe_joins_are_not_written_over(
    net: Path, double: Path, tmp_path: Path
) -> None:
    data, number = tmp_path / "d.npz", tmp_path / "v.npy"
    np.savez(data, x=np.ones((2, 4), np.float32))
    np.save(number, np.ones((2, 4), np.float32))
    said = "the output is the file that is read"
    refused(run("apply", double, net, data, "--data", data), 5, said)
    refused(run("apply", double, net, number, "--value", f"x={number}"), 5, said)
    refused(run("extract", net, data, "--to", "y", "--data", data), 5, said)
    other = tmp_path / "other.onnx"
    other.write_bytes(net.read_bytes())
    recipe = tmp_path / "join.yaml"
    recipe.write_text("surgeon: 1\nname: join\nallow: [contract]\nbehind: {file: other.onnx}\n")
    refused(run("apply", recipe, net, other), 5, said)
    assert other.read_bytes() == net.read_bytes()
    assert data.read_bytes()[:2] == b"PK"


USAGE = {
    "an input that is not there": (["--shape", "xx=1,4"], "the model has no input `xx`"),
    "another rank": (["--shape", "x=1,4,4"], "has 2 dimensions, not 3"),
    "no shape": (["--shape", "x"], "`x` is not an input's shape"),
    "no size": (["--shape", "x=-1,4"], "`-1` is not a dimension's size"),
    "a fraction": (["--shape", "x=2.5,4"], "`2.5` is not a dimension's size"),
    "nothing known": (["--shape", "x=?,4"], "`?` is not a dimension's size"),
    "a vast size": (
        ["--shape", "x=99999999999999999999,4"],
        "`99999999999999999999` is not a dimension's size",
    ),
    "a digit that is no decimal": (["--shape", "x=\u00b2,4"], "`\u00b2` is not a dimension's size"),
    "more digits than Python reads": (
        ["--shape", "x=" + "9" * 5000 + ",4"],
        "is not a dimension's size",
    ),
    "two shapes": (["--shape", "x=1,4", "--shape", "x=2,4"], "input `x` has two shapes"),
    "an unknown dim": (["--assume", "t % 32 == 0"], "no input has a dimension named `t`"),
    "an unknown fact": (["--assume", "n is nice"], "cannot use the assumption"),
    "a multiple of nothing": (["--assume", "n % 0 == 0"], "cannot use the assumption"),
    "a remainder that none is": (["--assume", "n % 4 == 9"], "cannot use the assumption"),
    "a vast assumption": (["--assume", f"n == {1 << 31}"], "cannot use the assumption"),
    "no way": (["--reference", "trch"], "there is no reference `trch`"),
    "two ways": (["--reference", "torch", "--reference", "witness"], "beside another"),
    "check and no check": (["--no-verify", "--reference", "witness"], "another option asks for"),
    "no form": (["--report", "report.pdf"], "no form of report"),
}


@pytest.mark.parametrize("kind", USAGE)
def test_a_wrong_option(kind: str, net: Path, double: Path, tmp_path: Path) -> None:
    options, phrase = USAGE[kind]
    refused(run("apply", double, net, tmp_path / "o.onnx", *options), 2, phrase)
    assert not (tmp_path / "o.onnx").exists()


def test_arguments_that_are_missing_or_in_another_order(net: Path, double: Path) -> None:
    form = "surgeon apply RECIPE... IN OUT"
    refused(run("apply", double), 2, "input and output are missing", form)
    refused(run("apply", double, net), 2, "the output is missing", form)
    refused(run("apply", net, "out.onnx"), 2, "a recipe is missing", form)
    refused(run("apply", net, "out.onnx", double), 2, "looks like a recipe", form)
    refused(run("apply", net, net, "out.onnx"), 2, "stands where a recipe is wanted", form)
    assert not Path("out.onnx").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x=1,1,128,t", {"x": [1, 1, 128, "t"]}),
        ("x=[1, t]", {"x": [1, "t"]}),
        ("a=b=2", {"a=b": [2]}),
        ("x=", {"x": []}),
    ],
)
def test_shapes_are_read(text: str, expected: dict[str, list[int | str]]) -> None:
    assert read_shapes([text]) == expected


@pytest.mark.parametrize("command", ["test", "batch", "apply"])
def test_a_name_that_no_file_can_have(
    command: str, net: Path, double: Path, tmp_path: Path
) -> None:
    name = "n" * 5000
    arguments = {
        "test": ("test", name),
        "batch": ("batch", double, name, tmp_path / "dest"),
        "apply": ("apply", double, net, name),
    }
    refused(run(*arguments[command]), 2, "no file can have a name as long as this")


@pytest.mark.slow
def test_names_of_strangers_reach_no_terminal(double: Path, tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        f"{HEAD} net (float[n] x) => (float[n] y) {{a = Neg(x) b = Neg(a) y = Sin(b)}}"
    )
    model.graph.node[1].name = "evil\x1b]0;title\x07\n[red]" + "long" * 500
    model.graph.output[0].name = model.graph.node[2].output[0] = "out\x1b[2J"
    path = tmp_path / "evil.onnx"
    path.write_bytes(model.SerializeToString())
    for command in (
        ["apply", double, path, tmp_path / "o.onnx", "-v"],
        ["inspect", path],
        ["explain", "shape-chains", path],
        ["verify", path, path],
    ):
        result = run(*command)
        assert result.exit_code == 0, result.output
        assert "\x1b" not in result.output
        assert "\x07" not in result.output
