// Changes one folder constantly and knows its content after a crash, except for one unfinished call.
import { createHash } from "node:crypto";
import { type Client, createClient, type GrpcChannel } from "#wire/grpc/client.ts";
import { OnConflict } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";

/** Names and contents of a folder. */
export type Contents = ReadonlyMap<string, Uint8Array>;

/** A random number generator with a seed. */
export class Dice {
  readonly #seed: string;
  #count = 0;

  constructor(seed: string) {
    this.#seed = seed;
  }

  /** A whole number from 0 to below the end. */
  below(end: number): number {
    const digest = createHash("sha256")
      .update(`${this.#seed}/${this.#count++}`)
      .digest();
    return digest.readUInt32LE(0) % end;
  }

  /** Bytes that hardly any other content begins with. */
  bytes(length: number): Uint8Array {
    const block = createHash("sha512")
      .update(`${this.#seed}/${this.#count++}`)
      .digest();
    return Buffer.alloc(length, block);
  }
}

interface Step {
  readonly after: Contents;
  readonly run: () => Promise<unknown>;
}

const FILES_MAX = 40;

/** One folder of one user. Only this object changes it, one call at a time. */
export class BusyFolder {
  readonly #path: string;
  readonly #dice: Dice;
  #contents: Contents = new Map();
  #pending: Contents | undefined;
  #isMade = false;
  #names = 0;
  /** Calls that the server has acknowledged. */
  acknowledged = 0;

  constructor(path: string, seed: string) {
    this.#path = path;
    this.#dice = new Dice(seed + path);
  }

  /** Changes the folder until a call fails, as after a server's kill; returns the failure. */
  async work(channel: GrpcChannel, token: string): Promise<unknown> {
    const client = createClient(FileServer, channel);
    const metadata = { authorization: `Bearer ${token}` };
    try {
      if (!this.#isMade) {
        await client.createDirectory({ path: this.#path }, { metadata });
        this.#isMade = true;
      }
      for (;;) {
        const step = this.#nextStep(client, metadata);
        this.#pending = step.after;
        await step.run();
        this.#contents = step.after;
        this.#pending = undefined;
        this.acknowledged++;
      }
    } catch (error) {
      return error;
    }
  }

  /**
   * Compares with the server's current content and continues from there. Returns the difference in words,
   * undefined for the last acknowledged state or that with the interrupted call.
   */
  settle(found: Contents | undefined): string | undefined {
    if (found === undefined) {
      return this.#isMade ? `${this.#path} is gone` : undefined;
    }
    this.#isMade = true;
    const before = difference(this.#contents, found);
    const after = this.#pending === undefined ? before : difference(this.#pending, found);
    if (before !== undefined && after !== undefined) {
      return `${this.#path}: ${before}; or with the last call: ${after}`;
    }
    this.#contents = found;
    this.#pending = undefined;
    return undefined;
  }

  #nextStep(client: Client<typeof FileServer>, metadata: Record<string, string>): Step {
    const names = [...this.#contents.keys()];
    const some = names[this.#dice.below(Math.max(1, names.length))];
    const choice = this.#dice.below(10);
    const at = (name: string): string => `${this.#path}/${name}`;
    const after = new Map(this.#contents);
    if (some === undefined || (choice < 5 && names.length < FILES_MAX)) {
      const name = `f${this.#names++}`;
      const data = this.#dice.bytes(this.#size());
      after.set(name, data);
      if (data.length <= 65_536 && choice < 3) {
        return { after, run: () => client.createFile({ path: at(name), data }, { metadata }) };
      }
      return { after, run: () => upload(client, at(name), data, metadata) };
    }
    const old = this.#contents.get(some) ?? new Uint8Array();
    if (choice < 6) {
      after.delete(some);
      return { after, run: () => client.deleteFile({ path: at(some) }, { metadata }) };
    }
    if (choice < 7) {
      const name = `r${this.#names++}`;
      after.delete(some);
      after.set(name, old);
      const request = { path: at(some), targetPath: at(name), onConflict: OnConflict.FAIL };
      return { after, run: () => client.rename(request, { metadata }) };
    }
    if (choice < 9) {
      const data = this.#dice.bytes(this.#size());
      after.set(some, data);
      return { after, run: () => upload(client, at(some), data, metadata) };
    }
    const offset = this.#dice.below(old.length + 1);
    const data = this.#dice.bytes(1 + this.#dice.below(100_000));
    const written = Buffer.alloc(Math.max(old.length, offset + data.length));
    written.set(old);
    written.set(data, offset);
    after.set(some, written);
    return {
      after,
      run: () => client.writeFile({ path: at(some), offset: BigInt(offset), data }, { metadata }),
    };
  }

  /** Mostly small, at times in chunk files, now and then in several. */
  #size(): number {
    const kind = this.#dice.below(20);
    if (kind < 14) return this.#dice.below(20_000);
    return kind < 19 ? 60_000 + this.#dice.below(300_000) : 4_000_000 + this.#dice.below(4_500_000);
  }
}

function upload(
  client: Client<typeof FileServer>,
  path: string,
  data: Uint8Array,
  metadata: Record<string, string>,
): Promise<unknown> {
  const isKnown = data.length % 2 === 0;
  async function* parts() {
    const size = isKnown ? { size: BigInt(data.length), sizeKnown: true } : {};
    yield { part: { case: "header" as const, value: { path, ...size } } };
    for (let at = 0; at < data.length; at += 1_000_000) {
      const chunk = { offset: BigInt(at), data: data.subarray(at, at + 1_000_000) };
      yield { part: { case: "chunk" as const, value: chunk } };
    }
  }
  return client.uploadFile(parts(), { metadata });
}

function difference(expected: Contents, found: Contents): string | undefined {
  for (const [name, data] of expected) {
    const other = found.get(name);
    if (other === undefined) return `${name} is missing`;
    if (Buffer.compare(data, other) !== 0) {
      return `${name} has other bytes (${data.length} expected, ${other.length} found)`;
    }
  }
  const extra = [...found.keys()].find((name) => !expected.has(name));
  return extra === undefined ? undefined : `${extra} should not be there`;
}
