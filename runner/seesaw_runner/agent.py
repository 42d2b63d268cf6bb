#!/usr/bin/env python3
"""Seesaw's run agent: supervises one attempt of a run, the same way on every target. `agent.py --help` lists the verbs.

The file is copied to targets and run on its own: it needs nothing but Python 3.8 on Linux or macOS.
The files it reads and writes are those of .github/contracts.md §4. The rules behind it:
* A process is named by (boot, pid, start time); nothing is signalled before all three were compared.
* Whoever creates exit.json (exclusively) also writes run.finished, if the run folder is still this attempt's (epoch).
* The training waits at a gate until started.json is on disk: there is no unrecorded training.
Accepted: on macOS, helpers that left the training's process group are not found (on Linux: by the nonce they inherit).
"""

import argparse
import contextlib
import ctypes
import errno
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time

FORMAT = 1
TAKEN_EXIT, FAILED_EXIT, USAGE_EXIT = 17, 1, 2  # another process has the attempt; a sentence on stderr says why
HANDSHAKE_S = 60.0  # how long `run --detach` waits for its own agent
SETTLE_S = 30.0  # how long a new attempt waits for an earlier one to end
CHECK_S = 25.0  # how long the check of a job's machines may take: a newer attempt waits no longer than SETTLE_S
CHECK_MARK = "@seesaw-check "  # as node_check.py prints it
DEFAULTS = {"cwd": "", "env": {}, "grace_s": 10, "beat_s": 1, "patience_s": 60, "fate": False, "run": "..", "check": []}
STOP_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2")  # the last two: a scheduler's early warning
JOB_VARIABLES = ("SLURM_JOB_ID", "SLURM_RESTART_COUNT", "SLURM_ARRAY_TASK_ID", "RAY_JOB_ID", "RAY_JOB_SUBMISSION_ID")
NO_ROOM = {
    errno.ENOSPC: "The disk of {} is full",
    errno.EDQUOT: "Your disk quota is used up (see `quota -s`, on Lustre `lfs quota`), so nothing can be written to {}",
}
GATE = 'read -r _ && exec "$@" < /dev/null'  # sh: waits for a line; ends without one when the agent has died


class AgentError(Exception):
    """A sentence for the user: what is wrong and what to do. Printed on stderr, exit code 1."""


# ---- files


def write_json(folder, name, value, exclusive=False):
    """Writes `folder/name` atomically: temporary name, fsync, rename. `exclusive`: FileExistsError if it is there."""
    path = os.path.join(folder, name)
    temporary = f"{path}.{os.getpid()}-{time.time_ns():x}.tmp"
    try:
        with open(temporary, "w", encoding="ascii") as handle:
            handle.write(json.dumps(value) + "\n")
            handle.flush()
            os.fsync(handle.fileno())
        if exclusive:
            try:
                os.link(temporary, path)
                return
            except FileExistsError:
                raise
            except OSError:  # a disk without hard links
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def read_json(folder, name):
    """The object in `folder/name`, or None when it is missing, half written or not an object."""
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as handle:
            value = json.load(handle, parse_constant=str)  # NaN becomes the string "NaN", as everywhere on the wire
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def load_spec(attempt):
    """The checked spec.json of an attempt folder, with defaults and the absolute `run` folder. Raises AgentError."""
    given = read_json(attempt, "spec.json")
    if given is None:
        raise AgentError(f"{attempt} has no readable spec.json: the launcher writes it before it starts the agent.")
    spec = {"v": FORMAT, **DEFAULTS, **given}
    spec["run"] = os.path.normpath(os.path.join(attempt, str(spec["run"])))
    argv, number = spec.get("argv"), (int, float)
    fine = {
        "v": isinstance(spec["v"], number),
        "nonce": isinstance(spec.get("nonce"), str) and len(spec["nonce"]) >= 8,
        "argv": isinstance(argv, list) and argv and all(isinstance(word, str) for word in argv),
        "env": isinstance(spec["env"], dict) and all(isinstance(value, str) for value in spec["env"].values()),
        "grace_s": isinstance(spec["grace_s"], number) and spec["grace_s"] >= 0,
        "beat_s": isinstance(spec["beat_s"], number) and spec["beat_s"] > 0,
        "epoch": isinstance(spec.get("epoch"), int),
        "check": isinstance(spec["check"], list) and all(isinstance(word, str) for word in spec["check"]),
    }
    wrong = [field for field in fine if not fine[field]]
    if wrong:
        raise AgentError(f"{attempt}/spec.json: `{wrong[0]}` is missing or has a wrong value; launch again.")
    if spec["v"] >= FORMAT + 1:
        raise AgentError(f"{attempt}/spec.json has format {spec['v']}, this agent knows {FORMAT}: update Seesaw here.")
    return spec


