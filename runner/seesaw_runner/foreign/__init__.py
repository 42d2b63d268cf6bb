"""What other tools leave behind, read with suspicion: their output, logs, checkpoints. Nothing is unpickled or run."""
