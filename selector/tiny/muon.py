"""Muon in float32: `torch.optim.Muon` computes in bfloat16, which takes ten times as long on CPUs without it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

import torch

COEFFICIENTS = (3.4445, -4.775, 2.0315)
N_ITERATIONS = 5


def orthogonalize(stack: torch.Tensor) -> torch.Tensor:
    """Return roughly the nearest semi-orthogonal matrices of a stack [n, rows, columns] (Newton-Schulz, quintic)."""
    a, b, c = COEFFICIENTS
    is_tall = stack.shape[1] > stack.shape[2]
    x = stack.mT if is_tall else stack
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    for _ in range(N_ITERATIONS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if is_tall else x


class Muon(torch.optim.Optimizer):
    """Orthogonalized momentum for matrices (Jordan et al. 2024); matrices of one shape are updated together."""

    def __init__(self, matrices: Iterable[torch.nn.Parameter], lr: float, momentum: float = 0.95) -> None:
        by_shape = groupby(sorted(matrices, key=lambda p: tuple(p.shape)), key=lambda p: tuple(p.shape))
        super().__init__([{"params": list(group)} for _, group in by_shape], {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Take one step; every matrix needs a gradient."""
        for group in self.param_groups:
            matrices: list[torch.nn.Parameter] = group["params"]
            state: dict[str, Any] = self.state[matrices[0]]
            gradients = torch.stack([matrix.grad for matrix in matrices])  # type: ignore[misc]
            velocity = state.setdefault("velocity", torch.zeros_like(gradients))
            velocity.lerp_(gradients, 1 - group["momentum"])
            rows, columns = matrices[0].shape
            scale = group["lr"] * max(1.0, rows / columns) ** 0.5
            updates = orthogonalize(gradients.lerp(velocity, group["momentum"]))
            for matrix, update in zip(matrices, updates, strict=True):
                matrix.add_(update, alpha=-scale)
