"""External data: weights in files beside the model. They stay where they are unless asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy.typing as npt
import onnx

from surgeon.errors import ModelError, OutputError, RecipeError, SurgeonError
from surgeon.files import bring, foresee_bring, see_no_link
from surgeon.nested import every_body
from surgeon.packing import foresee_pack, is_portable, pack
from surgeon.reading import external_path, open_inside
from surgeon.stored import bytes_of

KEEP, COPY, INLINE, PACK = WAYS = ("keep", "copy", "inline", "pack")
LARGEST = (1 << 31) - (1 << 20)  # bytes of weights in one protobuf, which ends at 2 GiB
ASIDE = 1 << 20  # bytes of new weights that stay in the protobuf of a model with external data
_SMALL = 1 << 10  # bytes of a tensor that always stays there, as in onnx's own helper


def external_tensors(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Every tensor of the model whose values lie in another file."""
    return (t for t in _tensors(proto) if t.data_location == t.EXTERNAL)


def bytes_outside(proto: onnx.ModelProto) -> int:
    """Bytes of all tensors whose values lie in another file."""
    return sum(map(bytes_of, external_tensors(proto)))


def _tensors(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    stack: list[Any] = [proto.graph, *proto.functions]
    while stack:
        graph = stack.pop()
        if isinstance(graph, onnx.GraphProto):
            yield from graph.initializer
            for sparse in graph.sparse_initializer:
                yield from (sparse.values, sparse.indices)
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t
                if attribute.HasField("g"):
                    stack.append(attribute.g)
                yield from attribute.tensors
                stack.extend(attribute.graphs)


def check_way(way: str, target: Path, name: str | None, above: int | None) -> None:
    """See that there is such a way to carry data, and that the file can be called so.

    Args:
        way: How.
        target: The file that the model is saved in.
        name: Of the data file.
        above: Bytes from which on values go there.

    Raises:
        RecipeError: There is none, or it makes no such file, or this is no name of a file beside.
    """
    if way not in WAYS:
        raise RecipeError(
            f"`{way}` is no way to carry data",
            where="--external-data",
            mend=f"Say {', '.join(f'`{way}`' for way in WAYS[:-1])} or `{WAYS[-1]}`.",
        )
    for option, given in (("--external-name", name), ("--external-above", above)):
        if given is not None and way != PACK:
            raise RecipeError(
                f"`--external-data {way}` packs nothing",
                where=option,
                mend="Add `--external-data pack`, or leave it out.",
            )
    if above is not None and above < 0:
        what, mend = f"`{above}` is no number of bytes", "Say 0 for all, or more."
        raise RecipeError(what, where="--external-above", mend=mend)
    if name is None:
        return
    if not is_portable(name) or name.casefold() == target.name.casefold():
        raise RecipeError(
            f"`{name[:200]}` is no name of a file beside the model on every system, or that of the "
            "model, or of a backup",
            where="--external-name",
            mend="Write it without folders, as `weights.bin`.",
        )


class Carrier:
    """Brings the data of a model to where the model is saved.

    Args:
        source: The folder of the model they came with; None where there is none.
        target: The file the model is saved in.
        way: `keep`, `copy`, `inline` or `pack`.
        name: What `pack` calls the file; without one it is called by its content.
        above: Bytes from which on `pack` puts values outside, and below which it puts them inside;
            without it all that lies outside stays there, and what has some size goes there.
        dry: Whether nothing is written, and only what would be refused is.

    Attributes:
        edits: Whether the model has to be written anew for it.
    """

    def __init__(
        self,
        source: Path | None,
        target: Path,
        way: str,
        name: str | None = None,
        above: int | None = None,
        *,
        dry: bool = False,
    ) -> None:
        self.source, self.target, self.way = source, target, way
        self.name, self.above, self.dry = name, above, dry
        self._beside = source is not None and _same(source, target.parent)
        self.edits = way in (INLINE, PACK) or (way == COPY and self._beside)
        self._brought: list[Path] = []

    def carry(self, tensors: Iterable[onnx.TensorProto]) -> None:
        """See that what the tensors refer to is where they say, seen from the target.

        Args:
            tensors: With external data; edited where `edits` says so.

        Raises:
            ModelError: A location is outside the model's folder, or the file is missing; or the
                data are more than a protobuf holds.
            OutputError: The data cannot be written.
        """
        found = list(tensors)
        if self.source is None or not found:
            return
        places = self._places(found)
        if self.way == INLINE:
            _inline(found, self.source, self.target, OutputError)
            return
        for location, inside in sorted(places.items()):
            to = self._place(location)
            if to is None:
                continue
            see_no_link(to, self.target.parent)
            if self.dry:
                foresee_bring(inside, to)
            elif bring(inside, to, inside=self.source):
                self._brought.append(to)
        if self.edits:
            for tensor in found:
                for each in tensor.external_data:
                    if each.key == "location":
                        each.value = self._own(each.value)

    def settle(self, proto: onnx.ModelProto, original: onnx.ModelProto | None) -> None:
        """See that all data of what is saved are where it says.

        Args:
            proto: What is saved; edited.
            original: What was read, where that is another: its inline weights stay inline.

        Raises:
            ModelError, OutputError: As of `carry`.
        """
        if self.way == PACK:
            outside = list(external_tensors(proto))
            self._places(outside)
            if self.above is not None:
                small = [each for each in outside if bytes_of(each) < self.above]
                outside = [each for each in outside if bytes_of(each) >= self.above]
                _inline(small, self.source or Path(), self.target, OutputError)
            least = _SMALL if self.above is None else max(1, self.above)  # of 0 bytes none
            self._pack([*outside, *_large(proto, least)], self.name)
            return
        self.carry(external_tensors(proto))
        if original is not None:
            self._put_aside(proto, original)

    def _put_aside(self, proto: onnx.ModelProto, original: onnx.ModelProto) -> None:
        """Put large new weights of a model with external data into a data file of their own."""
        if self.way == INLINE or next(external_tensors(original), None) is None:
            return
        old = {tensor.name for tensor in original.graph.initializer if tensor.raw_data}
        new = [
            tensor
            for tensor in proto.graph.initializer
            if len(tensor.raw_data) >= _SMALL and tensor.name not in old
        ]
        if sum(len(tensor.raw_data) for tensor in new) >= ASIDE:
            self._pack(new)

    def _pack(self, tensors: Sequence[onnx.TensorProto], name: str | None = None) -> None:
        """Put what the tensors hold into one file."""
        if tensors and self.dry:
            foresee_pack(tensors, self.source, self.target, name)
            for tensor in tensors:  # which would lie outside: what is left is what has to fit
                tensor.ClearField("raw_data")
        elif tensors:
            to, is_new = pack(tensors, self.source, self.target, name)
            self._brought += [to] * is_new

    def _places(self, tensors: Iterable[onnx.TensorProto]) -> dict[str, Path]:
        """Where each data file of the tensors lies; none is the output, or where it goes."""
        if self.source is None:
            return {}
        places = {each: external_path(each, self.source) for each in locations(tensors)}
        for location, inside in places.items():
            self._refuse_own(location, inside)
        return places

    def take_back(self, *, unless: Iterable[bytes]) -> None:
        """Remove what was brought: the model it was for is not there, unless it just came.

        Args:
            unless: The bytes of the model: an interrupt may come when they are in place already.
        """
        with contextlib.suppress(OSError):
            if self._brought and self.target.read_bytes() == b"".join(unless):
                return
        for path in self._brought:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        self._brought.clear()

    def _place(self, location: str) -> Path | None:
        """Where a data file goes; None where it is there already."""
        if self._beside:
            return self.target.parent / self._own(location) if self.way == COPY else None
        if any(part.startswith(".") for part in PurePosixPath(location).parts):
            raise OutputError(
                f"the data file `{location[:200]}` is a hidden one, and is not put there",
                where=str(self.target.parent),
                mend="Save the model beside its data, or with `--external-data inline`.",
            )
        return self.target.parent / location

    def _own(self, location: str) -> str:
        """The name of a data file of the target's own, in the same folder."""
        pure = PurePosixPath(location)
        return pure.with_name(f"{self.target.stem}.{pure.name}").as_posix()

    def _refuse_own(self, location: str, inside: Path) -> None:
        """Refuse an output that is a data file of its own, or would be written over one."""
        taken = {inside, self.target.parent / location}
        if any(_same(path, self.target) for path in taken):
            raise OutputError(
                f"the output is the model's data file `{location[:200]}`",
                where=str(self.target),
                mend="Name another output.",
            )


def _large(proto: onnx.ModelProto, least: int) -> Iterator[onnx.TensorProto]:
    """Weights in the protobuf of so many bytes, which are worth a place outside, as raw data."""
    for graph in (proto.graph, *every_body(proto.graph.node)):
        for tensor in graph.initializer:
            is_text = tensor.data_type == onnx.TensorProto.STRING
            if is_text or tensor.data_location == tensor.EXTERNAL or bytes_of(tensor) < least:
                continue
            if not tensor.HasField("raw_data"):
                raw = onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor)).raw_data
                tensor.ClearField(onnx.helper.tensor_dtype_to_field(tensor.data_type))
                tensor.raw_data = raw
            yield tensor


