"""One inference of a library of others in a child process that can compute and nothing else: `aot run --sandbox`.

    command      reads inputs, forks, checks and takes the results
    supervisor   forks, is asked by the system for each call in `ASKED`, answers, and watches the clock
    sandbox      loads and runs the library, under the calls in `ALLOWED` and limits of memory

The list applies before the first byte of the library's code can run: its constructors are bound by it. The loader may
open one file then, which is the library, and ask for its size, before that code runs; each later opening, or question
about a file, ends the sandbox.

The sandbox puts the list on itself and sends the supervisor the descriptor that asks. No call of the supervisor is
asked about: one made under Python's lock, as os.fork makes, would wait for a thread that waits for the lock.
"""

from __future__ import annotations

import sys

assert sys.platform == "linux"

import ctypes
import errno
import faulthandler
import fcntl
import json
import os
import resource
import signal
import socket
import struct
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from itertools import count, pairwise, takewhile
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

import numpy as np

from aot.codegen.dataclass import dataclass
from aot.ir.types import Array
from aot.runtime.arrays.files import Arrays
from aot.runtime.arrays.tensors import numpy_dtype
from aot.runtime.describe import error_text, size_text
from aot.runtime.errors import (
    AotError,
    BudgetError,
    CorruptError,
    MissingError,
    PlatformError,
    UnsupportedError,
    UsageError,
)
from aot.runtime.loading.library import open_library, read_manifest
from aot.runtime.loading.manifest import TensorInfo
from aot.runtime.machine import default_threads
from aot.runtime.model import CompiledModel

MEMORY, SECONDS = 4 << 30, 60.0  # limits of a sandbox unless the user says: bytes beside the library's, time
FILES = 64  # descriptors that a sandbox may have
THREADS = 16  # threads that a sandbox may start beside those it is given
HEADER_BYTES = 1 << 16  # largest description of one result

