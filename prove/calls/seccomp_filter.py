# Gives a traced process a seccomp filter, so that only some of its calls stop it for the tracer.
#
# Only the process itself can set a filter: the next call of its main thread is replaced by the two that
# set it, and made afterwards.
import ctypes
import os
import signal
import struct

PTRACE_GETREGS, PTRACE_SETREGS, PTRACE_SYSCALL, PTRACE_GET_SYSCALL_INFO = 12, 13, 24, 0x420E
WALL = 0x40000000
ENTRY = 1
# Places in struct user_regs_struct of x86-64.
REGISTERS = 27
R10, R8, RAX, RDX, RSI, RDI, ORIG_RAX, RIP, RSP = 7, 9, 10, 12, 13, 14, 15, 16, 19
PRCTL, SET_NO_NEW_PRIVS = 157, 38
SECCOMP, SET_MODE_FILTER, ALL_THREADS = 317, 1, 1
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
OFFSET_OF_NUMBER, OFFSET_OF_MACHINE, X86_64 = 0, 4, 0xC000003E
ALLOW, TRACE = 0x7FFF0000, 0x7FF00000
# Below the stack pointer of a thread in a call: unused memory.
BELOW_STACK = 4096


def install(ptrace, tid, memory, numbers):
    """For the main thread, which is stopped, and thereby for all. Raises OSError where the kernel refuses."""
    program = program_for(sorted(numbers))
    registers = at_next_call(ptrace, tid)
    place = registers[RSP] - BELOW_STACK
    os.pwrite(memory, struct.pack("<HxxxxxxQ", len(program) // 8, place + 16) + program, place)
    call(ptrace, tid, PRCTL, (SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    at_next_call(ptrace, tid)
    call(ptrace, tid, SECCOMP, (SET_MODE_FILTER, ALL_THREADS, place, 0, 0))


def program_for(numbers):
    steps = [(LOAD, 0, 0, OFFSET_OF_MACHINE), (JUMP_IF_EQUAL, 1, 0, X86_64), (RETURN, 0, 0, ALLOW)]
    steps.append((LOAD, 0, 0, OFFSET_OF_NUMBER))
    for index, number in enumerate(numbers):
        steps.append((JUMP_IF_EQUAL, len(numbers) - index, 0, number))
    steps += [(RETURN, 0, 0, ALLOW), (RETURN, 0, 0, TRACE)]
    return b"".join(struct.pack("<HBBI", *step) for step in steps)


def at_next_call(ptrace, tid):
    """Lets the thread go on until it is about to make a call."""
    info = ctypes.create_string_buffer(88)
    while True:
        stop_after(ptrace, tid)
        ptrace(PTRACE_GET_SYSCALL_INFO, tid, 88, ctypes.addressof(info))
        if info.raw[0] == ENTRY:
            return registers_of(ptrace, tid)


def call(ptrace, tid, number, arguments):
    """Makes another call instead of the one that the thread is about to make, and puts it right before that one again."""
    before = registers_of(ptrace, tid)
    instead = list(before)
    instead[ORIG_RAX] = number
    instead[RDI], instead[RSI], instead[RDX], instead[R10], instead[R8] = arguments
    set_registers(ptrace, tid, instead)
    stop_after(ptrace, tid)
    result = ctypes.c_long(registers_of(ptrace, tid)[RAX]).value
    again = list(before)
    again[RAX] = before[ORIG_RAX]
    again[ORIG_RAX] = 2**64 - 1
    again[RIP] -= 2  # the length of the instruction
    set_registers(ptrace, tid, again)
    if result != 0:
        raise OSError(abs(result), f"the process could not make call {number}")


def stop_after(ptrace, tid):
    ptrace(PTRACE_SYSCALL, tid)
    _, status = os.waitpid(tid, WALL)
    while os.WIFSTOPPED(status) and os.WSTOPSIG(status) != (signal.SIGTRAP | 0x80):
        ptrace(PTRACE_SYSCALL, tid)
        _, status = os.waitpid(tid, WALL)


def registers_of(ptrace, tid):
    buffer = ctypes.create_string_buffer(8 * REGISTERS)
    ptrace(PTRACE_GETREGS, tid, 0, ctypes.addressof(buffer))
    return struct.unpack(f"<{REGISTERS}Q", buffer.raw)


def set_registers(ptrace, tid, registers):
    buffer = ctypes.create_string_buffer(struct.pack(f"<{REGISTERS}Q", *registers), 8 * REGISTERS)
    ptrace(PTRACE_SETREGS, tid, 0, ctypes.addressof(buffer))
