#!/usr/bin/env python3
"""Seesaw's station: answers one question of another machine about this one, then is gone.

It is sent with the question; nothing has to be installed: python -u -c "import sys;exec(sys.stdin.buffer.readline())"
reads a statement with this file (line 1 of stdin), `serve` the request, JSON (line 2). Verbs that take bytes say `go`
first. Every argument is data: no shell ever sees one. Answers are lines `@seesaw {json}`, whatever start-up files print
in between; the last is a result or an error. It needs nothing but Python 3.8 on Linux or macOS. The rules:
* It ends when stdin or stdout closes, its parent is gone or its time is over: a cut link leaves nothing behind.
* It never reads ahead of what stdout takes, so that its memory does not depend on the size of anything.
* What is written here has a temporary name until it is whole.
The other side is src/targets/remote/station.ts.
"""

import base64
import contextlib
import errno
import fcntl
import hashlib
import importlib.util
import json
import os
import platform
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib

PIECE = 1 << 18  # bytes of a file in one line
ROUND = 1 << 22  # bytes that a log may send before the journal is looked at again
POLL_S, SCAN_S, FULL_S = 0.2, 1.0, 5.0  # between looks: at files that grow, at folders, at everything
SIGN_S = 2.0  # the longest silence while following
IDLE_S = 30.0  # how long an upload may send nothing
SILENCE_S = 15.0  # how long the heartbeat of another machine may stand still
CLOSING_S = 10.0  # how long an agent on another machine may take from exit.json to the last event
GROWS = re.compile(
    r"(journal|ledger|reward-scores|relabelled|router-[^/]*)\.jsonl\Z|(out\.log|slurm-[^/]*\.out)\Z|attempt-\d+/agent\.log\Z"
)
JOURNAL = "journal.jsonl"
NEVER = ("heartbeat", "teacher_outputs.safetensors", "__pycache__")
WATCH = {"child": None}  # the process group that must not outlive us


class Trouble(Exception):
    """What went wrong, for the other side to put into words: `code` names it, `fields` say where."""

    def __init__(self, code, message, reason="other", **fields):
        super().__init__(message)
        self.answer = {"kind": "error", "reason": reason, "code": code, "message": message, **fields}


# ---- talking


def send(frame):
    """One line. Blocks while the other side does not read."""
    write_all(b"@seesaw " + json.dumps(frame).encode("ascii") + b"\n")


def send_piece(file, offset, data, mark, done, squeeze=True):
    """Bytes of a file. `squeeze`: compressed (`z`) where that pays, which it does for all but weights."""
    head = {"kind": "piece", "file": file, "offset": offset, "mark": mark, "done": done}
    sample = data[:4096]  # random bytes are what takes longest to compress
    if squeeze and len(data) > 512 and len(zlib.compress(sample, 1)) < 0.8 * len(sample):
        small = zlib.compress(data, 1)
        if len(small) < 0.8 * len(data):
            head["z"], data = True, small
    head = json.dumps(head)
    write_all(b'@seesaw %s, "data": "%s"}\n' % (head[:-1].encode("ascii"), base64.b64encode(data)))


def write_all(line):
    view = memoryview(line)
    while view:
        view = view[os.write(1, view) :]


def end_with(code):
    """Ends at once, whatever the main thread waits for."""
    if WATCH["child"] is not None:
        with contextlib.suppress(OSError):
            os.killpg(WATCH["child"], signal.SIGKILL)
    os._exit(code)


def watch(limit_s, stdin):
    """Ends this process when nobody listens any more. `stdin`: nothing is expected there but its end."""
    parent, deadline = os.getppid(), time.monotonic() + limit_s

    def loop():
        while os.getppid() == parent and time.monotonic() < deadline:
            try:
                if not stdin:
                    time.sleep(1.0)
                elif select.select([0], [], [], 1.0)[0] and not os.read(0, 4096):
                    break
            except OSError:
                break
        end_with(3)

    threading.Thread(target=loop, daemon=True).start()


# ---- files


def expand(path):
    """An absolute path; links are kept, because a cluster's home folder may have another real path on each node."""
    if not isinstance(path, str) or not path or "\0" in path:
        raise Trouble("request", f"{path!r} is no path.")
    return os.path.abspath(os.path.expanduser(path))


def disk_trouble(error, path):
    """An OSError as trouble: a full disk, a used up quota, a folder that is not ours, or the system's own words."""
    code = {
        errno.ENOSPC: "disk-full",
        errno.EDQUOT: "quota",
        errno.EACCES: "not-writable",
        errno.EPERM: "not-writable",
        errno.EROFS: "read-only",
        errno.ENOENT: "not-there",
        errno.ENOTDIR: "not-a-folder",
    }.get(error.errno, "disk")
    path, words = str(error.filename or path), error.strerror or str(error)
    reason = "other" if code in ("not-there", "disk") else "not-writable"
    return Trouble(code, f"{path}: {words}.", reason, path=path, detail=words)


def mark_of(info):
    """Names one version of a file that is replaced as a whole."""
    return f"w:{info.st_size}:{info.st_mtime_ns}:{info.st_ino}"


def short_hash(data):
    return hashlib.sha256(data).hexdigest()[:16]


