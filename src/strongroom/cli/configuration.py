"""Where settings come from: options, the environment, a settings file. Every command reads them here."""

from __future__ import annotations

import difflib
import io
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from strongroom.cli import terminal
from strongroom.options import FOREIGN, SETTINGS_FILE, TABLE, Option

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Mapping

    from strongroom.server.admin.doctor import SettingsSource
    from strongroom.server.settings import Settings

ENV_FILE: Final = ".env"
SYSTEM_FILE: Final = "/etc/strongroom/settings"
NO_TOKENS: Final = ("JWT_SECRET", "JWT_SECRET_PREVIOUS", "METRICS_TOKEN")  # what only a server needs
_UNIX: Final = "unix:"
_KNOWN: Final = {name for option in TABLE for name in (option.variable, option.file_variable) if name}
_PREFIX: Final = "STRONGROOM_"
_SHORT: Final = 4  # letters; names so short are like too many others
_LONG: Final = 15  # letters; in names so long two may be wrong


class Value(NamedTuple):
    """A setting as it was given: by its name or by the name of a file with it, and where."""

    name: str
    text: str
    source: str


class Configuration:
    """What a command was told: by its options, by the environment, by a settings file."""

    def __init__(
        self, options: Mapping[str, str | None], environment: Mapping[str, str], named_file: str | None = None
    ) -> None:
        self._options = options
        self.file = _settings_file(named_file, environment)
        in_file, self._odd = _read(self.file) if self.file is not None else ({}, [])
        self.foreign = {name: in_file[name] for name in FOREIGN if in_file.get(name)}
        self._environment = environment
        self._given: dict[str, str] = {}
        self.values = {setting.variable: self._value(setting, environment, in_file) for setting in TABLE}

    def _value(self, setting: Option, environment: Mapping[str, str], in_file: Mapping[str, str]) -> Value:
        """The value of the place that comes first; that place alone decides, with either of the two names."""
        named = [name for name in (setting.variable, setting.file_variable) if name]
        folder = None
        if setting.variable in environment or environment.get(setting.file_variable):
            place, source = environment, "environment"
        else:
            place, source, folder = in_file, str(self.file), self._folder
        found = {name: _from(folder, name, setting, place[name]) for name in named if place.get(name)}
        if not found and setting.is_path and setting.default:
            found, source = (
                {setting.variable: _from(self._folder, setting.variable, setting, setting.default)},
                "default",
            )
        self._given |= found
        option = self._options.get(setting.option)
        if option is not None:
            return Value(setting.option, option, setting.option)
        name = next(iter(found), "")
        return Value(name, found[name], source) if name else Value(setting.variable, setting.default, "default")

    @property
    def _folder(self) -> Path | None:
        """Where relative paths of the settings file start; None if that is this folder."""
        return None if self.file is None or str(self.file) == ENV_FILE else self.file.parent.resolve()

    @property
    def warnings(self) -> list[str]:
        """What was probably meant as a setting and is none, each in a sentence."""
        return self._odd + _near_misses(self._environment)

    @property
    def origin(self) -> SettingsSource:
        """What the doctor looks at: the files that were read, and what is odd about them."""
        from strongroom.server.admin.doctor import SettingsSource

        given = {setting: self.values[setting.variable] for setting in TABLE if setting.is_secret}
        in_file = any(value.source == str(self.file) and value.name == at.variable for at, value in given.items())
        files = [Path(value.text) for at, value in given.items() if value.name != at.variable]
        return SettingsSource(self.file, in_file or bool(self.foreign), tuple(files), tuple(self.warnings))

    def settings(self, without: Collection[str] = ()) -> Settings:
        """What all of it means; raises BadSetting. Secrets in `without` are neither needed nor read."""
        from strongroom.server.settings import resolve

        return resolve(self._given, self._options, without)


def add_option(parser: argparse.ArgumentParser) -> None:
    """The option that names the settings file."""
    parser.add_argument(
        "--settings",
        metavar="FILE",
        help=f"file with settings as NAME=value lines [{SETTINGS_FILE}] "
        f"(default: {ENV_FILE} in this folder, else {SYSTEM_FILE})",
    )


def read(options: argparse.Namespace) -> Configuration:
    """What the command was told; a settings file that cannot be read ends it in one sentence."""
    given = {setting.option: getattr(options, setting.variable, None) for setting in TABLE}
    configured = Configuration(given, os.environ, options.settings)
    for name, value in configured.foreign.items():
        os.environ.setdefault(name, value)  # where the library looks, in this process and in those that it starts
    return configured


def settings_of(options: argparse.Namespace, without: Collection[str] = NO_TOKENS) -> Settings:
    """The settings of a command that works beside the server; what is wrong with them ends it in one sentence."""
    return checked(read(options), without)


def checked(configured: Configuration, without: Collection[str]) -> Settings:
    """What all of it means. A database that this user may not even look at ends the command too."""
    from strongroom.server.settings import BadSetting
    from strongroom.store import file_owners

    try:
        settings = configured.settings(without)
    except BadSetting as error:
        raise terminal.Stop(str(error)) from None
    if settings.database_url:
        return settings
    path = Path(settings.db_path).expanduser().absolute()
    try:
        may = file_owners.is_readable(path)
    except PermissionError:
        may = False
    except OSError:
        may = True  # it is no file: whoever opens it says so
    if not may:
        raise terminal.Stop(f"Cannot open the database {path}: Permission denied. {file_owners.run_as_owner(path)}")
    return settings


