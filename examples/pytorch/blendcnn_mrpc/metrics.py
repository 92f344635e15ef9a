"""Accuracy and F1 of a module on MRPC; paraphrases are what F1 looks for."""

import torch


def evaluate(model: torch.nn.Module, dataset, batch_size: int = 64) -> tuple[float, float]:
    """The module may be PyTorch's or kilter's."""
    model.eval()
    hits = found = wanted = both = 0
    with torch.no_grad():
        for tokens, segments, labels in torch.utils.data.DataLoader(dataset, batch_size):
            said = model(tokens, segments).argmax(1)
            hits += int((said == labels).sum())
            found += int(said.sum())
            wanted += int(labels.sum())
            both += int((said * labels).sum())
    return hits / len(dataset), 2 * both / max(1, found + wanted)
