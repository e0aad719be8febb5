"""What the tests of the Python client say of a client, said of the TypeScript client: what a program does all day."""

from __future__ import annotations

from tests.client.test_client import (  # noqa: F401
    test_a_blob,
    test_a_change_that_was_not_seen_is_a_conflict,
    test_a_deleted_document_comes_back,
    test_a_recovery_with_a_bad_new_password_does_not_begin,
    test_a_vault_that_is_not_there,
    test_a_walk_goes_through_pages,
    test_a_wrong_password_and_an_unknown_email_look_alike,
    test_after_a_logout_nothing_is_left,
    test_an_account_ends,
    test_another_device_sees_the_same,
    test_another_password_opens_the_same_vaults,
    test_blobs_on_a_blob_server,
    test_changes_since_a_moment,
    test_collections_do_not_show_each_other,
    test_names_are_sealed_unless_asked,
    test_sessions_are_listed_and_ended,
    test_the_day_of_a_document,
    test_the_recovery_key_opens_an_account,
    test_values_come_back_as_they_were,
    test_who_registers_leaves_the_account_before,
)
from tests.client.test_lone_surrogates import test_every_door_refuses_it  # noqa: F401
