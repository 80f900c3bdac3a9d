"""What is known of every value: dtype, shape and value, proven from axioms and never guessed."""

from surgeon.facts.fact import UNKNOWN, Fact
from surgeon.facts.inference import Facts
from surgeon.facts.walking import walked

__all__ = ["UNKNOWN", "Fact", "Facts", "walked"]
