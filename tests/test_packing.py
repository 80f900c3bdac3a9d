"""External data packed into one file of their own, with what the model itself held."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from command import run
from command_files import refused

from surgeon.errors import ModelError, OutputError, RecipeError
from surgeon.model import Model
from surgeon.runtime import Session

WEIGHTS = {"a": (64, 64), "b": (64, 64), "c": (64,)}
TEXT = """
<ir_version: 10, opset_import: ["": 21]>
g (float[n,64] x, bool yes) => (float[n,64] y) {
  p = MatMul (x, a)
  q = MatMul (p, b)
  r = Add (q, c)
  s = If (yes) <
    then_branch = t () => (s1) { s1 = Mul (r, d) },
    else_branch = e () => (s2) { s2 = Neg (r) }
  >
  y = Neg (s)
}
"""


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """Two matrices in a file each, among what nothing reads; a line and a body's weight inside."""
    model = onnx.parser.parse_model(TEXT)
    rng = np.random.default_rng(0)
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    for name, shape in WEIGHTS.items():
        array = rng.normal(size=shape).astype(np.float32)
        tensor = onnx.numpy_helper.from_array(array, name)
        if array.ndim == 2:
            (folder / "deep" / name).write_bytes(bytes(512) + tensor.raw_data + bytes(9000))
            onnx.external_data_helper.set_external_data(tensor, f"deep/{name}", 512, array.nbytes)
            tensor.ClearField("raw_data")
        model.graph.initializer.append(tensor)
    inner = onnx.helper.make_tensor("d", 1, [8, 1, 64], rng.normal(size=512).astype(np.float32))
    assert not inner.raw_data  # as numbers, one by one
    model.graph.node[3].attribute[0].g.initializer.append(inner)
    path = folder / "net.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def computed(path: Path) -> np.ndarray:
    x = np.random.default_rng(1).normal(size=(2, 64)).astype(np.float32)
    return Session(path).run({"x": x, "yes": np.array(True)})["y"]


@pytest.mark.slow
def test_all_that_is_read_goes_into_one_file(net: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "net.onnx"
    out.parent.mkdir()
    for _ in range(2):  # a second time the file is there
        assert run("apply", "clean", net, out, "--external-data", "pack").exit_code == 0
    (data,) = (path for path in out.parent.iterdir() if path != out)
    assert data.name.startswith("net.onnx.")
    assert data.stat().st_size < 2 * 4096 * 4 + 2 * 4096  # and not what lay around
    assert out.stat().st_size < 4000 + 256
    assert (computed(out) == computed(net)).all()
    onnx.checker.check_model(str(out), full_check=True)
    assert onnx.load(out).graph.initializer[2].data_location == onnx.TensorProto.DEFAULT  # small


def test_a_model_of_one_file_becomes_two(tmp_path: Path, net: Path) -> None:
    whole, out = tmp_path / "whole.onnx", tmp_path / "out.onnx"
    Model.load(net).save(whole, external_data="inline")
    Model.load(whole).save(out, external_data="pack")
    assert out.stat().st_size < 4096 < whole.stat().st_size
    assert (computed(out) == computed(net)).all()


def test_what_two_tensors_read_stands_there_once(net: Path, tmp_path: Path) -> None:
    model = onnx.load(net, load_external_data=False)
    model.graph.initializer[1].external_data[0].value = "deep/a"
    net.write_bytes(model.SerializeToString())
    Model.load(net).save(tmp_path / "out.onnx", external_data="pack")
    (data,) = tmp_path.glob("*.data")
    assert data.stat().st_size < 64 * 64 * 4 + 2 * 4096
    assert (computed(tmp_path / "out.onnx") == computed(net)).all()


def test_tensors_that_overlap_are_not_multiplied(net: Path, tmp_path: Path) -> None:
    model = onnx.load(net, load_external_data=False)
    first = model.graph.initializer[0]
    for offset in range(0, 4096, 64):
        other = model.graph.initializer.add()
        other.CopyFrom(first)
        other.name = f"a{offset}"
        other.external_data[1].value = str(offset)
    net.write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match="tensors overlap in the data file `a`"):
        Model.load(net).save(tmp_path / "out.onnx", external_data="pack")
    assert not [*tmp_path.glob("*out*")]


@pytest.mark.slow
def test_in_place_the_old_data_stay(net: Path) -> None:
    before = computed(net)
    assert run("apply", "clean", net, "--in-place", "--external-data", "pack").exit_code == 0
    assert (computed(net) == before).all()
    assert (computed(net.with_name("net.onnx.bak")) == before).all()


def outside(path: Path) -> set[str]:
    """The initializers whose values lie in another file."""
    found = onnx.load(path, load_external_data=False).graph.initializer
    return {each.name for each in found if each.data_location == each.EXTERNAL}


