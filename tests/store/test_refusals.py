"""Refusals of the store that only an unusual file shows."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path

import pytest

from strongroom.store import file_owners
from strongroom.store.sqlite import btree

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.mark.parametrize(
    "payload",
    [
        bytes((2, 1, 7, 0)),  # one byte more than the header says
        bytes((2, 2, 7)),  # one byte less
        bytes((3, 1, 7)),  # a header that ends in the middle of the values
        bytes((2, 7, 0, 0, 0, 0, 0, 0, 0, 0)),  # a fraction, which no table of ours has
    ],
)
def test_a_record_that_does_not_fit_its_header_is_broken(payload: bytes) -> None:
    """A damaged page must not be read as good values."""
    with pytest.raises(btree.Broken):
        btree._record(payload)


def test_a_record_that_fits_is_read() -> None:
    """The refusals above are not of every record."""
    assert btree._record(bytes((2, 1, 7))) == (7,)


@as_root
@pytest.mark.parametrize("mode", [0o640, 0o600])
def test_the_advice_names_the_service_whose_group_may_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    """A file of root's that a group may read is the service's of that name; one that it may not is root's."""
    shared = mode == 0o640
    user = next(one for one in pwd.getpwall() if one.pw_uid != 0 and one.pw_name in {g.gr_name for g in grp.getgrall()})
    file = tmp_path / "settings"
    file.touch()
    os.chown(file, 0, grp.getgrnam(user.pw_name).gr_gid)
    file.chmod(mode)
    monkeypatch.setattr(os, "geteuid", lambda: 65_533)
    advice = file_owners.run_as_owner(file)
    assert (f"sudo -u {user.pw_name} strongroom" in advice) is shared
    assert ("sudo strongroom" in advice) is not shared
