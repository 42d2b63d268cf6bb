"""Seesaw's Python side: the agent, the recipes, the probe scorer and the checks."""

__version__ = "0.1.0"
