"""What the tests of the Python client say of accounts that an operator made, said of the TypeScript client."""

from __future__ import annotations

from tests.client.test_adoption import (  # noqa: F401
    email,
    proxy,
    test_a_keyring_that_is_not_kept,
    test_a_login_names_the_way_out,
    test_an_account_of_another_program_is_left_alone,
    test_an_account_that_has_keys_is_left_alone,
    test_it_is_opened_by_its_owner_alone,
    test_on_a_bad_line,
    test_where_the_line_stays_dead,
)
