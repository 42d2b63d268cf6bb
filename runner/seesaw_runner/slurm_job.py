#!/usr/bin/env python3
"""What a Slurm job does: `slurm_job.py RUN ATTEMPT` chooses the attempt and becomes its agent. Needs only Python 3.8.

Slurm starts one job again under the same id (node failure, preemption, by hand; also one that had finished, when its
last word was lost), and gives ids again after a crash. So each start asks the run folder, which all nodes share:
* `attempt-…/job.json` says which job an attempt belongs to; whoever creates it first has it. Another job with the same
  attempt was submitted twice and ends.
* The same job again: the next attempt, under a higher epoch, so that whatever still lives of the one before is fenced;
  unless that one is done, paused or was cancelled, or somebody else has begun a newer one: then nothing starts.
The nonce of an attempt made here is that of the submitted one with the attempt's number behind a dot.

`slurm_job.py --array LIST ATTEMPT` is what each task of an array does: the list names the run folder of each, and its
job is `<array>_<task>`. From then on the task is a job like any other, and prints into its own run folder.
"""

import json
import os
import socket
import sys

if __name__ == "__main__":  # this file's own folder holds names that would hide those of others
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from seesaw_runner import agent

USAGE = "usage: slurm_job.py RUN ATTEMPT | slurm_job.py --array LIST ATTEMPT (within a Slurm job)"


def say(text):
    """A line for the job's own output file."""
    print(f"seesaw job: {text}", flush=True)


def folder_of(run, number):
    return os.path.join(run, f"attempt-{number:04d}")


def attempts(run):
    """Numbers of the attempt folders, ascending."""
    return sorted(agent.attempt_number(name) for name in os.listdir(run) if name.startswith("attempt-"))


def belongs(run, number, job):
    """Whether this job has the attempt; takes it if nobody has."""
    record = {"v": agent.FORMAT, "id": job, "host": socket.gethostname()}
    try:
        agent.write_json(folder_of(run, number), "job.json", record, exclusive=True)
        return True
    except FileExistsError:
        return (agent.read_json(folder_of(run, number), "job.json") or {}).get("id") == job


def ended_kind(attempt):
    """The kind of an end after which nothing starts by itself (`cancelled` also if only the wish was left), or None."""
    ended = agent.read_json(attempt, "exit.json") or {}
    kind = ended and (ended.get("finished") or agent.classify(ended))["kind"]
    if kind in ("done", "paused"):
        return kind
    asked = str(ended.get("reason")).startswith("cancel") or os.path.exists(os.path.join(attempt, "cancel"))
    return "cancelled" if asked else None


def choose(run, submitted, job):
    """The attempt folder to run, or None after it was said why nothing starts. Raises AgentError, OSError."""
    if not belongs(run, submitted, job):
        other = (agent.read_json(folder_of(run, submitted), "job.json") or {}).get("id")
        say(f"attempt {submitted} belongs to job {other}: this job, {job}, was submitted a second time and ends.")
        return None
    ours = [
        number
        for number in attempts(run)
        if number >= submitted and (agent.read_json(folder_of(run, number), "job.json") or {}).get("id") == job
    ]
    last, newest = ours[-1], attempts(run)[-1]
    attempt = folder_of(run, last)
    if newest > last:
        say(f"attempt {newest} is newer than the last one of this job, {last}: nothing is started.")
        return None
    if not os.path.exists(os.path.join(attempt, "claim")):
        return attempt
    kind = ended_kind(attempt)
    if kind is not None:
        say(f"attempt {last} is {kind}: nothing is started again.")
        agent.reap(attempt, gone=True)
        return None
    return next_attempt(run, attempt, last, job)


def next_attempt(run, before, last, job):
    """Makes the folder of the attempt after `before`: its spec under the next epoch."""
    spec = agent.read_json(before, "spec.json")
    agent.load_spec(before)  # says what is wrong with it
    attempt = folder_of(run, last + 1)
    try:
        os.mkdir(attempt)
    except FileExistsError:
        say(f"somebody else has just begun attempt {last + 1}: nothing is started.")
        return None
    spec["nonce"] = f"{spec['nonce'].partition('.')[0]}.{last + 1}"
    spec["epoch"] = max(spec["epoch"], agent.read_number(run, "epoch")) + 1
    agent.write_json(attempt, "spec.json", spec)
    if not belongs(run, last + 1, job):
        say(f"another job has just begun attempt {last + 1}: nothing is started.")
        return None
    say(f"started again by Slurm: attempt {last + 1}.")
    return attempt


def meet_on_first_node(environ):
    """Tells torchrun on all nodes where they meet: this is the first one. It reads its options from PET_ variables."""
    if int(environ.get("SLURM_JOB_NUM_NODES") or 1) > 1:
        port = 10_000 + int(environ["SLURM_JOB_ID"]) % 20_000
        environ.setdefault("PET_RDZV_ENDPOINT", f"{socket.gethostname()}:{port}")
        environ.setdefault("PET_RDZV_ID", f"{environ['SLURM_JOB_ID']}.{environ.get('SLURM_RESTART_COUNT') or 0}")


def task_of(path, environ):
    """The run folder of this task of an array, and its job. Raises AgentError with what is wrong."""
    array, task = environ.get("SLURM_ARRAY_JOB_ID", ""), environ.get("SLURM_ARRAY_TASK_ID", "")
    if not array.isdigit() or not task.isdigit():
        raise agent.AgentError(f"{path} is the list of an array, but this job is no task of one.")
    try:
        with open(path, encoding="utf-8") as handle:
            runs = json.load(handle)["runs"]
        if not isinstance(runs, list) or not all(isinstance(run, str) for run in runs):
            raise ValueError("no list of folders")
    except (KeyError, TypeError, ValueError) as error:
        raise agent.AgentError(f"{path} does not say which task is which run: {error}.") from error
    if int(task) >= len(runs):
        raise agent.AgentError(f"{path} has {len(runs)} runs, but this is task {task}.")
    return runs[int(task)], f"{array}_{task}"


def print_into(run, job):
    """From here on the job's own output is where that of a single job is: in its run's folder."""
    out = os.open(os.path.join(run, f"slurm-{job}.out"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    sys.stdout.flush()
    sys.stderr.flush()
    for stream in (1, 2):
        os.dup2(out, stream)
    os.close(out)


def main(argv):
    """Returns the exit code: that of the training, 0 where nothing was to be started, 1 with a sentence, 2: usage."""
    job = os.environ.get("SLURM_JOB_ID", "")
    array = argv[:1] == ["--array"]
    words = argv[1:] if array else argv
    if len(words) != 2 or not words[1].isdigit() or not job:
        print(USAGE, file=sys.stderr)
        return 2
    try:
        run = words[0]
        if array:
            run, job = task_of(words[0], os.environ)
            print_into(run, job)
        attempt = choose(os.path.abspath(run), int(words[1]), job)
        if attempt is None:
            return 0
        meet_on_first_node(os.environ)
    except (agent.AgentError, OSError) as error:
        # The words by which src/targets/remote/slurm finds the reason in the job's output.
        print(f"seesaw job: nothing was started: On {agent.node_name()}: {error}", file=sys.stderr)
        return 1
    return agent.main(["run", attempt])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
