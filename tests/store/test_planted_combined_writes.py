"""Combined writes with one thing wrong: a test of them must notice."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

import asyncpg
import pytest

from strongroom.errors import ImportUnfinished, KeyringConflict, QuotaExceeded, Refusal, UidTaken
from strongroom.model import AccountLimits
from strongroom.store.postgres import combined_accounts
from strongroom.store.postgres import combined_writes as on_postgres
from strongroom.store.session_check import SessionCheck
from strongroom.store.sqlite import combined_writes as on_sqlite
from tests.kit.clock import Clock
from tests.store import account_scenarios, combined_scenarios, refused_creates
from tests.sync.examples import PAGE

Scenario = Callable[..., Coroutine[Any, Any, None]]


class Change(NamedTuple):
    """In which statement, what, and what in its place."""

    statement: str
    right: str
    wrong: str


class Fault(NamedTuple):
    """A fault: how it is planted on each engine, and the scenario that must notice."""

    postgres: Change | None
    sqlite: Change | None
    scenario: Scenario


FAULTS = {
    "a write is not booked in its vault": Fault(
        Change("_CREATE", "documents = vaults.documents + booked.documents", "documents = vaults.documents"),
        Change("_COUNT", "documents = documents + ?4", "documents = documents + 0 * ?4"),
        combined_scenarios.many_writes_are_combined,
    ),
    "a write is not booked in its account": Fault(
        Change("_CREATE", "documents = ledgers.documents +", "documents = ledgers.documents + 0 *"),
        Change("_BOOK", "documents = ?3", "documents = documents + 0 * ?3"),
        combined_scenarios.many_writes_are_combined,
    ),
    "the clock runs out of order": Fault(
        Change("_CREATE", "+ place,", "- place,"),
        Change("_INSERT", "?7, ?8, ?8", "?7, -?8, -?8"),
        combined_scenarios.many_writes_are_combined,
    ),
    "the clock of the account stays behind": Fault(
        None, Change("_BOOK", "clock = ?2", "clock = ?2 - 1"), combined_scenarios.a_clock_is_never_behind
    ),
    "history is not retained": Fault(
        Change("_REPLACE", "FROM stored, documents, ledger WHERE", "FROM stored, documents, ledger WHERE false AND"),
        Change("_RETAIN", "uid = ?2", "uid = ?2 AND false"),
        combined_scenarios.history_is_kept_and_trimmed,
    ),
    "history is not trimmed": Fault(
        Change("_REPLACE", "stored.version >", "-1 >"),
        Change("_BEYOND", "OFFSET ?3", "OFFSET ?3 + 1"),
        combined_scenarios.history_is_kept_and_trimmed,
    ),
    "a quota of documents does not hold": Fault(
        Change("_CREATE", "IS NULL OR ledgers.documents", "IS NULL OR 0"),
        Change("_LEDGER", "clock, documents,", "clock, 0,"),
        combined_scenarios.a_quota_holds_for_all_of_a_round,
    ),
    "a quota of bytes does not hold": Fault(
        Change("_CREATE", "IS NULL OR ledgers.bytes", "IS NULL OR 0"),
        Change("_LEDGER", "documents, bytes", "documents, 0"),
        combined_scenarios.a_quota_holds_for_all_of_a_round,
    ),
    "history may exceed its limit": Fault(
        Change("_REPLACE", "(SELECT coalesce(sum(kept), 0) FROM vaults", "0 * (SELECT count(*) FROM vaults"),
        Change("_KEPT", "coalesce(sum(kept), 0)", "0 * count(*)"),
        combined_scenarios.bytes_of_history_stay_within_their_limit,
    ),
    "the keyring is not compared": Fault(
        Change("_CREATE", "FROM keyring WHERE", "FROM keyring WHERE false AND"),
        Change("_KEYRING", "SELECT version", "SELECT 0 * version"),
        combined_scenarios.nothing_is_written_under_an_older_keyring,
    ),
    "the version is not compared": Fault(
        Change("_REPLACE", "AND version = wanted_version", ""), None, combined_scenarios.each_refusal_is_its_own
    ),
    "the uid of a vault is taken": Fault(
        Change(
            "_CREATE",
            "AND NOT EXISTS (SELECT 1 FROM wanted JOIN vaults USING (user_id, uid))",
            "",
        ),
        Change("_INSERT", "SELECT 1 FROM vaults WHERE", "SELECT 1 FROM vaults WHERE false AND"),
        combined_scenarios.each_refusal_is_its_own,
    ),
    "what others have written since is overlooked": Fault(
        Change("_CREATE", "ledgers.clock = seen.clock", "true"),
        None,
        combined_scenarios.a_uid_is_never_a_vaults_and_a_documents,
    ),
}


def on_its_engines(faults: dict[str, Fault]) -> list[Any]:
    """Each fault on the engines that have a statement for it."""
    return [
        pytest.param(fault, engine, id=f"{fault}-{engine}")
        for fault, planted in faults.items()
        for engine in ("sqlite", "postgres")
        if getattr(planted, engine) is not None
    ]


@pytest.mark.parametrize(("fault", "where"), on_its_engines(FAULTS), indirect=["where"])
def test_a_planted_fault_is_noticed(where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """A statement with one thing wrong does not pass the test of it."""
    planted = FAULTS[fault]
    change = planted.postgres if "://" in where else planted.sqlite
    assert change is not None
    if "://" in where:
        statement = getattr(on_postgres, change.statement)
        owner, name, text = statement, "postgres", statement.postgres
    else:
        owner, name, text = on_sqlite, change.statement, getattr(on_sqlite, change.statement)
    assert change.right in text
    monkeypatch.setattr(owner, name, text.replace(change.right, change.wrong))
    limits = AccountLimits(documents=7) if "documents" in fault else AccountLimits(bytes=30)
    with pytest.raises((AssertionError, pytest.fail.Exception, Refusal, asyncpg.PostgresError)):
        _run(planted.scenario, {"where": where, "clock": clock, "monkeypatch": monkeypatch, "limits": limits})


def _run(scenario: Scenario, given: dict[str, Any]) -> None:
    """Run a scenario with those of these arguments that it takes."""
    wanted = inspect.signature(scenario).parameters
    asyncio.run(scenario(**{name: value for name, value in given.items() if name in wanted}))


class AccountFault(NamedTuple):
    """A fault of the statement for several accounts: what is right, what is wrong, the scenario, and its arguments."""

    right: str
    wrong: str
    scenario: Scenario
    given: dict[str, Any]


ACCOUNT_FAULTS = {
    "a write is not booked in its vault": AccountFault(
        "documents = vaults.documents + booked.documents",
        "documents = vaults.documents",
        account_scenarios.creates_of_many_accounts_share_a_statement,
        {},
    ),
    "a write is not booked in its account": AccountFault(
        "documents = ledgers.documents +",
        "documents = ledgers.documents + 0 *",
        account_scenarios.creates_of_many_accounts_share_a_statement,
        {},
    ),
    "the clock runs out of order": AccountFault(
        "+ place,", "- place,", account_scenarios.creates_of_many_accounts_share_a_statement, {}
    ),
    "a quota of documents does not hold": AccountFault(
        "IS NULL OR ledgers.documents",
        "IS NULL OR 0",
        account_scenarios.a_refusal_touches_no_other_account,
        {"refused": refused_creates.quota_of_documents, "why": QuotaExceeded},
    ),
    "a quota of bytes does not hold": AccountFault(
        "IS NULL OR ledgers.bytes",
        "IS NULL OR 0 *",
        account_scenarios.a_refusal_touches_no_other_account,
        {"refused": refused_creates.quota_of_bytes, "why": QuotaExceeded},
    ),
    "the keyring is not compared": AccountFault(
        "keyrings.version <= keyring_version",
        "keyring_version IS NOT NULL",
        account_scenarios.a_refusal_touches_no_other_account,
        {"refused": refused_creates.older_keyring, "why": KeyringConflict},
    ),
    "the uid of a vault is taken": AccountFault(
        "FROM wanted JOIN vaults USING (user_id, uid)",
        "FROM wanted JOIN vaults USING (user_id, uid) WHERE false",
        account_scenarios.a_refusal_touches_no_other_account,
        {"refused": refused_creates.uid_of_a_vault, "why": UidTaken},
    ),
    "an import that runs is overlooked": AccountFault(
        "ledgers.importing = 0",
        "true",
        account_scenarios.a_refusal_touches_no_other_account,
        {"refused": refused_creates.unfinished_import, "why": ImportUnfinished},
    ),
    "what others have written since is overlooked": AccountFault(
        "WHERE ledgers.clock = seen.clock",
        "WHERE true",
        account_scenarios.what_another_node_commits_during_the_statement_is_not_overlooked,
        {},
    ),
}


@pytest.mark.parametrize("where", ["postgres"], indirect=True)
@pytest.mark.parametrize("fault", ACCOUNT_FAULTS)
def test_a_planted_fault_of_several_accounts_is_noticed(
    where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """A statement with one thing wrong does not pass the test of it."""
    planted, statement = ACCOUNT_FAULTS[fault], combined_accounts._CREATE
    assert planted.right in statement.postgres
    monkeypatch.setattr(statement, "postgres", statement.postgres.replace(planted.right, planted.wrong))
    with pytest.raises((AssertionError, pytest.fail.Exception, Refusal, asyncpg.PostgresError)):
        _run(planted.scenario, {"where": where, "clock": clock, "monkeypatch": monkeypatch, **planted.given})


def test_a_session_that_is_not_checked_is_noticed(where: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that lets everybody pass does not pass the test of it."""
    monkeypatch.setattr(SessionCheck, "resolve", lambda check, _: setattr(check, "passed", True))
    with pytest.raises(AssertionError):
        asyncio.run(combined_scenarios.a_session_that_has_ended_writes_nothing(where, clock))


def test_the_faults_are_listed() -> None:
    """Whoever reads the page learns which faults were planted."""
    text = PAGE.read_text("utf-8")
    assert [fault for fault in {**FAULTS, **ACCOUNT_FAULTS} if f"| {fault} |" not in text] == []
