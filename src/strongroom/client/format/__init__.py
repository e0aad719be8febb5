"""The encryption format, exactly as docs/format.md has it; nothing here talks to a server."""