def place(path, data):
    """Writes a file under a temporary name, then gives it its own."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = f"{path}.{os.getpid()}-{time.time_ns():x}.tmp"
    try:
        with open(temporary, "wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def probe_folder(folder):
    """Makes `folder` and writes a little there: only that tells of quotas and read-only mounts. Raises Trouble."""
    try:
        write_a_little(folder)
    except FileNotFoundError as error:
        raise Trouble("no-folder", f"{folder} cannot be made.", "not-writable", path=folder) from error
    except OSError as error:
        raise disk_trouble(error, folder) from error


def write_a_little(folder):
    os.makedirs(folder, exist_ok=True)
    name = os.path.join(folder, f".seesaw-{os.getpid()}-{time.time_ns():x}.tmp")
    try:
        with open(name, "wb") as handle:
            handle.write(b"\0" * 16384)
            handle.flush()
            os.fsync(handle.fileno())
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)


# ---- what this machine is


def verb_locate(request):
    """The absolute folder and interpreter; the folder exists and can be written afterwards."""
    folder = expand(request["dir"])
    probe_folder(folder)
    return {"dir": folder, "python": sys.executable, "version": platform.python_version(), "host": socket.gethostname()}


def gpus():
    """Name, bytes and use of each GPU; None where nvidia-smi does not answer."""
    query = "--query-gpu=name,memory.total,memory.used,utilization.gpu"
    try:
        argv = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    found = []
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        words = [word.strip() for word in line.rsplit(",", 3)]
        if len(words) == 4:
            total, used, use = (int(word) if word.isdigit() else None for word in words[1:])
            mega = 1 << 20
            found.append(
                {
                    "name": words[0],
                    "total": total and total * mega,
                    "used": None if used is None else used * mega,
                    "utilisation": use,
                }
            )
    return found


def packages(names):
    """The version of each installed package, None where it is missing; nothing is imported."""
    from importlib import metadata

    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except Exception:  # damaged metadata is a missing package to us
            found[name] = None
    return found


def kills_on_logout():
    """Whether this system ends a person's processes when the last session is closed, detached ones too."""
    try:
        with open("/etc/systemd/logind.conf", encoding="utf-8") as handle:
            if not re.search(
                r"^\s*KillUserProcesses\s*=\s*(yes|true|1|on)\s*$", handle.read(), re.MULTILINE | re.IGNORECASE
            ):
                return False
        import pwd

        user = pwd.getpwuid(os.getuid()).pw_name
        return user != "root" and not os.path.exists(f"/var/lib/systemd/linger/{user}")
    except (OSError, KeyError, ValueError):
        return False


def verb_check(request):
    """All that a person wants to know before something is spent here."""
    folder, trouble = expand(request["dir"]), None
    try:
        probe_folder(folder)
    except Trouble as error:
        trouble = error.answer
    there = folder
    while not os.path.isdir(there) and there != os.path.dirname(there):
        there = os.path.dirname(there)
    disk = None
    with contextlib.suppress(OSError):
        space = os.statvfs(there)
        disk = {"free": space.f_bavail * space.f_frsize, "total": space.f_blocks * space.f_frsize}
    return {
        "dir": folder,
        "trouble": trouble,
        "python": {
            "path": sys.executable,
            "version": platform.python_version(),
            "packages": packages(request.get("packages", [])),
        },
        "gpus": gpus(),
        "disk": disk,
        "host": socket.gethostname(),
        "system": f"{platform.system()} {platform.release()}",
        "ends_on_logout": kills_on_logout(),
    }


# ---- copying to here


def hash_of(path):
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as handle:
        for chunk in iter(lambda: handle.read(1 << 20), b""):
            digest.update(chunk)
    return digest.hexdigest()


def is_there(path, size, wanted):
    """Whether exactly this file is here. What a path with the hash in it holds was compared when it was written."""
    if not os.path.isfile(path) or (size is not None and os.path.getsize(path) != size):
        return False
    return wanted is None or wanted in path or hash_of(path) == wanted


def want(path):
    """Leaves a sign on a shared folder that a run needs it which is just being prepared: `clear` removes nothing so
    young."""
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    if os.path.basename(os.path.dirname(folder)) in ("objects", "models", "runner"):
        with contextlib.suppress(OSError):
            os.utime(folder)


def verb_have(request):
    """Which files and folders are here, and how much of an interrupted copy."""
    found = []
    for item in request["items"]:
        path, there, part = expand(item["path"]), False, None
        with contextlib.suppress(OSError):
            there = os.path.isdir(path) or is_there(path, item.get("bytes"), item.get("sha256"))
        if there:
            want(path)
        with contextlib.suppress(OSError):
            part = os.stat(path + ".part").st_size
        found.append({"there": there, "part": part})
    return {"items": found}


def take_over(handle, path, client):
    """Makes the interrupted copy ours. A cut leaves a reader behind that still waits for bytes: it is ended if they
    were to come from the same client; another client's copy goes on."""
    lock, deadline = path + ".lock", time.monotonic() + 5
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                break  # a disk without locks
        holder = {}
        with contextlib.suppress(OSError, ValueError), open(lock, encoding="ascii") as other:
            holder = json.load(other)
        mine = holder.get("client") == client and holder.get("host") == socket.gethostname()
        if not mine or time.monotonic() > deadline:
            raise Trouble(
                "busy", f"{path} is being copied by somebody else.", path=path, bytes=os.fstat(handle.fileno()).st_size
            )
        if holder.get("start") == process_start(holder.get("pid", 0)):
            with contextlib.suppress(OSError):
                os.kill(holder["pid"], signal.SIGKILL)
        time.sleep(0.05)
    me = {"client": client, "host": socket.gethostname(), "pid": os.getpid(), "start": process_start(os.getpid())}
    place(lock, json.dumps(me).encode("ascii"))
    return lock


