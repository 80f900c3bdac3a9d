"""The `simplify: onnxsim` step: another project's simplifier, in the worker, held to the interface.

onnxsim takes seconds to import and is native code: it runs in a subprocess, never here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import onnx

from surgeon.errors import ForeignError, VerifyError
from surgeon.external import LARGEST, bytes_outside, external_tensors, with_data
from surgeon.isolation import cell
from surgeon.nested import every_node
from surgeon.standard import STANDARD, known_operators
from surgeon.workers import Worker
from surgeon.writer import FIRST_IR_WITH_FREE_INITIALIZERS

TOOLS = ("onnxsim",)
_TASK = "surgeon.steps.simplify:run_onnxsim"
_ASIDE = "surgeon_aside_"  # begins the name of what is called as an operator of ONNX's own
TIMEOUT = 1800.0  # seconds; onnxsim takes about a minute for 100,000 nodes


def simplify(
    model: onnx.ModelProto,
    *,
    tool: str = "onnxsim",
    folder: Path | None = None,
    kept: bool = False,
) -> onnx.ModelProto:
    """The model as the tool simplifies it; the interface and the envelope stay as they are.

    Whether it still computes the same is for the caller to check.

    Args:
        model: Read, not changed.
        tool: `onnxsim`.
        folder: Where the model's external data lie; they come back inside the model.
        kept: Whether initializers that the inputs list are no constants, where the model's format
            wants them there.

    Raises:
        ForeignError: The tool crashed, hung, or refused the model.
        VerifyError: What it made has other inputs or outputs.
    """
    step = f"simplify: {tool}"
    if tool not in TOOLS:
        raise ForeignError(
            f"`{tool}` is not a tool known here", where=step, mend=f"Use {' or '.join(TOOLS)}."
        )
    here = cell()
    timeout, memory = (TIMEOUT, None) if here is None else (here.timeout, here.memory)
    freed = model if kept else _with_free_constants(model)
    plain, aside = _with_names_apart(freed)
    initializers = {tensor.name for tensor in freed.graph.initializer}
    overridable = any(value.name in initializers for value in freed.graph.input)
    try:
        with Worker() as worker:
            simplified: onnx.ModelProto = worker.call(
                _TASK,
                _whole(plain, folder, step),
                overridable,
                timeout=timeout,
                memory=memory,
            )
    except ForeignError as error:
        what = error.what.replace(f"`{_TASK}`", f"`{tool}`")
        raise ForeignError(what, where=step, mend=error.mend) from None
    except Exception as error:  # onnxsim raises what it likes
        raise ForeignError(
            f"`{tool}` refuses the model: {' '.join(str(error).split())[:500]}",
            where=step,
            mend="Leave the step out, or repair first what it complains about.",
        ) from None
    _call(simplified, {name: old for old, name in aside.items()})
    held = _held(freed, simplified, step)
    return held if freed is model else _listed(model, held)


def _with_names_apart(
    model: onnx.ModelProto,
) -> tuple[onnx.ModelProto, dict[tuple[str, str], tuple[str, str]]]:
    """The model without operators of other domains that are called as one of ONNX's own is.

    onnxsim does not look at domains, and takes `my.Identity` out.

    Returns:
        The model, or a copy; and what these are called in it, by domain and name.
    """
    called = [(node.domain, node.op_type) for node in _nodes(model)]
    called += [(function.domain, function.name) for function in model.functions]
    alike = [key for key in called if key[0] not in STANDARD and key[1] in known_operators()]
    aside = {key: (key[0], f"{_ASIDE}{key[1]}") for key in alike}
    if aside:
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        model = copy
        _call(model, aside)
    return model, aside


def _nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    for top in (model.graph, *model.functions):
        yield from every_node(top.node)


def _call(model: onnx.ModelProto, names: Mapping[tuple[str, str], tuple[str, str]]) -> None:
    """Call operators, and functions, otherwise, in place."""
    for node in _nodes(model) if names else ():
        _, node.op_type = names.get((node.domain, node.op_type), (node.domain, node.op_type))
    for function in model.functions if names else ():
        key = (function.domain, function.name)
        _, function.name = names.get(key, key)


def _with_free_constants(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model in a format that does not want constants among the inputs; it, if that has one.

    A tool that folds constants makes some that stand nowhere among them.
    """
    if model.ir_version >= FIRST_IR_WITH_FREE_INITIALIZERS:
        return model
    freed = onnx.ModelProto()
    freed.CopyFrom(model)
    freed.ir_version = FIRST_IR_WITH_FREE_INITIALIZERS
    constants = {tensor.name for tensor in model.graph.initializer}
    del freed.graph.input[:]
    freed.graph.input.extend(v for v in model.graph.input if v.name not in constants)
    return freed


