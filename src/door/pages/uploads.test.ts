// Resumable uploads of browsers over a played FileServer: when a file is made, and what an answer says of its end.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GroveError } from "#base/errors.ts";
import type { PageCall } from "./call.ts";
import { answerUpload } from "./uploads.ts";

const SIZE = 8_000_000;
const CHANGED_MS = 1_700_000_000_000;
const addressOf = (size: number): string =>
  `/api/uploads/${Buffer.from(JSON.stringify(["", "/a.bin", "id", size, false, CHANGED_MS])).toString("base64url")}`;

/** What the FileServer knows of the upload, and how it ends a stream. */
interface Played {
  /** Undefined for an upload that is over. */
  readonly staged: number | undefined;
  readonly isThere?: boolean;
  readonly refusal?: GroveError;
}

interface Answered {
  readonly status: number;
  readonly offset: string | undefined;
  /** Headers of the streams that the FileServer got, and how many it was to finish. */
  readonly from: readonly bigint[];
  readonly finished: number;
}

async function ask(
  played: Played,
  method: string,
  { offset = 0, body = [] as readonly Uint8Array[], path = addressOf(SIZE) } = {},
): Promise<Answered> {
  const from: bigint[] = [];
  let finished = 0;
  const writer = {
    message: ({ part }: { part: { value: { resumeOffset: bigint } } }) => {
      from.push(part.value.resumeOffset);
      return true;
    },
    whole: () => true,
  };
  const finish = async (): Promise<object> => {
    finished++;
    if (played.refusal !== undefined) throw played.refusal;
    return {};
  };
  const files = {
    getUpload: async () => {
      if (played.staged === undefined) throw new GroveError("NO_SUCH_UPLOAD", "there is no such upload");
      return { offset: BigInt(played.staged) };
    },
    getAttr: async () => {
      if (played.isThere !== true) throw new GroveError("NO_SUCH_PATH", "nothing is there");
      return { size: BigInt(SIZE), mtimeMs: BigInt(CHANGED_MS) };
    },
  };
  const channel = { slicedUpload: async () => ({ writer, finish, cancel: () => undefined }) };
  const run = (_place: unknown, _policy: unknown, use: (server: object) => unknown): unknown =>
    use({ files, channel });
  const answer = new Map<string, string>();
  const exchange = {
    method,
    path,
    headers: {
      "tus-resumable": "1.0.0",
      "content-type": "application/offset+octet-stream",
      "upload-offset": String(offset),
    },
    statusCode: 0,
    setHeader: (name: string, value: unknown) => answer.set(name, String(value)),
    end: () => undefined,
    async *[Symbol.asyncIterator]() {
      yield* body;
    },
  };
  const person = { cluster: { run, runAt: run } };
  await answerUpload({ exchange, person } as unknown as PageCall);
  return { status: exchange.statusCode, offset: answer.get("upload-offset"), from, finished };
}

test("an empty body at the full size makes the file of bytes that are all there", async () => {
  const staged = { staged: SIZE };
  assert.deepEqual(await ask(staged, "HEAD"), {
    status: 200,
    offset: `${SIZE}`,
    from: [],
    finished: 0,
  });
  assert.deepEqual(await ask(staged, "PATCH", { offset: SIZE }), {
    status: 204,
    offset: `${SIZE}`,
    from: [BigInt(SIZE)],
    finished: 1,
  });
  const refusal = new GroveError("LOCKED", "somebody has locked it");
  await assert.rejects(ask({ staged: SIZE, refusal }, "PATCH", { offset: SIZE }), { code: "LOCKED" });
});

test("an empty body at the full size of an upload that has arrived is answered by its file", async () => {
  const over = { staged: undefined, isThere: true };
  assert.deepEqual(await ask(over, "PATCH", { offset: SIZE }), {
    status: 204,
    offset: `${SIZE}`,
    from: [],
    finished: 0,
  });
  await assert.rejects(ask({ staged: undefined }, "PATCH", { offset: SIZE }), { status: 410 });
});

test("an address that nobody was given, of a size that no file has, is that of no upload", async () => {
  for (const size of [-5, 0, 0.5]) {
    await assert.rejects(ask({ staged: 0 }, "PATCH", { path: addressOf(size) }), { status: 404 });
  }
});

test("a part at another offset is refused as such", async () => {
  await assert.rejects(ask({ staged: 4_000_000 }, "PATCH", { offset: 0 }), { code: "OFFSET_MISMATCH" });
});

test("a part is told how much is safe, and an upload that ends in it says why", async () => {
  const body = [new Uint8Array(1_000)];
  const short = new GroveError("BAD_ARGUMENT", "the upload ended after 1000 of 8000000 bytes");
  const kept = await ask({ staged: 0, refusal: short }, "PATCH", { body });
  assert.deepEqual([kept.status, kept.offset, kept.finished], [204, "0", 1]);
  for (const code of ["QUOTA_EXCEEDED", "PATH_EXISTS"] as const) {
    const refusal = new GroveError(code, "no");
    await assert.rejects(ask({ staged: 0, refusal }, "PATCH", { body }), { code });
  }
});

test("an upload whose browser has gone before it has begun is ended: nobody would go on with it", async () => {
  for (const destroyed of [true, false]) {
    const calls: string[] = [];
    const files = {
      beginUpload: async () => {
        calls.push("begin");
        return { uploadId: "id" };
      },
      abortUpload: async ({ uploadId }: { uploadId: string }) => {
        calls.push(`abort ${uploadId}`);
        // Nobody is there to hear of it.
        throw new GroveError("NO_SUCH_UPLOAD", "there is no such upload");
      },
    };
    const run = (_place: unknown, _policy: unknown, use: (server: object) => unknown): unknown =>
      use({ files });
    const exchange = {
      method: "POST",
      path: "/api/uploads",
      query: new URLSearchParams({ path: "/a.bin" }),
      headers: { "tus-resumable": "1.0.0", "upload-length": String(SIZE) },
      destroyed,
      statusCode: 0,
      setHeader: () => undefined,
      end: () => undefined,
    };
    const person = { cluster: { run, runAt: run } };
    await answerUpload({ exchange, person } as unknown as PageCall);
    assert.deepEqual(calls, destroyed ? ["begin", "abort id"] : ["begin"]);
    assert.equal(exchange.statusCode, destroyed ? 0 : 201);
  }
});

test("a length or an offset is decimal digits, and nothing else that is a number to a program", async () => {
  const calls: string[] = [];
  const run = async (): Promise<object> => {
    calls.push("call");
    return { uploadId: "id", offset: 0n };
  };
  for (const text of ["", " ", "1e3", "0x10", "1.0", "+5", "-0", "Infinity", "9007199254740993"]) {
    const exchange = {
      method: "POST",
      path: "/api/uploads",
      query: new URLSearchParams({ path: "/a.bin" }),
      headers: { "tus-resumable": "1.0.0", "upload-length": text },
      setHeader: () => undefined,
    };
    const person = { cluster: { run, runAt: run } };
    await assert.rejects(answerUpload({ exchange, person } as unknown as PageCall), { status: 400 }, text);
  }
  assert.deepEqual(calls, []);
  await assert.rejects(ask({ staged: 0 }, "PATCH", { offset: "" as unknown as number }), {
    code: "OFFSET_MISMATCH",
  });
});
