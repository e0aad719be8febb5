"""Tests that attack: who may do what, forged tokens, ended sessions, leaks, slow clients, nonsense."""
