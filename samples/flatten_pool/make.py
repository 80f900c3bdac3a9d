"""Two small convolutional networks that pool through `flatten`, exported with the ATen fallback.

The exporter writes `torch.flatten(x, 2, 3)` as a chain of Shape, Slice and Concat into a Reshape,
and `x.view(x.size(0), -1)` as Shape, Gather, Unsqueeze and Concat: simple things in many nodes.
`flatten_pool` pools to 1 and has standard operators only. `flatten_pool_uneven` pools 49 pixels
into 5 windows of unequal size, which the exporter leaves as an ATen node.

Run: python samples/flatten_pool/make.py [FOLDER]
"""

import sys
from pathlib import Path

import torch
from torch import Tensor, nn

from surgeon.export import export

CLASSES = 5


class FlattenPool(nn.Module):
    """Image [b, 3, 28, 28] to class scores [b, CLASSES]."""

    def __init__(self, windows: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Conv2d(8, 12, 3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.pool = nn.AdaptiveAvgPool1d(windows)
        self.classify = nn.Linear(12 * windows, CLASSES)

    def forward(self, image: Tensor) -> Tensor:
        x = torch.flatten(self.features(image), 2, 3)  # [b, 12, 49]
        x = self.pool(x)
        return self.classify(x.view(x.size(0), -1))


def make_it_matter(module: FlattenPool, generator: torch.Generator) -> None:
    """Draw weights with which no part of the network could be left out unseen."""
    norm = module.features[1]
    with torch.no_grad():
        for tensor in module.parameters():
            scale = (2.0 / tensor[0].numel()) ** 0.5 if tensor.dim() > 1 else 0.5
            tensor.copy_(torch.randn(tensor.shape, generator=generator) * scale)
        norm.weight.copy_(0.5 + torch.rand(8, generator=generator))
        norm.running_mean.copy_(torch.randn(8, generator=generator) * 0.3)
        norm.running_var.copy_(0.4 + torch.rand(8, generator=generator))


def make(folder: Path) -> list[Path]:
    """Write both samples, with a dynamic batch."""
    generator = torch.Generator().manual_seed(20240301)

    def image(batch: int) -> Tensor:
        pixels = torch.randn(batch, 3, 28, 28, generator=generator)
        return pixels + torch.randn(batch, 3, 28, 1, generator=generator)  # rows that differ

    paths = []
    for name, windows in [("flatten_pool", 1), ("flatten_pool_uneven", 5)]:
        module = FlattenPool(windows)
        make_it_matter(module, generator)
        path = export(
            module,
            image(2),
            folder / f"{name}.onnx",
            input_names=["image"],
            output_names=["scores"],
            dynamic_axes={"image": {0: "batch"}, "scores": {0: "batch"}},
            opset_version=13,
            extra_inputs=[image(1), image(3)],
        )
        paths.append(path)
    return paths


if __name__ == "__main__":
    for path in make(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent):
        sys.stdout.write(f"{path.name}: {path.stat().st_size} bytes\n")