def _listed(before: onnx.ModelProto, after: onnx.ModelProto) -> onnx.ModelProto:
    """The simplified model in the format of the original: new constants are given by nodes."""
    after.ir_version = before.ir_version
    graph, held = after.graph, list(after.graph.initializer)
    given = {value.name for value in graph.input} | {tensor.name for tensor in held}
    inputs = [value for value in before.graph.input if value.name in given]
    listed = {value.name for value in inputs}
    nodes = [
        onnx.helper.make_node("Constant", [], [tensor.name], value=tensor)
        for tensor in held
        if tensor.name not in listed
    ] + list(graph.node)
    for field, values in (
        (graph.input, inputs),
        (graph.initializer, [tensor for tensor in held if tensor.name in listed]),
        (graph.node, nodes),
    ):
        copies = [type(value).FromString(value.SerializeToString()) for value in values]
        del field[:]
        field.extend(copies)
    return after


def _whole(model: onnx.ModelProto, folder: Path | None, step: str) -> onnx.ModelProto:
    """The model with its external data inside: to fold constants onnxsim wants their values."""
    if next(external_tensors(model), None) is None:
        return model
    if folder is None or model.ByteSize() + bytes_outside(model) > LARGEST:
        raise ForeignError(
            "the weights do not fit into one message" if folder else "the weights lie elsewhere",
            where=step,
            mend="Leave the step out for this model.",
        )
    return with_data(model, folder)


def run_onnxsim(model: onnx.ModelProto, overridable: bool) -> onnx.ModelProto:
    """What the worker calls: onnxsim without a check of its own."""
    import onnxsim

    options: dict[str, Any] = {"check_n": 0, "mutable_initializer": overridable}
    simplified: onnx.ModelProto = onnxsim.simplify(model, **options)[0]
    return simplified


def _held(before: onnx.ModelProto, after: onnx.ModelProto, step: str) -> onnx.ModelProto:
    """The simplified graph under the interface and envelope of the original."""
    for kind in ("input", "output"):
        old, new = getattr(before.graph, kind), getattr(after.graph, kind)
        names, found = [v.name for v in old], [v.name for v in new]
        if names != found:
            raise VerifyError(
                f"the {kind}s were {names} and are {found}",
                where=step,
                mend="Leave the step out for this model.",
            )
        for was, became in zip(old, new, strict=True):
            if _elements(was) != _elements(became):
                raise VerifyError(
                    f"the {kind} `{was.name}` has another type",
                    where=step,
                    mend="Leave the step out for this model.",
                )
            became.CopyFrom(was)
    held = onnx.ModelProto()
    held.CopyFrom(after)
    for name in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
        held.ClearField(name)
        if before.HasField(name):
            setattr(held, name, getattr(before, name))
    del held.metadata_props[:]
    held.metadata_props.extend(before.metadata_props)
    held.graph.name = before.graph.name
    del held.graph.metadata_props[:]
    held.graph.metadata_props.extend(before.graph.metadata_props)
    said = {(n.name, n.op_type): n.metadata_props for n in every_node(before.graph.node) if n.name}
    for node in every_node(held.graph.node):
        if not node.metadata_props:
            node.metadata_props.extend(said.get((node.name, node.op_type), ()))
    if not held.functions:  # which older ones of onnxsim lose, whoever calls them
        called = {(node.domain, node.op_type) for node in _nodes(held)}
        lost = any((function.domain, function.name) in called for function in before.functions)
        held.functions.extend(before.functions if lost else ())
    return held


def _elements(value: onnx.ValueInfoProto) -> tuple[str | None, int]:
    return value.type.WhichOneof("value"), value.type.tensor_type.elem_type
