"""The option that names libraries of custom operators, which `desk` lets onnxruntime load."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

CustomOps = Annotated[
    list[Path] | None,
    typer.Option(
        "--custom-ops",
        metavar="LIBRARY",
        help="A library of custom operators for onnxruntime, so that what the model has of them is "
        "run and compared; its code is run. Or SURGEON_CUSTOM_OPS in the environment.",
        rich_help_panel="Checking",
    ),
]
