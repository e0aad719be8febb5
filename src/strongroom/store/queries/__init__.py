"""SQL statements and the functions that run them, one file a noun."""
