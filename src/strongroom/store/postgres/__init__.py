"""The PostgreSQL engine: its connections, its batches, its transactions."""