def locations(tensors: Iterable[onnx.TensorProto]) -> set[str]:
    """The data files of tensors, as they say them."""
    return {
        entry.value
        for tensor in tensors
        for entry in tensor.external_data
        if entry.key == "location"
    }


def _inline(
    tensors: list[onnx.TensorProto],
    folder: Path,
    target: Path,
    error: type[SurgeonError] = ModelError,
) -> None:
    if sum(map(bytes_of, tensors)) > LARGEST:
        raise error(
            "with its external data the model is larger than the 2 GiB that protobuf can write",
            where=str(target),
            mend="Leave the data in their file: `--external-data keep` or `copy`.",
        )
    for tensor in tensors:
        tensor.raw_data = raw_values(tensor, folder)
        tensor.data_location = tensor.DEFAULT
        tensor.ClearField("external_data")


def with_data(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """A copy of a model that holds its external data itself."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    _inline(list(external_tensors(copy)), folder, folder)
    return copy


def with_small_data(model: onnx.ModelProto, folder: Path | None) -> onnx.ModelProto:
    """The model, or a copy that holds what lies outside and is small: axes, pads, sizes, scales.

    Whoever reads such values by onnx alone reads them where the process stands, and not there
    where the model lies.

    Raises:
        ModelError: A data file is missing, or outside the folder.
    """
    if folder is None or not any(bytes_of(tensor) < _SMALL for tensor in external_tensors(model)):
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    _inline([t for t in external_tensors(copy) if bytes_of(t) < _SMALL], folder, folder)
    return copy


def without_data(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model, or a copy for onnx's checker that says no more of weights outside than their type.

    The checker looks for their files where the process stands. Here they are inputs, and in bodies
    what inputs give.
    """
    if next(external_tensors(model), None) is None:
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    taken = {value.name for value in copy.graph.input}
    for graph in (copy.graph, *every_body(copy.graph.node)):
        outside = [t for t in graph.initializer if t.data_location == t.EXTERNAL]
        for tensor in outside:
            name = tensor.name
            if graph is not copy.graph:
                name = f"{tensor.name}:{len(copy.graph.input)}"
                graph.node.insert(0, onnx.helper.make_node("Identity", [name], [tensor.name]))
            if name not in taken:
                value = onnx.helper.make_tensor_value_info(name, tensor.data_type, tensor.dims)
                copy.graph.input.append(value)
            graph.initializer.remove(tensor)
    return copy


def values_of(tensor: onnx.TensorProto, folder: Path | None) -> npt.NDArray[Any]:
    """The values of a tensor, read from its data file where they lie there.

    Raises:
        ModelError: The file is missing, or outside the folder.
    """
    if tensor.data_location != tensor.EXTERNAL:
        return onnx.numpy_helper.to_array(tensor)
    raw = raw_values(tensor, folder or Path())
    return onnx.numpy_helper.to_array(
        onnx.TensorProto(data_type=tensor.data_type, dims=tensor.dims, raw_data=raw)
    )


def raw_values(tensor: onnx.TensorProto, folder: Path) -> bytes:
    """What a tensor's data file holds of it.

    Raises:
        ModelError: The file is missing, outside the folder, or too short.
    """
    told = {each.key: each.value for each in tensor.external_data}
    size = bytes_of(tensor)
    try:
        with open_inside(external_path(told.get("location", ""), folder), folder) as file:
            file.seek(int(told.get("offset") or 0))
            found = file.read(size)
        why = "" if len(found) == size else "the file is too short"
    except (OSError, ValueError) as error:
        found, why = b"", str(error) or type(error).__name__
    if why:
        raise ModelError(
            f"the values of initializer `{tensor.name}` cannot be read: {why}",
            where=str(folder),
            mend="Put the external data file beside the model, or export the model again.",
        )
    return found


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there
        return one.resolve() == other.resolve()