def process_start(pid):
    """When a process of this machine began, in ticks since boot; on macOS None for all, so that none is ever ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as handle:
            return int(handle.read().rpartition(b")")[2].split()[19])
    except OSError:
        return None


def incoming(left):
    """The bytes that follow the request, in chunks as they come."""
    os.set_blocking(0, False)
    early = sys.stdin.buffer.peek()[:left]  # what was read together with the request
    os.set_blocking(0, True)
    if early:
        left -= len(early)
        yield early
    while left > 0:
        chunk = os.read(0, min(left, PIECE)) if select.select([0], [], [], IDLE_S)[0] else b""
        if not chunk:
            raise Trouble("short", "The copy was interrupted: no more bytes came.")
        left -= len(chunk)
        yield chunk


def verb_put(request):
    """One file, once, under the hash of what it holds; an interrupted copy goes on where it stopped."""
    path, size, wanted = expand(request["path"]), int(request["size"]), request["sha256"]
    part, told = path + ".part", [time.monotonic()]

    def tell(count):
        if time.monotonic() - told[0] > 0.5:
            told[0] = time.monotonic()
            send({"kind": "progress", "bytes": count})

    try:
        if is_there(path, size, wanted):
            want(path)
            return {"there": True, "bytes": size}
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(os.open(part, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0) as handle:
            lock = take_over(handle, part, request.get("client"))
            digest, offset = hashlib.sha256(), 0
            if os.fstat(handle.fileno()).st_size > size:
                handle.truncate(0)
            for chunk in iter(lambda: handle.read(1 << 20), b""):
                digest.update(chunk)
                offset += len(chunk)
                tell(0)
            space = os.statvfs(os.path.dirname(path))
            if space.f_bavail * space.f_frsize < size - offset:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            send({"kind": "go", "offset": offset})
            for chunk in incoming(size - offset):
                view = memoryview(chunk)
                while view:
                    view = view[handle.write(view) :]
                digest.update(chunk)
                offset += len(chunk)
                tell(offset)
            if digest.hexdigest() != wanted:
                os.unlink(part)
                raise Trouble("changed", f"{path}: what came is not what was announced.", path=path)
            os.fsync(handle.fileno())
            os.replace(part, path)
            with contextlib.suppress(OSError):
                os.unlink(lock)
    except OSError as error:
        raise disk_trouble(error, path) from error
    return {"there": False, "bytes": size}


def verb_unpack(request):
    """A folder of small text files that comes as one compressed JSON object {name: text}; whole or not there."""
    folder = expand(request["dir"])
    if os.path.isdir(folder):
        want(folder)
        return {"there": True}
    send({"kind": "go", "offset": 0})
    data = b"".join(incoming(int(request["size"])))
    if hashlib.sha256(data).hexdigest() != request["sha256"]:
        raise Trouble("changed", f"{folder}: what came is not what was announced.", path=folder)
    import gzip

    files, aside = json.loads(gzip.decompress(data)), f"{folder}.{os.getpid()}-{time.time_ns():x}.tmp"
    try:
        for name, text in files.items():
            if not re.fullmatch(r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*/)*[A-Za-z0-9_][A-Za-z0-9_.-]*", name) or ".." in name:
                raise Trouble("request", f"{name!r} is no name for a file of the runner.")
            place(os.path.join(aside, name), text.encode("utf-8"))
        try:
            os.rename(aside, folder)
        except OSError:
            if not os.path.isdir(folder):  # else somebody else was faster
                raise
    except OSError as error:
        raise disk_trouble(error, folder) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return {"there": False}


def verb_write(request):
    """Small files, each whole or not there: `text`, or `base64`; without either a folder. `unless`: nothing is written
    where that path exists."""
    for item in request["items"]:
        path, unless = expand(item["path"]), item.get("unless")
        try:
            if unless is not None and os.path.exists(expand(unless)):
                continue
            if "text" in item:
                place(path, item["text"].encode("utf-8"))
            elif "base64" in item:
                data = base64.b64decode(item["base64"])
                if hashlib.sha256(data).hexdigest() != item["sha256"]:
                    raise Trouble("changed", f"{path}: what came is not what was announced.", path=path)
                place(path, data)
            else:
                os.makedirs(path, exist_ok=True)
        except OSError as error:
            raise disk_trouble(error, path) from error
    return {}


def verb_move(request):
    """Gives a folder that was copied under another name its own; harmless if that was done before."""
    source, target = expand(request["from"]), expand(request["to"])
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if not os.path.exists(target):
            os.rename(source, target)
    except OSError as error:
        if not os.path.exists(target):
            raise disk_trouble(error, target) from error
    return {}


# ---- programs


def run_program(argv, cwd=None, env=None, timeout=60.0, input=None, limit=1 << 20, own_group=True):
    """Runs a program to its end, never through a shell; keeps the first `limit` bytes of both streams."""
    kept = {"stdout": bytearray(), "stderr": bytearray()}

    def drain(pipe, into):
        for chunk in iter(lambda: pipe.read1(65536), b""):
            into += chunk[: max(0, limit - len(into))]

    try:
        child = subprocess.Popen(
            argv,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        words = error.strerror or str(error)
        code = "no-program" if isinstance(error, FileNotFoundError) else "spawn"
        raise Trouble(code, f"{argv[0]} could not be started: {words}.", path=str(argv[0]), detail=words) from error
    WATCH["child"] = child.pid if own_group else None
    readers = [threading.Thread(target=drain, args=(getattr(child, name), kept[name]), daemon=True) for name in kept]
    for reader in readers:
        reader.start()
    if input is not None:
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(input.encode("utf-8"))
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()
    timed_out = False
    try:
        code = child.wait(timeout)
    except subprocess.TimeoutExpired:
        timed_out = True
        with contextlib.suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)
        code = child.wait()
    WATCH["child"] = None
    for reader in readers:
        reader.join(1.0)  # a grandchild may keep the pipes open
    ended = {"code": code, "signal": None} if code >= 0 else {"code": None, "signal": signal.Signals(-code).name}
    return {**ended, "timed_out": timed_out, **{name: bytes(data) for name, data in kept.items()}}


def verb_exec(request):
    done = run_program(
        request["argv"],
        expand(request["cwd"]) if request.get("cwd") else None,
        request.get("env"),
        float(request.get("timeout", 60)),
        request.get("input"),
        int(request.get("limit", 1 << 20)),
    )
    return {**done, **{name: base64.b64encode(done[name]).decode("ascii") for name in ("stdout", "stderr")}}


def verb_agent(request):
    """A verb of the run agent and its JSON. What it starts or stops does not depend on whether anybody waits for it."""
    attempt, agent = expand(request["attempt"]), os.path.join(expand(request["runner"]), "seesaw_runner", "agent.py")
    nonce = None
    with contextlib.suppress(OSError, ValueError), open(os.path.join(attempt, "spec.json"), encoding="utf-8") as handle:
        nonce = json.load(handle).get("nonce")
    if not os.path.isfile(agent):
        raise Trouble("no-runner", f"{agent} is not there.", path=agent)
    if not os.path.isdir(attempt):
        return {"code": None, "answer": None, "nonce": None, "stderr": ""}
    argv = [sys.executable, agent, request["verb_of_agent"], attempt, *request.get("args", [])]
    done = run_program(argv, timeout=float(request.get("timeout", 120)), own_group=False)
    answer = None
    for line in done["stdout"].decode("utf-8", "replace").splitlines():
        if line.startswith("{"):
            with contextlib.suppress(ValueError):
                answer = json.loads(line)
    return {
        "code": done["code"],
        "answer": answer,
        "nonce": nonce,
        "stderr": done["stderr"].decode("utf-8", "replace")[-2000:],
    }


# ---- copying from here


def verb_list(request):
    """All regular files below a folder, with size and version."""
    top, items = expand(request["dir"]), []
    if not os.path.isdir(top):
        raise Trouble("not-there", f"{top} is not there.", path=top)
    for folder, folders, names in os.walk(top):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = os.path.join(folder, name)
            with contextlib.suppress(OSError):
                info = os.stat(path)
                if os.path.isfile(path) and not name.startswith(".") and not name.endswith((".tmp", ".part", ".lock")):
                    items.append({"path": os.path.relpath(path, top), "bytes": info.st_size, "mark": mark_of(info)})
    return {"items": items}


def verb_get(request):
    """A file from `offset` on in pieces. Another version than `mark` comes from its beginning."""
    path = expand(request["path"])
    try:
        with open(path, "rb", buffering=0) as handle:
            info, offset = os.fstat(handle.fileno()), int(request.get("offset", 0))
            mark, left = mark_of(info), request.get("max")
            if offset > info.st_size or request.get("mark") not in (None, mark):
                offset = 0
                send({"kind": "restart", "file": path, "mark": mark})
            end = info.st_size if left is None else min(info.st_size, offset + left)
            handle.seek(offset)
            while True:
                data = handle.read(min(PIECE, end - offset))
                done = offset + len(data) >= end
                send_piece(path, offset, data, mark, done, squeeze=False)
                offset += len(data)
                if done:
                    break
                if not data:
                    raise Trouble("changed", f"{path} was shortened while it was read.", path=path)
            if mark_of(os.fstat(handle.fileno())) != mark:
                raise Trouble("changed", f"{path} was changed while it was read.", path=path)
    except OSError as error:
        raise disk_trouble(error, path) from error
    return {"bytes": info.st_size, "mark": mark}


class Grown:
    """A file that only grows, as far as it was sent. Its mark says how its first and its last sent bytes hash, so that
    one that was replaced, or cut and written again, is noticed whatever its size."""

    def __init__(self, path, known):
        self.path, self.offset, self.head, self.tail = path, 0, b"", b""
        self.known, self.seen, self.fresh = known, None, known is None

    def mark(self):
        return f"g:{len(self.head)}:{short_hash(self.head)}:{self.offset}:{short_hash(self.tail)}"

    def adopt(self, handle, size):
        """Goes on from what the reader has, if the file still begins with it. False: what it has is void."""
        known, self.known = self.known, None
        parts = str(known.get("mark")).split(":")
        offset, zero = known.get("size"), known.get("size") == 0
        if not isinstance(offset, int) or not 0 <= offset <= size or len(parts) != 5 or parts[0] != "g":
            return zero
        head = os.pread(handle, min(int(parts[1]), size), 0)
        tail = os.pread(handle, min(256, offset), max(0, offset - 256))
        if short_hash(head) != parts[2] or (int(parts[3]) == offset and short_hash(tail) != parts[4]):
            return zero
        self.offset, self.head, self.tail = offset, os.pread(handle, min(256, offset), 0), tail
        return True

    def start_again(self, file):
        self.offset, self.head, self.tail, self.fresh = 0, b"", b"", True
        send({"kind": "restart", "file": file, "mark": self.mark()})

    def pump(self, file, size, limit):
        """Sends what is new, up to `size` and `limit` bytes. Returns how much, and whether there is more."""
        sent = 0
        with open(self.path, "rb", buffering=0) as opened:
            handle = opened.fileno()
            now = os.fstat(handle).st_size
            if self.known is not None and not self.adopt(handle, now):
                self.start_again(file)
            kept = [os.pread(handle, len(self.head), 0), os.pread(handle, len(self.tail), self.offset - len(self.tail))]
            if now < self.offset or kept != [self.head, self.tail]:
                self.start_again(file)
                size = now
            while self.fresh or (self.offset < size and sent < limit):
                self.fresh = False
                data = os.pread(handle, max(0, min(PIECE, size - self.offset)), self.offset)
                before = self.offset
                self.offset += len(data)
                self.head = (self.head + data)[:256] if len(self.head) < 256 else self.head
                self.tail = (self.tail + data)[-256:]
                send_piece(file, before, data, self.mark(), self.offset >= size)
                sent += len(data)
                if not data:
                    break
        return sent, self.offset < size


class Follower:
    """Sends what a run folder has beyond what the reader knows, as it comes. A file that the journal speaks of is sent
    before the line that does: sizes are noted first, then folders are looked at, then the journal is sent up to its
    noted size."""

    def __init__(self, run, known, agent):
        self.run, self.agent, self.known = run, agent, dict(known)
        self.grown, self.whole, self.folders, self.dirty = {}, {}, {}, set()
        self.sent = self.looked = self.scanned = self.cost = 0.0
        self.attempt, self.probed, self.said, self.closing, self.beats = None, 0.0, None, None, {}
        self.exited = False
        agent.heartbeat_moves = self.heartbeat_moves

    # the agent's word

    def heartbeat_moves(self, attempt):
        """Like the agent's own, but judged by what was seen so far instead of waiting for it."""
        count, now = self.agent.read_number(attempt, "heartbeat"), time.monotonic()
        if self.beats.get(attempt, (None,))[0] != count:
            self.beats[attempt] = (count, now)
        return now - self.beats[attempt][1] < SILENCE_S

    def newest_attempt(self):
        names = [name for name in self.folders.get("", (0, 0, (), ()))[3] if re.fullmatch(r"attempt-\d+", name)]
        return os.path.join(self.run, max(names, key=self.agent.attempt_number)) if names else None

    def probe(self, must=False):
        """Sends the agent's word when it is news, and as a sign of life."""
        now = time.monotonic()
        exited = bool(self.attempt) and os.path.exists(os.path.join(self.attempt, "exit.json"))
        if self.attempt is None or not (must or exited != self.exited or now - self.probed >= SIGN_S / 2):
            return
        try:
            word = self.agent.probe(self.attempt)
        except (self.agent.AgentError, OSError, KeyError, ValueError):  # a file that is just being replaced
            return
        self.exited, self.probed = word["exit"] is not None, now
        news = (self.attempt, word["state"], word["started"], word["exit"], word["cancel"])
        if must or self.said is None or news != self.said[0] or now - self.said[1] >= SIGN_S * 0.9:
            send({"kind": "probe", "attempt": self.agent.attempt_number(self.attempt), "probe": word})
            self.said = (news, now)

    def ended(self):
        """Whether nothing writes into the run folder any more: exit.json is there and the agent has gone."""
        attempt = self.attempt
        if attempt is None or not os.path.exists(os.path.join(attempt, "exit.json")):
            self.closing = None
            return False
        started = self.agent.read_json(attempt, "started.json") or self.agent.read_json(attempt, "claim") or {}
        if started.get("boot") == self.agent.boot_id():
            return not self.agent.alive(
                started.get("agent_pid", started.get("pid")), started.get("agent_start", started.get("start"))
            )
        self.closing = self.closing or time.monotonic()
        number, last = self.agent.attempt_number(attempt), self.last_event()
        closed = last.get("type") == "run.finished" and last.get("attempt") == number
        return closed or time.monotonic() - self.closing > CLOSING_S

    def last_event(self):
        with contextlib.suppress(OSError), open(os.path.join(self.run, JOURNAL), "rb") as handle:
            handle.seek(max(0, os.fstat(handle.fileno()).st_size - 65536))
            return self.agent.read_event((handle.read().strip().split(b"\n") or [b""])[-1])
        return {}

    # files

    def look(self, full):
        """Walks the folders that changed (all, with `full`) and sends the whole files in them that are new."""
        began = time.monotonic()
        self.scanned, self.looked = began, began if full else self.looked
        retry, self.dirty = self.dirty, set()
        for file in sorted(retry):
            self.send_whole(file)
        self.walk("", full)
        self.attempt = self.newest_attempt()
        self.cost = time.monotonic() - began

    def walk(self, folder, full):
        path = os.path.join(self.run, folder)
        try:
            changed = os.stat(path).st_mtime_ns
        except OSError:
            if folder == "":
                raise
            return
        now, (mark, since, files, folders) = time.monotonic(), self.folders.get(folder, (None, 0.0, (), ()))
        fresh = mark != changed
        if fresh or full or now - since < 2.0:  # two changes within one tick of the disk's clock look like one
            files, folders = self.entries(folder, path)
            self.folders[folder] = (changed, now if fresh else since, files, folders)
            for file in files:
                if not GROWS.match(file):
                    self.send_whole(file)
                elif file not in self.grown:
                    self.grown[file] = Grown(os.path.join(self.run, file), self.known.pop(file, None))
        for name in folders:
            self.walk(os.path.join(folder, name), full)

    def entries(self, folder, path):
        """The files to follow and the folders to look into."""
        files, folders, top = [], [], folder.split("/")[0]
        with contextlib.suppress(OSError), os.scandir(path) as found:
            for entry in found:
                name = entry.name
                if name.startswith(".") or name.endswith((".tmp", ".part")) or name in NEVER or not printable(name):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if not (folder == "" and name == "output") and not (top == "checkpoints" and folder != top):
                        folders.append(name)
                elif (top != "checkpoints" or name == "seesaw.json") and entry.is_file():
                    files.append(os.path.join(folder, name))
        return sorted(files), sorted(folders)

    def send_whole(self, file):
        known = self.known.pop(file, None)
        try:
            with open(os.path.join(self.run, file), "rb", buffering=0) as handle:
                info = os.fstat(handle.fileno())
                mark, offset = mark_of(info), 0
                if self.whole.get(file) == mark:
                    return
                if known is not None and known.get("mark") == mark and 0 <= known.get("size", -1) <= info.st_size:
                    offset = known["size"]
                    if offset == info.st_size:
                        self.whole[file] = mark
                        return
                handle.seek(offset)
                while True:
                    data = handle.read(min(PIECE, info.st_size - offset))
                    same = mark_of(os.fstat(handle.fileno())) == mark
                    done = offset + len(data) >= info.st_size
                    if not same or not (data or done):
                        self.dirty.add(file)  # it changes under our hands: again, from its beginning
                        return
                    send_piece(file, offset, data, mark, done)
                    offset += len(data)
                    self.sent += len(data)
                    if done:
                        break
                    self.probe()
                self.whole[file] = mark
        except FileNotFoundError:
            pass
        except PermissionError:
            self.whole[file] = None

    def sizes(self):
        """The size of each file that grows, if it was touched since the last look."""
        found = {}
        for file in self.grown:
            with contextlib.suppress(OSError):
                info = os.stat(self.grown[file].path)
                version = (info.st_size, info.st_mtime_ns, info.st_ino)
                if version != self.grown[file].seen:
                    found[file] = version
        return found

    def round(self, full):
        """Sends what is new. Returns whether there is more."""
        sizes, now = self.sizes(), time.monotonic()
        if full or self.dirty or JOURNAL in sizes or now - self.scanned >= max(SCAN_S, 10 * self.cost):
            self.look(full or now - self.looked >= max(FULL_S, 20 * self.cost))
            sizes = {**self.sizes(), **sizes}  # new files; the noted sizes of the others stand
        more = bool(self.dirty)
        for file in sorted(sizes, key=rank):
            grown, left, begun = self.grown[file], True, self.sent
            try:
                while left and (file == JOURNAL or self.sent - begun < ROUND):
                    sent, left = grown.pump(file, sizes[file][0], PIECE)
                    self.sent += sent
                    self.probe()
                    if sent == 0:
                        break
            except FileNotFoundError:
                continue
            more = more or left
            if not left:
                grown.seen = sizes[file]
        return more

    def sums(self):
        """What the files that grow hold, as far as they were sent."""
        found = {}
        for file, grown in self.grown.items():
            digest, left = hashlib.sha256(), grown.offset
            with contextlib.suppress(OSError), open(grown.path, "rb", buffering=0) as handle:
                while left > 0:
                    data = handle.read(min(1 << 20, left))
                    if not data:
                        break
                    digest.update(data)
                    left -= len(data)
                    self.probe()
            found[file] = {"size": grown.offset - left, "sha256": digest.hexdigest()}
        return found

    def follow(self, limit_s):
        deadline, told = time.monotonic() + limit_s, None
        self.look(full=True)
        self.probe(must=True)
        while time.monotonic() < deadline:
            began, over = time.monotonic(), self.ended()
            more = self.round(full=over)
            self.probe()
            if not more and told != self.sent:
                told = self.sent
                send({"kind": "caught-up", "bytes": int(self.sent)})
            if over and not more and self.newest_attempt() == self.attempt:
                sums = self.sums()
                self.probe(must=True)
                send({"kind": "end", "sums": sums})
                return {"ended": "end"}
            if not more:
                time.sleep(max(0.01, POLL_S - (time.monotonic() - began)))
        return {"ended": "limit"}


