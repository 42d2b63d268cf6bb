"""Recipes: one self-contained script per way of training. `python -m seesaw_runner.recipes.<name> --run RUN_DIR`."""
