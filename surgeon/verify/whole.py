"""`verify`: interface, loading, then the two models side by side at several sizes and seeds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TypeAlias

import onnx

from surgeon.chance import drawn_outputs
from surgeon.errors import ForeignError, SurgeonError
from surgeon.isolation import isolation
from surgeon.reference import NoWitness
from surgeon.runtime import NotRunnable
from surgeon.verify.check import Check
from surgeon.verify.compare import TOLERANCES
from surgeon.verify.inputs import bounds, required_inputs
from surgeon.verify.interface import interface_fault
from surgeon.verify.originals import open_original, open_result, recorded_files
from surgeon.verify.verdict import Verdict

Reference: TypeAlias = str | Path | Sequence[str | Path] | None


def verify(
    original: onnx.ModelProto | Path | str,
    result: onnx.ModelProto | Path | str,
    *,
    reference: Reference = None,
    seeds: Sequence[int] = (0, 1),
    sizes: Mapping[str, Sequence[int] | str] | None = None,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
    folder_original: Path | None = None,
    folder_result: Path | None = None,
    allow_approximate: float | None = None,
    custom: Collection[str] = (),
    isolated: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Verdict:
    """Compare two models on inputs.

    Args:
        original: The model as it came.
        result: The model as it is to be saved.
        reference: What stands for the original: `onnxruntime`, `witness`, `torch`, or .npz files
            with recorded inputs and outputs (a path, a folder, a pattern, or several).
        seeds: What inputs are drawn from.
        sizes: By dim name: the only sizes to compare at, or the name of a dim of the same size.
        shapes: By input name: the shape to use in place of the declared one.
        folder_original: Where the original's external data lie.
        folder_result: Where the result's external data lie.
        allow_approximate: Error relative to an output's spread that is allowed, where it is more
            than the table's tolerance.
        custom: Operators the result may hold although onnxruntime has them not, as `domain.Op`.
        isolated: Run onnxruntime in a worker, so that its crash is a finding: `isolation` inside.
        progress: Told what is being compared.

    Raises:
        VerifyError: The reference cannot be read, or there is no such reference.
    """
    before, folder_original = _load(original, folder_original)
    after, folder_result = _load(result, folder_result)
    if fault := interface_fault(before, after):
        return Verdict("broken", fault)
    given = sizes or {}
    tied = {dim: other for dim, other in given.items() if isinstance(other, str)}
    with isolation() if isolated else nullcontext():
        try:
            side, lacking = open_result(after, folder_result, before, custom)
        except (NotRunnable, ForeignError) as error:
            return Verdict("broken", f"the result does not load: {error.what}")
        check = Check(
            result=side,
            names=[value.name for value in after.graph.output],
            tolerance=max(allow_approximate or 0.0, _coarsest(before)),
            seeds=tuple(seeds),
            progress=progress or (lambda _: None),
            random={**drawn_outputs(before), **drawn_outputs(after)},
        )
        try:
            inputs = required_inputs(before, shapes, tied)
            files = recorded_files(reference)
            if files:
                check.recorded(files, after, inputs)
            else:
                way = None if reference is None else str(reference)
                check.original = open_original(before, folder_original, way)
                hints = {d: list(s) for d, s in given.items() if not isinstance(s, str)}
                check.drawn(inputs, bounds(before, inputs), hints)
        except (NoWitness, NotRunnable, ForeignError, ValueError) as error:
            check.skip("any input", error.what if isinstance(error, SurgeonError) else str(error))
        return check.verdict(lacking)


def _load(
    model: onnx.ModelProto | Path | str, folder: Path | None
) -> tuple[onnx.ModelProto, Path | None]:
    if isinstance(model, onnx.ModelProto):
        return model, folder
    path = Path(model)
    return onnx.load(path, load_external_data=False), folder or path.parent


def _coarsest(model: onnx.ModelProto) -> float:
    """The tolerance of the coarsest floats that go in: no output can be finer than they are.

    Of the weights and casts only float32 counts: it is what most doubles are computed from.
    """
    kinds = {value.type.tensor_type.elem_type for value in model.graph.input}
    inner = {tensor.data_type for tensor in model.graph.initializer}
    inner |= {
        attribute.i
        for node in model.graph.node
        if node.op_type == "Cast"
        for attribute in node.attribute
        if attribute.name == "to"
    }
    kinds |= inner & {int(onnx.TensorProto.FLOAT)}
    names = [onnx.helper.tensor_dtype_to_np_dtype(kind).name for kind in kinds if kind]
    return max((TOLERANCES[name][0] for name in names if name in TOLERANCES), default=0.0)
