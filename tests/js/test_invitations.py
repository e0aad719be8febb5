"""What the tests of the Python client say of invitations, said of the TypeScript client."""

from __future__ import annotations

from tests.client.test_invitations import (  # noqa: F401
    closed,
    proxy,
    test_a_refusal_is_told_also_where_its_answer_was_lost,
    test_an_invited_person_registers,
    test_on_a_bad_line_it_is_used_once,
    test_who_is_not_invited_is_told_what_to_do,
)
