"""When and what to probe during a stage, what it costs, and the flags that follow."""
