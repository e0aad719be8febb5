"""What is safe to repeat is repeated, what is not is not: the Python client's tests, of the TypeScript client."""

from __future__ import annotations

from tests.client.test_retries import (  # noqa: F401
    brief,
    proxy,
    test_a_day_on_a_bad_line,
    test_a_new_key_is_not_asked_for_twice,
    test_a_session_that_has_ended_is_not_revived,
    test_a_slow_server_is_not_waited_for,
    test_a_wrong_password_is_wrong_also_where_its_answer_was_lost,
    test_nothing_is_repeated_that_was_refused,
    test_the_ends_of_things_on_a_bad_line,
    test_tokens_are_exchanged_by_themselves,
    test_who_is_asked_to_wait_too_long_is_told,
)
