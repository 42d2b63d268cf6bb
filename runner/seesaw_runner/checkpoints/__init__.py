"""Checkpoint folders: judging them from their bytes, writing and resuming them without pickle."""