def rank(file):
    """The journal first, the log last: nothing waits for a log of gigabytes."""
    return (file != JOURNAL, file == "out.log", file)


def printable(name):
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def load_agent(runner):
    path = os.path.join(expand(runner), "seesaw_runner", "agent.py")
    if not os.path.isfile(path):
        raise Trouble("no-runner", f"{path} is not there.", path=path)
    spec = importlib.util.spec_from_file_location("seesaw_agent", path)
    agent = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(agent)
    return agent


def verb_follow(request):
    run = expand(request["run"])
    if not os.path.isdir(run):
        raise Trouble("no-run", f"{run} is not there.", path=run)
    try:
        return Follower(run, request.get("known", {}), load_agent(request["runner"])).follow(
            float(request.get("limit_s", 300))
        )
    except FileNotFoundError as error:
        raise Trouble("no-run", f"{run} is gone.", path=run) from error


# ---- cleaning up below a target's folder

KINDS = ("runs", "work", "objects", "models", "runner", "arrays")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*\Z")
NAMED = re.compile(r"(?<![A-Za-z0-9._-])(runs|work|objects|models|runner|arrays)/([A-Za-z0-9][A-Za-z0-9._-]*)")
GOING = ".going"  # ends the name of what is being removed
DAY_S = 86400.0  # what is younger may belong to a run that is just being prepared


