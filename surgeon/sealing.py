"""Whether a saved file is still the one that was written: a digest of all but its own log.

It shows changes, and proves nobody's word: who changes a file can change its log. Weights in files
beside it are covered by where they lie in these and by how large these are, and small files by a
digest of their own, so that sealing 10 GB costs what their graph costs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import onnx

from surgeon.errors import ModelError, SurgeonError, UnsealedError, few
from surgeon.external import external_tensors, locations
from surgeon.provenance import KEY, history
from surgeon.reading import external_path, open_file
from surgeon.wire import copy_field
from surgeon.writer import set_property

SMALL = 1 << 26  # bytes of data files that are read for it, together
_PIECE = 1 << 20
SEAL = "file"  # the entry of a run that holds it


def digest_of(model: onnx.ModelProto, initializers: Iterable[onnx.TensorProto] = ()) -> str:
    """The SHA-256 of a model without its log, however its fields are ordered in the file.

    Args:
        model: Is not changed.
        initializers: Further ones of the main graph, behind its own.
    """
    made = hashlib.sha256()
    for part in _parts(model, initializers):
        data = part.SerializeToString(deterministic=True)
        made.update(b"%d\n" % len(data))
        made.update(data)
    return made.hexdigest()


def _parts(model: onnx.ModelProto, initializers: Iterable[onnx.TensorProto]) -> Iterator[Any]:
    """The model without graph and log, the graph without initializers, and these one by one."""
    head, graph = onnx.ModelProto(), onnx.GraphProto()
    for message, copy, apart in ((model, head, "graph"), (model.graph, graph, "initializer")):
        for field, value in message.ListFields():
            if field.name != apart and not (copy is head and field.name == "metadata_props"):
                copy_field(field.name, value, copy)
    head.metadata_props.extend(each for each in model.metadata_props if each.key != KEY)
    yield head
    yield graph
    yield from model.graph.initializer
    yield from initializers


def seal(
    model: onnx.ModelProto, folder: Path, initializers: Sequence[onnx.TensorProto] = ()
) -> None:
    """Put what tells the file from others into the last run of its log.

    Args:
        model: As it is saved, with its log.
        folder: Where its external data lie.
        initializers: Further ones of the main graph.
    """
    runs = history(model.metadata_props)
    if not runs:
        return
    sealed: dict[str, Any] = {"sha256": digest_of(model, initializers)}
    if data := _data_files(model, folder):
        sealed["data"] = data
    runs[-1][SEAL] = sealed
    set_property(model.metadata_props, KEY, json.dumps(runs, ensure_ascii=False))


@dataclass(frozen=True, slots=True)
class Seal:
    """What a check of a file against its log found.

    Attributes:
        holds: Whether the file is the one that was written, and was made of the source that was
            named.
        faults: In what not, in words.
        notes: What holds, and what the log does not cover.
    """

    holds: bool
    faults: tuple[str, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def checked(model: onnx.ModelProto, path: Path, source: Path | None = None) -> Seal:
    """Hold a file against the last run of its log.

    Args:
        model: As it was read.
        path: Where from.
        source: What it was made of, perhaps.

    Raises:
        UnsealedError: No log of it can tell.
        ModelError: The source cannot be read.
    """
    runs = history(model.metadata_props) or []
    sealed = runs[-1].get(SEAL) if runs else None
    if not isinstance(sealed, dict) or not isinstance(sealed.get("sha256"), str):
        what = "its log is of a version that kept no digest" if runs else "it has no log"
        raise UnsealedError(
            f"nothing can be checked: {what}",
            where=str(path),
            mend="Make it anew: `surgeon apply` writes what `--check` asks for.",
        )
    told = sealed.get("data")
    data = told if isinstance(told, dict) else {}
    found = list(_faults(model, path.parent, sealed["sha256"], data))
    notes = [] if found else ["the file is the one that was written"]
    if source is not None:
        place = _made_of(runs, source)
        if place is None:
            found.append(f"the log names no file as `{source}` is: it was not made of it")
        else:
            notes.append(f"run {place} of {len(runs)} was of `{source}`, as the log says")
    if sizes := [name for name, was in data.items() if "sha256" not in (was or ())]:
        notes.append(f"of data files the size alone is known: {few(sizes)}")
    notes.append("a log is no signature: who changes a file can write another one")
    return Seal(not found, tuple(found), tuple(notes))


def _faults(
    model: onnx.ModelProto, folder: Path, digest: str, data: Mapping[str, Any]
) -> Iterator[str]:
    if digest_of(model) != digest:
        yield "the model is not the one that was written"
    for name, was in data.items():
        now = _data_file(name, folder, read=isinstance(was, dict) and "sha256" in was)
        if now is None:
            yield f"its data file `{name[:200]}` is missing"
        elif now != was:
            yield f"its data file `{name[:200]}` is another"


def _made_of(runs: Sequence[Mapping[str, Any]], source: Path) -> int | None:
    """The run that began with a file, counted from 1, the last such."""
    try:
        digest = sha256_of(source)
    except OSError as error:
        raise ModelError(
            f"it cannot be read: {error.strerror}", where=str(source), mend="Check the path."
        ) from None
    for place in range(len(runs), 0, -1):
        told = runs[place - 1].get("source")
        if isinstance(told, dict) and told.get("sha256") == digest:
            return place
    return None


def sha256_of(path: Path) -> str:
    """That of a file's bytes."""
    made = hashlib.sha256()
    with open_file(path) as file:
        while piece := file.read(_PIECE):
            made.update(piece)
    return made.hexdigest()


def _data_files(model: onnx.ModelProto, folder: Path) -> dict[str, Any]:
    names = sorted(locations(external_tensors(model)))
    sizes = [_data_file(name, folder, read=False) for name in names]
    small = sum(each["bytes"] for each in sizes if each) <= SMALL
    found = {name: _data_file(name, folder, read=small) for name in names}
    return {name: each for name, each in found.items() if each is not None}


def _data_file(name: str, folder: Path, *, read: bool) -> dict[str, Any] | None:
    """How large a file is, and what it holds; None where it is not there."""
    try:
        path = external_path(name, folder)
        size = path.stat().st_size
        return {"bytes": size} | ({"sha256": sha256_of(path)} if read else {})
    except (OSError, SurgeonError):  # no such file, or one outside the folder
        return None
