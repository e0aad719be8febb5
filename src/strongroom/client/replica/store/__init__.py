"""The SQLite file of a replica: the only SQL outside the server's store.

file                 File: the open database with its tables
database             transactions, statements, properties of the replica
database_file        creates, checks, locks and opens the file
schema               its tables and its format
records              what the tables hold
vaults, documents, outbox, refusals     a table each, or a few
"""
