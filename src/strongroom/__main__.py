"""`python -m strongroom` is the command `strongroom`."""

from __future__ import annotations

import sys

from strongroom.cli import main

if __name__ == "__main__":
    sys.exit(main())
