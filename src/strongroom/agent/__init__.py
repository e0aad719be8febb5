"""The agent process of a person's command line: holds the account's keys and its replica in memory.

This package's modules `paths`, `protocol` and `connection` are what a command needs to ask the agent. They import only
a few small modules of the standard library, because every command waits for them.
"""
