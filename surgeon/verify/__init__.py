"""Shows that a rewrite broke nothing: original against result, on inputs. No proof, a check."""

from surgeon.verify.compare import compare_arrays
from surgeon.verify.pair import Pair
from surgeon.verify.verdict import Comparison, NotCompared, OutputCheck, Verdict
from surgeon.verify.whole import Reference, verify

__all__ = [
    "Comparison",
    "NotCompared",
    "OutputCheck",
    "Pair",
    "Reference",
    "Verdict",
    "compare_arrays",
    "verify",
]