def attempt_number(attempt):
    """7 for attempt-0007."""
    tail = os.path.basename(attempt).rpartition("-")[2]
    return int(tail) if tail.isdigit() else 1


def read_number(folder, name):
    """The whole number that a file (epoch, heartbeat) begins with; 0 when there is none."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        with open(os.path.join(folder, name), encoding="ascii") as handle:
            return int(handle.read().split()[0])
    return 0


def write_beat(attempt, beats):
    """ "counter wall-clock monotonic", of fixed width and in place, so that it works on a full disk."""
    with contextlib.suppress(OSError):
        fd = os.open(os.path.join(attempt, "heartbeat"), os.O_CREAT | os.O_WRONLY, 0o644)
        try:
            os.write(fd, b"%-12d %017.3f %017.3f\n" % (beats, time.time(), time.monotonic()))
        finally:
            os.close(fd)


def insist(action, attempt, patience_s):
    """Repeats `action` until it raises no OSError. A full disk gets the reserve at once, then `patience_s` seconds."""
    deadline = time.monotonic() + patience_s
    while True:
        try:
            return action()
        except FileExistsError:
            raise
        except OSError as error:
            try:
                os.unlink(os.path.join(attempt, ".reserve"))
            except OSError:
                if time.monotonic() >= deadline:
                    raise AgentError(
                        f"Cannot write in {attempt}: {error.strerror}. Make room there; `reap` then closes the attempt."
                    ) from error
                time.sleep(0.5)


# ---- processes


def command_output(*argv):
    """What a system tool prints, in the C locale and UTC: a start time must not depend on who asks."""
    try:
        env = {**os.environ, "LC_ALL": "C", "TZ": "UTC"}
        return subprocess.run(argv, env=env, stdout=subprocess.PIPE, timeout=20).stdout.decode()
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AgentError(f"Cannot tell which processes live: `{argv[0]}` does not answer ({error}).") from error


def boot_id():
    """Names this boot of this kernel and the pid namespace in it: containers share a kernel, but not the pids."""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as handle:
        return handle.read().strip() + "/" + os.readlink("/proc/self/ns/pid")
    return command_output("sysctl", "-n", "kern.bootsessionuuid").strip() or "host:" + socket.gethostname()  # macOS


def same_kernel(boot):
    """Whether a boot id is of this kernel, though perhaps of another container (VS Code in a sandbox, for one)."""
    return str(boot).partition("/")[0] == boot_id().partition("/")[0]


def process_start(pid):
    """When a process began: clock ticks since boot, on macOS a date. None when it is gone or a zombie."""
    if os.path.exists("/proc/self/stat"):
        try:
            with open(f"/proc/{pid}/stat", "rb") as handle:
                fields = handle.read().rpartition(b")")[2].split()
        except OSError:
            return None
        return None if fields[0] in (b"Z", b"X") else int(fields[19])
    words = command_output("ps", "-o", "stat=", "-o", "lstart=", "-p", str(pid)).split(None, 1)
    return words[1].strip() if len(words) == 2 and words[0][0] not in "ZX" else None


def alive(pid, start):
    """Whether exactly this process of this boot lives."""
    return start is not None and process_start(pid) == start


def identity():
    """This process, as written into claim and started.json."""
    return {"host": socket.gethostname(), "boot": boot_id(), "pid": os.getpid(), "start": process_start(os.getpid())}


def signal_name(number):
    """ "SIGKILL" for 9, "SIG35" for a number without a name."""
    return signal.Signals(number).name if number in list(signal.Signals) else f"SIG{number}"


def kill_marked(nonce):
    """SIGKILL to all that inherited the attempt's nonce: torchrun's workers, for one, leave the process group."""
    mark = b"SEESAW_NONCE=" + nonce.encode() + b"\0"
    for _ in range(40):
        marked = set()
        for name in filter(str.isdigit, os.listdir("/proc") if os.path.exists("/proc/self/environ") else ()):
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as handle:
                if mark in handle.read() and int(name) != os.getpid():
                    marked.add(int(name))
                    os.kill(int(name), signal.SIGKILL)
        if not marked:
            return
        time.sleep(0.05)


def oom_kills():
    """How often the kernel killed for memory so far, {"machine": n, "cgroup": n}; an unreadable count is left out."""
    places, counts = [("machine", "/proc/vmstat")], {}
    with contextlib.suppress(OSError, ValueError), open("/proc/self/cgroup", encoding="utf-8") as handle:
        for number, controllers, path in (line.rstrip("\n").split(":", 2) for line in handle):
            if number == "0" or controllers == "memory":  # version 2, version 1
                folder, name = ("", "memory.events") if number == "0" else ("/memory", "memory.oom_control")
                places.append(("cgroup", f"/sys/fs/cgroup{folder}{path}/{name}"))
    for key, path in places:
        with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as handle:
            counts.update((key, int(line.split()[1])) for line in handle if line.startswith("oom_kill "))
    return counts


# ---- how an attempt ended


def memory_evidence(ended, said):
    """The evidence that memory ran out, or None. The whole machine's count is evidence only for a SIGKILL."""
    grown, code = ended.get("oom") or {}, ended.get("code")
    killed = ended.get("signal") == "SIGKILL" or code == 128 + signal.SIGKILL
    if grown.get("cgroup") and (killed or (code and said in (None, "exception"))):
        return f"oom_kill of this job's memory group grew by {grown['cgroup']}"
    return f"oom_kill of this machine grew by {grown['machine']}" if grown.get("machine") and killed else None


