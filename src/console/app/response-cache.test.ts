// Tests that a cached answer equals an uncached one, and that the gate applies to both.
import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import { z } from "zod";
import { type LogFields, silentLogger } from "#base/log.ts";
import {
  CACHED_URL_MAX_LENGTH,
  CACHED_URLS_MAX,
  type ReadyResponse,
  sendReady,
} from "#console/http/response-cache.ts";
import { type App, sendJson } from "#console/http/route.ts";
import { COOKIE_NAME } from "#console/http/session-cookie.ts";
import { type Answer, type AppUnderTest, type Ask, startApp } from "./app.fixture.ts";
import type { AppDeps } from "./app.ts";

/** Handlers of the two routes of this file. */
interface CachingServer {
  readonly server: AppUnderTest;
  /** Requests that reached the handler. */
  handled: number;
  find: (kind: string, q: string) => ReadyResponse | undefined;
}

function greeting(kind: string, q: string): ReadyResponse {
  return { body: Buffer.from(JSON.stringify({ kind, q })), ...(q === "tagged" ? { etag: '"t"' } : {}) };
}

async function startService(
  t: TestContext,
  options: Partial<AppDeps> = {},
  plug: (app: App) => unknown = () => undefined,
): Promise<CachingServer> {
  const service = { handled: 0, find: greeting };
  const server = await startApp(
    (app) => {
      plug(app);
      for (const [url, auth] of [
        ["/api/kept", "public"],
        ["/api/users", "operator"],
      ] as const) {
        const schema = { querystring: z.object({ q: z.string().default("") }).strict() };
        app.get(url, { config: { auth }, schema }, (request, reply) => {
          service.handled++;
          const { q } = request.query;
          if (!sendReady(request, reply, ({ kind }) => service.find(kind, q)))
            sendJson(reply, Buffer.from('{"made":true}'));
        });
      }
    },
    { checkReplies: false, ...options },
  );
  t.after(() => server.close());
  return Object.assign(service, { server });
}

/** The parts of two answers that must be equal: all but the request id. */
function comparable({ status, headers, text }: Answer): unknown {
  const { "x-request-id": id, date, "content-length": length, ...rest } = headers;
  const isWhole = length === undefined || text === "" || Number(length) === Buffer.byteLength(text);
  const names = rest["content-type"]?.startsWith("application/problem+json") ? String(id).length : 0;
  const told = { isWhole, isDated: date !== undefined, length: length && Number(length) - names };
  return { status, rest, text: text.replace(id as string, "ID"), ...told };
}

test("an answer that lies ready has the bytes and the whole head of one that came the long way (D2, W-14)", async (t) => {
  const service = await startService(t);
  for (const [path, isTagged] of [
    ["/api/kept", false],
    ["/api/kept?q=tagged", true],
    ["/api/kept?q=gr%C3%BC%C3%9Fe", false],
  ] as const) {
    service.handled = 0;
    const long = await headLines(service, path);
    const short = await headLines(service, path);
    assert.equal(service.handled, 1, "the second did not come to the handler");
    assert.deepEqual(short, long);
    for (const wanted of ["x-request-id: ID", "cache-control: no-store", "vary: Cookie, Authorization"]) {
      assert.ok(short.includes(wanted), `${wanted} in ${short.join(" | ")}`);
    }
    assert.equal(short.includes('etag: "t"'), isTagged);
  }
});

/** The header lines of an answer, and its body. */
async function headLines(service: CachingServer, path: string): Promise<string[]> {
  const socket = connect((service.server.app.server.address() as AddressInfo).port, "127.0.0.1");
  socket.write(`GET ${path} HTTP/1.1\r\nHost: console\r\nConnection: close\r\n\r\n`);
  let text = "";
  socket.on("data", (data) => {
    text += data.toString("utf8");
  });
  await once(socket, "end");
  return text
    .replace(/(x-request-id: )\S+/, "$1ID")
    .replace(/(Date: ).*/, "$1NOW")
    .split("\r\n");
}

