"""System calls made in another process, as code that an attacker has brought into it could make them."""

import contextlib
import ctypes
import errno
import os
import signal

_PTRACE = {"step": 9, "attach": 16, "detach": 17, "registers": 12, "set": 13}  # sys/ptrace.h
_SYSCALL = b"\x0f\x05"  # the instruction of x86-64
_BELOW = 4096  # bytes below the stack's end that hold the texts meanwhile
_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long

NUMBERS = {  # of x86-64
    "read": 0, "openat": 257, "close": 3, "getpid": 39, "socket": 41,
    "execve": 59, "kill": 62, "ptrace": 101, "setuid": 105, "setgid": 106, "setgroups": 116, "setresuid": 117,
    "personality": 135, "pivot_root": 155, "chroot": 161, "mount": 165, "umount2": 166, "swapon": 167, "reboot": 169,
    "sethostname": 170, "init_module": 175, "mknod": 133, "symlink": 88, "setxattr": 188, "tkill": 200,
    "io_setup": 206, "clock_settime": 227, "add_key": 248, "keyctl": 250, "inotify_init": 253, "unshare": 272,
    "perf_event_open": 298, "fanotify_init": 300, "open_by_handle_at": 304, "setns": 308, "process_vm_readv": 310,
    "process_vm_writev": 311, "finit_module": 313, "memfd_create": 319, "kexec_file_load": 320, "bpf": 321,
    "execveat": 322, "userfaultfd": 323, "io_uring_setup": 425, "open_tree": 428, "move_mount": 429, "fsopen": 430,
    "pidfd_open": 434, "clone3": 435, "pidfd_getfd": 438, "landlock_create_ruleset": 444, "memfd_secret": 447}


class _Registers(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in (
        "r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base ds es "
        "fs gs").split()]


def _ptrace(request, pid, address=None, data=None):
    if _libc.ptrace(_PTRACE[request], pid, address, data) == -1:
        raise OSError(ctypes.get_errno(), f"ptrace {request}: {os.strerror(ctypes.get_errno())}")


class Injected:
    """Stops the first thread of a process while the block runs. The process notices nothing of the calls."""

    def __init__(self, pid):
        self._pid = pid

    def __enter__(self):
        _ptrace("attach", self._pid)
        os.waitpid(self._pid, 0)
        try:
            self._saved = self._registers()
            self._memory = os.open(f"/proc/{self._pid}/mem", os.O_RDWR)
            self._instruction = self._find_instruction()
        except BaseException:
            _ptrace("detach", self._pid)
            raise
        return self

    def __exit__(self, *_):
        self._set(self._saved)
        os.close(self._memory)
        _ptrace("detach", self._pid)

    def _registers(self):
        registers = _Registers()
        _ptrace("registers", self._pid, None, ctypes.byref(registers))
        return registers

    def _set(self, registers):
        _ptrace("set", self._pid, None, ctypes.byref(registers))

    def _find_instruction(self):
        """A process that waits stands behind the instruction."""
        before = self._saved.rip - len(_SYSCALL)
        if os.pread(self._memory, len(_SYSCALL), before) != _SYSCALL:
            raise RuntimeError(f"process {self._pid} does not wait in a system call")
        return before

    def call(self, name, *arguments):
        """The result of a call: a number, or the name of an errno. An argument is a number or a text."""
        registers = _Registers.from_buffer_copy(self._saved)
        texts, place = [], self._saved.rsp - _BELOW
        values = []
        for argument in arguments:
            if isinstance(argument, str):
                texts.append((place, argument.encode() + b"\0"))
                values.append(place)
                place += len(texts[-1][1])
            else:
                values.append(argument & (1 << 64) - 1)
        values += [0] * (6 - len(values))
        registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9 = values
        # orig_rax: it is not in a system call that could be begun again.
        registers.rax, registers.orig_rax, registers.rip = NUMBERS[name], (1 << 64) - 1, self._instruction
        kept = [(at, os.pread(self._memory, len(text), at)) for at, text in texts]
        with contextlib.ExitStack() as stack:
            for at, before in kept:
                stack.callback(os.pwrite, self._memory, before, at)
            for at, text in texts:
                os.pwrite(self._memory, text, at)
            self._set(registers)
            self._step()
            result = ctypes.c_longlong(self._registers().rax).value
        return result if result >= 0 else _name_of(-result)

    def _step(self):
        """Signals that come meanwhile are not for the daemon, which has none but those that end or reload it."""
        _ptrace("step", self._pid)
        _, status = os.waitpid(self._pid, 0)
        if not os.WIFSTOPPED(status) or os.WSTOPSIG(status) != signal.SIGTRAP:
            raise RuntimeError(f"process {self._pid}: {status:#x} instead of a step")


def _name_of(number):
    return errno.errorcode.get(number, str(number))