def classify(ended):
    """The tagged reason (contracts §6) for what an exit.json holds. What the training said of itself weighs most,
    but a signal or another exit code than 0 never becomes `done`."""
    code, signalled, asked = ended.get("code"), ended.get("signal"), str(ended.get("reason")).partition("+")[0]
    outcome = ended.get("outcome") or {}
    said, message = outcome.get("code"), str(outcome.get("message", ""))
    evidence = memory_evidence(ended, said)
    if asked == "already-done" or (said == "done" and not signalled and not code):
        return {"kind": "done"}
    if asked.startswith("signal:"):  # nobody's wish, though the training took it for one: a time limit, a preemption
        return {"kind": "killed", "signal": asked[len("signal:") :]}
    if asked in ("cancel", "fenced") or (said == "cancelled" and asked != "lost"):
        return {"kind": "cancelled"}
    if said == "paused":
        return {"kind": "paused", "flag": str(outcome.get("flag", "")), "step": outcome.get("step") or 0}
    if said == "out-of-memory":
        return {"kind": "out-of-memory", "message": message}
    if evidence:
        return {
            "kind": "out-of-memory",
            "evidence": evidence,
            "message": f"Memory ran out and the kernel killed the "
            f"training ({evidence}): use a smaller batch, fewer loader workers or a larger machine.",
        }
    if said not in (None, "done", "cancelled"):
        known = {"where": outcome.get("where"), "exit_code": code}
        return {
            "kind": "failed",
            "code": str(said),
            "message": message,
            **{name: value for name, value in known.items() if value is not None},
        }
    if signalled or code in (129, 130, 131, 134, 136, 137, 139, 143):  # 128 + n: how a shell passes a signal on
        return {"kind": "killed", "signal": signalled or signal_name(code - 128)}
    if asked == "lost":
        return {"kind": "lost", "message": "Agent and training are gone and left no word of how they ended."}
    if code is None:
        return {"kind": "unknown", "message": "The training has ended; the system kept no exit code of it."}
    if code == 0:
        return {"kind": "done"}
    return {
        "kind": "failed",
        "code": "spawn" if code in (126, 127) else "exception",
        "exit_code": code,
        "message": f"The training ended with exit code {code} and did not say why: see the end of out.log.",
    }


def read_event(line):
    """The event in a journal line; {} for a torn or foreign one."""
    with contextlib.suppress(ValueError):
        event = json.loads(line)
        if isinstance(event, dict) and isinstance(event.get("seq"), int):
            return event
    return {}


def finish_journal(path, attempt, reason):
    """Appends run.finished after the last line unless the attempt has one already; False then. A torn last line is
    ended first. On OSError nothing was written."""
    with open(path, "a+b", buffering=0) as handle:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)  # two reapers
        handle.seek(0)
        data = handle.read()
        lines = data.split(b"\n")
        ends = (read_event(line) for line in lines if b'"run.finished"' in line)
        if any(end.get("type") == "run.finished" and end.get("attempt") == attempt for end in ends):
            return False
        seq = next((event["seq"] for event in map(read_event, reversed(lines)) if event), 0) + 1
        event = {"v": FORMAT, "seq": seq, "t": round(time.time(), 3), "attempt": attempt, "type": "run.finished"}
        line = (b"\n" if lines[-1] else b"") + json.dumps({**event, "reason": reason}).encode("ascii") + b"\n"
        try:
            while line:
                line = line[handle.write(line) :]
            os.fsync(handle.fileno())
        except OSError:
            handle.truncate(len(data))
            raise
    return True


