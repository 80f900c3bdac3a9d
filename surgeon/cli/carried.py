"""What becomes of weights in files beside a model, as commands that save one are told."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from surgeon.cli import options


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
        help="From which size on `pack` puts weights into its file (`16M`); smaller ones go into "
        "OUT itself.",
        rich_help_panel="Output",
    ),
]


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

    least = options.read_size(above, where="--external-above", what="number of bytes", like="16M")
    check_way(way.value, target, name, least)
    return {"external_data": way.value, "external_name": name, "external_above": least}
