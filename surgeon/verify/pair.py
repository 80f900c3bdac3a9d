"""Two small models side by side on given inputs: a match, and what takes its place."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from surgeon.chance import chosen_outputs, drawn_outputs, operator_of
from surgeon.edges import Drawing
from surgeon.errors import SurgeonError
from surgeon.importer import types_given
from surgeon.inferring import NotInferred, inferred
from surgeon.isolation import Isolated, cell, open_session
from surgeon.reference import NoWitness, Undefined, open_reference
from surgeon.reference.arguments import is_foreign
from surgeon.reference.by_onnx import casts_to_bfloat16
from surgeon.reference.early import holds_early, stops
from surgeon.reference.plan import holds_foreign
from surgeon.runtime import Feeds, NotRunnable, RunFailed, Runner, Session
from surgeon.verify.compare import TOLERANCES, Exact, compare_arrays, compare_drawn, faulty
from surgeon.verify.noise import doubted, has_float, moved_weights, perturbed
from surgeon.verify.singles import FEW, in_single_precision, within_spread
from surgeon.verify.squashed import squashed_outputs
from surgeon.verify.verdict import OutputCheck

NOT_RUN = "it does not run"  # how the fault of a second model that fails begins
_TASK = "surgeon.verify.pair:Pair"
_FAULTY = re.compile(r"op_type:(\w+)")  # operators in what shape inference says
_AVERAGES = frozenset(
    "ReduceMean GlobalAveragePool AveragePool mean avg_pool1d avg_pool2d avg_pool3d "
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d".split()
)
# Sums and averages of what cancels nothing: the more terms, the more of it is rounding.
_POSITIVE = frozenset(
    "std std_mean var var_mean norm frobenius_norm linalg_norm linalg_vector_norm "
    "ReduceL1 ReduceL2 ReduceSumSquare mse_loss l1_loss smooth_l1_loss huber_loss".split()
)
_SUMS = frozenset("ReduceSum sum nansum trace".split())  # their terms may cancel
_BESIDE = {"Constant", "Identity"}
_MORE = 3  # seeds, where the values of one are too few to tell their spread
_SIDE_BY_SIDE = 64  # terms that onnxruntime adds up apart, of a long line
# Between neighbours, at places that are computed: rounding of a place grows with it.
_PLACES = re.compile(
    r"Resize|Upsample|GridSample|interpolate|_*(upsample_|grid_sampler|cudnn_grid)"
)
# Where rounding may weigh as much as the result: a matrix drawn at random may be near a singular
# one, the logarithm of a determinant near 1 is next to nothing, the exponential of scores magnifies
# theirs, a gate those of large values whose sum is near 0, and so does what divides by a deviation,
# which is next to nothing where few values are normalised that are nearly equal.
_MAGNIFYING = frozenset(
    "inverse linalg_inv linalg_inv_ex linalg_solve linalg_solve_ex solve lu_solve linalg_lu_solve "
    "linalg_tensorsolve linalg_tensorinv linalg_solve_triangular triangular_solve cholesky_solve "
    "cholesky_inverse linalg_pinv pinverse lstsq linalg_lstsq linalg_cond "
    "det linalg_det _linalg_det logdet slogdet linalg_slogdet _linalg_slogdet "
    "angle "  # of small complex values
    "lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell "
    "scaled_dot_product_attention _scaled_dot_product_attention_math "
    "_scaled_dot_product_attention_math_for_mps _scaled_dot_product_efficient_attention "
    "_scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu "
    "_scaled_dot_product_cudnn_attention _scaled_dot_product_fused_attention_overrideable "
    "_native_multi_head_attention _transformer_encoder_layer_fwd "
    "group_norm native_group_norm layer_norm native_layer_norm instance_norm "
    "GroupNormalization LayerNormalization InstanceNormalization "
    "Attention RMSNormalization".split()
)
_FORGIVEN = 4.0  # times what such a rewrite's original moves by rounding
Inputs = Sequence[Feeds | Drawing]  # what is yet to be drawn is drawn where it is run
Checks = list[tuple[OutputCheck, ...] | SurgeonError]


class Pair:
    """Two small models, each opened once for all inputs that they are compared on.

    Args:
        before: May hold ATen nodes: the witness runs it then.
        after: The same inputs and outputs, by name. Opened where `before` has run.
        folder: Where external data lie.
    """

    def __init__(
        self, before: onnx.ModelProto, after: onnx.ModelProto, folder: Path | None = None
    ) -> None:
        self._before, self._after, self._folder = before, after, folder
        self._first: Runner | None = None
        self._second: Runner | None = None
        self._names = [value.name for value in before.graph.output]
        self._drawn = {
            **drawn_outputs(before),
            **drawn_outputs(after),
            **dict.fromkeys(chosen_outputs(before), False),  # what depends on them, the whole shows
        }
        self._squashed = squashed_outputs(before)
        self._single = in_single_precision(before, after)
        self._magnifies = any(
            operator_of(node) in _MAGNIFYING for node in (*before.graph.node, *after.graph.node)
        )
        operators = {*map(operator_of, before.graph.node)}
        self._averages = bool(operators & _AVERAGES)
        self._positive = bool(operators & _POSITIVE)
        self._sums = operators - _BESIDE <= _SUMS
        self._places = any(_PLACES.match(operator_of(node)) for node in before.graph.node)

    def check(self, inputs: Inputs, exact: Exact, tolerance: float | None = None) -> Checks:
        """Compare them: for each set of inputs one check an output, or why there is none.

        Where the second does not run and the first does, no output agrees. There is none where the
        first does not run, or the second does not for lack of a witness, of an operator of others,
        or of a kernel that the witness did without. Of what is drawn at random dtype and shape are
        compared.

        Args:
            inputs: One set for each run.
            exact: What the rule promises.
            tolerance: Relative to the spread, where the rule states its own.

        Raises:
            NotRunnable: The first does not load.
        """
        self._first = self._first or open_runner(self._before, self._folder)
        return [self._checked(self._first, given, exact, tolerance) for given in inputs]

    def _checked(
        self, first: Runner, given: Feeds | Drawing, exact: Exact, tolerance: float | None
    ) -> tuple[OutputCheck, ...] | SurgeonError:
        feeds = given.feeds() if isinstance(given, Drawing) else given
        names = self._names
        try:
            expected = first.run(feeds, names)
        except (NotRunnable, RunFailed, Undefined, NoWitness) as error:
            return error
        try:
            self._second = self._second or open_runner(self._after, self._folder)
            actual = self._second.run(feeds, names)
        except NoWitness as error:
            return error
        except (NotRunnable, RunFailed, Undefined) as error:
            lacking = not isinstance(error, Undefined) and error.lacking
            if lacking and not (isinstance(first, Session) and _lacks_standard(error)):
                return error
            fault = f"{NOT_RUN}: {error.what[:200]}"
            return tuple(faulty(name, expected[name], fault) for name in names)
        averaged = self._added_up(feeds, expected)
        checks = tuple(
            compare_drawn(name, expected[name], actual[name], sized=self._drawn[name])
            if name in self._drawn
            else compare_arrays(
                name,
                expected[name],
                actual[name],
                exact=exact,
                tolerance=tolerance,
                averaged=max(averaged, 1.0 if name in self._squashed else 0.0),
            )
            for name in names
        )
        if tolerance is not None and isinstance(given, Drawing):
            checks = tuple(
                check
                if check.agrees or check.name not in self._single
                else self._beside_others(check, expected[check.name], first, given)
                for check in checks
            )
        if self._magnifies and not all(check.agrees for check in checks):
            others = self._moved(first, feeds)
            checks = tuple(
                check
                if check.agrees
                else doubted(
                    check,
                    expected[name],
                    actual[name],
                    [other[name] for other in others],
                    tolerance=check.tolerance or tolerance,
                    most=_FORGIVEN,
                )
                for name, check in zip(names, checks, strict=True)
            )
        if not all(check.agrees for check in checks) and _joins_no_shapes(self._before, feeds):
            reason = "its operands have different sizes beside the axis"
            return Undefined(reason, operator="Concat", where="the original")
        return checks

    def _beside_others(
        self, check: OutputCheck, expected: Any, first: Runner, given: Drawing
    ) -> OutputCheck:
        """A difference of few doubles, held against the spread of more: of those of other seeds."""
        if check.fault or np.size(expected) > FEW:
            return check
        values = [np.asarray(expected)]
        try:
            for seed in range(given.seed + 1, given.seed + 1 + _MORE):
                values.append(
                    first.run(replace(given, seed=seed).feeds(), [check.name])[check.name]
                )
        except (NotRunnable, RunFailed, Undefined, NoWitness):
            return check
        return within_spread(check, np.concatenate([np.ravel(each) for each in values]))

    def _added_up(self, feeds: Feeds, expected: Feeds) -> float:
        """The magnitude of which its rounding is, where that may be more than the result's own."""
        if self._places:
            arrays = [np.asarray(a) for a in (*feeds.values(), *expected.values())]
            longest: int = max(length for array in arrays for length in (2, *array.shape))
            return _magnitude(feeds) * longest / 2
        if self._sums:
            # of many terms what was added up so far is large, and its rounding with it
            terms = _terms(feeds, expected)
            return _magnitude(feeds) * max(math.sqrt(terms), terms / _SIDE_BY_SIDE)
        if self._positive:
            added = _magnitude(expected) * math.sqrt(_terms(feeds, expected))
            return max(_magnitude(feeds), added)
        return _magnitude(feeds) if self._averages else 0.0

    def _moved(self, first: Runner, feeds: Feeds) -> list[dict[str, Any]]:
        """What the first gives where what it reads is moved by rounding; nothing where it fails."""
        try:
            if has_float(feeds):
                return [first.run(perturbed(feeds, seed), self._names) for seed in range(2)]
            moved = [moved_weights(self._before, seed) for seed in range(2)]
            opened = [open_runner(model, self._folder) for model in moved if model is not None]
            return [runner.run(feeds, self._names) for runner in opened]
        except (NotRunnable, RunFailed, Undefined):
            return []


