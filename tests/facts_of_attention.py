"""Attention's four outputs: what it gives, what it keeps, and the scores."""

from __future__ import annotations

from facts_case import Case

_HEADS = "float[b,4,s,6] q, float[b,2,t,6] k, float[b,2,t,3] v"
_LINES = "float[b,s,24] q, float[b,t,12] k, float[b,t,6] v"
_PAST = ", float[b,2,p,6] pk, float[b,2,p,3] pv"
_SPLIT = "<q_num_heads = 4, kv_num_heads = 2>"

ATTENTION = {
    "attention": Case(_HEADS, "y = Attention (q, k, v)", "[b, 4, s, 3]", None, (23,)),
    "attention-of-lines": Case(
        _LINES, f"y = Attention {_SPLIT} (q, k, v)", "[b, s, 12]", None, (23,)
    ),
    "attention-of-lines-of-any-width": Case(  # of which it says so too
        "float[b,s,d] q, float[b,t,e] k, float[b,t,f] v",
        "a = Attention <q_num_heads = 2, kv_num_heads = 2> (q, k, v) y = Abs (a)",
        None,
        None,
        (23,),
        at=tuple({"b": 2, "s": 3, "t": t, "d": 4, "e": 4, "f": 6} for t in (2, 3, 5)),
    ),
    "attention-scores": Case(  # of which onnx says that the last axis is 0
        _HEADS, "a, nk, nv, y = Attention (q, k, v)", "[b, 4, s, t]", None, (23,)
    ),
    "attention-scores-of-lines": Case(
        _LINES, f"a, nk, nv, y = Attention {_SPLIT} (q, k, v)", "[b, 4, s, t]", None, (23,)
    ),
    "attention-keys": Case(
        _LINES, f"a, y, nv = Attention {_SPLIT} (q, k, v)", "[b, 2, t, 6]", None, (23,)
    ),
    "attention-values-behind-others": Case(
        _HEADS + _PAST, "a, nk, y = Attention (q, k, v, , pk, pv)", "[b, 2, p + t, 3]", None, (23,)
    ),
    "attention-scores-behind-others": Case(
        _HEADS + _PAST,
        "a, nk, nv, y = Attention (q, k, v, , pk, pv)",
        "[b, 4, s, p + t]",
        None,
        (23,),
    ),
}
