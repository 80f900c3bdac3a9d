"""Shows that a rewrite broke nothing: original against result, on inputs. No proof, a check."""

from surgeon.verify.compare import check_pair, compare_arrays
from surgeon.verify.verdict import Comparison, NotCompared, OutputCheck, Verdict
from surgeon.verify.whole import Reference, verify

__all__ = [
    "Comparison",
    "NotCompared",
    "OutputCheck",
    "Reference",
    "Verdict",
    "check_pair",
    "compare_arrays",
    "verify",
]
