// What the pages' interface answers to methods that an address does not take, and to parts of files.
import assert from "node:assert/strict";
import { test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import type { PageExchange } from "#door/http/pages.ts";
import { KnownSessions } from "#door/session/known-sessions.ts";
import { Kind } from "#wire/proto/gen/grove/v1/common_pb.ts";
import { takesBrotli } from "./built-files.ts";
import { openPages, type PagesDeps } from "./pages.ts";

interface Answered {
  readonly status: number;
  readonly allow: string | undefined;
}

/** Asks as somebody who has signed in and whose every place is a folder. */
async function ask(method: string, path: string, more: Record<string, string> = {}): Promise<Answered> {
  const answer = new Map<string, string>();
  const exchange = {
    method,
    path,
    query: new URLSearchParams({ path: "/a" }),
    headers: { cookie: "grove-door-session=gds_right", origin: "http://localhost", ...more },
    host: "localhost",
    facts: { address: "198.51.100.7", isLoopback: true, isSecure: false },
    gone: new AbortController().signal,
    whenGone: () => undefined,
    statusCode: 0,
    headersSent: false,
    destroyed: false,
    setHeader: (name: string, value: unknown) => answer.set(name, String(value)),
    removeHeader: (name: string) => answer.delete(name),
    end: () => undefined,
    prove: () => undefined,
  };
  const cluster = { runAt: async () => ({ kind: Kind.DIRECTORY, mtimeMs: 0n, ctimeMs: 0n, size: 0n }) };
  const person = { username: "alice@example.com", cluster, recentUntilMs: 0, release: () => undefined };
  const deps = {
    signIn: { answer: async () => false },
    people: { bySession: async () => person },
    sessions: new KnownSessions(systemClock),
    publicUrl: "http://localhost",
    log: silentLogger,
  };
  const pages = await openPages(deps as unknown as PagesDeps);
  assert.ok(await pages.answer(exchange as unknown as PageExchange));
  return { status: exchange.statusCode, allow: answer.get("allow") };
}

test("a method that an address does not take is told those that it takes (RFC 9110, section 15.5.6)", async () => {
  const tus = { "tus-resumable": "1.0.0" };
  const id = Buffer.from(JSON.stringify(["", "/a", "i", 1, false, 0])).toString("base64url");
  for (const [method, path, allow] of [
    ["DELETE", "/api/content", "HEAD, PUT, GET"],
    ["PUT", "/api/list", "HEAD, GET"],
    ["PUT", "/api/trash", "HEAD, GET, POST"],
    ["POST", "/api/zip", "HEAD, GET"],
    ["GET", "/api/folder", "POST"],
    ["PUT", "/api/uploads", "POST"],
    ["POST", `/api/uploads/${id}`, "HEAD, PATCH, DELETE"],
  ] as const)
    assert.deepEqual(await ask(method, path, tus), { status: 405, allow }, `${method} ${path}`);
  assert.deepEqual(await ask("POST", "/api/nothing"), { status: 404, allow: undefined });
});

test("a folder where a file is asked for is a conflict, since the method would do", async () => {
  const part = { range: "bytes=0-3" };
  assert.deepEqual(await ask("GET", "/api/content", part), { status: 409, allow: undefined });
});

test("a part of a file is not taken for the whole (RFC 9110, section 14.5)", async () => {
  const part = { "content-range": "bytes 0-3/10", "content-length": "4" };
  assert.equal((await ask("PUT", "/api/content", part)).status, 400);
});

test("brotli comes to those who take it (RFC 9110, section 12.5.3)", () => {
  for (const accepted of ["br", "gzip, br", "gzip,BR;q=0.1", "br ; q=1.000"])
    assert.ok(takesBrotli(accepted), accepted);
  for (const accepted of ["", "gzip", "br;q=0", "gzip, br; Q=0.000", "x-br", "br-x", "identity;v=br"])
    assert.ok(!takesBrotli(accepted), accepted);
});
