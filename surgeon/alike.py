"""What two nodes have to have alike to compute the same of the same operands."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import onnx_graphsurgeon as gs

Key = tuple[tuple[str, Any, Any], ...]
_name_of = itemgetter(0)
_SINGLE = frozenset({int, str, bytes, bool})
_SCALARS = (int, float, str, bytes)


def attributes_of(node: gs.Node) -> Key | None:
    """The attributes of a node in their normal form, to compare; None where they hold more.

    Kept on the node, whose plain attributes are not changed after it was normalised.
    """
    attrs = node.attrs
    if not attrs:
        return ()
    known = node.__dict__.get("attributes_key", False)
    if known is not False:
        return known  # type: ignore[no-any-return]
    key = spelled(attrs)
    if node.__dict__.get("normal"):
        node.__dict__["attributes_key"] = key
    return key


def spelled(attrs: Mapping[str, Any]) -> Key | None:
    """Attributes by name, to compare; None where one is no number, text or list of them."""
    found: list[tuple[str, Any, Any]] = []
    for name, value in attrs.items():
        if type(value) in _SINGLE:
            found.append((name, type(value), value))
        elif isinstance(value, _SCALARS):
            found.append((name, type(value), _told_apart(value)))
        elif isinstance(value, (list, tuple)) and all(isinstance(v, _SCALARS) for v in value):
            found.append((name, list, tuple(map(_told_apart, value))))
        else:
            return None
    found.sort(key=_name_of)
    return tuple(found)


def _told_apart(value: Any) -> Any:
    """A value that equals what it is alone: -0.0 equals 0.0, and 1 equals 1.0."""
    return repr(value) if isinstance(value, float) else value
