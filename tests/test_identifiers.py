"""UUIDs."""

from __future__ import annotations

import uuid

import pytest

from strongroom.identifiers import canonical, new_uid


def test_a_new_uid_is_a_uuid_of_version_7_and_carries_its_time() -> None:
    """Made by us, read by the standard library."""
    made = uuid.UUID(new_uid(1_731_600_000_123))
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert made.int >> 80 == 1_731_600_000_123


def test_uids_differ_and_sort_by_time() -> None:
    """A later uid is a larger text; two of one moment differ."""
    assert len({new_uid(5) for _ in range(10_000)}) == 10_000
    assert new_uid(1_000) < new_uid(1_001)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0192F0C1-2B3C-7D4E-8F90-A1B2C3D4E5F6", "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6"),
        ("00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000000"),
        ("0192f0c12b3c7d4e8f90a1b2c3d4e5f6", None),
        ("{0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6}", None),
        ("0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6\n", None),
        ("0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5fg", None),
        ("", None),
    ],
)
def test_one_spelling(text: str, wanted: str | None) -> None:
    """Any case is read, one is written, and nothing else is a uid."""
    assert canonical(text) == wanted
