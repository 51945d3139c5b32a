// A file for a browser that is replaced between the look at it and the reading of its bytes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { GroveError } from "#base/errors.ts";
import { silentLogger } from "#base/log.ts";
import type { PageExchange } from "#door/http/pages.ts";
import { KnownSessions } from "#door/session/known-sessions.ts";
import { Kind } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { openPages, type PagesDeps } from "./pages.ts";

const SIZE = 300_000;
const REPLACED = new GroveError("ETAG_MISMATCH", "the file has changed");

interface Answered {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly logged: readonly unknown[];
}

/** Asks for a part of a file; `replaced` times another version is there when its bytes are read. */
async function askPart(method: string, replaced: number, asked = "", hasBegun = false): Promise<Answered> {
  let version = 1;
  let left = replaced;
  let looks = 0;
  const cluster = {
    // A look at the file, then the reading of its bytes.
    runAt: async () => {
      const isLook = looks++ % 2 === 0;
      if (isLook)
        return { kind: Kind.FILE, size: BigInt(SIZE), mtimeMs: 0n, ctimeMs: 0n, etag: `v${version}` };
      if (left-- <= 0) return undefined;
      version++;
      throw REPLACED;
    },
  };
  const headers = new Map<string, string>();
  const logged: unknown[] = [];
  const exchange = {
    method,
    path: "/api/content",
    query: new URLSearchParams(`path=/a.bin${asked}`),
    headers: { cookie: "grove-door-session=gds_right", range: "bytes=0-9" },
    host: "localhost",
    facts: { address: "198.51.100.7", isLoopback: true, isSecure: false },
    gone: new AbortController().signal,
    whenGone: () => undefined,
    statusCode: 0,
    headersSent: hasBegun,
    destroyed: false,
    setHeader: (name: string, value: unknown) => headers.set(name, String(value)),
    removeHeader: (name: string) => headers.delete(name),
    writeAll: () => true,
    end: () => undefined,
    destroy: () => undefined,
    prove: () => undefined,
  };
  const person = { username: "alice@example.com", cluster, recentUntilMs: 0, release: () => undefined };
  const deps = {
    signIn: { answer: async () => false },
    people: { bySession: async () => person },
    sessions: new KnownSessions(systemClock),
    publicUrl: "http://localhost",
    log: { ...silentLogger, warn: (event: string, facts: unknown) => logged.push([event, facts]) },
  };
  const pages = await openPages(deps as unknown as PagesDeps);
  assert.ok(await pages.answer(exchange as unknown as PageExchange));
  return { status: exchange.statusCode, headers, logged };
}

test("a file that is replaced meanwhile is answered anew, and no failed condition", async () => {
  const { status, headers } = await askPart("GET", 1);
  assert.deepEqual([status, headers.get("etag")], [206, '"v2"']);
});

test("a refusal has neither a file's name nor its version", async () => {
  const { status, headers } = await askPart("GET", 9);
  assert.deepEqual([status, headers.get("retry-after")], [503, "5"]);
  for (const name of ["content-disposition", "content-range", "etag"]) assert.ok(!headers.has(name), name);
});

test("a part of one version alone is never of another, as players ask for it", async () => {
  assert.equal((await askPart("GET", 0, "&version=v1")).status, 206);
  const { status, headers } = await askPart("GET", 0, "&version=v0");
  assert.deepEqual([status, headers.has("content-disposition")], [412, false]);
  assert.equal((await askPart("GET", 1, "&version=v1")).status, 412);
});

test("a HEAD has no ranges (RFC 9110, section 14.2)", async () => {
  const { status, headers } = await askPart("HEAD", 0);
  assert.deepEqual([status, headers.get("content-length")], [200, String(SIZE)]);
});

test("an answer that is cut after it has begun is logged with the reason, which browsers tell nobody", async () => {
  const { logged } = await askPart("GET", 1, "", true);
  const error = "the file has changed";
  assert.deepEqual(logged, [["answer_cut", { path: "/api/content", error }]]);
});
