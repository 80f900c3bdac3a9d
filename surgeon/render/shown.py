"""What a command line shows of what a call gives, as plain text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from surgeon.adapting import Adaptation
from surgeon.difference import Difference
from surgeon.errors import RecipeError
from surgeon.extraction import Extraction
from surgeon.inspection import Inspection
from surgeon.reducing import Reduction
from surgeon.render import pages
from surgeon.render.adaptation import adaptation
from surgeon.render.checks import verdict
from surgeon.render.difference import difference
from surgeon.render.extraction import extraction
from surgeon.render.inspection import inspection
from surgeon.render.reduction import reduction
from surgeon.render.report import report
from surgeon.report import Report
from surgeon.surgery import Result
from surgeon.verify import Verdict

_FORMS: dict[type, Callable[[Any], Any]] = {
    Adaptation: adaptation,
    Difference: difference,
    Extraction: extraction,
    Inspection: inspection,
    Reduction: reduction,
    Report: report,
    Result: lambda found: report(found.report),
    Verdict: verdict,
}


def shown(found: Any) -> str:
    """What the command line shows of what a call gave, as plain text of 100 columns.

    Args:
        found: What `apply`, `adapt`, `difference`, `extract`, `inspect`, `reduce` or `verify` gave,
            or the report of one.

    Raises:
        RecipeError: It is nothing of the kind.
    """
    form = _FORMS.get(type(found))
    if form is None:
        raise RecipeError(
            f"`{type(found).__name__}` has no text",
            where="shown",
            mend="Give what `apply`, `verify`, `inspect`, `difference`, `extract`, `reduce` or "
            "`adapt` gave.",
        )
    return pages.text(form(found))
