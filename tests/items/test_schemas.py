"""Nothing vanishes: each member of the published schemas is kept in an item, told as left out, or named here.

A reader gets a file with every member of its format (tests/items/whole_files.py). What is not found in the items that
it makes must be in the table below: with the sentence that tells a person of it, or among what is for the other
program alone.
"""

from __future__ import annotations

import io
import json
import re
from typing import Final

import pytest

from strongroom.items import Item
from strongroom.items.formats import READERS, Problem
from tests.items.whole_files import WHOLE, Canaries

# What is left out, by a pattern of its place; and the sentence that tells it. A group in the pattern is one in it.
TOLD: Final[dict[str, dict[str, str]]] = {
    "CXF": {
        r"account\.(username|email|fullName|extensions)": r"An account of the file has what no item has a place.*\1",
        r"(?:collection|inner)\.(subtitle|extensions)": r"The collection '.*' has what no item has a place for.*\1",
        r"empty\.(?:id|title)": r"The collection '.*' is empty; it was left out",
    },
    "Bitwarden": {
        r"collections\.(externalId)": r"The folder '.*' has what no item has a place for.*\1",
        r"empty folder\.name": r"The folder '.*' has no items; it was left out",
        r"trash\.name": r"is in the trash of Bitwarden, and was left out",
        r"a member of tomorrow": r"The file has what no item has a place for; it was left out: 'novel'",
    },
    "1PUX": {
        r"empty vault\.name": r"The vault '.*' has no items; it was left out",
        r"empty vault\.(uuid|desc)": r"The vault '.*' has what no item has a place for.*\1",
        r"trash\.title": r"is in the trash of 1Password, and was left out",
        r"a file of no item": r"The zip file has files that belong to no item that was read: 1\. They were left out",
    },
    "KeePass": {
        r"encrypted\..*": r"has values that are still encrypted, and was left out",
        r"encrypted group\..*": r"The group '.*' has notes or settings, and no entry that was taken over",
        r"empty group\..*": r"The group '.*' has notes or settings, and no entry that was taken over",
        r"(?:quiet group|group of the bin)\.Name": r"The group '.*' has no entries; it was left out",
        r"(?:bin|deleted)\..*": r"The recycle bin of KeePass was left out: it has 1 entries",
        r"CustomIcons\..*": r"The file has icons of its own: 1\. They were left out",
        r"Binaries\.Binary of nobody": r"The file has files that no entry has now: 1\. They were left out",
        r"entry in no group\..*": r"The file has entries in no group: 1\. They were left out",
    },
    "variables": {r"comment at the end": r"The file ends with comments that belong to no variable"},
}
# What is not told: it says something of the file, or of the windows of the program that wrote it, and not of a secret.
OF_THE_PROGRAM: Final = {
    "CXF": r"header\..*|account\.id|(?:collection|inner)\.(?:id|creationAt|modifiedAt)|collection\.items\.account",
    "1PUX": r"export\.attributes|createdAt",
    "KeePass": (
        r"Meta\.(?!DatabaseName$|DatabaseDescription$|DefaultUserName$|CustomData).*|DeletedObjects\..*"
        r"|(?:database )?[Gg]roup\.(?:IconID|IsExpanded|LastTopVisibleEntry|PreviousParentGroup)"
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_nothing_vanishes(name: str) -> None:
    """Every text and number of the file is in an item, or in the table."""
    file_format, make = WHOLE[name]
    made = Canaries()
    found = list(READERS[file_format](io.BytesIO(make(made)), None))
    kept = json.dumps([one.to_stored() for one in found if isinstance(one, Item)], ensure_ascii=False)
    told = "\n".join(one.sentence for one in found if isinstance(one, Problem))
    vanished = []
    for canary, place in made.places.items():
        if canary in kept or re.fullmatch(OF_THE_PROGRAM.get(name, ""), place):
            continue
        patterns = [(re.fullmatch(pattern, place), tells) for pattern, tells in TOLD.get(name, {}).items()]
        sentences = [match.expand(tells) if match.re.groups else tells for match, tells in patterns if match]
        if not any(re.search(sentence, told) for sentence in sentences):
            vanished.append(place)
    assert vanished == [], told


@pytest.mark.parametrize("name", WHOLE)
def test_the_table_has_nothing_that_is_kept(name: str) -> None:
    """What is told as left out is nowhere in the items: the sentences are true."""
    file_format, make = WHOLE[name]
    made = Canaries()
    found = list(READERS[file_format](io.BytesIO(make(made)), None))
    kept = json.dumps([one.to_stored() for one in found if isinstance(one, Item)], ensure_ascii=False)
    patterns = [*TOLD.get(name, {}), OF_THE_PROGRAM.get(name, "")]
    wrong = [
        place
        for canary, place in made.places.items()
        if canary in kept and any(re.fullmatch(pattern, place) for pattern in patterns)
    ]
    assert wrong == []
