"""Weights read straight from safetensors, a few rows at a time, adapters expanded exactly; and weight drift."""
