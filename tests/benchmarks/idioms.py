"""What PyTorch's users write with sizes, all of them dynamic, as any PyTorch exports it.

    OLD/bin/python tests/benchmarks/idioms.py FOLDER
    python tests/benchmarks/exports.py FOLDER/aten
    python tests/benchmarks/exports.py FOLDER/standard --recipe clean

As `networks.py`, of single lines: views, tokens, windows, gates, masks, pads, resizing by sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - as PyTorch's users call it
from networks import Network, write
from torch import Tensor, nn

SIZES = {"b": (2, 1, 3), "t": (6, 5, 9), "h": (6, 12, 18), "w": (12, 6, 18), "g": (7, 9, 4)}
IDIOMS: dict[str, Network] = {}


class Idiom(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, z: Tensor | None = None) -> Any:
        return self.function(x) if z is None else self.function(x, z)


def idiom(*inputs: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function; its inputs as `networks.network` has them, of dimensions in `SIZES`."""

    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        IDIOMS[function.__name__] = partial(Idiom, function), inputs, SIZES, False
        return function

    return put


@idiom("f b 3 h w")
def flattened(x: Tensor) -> Any:
    y = F.relu(x)
    return y.flatten(1, 2), y.flatten(0, 1), y.flatten(2)


@idiom("f b 3 h w")
def tokens_of_channels_last(x: Tensor) -> Any:
    b, c, h, w = x.shape
    return x.permute(0, 2, 3, 1).reshape(b, h * w, c)


