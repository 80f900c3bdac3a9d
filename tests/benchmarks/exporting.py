"""PyTorch's own samples of its operators and modules, as an older PyTorch exports them.

    OLD/bin/python tests/benchmarks/exporting.py FOLDER --dtype float32 --dtype int64 --samples 4
    python tests/benchmarks/exports.py FOLDER

The first writes the files whose exporter left nodes outside the standard, each with inputs and
PyTorch's outputs; the second sends them through `aten`. OLD is an environment with torch 1.13 or
later, numpy<2, onnx and expecttest; surgeon need not be there. Linux: a sample that kills PyTorch
costs a forked process.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import os
import re
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch

TYPES = torch.onnx.OperatorExportTypes
MODES = {"fallback": TYPES.ONNX_ATEN_FALLBACK, "aten": TYPES.ONNX_ATEN}
OPSETS = (9, 11, 13, 16)
SECONDS = 240  # for all samples of an operator


class Called(torch.nn.Module):
    """A function or module with the arguments of a sample; its tensors are the inputs."""

    def __init__(self, called: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        super().__init__()
        self.called = called
        self.tensors: list[torch.Tensor] = []
        self.form = [self._taken(arguments), self._taken(named)]

    def _taken(self, value: Any) -> Any:
        """The value with numbers in place of its tensors."""
        if isinstance(value, torch.Tensor):
            self.tensors.append(value.detach().clone())
            return _Place(len(self.tensors) - 1)
        if isinstance(value, dict):
            return {key: self._taken(each) for key, each in value.items()}
        if type(value) in (list, tuple):
            return type(value)(self._taken(each) for each in value)
        return value

    def forward(self, *tensors: torch.Tensor) -> Any:
        """The result of the call."""
        arguments, named = (_filled(value, tensors) for value in self.form)
        return self.called(*arguments, **named)


class _Place(int):
    """Where a tensor stood."""


def _filled(value: Any, tensors: tuple[torch.Tensor, ...]) -> Any:
    if isinstance(value, _Place):
        return tensors[value]
    if isinstance(value, dict):
        return {key: _filled(each, tensors) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_filled(each, tensors) for each in value)
    return value


def exported(module: Any, tensors: list[torch.Tensor], mode: str, opset: int, dynamic: bool) -> Any:
    """The model, with what the exporter left of ATen."""
    file, names = io.BytesIO(), [f"x{i}" for i in range(len(tensors))]
    axes = {
        name: {axis: f"{name}_{axis}" for axis in range(tensor.dim())}
        for name, tensor in zip(names, tensors, strict=True)
    }
    newer: dict[str, Any] = {"dynamo": False} if torch.__version__ >= "2.5" else {}
    export: Any = torch.onnx.export
    export(
        module,
        tuple(t.clone() for t in tensors),
        file,
        operator_export_type=MODES[mode],
        opset_version=opset,
        training=torch.onnx.TrainingMode.EVAL,
        input_names=names,
        dynamic_axes=axes if dynamic else {},
        **newer,
    )
    return onnx.load_from_string(file.getvalue())


def leaves(value: Any) -> Iterator[Any]:
    """The tensors of a result, one by one."""
    if isinstance(value, (tuple, list)):
        for each in value:
            yield from leaves(each)
    elif isinstance(value, torch.Tensor):
        yield torch.view_as_real(value.resolve_conj()) if value.is_complex() else value


def nonstandard(graph: Any) -> set[str]:
    """The operators outside the standard."""
    found = set()
    for node in graph.node:
        if node.domain not in ("", "ai.onnx") or node.op_type == "ATen":
            called = [a.s.decode() for a in node.attribute if a.name == "operator"]
            found.add(called[0] if called else f"{node.domain}::{node.op_type}")
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                found |= nonstandard(attribute.g)
    return found


def _resized(tensors: list[torch.Tensor], way: int) -> list[torch.Tensor] | None:
    """The same inputs in other sizes: equal sizes stay equal; values are drawn from those given."""

    def size(dim: int, axis: int) -> int:
        if way == 0:
            return dim + 1 if dim > 1 else dim
        if way == 1:
            return dim * 2 if dim > 1 else dim
        return dim * 2 if axis == 0 else dim

    draw = np.random.default_rng(way)
    found = []
    for tensor in tensors:
        shape = [size(dim, axis) for axis, dim in enumerate(tensor.shape)]
        if tensor.numel():
            flat = tensor.contiguous().reshape(-1).numpy()
            array = flat[draw.integers(0, flat.size, size=shape)]
            found.append(torch.from_numpy(np.array(array)).to(tensor.dtype))
        else:
            found.append(tensor.clone())
    same = all(a.shape == b.shape for a, b in zip(found, tensors, strict=True))
    return None if same else found


def runs(module: Any, tensors: list[torch.Tensor], dynamic: bool) -> dict[str, Any]:
    """Inputs and outputs, at the traced size and, where it is dynamic, at others."""
    found: dict[str, Any] = {}
    ways = [tensors, *(_resized(tensors, way) for way in range(3 if dynamic else 0))]
    for number, given in enumerate(ways):
        if given is None:
            continue
        try:
            with torch.no_grad():
                results = list(leaves(module(*[t.clone() for t in given])))
        except Exception:
            if number == 0:
                raise
            continue
        for i, tensor in enumerate(given):
            found[f"{number}_x{i}"] = tensor.resolve_neg().numpy()
        for i, tensor in enumerate(results):
            found[f"{number}_y{i}"] = tensor.detach().resolve_neg().numpy()
    return found


class Shelf:
    """The folder that is written."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, {"exported": 0, "standard": 0, "not exported": 0}
        folder.mkdir(parents=True, exist_ok=True)

    def put(self, name: str, module: Any, tensors: list[torch.Tensor], turn: int) -> None:
        """Export in both modes, static and dynamic, each at the next opset."""
        if any(t.is_complex() for t in tensors):
            return
        last = ("aten", turn % 2 == 1)
        for place, (mode, dynamic) in enumerate((("fallback", False), ("fallback", True), last)):
            opset = OPSETS[(turn + place) % 4]
            where = f"{name}-{mode}{opset}{'d' if dynamic else 's'}"
            where = re.sub(r"[^\w.-]+", "_", where)
            try:
                data = runs(module, tensors, dynamic)
                model = exported(module, tensors, mode, opset, dynamic)
            except Exception as error:
                self._note(where, "not exported", [], str(error).split("\n")[0][:150])
                continue
            left = sorted(nonstandard(model.graph))
            if left:
                (self.folder / f"{where}.onnx").write_bytes(model.SerializeToString())
                np.savez(self.folder / f"{where}.npz", **data)
            self._note(where, "exported" if left else "standard", left, "")

    def _note(self, name: str, outcome: str, left: list[str], why: str) -> None:
        row = {"name": name, "outcome": outcome, "left": left, "why": why}
        with (self.folder / "index.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")


