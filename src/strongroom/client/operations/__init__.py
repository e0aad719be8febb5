"""What a client does: accounts, vaults, documents, lists, keys, exports."""