def close_attempt(attempt, spec, ended, journal=False):
    """Writes exit.json, then run.finished. Returns the tagged reason, or None when somebody closed it before. Raises
    AgentError. `journal`: the caller owns the run folder; otherwise the epoch decides."""
    ended = {
        "v": FORMAT,
        "nonce": spec["nonce"],
        "code": None,
        "signal": None,
        "beats": 0,
        "t": time.time(),
        "outcome": read_json(attempt, "outcome.json"),
        **ended,
    }
    ended["finished"] = classify(ended)
    try:
        insist(lambda: write_json(attempt, "exit.json", ended, exclusive=True), attempt, spec["patience_s"])
    except FileExistsError:
        return None
    close_journal(attempt, spec, ended, journal)
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(attempt, ".reserve"))
    return ended["finished"]


def close_journal(attempt, spec, ended, journal):
    """Writes run.finished; False if it is there already, or not ours to write: a newer attempt's settle() does it."""
    if not journal and read_number(spec["run"], "epoch") > spec["epoch"]:
        return False
    path, reason = os.path.join(spec["run"], "journal.jsonl"), ended.get("finished") or classify(ended)
    return insist(lambda: finish_journal(path, attempt_number(attempt), reason), attempt, spec["patience_s"])


# ---- run


def earlier_attempts(attempt):
    """The folders of this run's attempts with a lower number, oldest first."""
    run, name = os.path.split(attempt)
    return [
        os.path.join(run, other)
        for other in sorted(os.listdir(run))
        if other.startswith("attempt-") and attempt_number(other) < attempt_number(name)
    ]


def prepare(attempt, spec):
    """Makes the run folder ours. Returns why nothing may start, or None. Raises OSError, AgentError."""
    for earlier in earlier_attempts(attempt):
        ended = read_json(earlier, "exit.json")
        if ended and (ended.get("finished") or classify(ended))["kind"] == "done":
            return "already-done"
    if read_number(spec["run"], "epoch") > spec["epoch"]:
        return "fenced"
    write_json(spec["run"], "epoch", spec["epoch"])
    for earlier in earlier_attempts(attempt):
        settle(earlier)
    with open(os.path.join(attempt, ".reserve"), "wb") as handle:  # two blocks: exit.json and the last event
        handle.write(b"\0" * 16384)
    return "cancel" if os.path.exists(os.path.join(attempt, "cancel")) else None


def settle(earlier):
    """Waits until an earlier attempt has seen the new epoch and ended; ends its orphan; closes it."""
    deadline = time.monotonic() + SETTLE_S
    while state_of(earlier) in ("claimed", "running"):
        if time.monotonic() > deadline:
            raise AgentError(f"{earlier} still runs and does not end: cancel it, then start again.")
        time.sleep(0.1)
    if state_of(earlier) == "orphan":
        end_orphan(earlier, load_spec(earlier), "fenced", journal=True)
    elif state_of(earlier) != "absent":
        reap(earlier, gone=True, journal=True)


def node_name():
    """This machine as its scheduler calls it, or as it calls itself."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def training_env(attempt, spec):
    return {**os.environ, **spec["env"], "SEESAW_NONCE": spec["nonce"], "SEESAW_ATTEMPT": attempt}


def check_nodes(attempt, spec):
    """Why a job's machines cannot run the training, as a sentence, or None: spec.json's `check` asks them, in the
    training's own environment. One that gives no answer stops nothing: the training itself will tell."""
    if not spec["check"]:
        return None
    try:
        done = subprocess.run(
            spec["check"],
            cwd=os.path.join(spec["run"], spec["cwd"]),
            env=training_env(attempt, spec),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=CHECK_S,
        )
    except subprocess.TimeoutExpired:
        print(f"seesaw agent: no answer to the check of the machine within {CHECK_S:.0f} s.", file=sys.stderr)
        return None
    except OSError as error:
        return (
            f"On {node_name()}, {error.filename or spec['check'][0]} cannot be used: {error.strerror}. Make it "
            "available there, or correct `python:` or `dir:` of this target in seesaw.yaml."
        )
    problems = []
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        if line.startswith(CHECK_MARK):
            with contextlib.suppress(ValueError, AttributeError):
                problems.append(json.loads(line[len(CHECK_MARK) :]).get("problem"))
    problems = sorted(filter(None, problems))
    more = len(problems) - 1
    return (
        problems and problems[0] + (f" {more} more of the job's machines cannot run it either." if more else "") or None
    )


