"""import and export: items of other password managers in, and all items out."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from strongroom.cli import agent_requests, exit_codes, prompts, terminal
from strongroom.cli.items import write_new
from strongroom.cli.terminal import CommandFailed

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from strongroom.items import Item
    from strongroom.items.formats import Found, Plan, Problem

PASS: Final = "pass"  # noqa: S105 - the name of a program
_FORMATS: Final = (
    "bitwarden",
    "cxf",
    "1pux",
    "keepass-xml",
    "keepass-csv",
    "chrome",
    "firefox",
    "safari",
    "dotenv",
    PASS,
)
_HEAD: Final = 4_096  # bytes by which a format is recognised
_BATCH: Final = 200  # items that are sent to the agent at a time
_PAGE: Final = 1_000  # items that are asked for at a time
_BATCH_BYTES: Final = 8 << 20
_GIVE_UP: Final = 3  # entries that gpg cannot decrypt, before it has decrypted one
_MOST_PROBLEMS: Final = 50  # that are shown to a person


def add_import(parser: argparse.ArgumentParser) -> None:
    """Add the options of `import`."""
    parser.description = (
        "Add the items of a file of another password manager. What was imported before is not added again. A file that "
        "is encrypted with a password is opened by it. Delete the file afterwards if it is not encrypted."
    )
    parser.add_argument("file", metavar="FILE", help="the file; the directory of pass; or - for standard input")
    parser.add_argument(
        "--format", choices=_FORMATS, metavar="NAME", help=f"its format, if it is not recognised: {', '.join(_FORMATS)}"
    )
    parser.add_argument("--vault", metavar="NAME", help="the vault that they go to; made if there is none")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be added")
    parser.add_argument("--password", metavar="-", help="- takes the password of the file from standard input")
    agent_requests.add_json(parser)
    parser.set_defaults(run=_import)


def add_export(parser: argparse.ArgumentParser) -> None:
    """Add the options of `export`."""
    parser.description = (
        "Write all items with their values, not encrypted, to a new file that only you can read: as CXF, the format of "
        "the FIDO Alliance, or as JSON of Bitwarden. Nothing is lost on the way back."
    )
    parser.add_argument("file", metavar="FILE", help="the new file, or - for standard output")
    parser.add_argument("--format", choices=("cxf", "bitwarden"), default="cxf", help="the format; cxf by default")
    parser.add_argument("--vault", metavar="NAME", help="only this vault")
    parser.add_argument("--yes", action="store_true", help="do it without confirmation")
    agent_requests.add_json(parser)
    parser.set_defaults(run=_export)


class _Present(NamedTuple):
    """An item of the vault, with no more than its source."""

    uid: str
    value: Item


def _import(options: argparse.Namespace) -> int:
    from strongroom.items import Item, Source
    from strongroom.items.formats import make_plan

    vault = options.vault or _only_vault()
    bar = terminal.Bar()
    try:
        with agent_requests.refusals(), _opened(options) as (name, found):
            present = [
                _Present(uid, Item(source=Source(format=kind, id=identifier)))
                for uid, kind, identifier in agent_requests.ask("sources", vault=vault)
            ]
            plan = make_plan(found, present, lambda done: bar.show("Reading", done, done, of="items"))
        if not options.dry_run:
            _add(plan, vault, bar)
    finally:
        bar.clear()
    return _tell(options, plan, vault, name)


def _only_vault() -> str:
    names = sorted({one["vault"] for one in agent_requests.ask("items")})
    if len(names) > 1:
        raise CommandFailed(f"Say which vault with --vault: {terminal.plain(', '.join(names))}.")
    return names[0] if names else "Personal"


@contextmanager
def _opened(options: argparse.Namespace) -> Iterator[tuple[str, Iterable[Found]]]:
    """The format of the file, and what it holds."""
    from strongroom.items.formats import READERS, guess, pass_store
    from strongroom.items.formats.common import MOST_FILE_BYTES

    path: str = options.file
    if path != prompts.STDIN and (options.format == PASS or Path(path).is_dir()):
        yield PASS, pass_store.read(_pass_entries(Path(path)))
        return
    with _file(path, MOST_FILE_BYTES) as file:
        name = options.format or guess(path, file.read(_HEAD))
        if name is None:
            raise CommandFailed(f"The format of {path} is not recognised; say it with --format: {', '.join(_FORMATS)}.")
        file.seek(0)
        yield name, READERS[name](file, lambda: prompts.secret("Password of the file", options.password))


@contextmanager
def _file(path: str, most: int) -> Iterator[BinaryIO]:
    if path == prompts.STDIN:
        data = sys.stdin.buffer.read(most + 1)
        if len(data) > most:
            raise CommandFailed("Standard input is too large.")
        yield io.BytesIO(data)
        return
    try:
        with Path(path).open("rb") as file:
            if not file.seekable():
                raise CommandFailed(f"{path} is not a file; give it by standard input, as -.")
            yield file
    except OSError as error:
        raise CommandFailed(f"Cannot read the file {path}: {error.strerror}.") from None


def _pass_entries(store: Path) -> Iterator[tuple[str, bytes | None] | Problem]:
    """The entries of a password store, decrypted by gpg one after the other. Links are told, and not followed."""
    if not store.is_dir():
        raise CommandFailed(f"{store} is not a directory of pass.")
    found = []
    for folder, names, leaves in os.walk(store):
        names[:] = sorted(name for name in names if not name.startswith("."))
        found += [Path(folder) / name for name in names if (Path(folder) / name).is_symlink()]
        found += [Path(folder) / leaf for leaf in sorted(leaves) if not leaf.startswith(".")]
    if not any(path.suffix == ".gpg" for path in found):
        raise CommandFailed(f"{store} is not a directory of pass: it has no entries.")
    worked, failures = False, 0
    for path in found:
        if path.is_symlink():
            yield _told_link(store, path)
            continue
        if path.suffix != ".gpg":
            yield _told_other(path.relative_to(store))
            continue
        command = ["gpg", "--quiet", "--yes", "--decrypt", "--output", "-", "--", str(path.resolve())]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603
        except OSError:
            raise CommandFailed("gpg is not installed; it decrypts the entries of pass.") from None
        name = path.relative_to(store).as_posix().removesuffix(".gpg")
        worked, failures = worked or done.returncode == 0, failures + (done.returncode != 0)
        if not worked and failures == _GIVE_UP:
            raise CommandFailed("gpg decrypts none of the entries: is its secret key here? Nothing was added.", 1)
        yield name, done.stdout if done.returncode == 0 else None


def _told_other(path: Path) -> Problem:
    from strongroom.items.formats import Problem

    return Problem(f"The file {path.as_posix()!r} is not encrypted with gpg, and was left out.")


def _told_link(store: Path, path: Path) -> Problem:
    """What becomes of a link: what it leads to comes under its own name, if it is in the store."""
    from strongroom.items.formats import Problem

    name = path.relative_to(store).as_posix().removesuffix(".gpg")
    target, root = path.resolve(), store.resolve()
    if target.is_relative_to(root) and target.exists():
        other = target.relative_to(root).as_posix().removesuffix(".gpg")
        return Problem(f"The link {name!r} was left out; it leads to {other!r}, which has its own name.")
    return Problem(f"The link {name!r} was left out: it leads out of the store, or to nothing.")


def _add(plan: Plan, vault: str, bar: terminal.Bar) -> None:
    """Add the new items batch by batch. What the agent refuses is told as a problem, and the others are added."""
    added: list[Item] = []
    for batch in _batches(plan.new):
        added += _sent(batch, vault, plan)
        bar.show("Adding", len(added), len(plan.new), of="items")
    plan.new = added


def _batches(items: list[Item]) -> Iterator[list[Item]]:
    import msgspec

    batch: list[Item] = []
    size = 0
    for item in items:
        batch.append(item)
        size += len(msgspec.json.encode(item.to_stored()))
        if len(batch) >= _BATCH or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _sent(batch: list[Item], vault: str, plan: Plan) -> list[Item]:
    """Send a batch; those that were added. Where the agent refuses it, each is sent alone."""
    try:
        agent_requests.ask("add_many", vault=vault, create=True, items=[item.to_stored() for item in batch])
    except CommandFailed as failed:
        if failed.code not in {exit_codes.FAILED, exit_codes.WRONG_USE}:
            raise
        if len(batch) > 1:
            return [added for item in batch for added in _sent([item], vault, plan)]
        plan.problems.append(f"The item {batch[0].title[:60]!r} was not added: {failed}")
        return []
    return batch


def _tell(options: argparse.Namespace, plan: Plan, vault: str, name: str) -> int:
    told = {
        "format": name,
        "vault": vault,
        "dryRun": options.dry_run,
        "new": len(plan.new),
        "types": plan.counts,
        "known": plan.known,
        "problems": plan.problems,
    }
    if options.json:
        agent_requests.show_json(told)
        return 0
    for problem in plan.problems[:_MOST_PROBLEMS]:
        terminal.print_error(terminal.plain(problem))
    if len(plan.problems) > _MOST_PROBLEMS:
        terminal.print_error(f"and {len(plan.problems) - _MOST_PROBLEMS:,} more; --json has all of them")
    kinds = f": {', '.join(f'{count:,} {kind}' for kind, count in plan.counts.items())}" if plan.new else ""
    verb = "Would add" if options.dry_run else "Added"
    known = f" {plan.known:,} were there already." if plan.known else ""
    left = f" Problems: {len(plan.problems):,}." if plan.problems else ""
    terminal.print_line(f"{verb} {len(plan.new):,} items to the vault {terminal.plain(vault)!r}{kinds}.{known}{left}")
    return 0


def _export(options: argparse.Namespace) -> int:
    from strongroom.items import Item
    from strongroom.items.formats import WRITERS
    from strongroom.items.formats.common import folder

    question = f"Write all values, not encrypted, to {'standard output' if options.file == '-' else options.file}?"
    terminal.confirm(question, yes=options.yes)
    found: list[tuple[str, Item]] = []
    vaults: list[str] = []
    ids = [one["id"] for one in agent_requests.ask("items", vault=options.vault)]
    bar, at = terminal.Bar(), 0
    try:
        while at < len(ids):
            page = agent_requests.ask("export", ids=ids[at : at + _PAGE])
            found += [(one["id"], Item.from_stored(one["item"])) for one in page["items"]]
            vaults += [one["vault"] for one in page["items"]]
            at += page["done"]
            bar.show("Reading", at, len(ids), of="items")
    finally:
        bar.clear()
    if len({*vaults}) > 1:  # each vault becomes the outermost folder of its items
        for vault, (_, item) in zip(vaults, found, strict=True):
            item.folders = [f"{folder(vault)}/{path}" for path in item.folders] or [folder(vault)]
    data = WRITERS[options.format](found, int(time.time()))
    if options.file == "-":
        terminal.print_bytes(data)
        return 0
    write_new(options.file, data)
    told = {"file": options.file, "format": options.format, "items": len(found)}
    return agent_requests.show(options, told, f"Wrote {len(found):,} items to {options.file}; they are not encrypted.")
