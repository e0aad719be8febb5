"""Which backups are kept, for any set of them: what is asked for, as far as it exists, and always the newest."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.server.backup_schedule import BackupFile, backup_name, expired, is_from_the_future, timestamp_of
from strongroom.server.settings import BackupRetention

NOW = 1_800_000_000_000
HOUR = 3_600_000
FORMS = {"hours": "%Y-%m-%d %H", "days": "%Y-%m-%d", "weeks": "%G-%V", "months": "%Y-%m", "years": "%Y"}
moments = st.lists(
    st.one_of(
        st.integers(-72, 72).map(lambda n: NOW + n * HOUR // 2), st.integers(0, 4 * 10**9).map(lambda s: s * 1000)
    ),
    max_size=60,
    unique=True,
)
counts = st.integers(0, 5)
keeps = st.builds(BackupRetention, counts, counts, counts, counts, counts, counts)


def period(form: str, one: BackupFile) -> str:
    return time.strftime(form, time.gmtime(one.made_at / 1000))


@given(moments, keeps, st.randoms(use_true_random=False))
def test_what_is_asked_for_is_kept(made_at: list[int], keep: BackupRetention, random: object) -> None:
    """The newest stays; no fewer than asked where they exist; the same in any order; none from the future goes."""
    made = sorted(BackupFile(moment, Path(backup_name(moment))) for moment in made_at)
    gone = expired(made, keep, NOW)
    shuffled = list(made)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert sorted(expired(shuffled, keep, NOW)) == gone
    left = [one for one in made if one not in gone]
    counted = [one for one in left if not is_from_the_future(one, NOW)]
    there = [one for one in made if not is_from_the_future(one, NOW)]
    assert [one for one in left if is_from_the_future(one, NOW)] == [
        one for one in made if is_from_the_future(one, NOW)
    ]
    assert counted[-1:] == there[-1:]
    assert counted[len(counted) - min(keep.last, len(there)) :] == there[len(there) - min(keep.last, len(there)) :]
    for name, form in FORMS.items():
        wanted = sorted(
            {period(form, one) for one in there}, key=lambda p: max(o for o in there if period(form, o) == p)
        )
        for one in wanted[len(wanted) - min(getattr(keep, name), len(wanted)) :]:
            newest = max(other for other in there if period(form, other) == one)
            assert newest in counted
    asked = max(keep.last, 1) + sum(getattr(keep, name) for name in FORMS)
    assert len(counted) <= asked
    assert expired(left, keep, NOW) == [], "once thinned out, nothing more goes"


@given(moments, keeps, st.data())
def test_the_one_just_made_is_never_deleted(made_at: list[int], keep: BackupRetention, data: st.DataObject) -> None:
    """Whatever its name says."""
    if made_at:
        made = sorted(BackupFile(moment, Path(backup_name(moment))) for moment in made_at)
        fresh = data.draw(st.sampled_from(made))
        assert fresh not in expired(made, keep, NOW, fresh.path)


@pytest.mark.parametrize("name", ["strongroom-20260230T000000Z.backup", "strongroom-20260101T250000Z.backup", "x"])
def test_a_name_that_is_no_time_is_no_backup(name: str) -> None:
    """The thirtieth of February has none."""
    assert timestamp_of(name) is None
    assert timestamp_of(backup_name(NOW)) == NOW
