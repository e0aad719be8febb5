"""All attacks: to import this module is to enter them into the table."""

from __future__ import annotations

from pathlib import Path

from tests.client.hostile import (
    on_accounts,
    on_batches,
    on_documents,
    on_epochs,
    on_forks,
    on_history,
    on_lists,
    on_second_factors,
    on_spellings,
    on_transport,
    on_vaults,
    on_writes,
)

CHAPTERS = (
    *(on_accounts, on_documents, on_writes, on_batches, on_vaults, on_transport, on_forks, on_epochs, on_history),
    on_second_factors,
    on_lists,
    on_spellings,
)
PAGE = Path(__file__).parents[3] / "docs" / "testing.md"
