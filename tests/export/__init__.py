"""Moving to another server: the file of an export, and the ways in which it comes in or does not."""
