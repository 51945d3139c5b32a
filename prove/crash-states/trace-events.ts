// Reads strace's record of a process: every call that changes a file or a folder, with its bytes, in order.

/** One call, or the beginning of a flush; paths are absolute. */
export type TraceEvent =
  | { readonly kind: "create"; readonly path: string; readonly truncates: boolean }
  | {
      readonly kind: "write";
      readonly path: string;
      readonly offset: number | undefined;
      readonly data: Buffer;
    }
  | { readonly kind: "truncate"; readonly path: string; readonly length: number }
  /** The flush that ends later does not cover later writes. */
  | { readonly kind: "flush begins"; readonly path: string; readonly thread: string }
  | { readonly kind: "flush ended"; readonly path: string; readonly thread: string }
  | { readonly kind: "rename"; readonly path: string; readonly to: string }
  | { readonly kind: "unlink"; readonly path: string }
  | { readonly kind: "mkdir"; readonly path: string }
  /** A line that the process wrote to its standard output. */
  | { readonly kind: "said"; readonly text: string };

/** What strace is to record. */
export const TRACED_CALLS =
  "openat,open,creat,pwrite64,pwritev,pwritev2,write,writev,fsync,fdatasync,sync_file_range,fallocate,copy_file_range,sendfile,rename,renameat,renameat2,link,linkat,unlink,unlinkat,truncate,ftruncate,mkdir,mkdirat,rmdir";

/** Options of strace that make the record readable by readTrace. */
export const STRACE_OPTIONS: readonly string[] = [
  "-f",
  "--seccomp-bpf",
  "-y",
  "-xx",
  "-s",
  "8000000",
  "-e",
  `trace=${TRACED_CALLS}`,
  // Every sixth flush of each thread is held back before its work: in the record it has begun and not ended
  // while other threads go on. A delay after the work would come after the record of its end. A much shorter
  // period makes slow machines too slow.
  "-e",
  "inject=fsync,fdatasync:delay_enter=15000:when=2+6",
];

const NEWLINE = 0x0a;
const QUOTE = 0x22;

/** Reads a record of a process whose files lie below `root`. Throws at an unknown call. */
export class TraceReader {
  readonly #root: string;
  readonly #begun = new Map<string, Buffer>();
  readonly #events: TraceEvent[] = [];

  constructor(root: string) {
    this.#root = root;
  }

  /** The events of whole lines, in order. */
  read(trace: Buffer): TraceEvent[] {
    for (let at = 0; at < trace.length; ) {
      const end = trace.indexOf(NEWLINE, at);
      if (end < 0) break;
      this.#line(trace.subarray(at, end));
      at = end + 1;
    }
    return this.#events.splice(0);
  }

