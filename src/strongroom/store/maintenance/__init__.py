"""Backup, restore, copy, health and salvage of a whole database."""
