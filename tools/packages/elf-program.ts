// Reads what a program for Linux asks the loader for, and takes one library out of that.
import type { Architecture } from "./package-build.ts";

const LOADED = 1;
const DYNAMIC = 2;
const EXECUTABLE = 1;
/** Tags of the dynamic section. */
const TAG = {
  end: 0n,
  needed: 1n,
  stubBytes: 2n,
  text: 5n,
  symbols: 6n,
  relocations: 7n,
  relocationBytes: 8n,
  stubs: 23n,
  flags: 30n,
  versions: 0x6ffffff0n,
  wanted: 0x6ffffffen,
  wantedCount: 0x6fffffffn,
} as const;
const BIND_NOW = 8n;
const SECTION_WANTED = 0x6ffffffe;

/** Something that the loader looks up and puts into the program. */
export interface Relocation {
  /** Where it stands in the file. */
  readonly offset: number;
  /** Which one it is of its table. */
  readonly index: number;
  /** True for a function that is called by a stub. */
  readonly isStub: boolean;
  /** Where the address is put. */
  readonly slot: number;
  readonly name: string;
  /** The library that has it, where the program says that. */
  readonly library: string | undefined;
}

/** A stub that jumps to a function of a library. */
export interface Stub {
  /** Where it stands in the file. */
  readonly at: number;
  /** Where it reads the address. */
  readonly slot: number;
}

/** A program of 64 bits, little-endian. */
export interface ProgramFile {
  readonly bytes: Buffer;
  /** True when all functions are looked up before the program begins. */
  readonly isBoundAtStart: boolean;
  readonly relocations: readonly Relocation[];
  /** Where its code stands in the file. */
  readonly code: { readonly start: number; readonly end: number };
  /** All stubs. */
  stubs(architecture: Architecture): Stub[];
  /** Has the loader neither look for this library nor for its versions. */
  removeNeeded(library: string): void;
}

interface Part {
  readonly type: number;
  readonly flags: number;
  readonly offset: number;
  readonly address: number;
  readonly size: number;
}

/** The parts of a library whose versions a program wants. */
interface Wanted {
  readonly offset: number;
  readonly next: number;
  readonly library: string;
  readonly versions: readonly number[];
}

/** Reads a program. Throws for anything else. */
export function readProgram(bytes: Buffer): ProgramFile {
  if (bytes.readUInt32BE(0) !== 0x7f454c46 || bytes[4] !== 2 || bytes[5] !== 1)
    throw new Error("that is no program of 64 bits");
  const parts = readParts(bytes);
  const at = (address: number): number => {
    const part = parts.find(
      (one) => one.type === LOADED && address >= one.address && address < one.address + one.size,
    );
    if (part === undefined) throw new Error("an address of the program is outside of it");
    return address - part.address + part.offset;
  };
  const dynamic = parts.find(({ type }) => type === DYNAMIC);
  const code = parts.find(({ type, flags }) => type === LOADED && (flags & EXECUTABLE) !== 0);
  if (dynamic === undefined || code === undefined) throw new Error("the program needs no loader");
  const entries: { readonly tag: bigint; readonly value: bigint; readonly offset: number }[] = [];
  for (let offset = dynamic.offset; ; offset += 16) {
    const tag = bytes.readBigUInt64LE(offset);
    entries.push({ tag, value: bytes.readBigUInt64LE(offset + 8), offset });
    if (tag === TAG.end) break;
  }
  const entry = (tag: bigint): { readonly value: bigint; readonly offset: number } => {
    const found = entries.find((one) => one.tag === tag);
    if (found === undefined) throw new Error(`the program's dynamic section lacks ${tag}`);
    return found;
  };
  const place = (tag: bigint): number => at(Number(entry(tag).value));
  const texts = place(TAG.text);
  const text = (offset: bigint | number): string => {
    const start = texts + Number(offset);
    return bytes.toString("latin1", start, bytes.indexOf(0, start));
  };
  const wanted = readWanted(bytes, place(TAG.wanted), text);
  const tables = { symbols: place(TAG.symbols), versions: place(TAG.versions), wanted, text };
  const table = (start: bigint, size: bigint, isStub: boolean): Relocation[] =>
    readRelocations(bytes, { start: place(start), size: Number(entry(size).value), isStub }, tables);
  return {
    bytes,
    isBoundAtStart: (entry(TAG.flags).value & BIND_NOW) !== 0n,
    relocations: [
      ...table(TAG.relocations, TAG.relocationBytes, false),
      ...table(TAG.stubs, TAG.stubBytes, true),
    ],
    code: { start: code.offset, end: code.offset + code.size },
    stubs: (architecture) => readStubs(bytes, code, architecture),
    removeNeeded(library) {
      const needed = entries.findIndex(({ tag, value }) => tag === TAG.needed && text(value) === library);
      const which = wanted.findIndex((one) => one.library === library);
      const found = wanted[which];
      if (needed === -1 || found === undefined) throw new Error(`the program does not need ${library}`);
      unlink(bytes, found, wanted[which - 1], entry(TAG.wanted).offset);
      bytes.writeBigUInt64LE(BigInt(wanted.length - 1), entry(TAG.wantedCount).offset + 8);
      shrinkSection(bytes, which === 0 ? found.next : 0);
      // The entries behind it move up, the end among them.
      const start = entries[needed]?.offset ?? 0;
      bytes.copyWithin(start, start + 16, (entries.at(-1)?.offset ?? 0) + 16);
    },
  };
}

