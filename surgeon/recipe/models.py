"""The shape of a recipe file, as pydantic models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Words = str | int | float | bool
"""An expression: text, or a number that YAML already took for one."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, protected_namespaces=())


class BuilderModel(BaseModel):
    """A replacement computed by a builder; further keys are its arguments, as expressions."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, protected_namespaces=())
    __pydantic_extra__: dict[str, Words] = Field(init=False)

    build: str = Field(description="The builder's name.")


class RuleModel(_Model):
    """One rule: what to look for, when, and what to write in its place."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", description="Its name in reports.")
    why: str = Field(description="Why the rewrite is right, in one sentence.")
    exact: Literal["bit", "rounding", "approximate"] = Field(description="What it promises.")
    relative_to: str | None = Field(
        None, description="What the error is to be seen beside; for readers alone."
    )
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
    optional: bool = Field(
        False, description="Whether a model stays as it is that has no place for it; else an error."
    )


class LimitModel(_Model):
    """Of a target's list: what a node must be like that the runtime takes."""

    match: str = Field(description="The node, in ONNX's text syntax, and what stands before it.")
    where: list[Words] = Field([], description="Conditions; all must be provably true.")
    let: dict[str, Words] = Field({}, description="Computed values, in order.")
    why: str = Field("", description="What is said of nodes that are not like it.")


class FoldModel(_Model):
    """Replaces what depends on constants alone by constants."""

    max_bytes: int | None = Field(
        None,
        ge=0,
        description="Results of more stay computed, but for those no larger than what they are "
        "computed of.",
    )


class HeaderModel(_Model):
    """What a model says of itself, beside what it computes."""

    metadata: dict[str, str | None] = Field(
        {}, description="Entries by their keys; without a value one leaves."
    )
    doc_string: str | None = Field(None, alias="doc-string", description="What it is, in words.")
    graph_name: str | None = Field(
        None, alias="graph-name", min_length=1, description="What its graph is called."
    )
    domain: str | None = Field(None, description="Whose it is, as `com.example`.")
    model_version: int | None = Field(
        None, alias="model-version", ge=0, lt=1 << 63, description="Which of its versions it is."
    )


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
    """One step: one key, `without` or `only` beside `use`, and `keep` beside any of rules."""

    use: str | list[str] | None = Field(
        None, description="A recipe, by name or path; of a list, the rules make one step."
    )
    without: list[str] | None = Field(
        None, min_length=1, description="Rules of what is used, by id, that are left out here."
    )
    keep: list[str] | None = Field(
        None,
        min_length=1,
        description="Beside `use`, `rules`, `fold` or `unroll`: operators, nodes or values by "
        "name; what is or makes these stays as it is.",
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
    unroll: int | None = Field(
        None,
        ge=1,
        le=10_000,
        description="Write out Loops, Scans and SequenceMaps of so many turns at most, one turn "
        "behind the other, where that makes no more than 32 nodes for each turn that is allowed; "
        "every step of rules does so with Loops and SequenceMaps of 16.",
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
    plain_metadata: Literal[True, "inside"] | None = Field(
        None,
        alias="plain-metadata",
        description="`true`: doc strings and metadata leave, of nodes, values, weights, graphs, "
        "functions and the model, but for surgeon's log; `inside`: those of the model stay, which "
        "programs may read.",
    )
    header: HeaderModel | None = Field(
        None,
        description="What the file is to say of itself: `metadata: {author: me}`, `doc-string`, "
        "`graph-name`, `domain`, `model-version`.",
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
    name: str = Field(pattern=r"^[^/\s]([^/\r\n]*[^/\s])?$", description="What reports call it.")
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