ASKED = {  # calls that end a sandbox with a message that names them
    "opened a file": ("open", "openat", "openat2", "creat", "name_to_handle_at", "open_by_handle_at"),
    "opened a socket": ("socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "sendto"),
    "started a program": ("execve", "execveat", "vfork"),
    "changed files": ("unlink", "unlinkat", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "link", "symlink"),
    "touched another process": ("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_open", "kill", "tkill"),
    "asked about a file": ("stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2", "readlink"),
}
THREAD = "clone"  # system call that starts a thread, with the flag CLONE_THREAD
SIZE = "fstat"  # asks for the size of an open file: loaders use it or newfstatat
ALLOWED = (
    *("read", "pread64", "lseek", "close", "dup", "fstatfs"),
    *("mmap", "mprotect", "munmap", "mremap", "madvise", "brk", "mincore", "membarrier"),
    *("futex", "sched_yield", "getcpu", "set_robust_list", "rseq"),
    *("rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "restart_syscall", "set_tid_address"),
    *("clock_gettime", "clock_nanosleep", "nanosleep", "gettimeofday", "getrandom", "getpid", "gettid", "uname"),
    *("arch_prctl", "exit", "exit_group", "sysinfo"),
)
OWN = ("sched_getaffinity", "sched_setaffinity")  # calls that may be made for the calling thread alone
# seccomp_unotify(2): a request has the call's id, process, flags, number, architecture, address and arguments; an
# answer its id, value, error and flags; with the last flag here the call is made as it stands.
RECEIVE, REQUEST, ANSWER, ANSWERED, CONTINUE = 0xC0502100, struct.Struct("=QIIiIQ6Q"), 0xC0182101, "=QqiI", 1
CLONE_THREAD, F_DUPFD_CLOEXEC, PR_SET_NAME, PR_SET_VMA = 0x10000, 1030, 15, 0x53564D41


@dataclass(frozen=True, slots=True)
class Limits:
    """Bytes that a sandbox may take in addition to the library's files, and seconds."""

    memory: int = MEMORY
    seconds: float = SECONDS


def run_sandboxed(library: Path, inputs: Arrays, threads: int | None = None, limits: Limits | None = None) -> Arrays:
    """Return the outputs of a library for `inputs`, by name, computed in a sandbox.

    CorruptError for a library with system calls of no compiled model, and for results that do not fit its manifest;
    BudgetError beyond the limits; MissingError without pyseccomp; the errors of the library's own checks.
    """
    if find_spec("pyseccomp") is None:
        raise MissingError("run: --sandbox needs the package pyseccomp: pip install 'aot[sandbox]'")
    infos = read_manifest(library).outputs
    if strings := [info.name for info in infos if info.string]:
        raise UnsupportedError(f"run: --sandbox gives numbers, got strings in {strings[0]!r}")
    try:
        seccomp = import_module("pyseccomp")  # before the fork: it looks for its library
    except RuntimeError as error:
        raise MissingError(f"run: --sandbox needs libseccomp 2.5 (Debian: libseccomp2), got {error}") from None
    used_limits = limits if limits is not None else Limits()
    (results_fd, results_end), (reason_fd, reason_end) = os.pipe(), os.pipe()
    given_threads = default_threads() if threads is None else threads  # reads files of the system
    child = os.fork()
    if not child:
        os.close(results_fd)
        os.close(reason_fd)
        _Supervisor(seccomp, used_limits, reason_end, results_end, given_threads).run(library, inputs)
    os.close(results_end)
    os.close(reason_end)
    with os.fdopen(results_fd, "rb") as stream, os.fdopen(reason_fd, "rb") as reason_stream:
        try:
            outputs = _received(stream, infos, used_limits.memory)
        except (ValueError, RecursionError, EOFError) as error:
            outputs = error
        surplus = stream.read(1)  # b"" at the end: nobody writes any more
        reason = reason_stream.read().decode()
    os.waitpid(child, 0)
    if reason:
        kind = BudgetError if reason.startswith("took") else CorruptError
        raise kind(f"run: {library}: in the sandbox, a library computes only, got one that {reason}; it was ended")
    if isinstance(outputs, AotError):
        raise outputs
    if isinstance(outputs, Exception) or surplus:
        raise CorruptError(f"run: {library}: results must be those that its manifest describes, got others: {outputs}")
    return {info.name: array for info, array in zip(infos, outputs, strict=True)}


class _Supervisor:
    """The process between: it has no code of the library, and ends a sandbox that makes a forbidden call.

    `reason_fd`, `results_fd`: the pipes to which it writes why it ended the sandbox, and the sandbox its results.
    """

    def __init__(self, seccomp: Any, limits: Limits, reason_fd: int, results_fd: int, threads: int) -> None:
        self.seccomp, self.limits, self.reason_fd, self.results_fd = seccomp, limits, reason_fd, results_fd
        self.threads = threads
        self.reason = ""
        self.opened = self.started = 0
        self.is_loaded = False  # the library's code may run
        self.sandbox = -1

    def run(self, library: Path, inputs: Arrays) -> NoReturn:
        """Start the sandbox and wait for its end; ends this process."""
        code = 1
        try:
            silent = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(silent, stream)
            ours, theirs = socket.socketpair()
            self.sandbox = os.fork()  # before there are threads
            if not self.sandbox:
                _Sandbox(self.seccomp, self.limits, self.results_fd, theirs).run(library, inputs, self.threads)
            os.close(self.results_fd)
            theirs.close()
            threading.Thread(target=self._answer, args=(ours,), daemon=True).start()
            timer = threading.Timer(self.limits.seconds, self._end, (f"took more than {self.limits.seconds:g} s",))
            timer.daemon = True
            timer.start()
            _, status = os.waitpid(self.sandbox, 0)
            if os.WIFSIGNALED(status) and not self.reason:
                number = os.WTERMSIG(status)
                own = "made a call of the system that is not on the list" if number == signal.SIGSYS else ""
                self.reason = own or f"was ended by {signal.Signals(number).name}"
            os.write(self.reason_fd, self.reason.encode())
            code = 0
        finally:
            os._exit(code)

    def _answer(self, sandbox: socket.socket) -> None:
        """Answer the calls that the system asks about, from a descriptor that comes when the list applies."""
        known = {
            self.seccomp.resolve_syscall(self.seccomp.system_arch(), name): what
            for what, names in (*ASKED.items(), (SIZE, (SIZE,)), ("started threads", (THREAD,)))
            for name in names
        }
        for asking in socket.recv_fds(sandbox, 1, 1)[1]:  # none: the sandbox has ended before
            while True:
                request = bytearray(REQUEST.size)
                try:
                    fcntl.ioctl(asking, RECEIVE, request)
                except OSError as error:
                    if error.errno in (errno.EINTR, errno.ENOENT):  # the caller has ended
                        continue
                    return
                call, _, _, number, *_ = REQUEST.unpack(request)
                what = known.get(number, "made a call of the system that is not on the list")
                if not self._is_right(what):
                    self._end(what)
                    return
                with suppress(OSError):
                    fcntl.ioctl(asking, ANSWER, struct.pack(ANSWERED, call, 0, 0, CONTINUE))

    def _is_right(self, what: str) -> bool:
        """True for a call of the loader, for the start of a thread, and for sizes of open files."""
        if what == "opened a file":
            self.opened += 1
            return self.opened == 1
        if what == "started threads":
            self.started += 1
            return self.started <= self.threads + THREADS
        is_first, self.is_loaded = self.opened == 1 and not self.is_loaded, self.opened == 1 or self.is_loaded
        return what == SIZE or (what == "asked about a file" and is_first)

    def _end(self, reason: str) -> None:
        self.reason = self.reason or reason
        os.kill(self.sandbox, signal.SIGKILL)


class _Sandbox:
    """The process that loads and runs the library."""

    def __init__(self, seccomp: Any, limits: Limits, results_fd: int, supervisor: socket.socket) -> None:
        self.seccomp, self.limits, self.results_fd, self.supervisor = seccomp, limits, results_fd, supervisor

    def run(self, library: Path, inputs: Arrays, threads: int) -> NoReturn:
        """Write the results, or the error, and end this process."""
        faulthandler.disable()  # it would write about a fault of the library
        _forget_environment()
        for low, high in _between(3, self.results_fd, self.supervisor.fileno()):
            os.closerange(low, high)
        try:
            model = CompiledModel(open_library(library, strict=True, before=self._enter), threads)
            outputs = model(inputs)
            parts = [b"".join(_sent(outputs[i])) for i in range(len(model.outputs))]
        except BaseException as error:
            code = error.exit_code if isinstance(error, AotError) else 1
            parts = [_line({"error": error_text(cast(Exception, error))[:2000], "code": code})]
        for part in parts:
            view = memoryview(part)
            while view:
                view = view[os.write(self.results_fd, view) :]
        os._exit(0)

    def _enter(self) -> None:
        """Forbid all system calls that computing does not need; from here on the library's code may run."""
        with open("/proc/self/statm", encoding="ascii") as stream:
            used_bytes = int(stream.read().split()[0]) * resource.getpagesize()
        address_bytes = used_bytes + self.limits.memory
        for limit, number in ((resource.RLIMIT_AS, address_bytes), (resource.RLIMIT_NOFILE, FILES)):
            resource.setrlimit(limit, (number, number))
        for limit in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
            resource.setrlimit(limit, (0, 0))
        own = self.seccomp
        rules = own.SyscallFilter(own.KILL_PROCESS)
        _add(rules, own.ALLOW, ALLOWED)
        _add(rules, own.NOTIFY, (SIZE, *(name for names in ASKED.values() for name in names)))
        rules.add_rule(own.ALLOW, "write", own.Arg(0, own.EQ, self.results_fd))
        for name in OWN:
            rules.add_rule(own.ALLOW, name, own.Arg(0, own.EQ, 0))
        rules.add_rule(own.NOTIFY, THREAD, _starts_thread(own))
        rules.add_rule(own.ERRNO(errno.ENOSYS), "clone3")  # libc falls back to clone, whose flags can be read
        rules.add_rule(own.ALLOW, "fcntl", own.Arg(1, own.EQ, F_DUPFD_CLOEXEC))
        for name in (PR_SET_NAME, PR_SET_VMA):
            rules.add_rule(own.ALLOW, "prctl", own.Arg(0, own.EQ, name))
        rules.add_rule(own.ALLOW, "prlimit64", own.Arg(0, own.EQ, 0), own.Arg(2, own.EQ, 0))  # reads its limits
        # Once, below; there is no socket for it later.
        rules.add_rule(own.ALLOW, "sendmsg", own.Arg(0, own.EQ, self.supervisor.fileno()))
        try:
            rules.load()
        except OSError as error:
            needs = "a system where one process may answer for another's calls (seccomp_unotify of Linux 5.5)"
            raise PlatformError(f"run: --sandbox needs {needs}, got {error}") from None
        asking = own._libseccomp.seccomp_notify_fd(rules._filter)  # pyseccomp hides it
        self.supervisor.sendmsg([b"1"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", asking))])
        os.close(asking)  # whoever has it could answer
        self.supervisor.close()


def _forget_environment() -> None:
    """Overwrite the variables of the environment, which often hold secrets, in the memory of this process.

    There are three copies: where the system put them at the start of the program, in libc's `environ`, in os.environ.
    """
    texts = [text for pair in os.environb.items() for text in pair]
    variables = ctypes.POINTER(ctypes.c_void_p).in_dll(ctypes.CDLL(None), "environ")
    pointers: Iterable[Any] = (variables[n] for n in count()) if variables else ()
    strings: list[Any] = list(takewhile(bool, pointers))
    os.environ.clear()
    for where in strings:
        if where is not None:
            ctypes.memset(where, 0, len(ctypes.string_at(where)))
    for text in texts:  # objects of os.environ alone, except one-byte objects, which Python shares
        if len(text) > 1:
            ctypes.memset(id(text) + bytes.__basicsize__ - 1, 0, len(text))
    with open("/proc/self/stat", encoding="ascii") as stream:
        begin, end = map(int, stream.read().rpartition(")")[2].split()[47:49])  # proc(5): env_start, env_end
    ctypes.memset(begin, 0, end - begin)


def _starts_thread(seccomp: Any) -> Any:
    return seccomp.Arg(0, seccomp.MASKED_EQ, CLONE_THREAD, CLONE_THREAD)


def _add(rules: Any, action: int, names: Sequence[str]) -> None:
    """Add calls by name; those that this machine or libseccomp does not have are left out."""
    for name in names:
        with suppress(OSError, ValueError):
            rules.add_rule(action, name)


def _between(first: int, *kept: int) -> list[tuple[int, int]]:
    """Return ranges of the descriptors from `first` on that are not kept."""
    ends = [first - 1, *sorted(kept), 1 << 16]
    return [(low + 1, high) for low, high in pairwise(ends)]


def _line(facts: object) -> bytes:
    return json.dumps(facts).encode() + b"\n"


def _sent(array: Array) -> tuple[bytes, bytes]:
    """Return the description and the bytes of a result."""
    return _line({"shape": list(array.shape)}), np.ascontiguousarray(array).tobytes()


def _received(stream: BinaryIO, infos: Sequence[TensorInfo], max_bytes: int) -> list[Array] | AotError:
    """Read results of at most `max_bytes` in all; return them, or the error that the sandbox sent.

    They may be hostile: ValueError and EOFError for other messages.
    """
    arrays: list[Array] = []
    left = max_bytes
    for info in infos:
        facts: object = json.loads(stream.readline(HEADER_BYTES) or b"null")
        header = cast("dict[str, object]", facts) if isinstance(facts, dict) else {}
        if "error" in header:
            kinds = UsageError, UnsupportedError, CorruptError, PlatformError, BudgetError
            return next((c for c in kinds if c.exit_code == header.get("code")), AotError)(str(header["error"]))
        shape = header.get("shape")
        if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in cast("list[object]", shape)):
            raise ValueError("no shape")
        sizes, dtype = cast("list[int]", shape), numpy_dtype(info)
        pairs = zip(sizes, info.shape, strict=False)
        fits = len(sizes) == len(info.shape) and all(n == m for n, m in pairs if isinstance(m, int))
        size = prod(sizes) * dtype.itemsize
        if not fits or size > left:
            limit = f"of at most {size_text(max_bytes)} with the results before it"
            raise ValueError(f"the shape {sizes[:8]} of {info.name!r}, which is {info}, {limit}")
        left -= size
        data = stream.read(size)
        arrays.append(np.frombuffer(data, dtype).reshape(sizes))
    return arrays
