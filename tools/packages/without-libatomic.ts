// A Node that needs no libatomic: the one function that it takes from there is put into its own code.
import { type ProgramFile, type Relocation, readProgram } from "./elf-program.ts";
import type { Architecture } from "./package-build.ts";

/**
 * V8 exchanges eight bytes with it, at addresses that eight divides. Clang makes that a call where the type
 * promises four alone. Many machines lack the library, and a client as one file has to run on them.
 */
const FUNCTION = "__atomic_compare_exchange";
const LIBRARY = "libatomic.so.1";

/**
 * Rewrites a program for Linux in place: the function `__atomic_compare_exchange` for eight bytes takes the room of its own
 * stub, and of stubs' halves that a program with BIND_NOW never runs. The library is not named any more. Throws
 * where the program needs anything else of it, or calls the function for another size.
 */
export function withoutLibatomic(bytes: Buffer, architecture: Architecture): void {
  const program = readProgram(bytes);
  if (!program.isBoundAtStart) throw new Error("the program resolves functions while it runs");
  const { offset, index, slot } = onlyUse(program);
  const stub = program.stubs(architecture).find((one) => one.slot === slot);
  if (stub === undefined) throw new Error(`there is no stub of ${FUNCTION}`);
  requireEightBytes(program, architecture, stub.at);
  if (architecture === "amd64") writeAmd64(bytes, stub.at);
  else writeArm64(bytes, stub.at, index);
  // No function to look up: a relocation of the type "none".
  bytes.writeBigUInt64LE(0n, offset + 8);
  program.removeNeeded(LIBRARY);
}

/** Where the function's address is put at the start; throws where the program uses more of the library. */
function onlyUse(program: ProgramFile): Relocation {
  const used = program.relocations.filter(({ library }) => library === LIBRARY);
  const [only] = used;
  if (only !== undefined && used.length === 1 && only.isStub && only.name === FUNCTION) return only;
  const names = used.map(({ name }) => name).join(", ");
  throw new Error(
    `of ${LIBRARY} the program uses ${names === "" ? "nothing" : names}, not ${FUNCTION} alone`,
  );
}

/** Each call is preceded by the size as its first argument. */
function requireEightBytes(program: ProgramFile, architecture: Architecture, stub: number): void {
  const { bytes, code } = program;
  const calls: number[] = [];
  let eights = 0;
  if (architecture === "amd64") {
    // call rel32, and mov $8,%edi before it
    for (
      let at = bytes.indexOf(0xe8, code.start);
      at !== -1 && at < code.end;
      at = bytes.indexOf(0xe8, at + 1)
    ) {
      if (at + 5 + bytes.readInt32LE(at + 1) !== stub) continue;
      calls.push(at);
      if (bytes.subarray(at - 64, at).includes(Buffer.from("bf08000000", "hex"))) eights += 1;
    }
  } else {
    // bl, and mov w0,#8 before it
    for (let at = code.start; at < code.end; at += 4) {
      const word = bytes.readUInt32LE(at);
      if (word >>> 26 !== 0x25 || at + ((word << 6) >> 4) !== stub) continue;
      calls.push(at);
      if (bytes.subarray(at - 64, at).includes(Buffer.from("00018052", "hex"))) eights += 1;
    }
  }
  if (calls.length === 0 || eights !== calls.length) {
    throw new Error(`${eights} of ${calls.length} calls of ${FUNCTION} are seen to be for eight bytes`);
  }
}

/** Writes the function over a stub for x64: (rdi: size, rsi: place, rdx: expected, rcx: desired) → al. Throws where no stub follows. */
export function writeAmd64(bytes: Buffer, stub: number): void {
  // The second half of each stub is for programs that resolve functions while they run.
  const next = stub + 16;
  if (bytes.readUInt16LE(next) !== 0x25ff || bytes[next + 6] !== 0x68) throw new Error("no stub follows");
  const code = [
    "488b02", // mov (%rdx),%rax
    "488b09", // mov (%rcx),%rcx
    "f0480fb10e", // lock cmpxchg %rcx,(%rsi)
    "488902", // mov %rax,(%rdx)
    "eb06", // jmp to the rest
  ];
  Buffer.from(code.join(""), "hex").copy(bytes, stub);
  // sete %al; ret
  Buffer.from("0f94c0c3", "hex").copy(bytes, next + 6);
}

/** (x0: size, x1: place, x2: expected, x3: desired) → w0 */
function writeArm64(bytes: Buffer, stub: number, index: number): void {
  // The first stub, of eight words, is for programs that resolve functions while they run.
  const first = stub - 16 * index - 32;
  if (bytes.readUInt32LE(first) !== 0xa9bf7bf0) throw new Error("the first stub is not where it should be");
  const branch = 0x14000000 + (((first - (stub + 8)) >> 2) & 0x3ffffff);
  // ldr x8,[x2]; ldr x9,[x3]; b first
  for (const [at, word] of [0xf9400048, 0xf9400069, branch].entries())
    bytes.writeUInt32LE(word, stub + 4 * at);
  const code = [
    0xc85ffc2a, // ldaxr x10,[x1]
    0xeb08015f, // cmp x10,x8
    0x54000061, // b.ne to str
    0xc80bfc29, // stlxr w11,x9,[x1]
    0x35ffff8b, // cbnz w11, to ldaxr
    0xf900004a, // str x10,[x2]
    0x1a9f17e0, // cset w0,eq
    0xd65f03c0, // ret
  ];
  for (const [at, word] of code.entries()) bytes.writeUInt32LE(word, first + 4 * at);
}
