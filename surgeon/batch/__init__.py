"""Many files: each is repaired in a worker of its own time and memory, and becomes one row."""

from surgeon.batch.row import FAILED, GOOD, OUTCOMES, Row, grouped, remarks
from surgeon.batch.run import batch
from surgeon.batch.sources import Source, find

__all__ = ["FAILED", "GOOD", "OUTCOMES", "Row", "Source", "batch", "find", "grouped", "remarks"]
