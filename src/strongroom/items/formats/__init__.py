"""Formats of other programs: what is read of them, and what is written.

common                  results, limits, and readers that hostile input cannot hurt
cxf, bitwarden          read and written, without loss
onepassword, keepass, browsers, pass_store, dotenv     read
plan                    what an import would add, and what is there already
changes, overlay        how nothing is lost on the way in and out
"""

from strongroom.items.formats.common import FileRefused, Found, PasswordNeeded, Problem
from strongroom.items.formats.plan import Plan, make_plan
from strongroom.items.formats.table import READERS, WRITERS, guess

__all__ = [
    "READERS",
    "WRITERS",
    "FileRefused",
    "Found",
    "PasswordNeeded",
    "Plan",
    "Problem",
    "guess",
    "make_plan",
]