def start_training(attempt, spec):
    """Starts the training behind the gate, writes started.json, opens the gate. Raises AgentError, OSError."""
    cwd = os.path.join(spec["run"], spec["cwd"])
    env = training_env(attempt, spec)
    program = os.path.join(cwd, spec["argv"][0]) if os.sep in spec["argv"][0] else spec["argv"][0]
    if not os.path.isdir(cwd) or not shutil.which(program, path=env.get("PATH")):
        raise AgentError(
            f"The training cannot be started on {node_name()}: {program if os.path.isdir(cwd) else cwd} does not exist "
            "or is no program; correct the target's settings."
        )
    libc = ctypes.CDLL(None) if spec["fate"] and sys.platform == "linux" else None
    with open(os.path.join(spec["run"], "out.log"), "ab", buffering=0) as log:
        child = subprocess.Popen(
            ["/bin/sh", "-c", GATE, "sh", *spec["argv"]],
            cwd=cwd,
            env=env,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=libc and (lambda: libc.prctl(1, signal.SIGTERM)),
        )  # PR_SET_PDEATHSIG
    me = identity()
    started = {
        "v": FORMAT,
        "nonce": spec["nonce"],
        "host": me["host"],
        "boot": me["boot"],
        "t": time.time(),
        "agent_pid": me["pid"],
        "agent_start": me["start"],
        "pid": child.pid,
        "start": process_start(child.pid),
        "pgid": child.pid,
        "job": {name: os.environ[name] for name in JOB_VARIABLES if name in os.environ},
    }
    try:
        write_json(attempt, "started.json", started)
        child.stdin.write(b"\n")
    finally:
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()
    return child


def ended_status(child):
    """The exit status once the training is gone, else None; kills what it left behind, while the zombie still holds
    the number of its group."""
    if hasattr(os, "waitid"):
        if os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return None
    elif child.poll() is None:
        return None
    signal_group(child.pid, signal.SIGKILL)
    return child.wait()


