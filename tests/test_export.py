"""Export: what is recorded is what PyTorch computes, and what fails leaves nothing behind."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from surgeon.errors import OutputError, SurgeonError
from surgeon.export import export

Modules = Callable[..., Any]


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.fixture
def module(torch: Any) -> Modules:
    """Make a module of a forward function, with submodules by name."""

    def make(forward: Callable[..., Any], **parts: Any) -> Any:
        made = type("Made", (torch.nn.Module,), {"forward": forward})()
        for name, part in parts.items():
            made.add_module(name, part)
        return made

    return make


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def run(path: Path, recorded: Any) -> dict[str, Any]:
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    given = {key[3:]: recorded[key] for key in recorded if key.startswith("in.")}
    outputs = [output.name for output in session.get_outputs()]
    return dict(zip(outputs, session.run(outputs, given), strict=True))


def test_says_how_to_get_pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(SurgeonError, match="PyTorch cannot be imported") as caught:
        export(None, (), tmp_path / "m.onnx")
    assert caught.value.mend == "Run `pip install onnx-recipe-surgeon[torch]`."


def test_refuses_a_missing_folder_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="does not exist"):
        export(None, (), tmp_path / "nowhere" / "m.onnx")


def test_refuses_a_folder_as_the_file(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="this is a folder"):
        export(None, (), tmp_path)


@pytest.mark.slow
def test_records_what_the_file_computes_at_every_size(
    torch: Any, module: Modules, tmp_path: Path
) -> None:
    net = module(lambda self, x: self.linear(x).relu(), linear=torch.nn.Linear(3, 4))
    path = export(
        net,
        torch.randn(2, 3),
        tmp_path / "net.onnx",
        input_names=["x"],
        output_names=["y"],
        dynamic_axes={"x": {0: "batch"}, "y": {0: "batch"}},
        extra_inputs=[torch.randn(1, 3), (torch.randn(5, 3),)],
    )
    assert path == tmp_path / "net.onnx"
    assert names_in(tmp_path) == ["net.0.npz", "net.1.npz", "net.2.npz", "net.onnx"]
    for at, batch in enumerate([2, 1, 5]):
        recorded = np.load(tmp_path / f"net.{at}.npz")
        assert sorted(recorded) == ["in.x", "out.y"]
        assert recorded["in.x"].shape == (batch, 3)
        np.testing.assert_allclose(run(path, recorded)["y"], recorded["out.y"], atol=1e-6)


def test_keeps_what_no_symbolic_knows_as_aten(torch: Any, module: Modules, tmp_path: Path) -> None:
    pool = torch.nn.AdaptiveAvgPool2d((3, 2))
    path = export(
        module(lambda self, x: self.pool(x), pool=pool), torch.randn(1, 2, 7, 5), tmp_path / "a"
    )
    nodes = onnx.load(path).graph.node
    assert [(n.domain, n.op_type) for n in nodes if n.domain] == [
        ("org.pytorch.aten", "adaptive_avg_pool2d")
    ]
    assert names_in(tmp_path) == ["a", "a.0.npz"]


def test_exports_in_evaluation_mode_and_gives_each_flag_back(
    torch: Any, module: Modules, tmp_path: Path
) -> None:
    net = module(
        lambda self, x: self.norm(self.drop(x)),
        drop=torch.nn.Dropout(0.5),
        norm=torch.nn.BatchNorm1d(3),
    )
    net.train()
    net.norm.eval()  # frozen, as in fine-tuning
    x = torch.randn(4, 3)
    path = export(net, x, tmp_path / "net.onnx", input_names=["x"], output_names=["y"])
    assert (net.training, net.drop.training, net.norm.training) == (True, True, False)
    assert net.norm.num_batches_tracked == 0
    recorded = np.load(tmp_path / "net.0.npz")
    np.testing.assert_allclose(recorded["out.y"], x.numpy(), rtol=1e-4)
    np.testing.assert_allclose(run(path, recorded)["y"], recorded["out.y"], atol=1e-6)


def test_gives_the_flags_back_after_a_failure(torch: Any, module: Modules, tmp_path: Path) -> None:
    net = module(lambda self, x: self.linear(x), linear=torch.nn.Linear(3, 4))
    with pytest.raises(SurgeonError, match="the module fails in PyTorch itself"):
        export(net, torch.randn(2, 5), tmp_path / "net.onnx")
    assert net.training
    assert net.linear.training


def test_finds_out_a_module_that_draws_numbers(torch: Any, module: Modules, tmp_path: Path) -> None:
    noisy = module(lambda self, x: torch.nn.functional.dropout(x, training=True))
    with pytest.raises(SurgeonError, match="something else each time"):
        export(noisy, torch.randn(2, 30), tmp_path / "net.onnx")
    assert names_in(tmp_path) == []


def test_names_nested_outputs_as_the_exporter_does(
    torch: Any, module: Modules, tmp_path: Path
) -> None:
    net = module(lambda self, x: {"sum": x + 1, "parts": (x * 2, [x * 3, None])})
    path = export(
        net, torch.arange(3.0), tmp_path / "net.onnx", input_names=["x"], output_names=list("abc")
    )
    recorded = np.load(tmp_path / "net.0.npz")
    assert recorded["out.a"].tolist() == [1, 2, 3]
    assert recorded["out.b"].tolist() == [0, 2, 4]
    assert recorded["out.c"].tolist() == [0, 3, 6]
    computed = run(path, recorded)
    assert {name: value.tolist() for name, value in computed.items()} == {
        name: recorded[f"out.{name}"].tolist() for name in "abc"
    }


def test_takes_arguments_by_name_in_the_order_of_forward(
    torch: Any, module: Modules, tmp_path: Path
) -> None:
    def forward(self: Any, a: Any, b: Any = None, c: Any = None) -> Any:
        return a - b * 2 + c * 10

    one = torch.ones(2)
    path = export(
        module(forward),
        (one, {"c": one * 3, "b": one * 2}),
        tmp_path / "net.onnx",
        input_names=["a", "b", "c"],
        output_names=["y"],
    )
    recorded = np.load(tmp_path / "net.0.npz")
    assert recorded["in.b"].tolist() == [2, 2]
    assert recorded["in.c"].tolist() == [3, 3]
    assert recorded["out.y"].tolist() == run(path, recorded)["y"].tolist() == [27, 27]


def test_records_inputs_as_they_were_given(torch: Any, module: Modules, tmp_path: Path) -> None:
    x = torch.ones(3)
    export(
        module(lambda self, x: x.add_(1) * 2),
        x,
        tmp_path / "net.onnx",
        input_names=["x"],
        output_names=["y"],
    )
    recorded = np.load(tmp_path / "net.0.npz")
    assert x.tolist() == recorded["in.x"].tolist() == [1, 1, 1]
    assert recorded["out.y"].tolist() == [4, 4, 4]


def test_refuses_dynamic_axes_of_an_unknown_name(
    torch: Any, module: Modules, tmp_path: Path
) -> None:
    with pytest.raises(SurgeonError, match="`imgae`, which is no input or output") as caught:
        export(
            module(lambda self, x: x + 1),
            torch.ones(2),
            tmp_path / "net.onnx",
            input_names=["image"],
            output_names=["y"],
            dynamic_axes={"imgae": {0: "batch"}},
        )
    assert "`image`, `y`" in caught.value.mend
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 1)])
def test_refuses_a_set_that_the_file_does_not_take(
    torch: Any, module: Modules, tmp_path: Path, shape: tuple[int, ...]
) -> None:
    with pytest.raises(SurgeonError, match=r"`x` is \[.*\], and the file takes \['batch', 3\]"):
        export(
            module(lambda self, x: x + 1),
            torch.ones(2, 3),
            tmp_path / "net.onnx",
            input_names=["x"],
            output_names=["y"],
            dynamic_axes={"x": {0: "batch"}},
            extra_inputs=[torch.ones(shape)],
        )
    assert names_in(tmp_path) == []


def test_refuses_an_input_that_the_graph_has_lost(
    torch: Any, module: Modules, tmp_path: Path
) -> None:
    x = torch.ones(2)
    with pytest.raises(SurgeonError, match=r"the file has 1 inputs \(x\) and PyTorch 2 tensors"):
        export(
            module(lambda self, pair: pair["a"] + 1),
            ({"pair": {"a": x, "b": x}},),
            tmp_path / "net.onnx",
            input_names=["x"],
        )


def test_a_failed_export_leaves_the_former_one(torch: Any, module: Modules, tmp_path: Path) -> None:
    def forward(self: Any, x: Any) -> Any:
        if torch.jit.is_tracing() and x.shape[0] == 3:
            raise RuntimeError("not while tracing")
        return x + 1

    net, path = module(forward), tmp_path / "net.onnx"
    export(net, torch.ones(2), path, input_names=["x"])
    before = {name: (tmp_path / name).read_bytes() for name in names_in(tmp_path)}
    with pytest.raises(SurgeonError, match="cannot export the module: not while tracing"):
        export(net, torch.ones(3), path)
    assert {name: (tmp_path / name).read_bytes() for name in names_in(tmp_path)} == before


def test_sets_of_an_earlier_export_go(torch: Any, module: Modules, tmp_path: Path) -> None:
    for name in ["net.1.npz", "net.7.npz", "net.mine.npz", "other.1.npz"]:
        (tmp_path / name).write_bytes(b"")
    export(module(lambda self, x: x + 1), torch.ones(2), tmp_path / "net.onnx")
    assert names_in(tmp_path) == ["net.0.npz", "net.mine.npz", "net.onnx", "other.1.npz"]


def test_refuses_a_dtype_that_cannot_be_recorded(
    torch: Any, module: Modules, tmp_path: Path
) -> None:
    with pytest.raises(SurgeonError, match=r"a tensor of torch.bfloat16 cannot be recorded"):
        export(
            module(lambda self, x: x + 1),
            torch.ones(2, dtype=torch.bfloat16),
            tmp_path / "net.onnx",
        )


def test_a_pytorch_of_another_numpy_is_said_to_be(
    torch: Any, module: Modules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(tensor: Any) -> None:
        raise RuntimeError("Numpy is not available")

    monkeypatch.setattr(torch.Tensor, "numpy", refuse)
    with pytest.raises(SurgeonError, match="Numpy is not available") as caught:
        export(module(lambda self, x: x + 1), torch.ones(2), tmp_path / "net.onnx")
    assert 'pip install "numpy<2"' in (caught.value.mend or "")
