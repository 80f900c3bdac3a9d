"""The shape of a recipe file, as pydantic models, and their errors in a reader's words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from surgeon.document import Value, suggest
from surgeon.errors import Location, RecipeError

Words = str | int | float | bool
"""An expression: text, or a number that YAML already took for one."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class BuilderModel(BaseModel):
    """A replacement computed by a builder; further keys are its arguments, as expressions."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)
    __pydantic_extra__: dict[str, Words] = Field(init=False)

    build: str = Field(description="The builder's name.")


class RuleModel(_Model):
    """One rule: what to look for, when, and what to write in its place."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", description="Its name in reports.")
    why: str = Field(description="Why the rewrite is right, in one sentence.")
    exact: Literal["bit", "rounding", "approximate"] = Field(description="What it promises.")
    relative_to: str | None = Field(None, description="What the tolerance is relative to.")
    bound: float | None = Field(
        None, gt=0, description="The error that `approximate` may make, relative to the spread."
    )
    whole: float | None = Field(
        None,
        gt=0,
        description="The error that a model may make with `bound` rewrites of this rule, however "
        "many; without it the sum of theirs.",
    )
    contract: str | None = Field(None, description="What it changes in what the model promises.")
    match: str = Field(description="Nodes to find, in ONNX's text syntax; the last is the root.")
    where: list[Words] = Field([], description="Conditions; all must be provably true.")
    let: dict[str, Words] = Field({}, description="Computed values, in order.")
    replace: str | BuilderModel = Field(description="Nodes to write, or a builder.")
    since_opset: int | None = Field(None, ge=1, description="The oldest opset it is for.")
    late: bool = Field(False, description="Whether it waits for the second sweep over the model.")