function readParts(bytes: Buffer): Part[] {
  const start = Number(bytes.readBigUInt64LE(32));
  const size = bytes.readUInt16LE(54);
  return Array.from({ length: bytes.readUInt16LE(56) }, (_none, index) => {
    const at = start + index * size;
    return {
      type: bytes.readUInt32LE(at),
      flags: bytes.readUInt32LE(at + 4),
      offset: Number(bytes.readBigUInt64LE(at + 8)),
      address: Number(bytes.readBigUInt64LE(at + 16)),
      size: Number(bytes.readBigUInt64LE(at + 32)),
    };
  });
}

function readWanted(bytes: Buffer, start: number, text: (offset: number) => string): Wanted[] {
  const wanted: Wanted[] = [];
  for (let offset = start; ; ) {
    const next = bytes.readUInt32LE(offset + 12);
    const versions: number[] = [];
    let version = offset + bytes.readUInt32LE(offset + 8);
    for (let left = bytes.readUInt16LE(offset + 2); left > 0; left--) {
      versions.push(bytes.readUInt16LE(version + 6));
      version += bytes.readUInt32LE(version + 12);
    }
    wanted.push({ offset, next, library: text(bytes.readUInt32LE(offset + 4)), versions });
    if (next === 0) return wanted;
    offset += next;
  }
}

function readRelocations(
  bytes: Buffer,
  table: { readonly start: number; readonly size: number; readonly isStub: boolean },
  of: {
    readonly symbols: number;
    readonly versions: number;
    readonly wanted: readonly Wanted[];
    readonly text: (offset: number) => string;
  },
): Relocation[] {
  return Array.from({ length: table.size / 24 }, (_none, index) => {
    const offset = table.start + 24 * index;
    const symbol = bytes.readUInt32LE(offset + 12);
    const version = bytes.readUInt16LE(of.versions + 2 * symbol);
    return {
      offset,
      index,
      isStub: table.isStub,
      slot: Number(bytes.readBigUInt64LE(offset)),
      name: symbol === 0 ? "" : of.text(bytes.readUInt32LE(of.symbols + 24 * symbol)),
      library: of.wanted.find(({ versions }) => versions.includes(version))?.library,
    };
  });
}

function readStubs(bytes: Buffer, code: Part, architecture: Architecture): Stub[] {
  const stubs: Stub[] = [];
  const toAddress = code.address - code.offset;
  for (let at = code.offset; at + 16 <= code.offset + code.size; at += 16) {
    const slot =
      architecture === "amd64"
        ? slotOfAmd64(bytes, at, at + toAddress)
        : slotOfArm64(bytes, at, at + toAddress);
    if (slot !== undefined) stubs.push({ at, slot });
  }
  return stubs;
}

/** jmp *slot(%rip) */
function slotOfAmd64(bytes: Buffer, at: number, address: number): number | undefined {
  return bytes.readUInt16LE(at) === 0x25ff ? address + 6 + bytes.readInt32LE(at + 2) : undefined;
}

/** adrp x16, page of the slot; ldr x17,[x16, #rest]; add x16,x16,#rest; br x17 */
function slotOfArm64(bytes: Buffer, at: number, address: number): number | undefined {
  const page = bytes.readUInt32LE(at);
  const load = bytes.readUInt32LE(at + 4);
  if ((page & 0x9f00001f) >>> 0 !== 0x90000010 || (load & 0xffc003ff) >>> 0 !== 0xf9400211) return undefined;
  if (bytes.readUInt32LE(at + 12) !== 0xd61f0220) return undefined;
  const high = ((page << 8) >> 13) * 4 + ((page >>> 29) & 3);
  return Math.floor(address / 4096) * 4096 + high * 4096 + ((load >>> 10) & 0xfff) * 8;
}

/** Takes a library out of the chain of wanted versions. */
function unlink(bytes: Buffer, found: Wanted, before: Wanted | undefined, entry: number): void {
  if (before !== undefined) {
    bytes.writeUInt32LE(found.next === 0 ? 0 : before.next + found.next, before.offset + 12);
  } else {
    bytes.writeBigUInt64LE(bytes.readBigUInt64LE(entry + 8) + BigInt(found.next), entry + 8);
  }
}

/** Keeps the section's header right, which tools read and the loader does not. */
function shrinkSection(bytes: Buffer, by: number): void {
  const start = Number(bytes.readBigUInt64LE(40));
  const size = bytes.readUInt16LE(58);
  for (let left = bytes.readUInt16LE(60), at = start; left > 0; left--, at += size) {
    if (bytes.readUInt32LE(at + 4) !== SECTION_WANTED) continue;
    for (const [offset, change] of [
      [16, by],
      [24, by],
      [32, -by],
    ] as const) {
      bytes.writeBigUInt64LE(bytes.readBigUInt64LE(at + offset) + BigInt(change), at + offset);
    }
    bytes.writeUInt32LE(bytes.readUInt32LE(at + 44) - 1, at + 44);
  }
}
