"""The replica on a file of Node.js: the Python replica's tests, of the TypeScript one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.pair import Pair
from tests.client.proxy import Proxy
from tests.client.test_refused import (  # noqa: F401
    orphaned,
    test_a_change_of_a_refused_document_is_sent,
    test_a_quota_refuses_what_adds_and_nothing_else,
    test_a_refused_change_that_becomes_a_conflict,
    test_a_retry_in_a_deleted_vault_is_refused_again,
    test_a_revoked_token_is_told,
    test_a_server_that_takes_nothing_for_now,
    test_a_token_that_may_only_read,
    test_a_uid_that_another_vault_uses,
    test_a_vault_that_is_deleted_during_a_sync,
    test_changes_in_a_deleted_vault_are_discarded,
    test_changes_in_a_deleted_vault_move_to_another,
    test_one_invalid_change_of_many,
    test_what_a_token_may_not_do_does_not_stop_the_rest,
)
from tests.client.test_refused_in_doubt import (  # noqa: F401
    test_a_change_while_a_deletion_is_refused_as_too_large,
    test_a_change_while_an_earlier_one_is_refused,
    test_a_deletion_of_what_a_lost_request_may_have_stored,
    test_a_deletion_of_what_an_earlier_sync_may_have_stored,
    test_a_rotation_before_a_batch_is_sent_again,
)
from tests.client.test_replica import (  # noqa: F401
    test_a_change_after_a_lost_answer,
    test_a_change_during_a_push_is_sent_later,
    test_a_conflict_is_decided,
    test_a_conflict_shows_all_three,
    test_a_conflict_that_has_moved_on_is_not_decided,
    test_a_deleted_document_comes_back,
    test_a_first_download_that_is_cut_off,
    test_a_replica_of_a_token,
    test_a_server_that_goes_back_is_not_believed,
    test_a_stale_document_is_refused_here_too,
    test_a_start_without_a_server,
    test_a_uid_is_taken_once,
    test_a_vault_that_was_deleted_elsewhere,
    test_both_are_kept_where_mine_is_a_deletion,
    test_both_delete,
    test_lost_answers_make_neither_duplicates_nor_conflicts,
    test_many_are_created_at_once,
    test_one_deletes_what_the_other_changes,
    test_the_file_tells_nothing,
    test_work_without_a_server,
)
from tests.client.test_watch import test_changes_come_by_themselves, test_without_events_it_polls  # noqa: F401
from tests.contract.harness import Server
from tests.js.typescript_client import TypeScriptFaces


@pytest.fixture
def pair(faces: TypeScriptFaces, tmp_path: Path) -> Iterator[Pair]:
    """Two devices that are in step."""
    made = Pair(faces, tmp_path)  # type: ignore[arg-type]
    yield made
    made.close()


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    """A proxy before the server."""
    made = Proxy(server.port)
    yield made
    made.close()