test("whatever a request carries, it is judged alike on both ways (spec 4.2, 5.8.3, D17, W-06)", async (t) => {
  // A second console with the same routes, whose reply checks disable the cache.
  const [service, slow] = [await startService(t), await startService(t, { checkReplies: true })];
  const credential = fc.constantFrom("right", "wrong", "", undefined);
  const asked = fc.record({
    path: fc.constantFrom("/api/kept", "/api/users", "/api/kept?q=tagged", "/api/users?q=a", "/%61pi/kept"),
    method: fc.constantFrom("GET", "GET", "GET", "HEAD", "POST"),
    bearer: credential,
    cookie: credential,
    query: credential,
    more: fc.constantFrom(
      {},
      { "if-none-match": '"t"' },
      { "x-request-id": "asked-by-a-test" },
      { "x-request-id": "no id" },
      { "x-forwarded-for": "203.0.113.9" },
      { origin: "http://elsewhere.example" },
    ),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(asked, { minLength: 1, maxLength: 4 }), async (asks) => {
      for (const one of asks) {
        const [first, again, reference] = [
          await put(service, one),
          await put(service, one),
          await put(slow, one),
        ].map(comparable);
        assert.deepEqual(first, reference);
        assert.deepEqual(again, reference);
      }
    }),
    { numRuns: 60 },
  );
  assert.ok(service.handled < slow.handled * 2, "some came the short way");
});

function put(
  { server }: CachingServer,
  ask: {
    readonly path: string;
    readonly method: string;
    readonly more: object;
  } & Readonly<Record<"bearer" | "cookie" | "query", string | undefined>>,
): Promise<Answer> {
  const shown = (what: string | undefined): string | undefined => (what === "right" ? server.token : what);
  const [bearer, cookie, query] = [shown(ask.bearer), shown(ask.cookie), shown(ask.query)];
  const headers: NonNullable<Ask["headers"]> = {
    ...ask.more,
    ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
    ...(cookie === undefined ? {} : { cookie: `${COOKIE_NAME}=${cookie}` }),
  };
  const path =
    query === undefined ? ask.path : `${ask.path}${ask.path.includes("?") ? "&" : "?"}token=${query}`;
  return server.ask(path, { method: ask.method, headers });
}

test("a session that has ended gets nothing more of what lies ready (spec 5.8.3)", async (t) => {
  const service = await startService(t);
  const { server } = service;
  for (let time = 0; time < 3; time++) assert.equal((await server.askAsOperator("/api/users")).status, 200);
  assert.equal(service.handled, 1);
  server.sessions.end(server.session);
  assert.equal((await server.askAsOperator("/api/users")).problem?.code, "AUTH_REQUIRED");
  assert.equal((await server.ask("/api/users")).problem?.code, "AUTH_REQUIRED");
  assert.equal(service.handled, 1);
});

test("each request counts once against the rate, whichever way it goes (D17)", async (t) => {
  const rate = { perSecond: 1, burst: 6 };
  const service = await startService(t, { rates: { visitor: rate, operator: rate } });
  // Alternates between cached and not: the cache lookup runs before the handler.
  service.find = (kind, q) => (service.handled % 2 === 0 ? undefined : greeting(kind, q));
  for (let time = 0; time < rate.burst; time++) {
    assert.equal((await service.server.ask("/api/kept")).status, 200, `request ${time}`);
    service.handled++;
  }
  const refused = await service.server.ask("/api/kept");
  assert.deepEqual([refused.problem?.code, refused.headers["retry-after"]], ["RATE_LIMITED", "1"]);
});

test("an address with a token in it is not kept, and its token speaks for its own request alone (T12, W-08)", async (t) => {
  const service = await startService(t);
  const { server } = service;
  for (const path of [`/api/users?token=${server.token}`, `/api/users?%74oken=${server.token}`]) {
    service.handled = 0;
    for (let time = 1; time <= 3; time++) {
      assert.equal((await server.ask(path)).status, 200);
      assert.equal((await server.askAsOperator(path)).status, 200);
      assert.equal(service.handled, 2 * time, path);
    }
  }
  assert.equal((await server.ask("/api/users")).status, 401);
});

test("what cannot be found at once, or not at all, is the long way's to tell (D2)", async (t) => {
  const service = await startService(t);
  await service.server.ask("/api/kept");
  service.find = () => undefined;
  assert.equal((await service.server.ask("/api/kept")).text, '{"made":true}');
  service.find = () => {
    throw new Error("a fault");
  };
  assert.equal((await service.server.ask("/api/kept")).problem?.code, "INTERNAL");
  service.find = greeting;
  assert.deepEqual((await service.server.ask("/api/kept")).json, { kind: "visitor", q: "" });
});

