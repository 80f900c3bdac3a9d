"""A hundred files that mean harm or are broken, for batches of strangers' models.

Made from what the tests of such files give to `surgeon apply`, and of damaged, foreign and oddly
named files besides. Linux and macOS only.
"""

from __future__ import annotations

import os
import random
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from hostile_bombs import BOMBS
from hostile_broken import BROKEN
from hostile_data import WHERE
from hostile_models import network, with_tensor
from onnx import TensorProto

GOOD = frozenset(("repaired", "unchanged"))
ANY = GOOD | {"refused", "broken"}
NOT_READ = frozenset(("broken",))
BOUNDED = ANY | {"memory", "timeout"}  # what a bomb may come to
FOREIGN: dict[str, bytes] = {
    "empty": b"",
    "page": b"<!DOCTYPE html><p>404",
    "pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n",
    "json": b'{"model": []}',
    "zeros": bytes(5000),
    "pickle": b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x04evil\x85R.",
    "gzip": b"\x1f\x8b\x08" + bytes(100),
    "elf": b"\x7fELF" + bytes(100),
    "text": b"one.onnx\ntwo.onnx\n" * 100,
    "hdf5": b"\x89HDF\r\n\x1a\n" + bytes(100),
}
NAMES = (
    "<script>alert(1)<-script>.onnx",
    "'\" onmouseover=alert(1) x='.onnx",
    "esc\x1b[2J\x07.onnx",
    "line\nbreak.onnx",
    "\u202egnp.onnx",
    "n" * 240 + ".onnx",
    "-rf.onnx",
    "%2e%2e%2f.onnx",
    "{0}[bold]$HOME`id`.onnx",
    " space .onnx",
)


def make(folder: Path, count: int = 100) -> dict[str, frozenset[str]]:
    """Write so many files below a folder.

    Returns:
        For each name below the folder, the outcomes that are right.
    """
    kinds = (_broken, _data, _foreign, _damaged, _names, _bombs, _odd)
    offers = [list(kind()) for kind in kinds]
    chosen: list[tuple[str, Write, frozenset[str]]] = []
    while len(chosen) < count and any(offers):
        for offer in offers:  # of each kind in turn, so that few are of every kind
            if offer and len(chosen) < count:
                chosen.append(offer.pop(0))
    found = {}
    for name, write, outcomes in chosen:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path)
        found[name] = outcomes
    return found


Write = Callable[[Path], object]
Offer = Iterator[tuple[str, Write, frozenset[str]]]


def _bytes(data: bytes) -> Write:
    return lambda path: path.write_bytes(data)


def _broken() -> Offer:
    names = sorted(BROKEN)
    random.Random(5).shuffle(names)
    for index, name in enumerate(names):
        build, codes, _ = BROKEN[name]
        outcomes = NOT_READ if codes == (4,) else ANY
        yield f"broken/{index:03}.onnx", _bytes(build().SerializeToString()), outcomes


def _data() -> Offer:
    for index, (entries, _) in enumerate(WHERE.values()):
        yield f"data/{index:02}/m.onnx", _outward(entries), NOT_READ


def _outward(entries: dict[str, str]) -> Write:
    def write(path: Path) -> None:
        folder = path.parent
        (folder / "sub").mkdir()
        (folder / "data.bin").write_bytes(b"\1" * 64)
        (folder / "link.bin").symlink_to("/etc/hostname")
        (folder / "zero.bin").symlink_to("/dev/zero")
        (folder / "linked").symlink_to("/etc")
        os.mkfifo(folder / "pipe.bin")
        model = with_tensor()
        tensor = model.graph.initializer[0]
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=value)
        path.write_bytes(model.SerializeToString())

    return write


def _foreign() -> Offer:
    for name, data in FOREIGN.items():
        yield f"foreign/{name}.onnx", _bytes(data), NOT_READ


def _damaged() -> Offer:
    whole = network().SerializeToString()
    chance = random.Random(7)
    for index in range(40):
        end = chance.randrange(1, len(whole)) if index % 2 else len(whole)
        data = bytearray(whole[:end])
        for _ in range(chance.choice((1, 3, 10))):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        yield f"damaged/{index:02}.onnx", _bytes(bytes(data)), ANY


def _names() -> Offer:
    for index, name in enumerate(NAMES):
        model = network()
        model.graph.doc_string = str(index)  # no two are the same
        yield f"names/{name}", _bytes(model.SerializeToString()), GOOD


def _bombs() -> Offer:
    for index, name in enumerate(sorted(BOMBS)):
        yield f"bombs/{index:02}.onnx", _bytes(BOMBS[name]().SerializeToString()), BOUNDED


def _odd() -> Offer:
    refused = frozenset(("refused",))
    yield "odd/device.onnx", lambda path: path.symlink_to("/dev/zero"), refused
    yield "odd/pipe.onnx", os.mkfifo, refused
    yield "odd/sparse.onnx", _sparse, NOT_READ
    yield "odd/round.onnx", lambda path: path.symlink_to(path.name), refused
    yield "odd/out.onnx", lambda path: path.symlink_to("/etc/hostname"), refused
    yield "odd/nowhere.onnx", lambda path: path.symlink_to("gone"), refused
    yield "odd/bomb.onnx", _zip, NOT_READ


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def _zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.onnx", bytes(1 << 24))
