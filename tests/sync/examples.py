"""How many examples a state machine plays, and how."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, Phase, settings

from tests.kit.samples import LONG, TIMES

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
SETTINGS = settings(
    max_examples=1_000,
    stateful_step_count=40,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


def examples(short: int, long: int) -> settings:
    """How many, here and in `make soak`, where they are others each time, and SOAK_TIMES as many.

    There a failure is shown as it was found. All examples share a server, and after a failure it is no longer as it
    was: what is left when the example is made smaller may have nothing to do with the fault.
    """
    return settings(
        max_examples=long * TIMES if LONG else short,
        stateful_step_count=60 if LONG else 40,
        derandomize=not LONG,
        phases=[Phase.explicit, Phase.generate] if LONG else list(Phase),
        database=None,
        suppress_health_check=list(HealthCheck),
    )
