"""What the tests of the Python client say of second factors, said of the TypeScript client."""

from __future__ import annotations

from tests.client.test_second_factor import (  # noqa: F401
    owner,
    test_a_change_of_the_account_asks_for_it,
    test_a_code_logs_in_and_unlocks,
    test_a_function_is_asked_again_and_told_why,
    test_a_function_is_asked_only_if_a_code_is_needed,
    test_a_recovery_key_does_not_replace_the_second_factor,
    test_a_rotation_with_a_recovery_key_asks_twice,
    test_an_enrolment_counts_when_it_is_confirmed,
    test_new_recovery_codes_replace_all,
    test_one_time_codes_are_replaced_and_disabled,
)