class ChangeModel(_Model):
    """One change of what a model computes: as a rule, which promises nothing."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", description="Its name in reports.")
    why: str = Field(description="Why it is wanted, in one sentence.")
    match: str = Field(description="Nodes to find, in ONNX's text syntax; the last is the root.")
    where: list[Words] = Field([], description="Conditions; all must be provably true.")
    let: dict[str, Words] = Field({}, description="Computed values, in order.")
    replace: str | BuilderModel = Field(description="Nodes to write, or a builder.")


class FoldModel(_Model):
    """Replaces what depends on constants alone by constants."""

    max_bytes: int | None = Field(None, ge=0, description="Larger results stay computed.")


class JoinedModel(_Model):
    """What is put in front or behind: another file, or a text, and how it meets the model."""

    file: str | None = Field(
        None, description="An ONNX file, by its path from the folder of the recipe."
    )
    text: str | None = Field(None, description="A graph in ONNX's text, in place of `file`.")
    meets: dict[str, str] = Field(
        {}, description="Which end of it meets which of the model, where names are others."
    )
    brings: list[str] = Field(
        [],
        description="Further inputs of what is behind, or outputs of what is in front, which the "
        "whole has too.",
    )


class StepModel(_Model):
    """One step; exactly one key, and `without` or `only` beside `use`."""

    use: str | list[str] | None = Field(
        None, description="A recipe, by name or path; of a list, the rules make one step."
    )
    without: list[str] | None = Field(
        None, min_length=1, description="Rules of what is used, by id, that are left out here."
    )
    only: list[str] | None = Field(
        None, min_length=1, description="The rules of what is used, by id, that are taken here."
    )
    rules: list[RuleModel] | None = Field(
        None, description="Rules, tried until none fires any more."
    )
    fold: FoldModel | None = Field(
        None, description="Compute what depends on constants alone; `fold: {}` for usual sizes."
    )
    simplify: Literal["onnxsim"] | None = Field(
        None, description="Hand the model to another simplifier."
    )
    raise_opset: int | None = Field(
        None, alias="raise-opset", ge=9, description="A newer opset, by onnx's version converter."
    )
    lower_opset: int | None = Field(
        None,
        alias="lower-opset",
        ge=11,
        description="An older opset, where it says the same of what is used.",
    )
    free_batch: str | None = Field(
        None,
        alias="free-batch",
        pattern=r"^[A-Za-z_]\w*$",
        description="A name for the first dimension of a model whose batch is fixed: it becomes "
        "dynamic where each item is computed apart. Wants `allow: [contract]`.",
    )
    free_sizes: list[Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")]] | None = Field(
        None,
        alias="free-sizes",
        min_length=1,
        description="Names for the sizes of images, lines or volumes that are fixed (the last of "
        "them where there are fewer): they become dynamic where all that depends on them can be "
        "written for any. Wants `allow: [contract]`.",
    )
    ir_version: int | None = Field(
        None,
        alias="ir-version",
        ge=4,
        description="An older IR version, the format of the file, where it has all that is in it.",
    )
    as_read: Literal["types", "output-types", "order", "halves", "unread", "defaults"] | None = (
        Field(
            None,
            alias="as-read",
            description="What is only done to inputs and outputs is left to the caller: casts of "
            "inputs (`types`) or outputs (`output-types`), or Transposes (`order`); or halves are "
            "given as float32 and cast inside (`halves`); or inputs leave that nothing reads "
            "(`unread`), or that have a value in the file (`defaults`). Wants `allow: [contract]`.",
        )
    )
    plain_names: Literal[True] | None = Field(
        None,
        alias="plain-names",
        description="`true`: values, nodes and sizes are called by identifiers of C, inputs and "
        "outputs too. Wants `allow: [contract]`.",
    )
    rename: (
        dict[Annotated[str, Field(min_length=1)], Annotated[str, Field(min_length=1)]] | None
    ) = Field(
        None,
        min_length=1,
        description="Old names and new ones: of values, of nodes, or of sizes where neither has "
        "the name. Wants `allow: [contract]`.",
    )
    plain_attributes: Literal[True] | None = Field(
        None,
        alias="plain-attributes",
        description="`true`: attributes leave that came later than their operator and say what it "
        'did before, as `reduction = "none"` of ScatterND, and empty names at the end of operands.',
    )
    share_weights: Literal[True] | None = Field(
        None,
        alias="share-weights",
        description="`true`: of equal weights one stands in the file, and of a matrix and its "
        "transpose one too.",
    )
    state_shapes: Literal[True, "names"] | None = Field(
        None,
        alias="state-shapes",
        description="`true`: what is proven of every value's type and shape is written into the "
        "file, for tools that infer none; `names`: sizes that are computed are left open, for "
        "tools that read names alone.",
    )


class RecipeModel(_Model):
    """A recipe for surgeon."""

    surgeon: Literal[1] = Field(description="The version of this format.")
    name: str = Field(min_length=1, description="What reports call it.")
    about: str = Field("", description="What it is for, in one or two sentences.")
    rules: list[RuleModel] | None = Field(None, description="One step of rules.")
    steps: list[StepModel] | None = Field(None, description="Several steps, in order.")
    allow: list[Literal["approximate", "contract"]] = Field(
        [], description="Rules beyond the exact ones that may fire."
    )
    tidy: bool = Field(
        False, description="Folded constants and merged equals count as a change by themselves."
    )
    ensure: Literal["no-aten"] | None = Field(
        None, description="What must hold at the end: no node of PyTorch's own is left."
    )
    away_from: Literal["bfloat16", "float16", "float32", "float64", "int64"] | None = Field(
        None,
        alias="away-from",
        description="The element type that the recipe replaces: the report counts the nodes that "
        "still give it.",
    )
    custom: list[str] = Field([], description="Operators (`my.domain.Op`) that runtimes bring.")
    same_shape: list[str] = Field(
        [], description="Operators of `custom` whose output has its first input's dtype and shape."
    )
    functions: list[str] = Field(
        [], description="What operators of one's own compute: functions in ONNX's text."
    )
    changes: list[ChangeModel] | None = Field(
        None,
        description="What the model is to compute otherwise, once at every place found, before "
        "any step: an attribute, weights, a node that goes or comes. Wants `allow: [contract]`.",
    )
    in_front: str | JoinedModel | None = Field(
        None,
        alias="in-front",
        description="A graph in ONNX's text, or another file (`{file: pre.onnx}`), whose outputs "
        "are what inputs of the model were, before any step: a Cast of bytes, say. Wants "
        "`allow: [contract]`.",
    )
    behind: str | JoinedModel | None = Field(
        None,
        description="The same of a graph that is given outputs of the model: a suppression of "
        "boxes, say.",
    )


_PLAIN = re.compile(r"[\w.][\w. =<>+*/()-]*")  # what needs no quotes in a list of YAML
_KINDS = {
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "int_type": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
}


def validate(root: Value) -> RecipeModel:
    """The document as a model.

    Raises:
        RecipeError: The first thing in the document that does not have the shape of a recipe.
    """
    try:
        return RecipeModel.model_validate(root.plain())
    except ValidationError as error:
        found: Sequence[Mapping[str, Any]] = error.errors(include_url=False)
    raise min(
        (_translate(root, group) for group in _by_place(root, found)),
        key=lambda error: _position(error.where),
    )


def _position(where: Location | str) -> tuple[int, int]:
    return (where.line, where.column) if isinstance(where, Location) else (0, 0)


def _path(root: Value, steps: Sequence[str | int]) -> tuple[str | int, ...]:
    """What of an error's path stands in the document; pydantic adds names of its own."""
    path: tuple[str | int, ...] = ()
    for step in steps:
        if root.find(*path, step) is not None:
            path = (*path, step)
    return path