def operators(dtype: str, samples: int, only: str) -> Iterator[tuple[str, Any]]:
    """A name, and what yields the samples of that operator."""
    from torch.testing._internal.common_methods_invocations import op_db

    kind = getattr(torch, dtype)
    for operator in op_db:
        if not re.search(only, operator.name) or kind not in operator.dtypes:
            continue

        def sampled(operator: Any = operator) -> Iterator[tuple[Any, list[torch.Tensor]]]:
            for sample in itertools.islice(operator.sample_inputs("cpu", kind), samples):
                called = Called(operator.op, (sample.input, *sample.args), sample.kwargs).eval()
                yield called, called.tensors

        variant = f".{operator.variant_test_name}" if operator.variant_test_name else ""
        yield f"{operator.name}{variant}-{dtype}", sampled


def modules(dtype: str, samples: int, only: str) -> Iterator[tuple[str, Any]]:
    """A name, and what yields the samples of that module."""
    from torch.testing._internal.common_modules import module_db

    kind = getattr(torch, dtype)
    for info in module_db:
        if not re.search(only, info.name) or kind not in info.dtypes:
            continue

        def sampled(info: Any = info) -> Iterator[tuple[Any, list[torch.Tensor]]]:
            given = info.module_inputs_func(
                info, device="cpu", dtype=kind, requires_grad=False, training=False
            )
            for sample in itertools.islice(given, samples):
                if sample.forward_input is None:
                    continue
                made = sample.constructor_input
                module = info.module_cls(*made.args, **made.kwargs).to(kind).eval()
                called = Called(module, sample.forward_input.args, sample.forward_input.kwargs)
                yield called.eval(), called.tensors

        yield f"{info.name}-{dtype}", sampled


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dtype", action="append", help="float32, where it is left out")
    parser.add_argument("--samples", type=int, default=4, help="of each operator and dtype")
    parser.add_argument("--only", default="", help="operators whose name this expression finds")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    shelf = Shelf(args.folder)
    for dtype in args.dtype or ["float32"]:
        for turn, (name, sampled) in enumerate(
            itertools.chain(
                operators(dtype, args.samples, args.only),
                modules(dtype, args.samples, args.only),
            )
        ):
            child = os.fork()
            if child == 0:
                signal.alarm(SECONDS)
                torch.set_num_threads(1)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                try:
                    torch.manual_seed(0)
                    for number, (module, tensors) in enumerate(sampled()):
                        shelf.put(f"{name}-{number}", module, tensors, turn + number)
                finally:
                    os._exit(0)
            _, status = os.waitpid(child, 0)
            if status:
                print(f"{name}: PyTorch ended by {status}")


if __name__ == "__main__":
    main()
