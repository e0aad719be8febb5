"""Requests to the server and their answers: sessions, retries, errors."""
