"""The comparison on inputs that are drawn: at sizes that run, at others, and put together."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from surgeon.verify.check import Check
from surgeon.verify.finding import Finder
from surgeon.verify.inputs import STRATEGIES, Drawing
from surgeon.verify.joined import a_step, without
from surgeon.verify.limits import Bound, Input
from surgeon.verify.samples import Batch, larger_batches
from surgeon.verify.sizes import (
    WANTED,
    candidates,
    dynamic_dims,
    first_choices,
    fits,
    groups,
    is_leading,
    search,
    with_smaller,
)
from surgeon.verify.specs import Spec
from surgeon.verify.verdict import describe

_FOR_A_MARK = 40  # sizes tried for a number that the model asks for
_FARTHEST = 32  # times a size that runs: what takes the square of it takes a thousand times as long


@dataclass
class Drawn:
    """Compares a check's two models on inputs that are drawn.

    Attributes:
        check: What is compared so far.
        finder: Runs the original where it may fail.
        joined: Dims of what is kept from run to run (`joined_dims`).
    """

    check: Check
    finder: Finder
    joined: tuple[str, ...] = ()

    def compare(
        self,
        inputs: Sequence[Input],
        limits: Mapping[str, Bound],
        hints: Mapping[str, list[int]],
        specs: Mapping[str, Spec] | None = None,
    ) -> str:
        """Compare at several sizes; why not, if the original runs on no inputs."""
        check, growth = self.check, self.finder.growth
        dims = dynamic_dims(inputs, hints)
        lists = candidates(dims, inputs, hints, growth)
        drawing = Drawing(inputs, limits, STRATEGIES[0], specs or {})
        first = [sizes for sizes in first_choices(lists) if fits(sizes, inputs, growth)]
        found = self.finder.first_that_runs(drawing, first, search(dims, inputs, hints, growth))
        if found is None:
            why = check.attempts.last_reason()
            return f"no input was found on which the original runs: {why}"
        base, drawing = found
        check.inputs = drawing.describe()
        ran = [base] if self._at(base, drawing) else []
        for sizes in first:
            if sizes != base and not check.fault and self._at(sizes, drawing):
                ran.append(sizes)
        for group in groups(dims, inputs, base, hints) if ran else ():
            if not check.fault:
                self._more_sizes(_Tried(group, lists[group[0]], ran), drawing, hints)
        joined = [dim for dim in self.joined if dim in base and dim not in hints]
        new = [dim for dim in dims if dim not in self.joined and not is_leading(dim, inputs)]
        for others in (without(base, joined), a_step(base, joined, new)):
            for sizes in others:
                if any(sizes[dim] not in hints[dim] for dim in sizes.keys() & hints.keys()):
                    continue  # a mask is as long as it was told to be
                # where the original does not run so, nothing is missed: something is always kept
                if check.fault or self._at(sizes, drawing):
                    break
        for marked in drawing.at_marks():
            if not check.fault:
                self._at_mark(marked, [base, *ran], search(dims, inputs, hints, growth))
        for other, wanted in drawing.at_others(base, check.seeds):
            if not check.fault and not self._at(base, other) and wanted:
                self._at_mark(other, [base, *ran], search(dims, inputs, hints, growth))
        return ""

    def _at_mark(
        self,
        drawing: Drawing,
        known: Sequence[Mapping[str, int]],
        further: Iterator[Mapping[str, int]],
    ) -> None:
        """Compare where an input is a number that the model asks for, at sizes that run there."""
        few = itertools.islice(further, _FOR_A_MARK)
        if found := self.finder.first_that_runs(drawing, known, few):
            self._at(*found)
            return
        self.check.skip(describe(drawing.fixed), self.check.attempts.last_reason())

    def _at(self, sizes: Mapping[str, int], drawing: Drawing) -> bool:
        """Compare at these sizes; whether the original runs there with any of the seeds."""
        check, ran = self.check, False
        for seed in check.seeds:
            check.progress(f"compare at {describe(sizes) or 'the declared sizes'}, seed {seed}")
            feeds, expected = self.finder.run(drawing, sizes, seed)
            if expected is None:
                break
            ran = True
            check.keep_first(feeds, expected)
            by = check.original.by if check.original else ""
            check.compare(feeds, expected, sizes, seed, by, drawing, doubt=True)
            if check.fault:
                break
        return ran

    # ------------------------------------------------------------------ sizes, dim by dim

    def _more_sizes(self, tried: _Tried, drawing: Drawing, hints: Collection[str]) -> None:
        """Bring dims to three sizes, the others held; where it cannot be, say so."""
        group = tried.group
        for trial in tried.trials():
            if self._is_done(tried):
                break
            if fits(trial, drawing.inputs, self.finder.growth) and self._at(trial, drawing):
                tried.note(trial)
        self._apart(tried, drawing)
        if len(tried.done) >= WANTED or group[0] in hints:
            return
        failed = next(tried.trials(farther=True))
        self._smaller(tried, drawing, hints)
        if len(tried.done) >= WANTED:
            return
        # lengths that have names of their own may be no samples: nothing is put together of them
        if len(tried.done) == len(group) == 1 and is_leading(group[0], drawing.inputs):
            self._by_samples(tried, drawing)
            return
        known = ", ".join(map(str, sorted(tried.done)))
        why = self.check.attempts.reason_at(failed)
        self.check.skip(f"{' and '.join(group)} other than {known}", why)

    def _is_done(self, tried: _Tried) -> bool:
        """Whether no further sizes are to be tried."""
        check = self.check
        return len(tried.done) >= WANTED or bool(check.fault) or not check.attempts.may_go_on

    def _smaller(self, tried: _Tried, drawing: Drawing, hints: Collection[str]) -> None:
        """What is too long fails at any batch: the others are smaller before this is blamed."""
        further = [trial[tried.group[0]] for trial in tried.trials()][:WANTED]
        for smaller in with_smaller(tried.base, tried.group, hints):
            if self._is_done(tried):
                break
            feeds = drawing.feeds(smaller, self.check.seeds[0])
            # what is frozen runs there by chance
            if self.check.run_original(feeds, smaller) is None:
                break
            for size in further:
                trial = tried.at(smaller, size)
                if size in tried.done or len(tried.done) >= WANTED or self.check.fault:
                    continue
                if self._at(trial, drawing):
                    tried.note(trial)

    def _apart(self, tried: _Tried, drawing: Drawing) -> None:
        """Dims on one axis got one size so far: different ones too, if the original takes them."""
        known = sorted(tried.done)
        size = tried.base[tried.group[0]]
        for dim in tried.group[1:]:
            trial = {**tried.base, dim: next((n for n in known if n != size), size + 1)}
            if not self.check.fault and fits(trial, drawing.inputs, self.finder.growth):
                self._at(trial, drawing)

    def _by_samples(self, tried: _Tried, drawing: Drawing) -> None:
        """The original runs at one batch only: larger ones are put together from such runs."""
        check, group, base = self.check, tried.group, tried.base
        assert check.original is not None
        sides, seed = (check.original, check.result, check.names), check.seeds[0]
        check.progress(f"compare at other batches than {base[group[0]]}, sample by sample")
        for found in larger_batches(*sides, group, base, drawing, seed):
            if isinstance(found, Batch):
                check.compare(*found, seed, f"{check.original.by}, sample by sample", drawing)
            else:
                check.not_compared.append(found)


@dataclass
class _Tried:
    """The sizes at which dims that go together were compared, and those that are left.

    Attributes:
        group: The dims.
        sizes: What may be tried, in order.
        ran: All sizes of all dims at which anything was compared.
        done: Of them, those of the group.
    """

    group: tuple[str, ...]
    sizes: Sequence[int]
    ran: list[Mapping[str, int]]
    done: set[int] = field(init=False)

    def __post_init__(self) -> None:
        self.done = {each[self.group[0]] for each in self.ran}

    @property
    def base(self) -> Mapping[str, int]:
        return self.ran[0]

    def at(self, others: Mapping[str, int], size: int) -> Mapping[str, int]:
        """The group at a size."""
        return {**others, **dict.fromkeys(self.group, size)}

    def trials(self, *, farther: bool = False) -> Iterator[Mapping[str, int]]:
        """The sizes that were not compared, up to the farthest that may be tried, or any."""
        most = _FARTHEST * self.base[self.group[0]]
        for size in self.sizes:
            if size not in self.done and (farther or size <= most):
                yield self.at(self.base, size)

    def note(self, trial: Mapping[str, int]) -> None:
        """That something was compared at these sizes."""
        self.ran.append(trial)
        self.done.add(trial[self.group[0]])
