"""Checks the operators, attributes and arities of patterns against ONNX's own operator schemas."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from onnx import NodeProto

from surgeon.document import suggest
from surgeon.errors import Location, RecipeError
from surgeon.meanings import full_name
from surgeon.notation.pattern import AttributeValue, NodePattern, Pattern
from surgeon.schemas.names import (
    is_operator,
    known_names,
    known_overloads,
    of_onnxruntime,
)

FREE_DOMAINS = frozenset(
    {
        *("aten", "prim", "com.microsoft", "com.microsoft.nchwc", "com.ms.internal.nhwc"),
        *("TRT", "trt", "mmcv", "caffe2", "org.pytorch._caffe2", "qonnx.custom_op.general"),
        *("com.amd.quark", "org.openvinotoolkit", "autograd", "dropped", "tensorflow"),
        "ai.onnx.legacy",
    }
)
"""Domains in the normal form, of runtimes or of other tools, that ONNX has no schemas for."""

OF_RUNTIMES = frozenset({"MemcpyFromHost", "MemcpyToHost", "SimplifiedLayerNormalization"})
"""Operators that onnxruntime puts into ONNX's own domain, which has no schemas for them."""

OLDEST_OPSET = 9
"""The oldest opset that a rule is written out for."""

_OF_PYTORCH = frozenset({"aten", "prim"})
_NEWEST = 2**31 - 1  # the largest that onnx takes


class _Version(NamedTuple):
    """What one version of an operator takes."""

    since: int
    attributes: Mapping[str, str]  # name to `int`, `floats`, `tensor`, ...
    required: frozenset[str]
    inputs: tuple[int, int]
    outputs: tuple[int, int]


@cache
def _versions(domain: str, operator: str) -> tuple[_Version, ...]:
    """Every version of an operator, oldest first; none where ONNX has no such operator."""
    import onnx.defs

    versions: list[_Version] = []
    newest = _NEWEST
    while newest:
        try:
            schema = onnx.defs.get_schema(operator, newest, domain)
        except onnx.defs.SchemaError:
            break
        attributes = schema.attributes
        version = _Version(
            schema.since_version,
            MappingProxyType({name: _type_name(a) for name, a in attributes.items()}),
            frozenset(name for name, a in attributes.items() if a.required),
            (schema.min_input, schema.max_input),
            (schema.min_output, schema.max_output),
        )
        versions.insert(0, version)
        newest = schema.since_version - 1
    return tuple(versions)


def _operators() -> Mapping[str, frozenset[str]]:
    """The names of all operators by domain: slow, and asked for only to say what there is."""
    import onnx.defs

    names: dict[str, set[str]] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        names.setdefault(schema.domain, set()).add(schema.name)
    return {domain: frozenset(found) for domain, found in names.items()}


def _type_name(attribute: object) -> str:
    return str(getattr(attribute, "type", "")).rpartition(".")[2].lower()


def check_operators(
    pattern: Pattern, *, custom: frozenset[str] = frozenset(), complete: bool = False
) -> None:
    """Check that every node could stand in a model, in some version of its operator.

    Args:
        pattern: What a rule looks for or writes.
        custom: Operators (`my.domain.Op`) and domains that are taken as they are.
        complete: The nodes are to be written, so required attributes must be there.

    Raises:
        RecipeError: An operator, attribute or number of inputs or outputs that no version has.
    """
    for node in pattern.nodes:
        for operator in node.operators:
            if complete and not node.domain and _is_homeless(operator, custom):
                raise _homeless(operator, node.location)
            name = full_name(node.domain, operator)
            if name in custom or node.domain in custom:
                continue
            if node.domain in _OF_PYTORCH:
                _check_pytorch(node, operator)
            elif known := of_onnxruntime(node.domain):
                _check_onnxruntime(node, operator, known)
            elif not _is_free(node.domain, operator, custom):
                _check(node, operator, custom, complete=complete)


