"""Configuration: settings from options, the environment and a settings file, for every command."""

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
NO_TOKENS: Final = (  # needed by a server only
    "JWT_SECRET",
    "JWT_SECRET_PREVIOUS",
    "SECOND_FACTOR_SECRET",
    "SECOND_FACTOR_SECRET_PREVIOUS",
    "METRICS_TOKEN",
)
_UNIX: Final = "unix:"
_KNOWN: Final = {name for option in TABLE for name in (option.variable, option.file_variable) if name}
_PREFIX: Final = "STRONGROOM_"
_SHORT: Final = 4  # letters; shorter names resemble too many others
_LONG: Final = 15  # letters; longer names may have two typos


class Value(NamedTuple):
    """The text of a setting, the name by which it was given (its own or that of a file), and the source."""

    name: str
    text: str
    source: str


class Configuration:
    """All settings of a command, each with its source."""

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
        """The value from the source of the highest precedence; lower ones are ignored, whichever name they use."""
        named = [name for name in (setting.variable, setting.file_variable) if name]
        folder = None
        if setting.variable in environment or environment.get(setting.file_variable):
            place, source = environment, "environment"
        else:
            place, source, folder = in_file, str(self.file), self._folder
        found = {name: _resolve_path(folder, name, setting, place[name]) for name in named if place.get(name)}
        if not found and setting.is_path and setting.default:
            found, source = (
                {setting.variable: _resolve_path(self._folder, setting.variable, setting, setting.default)},
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
        """The base of relative paths in the settings file; None for the working directory."""
        return None if self.file is None or str(self.file) == ENV_FILE else self.file.parent.resolve()

    @property
    def warnings(self) -> list[str]:
        """Warnings about misspelt settings and malformed lines."""
        return self._odd + _misspelt_settings(self._environment)

    @property
    def origin(self) -> SettingsSource:
        """The files that were read, and the warnings about them, for the doctor."""
        from strongroom.server.admin.doctor import SettingsSource

        given = {setting: self.values[setting.variable] for setting in TABLE if setting.is_secret}
        in_file = any(value.source == str(self.file) and value.name == at.variable for at, value in given.items())
        files = [Path(value.text) for at, value in given.items() if value.name != at.variable]
        return SettingsSource(self.file, in_file or bool(self.foreign), tuple(files), tuple(self.warnings))

    def settings(self, without: Collection[str] = ()) -> Settings:
        """Parse the settings; raises BadSetting. Secrets in `without` are neither needed nor read."""
        from strongroom.server.settings import resolve

        return resolve(self._given, self._options, without)


def add_option(parser: argparse.ArgumentParser) -> None:
    """Add the option --settings."""
    parser.add_argument(
        "--settings",
        metavar="FILE",
        help=f"file with settings as NAME=value lines [{SETTINGS_FILE}] "
        f"(default: {ENV_FILE} in this folder, else {SYSTEM_FILE})",
    )


def read(options: argparse.Namespace) -> Configuration:
    """Read the configuration of a command; it fails if the settings file cannot be read."""
    given = {setting.option: getattr(options, setting.variable, None) for setting in TABLE}
    configured = Configuration(given, os.environ, options.settings)
    for name, value in configured.foreign.items():
        os.environ.setdefault(name, value)  # for the libraries of this process and of its children
    return configured


def settings_of(options: argparse.Namespace, without: Collection[str] = NO_TOKENS) -> Settings:
    """The settings of a command other than serve; it fails if they are invalid."""
    return checked(read(options), without)


def checked(configured: Configuration, without: Collection[str]) -> Settings:
    """Parse the settings; the command fails if they are invalid or this user may not read the database."""
    from strongroom.server.settings import BadSetting
    from strongroom.store import file_owners

    try:
        settings = configured.settings(without)
    except BadSetting as error:
        raise terminal.CommandFailed(str(error)) from None
    if settings.database_url:
        return settings
    path = Path(settings.db_path).expanduser().absolute()
    try:
        may = file_owners.is_readable(path)
    except PermissionError:
        may = False
    except OSError:
        may = True  # not a file: the error comes when it is opened
    if not may:
        raise terminal.CommandFailed(
            f"Cannot open the database {path}: Permission denied. {file_owners.run_as_owner(path)}"
        )
    return settings


def _settings_file(named: str | None, environment: Mapping[str, str]) -> Path | None:
    """The settings file: the one that is named, else .env in the working directory, else that of the system."""
    named = named if named is not None else environment.get(SETTINGS_FILE) or None
    if named is not None:
        return Path(named)
    here = Path(ENV_FILE)
    try:
        is_here = not stat.S_ISDIR(here.stat().st_mode)
    except OSError:  # also in a folder that this user may not read, for example after sudo
        is_here = False
    if is_here:
        # In a folder like /tmp another user could plant one, and choose the service that the operator changes.
        if os.name == "posix" and not _is_trusted(here.lstat().st_uid):
            advice = "Run the command as that user, or name the file with --settings to use it."
            raise _cannot_read(here, "it belongs to another user", advice)
        return here
    try:
        Path(SYSTEM_FILE).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        pass  # it may exist: to ignore it could mean to work on another service
    return Path(SYSTEM_FILE)


def _is_trusted(owner: int) -> bool:
    """Whether a .env of this owner in the working directory is trusted. Root trusts only root."""
    mine = os.geteuid()
    return owner in ({0} if mine == 0 else {0, mine, Path().stat().st_uid})


def _read(path: Path) -> tuple[dict[str, str], list[str]]:
    """Parse a settings file: its values, and warnings about it."""
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


def _cannot_read(path: Path, reason: str, advice: str = "") -> terminal.CommandFailed:
    return terminal.CommandFailed(f"Cannot read the settings file {path}: {reason}.{advice and ' '}{advice}")


def _resolve_path(folder: Path | None, name: str, setting: Option, text: str) -> str:
    """Resolve a relative path in a settings file against the folder of the file."""
    if folder is None:
        return text
    if setting.variable == "HOST" and text.startswith(_UNIX):
        return f"{_UNIX}{folder / text.removeprefix(_UNIX)}"
    if not (setting.is_path or name == setting.file_variable) or text.startswith("~") or "://" in text:
        return text
    if setting.variable == "BACKUP_TO" and ":" in text.partition("/")[0]:
        return text  # a URL, or meant as one
    return str(folder / text)


def _misspelt_settings(environment: Mapping[str, str]) -> list[str]:
    """Warnings about environment variables that are probably misspelt settings.

    Most variables belong to other programs, so only one typo is allowed: DB_PASS is not DB_PATH.
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
                continue  # without computing the distance
            meant = known if _distance(bare, letters) <= wrong else meant
        if meant is not None:
            found.append(f"{name} is not a setting; did you mean {meant}?")
    return sorted(found)


def _bare(name: str) -> str:
    """Normalise a name: upper case, without underscores and plural."""
    letters = name.upper().replace("_", "")
    return letters.removesuffix("IES") + "Y" if letters.endswith("IES") else letters.removesuffix("S")


def _distance(one: str, other: str) -> int:
    """The Damerau-Levenshtein distance of two names (restricted: adjacent transpositions)."""
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
