"""Which evaluations of an app are run."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gateway.agent.app.evaluations import Evaluation, Suite
from gateway.errors import AppError


def select(
    suite: Suite, app: str, names: Sequence[str] = (), dataset: str | None = None
) -> list[Evaluation]:
    """The evaluations whose name matches one of `names` (regular expressions) in `dataset`.

    Raises AppError evaluation.none, evaluation.dataset, evaluation.pattern, evaluation.selection.
    """
    if not suite.evaluations:
        raise AppError(
            "evaluation.none",
            "the app has no evaluations",
            where=app,
            hint="Add evaluations/NAME/NAME.yaml with golden: or scenario: (see "
            "docs/evaluating.md); `voice-gateway app init` writes an app that has some.",
        )
    found = list(suite.evaluations.values())
    if dataset is not None:
        if dataset not in suite.datasets:
            known = ", ".join(sorted(suite.datasets)) or "none"
            raise AppError(
                "evaluation.dataset",
                f"the app has no evaluation dataset {dataset!r}",
                where=app,
                hint=f"Datasets: {known}.",
            )
        found = [one for one in found if one.name in suite.datasets[dataset]]
    if names:
        patterns = [_pattern(name) for name in names]
        found = [one for one in found if any(p.search(one.name) for p in patterns)]
    if not found:
        raise AppError(
            "evaluation.selection",
            "no evaluation is chosen",
            where=app,
            hint=f"Evaluations: {', '.join(sorted(suite.evaluations))}.",
        )
    return found


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error as error:
        raise AppError(
            "evaluation.pattern", f"not a regular expression: {error}", where=f"--name {text}"
        ) from None