def signal_group(pgid, number):
    """Signals a process group that is known to be ours; it may be gone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pgid, number)


def why_end(attempt, spec, caught):
    """Who wants the training to end: "fenced" (a newer attempt), "cancel" (a person), "signal:NAME", or None."""
    if read_number(spec["run"], "epoch") > spec["epoch"]:
        return "fenced"
    if os.path.exists(os.path.join(attempt, "cancel")):
        return "cancel"
    return "signal:" + caught[0] if caught else None


def supervise(child, attempt, spec, caught):
    """Beats and stops the training on request until it is gone. `caught`: names of signals the agent got.
    Returns fields for exit.json."""
    why, deadline, killed, beats, next_beat = None, 0.0, False, 0, 0.0
    while True:
        status = ended_status(child)
        if status is not None:
            break
        if time.monotonic() >= next_beat or caught:
            beats, next_beat = beats + 1, time.monotonic() + spec["beat_s"]
            write_beat(attempt, beats)
            asked = why_end(attempt, spec, caught)
            if asked and not why:
                why, deadline = asked, time.monotonic() + spec["grace_s"]
                signal_group(child.pid, signal.SIGTERM)
            if asked == "fenced":  # a newer attempt waits for this one to let go of the run folder
                why, deadline = "fenced", 0.0
            del caught[:]
        if why and not killed and time.monotonic() >= deadline:
            killed = True
            signal_group(child.pid, signal.SIGKILL)
        time.sleep(min(0.05, spec["beat_s"]))
    stopped = (read_json(attempt, "outcome.json") or {}).get("code") == "cancelled"
    if not why and (stopped or status in (-signal.SIGTERM, 128 + signal.SIGTERM)):
        # A scheduler signals every process of a job: the training may be gone before the signal was heard here.
        time.sleep(0.2)
        why = why_end(attempt, spec, caught)
    kill_marked(spec["nonce"])
    return {
        "code": status if status >= 0 else None,
        "signal": signal_name(-status) if status < 0 else None,
        "reason": (why or "exit") + ("+kill" if killed else ""),
        "beats": beats,
    }


def speechless(attempt, spec):
    """ENOSPC or EDQUOT where the training left no outcome.json because there is not even room for that, else 0. Only
    writing tells of a quota."""
    if os.path.exists(os.path.join(attempt, "outcome.json")):
        return 0
    name = os.path.join(spec["run"], f".room-{os.getpid()}.tmp")
    try:
        with open(name, "wb") as handle:
            handle.write(b"\0" * 8192)
            handle.flush()
            os.fsync(handle.fileno())
    except OSError as error:
        return error.errno if error.errno in NO_ROOM else 0
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)
    return 0


def run_attempt(attempt, spec):
    """Runs a claimed attempt to its end. Returns the exit code for the caller: 0 only if the training is done."""
    caught, before = [], oom_kills()
    for number in (getattr(signal, name) for name in STOP_SIGNALS):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup keeps its meaning
            signal.signal(number, lambda number, _: caught.append(signal_name(number)))
    try:
        refused = prepare(attempt, spec)
        problem = None if refused else check_nodes(attempt, spec)
        if problem:
            ended = {"reason": "spawn", "outcome": {"code": "preflight", "message": problem}}
        elif refused:
            ended = {"reason": refused}
        else:
            ended = supervise(start_training(attempt, spec), attempt, spec, caught)
        full = ended.get("code") and speechless(attempt, spec)
        if full:
            message = f"{NO_ROOM[full].format(spec['run'])}: the training could not even write why it ended."
            advice = "Make room there and run the stage again: it goes on from its last checkpoint."
            ended["outcome"] = {"code": "disk-full", "message": f"{message} {advice}"}
    except OSError as error:
        place = error.filename or spec["run"]
        full = error.errno in NO_ROOM
        said = NO_ROOM[error.errno].format(place) if full else f"{place}: {error.strerror}"
        message = f"Nothing was started: {said}."
        ended = {"reason": "spawn", "outcome": {"code": "disk-full" if full else "spawn", "message": message}}
    except AgentError as error:
        ended = {"reason": "spawn", "outcome": {"code": "spawn", "message": str(error)}}
    grown = {name: count - before[name] for name, count in oom_kills().items() if count > before.get(name, count)}
    finished = close_attempt(attempt, spec, {**ended, "oom": grown} if grown else ended)
    if finished == {"kind": "done"}:
        return 0
    return ended.get("code") or (128 + getattr(signal, ended["signal"], 0) if ended.get("signal") else FAILED_EXIT)


def detach(attempt, spec):
    """Runs the attempt in a process that no terminal, window or parent owns; waits for its first word.
    Raises AgentError when there is none."""
    first = os.fork()
    if first == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                become_daemon(attempt)
                os._exit(run_attempt(attempt, spec))
            os._exit(0)
        except BaseException as error:  # never back into the caller's code
            print(f"seesaw agent: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(FAILED_EXIT)
    os.waitpid(first, 0)
    deadline = time.monotonic() + HANDSHAKE_S
    while state_of(attempt) == "claimed":
        if time.monotonic() > deadline:
            raise AgentError(f"The agent has not started anything within {HANDSHAKE_S:.0f} s: see {attempt}/agent.log.")
        time.sleep(0.03)
    return 0


def become_daemon(attempt):
    """Lets go of the caller's files, folder and hang-ups, and takes over its claim."""
    log = os.open(os.path.join(attempt, "agent.log"), os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o644)
    for target, source in enumerate((os.open(os.devnull, os.O_RDONLY), log, log)):
        os.dup2(source, target)
    for fd in [int(name) for name in os.listdir("/dev/fd") if int(name) > 2]:
        with contextlib.suppress(OSError):
            os.close(fd)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.chdir("/")
    write_json(attempt, "claim", identity())


def command_run(options):
    """Claims the attempt and runs it: at most one start per attempt, whoever else tries."""
    attempt, spec = options.attempt, load_spec(options.attempt)
    path = os.path.join(attempt, "claim")
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except FileExistsError:
        print(json.dumps(probe(attempt)))
        return TAKEN_EXIT
    try:
        write_json(attempt, "claim", identity())
    except OSError as error:
        os.unlink(path)  # as if we had never been here
        raise AgentError(
            f"Nothing was started: {attempt} cannot be written ({error.strerror}); make room and start again."
        ) from error
    if not options.detach:
        return run_attempt(attempt, spec)
    code = detach(attempt, spec)
    print(json.dumps(probe(attempt)))
    return code


