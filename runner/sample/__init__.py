"""Rebuilds the sample workspace in `media/sample` from a seed. For developers; not shipped with the extension."""
