"""What a model answers, before it is written."""

from __future__ import annotations

from torch import Tensor

from anyorder.errors import InputError


def finite_answers(values: Tensor, what: str) -> Tensor:
    """The same values, refused where one is no number: that is no answer, whatever a class or a threshold makes of it."""
    wrong = ~values.isfinite()
    if bool(wrong.any()):
        first = int(wrong.reshape(len(values), -1).any(1).nonzero()[0])
        raise InputError(
            f"the model has no answer for {int(wrong.reshape(len(values), -1).any(1).sum())} of {len(values)} {what} "
            f"(the first is number {first}): its numbers overflow there. Are the inputs in the units of the training?"
        )
    return values
