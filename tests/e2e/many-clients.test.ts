// Tests of many clients of one user: a quota exact to the byte, one shared session after a restart.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { create, type DescMessage, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import { scratchFolder } from "#testing/scratch-folder.ts";
import {
  FileServer,
  type UploadRequestSchema,
  type UploadResponse,
} from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { freePlace, grove, startNode, stopProgram } from "./processes.ts";

const PASSWORD = "correct horse battery staple";
const PIECE_BYTES = 65_536;

/** A connection of grpc-js, which knows only the messages of Grove. */
class Foreign {
  readonly #client: Client;
  readonly #metadata = new Metadata();

  constructor(address: string, metadata: Readonly<Record<string, string>>) {
    // A unique option keeps grpc-js from sharing one connection between all.
    this.#client = new Client(address, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
    for (const [name, value] of Object.entries(metadata)) this.#metadata.set(name, value);
  }

  unary<I extends DescMessage, O extends DescMessage>(
    method: { name: string; input: I; output: O },
    request: MessageInitShape<I>,
  ) {
    return new Promise<ReturnType<typeof fromBinary<O>>>((resolve, reject) => {
      this.#client.makeUnaryRequest(
        `/grove.v1.FileServer/${method.name}`,
        (message: MessageInitShape<I>) => Buffer.from(toBinary(method.input, create(method.input, message))),
        (bytes: Buffer) => fromBinary(method.output, bytes),
        request,
        this.#metadata,
        (error, reply) => (reply === undefined ? reject(error ?? new Error("no reply")) : resolve(reply)),
      );
    });
  }

  /** Uploads zeros; resolves with the reply or with the error that came. */
  upload(path: string, size: number, isKnown: boolean): Promise<UploadResponse | ServiceError> {
    const { input, output } = FileServer.method.uploadFile;
    type Part = MessageInitShape<typeof UploadRequestSchema>;
    return new Promise((resolve) => {
      const call = this.#client.makeClientStreamRequest(
        "/grove.v1.FileServer/UploadFile",
        (message: Part) => Buffer.from(toBinary(input, create(input, message))),
        (bytes: Buffer) => fromBinary(output, bytes),
        this.#metadata,
        (error, reply) => resolve(error ?? (reply as UploadResponse)),
      );
      call.on("error", () => undefined);
      const known = isKnown ? { size: BigInt(size), sizeKnown: true } : {};
      call.write({ part: { case: "header", value: { path, ...known } } } satisfies Part);
      for (let at = 0; at < size; at += PIECE_BYTES) {
        const data = Buffer.alloc(Math.min(PIECE_BYTES, size - at));
        call.write({ part: { case: "chunk", value: { offset: BigInt(at), data } } } satisfies Part);
      }
      call.end();
    });
  }

  close(): void {
    this.#client.close();
  }
}

test("200 parallel uploads of one user fill the quota and never pass it by a byte (spec 4.6, D16)", {
  timeout: 180_000,
}, async (t) => {
  const node = await startNode({
    data: scratchFolder("grove-e2e-"),
    env: { SVC_AUTH_MOCK: "1", ADMIN_PASSWORD: PASSWORD },
  });
  t.after(() => stopProgram(node, "SIGKILL"));
  const clients: Foreign[] = [];
  const connect = (metadata: Readonly<Record<string, string>>): Foreign => {
    const client = new Foreign(node.address, metadata);
    clients.push(client);
    return client;
  };
  t.after(() => clients.forEach((client) => client.close()));
  const admin = connect({ "x-admin-password-hash": createHash("sha256").update(PASSWORD).digest("hex") });
  const { registerClient, setQuota, getQuota, deleteFile, createDirectory } = FileServer.method;
  const username = "alice@example.com";
  const registered = await connect({ authorization: `Bearer mock-jwt.${username}` }).unary(
    registerClient,
    {},
  );
  const authorization = `Bearer ${registered.sessionToken}`;
  const users = Array.from({ length: 5 }, () => connect({ authorization }));
  const watcher = connect({ authorization });

  for (const isKnown of [true, false]) {
    const folder = isKnown ? "/known" : "/unknown";
    const sizeBytes = 150_000;
    const quotaBytes = 77n * BigInt(sizeBytes) + 149_999n;
    const set = await admin.unary(setQuota, { username, quotaBytes });
    assert.equal(set.success, true, set.error);
    await watcher.unary(createDirectory, { path: folder });
    let mostUsed = 0n;
    const done = new AbortController();
    const watching = (async () => {
      while (!done.signal.aborted) {
        const { usedBytes } = await watcher.unary(getQuota, {});
        if (usedBytes > mostUsed) mostUsed = usedBytes;
      }
    })();
    const uploads = users.flatMap((user, nth) =>
      Array.from({ length: 40 }, (_, index) => user.upload(`${folder}/f${nth}-${index}`, sizeBytes, isKnown)),
    );
    const answers = await Promise.all(uploads);
    done.abort();
    await watching;
    const refused = answers.filter((answer): answer is ServiceError => answer instanceof Error);
    for (const error of refused) {
      const said = [error.details, error.metadata.get("svc-reason")[0]];
      assert.deepEqual(said, ["storage quota exceeded", "QUOTA_EXCEEDED"]);
    }
    const stored = answers.length - refused.length;
    // Whole sizes are claimed at once, so as many succeed as fit; pieces of failing files may block others.
    if (isKnown) assert.equal(stored, 77);
    else assert.ok(stored > 0 && stored <= 77, `${stored} came through`);
    assert.ok(mostUsed <= quotaBytes, `${mostUsed} used of ${quotaBytes}`);
    const { usedBytes, stagingBytes } = await watcher.unary(getQuota, {});
    assert.deepEqual([usedBytes, stagingBytes], [BigInt(stored * sizeBytes), 0n]);
    await watcher.unary(deleteFile, { path: folder, recursive: true });
  }
});

test("processes that find their session gone share one new session, and none is evicted (spec 3.4, T21)", {
  timeout: 180_000,
}, async (t) => {
  const scratch = scratchFolder("grove-e2e-");
  const data = join(scratch, "data");
  const env = { GROVE_CONFIG_DIR: join(scratch, "config") };
  const place = await freePlace();
  const first = await startNode({ data, place });
  t.after(() => stopProgram(first, "SIGKILL"));
  const login = await grove(["login", "--mock", "alice@example.com", "--fileserver", place.address], { env });
  assert.equal(login.code, 0, login.stderr);
  await stopProgram(first, "SIGKILL");
  const second = await startNode({ data, place });
  t.after(() => stopProgram(second, "SIGKILL"));
  await mkdir(join(scratch, "files"));
  const names = Array.from({ length: 10 }, (_, index) => `f${index}`);
  for (const name of names) await writeFile(join(scratch, "files", name), Buffer.alloc(400_000, name));
  const puts = await Promise.all(
    names.map((name) => grove(["put", "-q", join(scratch, "files", name), "/"], { env })),
  );
  for (const { code, stderr } of puts) assert.equal(code, 0, stderr);
  assert.equal(second.output().match(/"event":"session_opened"/g)?.length, 1);
});