def _joins_no_shapes(model: onnx.ModelProto, feeds: Feeds) -> bool:
    """Whether a Concat is given what cannot be joined.

    onnxruntime looks at no size beside an operand without elements, and joins what is left.
    """
    if not any(node.op_type == "Concat" for node in model.graph.node):
        return False
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    for value in fixed.graph.input:
        if isinstance(array := feeds.get(value.name), np.ndarray):
            shape = value.type.tensor_type.shape
            del shape.dim[:]
            for size in array.shape:
                shape.dim.add(dim_value=size)
    try:
        inferred(fixed, strict=True)
    except NotInferred as error:
        return set(_FAULTY.findall(str(error))) == {"Concat"}
    return False


def _terms(feeds: Feeds, expected: Feeds) -> float:
    """How many values an element of a sum is made of."""
    sizes = [[np.size(value) for value in side.values()] for side in (feeds, expected)]
    return max(sizes[0], default=1) / max(1, min(sizes[1], default=1))


def _magnitude(feeds: Feeds) -> float:
    """The largest of all floats that are given, infinities aside."""
    floats = [np.asarray(value) for value in feeds.values() if not isinstance(value, list)]
    return max(
        (
            float(np.abs(array[np.isfinite(array)]).max(initial=0))
            for array in floats
            if array.dtype.name in TOLERANCES
        ),
        default=0.0,
    )