@pytest.mark.parametrize(
    ("above", "there"), [(None, "ab"), (1, "abc"), (256, "abc"), (257, "ab"), (1 << 14, "ab")]
)
def test_the_data_file_is_called_as_told_and_takes_what_is_large(
    net: Path, tmp_path: Path, above: int | None, there: str
) -> None:
    out = tmp_path / "out" / "net.onnx"
    out.parent.mkdir()
    for _ in range(2):  # a second time it holds the same
        Model.load(net).save(
            out, external_data="pack", external_name="weights.bin", external_above=above
        )
    assert {path.name for path in out.parent.iterdir()} == {"net.onnx", "weights.bin"}
    assert outside(out) == set(there)
    assert (computed(out) == computed(net)).all()


def test_what_is_smaller_comes_inside_from_where_it_lay(net: Path, tmp_path: Path) -> None:
    out = tmp_path / "net.onnx"
    Model.load(net).save(
        out, external_data="pack", external_name="weights.bin", external_above=1 << 20
    )
    assert not outside(out)
    assert not [*tmp_path.glob("weights.bin")]  # nothing is left for it
    assert (computed(out) == computed(net)).all()


def test_no_file_of_the_chosen_name_is_written_over(net: Path, tmp_path: Path) -> None:
    """An older model may read it."""
    out, other = tmp_path / "out.onnx", tmp_path / "weights.bin"
    other.write_bytes(b"another's")
    asked = ["--external-data", "pack", "--external-name", "weights.bin"]
    result = run("apply", "no-ops", net, out, "--no-verify", *asked)
    refused(result, 5, "another file of that name is there, which a model may read")
    with pytest.raises(OutputError, match=r"mend: .*external_name"):
        Model.load(net).save(out, external_data="pack", external_name="weights.bin")
    assert other.read_bytes() == b"another's"
    assert not out.exists()
    link = tmp_path / "link.bin"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(OutputError, match="another file of that name"):
        Model.load(net).save(out, external_data="pack", external_name="link.bin")
    assert link.is_symlink()
    model = onnx.load(net, load_external_data=False)  # nor the data file of the model itself
    mine = net.with_name("deep") / "a"
    before = mine.read_bytes()
    model.graph.initializer[0].external_data[0].value = "a"
    (net.with_name("a")).write_bytes(before)
    net.write_bytes(model.SerializeToString())
    with pytest.raises(OutputError, match="another file of that name"):
        Model.load(net).save(net, external_data="pack", external_name="a")
    assert net.with_name("a").read_bytes() == before


NO_NAMES = ["", "../w.bin", "deep/w.bin", "/w.bin", "C:w.bin", "a\\b", ".w", "OUT.onnx", "a\0b"]
NO_NAMES += ["a\nb", "a\x1b[1m", "w?.bin", "CON", "nul.bin", "w.", "w ", "out.onnx.bak", "w" * 256]


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_that_is_none_beside_the_model_is_refused(
    net: Path, tmp_path: Path, name: str
) -> None:
    with pytest.raises(RecipeError, match="is no name of a file beside the model"):
        Model.load(net).save(tmp_path / "out.onnx", external_data="pack", external_name=name)


def test_a_data_file_that_is_cut_off_is_not_put_into_the_model(net: Path, tmp_path: Path) -> None:
    """Nobody has looked at a model that was only loaded."""
    data = net.with_name("deep") / "a"
    data.write_bytes(data.read_bytes()[:100])
    for way in ("inline", "pack"):
        with pytest.raises(ModelError, match="`a` cannot be read: the file is too short"):
            Model.load(net).save(tmp_path / "out.onnx", external_data=way)
    assert not (tmp_path / "out.onnx").exists()


@pytest.mark.slow
def test_options_of_the_data_file_want_one(net: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    for option, value in (("--external-name", "w.bin"), ("--external-above", "16M")):
        result = run("extract", net, out, "--to", "r", option, value)
        refused(result, 2, "`--external-data keep` packs nothing")
    wrong = run("apply", "clean", net, out, "--external-data", "pack", "--external-above", "x")
    refused(wrong, 2, "`x` is not a number of bytes")
    with pytest.raises(RecipeError, match=r"^external_above: `-1` is no number of bytes"):
        Model.load(net).save(out, external_data="pack", external_above=-1)
    every = tmp_path / "every.onnx"
    done = run("apply", "clean", net, every, "--external-data", "pack", "--external-above", "0")
    assert done.exit_code == 0, done.output
    assert all(t.data_location == t.EXTERNAL for t in onnx.load(
        every, load_external_data=False).graph.initializer)  # fmt: skip
    cut = run(
        *("extract", net, out, "--to", "q", "--external-data", "pack", "--external-name", "w.bin"),
        *("--external-above", "1K"),
    )
    assert cut.exit_code == 0, cut.output
    assert outside(out) == {"a", "b"}
    assert (tmp_path / "w.bin").is_file()
