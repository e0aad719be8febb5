"""`python -m bench.accounts COUNT ISSUER`: accounts through strongroom's own store; prints a token of each.

It runs in the project's environment. `DATABASE` says where, `JWT_SECRET` is the server's.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

from bench.streams import settle


def main() -> None:
    """Make the accounts and print their tokens."""
    count, issuer = sys.argv[1:]
    made = asyncio.run(settle(os.environ["DATABASE"], int(count), os.environ["JWT_SECRET"], issuer))
    print(json.dumps([person.token for person in made]))


if __name__ == "__main__":
    main()
