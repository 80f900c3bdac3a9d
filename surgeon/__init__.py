"""surgeon repairs ONNX files after export and shows that it broke nothing.

    import surgeon

    result = surgeon.apply("in.onnx", "dymn")
    print(result.report.status)
    result.model.save("out.onnx")

The names below are loaded when they are first asked for: `import surgeon` alone costs nothing.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surgeon.adapting import adapt as adapt
    from surgeon.authoring import rule as rule
    from surgeon.batch import batch as batch
    from surgeon.cases import run_cases as run_cases
    from surgeon.customops import custom_ops as custom_ops
    from surgeon.difference import difference as difference
    from surgeon.errors import ForeignError as ForeignError
    from surgeon.errors import LeftoverError as LeftoverError
    from surgeon.errors import ModelError as ModelError
    from surgeon.errors import OutputError as OutputError
    from surgeon.errors import RecipeError as RecipeError
    from surgeon.errors import SettleError as SettleError
    from surgeon.errors import SurgeonError as SurgeonError
    from surgeon.errors import UnfitError as UnfitError
    from surgeon.errors import VerifyError as VerifyError
    from surgeon.export import export as export
    from surgeon.extraction import extract as extract
    from surgeon.inspection import inspect as inspect
    from surgeon.listing import nodes as nodes
    from surgeon.model import Model as Model
    from surgeon.pairwise import verify as verify
    from surgeon.recipe import Recipe as Recipe
    from surgeon.recipe import Rule as Rule
    from surgeon.reducing import reduce as reduce
    from surgeon.render.shown import shown as shown
    from surgeon.report import Report as Report
    from surgeon.rewrite import Refused as Refused
    from surgeon.surgery import Result as Result
    from surgeon.surgery import apply as apply
    from surgeon.verify import Verdict as Verdict

    __version__: str

# Else onnxruntime, since 1.32, notes every session in the user's cache and sends it to Microsoft.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

_HOMES = {
    "ForeignError": "surgeon.errors",
    "LeftoverError": "surgeon.errors",
    "Model": "surgeon.model",
    "ModelError": "surgeon.errors",
    "OutputError": "surgeon.errors",
    "Recipe": "surgeon.recipe",
    "RecipeError": "surgeon.errors",
    "Refused": "surgeon.rewrite",
    "Report": "surgeon.report",
    "Result": "surgeon.surgery",
    "Rule": "surgeon.recipe",
    "SettleError": "surgeon.errors",
    "SurgeonError": "surgeon.errors",
    "UnfitError": "surgeon.errors",
    "Verdict": "surgeon.verify",
    "VerifyError": "surgeon.errors",
    "adapt": "surgeon.adapting",
    "apply": "surgeon.surgery",
    "batch": "surgeon.batch",
    "custom_ops": "surgeon.customops",
    "difference": "surgeon.difference",
    "export": "surgeon.export",
    "extract": "surgeon.extraction",
    "inspect": "surgeon.inspection",
    "isolation": "surgeon.isolation",
    "nodes": "surgeon.listing",
    "reduce": "surgeon.reducing",
    "rule": "surgeon.authoring",
    "run_cases": "surgeon.cases",
    "shown": "surgeon.render.shown",
    "verify": "surgeon.pairwise",
}

__all__ = [
    "ForeignError",
    "LeftoverError",
    "Model",
    "ModelError",
    "OutputError",
    "Recipe",
    "RecipeError",
    "Refused",
    "Report",
    "Result",
    "Rule",
    "SettleError",
    "SurgeonError",
    "UnfitError",
    "Verdict",
    "VerifyError",
    "adapt",
    "apply",
    "batch",
    "custom_ops",
    "difference",
    "export",
    "extract",
    "inspect",
    "isolation",
    "nodes",
    "reduce",
    "rule",
    "run_cases",
    "shown",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("onnx-recipe-surgeon")
    if name not in _HOMES:
        raise AttributeError(f"module 'surgeon' has no attribute {name!r}")
    from surgeon.collector import collector_paused

    with collector_paused():
        value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})


class _Face(ModuleType):
    """The package as a module whose functions a submodule of the same name does not hide.

    Importing `surgeon.verify` would set the attribute `verify` to the module.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Face
