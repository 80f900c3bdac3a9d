"""TorchScript's dictionaries with constant texts for keys: what is under a key is known."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_graphsurgeon as gs

from surgeon.arguments import text_of
from surgeon.builders.aten_scripts.operands import required
from surgeon.builders.bench import Bench
from surgeon.links import maker_of
from surgeon.match import Match
from surgeon.rewrite import Draft, Refused

Known = Mapping[str, tuple[gs.Tensor, gs.Tensor]]  # key and value, by the key's text


def entries(tensor: gs.Tensor) -> Known | None:
    """The entries of a dictionary where a node makes it of them; None for anything else."""
    made = maker_of(tensor)
    if made is None or made.op != "DictConstruct":
        return None
    pairs = zip(made.inputs[::2], made.inputs[1::2], strict=True)
    found: dict[str, tuple[gs.Tensor, gs.Tensor]] = {}
    for key, value in pairs:
        found[_text(key)] = key, value
    return found


def _text(key: gs.Tensor) -> str:
    text = text_of(key)
    if text is None:
        raise Refused(f"the key `{key.name}` of its dictionary is no constant text")
    return text


def of_key(known: Known, node: gs.Node) -> gs.Tensor:
    """The value under a key."""
    key = _text(required(node, 1))
    if key not in known:
        raise Refused(f"its dictionary has no key `{key}`")
    return known[key][1]


def with_entry(c: Bench, known: Known, key: gs.Tensor, value: gs.Tensor) -> gs.Tensor:
    """A dictionary with one more entry, or another value under a key."""
    return _made(c, {**known, _text(key): (key, value)})


def without(c: Bench, known: Known, node: gs.Node) -> gs.Tensor:
    """A dictionary without a key."""
    of_key(known, node)
    key = _text(required(node, 1))
    return _made(c, {k: entry for k, entry in known.items() if k != key})


def _made(c: Bench, known: Known) -> gs.Tensor:
    pairs = [tensor for entry in known.values() for tensor in entry]
    made: gs.Tensor = c.op("DictConstruct", *pairs, domain="aten", overload="")
    return made


def dictionary_entry(draft: Draft, match: Match) -> gs.Tensor:
    """An entry that the exporter puts into a dictionary as into a list: taken out, then put in."""
    rest, put = match.nodes[1], match.root
    known = entries(rest.inputs[0])
    if known is None:
        raise Refused("it is a list")
    if _text(rest.inputs[1]) != _text(required(put, 2)):
        raise Refused("it takes another key out than it puts in")
    return with_entry(Bench(draft), known, required(put, 2), required(put, 1))


def dictionary_value(draft: Draft, match: Match) -> gs.Tensor:
    """A value that the exporter takes out of a dictionary as out of a tensor."""
    known = entries(match.root.inputs[0])
    assert known is not None
    return of_key(known, match.root)
