"""How good a module is on MRPC. The module may be PyTorch's or kilter's."""

from typing import NamedTuple

import torch


class Figures(NamedTuple):
    """Balanced is the mean of the accuracies on paraphrases and on others.

    Two thirds of the pairs are paraphrases: a model that always says so has an accuracy of 0.66, and only half by this figure.
    """

    accuracy: float
    f1: float
    balanced: float


def evaluate(model: torch.nn.Module, dataset, batch_size: int = 64) -> Figures:
    model.eval()
    hits = found = wanted = both = 0
    with torch.no_grad():
        for tokens, segments, labels in torch.utils.data.DataLoader(dataset, batch_size):
            said = model(tokens, segments).argmax(1)
            hits += int((said == labels).sum())
            found += int(said.sum())
            wanted += int(labels.sum())
            both += int((said * labels).sum())
    others = len(dataset) - wanted
    balanced = (both / max(1, wanted) + (hits - both) / max(1, others)) / 2
    return Figures(hits / len(dataset), 2 * both / max(1, found + wanted), balanced)
