"""Turns what surgeon found into text and pages. It prints nothing.

What became of a batch is in `surgeon.render.batch` and `.batch_page`, which bring `surgeon.batch`.
"""

from surgeon.render.adaptation import adaptation, rounds
from surgeon.render.checks import parting, recorded, verdict
from surgeon.render.difference import difference
from surgeon.render.division import division
from surgeon.render.errors import error
from surgeon.render.explanation import explanation, explanation_data
from surgeon.render.extraction import extraction
from surgeon.render.history import log, seal
from surgeon.render.inspection import inspection
from surgeon.render.listing import listing
from surgeon.render.lists import complaints, examination, outcomes, recipe, recipes, words_of
from surgeon.render.pages import html, text
from surgeon.render.reduction import ending, reduction
from surgeon.render.report import report
from surgeon.render.standing import standings
from surgeon.render.words import clean, name, seconds, size

__all__ = [
    "adaptation",
    "clean",
    "complaints",
    "difference",
    "division",
    "ending",
    "error",
    "examination",
    "explanation",
    "explanation_data",
    "extraction",
    "html",
    "inspection",
    "listing",
    "log",
    "name",
    "outcomes",
    "parting",
    "recipe",
    "recipes",
    "recorded",
    "reduction",
    "report",
    "rounds",
    "seal",
    "seconds",
    "size",
    "standings",
    "text",
    "verdict",
    "words_of",
]
