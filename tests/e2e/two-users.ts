// Two users on one FileServer, and the check that a refused call has changed nothing of theirs.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { create, type DescMessage, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { Kind } from "#wire/proto/gen/grove/v1/common_pb.ts";
import {
  CreateDirectoryRequestSchema,
  CreateFileRequestSchema,
  GetAttrRequestSchema,
  GetQuotaRequestSchema,
  ListDirRequestSchema,
  ListDirResponseSchema,
  RegisterClientRequestSchema,
  RegisterClientResponseSchema,
  UploadRequestSchema,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { type Place, type StartedNode, startNode, stopProgram } from "./processes.ts";
import { type Answer, type CallSettings, Wire } from "./wire.ts";

/** The status codes that the tests of bad input expect. */
export const STATUS = {
  ok: 0,
  invalidArgument: 3,
  notFound: 5,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  aborted: 10,
  unimplemented: 12,
  internal: 13,
  unauthenticated: 16,
} as const;

/** A file inside the database; the next has two chunks beside it. */
export const SMALL: Uint8Array = randomBytes(10_000);
/** 5,000,000 bytes. */
export const LARGE: Uint8Array = randomBytes(5_000_000);
/** The largest number that the protocol can carry. */
export const U64_MAX: bigint = 2n ** 64n - 1n;

/** A message as its bytes. */
export function bytes<T extends DescMessage>(schema: T, value: MessageInitShape<T>): Uint8Array {
  return toBinary(schema, create(schema, value));
}

/** The header of an upload. */
export function header(path: string, rest: object = {}): Uint8Array {
  return bytes(UploadRequestSchema, { part: { case: "header", value: { path, ...rest } } });
}

/** One chunk of an upload. */
export function chunk(offset: bigint | number, data: Uint8Array, rest: object = {}): Uint8Array {
  return bytes(UploadRequestSchema, {
    part: { case: "chunk", value: { offset: BigInt(offset), data, ...rest } },
  });
}

/** Exchanges a mock token for a session, on any connection. */
export async function signIn(wire: Wire, email: string): Promise<string> {
  const answer = await wire.call("RegisterClient", [bytes(RegisterClientRequestSchema, {})], {
    token: `mock-jwt.${email}`,
  });
  assert.equal(answer.code, STATUS.ok, answer.message);
  return fromBinary(RegisterClientResponseSchema, answer.messages[0] ?? new Uint8Array()).sessionToken;
}

/** A FileServer with Alice, who has /docs/small and /docs/large, and Bob, who has /private/secret. */
export class TwoUsers {
  readonly node: StartedNode;
  readonly wire: Wire;
  readonly alice: string;
  readonly #bob: string;
  readonly #closers: readonly (() => unknown)[];

  private constructor(
    parts: { node: StartedNode; wire: Wire; alice: string; bob: string },
    closers: readonly (() => unknown)[],
  ) {
    this.node = parts.node;
    this.wire = parts.wire;
    this.alice = parts.alice;
    this.#bob = parts.bob;
    this.#closers = closers;
  }

  /** Starts the server and signs both in. */
  static async start(place?: Place): Promise<TwoUsers> {
    const closers: (() => unknown)[] = [];
    const owner = { after: (hook: () => unknown): void => void closers.push(hook) };
    const node = await startNode({
      data: scratchFolder("grove-e2e-"),
      flags: ["-register_per_minute", "1000"],
      ...(place === undefined ? {} : { place }),
    });
    owner.after(() => stopProgram(node, "SIGKILL"));
    const wire = await Wire.connect(node.address);
    owner.after(() => wire.close());
    const alice = await signIn(wire, "alice@example.com");
    const bob = await signIn(wire, "bob@example.com");
    const first = LARGE.subarray(0, 4_000_000);
    const upload = [header("/docs/large"), chunk(0, first), chunk(4_000_000, LARGE.subarray(4_000_000))];
    for (const [token, method, messages] of [
      [alice, "CreateDirectory", [bytes(CreateDirectoryRequestSchema, { path: "/docs" })]],
      [alice, "CreateFile", [bytes(CreateFileRequestSchema, { path: "/docs/small", data: SMALL })]],
      [alice, "UploadFile", upload],
      [bob, "CreateDirectory", [bytes(CreateDirectoryRequestSchema, { path: "/private" })]],
      [bob, "CreateFile", [bytes(CreateFileRequestSchema, { path: "/private/secret", data: SMALL })]],
    ] as const) {
      const answer = await wire.call(method, messages, { token });
      assert.equal(answer.code, STATUS.ok, `${method}: ${answer.message}`);
    }
    return new TwoUsers({ node, wire, alice, bob }, closers);
  }

  /** Calls with Alice's session. */
  asAlice(method: string, messages: readonly Uint8Array[], rest: CallSettings = {}): Promise<Answer> {
    return this.wire.call(method, messages, { token: this.alice, ...rest });
  }

  /**
   * Asserts that a call is refused with this status and reason and changes nothing. Compares both users'
   * listings, attributes and quotas, the quota file and the files on disk. Returns the answer.
   */
  async refused(run: () => Promise<Answer>, code: number, reason: string, title: string): Promise<Answer> {
    const [world, files] = [await this.#world(), await this.filesOnDisk()];
    const answer = await run();
    assert.deepEqual([answer.code, answer.reason], [code, reason], `${title}: ${answer.message}`);
    assert.deepEqual(await this.#world(), world, title);
    // The rest of a broken stream is removed at once, but not before the answer.
    for (let tries = 0; tries < 250 && (await this.filesOnDisk()).length !== files.length; tries++) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert.deepEqual(await this.filesOnDisk(), files, title);
    return answer;
  }

  /** All files in the data folder except the databases and the audit log, which is written asynchronously. */
  async filesOnDisk(): Promise<string[]> {
    const names = await readdir(this.node.data, { recursive: true });
    return names.filter((name) => !/\.(?:db|lock)(?:-[a-z]+)?$|^audit(?:\/|$)/.test(name)).toSorted();
  }

  /** Stops the server and removes its folder. */
  async close(): Promise<void> {
    for (const close of this.#closers.toReversed()) await close();
  }

  async #world(): Promise<unknown> {
    const seen: unknown[] = [];
    for (const token of [this.alice, this.#bob]) {
      const ask = async (method: string, message: Uint8Array): Promise<Buffer> => {
        const answer = await this.wire.call(method, [message], { token });
        assert.equal(answer.code, STATUS.ok, `${method}: ${answer.message}`);
        const [reply = Buffer.alloc(0)] = answer.messages;
        seen.push(reply.toString("base64"));
        return reply;
      };
      const folders = ["/"];
      for (const path of folders) {
        await ask("GetAttr", bytes(GetAttrRequestSchema, { path }));
        const reply = await ask("ListDir", bytes(ListDirRequestSchema, { path }));
        const { entries } = fromBinary(ListDirResponseSchema, reply);
        folders.push(...entries.filter(({ kind }) => kind === Kind.DIRECTORY).map((entry) => entry.path));
      }
      await ask("GetQuota", bytes(GetQuotaRequestSchema, {}));
    }
    seen.push(await readFile(join(this.node.data, "quota_config.json"), "utf8").catch(() => "none"));
    return seen;
  }
}