@idiom("f b t 8")
def heads(x: Tensor) -> Any:
    b, t, c = x.shape
    y = x.view(b, t, 4, c // 4).transpose(1, 2)
    return (y @ y.transpose(2, 3)).softmax(-1) @ y


@idiom("f b t 8")
def heads_as_batch(x: Tensor) -> Any:
    b, t, _ = x.shape
    y = x.view(b, t, 4, 2).transpose(1, 2).reshape(b * 4, t, 2)
    return torch.bmm(y, y.transpose(1, 2)).view(b, 4, t, t).softmax(-1)


@idiom("f b 8 h w")
def space_to_depth(x: Tensor) -> Any:
    b, c, h, w = x.shape
    y = x.view(b, c, h // 2, 2, w // 2, 2).permute(0, 1, 3, 5, 2, 4)
    return y.reshape(b, c * 4, h // 2, w // 2)


@idiom("f b 8 h w")
def windows(x: Tensor) -> Any:
    b, c, h, w = x.shape
    return x.view(b, c, h // 3, 3, w // 3, 3).permute(0, 2, 4, 3, 5, 1).reshape(-1, 9, c)


@idiom("f b 6 h w", "f b 6 t")
def gates(x: Tensor, z: Tensor) -> Any:
    b, c, h, w = x.shape
    squeezed = torch.sigmoid(F.adaptive_avg_pool2d(x, 1).view(b, c)).view(b, c, 1, 1)
    placed = torch.sigmoid(x.mean(1).view(b, 1, h, w))
    return x * squeezed, x * placed, z * torch.sigmoid(z.mean(-1)).unsqueeze(-1)


@idiom("f b 6 h w")
def shuffled_channels(x: Tensor) -> Any:
    b, _, h, w = x.shape
    return x.view(b, 2, 3, h, w).transpose(1, 2).contiguous().view(b, -1, h, w)


@idiom("f b 3 h w", "f b 3 t g")
def resized_to_another(x: Tensor, z: Tensor) -> Any:
    y = F.interpolate(x, size=z.shape[2:], mode="bilinear", align_corners=False)
    return y + z, torch.cat([F.interpolate(x, size=z.shape[-2:], mode="nearest"), z], 1)


@idiom("f b 3 h w")
def resized_to_twice(x: Tensor) -> Any:
    h, w = x.shape[2:]
    return F.interpolate(x, size=(h * 2, w * 2), mode="bilinear", align_corners=True)


@idiom("f b 3 t g")
def padded_to_a_multiple(x: Tensor) -> Any:
    h, w = x.shape[2:]
    return F.pad(x, (0, (4 - w % 4) % 4, 0, (4 - h % 4) % 4))


@idiom("f b 3 h w")
def padded_and_cut(x: Tensor) -> Any:
    h, w = x.shape[2:]
    return F.pad(x, (2, 2, 2, 2))[:, :, 2 : 2 + h, 2 : 2 + w]


@idiom("f b t 8", "f b t")
def hidden_places(x: Tensor, m: Tensor) -> Any:
    hidden = (1 - (m > 0).float()[:, None, None, :]) * -1e4
    return (torch.matmul(x, x.transpose(1, 2)).unsqueeze(1) + hidden).softmax(-1)


@idiom("f b t 8")
def later_places(x: Tensor) -> Any:
    t = x.size(1)
    later = torch.triu(torch.full((t, t), -1e4), 1)
    i = torch.arange(t)
    seen = x.unsqueeze(1) * (i[None, :] <= i[:, None])[None, :, :, None].float()
    return (torch.matmul(x, x.transpose(1, 2)) + later).softmax(-1), seen


@idiom("f b t 8")
def places_by_number(x: Tensor) -> Any:
    t = x.size(1)
    places = torch.arange(t).unsqueeze(0).expand(x.size(0), t)
    return x + torch.sin(places.float()).unsqueeze(-1)


@idiom("f b t 8")
def relative_places(x: Tensor) -> Any:
    i = torch.arange(x.size(1))
    apart = (i[:, None] - i[None, :]).clamp(-3, 3) + 3
    return x @ x.transpose(1, 2) + torch.arange(7).float()[apart]


@idiom("f b t 8")
def a_token_in_front(x: Tensor) -> Any:
    first = torch.ones(1, 1, 8)
    y = torch.cat([first.expand(x.size(0), -1, -1), x], 1)
    return y, torch.cat([first.repeat(x.shape[0], 1, 1), x], 1)[:, 0]


@idiom("f b t 8")
def halves(x: Tensor) -> Any:
    a, b = x.chunk(2, -1)
    first, second = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    turns = torch.stack([x[..., ::2], x[..., 1::2]], -1).flatten(-2)
    return a * torch.sigmoid(b), torch.cat((-second, first), -1), turns


@idiom("f b 3 h w")
def layers(x: Tensor) -> Any:
    return torch.stack([x, x * 2], 1).flatten(1, 2)


@idiom("f b 3 h w")
def coordinates(x: Tensor) -> Any:
    b, _, h, w = x.shape
    ys, xs = torch.arange(h).float() / (h - 1), torch.arange(w).float() / (w - 1)
    grid = torch.stack([ys[:, None].expand(h, w), xs[None, :].expand(h, w)])
    return torch.cat([x, grid[None].repeat(b, 1, 1, 1)], 1)


@idiom("f b 6 h w")
def norm_of_groups(x: Tensor) -> Any:
    b, c, h, w = x.shape
    y = x.view(b, 3, -1)
    y = (y - y.mean(-1, keepdim=True)) / (y.var(-1, keepdim=True, unbiased=False) + 1e-5).sqrt()
    return y.view(b, c, h, w)


@idiom("f b t 8", "f b 3 h w")
def statistics(x: Tensor, z: Tensor) -> Any:
    apart = (z - z.mean((2, 3), keepdim=True)).pow(2)
    weight = apart / (4 * (apart.sum((2, 3), keepdim=True) / (z.shape[2] * z.shape[3] - 1) + 1e-4))
    return torch.cat([x.mean(1), x.std(1)], 1), z * torch.sigmoid(weight + 0.5)


@idiom("f b t 8")
def steps(x: Tensor) -> Any:
    b, _, c = x.shape
    before = torch.cat([torch.zeros(b, 1, c), x[:, :-1]], 1)
    return x[:, -1], x[:, x.size(1) - 1], before, torch.roll(x, 1, 1)


@idiom("f b t 8")
def pairs(x: Tensor) -> Any:
    b, t, c = x.shape
    return x.unsqueeze(1).expand(b, t, t, c) - x.unsqueeze(2).expand(b, t, t, c)


@idiom("f b 3 h w")
def attention_of_places(x: Tensor) -> Any:
    b, c, h, w = x.shape
    q = x.view(b, c, h * w)
    scores = (q.transpose(1, 2) @ q).softmax(-1)
    rows = x.permute(0, 2, 3, 1).reshape(b * h, w, c)
    rows = F.relu(rows @ rows.transpose(1, 2)) @ rows
    turned = rows.reshape(b, h, w, c).permute(0, 3, 1, 2)
    return (q @ scores.transpose(1, 2)).view(b, c, h, w) + x, turned


@idiom("f b 3 h w")
def products_of_channels(x: Tensor) -> Any:
    b, c, h, w = x.shape
    f = x.view(b, c, h * w)
    return f @ f.transpose(1, 2) / (c * h * w)


@idiom("f b t 3 h w")
def frames(x: Tensor) -> Any:
    b, t, c, h, w = x.shape
    return F.avg_pool2d(x.view(b * t, c, h, w), 2).view(b, t, c, h // 2, w // 2)


@idiom("f b t 8")
def rows(x: Tensor) -> Any:
    y = F.linear(x.reshape(-1, x.shape[-1]), torch.ones(4, 8))
    return y.reshape(x.shape[0], x.shape[1], 4)


@idiom("f b 3 h w")
def unfolded(x: Tensor) -> Any:
    b, c, h, w = x.shape
    patches = F.unfold(x, 3, padding=1)
    kernel = x[:, :1].expand(b, 9, h, w).unsqueeze(1)
    return patches, (patches.view(b, c, 9, h, w) * kernel).sum(2)


def main() -> None:
    """Write the folders."""
    write(IDIOMS, __doc__ or "")


if __name__ == "__main__":
    main()
