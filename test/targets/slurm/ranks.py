"""A training of several processes as small as can be: they meet, add up their numbers, and say so."""

import os
import sys

import torch
import torch.distributed as distributed

distributed.init_process_group("gloo")
number = torch.ones(1) * (distributed.get_rank() + 1)
distributed.all_reduce(number)
line = f"{distributed.get_rank()} of {distributed.get_world_size()} on {os.environ['SLURMD_NODENAME']}: {int(number)}\n"
with open(os.path.join(sys.argv[1], "ranks"), "a") as handle:
    handle.write(line)
distributed.destroy_process_group()