class Store:
    """What lies below a target's folder, and what of it nobody needs any more. Everything that is not understood stays:
    links, other names, and whatever a run folder that cannot be read may need."""

    def __init__(self, top):
        self.top, self.items, self.uses, self.closed, self.told = top, {}, {}, [], time.monotonic()
        for kind in KINDS:
            folder = os.path.join(top, kind)
            if os.path.islink(folder) or not os.path.isdir(folder):
                continue
            with os.scandir(folder) as found:
                names = [
                    entry.name for entry in found if NAME.match(entry.name) and entry.is_dir(follow_symlinks=False)
                ]
            self.items.update(((kind, name), os.path.join(folder, name)) for name in sorted(names))
        for kind, name in self.items:
            if kind in ("runs", "models", "arrays") and not name.endswith(GOING):
                self.uses[(kind, name)] = self.named_in((kind, name))

    def alive(self):
        """Says now and then that work is done."""
        if time.monotonic() - self.told > 1.0:
            self.told = time.monotonic()
            send({"kind": "progress", "bytes": 0})

    def named_in(self, item):
        """What a run or a model names in the files that say what it is made of."""
        self.alive()
        path, found = self.items[item], set()
        for folder, folders, files in os.walk(path, onerror=lambda error: self.closed.append(error.filename)):
            inside = os.path.relpath(folder, path).split(os.sep)[0]
            if folder == path:  # traces are many
                folders[:] = [name for name in folders if name == "checkpoints" or name.startswith("attempt-")]
            for name in files:
                top = folder == path and name in ("run.json", "adapter_config.json")
                attempt = re.fullmatch(r"attempt-\d+", inside) and name in ("spec.json", "job.sh")
                weights = inside == "checkpoints" and name == "adapter_config.json"
                if not (top or attempt or weights or item[0] == "arrays"):
                    continue
                try:
                    with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as handle:
                        found.update(NAMED.findall(handle.read(1 << 26)))
                except OSError:
                    self.closed.append(os.path.join(folder, name))
        return found - {item}

    def live(self, run):
        """Whether an agent of the newest attempt has begun and left no word of its end."""
        path = self.items[("runs", run)]
        attempts = [name for name in os.listdir(path) if re.fullmatch(r"attempt-\d+", name)]
        if not attempts:
            return False
        newest = os.path.join(path, max(attempts, key=lambda name: int(name[8:])))
        has = [os.path.exists(os.path.join(newest, name)) for name in ("claim", "exit.json")]
        return has == [True, False]

    def age(self, item, now):
        """Seconds since the last sign that somebody wanted it."""
        path = self.items[item]
        newest = os.stat(path).st_mtime
        with contextlib.suppress(OSError), os.scandir(path) as found:
            newest = max([newest, *(entry.stat(follow_symlinks=False).st_mtime for entry in found)])
        return now - newest

    def bytes_of(self, item):
        total = 0
        for folder, _, files in os.walk(self.items[item]):
            self.alive()
            for name in files:
                with contextlib.suppress(OSError):
                    total += os.lstat(os.path.join(folder, name)).st_size
        return total

    def decide(self, asked, now):
        """{item: why it may go} and {run: why it must stay}; `asked`: runs that their own workspace lets go of."""
        going, staying = {run for run in asked if ("runs", run) in self.items}, {}
        for run in sorted(going):
            if self.live(run):
                staying[run] = {"why": "live"}
        while True:
            going -= set(staying)
            users = [item for item in self.uses if item[0] != "arrays" and not (item[0] == "runs" and item[1] in going)]
            held = {name: by for by in users for kind, name in self.uses[by] if kind == "runs" and name in going}
            if not held:
                break
            staying.update((run, {"why": "named", "by": by[1]}) for run, by in held.items())
        found = {("runs", run): "spent" for run in going}
        stay = {item for item in self.uses if item[0] == "runs" and item[1] not in going}
        stay |= {item for item in self.uses if item[0] == "arrays" and self.uses[item] & stay}
        needed = {use for item in stay for use in self.uses[item]} | stay
        for item in list(needed):  # a model that an adapter lies on is needed with it
            self.need_below(item, needed)
        for item in self.items:
            kind, name = item
            if item in found or (kind == "runs" and not name.endswith(GOING)):
                continue
            if kind == "work" and name in going:
                found[item] = "spent"
            elif name.endswith(GOING):
                found[item] = "left"
            elif kind == "work" and (("runs", name) in self.items or item in needed):
                continue
            elif item not in needed and not self.closed and self.age(item, now) > DAY_S:
                found[item] = "unused"
        return found, staying

    def need_below(self, item, needed):
        for use in self.uses.get(item, ()) if item[0] == "models" else ():
            if use not in needed:
                needed.add(use)
                self.need_below(use, needed)