def _by_place(root: Value, errors: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Errors grouped by what they speak of: each alternative of a value complains by itself."""
    groups: dict[tuple[object, ...], list[Mapping[str, Any]]] = {}
    for error in errors:
        groups.setdefault(_path(root, error["loc"]), []).append(error)
    outer = {path[:length] for path in groups for length in range(len(path))}
    return [  # of text or a mapping it is the mapping that has something wrong inside
        group
        for path, group in groups.items()
        if path not in outer or any(error["type"] not in _KINDS for error in group)
    ]


def _translate(root: Value, errors: Sequence[Mapping[str, Any]]) -> RecipeError:
    error = next((e for e in errors if e["type"] not in _KINDS), errors[0])
    path = _path(root, error["loc"])
    value = root.find(*path) or root
    kind, name = error["type"], path[-1] if path else "the document"
    if kind == "extra_forbidden":
        parent = root.find(*path[:-1]) or root
        return RecipeError(
            f"unknown key `{name}`",
            where=parent.key_location(str(name)),
            mend=suggest(str(name), _known_keys(path[:-1])),
        )
    if kind == "missing":
        key = str(error["loc"][-1])
        if isinstance(value.content, Mapping):
            strange = value.content.keys() - set(_known_keys(path))
            for other in sorted(strange):
                if (near := suggest(other, [key])).startswith("Did"):
                    where = value.key_location(other)
                    return RecipeError(f"unknown key `{other}`", where=where, mend=near)
        return RecipeError(
            f"the key `{key}` is missing",
            where=value.location,
            mend=f"Add `{key}: {'1' if key == 'surgeon' else '...'}`.",
        )
    if isinstance(name, int):
        name = f"{path[-2]}[{name}]" if len(path) > 1 else str(name)
    if name == "surgeon" and kind == "literal_error":
        return RecipeError(
            f"`{value.content}` is no version of this format",
            where=value.location,
            mend="Write `surgeon: 1`.",
        )
    if kind == "literal_error":
        known = str(error["ctx"]["expected"]).replace("'", "").replace(" or ", ", ").split(", ")
        return RecipeError(
            f"`{name}` is `{value.content}`",
            where=value.location,
            mend=suggest(str(value.content), known),
        )
    if kind == "string_pattern_mismatch":
        return RecipeError(
            f"`{name}` is `{value.content}`",
            where=value.location,
            mend="Use small letters, digits and single hyphens.",
        )
    wanted = list(dict.fromkeys(_KINDS[e["type"]] for e in errors if e["type"] in _KINDS))
    if error["type"] in _KINDS:
        wanted = ["text"] if wanted[:1] == ["text"] and len(wanted) > 2 else wanted
        subject = f"`{name}`" if path else "the document"
        return RecipeError(
            f"{subject} is {_kind(value)}, not {' or '.join(wanted)}",
            where=value.location,
            mend=_mend_form(str(name), value, wanted),
        )
    return RecipeError(f"`{name}`: {error['msg']}", where=value.location, mend="Change the value.")


def _mend_form(name: str, value: Value, wanted: Sequence[str]) -> str:
    """How a value of the wrong kind is written: quoted, without quotes, or as a list of one."""
    if "text" in wanted:
        return "Put quotes around it."
    if wanted == ["a list"] and isinstance(value.content, str | int | float):
        text = str(value.content)
        word = text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
        return f"Write `{name}: [{word}]`."
    if wanted == ["an integer"] and str(value.content).isdecimal():
        return f"Write `{name}: {value.content}`, without quotes."
    return "Change its form."


def _kind(value: Value) -> str:
    content = value.content
    if isinstance(content, tuple):
        return "a list"
    if isinstance(content, Mapping):
        return "a mapping"
    return "empty" if content is None else f"`{content}`"


def _known_keys(path: Sequence[str | int]) -> list[str]:
    models: dict[str, type[BaseModel]] = {
        "rules": RuleModel,
        "changes": ChangeModel,
        "steps": StepModel,
        "in-front": JoinedModel,
        "behind": JoinedModel,
        "fold": FoldModel,
    }
    named = [step for step in path if isinstance(step, str)]
    model = models.get(named[-1], RecipeModel) if named else RecipeModel
    return [field.alias or name for name, field in model.model_fields.items()]