  #line(line: Buffer): void {
    const space = line.indexOf(0x20);
    const thread = line.toString("latin1", 0, space);
    let start = space;
    while (line[start] === 0x20) start++;
    const call = line.subarray(start);
    const tail = call.toString("latin1", Math.max(0, call.length - 40));
    if (tail.endsWith("<unfinished ...>")) {
      const head = call.subarray(0, call.length - "<unfinished ...>".length);
      this.#begun.set(thread, head);
      if (isFlush(head)) this.#flush("flush begins", head, thread);
      return;
    }
    if (call[0] === 0x3c) {
      const begun = this.#begun.get(thread);
      this.#begun.delete(thread);
      if (begun === undefined) return;
      const rest = call.subarray(call.indexOf("resumed>") + "resumed>".length);
      this.#call(Buffer.concat([begun, rest]), thread, true);
      return;
    }
    this.#call(call, thread, false);
  }

  #flush(kind: "flush begins" | "flush ended", call: Buffer, thread: string): void {
    const path = pathOfDescriptor(call);
    if (this.#isOurs(path)) this.#events.push({ kind, path, thread });
  }

  #call(call: Buffer, thread: string, hadBegun: boolean): void {
    const tail = call.toString("latin1", Math.max(0, call.length - 80));
    if (/= -1 E/.test(tail) || /= \?/.test(tail)) return;
    const name = call.toString("latin1", 0, call.indexOf(0x28));
    switch (name) {
      case "fsync":
      case "fdatasync":
        if (!hadBegun) this.#flush("flush begins", call, thread);
        return this.#flush("flush ended", call, thread);
      case "write":
      case "pwrite64":
      case "pwritev":
        return this.#write(name, call);
      case "openat":
        return this.#open(call);
      case "ftruncate": {
        const path = pathOfDescriptor(call);
        const length = Number(/, (\d+) *\)\s+= 0/.exec(tail)?.[1]);
        if (this.#isOurs(path)) this.#events.push({ kind: "truncate", path, length });
        return;
      }
      case "rename":
      case "unlink":
      case "mkdir":
        return this.#names(name, call);
      default: {
        const paths = [pathOfDescriptor(call), ...stringsOf(call).map(String)];
        if (paths.some((path) => this.#isOurs(path))) throw new Error(`${name} is not understood`);
      }
    }
  }

  #names(name: "rename" | "unlink" | "mkdir", call: Buffer): void {
    const [path = "", to = ""] = stringsOf(call).map(String);
    if (!this.#isOurs(path)) return;
    this.#events.push(name === "rename" ? { kind: name, path, to } : { kind: name, path });
  }

  #open(call: Buffer): void {
    const flags = call.toString("latin1", call.lastIndexOf(QUOTE));
    if (!flags.includes("O_CREAT") && !flags.includes("O_TRUNC")) return;
    const [path = ""] = stringsOf(call).map(String);
    if (this.#isOurs(path)) this.#events.push({ kind: "create", path, truncates: flags.includes("O_TRUNC") });
  }

  #write(name: string, call: Buffer): void {
    if (name === "write" && call.indexOf("write(1<") === 0) {
      this.#events.push({ kind: "said", text: String(stringsOf(call)[0]) });
      return;
    }
    const path = pathOfDescriptor(call);
    if (!this.#isOurs(path)) return;
    const tail = call.toString("latin1", call.lastIndexOf(QUOTE));
    const written = Number(/= (\d+)$/.exec(tail)?.[1]);
    const offset = name === "write" ? undefined : Number(/, (\d+) *\)\s+= \d+$/.exec(tail)?.[1]);
    const data = Buffer.concat(stringsOf(call.subarray(call.indexOf(">") + 1)));
    if (Number.isNaN(offset) || !(written <= data.length))
      throw new Error(`a ${name} is not understood: ${tail}`);
    this.#events.push({ kind: "write", path, offset, data: data.subarray(0, written) });
  }

  /** The WAL's index is rebuilt at every start and never flushed: it is no part of what a crash leaves. */
  #isOurs(path: string): boolean {
    return (path === this.#root || path.startsWith(`${this.#root}/`)) && !path.endsWith("-shm");
  }
}

function isFlush(call: Buffer): boolean {
  const name = call.toString("latin1", 0, 10);
  return name.startsWith("fsync(") || name.startsWith("fdatasync(");
}

/** Returns the path that strace wrote behind the first descriptor. */
function pathOfDescriptor(call: Buffer): string {
  const open = call.indexOf(0x3c);
  const close = call.indexOf(0x3e, open);
  return open < 0 || close < 0 ? "" : unescaped(call, open + 1, close).toString();
}

/** All strings of a call. */
function stringsOf(call: Buffer): Buffer[] {
  const strings: Buffer[] = [];
  for (let at = call.indexOf(QUOTE); at >= 0; ) {
    const end = call.indexOf(QUOTE, at + 1);
    strings.push(unescaped(call, at + 1, end));
    at = call.indexOf(QUOTE, end + 1);
  }
  return strings;
}

const HEX = new Uint8Array(128);
for (let digit = 0; digit < 16; digit++) HEX[digit.toString(16).charCodeAt(0)] = digit;

/** Every byte is written as four characters: backslash, x, two digits. */
function unescaped(text: Buffer, from: number, to: number): Buffer {
  const bytes = Buffer.allocUnsafe((to - from) >> 2);
  for (let index = 0, at = from + 2; at < to; at += 4) {
    bytes[index++] = ((HEX[text[at] ?? 0] ?? 0) << 4) | (HEX[text[at + 1] ?? 0] ?? 0);
  }
  return bytes;
}
