"""Logs, metrics, readiness and traces."""
