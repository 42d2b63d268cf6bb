"""The replay buffer of a run and the ledger of its draws."""
