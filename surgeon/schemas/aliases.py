"""Operators that PyTorch has under several names, with the same arguments and the same result.

Those that only fill a view with a copy (`view_copy`), private or unchecked twins, which exporters
meet after decomposition (`_unsafe_index`), and those that write into their input (`add_`).
"""

from __future__ import annotations

from collections.abc import Mapping

_COPIES = (
    "alias as_strided detach diagonal expand narrow permute select slice split split_with_sizes "
    "squeeze t transpose unbind unfold unsqueeze view view_as_complex view_as_real lift_fresh"
)
# What Python writes into its left operand by.
_WRITING = {f"__i{name}__": f"__{name}__" for name in ("and", "or", "xor", "lshift", "rshift")}
# What the left name does, the right one does (native_functions.yaml dispatches one to the other).
ALIASES: Mapping[str, str] = {
    **{f"{name}_copy": name for name in _COPIES.split()},
    **{f"unsafe_{name}": name for name in ("chunk", "split", "split_with_sizes")},
    **_WRITING,
    "_adaptive_avg_pool2d": "adaptive_avg_pool2d",
    "_adaptive_avg_pool3d": "adaptive_avg_pool3d",
    "_aminmax": "aminmax",
    "_cholesky_solve_helper": "cholesky_solve",
    "_conj_copy": "conj",
    "_grid_sampler_2d_cpu_fallback": "grid_sampler_2d",
    "_is_all_true": "all",
    "_is_any_true": "any",
    "_lazy_clone": "alias",
    "_linalg_eigvals": "linalg_eigvals",
    "_local_scalar_dense": "item",
    "_logcumsumexp": "logcumsumexp",
    "_mkldnn_reshape": "reshape",
    "_mkldnn_transpose": "transpose",
    "_neg_view": "neg",
    "_neg_view_copy": "neg",
    "_pin_memory": "pin_memory",
    "_reshape_alias_copy": "_reshape_alias",
    "_reshape_copy": "view",
    "_reshape_from_tensor": "reshape",
    "_stack": "stack",
    "fake_quant_per_channel": "fake_quantize_per_channel_affine",
    "_unique": "_unique2",
    "_unsafe_index": "index",
    "_unsafe_index_put": "index_put",
    "linalg_matmul": "matmul",
    "max_values": "amax",
    "min_values": "amin",
    "mkldnn_adaptive_avg_pool2d": "adaptive_avg_pool2d",
    "mkldnn_linear": "linear",
    "mkldnn_max_pool2d": "max_pool2d",
    "mkldnn_max_pool3d": "max_pool3d",
    "native_channel_shuffle": "channel_shuffle",
    "native_norm": "norm",
    "normal_": "normal_functional",
    "ravel": "flatten",
    "special_gammainc": "igamma",
    "special_gammaincc": "igammac",
    "special_modified_bessel_i0": "i0",
    "special_modified_bessel_i1": "special_i1",
    "special_multigammaln": "mvlgamma",
    "special_polygamma": "polygamma",
    "special_round": "round",
    "sym_numel": "numel",
    "sym_size": "size",
    "trapz": "trapezoid",
    "zero": "zeros_like",
}


def plain_name(operator: str) -> str:
    """The name under which an operator is known here, written into its input or not."""
    if operator in ALIASES:
        return ALIASES[operator]
    plain = out_of_place(operator) or operator
    return ALIASES.get(plain, plain)


def out_of_place(operator: str) -> str | None:
    """`add` of `add_`, `__and__` of `__iand__`; None for what writes into nothing."""
    if operator.endswith("_") and not operator.endswith("__"):
        return operator.removesuffix("_")
    return _WRITING.get(operator)
