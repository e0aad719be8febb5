"""What an operator does, and what goes wrong: commands, backups, the unit, the guide."""

import pytest

pytest.register_assert_rewrite(f"{__name__}.guide_stories", f"{__name__}.installation")
