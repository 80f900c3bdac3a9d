"""How a model is saved, as commands are told: where its weights go, what it says of itself."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from surgeon.cli import options
from surgeon.cli.console import UsageError


class Carried(StrEnum):
    """What becomes of external data."""

    KEEP = "keep"
    COPY = "copy"
    INLINE = "inline"
    PACK = "pack"


ExternalData = Annotated[
    Carried,
    typer.Option(
        "--external-data",
        help="`keep`: weights stay in their files, which are put beside OUT if it lies in another "
        "folder. `copy`: OUT shares no file with IN. `inline`: they go into OUT itself. "
        "`pack`: what OUT reads, and nothing else, goes into one file beside it.",
        rich_help_panel="Output",
    ),
]
ExternalName = Annotated[
    str | None,
    typer.Option(
        "--external-name",
        metavar="NAME",
        help="What `pack` calls its file, in place of OUT's name with a hash of the content. A "
        "file of that name that holds other data is not written over: it is refused.",
        rich_help_panel="Output",
    ),
]
ExternalAbove = Annotated[
    str | None,
    typer.Option(
        "--external-above",
        metavar="BYTES",
        help="From which size on `pack` puts weights into its file, as `16M`; smaller ones go into "
        "OUT itself. Without it those of 1K and more, and all that came from files.",
        rich_help_panel="Output",
    ),
]


Metadata = Annotated[
    list[str] | None,
    typer.Option(
        "--metadata",
        metavar="KEY=TEXT",
        help="What OUT is to say of itself, where any viewer shows it; `KEY=` takes an entry out.",
        rich_help_panel="Output",
    ),
]


Rename = Annotated[
    list[str] | None,
    typer.Option(
        "--rename",
        metavar="OLD=NEW",
        help="What an input, an output, a value in between or a node of OUT is called, or a size "
        "where nothing else has the name.",
        rich_help_panel="Output",
    ),
]


def read_renaming(texts: Sequence[str] | None) -> dict[str, str]:
    """`input.1=image` as the old name and the new one.

    Raises:
        UsageError: As for `options.read_pairs`.
    """
    return options.read_pairs(
        texts,
        where="--rename",
        what="says no two names",
        mend="Write it as `input.1=image`: the name that it has, then the new one.",
        twice="{} gets two names",
    )


def read_metadata(texts: Sequence[str] | None) -> dict[str, str | None]:
    """`author=me` as key and text; without a text, None.

    Raises:
        UsageError: The text does not have this form, or says a key twice.
    """
    found: dict[str, str | None] = {}
    for text in texts or ():
        key, equals, said = text.partition("=")
        if not equals or not key:
            raise UsageError(
                f"`{text}` is no entry of metadata",
                where="--metadata",
                mend="Write it as `author=me`: a key, then a text.",
            )
        if key in found:
            raise UsageError(
                f"`{key}` has two texts", where="--metadata", mend="Leave one of them out."
            )
        found[key] = said or None
    return found


def carrying(target: Path, way: Carried, name: str | None, above: str | None) -> dict[str, Any]:
    """How a model is saved, as arguments of `Model.save`.

    Args:
        target: The file that it is saved in.
        way: What becomes of external data.
        name: Of the data file, as it was told.
        above: Of what size on weights go there, as it was told.

    Raises:
        RecipeError, UsageError: They do not go together, or say nothing.
    """
    from surgeon.external import check_way

    like = {"where": "--external-above", "what": "number of bytes", "like": "16M"}
    least = 0 if above is not None and above.strip() == "0" else options.read_size(above, **like)
    check_way(way.value, target, name, least)
    return {"external_data": way.value, "external_name": name, "external_above": least}
