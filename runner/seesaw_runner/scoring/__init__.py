"""One model, some rows: tokens, teacher-forced scores, greedy generations, traces."""
