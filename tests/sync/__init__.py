"""Devices that sync by the rules of docs/sync.md, and a model of what the server must do."""