def disk_time(folder):
    """What the disk itself says the time is: the ages of its files are by its clock. One that takes nothing more, which
    is why somebody cleans up, cannot be asked."""
    name = os.path.join(folder, f".seesaw-{os.getpid()}-{time.time_ns():x}.tmp")
    try:
        with open(name, "wb"):
            pass
        return os.stat(name).st_mtime
    except OSError:
        return time.time()
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name)


def opened_store(request):
    top = expand(request["dir"])
    if not os.path.isdir(top):
        raise Trouble("not-there", f"{top} is not there.", path=top)
    for run in request["runs"]:
        if not isinstance(run, str) or not NAME.match(run):
            raise Trouble("request", f"{run!r} is no name of a run.")
    try:
        store = Store(top)
        return store, *store.decide(request["runs"], disk_time(top))
    except OSError as error:
        raise disk_trouble(error, top) from error


def verb_survey(request):
    """What would go, with sizes and reasons, and what stays. Nothing is changed."""
    store, found, staying = opened_store(request)
    items = [
        {"kind": kind, "name": name, "why": why, "bytes": store.bytes_of((kind, name))}
        for (kind, name), why in found.items()
    ]
    kept = {kind: sum(1 for item in store.items if item[0] == kind and item not in found) for kind in KINDS}
    return {"dir": store.top, "items": items, "staying": staying, "kept": kept, "closed": store.closed[:5]}


