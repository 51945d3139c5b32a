// One writer whose root moves meanwhile: it goes where the root is, and remembers what was acknowledged.
import { setTimeout as sleep } from "node:timers/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { SeededRandom } from "#prove/seeded-random.ts";
import { StatusError } from "#wire/framing/status.ts";
import { type Client, createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { FileServer, type UploadRequestSchema } from "#wire/proto/gen/grove/v1/file_server_pb.ts";

const NAMES = 12;
const PAUSE_MS = 20;
/** A call that no node takes for so long is a fault of its own: moves and restarts take seconds. */
const STUCK_MS = 60_000;
const CALL_MS = 10_000;
const MESSAGE_BYTES = 262_144;

type Call<T> = (
  client: Client<typeof FileServer>,
  options: { metadata: Record<string, string> },
) => Promise<T>;

/** Sessions of one user at both nodes. */
export class RootUser {
  readonly email: string;
  readonly #addresses: Readonly<Record<string, string>>;
  readonly #sessions = new Map<
    string,
    { readonly channel: GrpcChannel; readonly client: Client<typeof FileServer>; token: string }
  >();
  #at: string;

  constructor(email: string, addresses: Readonly<Record<string, string>>) {
    this.email = email;
    this.#addresses = addresses;
    this.#at = Object.keys(addresses)[0] ?? "";
  }

  /** Asks one node, once. Rejects with its refusal, or when it is away. */
  async askAt<T>(node: string, call: Call<T>): Promise<T> {
    let session = this.#sessions.get(node);
    if (session === undefined) {
      const channel = new GrpcChannel({ addresses: [this.#addresses[node] ?? ""] });
      session = { channel, client: createClient(FileServer, channel), token: "" };
      this.#sessions.set(node, session);
    }
    if (session.token === "") {
      const metadata = { authorization: `Bearer mock-jwt.${this.email}` };
      const { sessionToken } = await session.client.registerClient({}, { metadata, timeoutMs: CALL_MS });
      session.token = sessionToken;
    }
    try {
      return await call(session.client, { metadata: { authorization: `Bearer ${session.token}` } });
    } catch (error) {
      if (reasonOf(error).startsWith("SESSION_")) session.token = "";
      throw error;
    }
  }

  /** Asks until a node has answered. Every call may be repeated. */
  async ask<T>(call: Call<T>): Promise<T> {
    const endMs = performance.now() + STUCK_MS;
    for (;;) {
      try {
        return await this.askAt(this.#at, call);
      } catch (error) {
        if (performance.now() > endMs || reasonOf(error) === "NO_SUCH_PATH") throw error;
        if (reasonOf(error) === "WRONG_NODE" || Math.random() < 0.05) this.#at = this.#other(this.#at);
        else await sleep(PAUSE_MS);
      }
    }
  }

  /** Ends the session at one node, and all calls under way there. */
  leave(node: string): void {
    this.#sessions.get(node)?.channel.close();
    this.#sessions.delete(node);
  }

  close(): void {
    for (const node of this.#sessions.keys()) this.leave(node);
  }

  #other(node: string): string {
    return Object.keys(this.#addresses).find((id) => id !== node) ?? node;
  }
}

function reasonOf(error: unknown): string {
  return error instanceof StatusError ? (error.metadata.get("svc-reason") ?? "") : "";
}

/** A folder of a user that this lane alone changes. */
export class Lane {
  readonly #user: RootUser;
  readonly #folder: string;
  readonly #random: SeededRandom;
  /** Files as last acknowledged: the number of their version, and their size. */
  readonly #files = new Map<string, { readonly version: number; readonly size: number }>();
  #version = 0;
  #isMade = false;
  acknowledged = 0;
  acknowledgedBytes = 0;

  constructor(user: RootUser, folder: string, random: SeededRandom) {
    this.#user = user;
    this.#folder = folder;
    this.#random = random;
  }

  /** Bytes of its files. */
  get liveBytes(): number {
    return [...this.#files.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** Changes one file, and waits for the acknowledgement. */
  async step(): Promise<void> {
    if (!this.#isMade) {
      await this.#user
        .ask((client, options) => client.createDirectory({ path: this.#folder }, options))
        .catch((error: unknown) => {
          // A retry of a call whose answer was lost.
          if (reasonOf(error) !== "PATH_EXISTS") throw error;
        });
      this.#isMade = true;
    }
    const name = `f${this.#random.below(NAMES)}`;
    const path = `${this.#folder}/${name}`;
    if (this.#files.has(name) && this.#random.chance(0.15)) {
      await this.#user
        .ask((client, options) => client.deleteFile({ path }, options))
        .catch((error: unknown) => {
          if (reasonOf(error) !== "NO_SUCH_PATH") throw error;
        });
      this.#files.delete(name);
    } else {
      const draw = this.#random.below(100);
      const size = draw < 70 ? 20 + draw * 40 : draw < 97 ? 70_000 + draw * 1_000 : 5_000_000;
      const version = ++this.#version;
      const data = this.#content(name, version, size);
      await this.#user.ask((client, options) => client.uploadFile(messages(path, data), options));
      this.#files.set(name, { version, size });
      this.acknowledgedBytes += size;
    }
    this.acknowledged++;
  }

  /** What is not as it was acknowledged, in words; only between two steps. */
  async compare(): Promise<string[]> {
    if (!this.#isMade) return [];
    const { entries } = await this.#user.ask((client, options) =>
      client.listDir({ path: this.#folder }, options),
    );
    const problems = entries
      .filter(({ name }) => !this.#files.has(name))
      .map(({ name }) => `${this.#folder}/${name} is back after its removal was acknowledged`);
    for (const [name, { version, size }] of this.#files) {
      const path = `${this.#folder}/${name}`;
      const found = entries.find((entry) => entry.name === name);
      if (found === undefined) {
        problems.push(`${path} is gone; version ${version} with ${size} bytes was acknowledged`);
        continue;
      }
      const bytes = await this.#user.ask(async (client, options) => {
        const pieces: Uint8Array[] = [];
        for await (const { part } of client.downloadFile({ path }, options)) {
          if (part.case === "chunk") pieces.push(part.value.data);
        }
        return Buffer.concat(pieces);
      });
      if (!bytes.equals(this.#content(name, version, size))) {
        problems.push(
          `${path} is not version ${version} of ${size} bytes: ${bytes.subarray(0, 30).toString()}`,
        );
      }
    }
    return problems;
  }

  #content(name: string, version: number, size: number): Buffer {
    return Buffer.alloc(size, `${this.#folder}/${name} ${version} `);
  }
}

async function* messages(
  path: string,
  data: Buffer,
): AsyncGenerator<MessageInitShape<typeof UploadRequestSchema>> {
  const header = { path, size: BigInt(data.length), sizeKnown: true };
  yield { part: { case: "header", value: header } } as const;
  for (let at = 0; at < data.length; at += MESSAGE_BYTES) {
    const value = { offset: BigInt(at), data: data.subarray(at, at + MESSAGE_BYTES) };
    yield { part: { case: "chunk", value } } as const;
  }
}
