"""BlendCNN: BERT's embeddings, a stack of convolutions over time, and the mean over time of every layer.

Nothing here knows of quantization: no stubs, no lists of modules to fuse.
"""

import torch
from torch import nn


class Embeddings(nn.Module):
    """Tokens, positions and segments, added and normalized."""

    def __init__(self, vocabulary: int, length: int, width: int, dropout: float):
        super().__init__()
        self.token = nn.Embedding(vocabulary, width, sparse=True)
        self.position = nn.Embedding(length, width)
        self.segment = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: torch.Tensor, segments: torch.Tensor) -> torch.Tensor:
        positions = self.position.weight[: tokens.shape[1]]
        return self.dropout(self.norm(self.token(tokens) + positions + self.segment(segments)))


class BlendCNN(nn.Module):
    """Numbers of tokens and segments, [samples, length] each, to scores, [samples, classes]."""

    def __init__(
        self,
        vocabulary: int = 30522,
        length: int = 512,
        width: int = 768,
        channels: int = 100,
        layers: int = 8,
        classes: int = 2,
        dropout: float = 0.1,
    ):
        super().__init__()
        self.embeddings = Embeddings(vocabulary, length, width, dropout)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(width if layer == 0 else channels, channels, kernel_size=5, padding=2)
            for layer in range(layers)
        )
        self.blend = nn.Linear(layers * channels, channels)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(channels, classes)

    def forward(self, input_ids: torch.Tensor, segment_ids: torch.Tensor) -> torch.Tensor:
        hidden = self.embeddings(input_ids, segment_ids).transpose(1, 2)
        means = []
        for convolution in self.convolutions:
            hidden = torch.relu(convolution(hidden))
            means.append(hidden.mean(dim=2))
        blended = torch.relu(self.blend(torch.cat(means, dim=1)))
        return self.classifier(self.dropout(blended))
