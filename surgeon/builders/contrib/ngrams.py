"""Scores of tokens that would repeat what was said, as onnxruntime's searches take them out."""

from __future__ import annotations

import numpy as np
import onnx_graphsurgeon as gs

from surgeon.builders.bench import LARGEST, Bench, whole_number
from surgeon.builders.contrib.settings import settings
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

_LONGEST = 64  # one comparison a token


def ngram_repeat_block(draft: Draft, match: Match) -> gs.Tensor:
    """`com.microsoft.NGramRepeatBlock (input_ids, scores)`: -inf where an n-gram would stand again.

    Token t is taken out where t follows, somewhere in `input_ids`, the n - 1 tokens that these
    end with. What does not repeat is written to a column behind the others, which is cut off.
    """
    node, c = match.root, Bench(draft)
    settings(node, 2, 2, {"ngram_size": None})
    ids, scores = node.inputs[:2]
    n = whole_number(node, "ngram_size")
    if not 0 < n <= _LONGEST:
        raise Refused(f"nothing is written for n-grams of {n}")
    tokens = c.slice(ids, 1, n - 1, LARGEST)
    vocabulary = c.size(scores, 1)
    places = tokens
    for back in range(n - 1, 0, -1):
        here = c.slice(ids, 1, n - 1 - back, -back)
        end = c.slice(ids, 1, -back, -back + 1 or LARGEST)
        places = c.where(c.op("Equal", here, end), places, c.vector([vocabulary]))
    wide = c.concat([scores, c.slice(scores, 1, 0, 1)], 1)
    out = c.op("Expand", c.number(-np.inf, c.dtype(scores)), c.op("Shape", places))
    operator = "ScatterElements" if c.opset >= 11 else "Scatter"
    return c.slice(c.op(operator, wide, places, out, axis=1), 1, 0, -1)
