"""Shows that a rewrite broke nothing: original against result, on inputs. No proof, a check."""

from surgeon.verify.compare import compare_arrays
from surgeon.verify.differing import bisect
from surgeon.verify.pair import open_pair
from surgeon.verify.verdict import Comparison, NotCompared, OutputCheck, Parting, Verdict
from surgeon.verify.whole import verify

__all__ = [
    "Comparison",
    "NotCompared",
    "OutputCheck",
    "Parting",
    "Verdict",
    "bisect",
    "compare_arrays",
    "open_pair",
    "verify",
]
