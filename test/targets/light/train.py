"""Somebody's own training, for the recipe `command`: START OUTPUT STEPS SECONDS SAVE. Knows nothing of Seesaw."""

import json
import os
import shutil
import sys
import time

start, output, steps, seconds, every = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5])
for step in range(1, steps + 1):
    time.sleep(seconds)
    print(json.dumps({"loss": 2.0 / step, "step": step}), flush=True)
    if step % every == 0 or step == steps:
        fresh = os.path.join(output, f".fresh-{step}")
        shutil.copytree(start, fresh)
        os.rename(fresh, os.path.join(output, f"checkpoint-{step}"))
