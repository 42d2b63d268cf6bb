"""Another clock for every Python that finds this on its path: CLOCK_OFFSET seconds off.

libfaketime is no help: under it time.sleep fails.
"""

import os
import time

offset, real, real_ns = float(os.environ.get("CLOCK_OFFSET", "0")), time.time, time.time_ns
time.time = lambda: real() + offset
time.time_ns = lambda: real_ns() + int(offset * 1e9)
