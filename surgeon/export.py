"""Export a PyTorch module with the ATen fallback, and record what PyTorch itself computes.

The recorded inputs and outputs are what a mended file is compared with later, since no runtime can
run a file that holds ATen nodes. PyTorch is imported when an export is asked for, never before.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from surgeon.errors import OutputError, SurgeonError
from surgeon.files import cannot_write
from surgeon.leftovers import Folder

Array = npt.NDArray[Any]
DynamicAxes = Mapping[str, Mapping[int, str] | Sequence[int]]


def export(
    module: Any,
    args: Any,
    path: str | os.PathLike[str],
    *,
    dynamic_axes: DynamicAxes | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    extra_inputs: Sequence[Any] = (),
) -> Path:
    """Export `module` in evaluation mode, and record sets of inputs and outputs beside the file.

    `NAME.0.npz` holds `args` and what the module gave for them, under the keys `in.VALUE` and
    `out.VALUE`; `NAME.1.npz` and so on hold `extra_inputs`. Sets of an earlier export to the same
    path go. The module's training flags are left as they were.

    Args:
        module: A `torch.nn.Module`, or a scripted one.
        args: The tensor or the tuple to trace with; a mapping at the end are arguments by name.
        path: The file to write. Model and sets appear when all is done, or not at all.
        dynamic_axes: As `torch.onnx.export` takes them: `{"x": {0: "batch", 3: "time"}}`.
        input_names: Names for the flattened inputs, in order.
        output_names: Names for the flattened outputs, in order.
        opset_version: Default: that of the installed PyTorch.
        extra_inputs: More values like `args`, of other sizes along the dynamic axes.

    Returns:
        The path written.

    Raises:
        SurgeonError: PyTorch is missing; the module or the exporter fails on these arguments; the
            module computes something else each time; a set does not fit the exported inputs.
        OutputError: The path cannot be written.
    """
    target = Path(path)
    _check_target(target)
    torch = _torch()
    sets = [value if isinstance(value, tuple) else (value,) for value in (args, *extra_inputs)]
    with _evaluating(module), torch.no_grad():
        recorded = [_record(torch, module, values, at) for at, values in enumerate(sets)]
        with _beside(target) as folder:
            file = folder / target.name
            options = {
                "dynamic_axes": dynamic_axes,
                "input_names": None if input_names is None else list(input_names),
                "output_names": None if output_names is None else list(output_names),
                "opset_version": opset_version,
            }
            _export_fallback(torch, module, sets[0], file, options)
            inputs, outputs = _interface(file)
            _check_dynamic_axes(dynamic_axes, inputs, outputs, target)
            for at, (given, computed) in enumerate(recorded):
                _check_fit(inputs, given, "inputs", at, target)
                _check_fit(outputs, computed, "outputs", at, target)
                arrays = {f"in.{name}": a for name, a in zip(inputs, given, strict=True)}
                arrays |= {f"out.{name}": a for name, a in zip(outputs, computed, strict=True)}
                # `savez` takes arrays by keyword, and any name is one here
                np.savez_compressed(folder / f"{target.stem}.{at}.npz", **arrays)  # type: ignore[arg-type]
            _hand_over(folder, target)
    return target


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise SurgeonError(
            f"PyTorch cannot be imported: {error}",
            where="surgeon.export",
            mend="Run `pip install onnx-recipe-surgeon[torch]`.",
        ) from None


def _check_target(target: Path) -> None:
    if target.is_dir():
        raise OutputError("this is a folder", where=str(target), mend="Name a file inside it.")
    if not target.parent.is_dir():
        raise OutputError(
            f"the folder `{target.parent}` does not exist", where=str(target), mend="Make it first."
        )


@contextlib.contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """Evaluation mode; afterwards each submodule has its own flag back (some may be frozen)."""
    flags = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in flags:
            part.training = training


def _record(torch: Any, module: Any, args: tuple[Any, ...], at: int) -> tuple[list[Array], ...]:
    """The flattened inputs, and what the module computes from them.

    Computed twice, so that a module that draws numbers or counts its calls is found out.
    """
    given = [_array(value, at) for value in _flatten(torch, _in_order(module, args))]
    first, second = (
        [_array(value, at) for value in _flatten(torch, _run(torch, module, args, at))]
        for _ in range(2)
    )
    pairs = zip(first, second, strict=True)
    if not all(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc") for a, b in pairs):
        raise SurgeonError(
            "the module computes something else each time it is run on the same inputs",
            where=f"inputs {at}",
            mend="Switch off what draws numbers or keeps a state, `F.dropout(training=True)` say.",
        )
    return given, first


def _run(torch: Any, module: Any, args: tuple[Any, ...], at: int) -> Any:
    args = _copied(torch, args)  # some modules write into their arguments
    positional, named = _split(args)
    try:
        return module(*positional, **named)
    except Exception as error:
        raise SurgeonError(
            f"the module fails in PyTorch itself: {error}",
            where=f"inputs {at}",
            mend="Give arguments that the module's `forward` takes.",
        ) from error


def _split(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments by position and by name, as `torch.onnx.export` reads them."""
    if args and isinstance(args[-1], Mapping):
        return args[:-1], dict(args[-1])
    return args, {}


