"""Many writes at once: the Python client's tests, of the TypeScript client."""

from __future__ import annotations

from tests.client.test_batches import (  # noqa: F401
    proxy,
    test_a_batch_stays_within_the_limits_of_the_server,
    test_a_lost_response_writes_nothing_twice,
    test_a_second_run_with_the_same_uids_creates_nothing_twice,
    test_a_server_that_takes_less_gets_smaller_batches,
    test_items_are_taken_as_they_are_needed,
    test_many_documents_are_created_replaced_and_deleted,
    test_uids_are_as_many_as_values,
    test_what_cannot_be_written_is_told_and_the_rest_goes_on,
    test_what_others_changed_after_a_lost_response_was_written,
)
