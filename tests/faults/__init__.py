"""Kills, failing disks, races: what must not lose a byte."""