test("logs and figures tell of each answer in the same words on both ways", async (t) => {
  const lines: [string, LogFields | undefined][] = [];
  const statuses: number[] = [];
  const log = { ...silentLogger, debug: (event: string, fields?: LogFields) => lines.push([event, fields]) };
  const service = await startService(t, { log, onAnswered: (status) => statuses.push(status) });
  await service.server.ask("/api/kept?q=a");
  await service.server.ask("/api/kept?q=a");
  while (lines.length < 2) await new Promise((resolve) => setImmediate(resolve));
  const [[event, fields] = [], [eventAgain, { ms: _ms, ...again } = {}] = []] = lines;
  assert.deepEqual([event, statuses], ["request", [200, 200]]);
  assert.deepEqual([eventAgain, again], [event, { ...again, route: fields?.["route"], status: 200 }]);
  assert.deepEqual([again["route"], again["address"]], ["GET /api/kept", "127.0.0.1"]);
  assert.equal(service.handled, 1);
});

test("addresses of up to 1,024 characters are kept, and 1,000 of them: the one that was asked for longest ago goes", async (t) => {
  const service = await startService(t);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const handledOf = async (path: string): Promise<number> => {
    const before = service.handled;
    assert.equal((await service.server.ask(path, { agent })).status, 200);
    return service.handled - before;
  };
  const long = "/api/kept?q=".padEnd(CACHED_URL_MAX_LENGTH, "x");
  for (const [path, times] of [
    [long, [1, 0]],
    [`${long}x`, [1, 1]],
  ] as const) {
    assert.deepEqual([await handledOf(path), await handledOf(path)], times);
  }
  for (let at = 0; at < CACHED_URLS_MAX; at++) await handledOf(`/api/kept?q=${at}`);
  assert.equal(await handledOf(`/api/kept?q=${CACHED_URLS_MAX - 1}`), 0);
  assert.equal(await handledOf("/api/kept?q=0"), 0);
  assert.equal(await handledOf(long), 1, "this one had to go");
  assert.equal(await handledOf("/api/kept?q=1"), 1, "and this one for it");
});

test("clients that ask for much at once and go harm nobody", async (t) => {
  const service = await startService(t);
  const body = Buffer.from(JSON.stringify(" ".repeat(1_000_000)));
  service.find = () => ({ body });
  await service.server.ask("/api/kept");
  const { port } = service.server.app.server.address() as AddressInfo;
  for (let client = 0; client < 10; client++) {
    const socket = connect(port, "127.0.0.1").on("error", () => undefined);
    socket.write("GET /api/kept HTTP/1.1\r\nHost: console\r\n\r\n".repeat(20));
    await once(socket, "data");
    socket.resetAndDestroy();
  }
  assert.equal((await service.server.ask("/api/kept")).text.length, body.length);
  assert.equal(service.handled, 1);
});

test("what is asked while the console closes is told to close its connection, also where it lies ready", async (t) => {
  const release = Promise.withResolvers<void>();
  const service = await startService(t, {}, (app) =>
    app.get("/api/slow", { config: { auth: "public" } }, () => release.promise.then(() => ({}))),
  );
  const { app, ask } = service.server;
  await ask("/api/kept");
  const socket = connect((app.server.address() as AddressInfo).port, "127.0.0.1");
  let text = "";
  socket.on("data", (data) => {
    text += data.toString("utf8");
  });
  const begun = once(app.server, "request");
  socket.write("GET /api/slow HTTP/1.1\r\nHost: console\r\n\r\n");
  await begun;
  const closed = app.close();
  const askedAgain = once(app.server, "request");
  socket.write("GET /api/kept HTTP/1.1\r\nHost: console\r\n\r\n");
  await askedAgain;
  release.resolve();
  await Promise.all([closed, once(socket, "end")]);
  const answers = text.split("HTTP/1.1 ").slice(1);
  assert.deepEqual(
    answers.map((answer) => [answer.slice(0, 3), /connection: (\S+)/i.exec(answer)?.[1]]),
    [
      ["200", "keep-alive"],
      ["200", "close"],
    ],
  );
});
