# Traces a running process's system calls on files below one directory, and kills it or makes one call fail.
#
# It can also stop the process before and after each of these calls, and copy the directory.
#
# usage: tracer.py PID PLAN   (PLAN is JSON, see traced-process.ts)
# Prints "attached" once every thread is traced, and at the end the calls as JSON, one a line.
# strace counts calls by thread and cannot shorten a write; here all threads share one count, in the order of
# their calls. The process gets a seccomp filter, so that only the calls in question stop it: a thread that
# waits and wakes costs nothing.
import ctypes
import errno
import json
import os
import signal
import struct
import sys
import time

from copies import Copies
from seccomp_filter import install

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long

PTRACE_POKEUSER, PTRACE_SYSCALL, PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_LISTEN = 6, 24, 0x4206, 0x4207, 0x4208
PTRACE_CONT, PTRACE_GET_SYSCALL_INFO = 7, 0x420E
OPTIONS = 1 | 8 | 0x80 | 0x100000  # TRACESYSGOOD, TRACECLONE, TRACESECCOMP, EXITKILL
EVENT_STOP, EVENT_SECCOMP = 128, 7
WALL = 0x40000000
# Offsets in struct user of x86-64.
RDX, ORIG_RAX, RAX = 96, 120, 80

# name: (number, what it takes: "fd", "path" or "at", index of a length that can be shortened)
CALLS = {
    "read": (0, "fd", 2), "write": (1, "fd", 2), "open": (2, "path", None), "close": (3, "fd", None),
    "pread64": (17, "fd", 2), "pwrite64": (18, "fd", 2), "readv": (19, "fd", "vector"), "writev": (20, "fd", "vector"),
    "fsync": (74, "fd", None), "fdatasync": (75, "fd", None), "truncate": (76, "path", None),
    "ftruncate": (77, "fd", None), "rename": (82, "path", None), "mkdir": (83, "path", None),
    "rmdir": (84, "path", None), "creat": (85, "path", None), "link": (86, "path", None), "unlink": (87, "path", None),
    "symlink": (88, "path", None), "chmod": (90, "path", None), "fchmod": (91, "fd", None),
    "openat": (257, "at", None), "mkdirat": (258, "at", None), "unlinkat": (263, "at", None),
    "renameat": (264, "at", None), "linkat": (265, "at", None), "fallocate": (285, "fd", None),
    "preadv": (295, "fd", "vector"), "pwritev": (296, "fd", "vector"), "renameat2": (316, "at", None),
    "copy_file_range": (326, "fd", None), "pwritev2": (328, "fd", "vector"),
}
READING = {"read", "pread64", "readv", "preadv", "close"}
OPENING = {"open", "openat"}
O_DIRECTORY = 0o200000
O_CREATES = 0o100 | 0o1000  # O_CREAT, O_TRUNC


def ptrace(request, tid, address=0, data=0):
    result = libc.ptrace(request, tid, ctypes.c_void_p(address), ctypes.c_void_p(data))
    if result < 0:
        raise OSError(ctypes.get_errno(), "ptrace")
    return result


