"""The only door to protobuf and to graphsurgeon's graph.

graphsurgeon's `Graph` is the one mutable graph; what it cannot carry (doc strings, metadata, types
it has no name for) stays in the protobuf it came from, and comes out again as it went in: every
graphsurgeon node, constant and graph remembers its `origin`.

Beside graphsurgeon's own fields the objects of the graph carry, all written in `importer`,
`objects` or `rewrite`:

* node: `origin` (NodeProto or None), `origin_inputs` (the tensors the origin names, where the
  dialect changed the node's inputs, else None), `made` (how a rule made it, or None), `home` (the
  graph it was drafted in), `normal` (in normal form), `seen` (the operands' facts it was inferred
  from), `attributes_key` (see `alike`; False before it is asked), `drafted` and `gone`;
* graph: `origin`, and `reads` (the constants that it or its bodies read as they came, by name);
* tensor: `home` (the graph a constant belongs to), `fact` (see `facts`), `became` (the tensor that
  took its place, or None), `left` (of a constant, how many that it lists read it no longer).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx_graphsurgeon as gs
from onnx_graphsurgeon.ir.tensor import LazyValues, SparseValues
from onnx_graphsurgeon.logger import G_LOGGER

from surgeon import mistaken, provenance
from surgeon.collector import collector_paused
from surgeon.errors import ModelError, RecipeError
from surgeon.external import KEEP, PACK, Carrier, check_way, external_tensors, locations
from surgeon.files import foresee, write_whole
from surgeon.importer import import_graph
from surgeon.links import bodies
from surgeon.producer import release_of
from surgeon.reading import open_file
from surgeon.sealing import seal
from surgeon.soundness import Sound, check
from surgeon.standard import opset_of
from surgeon.stored import bytes_of
from surgeon.tensors import array_of, dense_of
from surgeon.watch import Watch
from surgeon.wire import check_size, copy_field, parse, serialise
from surgeon.writer import Writer, imports, set_property

Array = npt.NDArray[Any]
ModelLike = Any  # Model, onnx.ModelProto, gs.Graph, or a path

G_LOGGER.severity = G_LOGGER.CRITICAL + 1  # surgeon reports for itself, what is raised too


class Model:
    """A graph, and the protobuf it came from.

    Attributes:
        proto: What was read. Never changed.
        folder: Where external data lies, or None.
        path: The file it came from, or None.
        overridable: Names of initializers that are graph inputs too, and stay so.
        listed: Whether every initializer is a graph input too, in a file of PyTorch's exporter.
        changed: Whether anything was rewritten. An unchanged model is saved byte by byte.

    `graph` is for surgeon's own rewrites, whose nodes keep the protobuf they came from; who edits
    by hand takes `graphsurgeon.import_onnx(model.to_proto())`, and gives that graph to `apply`.
    """

    def __init__(
        self, proto: onnx.ModelProto, *, path: Path | None = None, folder: Path | None = None
    ) -> None:
        self.proto = proto
        self.path = path
        self.folder = path.parent if path else folder
        self.changed = False
        self.plain = False  # whether what nobody needs is left out of what is written
        self.stamps: dict[str, str] = {}
        inputs = {value.name for value in proto.graph.input}
        weights = {tensor.name for tensor in proto.graph.initializer}
        self.overridable = weights & inputs
        self.listed = proto.producer_name == "pytorch" and bool(weights) and weights <= inputs
        self._graph: gs.Graph | None = None
        self._sound: Sound | None = None
        self.watch = Watch()

    @property
    def sound(self) -> Sound:
        """What a check of the protobuf saw of it. Checked when asked.

        Raises:
            ModelError: It is no model.
        """
        if self._sound is None:
            self._sound = check(self.proto, self.folder, where=str(self.path or "model"))
        return self._sound

    @property
    def graph(self) -> gs.Graph:
        """The graphsurgeon graph: the main graph; bodies hang on its nodes. Imported when asked.

        Raises:
            ModelError: It is no model, or graphsurgeon cannot carry it.
        """
        if self._graph is None:
            scopes = self.sound.take_scopes(self.proto)
            try:
                graph = import_graph(self.proto, scopes)
            except Exception as error:  # graphsurgeon has no exceptions of its own
                raise ModelError(
                    f"graphsurgeon cannot carry this graph: {error}",
                    where=str(self.path or "model"),
                    mend="Check it with `onnx.checker`; open an issue with it if it is valid.",
                ) from error
            self._graph = graph
        return self._graph

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Model:
        """Read a file; external data stays where it is.

        Raises:
            ModelError: Missing, empty, truncated, or no ONNX model.
        """
        path = Path(path)
        watch = Watch(path)
        try:
            if path.exists() and not path.is_dir() and not path.is_file():
                raise ModelError(
                    "it is no regular file", where=str(path), mend="Name the .onnx file."
                )
            with open_file(path) as file:
                check_size(os.fstat(file.fileno()).st_size, path)
                data = file.read()
        except FileNotFoundError:
            raise ModelError("no such file", where=str(path), mend="Check the path.") from None
        except IsADirectoryError:
            other = mistaken.folder(path)
            raise ModelError(
                f"this is {other.kind}, not an ONNX model" if other else "this is a folder",
                where=str(path),
                mend=other.mend if other else "Name the .onnx file inside it.",
            ) from None
        except OSError as error:
            raise ModelError(
                f"cannot be read: {error.strerror}", where=str(path), mend="Check its permissions."
            ) from None
        model = cls(parse(data, where=str(path)), path=path)
        if b"location" in data:  # what protobuf spells out where there are data outside
            watch.note(path.parent / name for name in locations(external_tensors(model.proto)))
        model.watch = watch
        return model

    @classmethod
    def of(cls, given: ModelLike) -> Model:
        """What is given as a model, as it stands: of one that was rewritten the result.

        Raises:
            ModelError: As of `load`.
            RecipeError: It is no model.
        """
        if isinstance(given, Model):
            return given._as_it_stands() if given.changed else given
        if isinstance(given, onnx.ModelProto):
            return cls(given)
        if isinstance(given, gs.Graph):
            return cls.from_graph(given)
        if isinstance(given, (str, os.PathLike)):
            return cls.load(given)
        raise RecipeError(
            f"`{type(given).__name__}` is no model",
            where="model",
            mend="Take `onnx.load_from_string(data)`."
            if isinstance(given, (bytes, bytearray, memoryview))
            else "Give a path, a `Model`, an `onnx.ModelProto` or a graphsurgeon `Graph`.",
        )

    def see_unchanged(self, given: ModelLike) -> None:
        """See that what was read of it is still there: data, and the file that was given by path.

        Raises:
            ModelError: Somebody wrote to one of them meanwhile.
        """
        self.watch.check(own=isinstance(given, str | os.PathLike))

    @classmethod
    def from_graph(cls, graph: gs.Graph) -> Model:
        """A model of a graphsurgeon graph, which is not changed."""
        return cls(gs.export_onnx(graph, do_type_check=False))

    @property
    def opset(self) -> int:
        """The version of the default operator set; 1 where none is imported."""
        return opset_of(self.proto) or 1

    def is_before(self, *version: int) -> bool:
        """Whether a PyTorch older than this wrote the file: a few operators meant other things.

        1.4.0 calls itself 1.3; a file of another producer counts as new.
        """
        release = release_of(self.proto)
        return release is not None and release < version

    def clone(self) -> Model:
        """The model as it was read, ready to be rewritten anew."""
        twin = self.with_proto(self.proto)
        twin._sound = self._sound
        return twin

    def _as_it_stands(self) -> Model:
        """What a rewritten model became, as one that was read: of no file, whose bytes it has."""
        other = Model(self.to_proto(), folder=self.folder)
        other.watch = self.watch
        return other

    def with_proto(self, proto: onnx.ModelProto) -> Model:
        """A model of another protobuf that has its data, and its place, from the same files."""
        other = Model(proto, path=self.path, folder=self.folder)
        other.watch, other.listed = self.watch, self.listed
        return other

    def __reduce__(self) -> tuple[object, ...]:
        """As it stands, for a worker of `concurrent.futures`; external data stays where it is.

        Raises:
            ModelError: It is larger than protobuf can write (2 GiB).
        """
        path = None if self.changed else self.path  # whose bytes it is saved as
        data = b"".join(self.to_bytes(where=str(self.path or "model")))
        return _unpickled, (data, path, self.folder, self.stamps)

    def graphs(self) -> Iterator[gs.Graph]:
        """The main graph, the functions, and every body inside them."""
        for top in (self.graph, *self.graph.functions):
            yield top
            yield from bodies(top)

    def array(self, constant: gs.Constant) -> Array:
        """The values of a constant, read from external data if that is where they are.

        Raises:
            ModelError: The data is missing or damaged.
        """
        values = constant._values
        if not isinstance(values, LazyValues):
            return np.asarray(values)
        if isinstance(values, SparseValues):
            return dense_of(values.tensor, self.folder)
        return array_of(values.tensor, self.folder)

    def bytes_outside(self, tensor: gs.Tensor) -> int:
        """How many bytes of external data a constant is; 0 where its values are in the file."""
        values = getattr(tensor, "_values", None)
        proto = values.tensor if isinstance(values, LazyValues) else None
        if not isinstance(proto, onnx.TensorProto) or not proto.external_data:
            return 0
        return bytes_of(proto)

    def to_proto(self) -> onnx.ModelProto:
        """The model as a protobuf of its own; the original's where nothing was rewritten."""
        if not self.changed:
            out = onnx.ModelProto()
            out.CopyFrom(self.proto)
            return out
        out, initializers = self.written()
        out.graph.initializer.extend(initializers)
        return out

    def to_bytes(self, *, where: str) -> list[bytes]:
        """The model as it is saved, in pieces; weights are not copied for it.

        Args:
            where: What the errors say.

        Raises:
            ModelError: It is larger than protobuf can write (2 GiB).
        """
        proto, initializers = self.written()
        return self._sealed(proto, initializers, self.folder or Path(), where=where)

    def written(self) -> tuple[onnx.ModelProto, list[onnx.TensorProto]]:
        """A rewritten model without the main graph's initializers, and these; else the original."""
        if not self.changed:
            return self.proto, []
        out = onnx.ModelProto()
        for field, value in self.proto.ListFields():
            if field.name not in ("graph", "functions", "opset_import"):
                copy_field(field.name, value, out)
        writer = Writer(self.graph, self.overridable, self.proto.ir_version)
        initializers = writer.without_weights(self.graph, out.graph)
        for function in self.graph.functions:
            out.functions.append(writer.function(function))
        trained = [g for t in self.proto.training_info for g in (t.initialization, t.algorithm)]
        before = [self.proto.graph, *self.proto.functions, *trained]
        now = [out.graph, *out.functions, *trained]
        told = self.proto.opset_import, self.opset, before, now
        out.opset_import.extend(imports(*told, plain=self.plain))
        for key, text in self.stamps.items():
            set_property(out.metadata_props, key, text)
        return out, initializers

    def _sealed(
        self,
        proto: onnx.ModelProto,
        initializers: Sequence[onnx.TensorProto],
        folder: Path,
        *,
        where: str,
    ) -> list[bytes]:
        """The bytes of a file, whose log says what tells it from others, where this run wrote it.

        Args:
            proto: As it is saved; taken apart, and of it the log is changed.
            initializers: Those of the main graph that it lacks.
            folder: Where its external data lie.
            where: What the errors say.
        """
        if provenance.KEY in self.stamps:
            seal(proto, folder, initializers)
        return serialise(proto, initializers, where=where)

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        external_data: str = KEEP,
        external_name: str | None = None,
        external_above: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Write the model whole or not at all; external data goes with it.

        Args:
            path: Where to.
            external_data: `keep` refers to the data where they are if they lie in the same folder,
                and else puts them beside the output, without copying where the file system can;
                `copy` gives the output data files of its own; `inline` puts them into the model;
                `pack` puts what the output reads, weights of the model itself too, into one file
                beside it.
            external_name: What `pack` calls that file: by default the model's name, a hash of the
                content and `.data`, so that no other model's file is written over. With a name of
                your own a file that is there is left as it is: refused where it holds other data.
            external_above: Bytes from which on `pack` puts values there; smaller ones go inside.
            dry_run: Write nothing, and raise what writing would, as far as that is known before.

        Raises:
            RecipeError: There is no such way, or no file of such a name.
            ModelError: It is larger than protobuf can write, or its data cannot be read, or are
                others than when it was loaded.
            OutputError: The folder is missing or read-only, or the disk is full.
        """
        path = Path(path)
        self.watch.check(own=False)
        check_way(external_data, path, external_name, external_above)
        where = self.folder, path, external_data, external_name, external_above
        carrier = Carrier(*where, dry=dry_run)
        data: list[bytes] = []
        outside = self._sound is None or self._sound.outside
        try:
            is_as_read = not self.changed and self.watch.is_own_same
            if is_as_read and self.path is not None and not carrier.edits:
                carrier.carry(external_tensors(self.proto) if outside else ())
                data = [] if dry_run else [self.path.read_bytes()]
            else:
                with collector_paused():
                    if outside or external_data == PACK:
                        proto = self.to_proto()
                        carrier.settle(proto, self.proto if self.changed else None)
                        data = self._sealed(proto, (), path.parent, where=str(path))
                    else:
                        data = self.to_bytes(where=str(path))
            if dry_run:
                foresee(path)
            else:
                write_whole(path, *data)
        except BaseException:
            carrier.take_back(unless=data)
            raise


def _unpickled(
    data: bytes, path: Path | None, folder: Path | None, stamps: dict[str, str]
) -> Model:
    model = Model(parse(data, where=str(path or "model")), path=path, folder=folder)
    model.stamps = stamps
    return model


def describe(node: gs.Node) -> str:
    """How reports and errors call a node: its name, or its first output's, and its operator."""
    name = node.name or next((t.name for t in node.outputs if t.name), "")
    return f"node {name!r} ({node.domain or 'ai.onnx'}.{node.op})"
