"""Modules and data that several tests share."""

import pytest
import torch
from torch import nn


class Small(nn.Module):
    """Two convolutions and a classifier, with all that is usually fused by hand."""

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.second = nn.Sequential(nn.Conv2d(8, 16, 3, stride=2), nn.BatchNorm2d(16), nn.ReLU())
        self.head = nn.Sequential(nn.Dropout(), nn.Linear(16, 10))

    def forward(self, image):
        return self.head(self.second(self.first(image)).mean(dim=(2, 3)))


@pytest.fixture(scope="session")
def small():
    torch.manual_seed(0)
    module = Small()
    module.train()
    for _ in range(3):  # running statistics that are not 0 and 1
        module(torch.randn(8, 3, 16, 16) * 2 + 1)
    return module.eval()


@pytest.fixture(scope="session")
def images():
    torch.manual_seed(1)
    return [torch.randn(4, 3, 16, 16) for _ in range(8)]
