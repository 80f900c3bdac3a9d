"""Normalisations, written out, that runtimes know by the scale and the shift behind them."""

from __future__ import annotations

import onnx_graphsurgeon as gs

from surgeon.match import producer_of
from surgeon.rewrite import Draft, Refused

_LAYER_NORM, _RMS_NORM = 17, 23  # the opsets that have them as operators


def see_no_norm(draft: Draft, node: gs.Node) -> None:
    """See that this is neither the scale nor the shift of a normalisation that is written out.

    onnxruntime's LayerNormFusion and SimplifiedLayerNormFusion know the nodes by both, and not
    without: taken in by the weights behind, or dropped where they are 1 and 0, they leave a network
    of fewer nodes that takes longer.

    Raises:
        Refused: It is.
    """
    norm = _norm_of(draft, node)
    if norm is None and node.op == "Add":  # the shift, behind the scale
        makers = filter(None, map(producer_of, node.inputs))
        norm = next(filter(None, (_norm_of(draft, maker) for maker in makers)), None)
    if norm is None:
        return
    centred = producer_of(norm.inputs[0])
    is_layer = centred is not None and centred.op == "Sub"
    if draft.facts.opset < (_LAYER_NORM if is_layer else _RMS_NORM):
        raise Refused("the normalisation in front of it, which is written out, is known by it")


def see_no_untrained_norm(draft: Draft, node: gs.Node) -> None:
    """See the same of a scale of 1 or a shift of 0, of a value whose sizes are not all known.

    Networks have these before they are trained alone. Where all sizes are known other simplifiers
    drop them, and here no more nodes are left than there; elsewhere they do not, and a network of
    fewer nodes would be the slower.

    Raises:
        Refused: It is, and a size is not known.
    """
    shape = draft.facts.of(node.outputs[0]).shape
    if shape is None or not all(isinstance(dim, int) for dim in shape):
        see_no_norm(draft, node)


def _norm_of(draft: Draft, node: gs.Node) -> gs.Node | None:
    """The last node of the normalisation in x / sqrt (mean + eps) * scale, the scale a vector."""
    if node.op != "Mul":
        return None
    for at, operand in enumerate(node.inputs):
        scale = draft.facts.array(node.inputs[1 - at])
        found = producer_of(operand)
        if scale is None or scale.ndim != 1 or found is None or found.op != "Div":
            continue
        root = producer_of(found.inputs[1])
        summed = producer_of(root.inputs[0]) if root is not None and root.op == "Sqrt" else None
        if summed is not None and summed.op == "Add":
            makers = map(producer_of, summed.inputs)
            if any(maker is not None and maker.op == "ReduceMean" for maker in makers):
                return found
    return None
