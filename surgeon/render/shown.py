"""What a command line shows of what a call gives, as plain text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rich.console import Group
from rich.text import Text

from surgeon.adapting import Adaptation
from surgeon.batch.row import Row
from surgeon.difference import Difference
from surgeon.errors import RecipeError
from surgeon.extraction import Extraction
from surgeon.inspection import Inspection
from surgeon.listing import Written
from surgeon.reducing import Reduction
from surgeon.render import pages
from surgeon.render.adaptation import adaptation
from surgeon.render.batch import row_line
from surgeon.render.checks import parting, verdict
from surgeon.render.difference import difference
from surgeon.render.extraction import extraction
from surgeon.render.inspection import inspection
from surgeon.render.listing import listing
from surgeon.render.reduction import reduction
from surgeon.render.report import report
from surgeon.report import Report
from surgeon.surgery import Result
from surgeon.verify import Verdict


def _compared(found: Verdict) -> Any:
    """A verdict, and where the two part, if that was looked for and found."""
    return Group(verdict(found), parting(found)) if found.parting else verdict(found)


_FORMS: dict[type, Callable[[Any], Any]] = {
    Adaptation: adaptation,
    Difference: difference,
    Extraction: extraction,
    Inspection: inspection,
    Reduction: reduction,
    Report: report,
    Result: lambda found: report(found.report),
    Row: lambda found: Text(row_line(found)),
    Verdict: _compared,
}


def shown(found: Any) -> str:
    """What the command line shows of what a call gave, as plain text of 100 columns.

    Args:
        found: What `apply`, `adapt`, `difference`, `extract`, `inspect`, `nodes`, `reduce` or
            `verify` gave, a row of `batch`, or the report of one.

    Raises:
        RecipeError: It is nothing of the kind.
    """
    if isinstance(found, tuple) and all(isinstance(each, Written) for each in found):
        return listing(found) + "\n"
    form = _FORMS.get(type(found))
    if form is None:
        raise RecipeError(
            f"`{type(found).__name__}` has no text",
            where="shown",
            mend="Give what `apply`, `verify`, `inspect`, `difference`, `extract`, `reduce`, "
            "`adapt` or `nodes` gave, or a row of `batch`.",
        )
    return pages.text(form(found))
