"""`verify`: interface, loading, then the two models side by side at several sizes and seeds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import onnx

from surgeon.aside import room_aside
from surgeon.chance import drawn_outputs
from surgeon.choices import Data, Reference
from surgeon.difference.among import constants_apart
from surgeon.errors import ForeignError, MemoryUp, SurgeonError, TimeUp
from surgeon.external import external_tensors
from surgeon.isolation import isolation
from surgeon.meanings import Meanings
from surgeon.model import Model, ModelLike
from surgeon.reference import NoWitness
from surgeon.reference.early import stops
from surgeon.reference.plan import without_calls
from surgeon.runtime import NotRunnable
from surgeon.soundness import see_outside
from surgeon.verify.asked import check_asked, shapes_of, sizes_of
from surgeon.verify.check import Check
from surgeon.verify.conclusion import DATA
from surgeon.verify.datasets import DataSet
from surgeon.verify.demands import demanded_sizes
from surgeon.verify.drawn import Drawn
from surgeon.verify.equations import fitting_sizes, joint_sizes
from surgeon.verify.farther import farther_fault
from surgeon.verify.finding import Finder
from surgeon.verify.given import read_given
from surgeon.verify.growth import Growth
from surgeon.verify.inputs import required_inputs
from surgeon.verify.interface import declaring_mend, defaults_gone, interface_fault, renaming_mend
from surgeon.verify.joined import joined_dims
from surgeon.verify.limits import Input, bounds
from surgeon.verify.narrower import Narrower, narrower
from surgeon.verify.optimised import optimised_fault
from surgeon.verify.originals import Side, open_original, open_result, read_recorded, recorded_files
from surgeon.verify.overridden import compare_overridden
from surgeon.verify.precision import coarse_outputs, coarsest_tolerance
from surgeon.verify.recording import check_record, write_record
from surgeon.verify.retyped import Retyped, retyped_ends
from surgeon.verify.sizes import traced_sizes
from surgeon.verify.specs import Spec
from surgeon.verify.squashed import squashed_outputs
from surgeon.verify.standins import with_stand_ins
from surgeon.verify.summary import apart_said
from surgeon.verify.verdict import Verdict, describe


def verify(
    original: ModelLike,
    result: ModelLike,
    *,
    reference: Reference = None,
    seeds: Sequence[int] = (0, 1),
    sizes: Mapping[str, Sequence[int] | str] | None = None,
    shape: Mapping[str, Sequence[int | str]] | None = None,
    folder_original: Path | None = None,
    folder_result: Path | None = None,
    allow_approximate: float | None = None,
    custom: Collection[str] = (),
    retyped: Collection[str] = (),
    isolated: bool = False,
    inputs: Mapping[str, str] | None = None,
    data: Data = (),
    functions: Sequence[str] = (),
    narrowed: bool = True,
    record: str | Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> Verdict:
    """Compare two models on inputs.

    Args:
        original: The model as it came: a path, a `Model`, an `onnx.ModelProto` or a graphsurgeon
            `Graph`.
        result: The model as it is to be saved, given as that is.
        reference: What the result is compared with: `onnxruntime`, `witness`, `torch`, or .npz
            files with recorded inputs and outputs (a path, a folder, a pattern, or several).
        seeds: What inputs are drawn from.
        sizes: By dim name: the only sizes to compare at, or the name of a dim of the same size.
        shape: By input name: the shape to use in place of the declared one.
        folder_original: Where the original's external data lie.
        folder_result: Where the result's external data lie.
        allow_approximate: Error relative to an output's spread that is allowed, where it is more
            than the table's tolerance.
        custom: Operators the result may hold although onnxruntime lacks them, as `domain.Op`.
        retyped: Outputs whose element type the original declares falsely, which is proven.
        isolated: Run onnxruntime in a worker, so that its crash is a finding: `isolation` inside.
        inputs: By input name, how it is drawn, as `uniform(0,1)` or `tokens(30522)`.
        data: Files with real inputs, compared beside drawn ones: .npz by input name, or folders of
            them or of ONNX's own `test_data_set_*`.
        functions: What custom operators compute, each as ONNX's text of a function.
        narrowed: Whether a result that declares numbers where the original's dims are dynamic is
            compared at these, and one whose ends are floats of another width all the same; else it
            is broken.
        record: An .npz file to write: the first inputs that are compared, and what the original
            gives on them, as `data` and `reference` read them.
        progress: Told what is being compared.

    Raises:
        TimeUp, MemoryUp: The result does not load within what a worker is given.
        RecipeError: The reference or the data cannot be read, there is no such reference, input or
            dimension, or what is said of one makes no sense.
        VerifyError: A run was to be recorded, and there was none.
        OutputError: The record cannot be written.
    """
    check_asked(seeds=seeds, inputs=inputs, data=data, allow_approximate=allow_approximate)
    before, folder_original = load(original, folder_original)
    asked = Model(before)
    shape = shapes_of(asked, shape)
    sizes = sizes_of(asked, shape, sizes)
    after, folder_result = load(result, folder_result)
    kept = None if record is None else Path(record)
    if kept is not None:
        check_record(kept, before, recorded=bool(recorded_files(reference)))
    cast = retyped_ends(before, after) if narrowed else Retyped()
    if fault := interface_fault(before, after, retyped, cast.names):
        write_record(kept, None, fault)
        return Verdict("broken", fault, mend=renaming_mend(before, after))
    meanings = Meanings(functions)
    defined = meanings.of(after)
    unsuited = dict.fromkeys([*meanings.unsuited(after), *meanings.unsuited(before)])
    pair = _Pair(meanings.told(before), meanings.told(after), (folder_original, folder_result))
    other = pair.after if narrowed else None
    given = read_given(pair.before, inputs, data, shape=shape, reference=reference, other=other)
    hints = {dim: list(s) for dim, s in sizes.items() if not isinstance(s, str)}
    tied = {dim: other for dim, other in sizes.items() if isinstance(other, str)}
    taken = narrower(pair.before, pair.after, shape, tied) if narrowed else Narrower(shape)
    with room_aside(), isolation() if isolated else nullcontext():
        files = recorded_files(reference)
        opened = _opened(pair, custom, stand_ins=not files)
        if isinstance(opened, Verdict):
            write_record(kept, None, opened.detail)
            return opened
        pair = opened.pair
        begin = partial(
            Check,
            names=[value.name for value in after.graph.output],
            tolerance=max(
                allow_approximate or 0.0, coarsest_tolerance(pair.before), cast.tolerance
            ),
            seeds=tuple(seeds),
            progress=progress or (lambda _: None),
            random={**drawn_outputs(pair.before), **drawn_outputs(pair.after)},
            squashed=squashed_outputs(pair.before),
            coarse=coarse_outputs(pair.before),
        )
        check = begin(result=cast.around(opened.side))
        try:
            wanted = required_inputs(pair.before, taken.shapes, tied)
            if files:
                fit = _fitting(files, taken, check, pair.after, wanted)
                check.recorded(fit, pair.after, wanted)
            else:
                way = None if reference is None else str(reference)
                check.original = open_original(pair.before, folder_original, way)
                check.given(_taken(given.sets, taken, check), pair.after, wanted)
                _draw(check, pair, wanted, hints, given.specs)
                compare_overridden(check, pair.before, pair.after)
        except (NoWitness, NotRunnable, ForeignError, ValueError) as error:
            said = error.what if isinstance(error, SurgeonError) else str(error)
            check.skip("any input", opened.why or said)
        for reason in () if check.comparisons else unsuited:
            check.skip("any input", reason)
        if taken.sizes:
            check.skip(f"sizes other than {describe(taken.sizes)}", taken.why)
        how = "computed as the recipe's functions say" if defined else opened.way
        verdict = check.verdict((*opened.lacking, *defined), way=how)
        verdict = cast.judged(taken.judged(verdict))
        if opened.way:  # what stands in for an operator says nothing of what it gives
            write_record(kept, None, f"nobody knows {', '.join(opened.lacking)}")
        write_record(kept, check.first, verdict.detail)
        if verdict.status == "differs" and files:
            return _beside_itself(verdict, begin, pair.before, folder_original, files)
        if cast.names:
            return verdict
        more = _remarks(pair, verdict, check, narrowed=narrowed)
        return replace(verdict, remarks=(*verdict.remarks, *more))


@dataclass(frozen=True, slots=True)
class _Pair:
    """The two models, knowing what their custom operators compute, and where their data lie."""

    before: onnx.ModelProto
    after: onnx.ModelProto
    folders: tuple[Path | None, Path | None]


@dataclass(frozen=True, slots=True)
class _Opened:
    """The result, ready to run.

    Attributes:
        side: What runs it.
        pair: The two models as they are run: with stand-ins where nobody knows an operator.
        lacking: The operators that onnxruntime lacks.
        way: How these are computed, in words; "" where they are not, or there are none.
        why: Why nothing stands in for them, where that is tried.
    """

    side: Side
    pair: _Pair
    lacking: tuple[str, ...] = ()
    way: str = ""
    why: str = ""


def _opened(pair: _Pair, custom: Collection[str], *, stand_ins: bool) -> _Opened | Verdict:
    """The result, ready to run; or that it is broken.

    Args:
        pair: The two models.
        custom: As for `verify`.
        stand_ins: Whether something may stand in for what nobody knows: where outputs were
            recorded, nothing gives these but the operator itself.

    Raises:
        TimeUp, MemoryUp: More of either may show that nothing is wrong.
    """
    try:
        side, lacking = open_result(pair.after, pair.folders[1], pair.before, custom)
    except (TimeUp, MemoryUp):
        raise
    except (NotRunnable, ForeignError) as error:
        if not _loads(pair.before, pair.folders[0]):
            said = f"neither the original nor the result loads: {error.what}"
            return Verdict("broken", said, original="broken")
        lacks = error.operators if isinstance(error, NotRunnable) else ()
        return Verdict(
            *("broken", f"the result does not load: {error.what}"),
            custom_operators=lacks,
            mend=declaring_mend(lacks),
        )
    if not lacking or not stand_ins:
        return _Opened(side, pair, lacking)
    stood = with_stand_ins(pair.before, pair.after)
    if stood is None or isinstance(stood, str):
        return _Opened(side, pair, lacking, why=stood or "")
    stands = _Pair(*stood, pair.folders)
    try:
        found, _ = open_result(stands.after, pair.folders[1], stands.before, custom)
    except (NotRunnable, ForeignError) as error:
        return _Opened(side, pair, lacking, why=f"with a stand-in for it {error.what}")
    return _Opened(found, stands, lacking, "with something else in its place")


def _taken(sets: Sequence[DataSet], taken: Narrower, check: Check) -> list[DataSet]:
    """Real inputs of sizes that the result takes; the others are noted."""
    found = []
    for each in sets:
        if taken.refuses(each.feeds):
            check.skip(f"{DATA} `{each.label}`", taken.why)
        else:
            found.append(each)
    return found


def _draw(
    check: Check,
    pair: _Pair,
    wanted: Sequence[Input],
    hints: dict[str, list[int]],
    specs: Mapping[str, Spec],
) -> None:
    """Compare on drawn inputs, at sizes that the models themselves ask for where others fail."""
    before, after = without_calls(pair.before), without_calls(pair.after)
    limits = bounds(before, wanted)
    drawn = Drawn(check, Finder(check, Growth(after)), joined_dims(before, wanted))
    asked = demanded_sizes(before, wanted) | hints
    why = drawn.compare(wanted, limits, asked, specs)
    if not why:
        return
    # what hides the weights in the original may be gone in the result
    further = demanded_sizes(after, wanted) | asked
    if further != asked:
        why = drawn.compare(wanted, limits, further, specs)
    traced = {**traced_sizes(pair.before, pair.after), **asked}
    if why and traced != asked:
        others = why
        why = drawn.compare(wanted, limits, traced, specs)
        if not why:
            check.skip("other sizes than those of the trace", others)
    if why and (fitting := fitting_sizes(pair.after, wanted)):
        why = drawn.compare(wanted, limits, fitting | asked, specs)
    for joint in joint_sizes(pair.after, wanted) if why else ():
        others = why
        why = drawn.compare(wanted, limits, joint | asked, specs)
        if not why:
            check.skip("other sizes than those at which its parts fit", others)
            break
    if why:
        check.skip("any input", why)


def _remarks(pair: _Pair, verdict: Verdict, check: Check, *, narrowed: bool) -> Iterator[str]:
    """What is said of a result that may be saved."""
    if verdict.status not in ("equivalent", "runs"):
        return
    yield from defaults_gone(pair.before, pair.after)
    if check.result.by == "onnxruntime" and check.runs:
        sides = check.result, check.original
        if fault := optimised_fault(pair.after, pair.folders[1], *sides, check.runs):
            yield fault
    if check.result.by == "witness" and (where := stops(pair.after)):
        yield (
            f"onnxruntime stops at {where}, which the result has as the original does: put "
            "`refused-forms` in front"
        )
    if narrowed:
        if verdict.status == "equivalent" and check.original is not None:
            fault = farther_fault(
                check.result, check.original, check.runs, check.inputs, check.tolerance
            )
            yield from filter(None, [fault])
        yield from apart_said(constants_apart(pair.before, pair.after, pair.folders))


def _fitting(
    files: Sequence[Path],
    taken: Narrower,
    check: Check,
    model: onnx.ModelProto,
    inputs: Sequence[Input],
) -> list[Path]:
    """Recorded runs of sizes that the result takes; the others are noted."""
    if not taken.sizes:
        return list(files)
    found = []
    for file in files:
        if taken.refuses(read_recorded(file, model, inputs).feeds):
            check.skip(f"recorded {file.name}", taken.why)
        else:
            found.append(file)
    return found


def _beside_itself(
    found: Verdict,
    begin: Callable[..., Check],
    model: onnx.ModelProto,
    folder: Path | None,
    files: Sequence[Path],
) -> Verdict:
    """The same, which says so where the original is no nearer to what was recorded."""
    try:
        check = begin(result=open_original(model, folder, None))
        check.recorded(files, model, required_inputs(model))
        verdict = check.verdict(())
    except (SurgeonError, ValueError):
        return found
    if verdict.status != "differs":
        return found
    said, _, _ = verdict.detail.partition(" (allowed")
    detail = f"{found.detail}; the original differs from what was recorded too: {said}"
    return replace(found, detail=detail, original="differs")


def _loads(model: onnx.ModelProto, folder: Path | None) -> bool:
    """Whether onnxruntime takes a model."""
    try:
        open_original(model, folder, "onnxruntime")
    except SurgeonError:
        return False
    return True


def load(model: ModelLike, folder: Path | None) -> tuple[onnx.ModelProto, Path | None]:
    """A model as `verify` takes it, and where its external data lie.

    Raises:
        ModelError: It cannot be read, or a data file is missing, outside its folder or too short.
    """
    loaded = Model.of(model)
    folder = folder or loaded.folder
    if folder is not None:
        see_outside(external_tensors(loaded.proto), folder, where=str(loaded.path or folder))
    return loaded.proto, folder
