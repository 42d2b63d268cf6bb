"""How far a student's next-token distribution is from its teacher's, token by token.

Forward KL is KL(teacher‖student): the student must cover everything the teacher says. Reverse KL is
KL(student‖teacher): it may drop some of it, but must not say what the teacher would not. Between them lies the
generalised Jensen–Shannon divergence of GKD (Agarwal et al. 2024, eq. 1), with TRL's convention: β = 0 is forward,
β = 1 is reverse KL.
"""

from __future__ import annotations

import torch

LOSSES = ("reverse-kl", "forward-kl", "gkd", "entropy-aware")


def divergence(
    student: torch.Tensor, teacher: torch.Tensor, loss: str, *, beta: float = 0.5, entropy_threshold: float = 0.8
) -> torch.Tensor:
    """Nats for each token, [n], differentiable in `student`.

    student, teacher: normalised log-probabilities [n, k] over the same k ids (all of them, or the teacher's likeliest,
    renormalised). `entropy-aware` is reverse KL on every token, and forward KL added where the teacher's entropy
    exceeds `entropy_threshold` nats: there one sample says little of what the teacher allows.
    """
    if loss == "forward-kl" or (loss == "gkd" and beta == 0):
        return kl(teacher, student)
    if loss == "reverse-kl" or (loss == "gkd" and beta == 1):
        return kl(student, teacher)
    if loss == "gkd":
        weights = torch.tensor([1 - beta, beta], device=student.device).log()
        mixture = torch.logaddexp(student + weights[0], teacher + weights[1])
        return beta * kl(teacher, mixture) + (1 - beta) * kl(student, mixture)
    if loss == "entropy-aware":
        unsure = entropy(teacher) > entropy_threshold
        return kl(student, teacher) + torch.where(unsure, kl(teacher, student), torch.zeros_like(student[:, 0]))
    raise ValueError(f"There is no loss {loss!r}; there are {', '.join(LOSSES)}.")


def kl(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    """KL(p‖q) of log-probabilities [n, k], nats. An id with p = 0 adds nothing, whatever q is."""
    terms = p.exp() * (p - q)
    return torch.where(p == -torch.inf, torch.zeros_like(terms), terms).sum(-1)


def entropy(p: torch.Tensor) -> torch.Tensor:
    """Entropy of log-probabilities [n, k], nats."""
    terms = p.exp() * p
    return -torch.where(p == -torch.inf, torch.zeros_like(terms), terms).sum(-1)