class Tracer:
    def __init__(self, pid, plan):
        self.pid = pid
        self.directory = plan["directory"]
        self.with_reads = plan.get("withReads", False)
        self.with_listings = plan.get("withListings", False)
        self.tells = plan.get("tells", False)
        self.kill = plan.get("kill")
        self.fault = plan.get("fault")
        self.copies = Copies(self.directory, plan["copies"]) if "copies" in plan else None
        self.by_number = {
            number: (name, kind, length)
            for name, (number, kind, length) in CALLS.items()
            if self.with_reads or name not in READING
        }
        self.count = 0
        self.log = []
        self.inside = {}  # tid: the watched call that it is in
        self.seen = set()
        self.ended = set()
        self.reports = []  # (tid, status) of threads that were stopped while another one was held still
        self.told = 0
        self.held = []  # (deadline, tid)
        self.info = ctypes.create_string_buffer(88)
        self.memory = os.open(f"/proc/{pid}/mem", os.O_RDWR)
        self.faulty_name = None
        self.made = 0

    def attach(self):
        for _ in range(2):  # once more for threads that were begun meanwhile
            for entry in os.listdir(f"/proc/{self.pid}/task"):
                tid = int(entry)
                if tid in self.seen:
                    continue
                try:
                    ptrace(PTRACE_SEIZE, tid, 0, OPTIONS)
                    ptrace(PTRACE_INTERRUPT, tid)
                except OSError:
                    continue
                self.seen.add(tid)
        waiting = set(self.seen)
        while waiting:
            tid, status = os.waitpid(-1, WALL)
            if os.WIFSTOPPED(status):
                self.seen.add(tid)
                if tid != self.pid:
                    self.go_on(tid)
            waiting.discard(tid)
        install(ptrace, self.pid, self.memory, self.by_number)
        self.go_on(self.pid)
        sys.stdout.write("attached\n")
        sys.stdout.flush()

    def go_on(self, tid, signal_number=0):
        """To the end of the call that is looked at, or else to the next one that the filter stops."""
        ptrace(PTRACE_SYSCALL if tid in self.inside else PTRACE_CONT, tid, 0, signal_number)

    def run(self):
        while True:
            try:
                if self.reports:
                    tid, status = self.reports.pop(0)
                elif self.held:
                    tid, status = os.waitpid(-1, WALL | os.WNOHANG)
                    if tid == 0:
                        self.release()
                        time.sleep(0.005)
                        continue
                else:
                    tid, status = os.waitpid(-1, WALL)
            except ChildProcessError:
                return
            if not os.WIFSTOPPED(status):
                self.ended.add(tid)
                if tid == self.pid:
                    return
                continue
            try:
                self.stopped(tid, status)
            except OSError as error:
                if error.errno != errno.ESRCH:
                    raise

    def release(self):
        now = time.monotonic()
        for held in [held for held in self.held if held[0] <= now]:
            self.held.remove(held)
            try:
                self.go_on(held[1])
            except OSError:
                pass

    def stopped(self, tid, status):
        signal_number = os.WSTOPSIG(status)
        event = status >> 16
        if signal_number == (signal.SIGTRAP | 0x80) or event == EVENT_SECCOMP:
            if self.syscall(tid):
                self.go_on(tid)
        elif event == EVENT_STOP:
            if signal_number in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU) and tid in self.seen:
                ptrace(PTRACE_LISTEN, tid)
            else:
                self.seen.add(tid)
                self.ended.discard(tid)
                self.go_on(tid)
        elif event != 0 or signal_number == signal.SIGSTOP:
            # A stop of all processes stops the tracer, too; the signal to go on may miss a traced one.
            self.go_on(tid)
        else:
            self.go_on(tid, signal_number)

    def syscall(self, tid):
        """Answers whether the thread goes on."""
        ptrace(PTRACE_GET_SYSCALL_INFO, tid, 88, ctypes.addressof(self.info))
        raw = self.info.raw
        if raw[0] == 3:  # before a call that the filter stops
            number = struct.unpack_from("<Q", raw, 24)[0]
            known = self.by_number.get(number)
            return True if known is None else self.entry(tid, known, struct.unpack_from("<6Q", raw, 32))
        if raw[0] == 2:
            call = self.inside.pop(tid, None)
            if call is not None:
                return self.exit(tid, call, struct.unpack_from("<q", raw, 24)[0])
        return True

    def entry(self, tid, known, arguments):
        name, kind, length = known
        path = self.path_of(tid, name, kind, arguments)
        if path is None:
            return True
        self.count += 1
        call = {"n": self.count, "tid": tid, "name": name, "path": path}
        if name.startswith(("read", "write", "pread", "pwrite")):
            call["length"] = arguments[2]
        self.log.append(call)
        self.inside[tid] = call
        self.copy(tid, call, "entry")
        if self.kill is not None and self.kill["at"] == self.count and self.kill["when"] == "entry":
            ptrace(PTRACE_POKEUSER, tid, ORIG_RAX, 2**64 - 1)
            os.kill(self.pid, signal.SIGKILL)
            call["killed"] = "entry"
            return True
        return self.disturb(tid, call, length, arguments)

    def disturb(self, tid, call, length, arguments):
        fault = self.fault
        # Output of the process is no call of the storage: the fault falls on the next call.
        if fault is None or call["path"] == "(told)":
            return True
        if self.faulty_name is None and self.count >= fault["at"]:
            self.faulty_name = call["name"]
        elif not (fault.get("forever") and self.faulty_name == call["name"]) or self.made >= fault.get("times", self.made + 1):
            return True
        self.made += 1
        if "errno" in fault:
            call["injected"] = -fault["errno"]
            ptrace(PTRACE_POKEUSER, tid, ORIG_RAX, 2**64 - 1)
        elif "delayMs" in fault:
            call["delayed"] = True
            self.held.append((time.monotonic() + fault["delayMs"] / 1000, tid))
            return False
        elif fault.get("short"):
            if length == "vector":
                # The first piece only, and half of it; the program's list stays as it was.
                base, first = struct.unpack("<QQ", os.pread(self.memory, 16, arguments[1]))
                if first > 1:
                    os.pwrite(self.memory, struct.pack("<Q", first // 2), arguments[1] + 8)
                    call["restore"] = (arguments[1] + 8, first)
                    ptrace(PTRACE_POKEUSER, tid, RDX, 1)
                    call["shortened"] = first // 2
            elif length is not None and arguments[2] > 1:
                ptrace(PTRACE_POKEUSER, tid, RDX, arguments[2] // 2)
                call["shortened"] = arguments[2] // 2
        return True

    def exit(self, tid, call, result):
        if "restore" in call:
            address, first = call.pop("restore")
            os.pwrite(self.memory, struct.pack("<Q", first), address)
        if "injected" in call:
            ptrace(PTRACE_POKEUSER, tid, RAX, call["injected"] % 2**64)
            result = call["injected"]
        call["result"] = result
        call["end"] = self.count
        if call["path"] == "(told)" and result > 0:
            self.told += 1
        self.copy(tid, call, "exit")
        if self.kill is not None and self.kill["at"] == call["n"] and self.kill["when"] == "exit":
            os.kill(self.pid, signal.SIGKILL)
            call["killed"] = "exit"
        return True

    def copy(self, tid, call, when):
        """Copies what a kill at this point would leave: the kernel keeps what a dead process wrote, and nothing else of it."""
        if self.copies is None:
            return
        self.hold_still(tid)
        call.setdefault("copies", {})[when] = {"listing": self.copies.take(), "told": self.told + self.told_unseen()}

    def hold_still(self, but):
        """Stops all other threads, each where it is, or at the end of the call that it is in; what they report is looked at later."""
        moving = set()
        for tid in self.seen - self.ended - {but} - {tid for tid, _ in self.reports}:
            try:
                ptrace(PTRACE_INTERRUPT, tid)
                moving.add(tid)
            except OSError:
                pass
        while moving:
            tid, status = os.waitpid(-1, WALL)
            moving.discard(tid)
            self.reports.append((tid, status))

    def told_unseen(self):
        """What threads have told in calls whose end they have reported and nobody has looked at."""
        told = 0
        for tid, status in self.reports:
            if os.WIFSTOPPED(status) and os.WSTOPSIG(status) == (signal.SIGTRAP | 0x80):
                if self.inside.get(tid, {}).get("path") == "(told)":
                    ptrace(PTRACE_GET_SYSCALL_INFO, tid, 88, ctypes.addressof(self.info))
                    told += self.info.raw[0] == 2
        return told

    def path_of(self, tid, name, kind, arguments):
        """The path below the directory; None when the call does not count."""
        try:
            if kind == "fd":
                if name == "write" and arguments[0] == 1:
                    return "(told)" if self.tells else None
                path = os.readlink(f"/proc/{self.pid}/fd/{arguments[0]}")
                if name == "close" and path.startswith(self.directory) and self.is_listing(arguments[0]):
                    return None
            else:
                if name in OPENING and not self.with_listings and arguments[2 if kind == "at" else 1] & O_DIRECTORY:
                    return None
                if name in OPENING and not self.with_reads and not arguments[2 if kind == "at" else 1] & O_CREATES:
                    return None
                path = self.text(arguments[1 if kind == "at" else 0])
        except OSError:
            return None
        if not path.startswith(self.directory):
            return None
        if name.startswith("rename") or name.startswith("link"):
            to = self.text(arguments[3 if kind == "at" else 1])
            return f"{path[len(self.directory) + 1:]} -> {to[len(self.directory) + 1:]}"
        return path[len(self.directory) + 1:].removesuffix(" (deleted)")

    def is_listing(self, descriptor):
        """Whether a descriptor was opened to list a directory."""
        if self.with_listings:
            return False
        with open(f"/proc/{self.pid}/fdinfo/{descriptor}", encoding="ascii") as lines:
            flags = next(line for line in lines if line.startswith("flags:"))
        return int(flags.split()[1], 8) & O_DIRECTORY != 0

    def text(self, address):
        bytes_read = os.pread(self.memory, 512, address)
        return bytes_read.split(b"\0", 1)[0].decode("utf8", "replace")


def main():
    tracer = Tracer(int(sys.argv[1]), json.loads(sys.argv[2]))
    tracer.attach()
    tracer.run()
    sys.stdout.write("".join(json.dumps(call) + "\n" for call in tracer.log))
    sys.stdout.flush()


main()
