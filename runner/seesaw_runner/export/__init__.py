"""The scoring graph of an architecture, for live scoring in the editor: weights stay in the checkpoints."""
