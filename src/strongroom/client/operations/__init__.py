"""Operations of the client, as generators of effects: accounts, vaults, documents, lists, keys, exports."""
