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
from typing import Any

import onnx
import onnxruntime as ort
import torch
from exporting import Called, leaves
from exports import judged


def exported(module: Called, opset: int) -> onnx.ModelProto:
    """The model, of ATen nodes alone."""
    file = io.BytesIO()
    export: Any = torch.onnx.export
    export(
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


def _lacking(tensor: torch.Tensor) -> bool:
    """Whether numpy has no such array."""
    return tensor.layout != torch.strided or tensor.dtype == torch.bfloat16


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
    database: Any = op_db
    for operator in database:
        for name in args.dtype or ["float32"]:
            dtype = getattr(torch, name)
            if args.only not in operator.name or dtype not in operator.dtypes:
                continue
            torch.manual_seed(0)
            for sample in list(operator.sample_inputs("cpu", dtype))[: args.samples]:
                given = (sample.input, *sample.args)
                module = Called(operator.op, given, sample.kwargs).eval()
                try:
                    model = exported(module, args.opset)
                except Exception:
                    counts["not exported"] += 1
                    continue
                results = list(leaves(module(*[t.clone() for t in module.tensors])))
                if any(map(_lacking, [*module.tensors, *results])):
                    counts["sparse, or in bfloat16"] += 1
                    continue
                feeds = {f"x{i}": t.numpy() for i, t in enumerate(module.tensors)}
                wanted = [t.detach().resolve_neg().numpy() for t in results]
                outcome, why = judged(model, [(feeds, wanted)], verify=args.verify)
                counts[outcome] += 1
                if outcome not in ("ok", "left", "refused", "frozen"):
                    shapes = [f"{str(t.dtype)[6:]}{list(t.shape)}" for t in module.tensors]
                    print(f"{outcome}: {operator.name} of {', '.join(shapes)}: {why[:200]}")
    print(dict(counts))


if __name__ == "__main__":
    main()
