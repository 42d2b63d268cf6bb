"""Lines of a child process on a queue, so that waiting for one can have a time limit."""

from __future__ import annotations

import queue


def pump(pipe, replies: queue.Queue) -> None:
    """Puts every line of the pipe on the queue, and None at its end. Runs in a thread of its own."""
    try:
        for line in pipe:
            replies.put(line)
    except ValueError:  # closed while reading
        pass
    replies.put(None)
