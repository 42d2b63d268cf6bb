"""Which expert answers which prompt: rules, a trained policy, and one model that carries all experts."""