def check_named(name: str, custom: frozenset[str], where: Location) -> None:
    """Check that there may be an operator, by its name as patterns spell it.

    Args:
        name: As `Relu` or `my.domain.Op`; empty for none.
        custom: As of `check_operators`.
        where: Where the name stands.

    Raises:
        RecipeError: Nothing has such an operator.
    """
    domain, _, operator = name.rpartition(".")
    if not name or name in custom or domain in custom:
        return
    if domain in _OF_PYTORCH:
        _check_of_pytorch(domain, operator, where)
    elif known := of_onnxruntime(domain):
        _check_of_onnxruntime(domain, operator, known, where)
    elif (
        not _is_free(domain, operator, custom)
        and not _versions(domain, operator)
        and domain in _operators()  # in a domain of somebody's own there may be anything
    ):
        raise _unknown(domain, operator, custom, where)


def _check_of_pytorch(domain: str, operator: str, where: Location) -> None:
    if not is_operator(domain, operator):
        near = suggest(operator, known_names(domain))
        raise _foreign("PyTorch", full_name(domain, operator), near, where)


def _check_of_onnxruntime(
    domain: str, operator: str, known: Collection[str], where: Location
) -> None:
    if operator not in known:
        near = suggest(operator, known)
        raise _foreign("onnxruntime", full_name(domain, operator), near, where)


def _check_pytorch(node: NodePattern, operator: str) -> None:
    """That a release of PyTorch has it, and has such an overload."""
    _check_of_pytorch(node.domain, operator, node.location)
    name, overload = full_name(node.domain, operator), node.overload
    if overload and node.domain == "aten" and overload not in known_overloads(operator):
        raise RecipeError(
            f"`{name}` has no overload `{overload}`",
            where=node.location,
            mend=suggest(overload, known_overloads(operator)),
        )


def _check_onnxruntime(
    node: NodePattern, operator: str, known: Mapping[str, Mapping[str, str]]
) -> None:
    """That onnxruntime has it, with such attributes; inputs vary from release to release."""
    _check_of_onnxruntime(node.domain, operator, known, node.location)
    name = full_name(node.domain, operator)
    version = _Version(1, known[operator], frozenset(), (0, _NEWEST), (0, _NEWEST))
    _check_attributes(node, name, (version,), complete=False)


def _foreign(of: str, name: str, near: str, where: Location) -> RecipeError:
    declared = f"Declare it: `custom: [{name}]`."
    mend = f"{near} Or declare it, where it is your own: `custom: [{name}]`."
    return RecipeError(
        f"{of} has no operator `{name}`",
        where=where,
        mend=mend if near.startswith("Did") else declared,
    )


def check_operator(node: NodeProto, custom: frozenset[str], where: Location) -> None:
    """Check that a node could stand in a model, as far as its operator goes.

    Args:
        node: Of a graph that a recipe holds.
        custom: Operators (`my.domain.Op`) and domains that are taken as they are.
        where: Where the graph stands.

    Raises:
        RecipeError: Nothing has such an operator.
    """
    domain = "" if node.domain == "ai.onnx" else node.domain
    if not domain and _is_homeless(node.op_type, custom):
        raise _homeless(node.op_type, where)
    if not _is_free(domain, node.op_type, custom) and not _versions(domain, node.op_type):
        raise _unknown(domain, node.op_type, custom, where)


def _is_homeless(operator: str, custom: frozenset[str]) -> bool:
    """Whether a recipe declares an operator of its own in ONNX's domain, and would write it."""
    return operator in custom and operator not in OF_RUNTIMES and not _versions("", operator)


def _homeless(operator: str, where: Location) -> RecipeError:
    return RecipeError(
        f"`{operator}` is in no domain, and ONNX's own has no such operator",
        where=where,
        mend=f"Write `plugins.{operator}`, and `custom: [plugins.{operator}]`, with a domain of "
        "your choice: TensorRT looks a plugin up by its name alone.",
    )


def _is_free(domain: str, operator: str, custom: frozenset[str]) -> bool:
    if domain in FREE_DOMAINS or (domain and domain in custom):
        return True
    return full_name(domain, operator) in custom | OF_RUNTIMES


