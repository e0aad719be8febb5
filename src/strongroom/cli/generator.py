"""generate: passwords and passphrases."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from strongroom.cli import agent_requests, terminal
from strongroom.cli.terminal import CommandFailed

if TYPE_CHECKING:
    import argparse


def add_generate(parser: argparse.ArgumentParser) -> None:
    """Add the options of `generate`."""
    parser.description = "Generate a password or a passphrase, and say how strong it is. It is stored nowhere."
    parser.add_argument("--length", type=int, metavar="N", help="characters of a password; 20 by default")
    parser.add_argument("--no-symbols", action="store_true", help="letters and digits only")
    parser.add_argument("--words", type=int, metavar="N", help="a passphrase of so many words, such as 5")
    parser.add_argument("--separator", default="-", metavar="TEXT", help="what stands between words; - by default")
    agent_requests.add_json(parser)
    parser.set_defaults(run=_generate)


def _generate(options: argparse.Namespace) -> int:
    from strongroom.items.generator import generate_passphrase, generate_password

    if options.words is not None and (options.length is not None or options.no_symbols):
        raise CommandFailed("--words is for a passphrase, --length and --no-symbols are for a password.")
    try:
        if options.words is not None:
            made = generate_passphrase(options.words, separator=options.separator)
        else:
            made = generate_password(options.length or 20, symbols=not options.no_symbols)
    except ValueError as error:
        raise CommandFailed(str(error)) from None
    if not options.json and sys.stderr.isatty():
        terminal.print_error(f"{made.bits:.0f} bits")
    return agent_requests.show(options, {"value": made.value, "bits": round(made.bits, 1)}, made.value)
