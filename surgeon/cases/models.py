"""The shape of a file of cases as pydantic models: for its JSON schema, and for the pages.

`reading` reads the files, with the place of every word; a test holds that the two have the same
keys.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class RefusalModel(_Model):
    """A rule that must not fire, tried by itself."""

    rule: str = Field(description="Its id.")
    because: str = Field(min_length=3, description="Words that the reason must hold.")


class FillingModel(_Model):
    """The numbers of an initializer."""

    seed: int | None = Field(
        None, ge=0, description="What they are drawn from; by default the place in `values`."
    )
    scale: float = Field(1.0, gt=0, description="The standard deviation of normal numbers.")
    between: list[float] | None = Field(
        None,
        min_length=2,
        max_length=2,
        description="Uniform numbers between these two; of integers, both included.",
    )


class CaseModel(_Model):
    """One case: a graph, and what a recipe must make of it."""

    case: str = Field(description="What it shows; no two cases of a file have one title.")
    fires: str | dict[str, int] | None = Field(
        None,
        description="The rule that must fire once; or of each rule how often; or `any`, where "
        "`after` alone counts. Rules that are not named must not fire.",
    )
    refuses: RefusalModel | None = Field(
        None, description="The rule that must not fire, and why not."
    )
    before: str = Field(description="The model, in ONNX's text syntax.")
    after: str | None = Field(
        None,
        description="The expected result, up to names. An input of it that `before` lacks "
        "stands for any constant of its type and shape.",
    )
    means: str | None = Field(
        None, description="What `before` computes, with operators that run: a second reference."
    )
    values: dict[str, FillingModel] = Field(
        {}, description="Inputs of the texts that are initializers, and their numbers."
    )
    shape: dict[str, list[int | str]] = Field({}, description="As `--shape`, by input.")
    assume: list[str] = Field([], description="As `--assume`.")
    allow: list[Literal["approximate", "contract", "leftover", "unread"]] = Field(
        [], description="As `--allow`, beside what the recipe allows."
    )
    sizes: dict[str, list[int]] = Field(
        {}, description="By dynamic dim, the sizes at which numbers are compared."
    )
    opsets: list[int] = Field(
        [], description="The opsets at which `before` is tried; by default the one it declares."
    )
    tolerance: float | None = Field(
        None, gt=0, description="The error of approximate rules, relative to the output's spread."
    )
    differs: str | None = Field(
        None,
        description="Words of the reason for which `apply` refuses a rewrite here: it differs "
        "from what it replaces on values that the case lacks.",
    )


class FileModel(_Model):
    """The cases of a recipe, in `NAME.cases.yaml` beside `NAME.yaml`."""

    about: str = Field("", description="What a reader should know of the cases.")
    cases: list[CaseModel] = Field(description="The cases.")


def schema() -> dict[str, Any]:
    """The JSON schema of a file of cases, for editors."""
    return FileModel.model_json_schema()