def _settings_file(named: str | None, environment: Mapping[str, str]) -> Path | None:
    """The file that is to be read: the one that was named, else .env in this folder, else the system's."""
    named = named if named is not None else environment.get(SETTINGS_FILE) or None
    if named is not None:
        return Path(named)
    here = Path(ENV_FILE)
    try:
        is_here = not stat.S_ISDIR(here.stat().st_mode)
    except OSError:  # also in a folder that this user may not look into: sudo leaves one where one was
        is_here = False
    if is_here:
        # In a folder like /tmp anybody may leave one, and would say which service the operator changes.
        if os.name == "posix" and not _is_trusted(here.lstat().st_uid):
            advice = "Run the command as that user, or name the file with --settings to use it."
            raise _cannot_read(here, "it belongs to another user", advice)
        return here
    try:
        Path(SYSTEM_FILE).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        pass  # it may be there: to go on without it would be to work on another service
    return Path(SYSTEM_FILE)


def _is_trusted(owner: int) -> bool:
    """Whether a .env of this owner, in this folder, may say what a command works on. Root believes root alone."""
    mine = os.geteuid()
    return owner in ({0} if mine == 0 else {0, mine, Path().stat().st_uid})


def _read(path: Path) -> tuple[dict[str, str], list[str]]:
    """The names and values of a settings file, and what is odd about it."""
    from dotenv.parser import parse_stream

    try:
        text = path.read_text("utf-8-sig")
    except PermissionError as error:
        from strongroom.store import file_owners

        raise _cannot_read(path, str(error.strerror), file_owners.run_as_owner(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise _cannot_read(path, getattr(error, "strerror", None) or "it is not text") from None
    values: dict[str, str] = {}
    warnings = []
    for line in parse_stream(io.StringIO(text)):
        if line.error or (line.key is not None and line.value is None):
            warnings.append(f"line {line.original.line} of {path} is not NAME=value, and is ignored.")
        elif line.key is not None and line.key not in _KNOWN and line.key not in FOREIGN:
            near = difflib.get_close_matches(line.key.upper(), sorted(_KNOWN), n=1, cutoff=0.7)
            then = f"; did you mean {near[0]}?" if near else ", and is ignored."
            warnings.append(f"{line.key} in {path} is not a setting{then}")
        elif line.key is not None:
            if line.key in values:
                warnings.append(f"{line.key} is set more than once in {path}; the last one counts.")
            values[line.key] = line.value or ""
    return values, warnings


def _cannot_read(path: Path, reason: str, advice: str = "") -> terminal.Stop:
    return terminal.Stop(f"Cannot read the settings file {path}: {reason}.{advice and ' '}{advice}")


def _from(folder: Path | None, name: str, setting: Option, text: str) -> str:
    """A value of a settings file: a relative path in it starts at the file's folder."""
    if folder is None:
        return text
    if setting.variable == "HOST" and text.startswith(_UNIX):
        return f"{_UNIX}{folder / text.removeprefix(_UNIX)}"
    if not (setting.is_path or name == setting.file_variable) or text.startswith("~") or "://" in text:
        return text
    if setting.variable == "BACKUP_TO" and ":" in text.partition("/")[0]:
        return text  # an address, or meant as one
    return str(folder / text)


def _near_misses(environment: Mapping[str, str]) -> list[str]:
    """Variables that are no settings, and so like one that they were probably meant to be it.

    Most variables belong to other programs, so that one letter may be wrong and no more: DB_PASS is not DB_PATH.
    """
    like = {_bare(known): known for known in (*_KNOWN, SETTINGS_FILE) if len(known) > _SHORT}
    found = []
    for name, value in environment.items():
        if name in _KNOWN or name == SETTINGS_FILE or value.startswith(("tcp://", "udp://")):  # Kubernetes sets those
            continue
        without_prefix = name.upper().removeprefix(_PREFIX)
        meant = without_prefix if without_prefix in _KNOWN and len(without_prefix) < len(name) else None
        bare = _bare(name)
        for letters, known in like.items():
            wrong = 1 + (len(letters) >= _LONG)
            if abs(len(letters) - len(bare)) > wrong or (bare[:2] != letters[:2] and bare[-2:] != letters[-2:]):
                continue  # without counting
            meant = known if _distance(bare, letters) <= wrong else meant
        if meant is not None:
            found.append(f"{name} is not a setting; did you mean {meant}?")
    return sorted(found)


def _bare(name: str) -> str:
    """A name without what is easily mistaken: small letters, underscores, the plural."""
    letters = name.upper().replace("_", "")
    return letters.removesuffix("IES") + "Y" if letters.endswith("IES") else letters.removesuffix("S")


def _distance(one: str, other: str) -> int:
    """How many letters are wrong, missing, too many or exchanged with their neighbour (Damerau and Levenshtein)."""
    before, last = [0] * (len(other) + 1), list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, counterpart in enumerate(other, 1):
            least = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (letter != counterpart))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == counterpart:
                least = min(least, before[j - 2] + 1)
            row.append(least)
        before, last = last, row
    return last[-1]