def verb_clear(request):
    """Removes of the named items those that may go at this moment: it is decided anew. What is being removed has
    another name first, so that nobody begins to use it."""
    store, found, _ = opened_store(request)
    wanted = {(str(item["kind"]), str(item["name"])) for item in request["items"]}
    removed, failed = [], []
    for item in found:
        if item not in wanted:
            continue
        path, size = store.items[item], store.bytes_of(item)
        aside = path if path.endswith(GOING) else f"{path}.{os.getpid()}{GOING}"
        try:
            if os.path.realpath(os.path.dirname(path)) != os.path.join(os.path.realpath(store.top), item[0]):
                raise Trouble("request", f"{path} does not lie below {store.top}.")
            try:
                if aside != path:
                    os.rename(path, aside)
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                aside = path  # some disks take not even another name when they are full
            for folder, folders, _ in os.walk(aside):  # a read-only folder of one's own
                store.alive()
                for name in folders:
                    with contextlib.suppress(OSError):
                        inner = os.path.join(folder, name)
                        if not os.path.islink(inner) and not os.access(inner, os.W_OK):
                            os.chmod(inner, 0o700)
            shutil.rmtree(aside)
            removed.append({"kind": item[0], "name": item[1], "bytes": size})
        except OSError as error:
            trouble = disk_trouble(error, path).answer
            failed.append({"kind": item[0], "name": item[1], "path": trouble["path"], "detail": trouble["detail"]})
        store.alive()
    return {"removed": removed, "failed": failed, "left": len(wanted) - len(removed) - len(failed)}


