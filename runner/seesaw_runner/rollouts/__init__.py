"""Answers that a model gives to training prompts: reading the prompts, sampling, judging, keeping."""
