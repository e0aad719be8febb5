"""`strongroom mcp`: tools for a model, over the Model Context Protocol. A policy file says what they may do.

policy       the policy file
arguments    patterns of command lines
program      the program of a command, checked and opened
commands     runs a command with secrets, and masks its output
memory       sealed memory: a collection that a token opens
use_log      the log of every use
tools        the tools, without the protocol
server       the protocol, by the official SDK
"""