# ---- probe, cancel, reap, read


def heartbeat_moves(attempt):
    """Whether the heartbeat's counter changes within three beats: a judgement without clocks or processes."""
    beat_s = (read_json(attempt, "spec.json") or {}).get("beat_s", DEFAULTS["beat_s"])
    first, deadline = read_number(attempt, "heartbeat"), time.monotonic() + min(10, 3 * beat_s + 1)
    while time.monotonic() < deadline:
        if read_number(attempt, "heartbeat") != first:
            return True
        time.sleep(0.2)
    return False


def state_of(attempt):
    """absent, claimed, running, exited, orphan, lost:no-exit-file or lost:reboot-or-other-host."""
    started = read_json(attempt, "started.json")
    holder = started or read_json(attempt, "claim") or {}
    if os.path.exists(os.path.join(attempt, "exit.json")):
        state = "exited"
    elif not holder:
        state = "claimed" if os.path.exists(os.path.join(attempt, "claim")) else "absent"
    elif holder.get("boot") != boot_id():
        if started:
            state = "running" if heartbeat_moves(attempt) else "lost:reboot-or-other-host"
        else:
            rebooted = holder.get("host") == socket.gethostname() and not same_kernel(holder.get("boot"))
            state = "lost:reboot-or-other-host" if rebooted else "claimed"
    elif started is None:
        state = "claimed" if alive(holder["pid"], holder["start"]) else "lost:no-exit-file"
    elif alive(started["agent_pid"], started["agent_start"]):
        state = "running"
    else:
        state = "orphan" if alive(started["pid"], started["start"]) else "lost:no-exit-file"
    # it may have ended while we looked
    return "exited" if os.path.exists(os.path.join(attempt, "exit.json")) else state


def probe(attempt):
    """What is known of an attempt, judged on this machine's own clock and processes."""
    state, now, sizes, age = state_of(attempt), time.time(), {}, None
    run = os.path.join(attempt, str((read_json(attempt, "spec.json") or {}).get("run", DEFAULTS["run"])))
    for name in ("out.log", "journal.jsonl"):
        with contextlib.suppress(OSError):
            sizes[name] = os.stat(os.path.join(run, name)).st_size
    with contextlib.suppress(OSError):
        age = round(now - os.stat(os.path.join(attempt, "heartbeat")).st_mtime, 2)
    return {
        "v": FORMAT,
        "state": state,
        "now": now,
        "host": socket.gethostname(),
        "boot": boot_id(),
        "beat": read_number(attempt, "heartbeat"),
        "beat_age": age,
        "cancel": os.path.exists(os.path.join(attempt, "cancel")),
        "started": read_json(attempt, "started.json"),
        "exit": read_json(attempt, "exit.json"),
        "size": sizes,
    }


def end_orphan(attempt, spec, reason, journal=False):
    """Stops a training whose agent is gone, then closes the attempt in the agent's place. Raises AgentError."""
    started = read_json(attempt, "started.json")
    pid, start, killed = started["pid"], started["start"], False
    ladder = [(signal.SIGKILL, 10)] if reason == "fenced" else [(signal.SIGTERM, spec["grace_s"]), (signal.SIGKILL, 10)]
    for number, patience_s in ladder:
        if alive(pid, start):  # the leader of its own group: the same number names both
            killed = number == signal.SIGKILL
            signal_group(pid, number)
        deadline = time.monotonic() + patience_s
        while alive(pid, start) and time.monotonic() < deadline:
            time.sleep(0.05)
    if alive(pid, start):
        raise AgentError(
            f"Process {pid} does not end even when killed, most likely it waits for a disk or a device: "
            f"see to it on {socket.gethostname()}, then cancel again."
        )
    kill_marked(spec["nonce"])
    close_attempt(attempt, spec, {"reason": reason + ("+kill" if killed else "")}, journal)


def cancel(attempt):
    """Asks for a stop through the cancel file, which works without a pid and over any disk; ends an orphan itself."""
    state = state_of(attempt)
    if state != "exited":
        insist(lambda: open(os.path.join(attempt, "cancel"), "ab").close(), attempt, 0)
    if state == "orphan":
        end_orphan(attempt, load_spec(attempt), "cancel")
    return probe(attempt)


