"""Requests and responses: HTTP, sessions, retries, errors."""
