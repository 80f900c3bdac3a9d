"""Facts of what slides or samples: convolutions, pools, resizes."""

from __future__ import annotations

import numpy as np
from facts_case import ALL, F32, ROOMY, W1, W2, X1, X2, Case, ints, weights

WINDOWS: dict[str, Case] = {
    # ------------------------------------------------------------------------- convolutions
    "conv-plain": Case("float[b,3,t] x", "y = Conv (x, w)", "[b, 4, t - 2]", None, ALL, {"w": W1}),
    "conv-pads-strides": Case(
        "float[b,3,t] x",
        "y = Conv <pads = [1, 2], strides = [2]> (x, w)",
        "[b, 4, t//2 + 1]",
        None,
        ALL,
        {"w": W1},
    ),
    "conv-dilations": Case(
        "float[b,3,h,w0] x",
        "y = Conv <dilations = [2, 3], strides = [2, 3], pads = [2, 1, 2, 3]> (x, w)",
        None,
        None,
        ALL,
        {"w": W2},
    ),
    "conv-same-upper": Case(
        "float[b,3,h,w0] x",
        'y = Conv <auto_pad = "SAME_UPPER", strides = [2, 3]> (x, w)',
        "[b, 4, (h + 1)//2, (w0 + 2)//3]",
        None,
        ALL,
        {"w": W2},
    ),
    "conv-same-lower": Case(
        "float[b,3,h,w0] x",
        'y = Conv <auto_pad = "SAME_LOWER", strides = [1, 2]> (x, w)',
        None,
        None,
        ALL,
        {"w": W2},
    ),
    "conv-valid": Case(
        "float[b,3,h,w0] x",
        'y = Conv <auto_pad = "VALID", strides = [2, 2]> (x, w)',
        None,
        None,
        ALL,
        {"w": W2},
    ),
    "conv-groups": Case(
        "float[b,6,t] x",
        "y = Conv <group = 2, kernel_shape = [3]> (x, w)",
        "[b, 4, t - 2]",
        None,
        ALL,
        {"w": W1},
    ),
    "conv-nested-strides": Case(
        "float[b,3,t] x",
        "a = Conv <strides = [2], pads = [1, 1]> (x, w) b1 = Conv <strides = [2], pads = [1, 1]> "
        "(a, v) "
        "y = Conv <strides = [2], pads = [1, 1]> (b1, v)",
        "[b, 4, (t + 7)//8]",
        None,
        (11, 17),
        {"w": W1, "v": weights(4, 4, 3)},
    ),
    "conv-computed-weight": Case(
        "float[1,3,t] x, float[n,3,3] w", "y = Conv (x, w)", "[1, n, t - 2]", None, (11, 17)
    ),
    "conv-transpose": Case(
        "float[b,4,t] x",
        "y = ConvTranspose <strides = [2], pads = [1, 0], output_padding = [1], dilations = [2]> "
        "(x, w)",
        "[b, 3, 2*t + 3]",
        None,
        (11, 17),
        {"w": W1},
    ),
    "conv-transpose-groups": Case(
        "float[b,4,h,w0] x",
        "y = ConvTranspose <strides = [2, 3], group = 2> (x, w)",
        "[b, 6, 2*h + 1, 3*w0 - 1]",
        None,
        ALL,
        {"w": W2},
    ),
    "conv-transpose-same": Case(
        "float[b,4,t] x",
        'y = ConvTranspose <strides = [2], auto_pad = "SAME_UPPER"> (x, w)',
        "[b, 3, 2*t]",
        None,
        (11, 17),
        {"w": W1},
    ),
    "conv-transpose-valid": Case(
        "float[b,4,t] x",
        'y = ConvTranspose <strides = [3], auto_pad = "VALID"> (x, w)',
        None,
        None,
        (11, 17),
        {"w": W1},
    ),
    "conv-transpose-output-shape": Case(
        "float[b,4,5] x",
        "y = ConvTranspose <strides = [2], output_shape = [10]> (x, w)",
        "[b, 3, 10]",
        None,
        (11, 17),
        {"w": W1},
    ),
    # -------------------------------------------------------------------------------- pools
    "max-pool": Case(
        X2,
        "y = MaxPool <kernel_shape = [3, 2], strides = [2, 2], pads = [1, 0, 1, 0]> (x)",
        "[b, c, (h + 1)//2, w//2]",
        None,
        ALL,
        at=ROOMY,
    ),
    "max-pool-indices": Case(
        X1, "z, y = MaxPool <kernel_shape = [2]> (x)", "[b, c, t - 1]", None, ALL, at=ROOMY
    ),
    "max-pool-ceil": Case(
        X1,
        "y = MaxPool <kernel_shape = [3], strides = [2], ceil_mode = 1> (x)",
        None,
        None,
        (11, 17),
        at=ROOMY,
    ),
    "max-pool-ceil-padded": Case(
        X1,
        "y = MaxPool <kernel_shape = [2], strides = [2], pads = [1, 1], ceil_mode = 1> (x)",
        None,
        None,
        (11, 17),
    ),
    "max-pool-ceil-long-stride": Case(
        X1,
        "y = MaxPool <kernel_shape = [2], strides = [5], pads = [0, 1], ceil_mode = 1> (x)",
        None,
        None,
        (11, 17),
    ),
    "max-pool-dilated": Case(
        X1,
        "y = MaxPool <kernel_shape = [3], dilations = [2], strides = [2]> (x)",
        None,
        None,
        (11, 17, 22),
        at=ROOMY,
    ),
    "average-pool-ceil": Case(
        X2,
        "y = AveragePool <kernel_shape = [3, 3], strides = [2, 3], pads = [1, 1, 1, 1], "
        "ceil_mode = 1> (x)",
        None,
        None,
        (11, 17, 19, 22),
    ),
    "average-pool-dilated": Case(
        X1,
        "y = AveragePool <kernel_shape = [2], dilations = [2]> (x)",
        None,
        None,
        (19, 22),
        at=ROOMY,
    ),
    "average-pool-same": Case(
        X1,
        'y = AveragePool <kernel_shape = [3], strides = [2], auto_pad = "SAME_UPPER"> (x)',
        "[b, c, (t + 1)//2]",
        None,
        ALL,
    ),
    "max-pool-valid-ceil": Case(
        X1,
        'y = MaxPool <kernel_shape = [3], strides = [2], auto_pad = "VALID", ceil_mode = 1> (x)',
        None,
        None,
        (11, 17),
        at=ROOMY,
    ),
    "max-pool-same-ceil": Case(
        X1,
        'y = MaxPool <kernel_shape = [3], strides = [2], auto_pad = "SAME_LOWER", ceil_mode = 1> '
        "(x)",
        None,
        None,
        (11, 17),
    ),
    "lp-pool": Case(
        X1, "y = LpPool <kernel_shape = [3], strides = [3]> (x)", None, None, (11, 18), at=ROOMY
    ),
    "lp-pool-ceil": Case(
        X1,
        "y = LpPool <kernel_shape = [3], strides = [3], ceil_mode = 1> (x)",
        None,
        None,
        (18,),
        at=ROOMY,
    ),
    "global-average": Case(X2, "y = GlobalAveragePool (x)", "[b, c, 1, 1]", None, ALL),
    "global-max": Case(X1, "y = GlobalMaxPool (x)", "[b, c, 1]", None, ALL),
    # -------------------------------------------------------------------------------- resize
    "resize-scales": Case(
        X2,
        "y = Resize (x, r, s)",
        "[b, c, 2*h, w//2]",
        None,
        (11, 13, 18),
        {"r": np.zeros(0, F32), "s": np.array([1, 1, 2, 0.5], F32)},
    ),
    "resize-scales-odd": Case(
        X2,
        'y = Resize <mode = "linear"> (x, r, s)',
        None,
        None,
        (11, 13),
        {"r": np.zeros(0, F32), "s": np.array([1, 1, 1.7, 0.3], F32)},
        at=tuple({"b": 1, "c": 1, "h": h, "w": w} for h, w in ((5, 7), (8, 10), (3, 20), (10, 9))),
    ),
    "resize-10": Case(
        X2, "y = Resize (x, s)", "[b, c, 2*h, 3*w]", None, (10,), {"s": np.array([1, 1, 2, 3], F32)}
    ),
    "resize-sizes": Case(
        "float[1,2,h,w] x",
        "y = Resize (x, , , s)",
        "[1, 2, 7, 9]",
        None,
        (13, 18),
        {"s": ints(1, 2, 7, 9)},
    ),
    "resize-computed-sizes": Case(
        "float[b,2,h,w] x, float[b,2,n,m] z",
        "s = Shape (z) y = Resize (x, , , s)",
        "[b, 2, n, m]",
        None,
        (13, 18),
    ),
    "resize-axes": Case(
        X2,
        "y = Resize <axes = [3, 2]> (x, , s)",
        "[b, c, 3*h, 2*w]",
        None,
        (18, 19),
        {"s": np.array([2, 3], F32)},
    ),
    "resize-keep-aspect": Case(
        "float[1,1,h,w] x",
        'y = Resize <keep_aspect_ratio_policy = "not_larger", axes = [2, 3]> (x, , , s)',
        None,
        None,
        (18, 19),
        {"s": ints(8, 6)},
    ),
    "resize-crop": Case(
        "float[1,1,h,w] x",
        'y = Resize <coordinate_transformation_mode = "tf_crop_and_resize"> (x, r, s)',
        None,
        None,
        (11, 13),
        {"r": np.array([0, 0, 0, 0, 1, 1, 0.5, 0.5], F32), "s": np.array([1, 1, 2, 2], F32)},
    ),
    "upsample": Case(
        X2,
        "y = Upsample (x, s)",
        "[b, c, 2*h, 3*w]",
        None,
        (9,),
        {"s": np.array([1, 1, 2, 3], F32)},
    ),
    "half-of-the-frequencies": Case(  # as where it is not said; onnx takes all of them for that
        "float[b,t,1] x",
        'y = STFT (x, step, "", n)',
        "[b, (t + 1)//3 - 2, 5, 2]",
        None,
        (17,),
        {"step": np.array(3), "n": np.array(8)},
        at=tuple({"b": 2, "t": t} for t in (8, 10, 11, 20)),
    ),
}
