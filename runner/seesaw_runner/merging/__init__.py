"""Merging of checkpoints in weight space: streamed from safetensors to safetensors, never holding a model."""
