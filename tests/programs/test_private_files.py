"""Files with secrets are for their owner alone, and whole; files with rules are read only if nobody else can write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from strongroom.programs import private_files
from strongroom.programs.private_files import FileRefused, read_trusted, require_trusted, write_private


@pytest.fixture
def private_folder(tmp_path: Path) -> Path:
    """A folder that only its owner can write."""
    made = tmp_path / "home"
    made.mkdir(mode=0o700)
    return made


@pytest.mark.parametrize("umask", [0, 0o777])
@pytest.mark.parametrize("nameless", [True, False])
def test_a_file_is_private_and_replaces(
    private_folder: Path, monkeypatch: pytest.MonkeyPatch, *, nameless: bool, umask: int
) -> None:
    """Mode 0600 whatever the umask and the old file had; nothing is left beside it."""
    if not nameless:
        monkeypatch.setattr(private_files, "_nameless", lambda _: None)
    target = private_folder / "out"
    target.write_text("old")
    target.chmod(0o666)
    modes: list[int] = []
    set_mode = os.fchmod

    def look_and_set(descriptor: int, mode: int) -> None:
        modes.append(os.fstat(descriptor).st_mode & 0o777)
        set_mode(descriptor, mode)

    monkeypatch.setattr(os, "fchmod", look_and_set)
    before = os.umask(umask)
    try:
        write_private(target, b"new")
    finally:
        os.umask(before)
    assert modes == [0o600 & ~umask]  # from its first moment
    assert target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o600
    assert list(private_folder.iterdir()) == [target]


def test_what_is_no_file_is_not_replaced(private_folder: Path) -> None:
    """Neither a link nor a folder; and a folder that is not there is a sentence."""
    (private_folder / "true").write_text("kept")
    (private_folder / "link").symlink_to(private_folder / "true")
    for path, sentence in (("link", "symbolic link"), (".", "is not a file"), ("none/out", "cannot be written")):
        with pytest.raises(FileRefused, match=sentence):
            write_private(private_folder / path, b"secret")
    assert (private_folder / "true").read_text() == "kept"
    assert sorted(one.name for one in private_folder.iterdir()) == ["link", "true"]


def test_a_file_that_fails_leaves_nothing(private_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it cannot take its name, no part of it stays."""
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(FileRefused, match="No space left"):
        write_private(private_folder / "out", b"secret")
    assert list(private_folder.iterdir()) == []


def test_rules_that_others_can_write_are_refused(private_folder: Path) -> None:
    """Loose permissions of the file or its folder, a link, another owner, no file, no text."""
    rules = private_folder / "rules"
    rules.write_text("x = 1")
    rules.chmod(0o644)
    assert read_trusted(rules) == "x = 1"
    for mode in (0o664, 0o646, 0o666):
        rules.chmod(mode)
        with pytest.raises(FileRefused, match="chmod go-w"):
            read_trusted(rules)
    rules.chmod(0o600)
    private_folder.chmod(0o777)
    with pytest.raises(FileRefused, match="chmod go-w"):
        read_trusted(rules)
    private_folder.chmod(0o700)
    (private_folder / "link").symlink_to(rules)
    with pytest.raises(FileRefused, match="symbolic link"):
        read_trusted(private_folder / "link")
    os.mkfifo(private_folder / "pipe", 0o600)
    with pytest.raises(FileRefused, match="is not a file"):
        read_trusted(private_folder / "pipe")
    rules.write_bytes(b"\xff")
    with pytest.raises(FileRefused, match="not text"):
        read_trusted(rules)
    rules.write_bytes(b"#" * (1 << 20))
    assert len(read_trusted(rules)) == 1 << 20
    rules.write_bytes(b"#" * (1 << 20) + b"#")
    with pytest.raises(FileRefused, match="too long"):
        read_trusted(rules)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_rules_of_another_user_are_refused(private_folder: Path) -> None:
    """The owner is this user, or root."""
    rules = private_folder / "rules"
    rules.write_text("x = 1")
    os.chown(rules, 65534, 65534)
    with pytest.raises(FileRefused, match="belongs to another user"):
        read_trusted(rules)
    with pytest.raises(FileRefused, match="belongs to another user"):  # also of one that took its place meanwhile
        require_trusted(rules, rules.stat())
