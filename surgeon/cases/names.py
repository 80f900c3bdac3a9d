"""The names by which a case gives `values` and `sizes`: each is one of its texts, else a typo."""

from __future__ import annotations

from collections.abc import Collection

import onnx

from surgeon.cases.reading import Case
from surgeon.document import suggest
from surgeon.errors import RecipeError
from surgeon.model import Model
from surgeon.verify.asked import dims_of


def see_values_named(case: Case) -> None:
    """See that `values` fills inputs of the case's texts.

    Raises:
        RecipeError: None of them has an input of that name, or one is no model.
    """
    if case.values:
        texts = [text for text in (case.before, case.after, case.means) if text is not None]
        known = {value.name for text in texts for value in text.parsed().graph.input}
        _see(case, "values", "no text of the case has an input `{}`", known)


def see_sizes_named(case: Case, before: onnx.ModelProto) -> None:
    """See that `sizes` is of dims that are dynamic.

    Args:
        case: The case.
        before: What the recipe is applied to, with what it joins to that.

    Raises:
        RecipeError: No input has a dim of that name.
    """
    if case.sizes:
        known = dims_of(Model(before), case.shape)
        _see(case, "sizes", "no input of `before` has a dimension named `{}`", known)


def _see(case: Case, key: str, what: str, known: Collection[str]) -> None:
    for name, where in case.places.get(key, {}).items():
        if name not in known:
            raise RecipeError(what.format(name), where=where, mend=suggest(name, known))