def reap(attempt, gone=False, journal=False):
    """Closes an attempt that nobody will close any more: exit.json and run.finished, exactly once. Returns whether
    anything was written. `gone`: the caller knows that the other machine's processes have ended. Raises AgentError."""
    spec, state, started = load_spec(attempt), state_of(attempt), read_json(attempt, "started.json") or {}
    if state == "exited":
        deadline = time.monotonic() + 5  # the agent may be about to write the last event
        while started.get("boot") == boot_id() and alive(started["agent_pid"], started["agent_start"]):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return close_journal(attempt, spec, read_json(attempt, "exit.json") or {}, journal)
    if not state.startswith("lost:"):
        return False
    rebooted = started.get("host") == socket.gethostname() and not same_kernel(started.get("boot"))
    if state != "lost:no-exit-file" and started and not rebooted and not gone:
        raise AgentError(
            f"This attempt ran on {started['host']}, or in another container, whose processes cannot be "
            "seen from here: run `reap` there, or add --gone once it is sure that they have ended."
        )
    if state == "lost:no-exit-file":
        kill_marked(spec["nonce"])
    return close_attempt(attempt, spec, {"reason": "lost"}, journal) is not None


def command_read(options):
    """Bytes of a file to stdout, {"size", "next"} to stderr. A file that is not there yet has size 0."""
    data, size = b"", 0
    try:
        with open(options.file, "rb") as handle:
            size = os.fstat(handle.fileno()).st_size
            handle.seek(options.offset)
            data = handle.read(options.max)
    except FileNotFoundError as error:
        if not os.path.isdir(os.path.dirname(os.path.abspath(options.file))):
            raise AgentError(f"{options.file}: there is no such folder; check the run's path.") from error
    except OSError as error:
        raise AgentError(f"{options.file} cannot be read: {error.strerror}.") from error
    sys.stdout.buffer.write(data)
    sys.stdout.flush()
    print(json.dumps({"size": size, "next": options.offset + len(data)}), file=sys.stderr)
    return 0


class OneSentence(argparse.ArgumentParser):
    def error(self, message):
        self.exit(USAGE_EXIT, f"seesaw agent: {message}; see `{self.prog} --help`.\n")


def count(text):
    """A whole number from 0 on, for argparse."""
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 on")
    return int(text)


def attempt_folder(text):
    """An existing folder, for argparse."""
    if not os.path.isdir(text):
        raise argparse.ArgumentTypeError(f"there is no attempt folder {text}")
    return os.path.realpath(text)


def main(argv=None):
    """The command line. Returns the exit code: 0; 1 with a sentence on stderr; 2 bad usage; 17 already taken; `run`
    without --detach: that of the training, and never 0 unless it is done."""
    parser = OneSentence(
        prog="agent.py",
        description="Supervises one attempt of a Seesaw run. Every verb but `read` prints one JSON line.",
    )
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=OneSentence)
    for verb, text in (
        ("run", "claim the attempt, run spec.json's argv and record how it ends; exit code 17: it is taken"),
        ("probe", "say what state the attempt is in"),
        ("cancel", "ask for a stop (SIGTERM, then SIGKILL after grace_s); waits only for an orphan"),
        ("reap", "close an attempt whose agent and training are both gone"),
        ("read", "bytes of a file from an offset to stdout, {size, next} to stderr"),
    ):
        command = verbs.add_parser(verb, help=text, description=text[0].upper() + text[1:] + ".")
        if verb != "read":
            command.add_argument("attempt", metavar="ATTEMPT", type=attempt_folder, help="a run's attempt-0001")
        if verb == "run":
            command.add_argument("--detach", action="store_true", help="outlive the caller; answer once it has started")
        if verb == "reap":
            command.add_argument("--gone", action="store_true", help="it is sure that the other machine's have ended")
        if verb == "read":
            command.add_argument("file", metavar="FILE")
            command.add_argument("offset", metavar="OFFSET", type=count, help="bytes from the start")
            command.add_argument("max", metavar="MAX", type=count, nargs="?", default=1 << 20, help="bytes at most")
    options = parser.parse_args(argv)
    try:
        if options.verb == "run":
            return command_run(options)
        if options.verb == "read":
            return command_read(options)
        if options.verb == "reap":
            print(json.dumps({"reaped": reap(options.attempt, options.gone), **probe(options.attempt)}))
        else:
            print(json.dumps((cancel if options.verb == "cancel" else probe)(options.attempt)))
        return 0
    except (AgentError, OSError) as error:
        print(f"seesaw agent: {error}", file=sys.stderr)
        return FAILED_EXIT


if __name__ == "__main__":
    sys.exit(main())