# ---- the one call

TAKES_BYTES = ("put", "unpack")


def serve():
    """Answers the request on stdin. Started by the statement that the other side sends first."""
    try:
        request = json.loads(sys.stdin.buffer.readline())
        verb = globals().get(f"verb_{request['verb']}")
        if verb is None:
            raise Trouble("request", f"There is no verb {request['verb']!r}.")
        long = {
            "follow": request.get("limit_s", 300),
            "exec": request.get("timeout", 60),
            "agent": request.get("timeout", 120),
            "survey": 900,
            "clear": 7200,
        }
        takes_bytes = request["verb"] in TAKES_BYTES
        # What takes bytes or sends files may last; it ends with its pipe.
        limit_s = float(long.get(request["verb"], 86400 if takes_bytes or request["verb"] == "get" else 120))
        watch(limit_s + 20, stdin=not takes_bytes)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: end_with(3))
        answer = {"kind": "result", **verb(request)}
    except Trouble as trouble:
        answer = trouble.answer
    except BrokenPipeError:
        end_with(3)
    except MemoryError:
        answer = Trouble("memory", "Memory ran out.").answer
    except Exception as error:  # the other side must hear of it, not wait
        answer = Trouble("defect", f"{type(error).__name__}: {error}").answer
    with contextlib.suppress(OSError):
        send(answer)
    end_with(0)
