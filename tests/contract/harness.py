"""Names that have moved to tests/kit."""

from tests.kit.servers.process import ENGINES, STRONGROOM, Server, fresh_address, launch, on_a_file
from tests.kit.servers.secret import SECRET

__all__ = ["ENGINES", "SECRET", "STRONGROOM", "Server", "fresh_address", "launch", "on_a_file"]
