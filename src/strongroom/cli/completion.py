"""completion: scripts for bash, zsh and fish. They ask this command for words; names of items come from the agent.

A locked agent is not unlocked for it: then there are no names.
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any, Final

from strongroom.cli import terminal

_SCRIPTS: Final = {
    "bash": """\
_strongroom() {
    local word
    COMPREPLY=()
    while IFS= read -r word; do
        COMPREPLY+=("$(printf '%q' "$word")")
    done < <(strongroom completion --at "$COMP_CWORD" -- "${COMP_WORDS[@]}" 2>/dev/null)
}
complete -o default -F _strongroom strongroom
""",
    "zsh": """\
#compdef strongroom
_strongroom() {
    local -a found
    found=("${(@f)$(strongroom completion --at $((CURRENT - 1)) -- "${words[@]}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then
        compadd -a found
    else
        _files
    fi
}
compdef _strongroom strongroom
""",
    "fish": """\
function __strongroom_words
    set -l words (commandline -opc) (commandline -ct)
    set -l found (strongroom completion --plain --at (math (count $words) - 1) -- $words 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\\n' $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c strongroom -f -a '(__strongroom_words)'
""",
}
_TAKES_AN_ITEM: Final = frozenset({"get", "totp", "copy", "edit", "rm", "history"})
_TAKES_A_FIELD: Final = frozenset({"get", "copy"})
_TAKES_A_VAULT: Final = frozenset({"share-token"})


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `completion`."""
    parser.description = (
        'Print the completion script of a shell. For bash, add to ~/.bashrc: eval "$(strongroom completion bash)"; for '
        'zsh, to ~/.zshrc after compinit: eval "$(strongroom completion zsh)"; for fish: strongroom completion fish > '
        "~/.config/fish/completions/strongroom.fish"
    )
    parser.add_argument("--at", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--plain", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("words", nargs="+", metavar="SHELL", help="bash, zsh or fish")
    parser.set_defaults(run=_completion)


def _completion(options: argparse.Namespace) -> int:
    if options.at is not None:
        for one in complete(options.at, options.words, plain=options.plain):
            terminal.print_line(one)
        return 0
    if len(options.words) != 1 or options.words[0] not in _SCRIPTS:
        raise terminal.CommandFailed("Say which shell: bash, zsh or fish.")
    terminal.print_line(_SCRIPTS[options.words[0]].rstrip("\n"))
    return 0


def complete(at: int, words: list[str], *, plain: bool) -> list[str]:
    """What may stand at a place of a command line; `words` begin with the name of the program.

    With `plain` those before the place have no quotes any more, as fish gives them.
    """
    before = words[1:at] if plain else [_unquoted(one) for one in words[1:at]]
    begun = _unquoted(words[at]) if at < len(words) else ""
    if not before:
        return _beginning(_commands(), begun)
    command, given = before[0], [one for one in before[1:] if not one.startswith("-")]
    if begun.startswith("-"):
        return _beginning(_options(command), begun)
    if before[-1] == "--vault" or (command in _TAKES_A_VAULT and not given):
        return _beginning(sorted({one["vault"] for one in _items()}), begun)
    if command == "completion" and not given:
        return _beginning([*_SCRIPTS], begun)
    if command in _TAKES_AN_ITEM and not given:
        return _beginning(_names(begun), begun)
    if command in _TAKES_A_FIELD and len(given) == 1:
        return _beginning(_fields(given[0]), begun)
    return []


def _beginning(found: list[str], begun: str) -> list[str]:
    return [one for one in found if one.casefold().startswith(begun.casefold()) and one.isprintable()]


def _commands() -> list[str]:
    from strongroom.cli.commands import OPERATORS, PEOPLE

    return sorted({one.name for one in (*PEOPLE, *OPERATORS)})


def _options(command: str) -> list[str]:
    from strongroom.cli.commands import OPERATORS, PEOPLE

    found = next((one for one in (*PEOPLE, *OPERATORS) if one.name == command), None)
    if found is None:
        return []
    parser = argparse.ArgumentParser()
    found.add(parser)
    return sorted(
        name
        for action in parser._actions  # noqa: SLF001 - argparse has no other way
        if action.help != argparse.SUPPRESS
        for name in action.option_strings
        if name.startswith("--")
    )


def _items() -> list[dict[str, Any]]:
    from strongroom.agent import connection
    from strongroom.agent.protocol import Failed

    try:
        found: list[dict[str, Any]] = connection.ask("items")
    except Failed:
        return []
    return found


def _names(begun: str) -> list[str]:
    """Titles, and references where one is begun. A title that several items have is named with its vault.

    So is every title, where something with a `/` is begun.
    """
    items = _items()
    if begun.startswith("sr:"):
        return [one["reference"] for one in items]
    titles = Counter(one["title"] for one in items)
    return [
        one["title"] if titles[one["title"]] == 1 and "/" not in begun else f"{one['vault']}/{one['title']}"
        for one in items
        if one["title"] and not one["title"].startswith("-")  # which a command would take for an option
    ]


def _fields(name: str) -> list[str]:
    fitting = [one for one in _items() if name in {one["title"], one["id"], f"{one['vault']}/{one['title']}"}]
    return [*fitting[0]["fields"], *(["code"] if "totp" in fitting[0]["fields"] else [])] if len(fitting) == 1 else []


def _unquoted(word: str) -> str:
    """A word as bash and zsh give it: with its quotes and backslashes."""
    import shlex

    for closing in ("", '"', "'"):
        try:
            parts = shlex.split(word + closing)
        except ValueError:
            continue
        return parts[0] if parts else ""
    return word