class IsolatedPair(Isolated):
    """A `Pair` in the worker: one message for each check."""

    def check(self, inputs: Inputs, exact: Exact, tolerance: float | None = None) -> Checks:
        """As `Pair.check`.

        Raises:
            NotRunnable: The first does not load.
            ForeignError: The worker crashed, hung or ran out of memory.
        """
        found: Checks = self.call("check", inputs, exact, tolerance)
        return found


def _lacks_standard(error: SurgeonError) -> bool:
    """Whether onnxruntime has no kernel of ONNX's own operators; a recipe may write others."""
    operators = error.operators if isinstance(error, NotRunnable) else ()
    return bool(operators) and all(name.startswith("ai.onnx.") for name in operators)


def open_pair(
    before: onnx.ModelProto, after: onnx.ModelProto, folder: Path | None = None
) -> Pair | IsolatedPair:
    """A `Pair`, in the worker where one is to be used.

    Raises:
        ForeignError: It ended the worker.
    """
    if (here := cell()) is None:
        return Pair(before, after, folder)
    return IsolatedPair(here, _TASK, before, after, folder, called="onnxruntime")


def open_runner(model: onnx.ModelProto, folder: Path | None = None) -> Runner:
    """onnxruntime for a model of standard operators, the witness for one with PyTorch's own.

    The witness too where bfloat16 goes in, of which onnxruntime computes nothing on a CPU, and for
    operators that ONNX has at later opsets than the model's, or as PyTorch alone means them.

    Raises:
        NotRunnable: onnxruntime does not load it.
    """
    if is_plain(model) and not stops(model):
        try:
            return open_session(model, folder=folder)
        except NotRunnable:
            if not (_holds_bfloat16(model) or holds_early(model)):
                raise
    return open_reference(model, folder)


def _holds_bfloat16(model: onnx.ModelProto) -> bool:
    return onnx.TensorProto.BFLOAT16 in types_given(model) or any(
        map(casts_to_bfloat16, model.graph.node)
    )


def is_plain(model: onnx.ModelProto) -> bool:
    """Whether no node, however deep, is PyTorch's own."""
    nodes = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    return not any(is_foreign(node) or holds_foreign(node) for node in nodes)