def _in_order(module: Any, args: tuple[Any, ...]) -> list[Any]:
    """The arguments in the order of `forward`'s parameters, which is that of the file's inputs."""
    positional, named = _split(args)
    if not named:
        return list(positional)
    return list(inspect.signature(module.forward).bind(*positional, **named).arguments.values())


def _copied(torch: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, Mapping):
        return {key: _copied(torch, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_copied(torch, item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value


def _flatten(torch: Any, value: Any) -> list[Any]:
    """The tensors in a nest of tuples, lists and mappings, in the exporter's order."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _flatten(torch, item)]
    return []  # None, numbers and texts become constants of the graph


def _array(tensor: Any, at: int) -> Array:
    try:
        array: Array = np.array(tensor.detach().cpu().numpy())
    except (TypeError, RuntimeError) as error:
        mend = "Export in float32 or float16, with dense tensors."
        if "numpy is not available" in str(error).lower():  # PyTorch's words before 2.3
            mend = (
                'This PyTorch was built for NumPy 1: run `pip install "numpy<2" ml-dtypes`, '
                "or take PyTorch 2.3 or later."
            )
        raise SurgeonError(
            f"a tensor of {tensor.dtype} cannot be recorded: {error}",
            where=f"inputs {at}",
            mend=mend,
        ) from None
    return array


def _export_fallback(
    torch: Any, module: Any, args: tuple[Any, ...], file: Path, options: Mapping[str, Any]
) -> None:
    known = inspect.signature(torch.onnx.export).parameters
    if "operator_export_type" not in known:
        raise SurgeonError(
            f"PyTorch {torch.__version__} has no exporter with an ATen fallback any more",
            where="torch.onnx.export",
            mend="Run `pip install torch==2.13.0`.",
        )
    fallback = torch.onnx.OperatorExportTypes.ONNX_ATEN_FALLBACK
    settings = {**options, "operator_export_type": fallback, "keep_initializers_as_inputs": False}
    if "dynamo" in known:  # the newer exporter knows no fallback
        settings["dynamo"] = False
    if args and isinstance(args[-1], Mapping) and "kwargs" in known:
        args, settings["kwargs"] = _split(args)
    try:
        with warnings.catch_warnings():
            # that the fallback is an old way is known here; what tracing froze is wanted
            warnings.simplefilter("ignore", DeprecationWarning)
            torch.onnx.export(module, _copied(torch, args), str(file), **settings)
    except Exception as error:
        raise SurgeonError(
            f"PyTorch {torch.__version__} cannot export the module: {error}",
            where="torch.onnx.export",
            mend="Write what the message names in other operators, or give it a symbolic function.",
        ) from error


def _interface(file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The graph's inputs and outputs, without their weights."""
    graph = onnx.load(str(file), load_external_data=False).graph
    weights = {tensor.name for tensor in graph.initializer}
    inputs = {value.name: value for value in graph.input if value.name not in weights}
    return inputs, {value.name: value for value in graph.output}


def _check_dynamic_axes(
    axes: DynamicAxes | None, inputs: Mapping[str, Any], outputs: Mapping[str, Any], target: Path
) -> None:
    """The exporter takes an unknown name for nothing said, and writes a static file."""
    known = [*inputs, *outputs]
    for name in axes or ():
        if name not in known:
            raise SurgeonError(
                f"dynamic_axes speaks of `{name}`, which is no input or output of the model",
                where=str(target),
                mend=f"Use the names {', '.join(f'`{each}`' for each in known)}, "
                "or give input_names and output_names.",
            )


def _check_fit(
    declared: Mapping[str, Any], arrays: Sequence[Array], side: str, at: int, target: Path
) -> None:
    where = f"{target}, {side} {at}"
    if len(declared) != len(arrays):
        raise SurgeonError(
            f"the file has {len(declared)} {side} ({', '.join(declared)}) "
            f"and PyTorch {len(arrays)} tensors",
            where=where,
            mend="Let `forward` take and give tensors that it uses, each once.",
        )
    for (name, value), array in zip(declared.items(), arrays, strict=True):
        dims = value.type.tensor_type.shape.dim
        want = [d.dim_value if d.HasField("dim_value") else d.dim_param for d in dims]
        pairs = zip(want, array.shape, strict=False)
        fits = len(want) == array.ndim and all(w in (size, str(w)) for w, size in pairs)
        if side == "inputs" and not fits:  # output shapes are claims, and the exporter's go stale
            raise SurgeonError(
                f"`{name}` is {list(array.shape)}, and the file takes {want}",
                where=where,
                mend="Declare the axis in dynamic_axes, or record inputs of the traced size.",
            )


@contextlib.contextmanager
def _beside(target: Path) -> Iterator[Path]:
    """A passing folder on the target's file system, so that handing over is renaming."""
    try:
        with Folder(".surgeon-", target.parent) as folder:
            inside = Path(folder, "new")  # without what is the folder's own
            inside.mkdir()
            yield inside
    except OSError as error:
        raise cannot_write(target, error) from None


def _hand_over(folder: Path, target: Path) -> None:
    """Sets and external data first, the model last: where it is, all is. Older sets go."""
    for old in target.parent.iterdir():
        if re.fullmatch(re.escape(target.stem) + r"\.\d+\.npz", old.name):
            old.unlink()
    for file in sorted(folder.iterdir(), key=lambda file: file.name == target.name):
        os.replace(file, target.parent / file.name)
