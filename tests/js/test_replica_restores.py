"""Restores, lost responses and kills: the Python replica's tests, with a TypeScript device beside a Python one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.devices import Devices
from tests.client.test_account_restores import (  # noqa: F401
    test_a_client_goes_on_when_its_replica_has_compared_a_restore,
    test_a_client_still_misses_what_its_replica_never_had,
    test_a_gap_between_keyrings_is_told,
    test_a_new_device_mends_a_restored_server,
    test_a_new_device_mends_a_second_restore,
    test_a_new_device_replaces_no_keyring_of_another_branch,
    test_a_stale_client_is_told_to_log_in_again,
    test_another_row_of_the_same_version_is_not_what_a_change_was_made_from,
)
from tests.client.test_blobs import test_a_blob_of_a_replica_was_read  # noqa: F401
from tests.client.test_deletion_statements import (  # noqa: F401
    test_a_client_that_knows_the_vault_learns_that_it_is_gone,
    test_a_vault_that_the_server_does_not_list_stays,
)
from tests.client.test_epochs import (  # noqa: F401
    test_a_blob_that_a_restored_server_has_forgotten_is_sent_again,
    test_a_blob_that_went_on_after_a_restore_is_a_conflict,
    test_a_conflict_that_waits_through_a_restore_loses_neither_side,
    test_a_keyring_that_went_on_is_not_replaced,
    test_a_name_that_a_restored_server_has_forgotten_is_sent_again,
    test_a_new_process_goes_on_with_the_keyring_of_its_replica,
    test_a_person_mends_older_credentials,
    test_a_replica_without_vaults_notices_a_restore,
    test_a_stale_device_writes_nothing_for_an_epoch,
    test_an_older_directory_gets_the_identical_keyring_again,
    test_no_epoch_lifts_a_version,
    test_no_resolver_decides_for_a_lower_version,
    test_older_credentials_are_not_written_over,
)
from tests.client.test_lost_responses import (  # noqa: F401
    test_a_change_of_what_was_stored_is_no_conflict,
    test_a_deletion_after_more_changes_stands,
    test_a_deletion_of_what_was_stored_stands,
    test_a_deletion_stands_after_a_restore,
    test_a_revival_of_what_was_deleted_is_no_conflict,
    test_a_revival_that_is_sent_too_late,
    test_nothing_is_lost_once_the_trash_is_empty,
    test_what_others_stored_is_not_taken_for_ones_own,
    test_what_was_changed_since_is_a_conflict,
    test_what_was_never_stored_is_a_conflict,
)
from tests.client.test_refused import test_a_restored_server_that_a_reader_cannot_mend  # noqa: F401
from tests.client.test_refused_in_doubt import test_a_batch_that_arrives_late_before_a_rotation  # noqa: F401
from tests.client.test_rename import test_a_replica_follows  # noqa: F401
from tests.client.test_restore import (  # noqa: F401
    test_a_deletion_in_an_undecided_conflict_does_not_delete_after_a_restore,
    test_a_document_that_was_deleted_and_forgotten_is_revived,
    test_a_plain_client_believes_no_restore,
    test_a_vault_that_was_forgotten_comes_back,
    test_a_version_that_this_device_never_had_is_not_taken_for_an_earlier_one,
    test_a_waiting_change_is_sent_above_what_others_saw,
    test_an_undecided_conflict_survives_a_restore,
    test_every_device_agrees_after_a_restore,
    test_every_earlier_version_is_known_as_one,
    test_nothing_is_laid_upon_what_was_written_after_a_restore,
    test_the_deletion_of_what_was_forgotten_is_not_sent,
    test_the_parent_of_what_is_here_is_known_as_earlier,
    test_what_was_forgotten_comes_back,
    test_where_both_went_on_it_is_a_conflict,
)
from tests.js.typescript_devices import MixedCrew, Nodes
from tests.support.sampling import one_of
from tests.sync.restartable_server import RestartableServer


@pytest.fixture(params=one_of([0, 1]))
def devices(request: pytest.FixtureRequest, nodes: Nodes, tmp_path: Path) -> Iterator[Devices]:
    """A device of each language, in step with a server; `here` is the TypeScript one, and `there` the next day."""
    place = RestartableServer(str(tmp_path / "vault.db"))
    crew = MixedCrew(place, 2, nodes, lambda number: number == request.param)
    made = Devices(place, tmp_path, crew)
    yield made
    made.close()
    crew.close()
    place.close()
