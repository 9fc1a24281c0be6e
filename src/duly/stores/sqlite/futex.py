"""Sleeping until another process rings: Linux's futex on a word of shared memory. Elsewhere one has to poll.

Knows nothing of who rings and why. One may wake for no reason; a ring after the look at the word is not slept through.
"""

import ctypes
import errno
import mmap
import platform
import sys
from collections.abc import Callable
from typing import Final

_WAIT: Final = 0
_WAKE: Final = 1
_ALL: Final = 2**31 - 1
# The number of the call by machine; what is not here polls. All of these have 64-bit longs.
_CALLS: Final = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "ppc64le": 221, "s390x": 238, "loongarch64": 98}
_NORMAL: Final = {errno.EINTR, errno.EAGAIN, errno.ETIMEDOUT}
"""Anything else is a sandbox, or a kernel that is none of Linux."""


class _Time(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def _system_call() -> Callable[..., int] | None:
    if sys.platform != "linux" or sys.maxsize < 2**32:
        return None
    call = getattr(ctypes.CDLL(None, use_errno=True), "syscall", None)
    if call is not None:
        long, address = ctypes.c_long, ctypes.c_void_p
        call.restype, call.argtypes = long, (long, address, long, long, address, address, long)
    return call


_call: Final = _system_call()
_number: Final = _CALLS.get(platform.machine())


class Futex:
    """The first 32 bits of a shared mapping, which others change before they ring."""

    def __init__(self, shared: mmap.mmap) -> None:
        # Keeps the mapping alive, also for a thread that sleeps on it.
        self._word = ctypes.c_uint32.from_buffer(shared)
        self._address = ctypes.addressof(self._word)
        self._usable = _call is not None and _number is not None

    @property
    def value(self) -> int:
        return self._word.value

    def wait(self, value: int, seconds: float) -> bool:
        """Sleep until somebody rings, if the word still is `value`, and at most so long; False where that cannot be."""
        if _call is None or not self._usable:
            return False
        whole, part = divmod(seconds, 1)
        limit = ctypes.byref(_Time(int(whole), int(part * 1e9)))
        if _call(_number, self._address, _WAIT, value, limit, None, 0) == -1:
            self._usable = ctypes.get_errno() in _NORMAL
        return self._usable

    def ring(self) -> None:
        """Wake everybody who sleeps on the word, in whatever process."""
        if _call is not None and self._usable:
            _call(_number, self._address, _WAKE, _ALL, None, None, 0)
