"""The contract of the service, told from outside: a real process, real sockets, nothing imported from it."""

import pytest

pytest.register_assert_rewrite(f"{__name__}.checks")
