"""Names that have moved to tests/kit."""

from tests.kit.people.api_user import PASSWORD
from tests.kit.people.api_user import ApiUser as Person

__all__ = ["PASSWORD", "Person"]
