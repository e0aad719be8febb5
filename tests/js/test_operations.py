"""History, trash, blobs, collections, names, usage: the Python client's tests, of the TypeScript client."""

from __future__ import annotations

from tests.client.test_blobs import (  # noqa: F401
    test_a_blob_that_was_not_read_is_not_overwritten,
    test_a_put_can_be_repeated,
    test_what_a_client_wrote_itself_it_replaces,
)
from tests.client.test_collections import (  # noqa: F401
    test_collections_are_listed_by_name,
    test_many_collections_are_listed_in_pages,
)
from tests.client.test_history import (  # noqa: F401
    test_a_token_reads_and_restores_too,
    test_a_version_is_restored,
    test_blobs_of_before_are_read_and_restored,
    test_history_outlives_a_rotation,
    test_the_trash_is_listed_and_revived,
    test_the_trash_outlives_a_rotation,
    test_versions_are_listed_and_read,
    test_what_is_purged_is_gone,
)
from tests.client.test_rename import (  # noqa: F401
    test_a_name_that_cannot_be_is_refused_before_anything_changes,
    test_two_vaults_never_have_one_name,
    test_whoever_has_the_vault_open_goes_on,
)
from tests.client.test_usage_and_log import (  # noqa: F401
    test_a_token_sees_no_usage,
    test_the_log_is_read_to_its_end,
    test_usage_is_what_the_server_counts,
    test_what_is_no_name_of_a_device_is_refused,
)