def _check(node: NodePattern, operator: str, custom: frozenset[str], *, complete: bool) -> None:
    name = full_name(node.domain, operator)
    versions = _versions(node.domain, operator)
    if not versions:
        unknown = _unknown(node.domain, operator, custom, node.location)
        if complete and not node.domain and not unknown.mend.startswith("Did"):
            raise _homeless(operator, node.location)
        raise unknown
    _check_attributes(node, name, versions, complete=complete)
    _check_arity(node, name, versions)


def _unknown(domain: str, operator: str, custom: frozenset[str], where: Location) -> RecipeError:
    name = full_name(domain, operator)
    known = _operators().get(domain)
    if known is None:
        declared = {entry for entry in custom if "." in entry}
        near = suggest(name, declared) if declared else ""
        mine = any(entry.rpartition(".")[0] == domain for entry in declared)
        what = f"unknown operator `{name}`" if mine else f"unknown domain `{domain}`"
    else:
        near = suggest(operator, known)
        what = f"unknown operator `{name}`"
    mend = near if near.startswith("Did") else f"Declare it: `custom: [{name}]`."
    return RecipeError(what, where=where, mend=mend)


def _check_attributes(
    node: NodePattern, name: str, versions: tuple[_Version, ...], *, complete: bool
) -> None:
    attributes = {key for version in versions for key in version.attributes}
    oldest = max((v.since for v in versions if v.since <= OLDEST_OPSET), default=0)
    written = [version for version in versions if version.since >= oldest]
    for key in (*node.attributes, *node.captures):
        if key not in attributes:
            raise RecipeError(
                f"`{name}` has no attribute `{key}`",
                where=node.place(key),
                mend=suggest(key, {known for version in written for known in version.attributes}),
            )
    for key, value in node.attributes.items():
        kinds = sorted({v.attributes[key] for v in versions if key in v.attributes})
        found = kind_of(value)
        if found not in kinds and not (value == () and any(kind.endswith("s") for kind in kinds)):
            raise RecipeError(
                f"the attribute `{key}` of `{name}` is of type {' or '.join(kinds)}, not {found}",
                where=node.place(key),
                mend=f"Write `{key}: {kinds[0]} = ...` with a value of that type.",
            )
    if complete and node.rest is None:
        given = {*node.attributes, *node.captures}
        missing = min((version.required - given for version in written), key=len)
        if missing:
            raise RecipeError(
                f"`{name}` needs the attribute `{min(missing)}`",
                where=node.location,
                mend=f"Write `<{min(missing)} = ...>`.",
            )


def kind_of(value: AttributeValue) -> str:
    """The type of an attribute's value, as ONNX's text has it."""
    if isinstance(value, tuple):
        return kind_of(value[0]) + "s" if value else "empty list"
    kinds: dict[type, str] = {int: "int", float: "float", str: "string", np.ndarray: "tensor"}
    return kinds[type(value)]


def _check_arity(node: NodePattern, name: str, versions: tuple[_Version, ...]) -> None:
    rest = any(argument.rest for argument in node.inputs)
    given = sum(not argument.rest for argument in node.inputs)
    ranges = {version.inputs for version in versions}
    if not any(given <= most and (rest or given >= least) for least, most in ranges):
        raise _arity_error(node, name, "input", given, ranges)
    given = len(node.outputs)
    ranges = {version.outputs for version in versions}
    if not any(least <= given <= most for least, most in ranges):
        raise _arity_error(node, name, "output", given, ranges)


def _arity_error(
    node: NodePattern, name: str, what: str, given: int, ranges: set[tuple[int, int]]
) -> RecipeError:
    least, most = min(low for low, _ in ranges), max(high for _, high in ranges)
    span = str(least) if least == most else f"{least} to {most}" if most < 1000 else f"{least} up"
    return RecipeError(
        f"`{name}` has {span} {what}{'' if span == '1' else 's'}, not {given}",
        where=node.location,
        mend=f"Write as many {what}s as the operator has; leave the place of an omitted one empty.",
    )
