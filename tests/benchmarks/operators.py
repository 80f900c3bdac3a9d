"""PyTorch's own samples of its operators, each exported with ATen nodes alone, through `aten`.

    python tests/benchmarks/operators.py --dtype float32 --dtype int64 --samples 4

prints every sample whose result is not PyTorch's, and how many are. What is drawn at random or
left uninitialised differs by nature; so do rows without elements where ONNX leaves them open. The
samples are those of PyTorch's tests (`torch.testing._internal`, no public interface), which ask for
the package `expecttest`.
"""

from __future__ import annotations

import argparse
import io
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import torch

import surgeon

CLOSE = {torch.float16: 2e-2}  # others: 1e-3, absolute and relative


class Module(torch.nn.Module):
    """An operator with the arguments of a sample; its tensors are the inputs."""

    def __init__(self, operator: Any, sample: Any) -> None:
        super().__init__()
        self.operator, self.tensors = operator, []
        self.form = [self._taken(v) for v in (sample.input, tuple(sample.args), sample.kwargs)]

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
        """The operator's result."""
        first, rest, named = (_filled(value, tensors) for value in self.form)
        return self.operator(first, *rest, **named)


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


def exported(module: Module, opset: int) -> onnx.ModelProto:
    """The model, of ATen nodes alone."""
    file = io.BytesIO()
    torch.onnx.export(
        module,
        tuple(t.clone() for t in module.tensors),
        file,
        dynamo=False,
        operator_export_type=torch.onnx.OperatorExportTypes.ONNX_ATEN,
        opset_version=opset,
        do_constant_folding=False,
        input_names=[f"x{i}" for i in range(len(module.tensors))],
    )
    return onnx.load_from_string(file.getvalue())


def leaves(value: Any) -> Iterator[Any]:
    """The tensors of a result, one by one."""
    if isinstance(value, (tuple, list)):
        for each in value:
            yield from leaves(each)
    else:
        yield value


def judged(module: Module, model: onnx.ModelProto, *, verify: bool) -> tuple[str, str]:
    """What became of a sample, and why."""
    wanted = [
        torch.view_as_real(t.resolve_conj()) if t.is_complex() else t
        for t in leaves(module(*[t.clone() for t in module.tensors]))
        if isinstance(t, torch.Tensor)
    ]
    try:
        result = surgeon.apply(model, "aten", verify=verify, allow=["leftover"])
    except surgeon.SurgeonError as error:
        return "refused", error.what
    saved = result.model.to_proto()
    if any(node.domain not in ("", "ai.onnx") for node in saved.graph.node):
        said = [str(m.reason() if callable(m.reason) else m.reason) for m in result.report.misses]
        return "left", "; ".join(sorted({*said, *(r.reason for r in result.report.refusals)}))
    try:
        session = ort.InferenceSession(saved.SerializeToString())
        taken = {value.name for value in session.get_inputs()}
        feeds = {f"x{i}": t.numpy() for i, t in enumerate(module.tensors) if f"x{i}" in taken}
        found = session.run(None, feeds)
    except Exception as error:
        return "does not run", str(error)
    if len(found) != len(wanted):
        return "wrong", f"{len(found)} outputs, not {len(wanted)}"
    for mine, its in zip(found, wanted, strict=True):
        theirs, limit = its.detach().resolve_neg().numpy(), CLOSE.get(its.dtype, 1e-3)
        if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
            return (
                "wrong",
                f"{mine.dtype}{list(mine.shape)}, not {theirs.dtype}{list(theirs.shape)}",
            )
        if not np.allclose(mine, theirs, rtol=limit, atol=limit, equal_nan=True):
            return "wrong", f"{mine.reshape(-1)[:4]}, not {theirs.reshape(-1)[:4]}"
    return "ok", ""


def main() -> None:
    """Go through PyTorch's operators."""
    from torch.testing._internal.common_methods_invocations import op_db

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--dtype", action="append", help="float32, where it is left out")
    parser.add_argument("--samples", type=int, default=4, help="of each operator and dtype")
    parser.add_argument("--opset", type=int, default=17)
    parser.add_argument("--only", default="", help="operators whose name holds this")
    parser.add_argument("--verify", action="store_true", help="with the check of every rewrite")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    ort.set_default_logger_severity(4)
    counts: Counter[str] = Counter()
    for operator in op_db:
        for name in args.dtype or ["float32"]:
            dtype = getattr(torch, name)
            if args.only not in operator.name or dtype not in operator.dtypes:
                continue
            torch.manual_seed(0)
            for sample in list(operator.sample_inputs("cpu", dtype))[: args.samples]:
                module = Module(operator.op, sample).eval()
                try:
                    model = exported(module, args.opset)
                except Exception:
                    counts["not exported"] += 1
                    continue
                outcome, why = judged(module, model, verify=args.verify)
                counts[outcome] += 1
                if outcome not in ("ok", "left", "refused"):
                    shapes = [f"{str(t.dtype)[6:]}{list(t.shape)}" for t in module.tensors]
                    print(f"{outcome}: {operator.name} of {', '.join(shapes)}: {why[:200]}")
    print(dict(counts))


if __name__ == "__main__":
    main()
