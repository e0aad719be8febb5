"""The SQLite engine: its file, its log, its transactions."""
