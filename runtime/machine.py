"""Facts about this machine: its name, its processor's features, the processors that this process may use."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

# LLVM's name -> the kernel's, if they differ by more than punctuation
_X86 = {
    "sse3": "pni",
    "bmi": "bmi1",
    "lzcnt": "abm",
    "sahf": "lahf_lm",
    "pclmul": "pclmulqdq",
    "sha": "sha_ni",
    "prfchw": "3dnowprefetch",
    "rdrnd": "rdrand",
    "cmov": "cmov",
    "64bit": "lm",
    "crc32": "sse4_2",
    "avx512vnni": "avx512_vnni",
    "avx512bf16": "avx512_bf16",
    "avx512fp16": "avx512_fp16",
    "avx512bitalg": "avx512_bitalg",
    "avx512vbmi2": "avx512_vbmi2",
    "avx512vpopcntdq": "avx512_vpopcntdq",
    "avx512vp2intersect": "avx512_vp2intersect",
    "avxvnni": "avx_vnni",
    "evex512": "avx512f",
}
_ARM = {
    "neon": "asimd",
    "fp-armv8": "fp",
    "dotprod": "asimddp",
    "fullfp16": "asimdhp",
    "lse": "atomics",
    "crc": "crc32",
    "rdm": "asimdrdm",
    "rcpc": "lrcpc",
    "complxnum": "fcma",
    "jsconv": "jscvt",
    "sha3": "sha3",
}

# Features that only systems use: compilers do not use them on their own, and the kernel may hide them.
_UNUSED = frozenset(
    "shstk pku rdpid rdpru invpcid mwaitx clzero clflushopt clwb wbnoinvd fsgsbase xsave xsavec xsaveopt xsaves fxsr "
    "rdrnd rdseed lwp tbm sse4a ptwrite waitpkg serialize hreset uintr tsxldtrk rtm cldemote movdiri movdir64b pconfig "
    "sgx enqcmd usermsr kl widekl prefetchi invlpgb".split()
)


# LLVM's names of the features that the kernel reports.
_REPORTED = frozenset(
    "64bit adx aes amx-bf16 amx-int8 amx-tile avx avx2 avx512bf16 avx512bitalg avx512bw avx512cd avx512dq avx512f "
    "avx512fp16 avx512ifma avx512vbmi avx512vbmi2 avx512vl avx512vnni avx512vp2intersect avx512vpopcntdq avxvnni bmi "
    "bmi2 cmov crc32 cx16 cx8 evex512 f16c fma fma4 gfni lzcnt mmx movbe pclmul popcnt prfchw sahf sha sse sse2 sse3 "
    "sse4.1 sse4.2 ssse3 vaes vpclmulqdq xop".split()
) | {*_ARM, "aes", "bf16", "bti", "i8mm", "pauth", "sha2", "sm4", "ssbs", "sve", "sve2"}


_ASK_FOR_TILES = 158, 0x1023, 18  # arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA


def machine_name() -> str:
    """Return the machine's name: `x86_64`, `aarch64`, ..."""
    name = platform.machine()
    return {"AMD64": "x86_64", "arm64": "aarch64"}.get(name, name)


def missing_features(features: Iterable[str], cpuinfo: Path = Path("/proc/cpuinfo")) -> list[str]:
    """Return the features, in LLVM's names, that the processor lacks; none if the system does not report features."""
    flags = cpu_flags(cpuinfo)
    if not flags:
        return []
    names: Mapping[str, str] = _ARM if machine_name() == "aarch64" else _X86
    wanted = {feature: names.get(feature, feature.replace(".", "_").replace("-", "_")) for feature in needed(features)}
    return [feature for feature, flag in wanted.items() if flag not in flags]


def unreported(features: Iterable[str], cpuinfo: Path = Path("/proc/cpuinfo")) -> list[str]:
    """Return the features, in LLVM's names, that a loader could not find on this processor.

    If the system reports no features, as without /proc: those that no system reports.
    """
    if cpu_flags(cpuinfo):
        return missing_features(features, cpuinfo)
    return [feature for feature in needed(features) if feature not in _REPORTED]


def needed(features: Iterable[str]) -> list[str]:
    """Return the features, in LLVM's names, that code may use."""
    plain = (feature.removeprefix("+") for feature in features)
    return [feature for feature in plain if not feature.startswith("-") and feature not in _UNUSED]


def cpu_flags(cpuinfo: Path) -> frozenset[str]:
    """Return the features that the system reports, in its own names; none if it reports none."""
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return frozenset()
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip().lower() in ("flags", "features"):
            return frozenset(value.split())
    return frozenset()


def refused_tiles() -> str:
    """Ask the system for tile registers (AMX) for this process; return why it refuses, or an empty text."""
    code = ctypes.CDLL(None, use_errno=True).syscall(*_ASK_FOR_TILES) if machine_name() == "x86_64" else -1
    return "" if code == 0 else errno.errorcode.get(ctypes.get_errno(), "no such registers")


@cache
def memory() -> int:
    """Return the bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def default_threads() -> int:
    """Return OMP_NUM_THREADS if it is a number, else the processors that affinity and cgroup quota allow."""
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if asked.isdecimal() and int(asked) > 0:
        return int(asked)
    processors = len(os.sched_getaffinity(0))
    quota = cgroup_quota()
    return max(1, processors if quota is None else min(processors, int(quota)))


def cgroup_quota(proc: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> float | None:
    """Return the processors' worth of time that the control groups allow; None without a limit."""
    try:
        lines = proc.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    limits: list[float] = []
    for line in lines:
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if not controllers:
            bases = [root, root / "unified"]
        elif "cpu" in controllers.split(","):
            bases = [root / controllers, root / "cpu"]
        else:
            continue
        for base in bases:
            limits += _quotas_up(base, path)
    return min(limits, default=None)


def _quotas_up(base: Path, path: str) -> list[float]:
    """Return the limits of the group and of its parents; in a container only the outermost may be visible."""
    parts = [part for part in path.split("/") if part not in ("", "..")]
    groups = [base.joinpath(*parts[:n]) for n in range(len(parts) + 1)]
    return [limit for limit in map(_group_quota, groups) if limit is not None]


def _group_quota(group: Path) -> float | None:
    try:
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text(encoding="utf-8").split()
        else:
            quota = (group / "cpu.cfs_quota_us").read_text(encoding="utf-8").strip()
            period = (group / "cpu.cfs_period_us").read_text(encoding="utf-8").strip()
        return int(quota) / int(period) if quota != "max" and int(quota) > 0 and int(period) > 0 else None
    except (OSError, ValueError):
        return None
