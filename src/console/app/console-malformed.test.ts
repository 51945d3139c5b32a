// Tests that every malformed request gets a problem document and never a 500 (W-13, decision D2).
import assert from "node:assert/strict";
import { Agent } from "node:http";
import { createConnection } from "node:net";
import { test } from "node:test";
import type { Answer } from "./app.fixture.ts";
import { type ConsoleUnderTest, startTestConsole } from "./console.fixture.ts";

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly query: readonly string[];
  /** Fields of its body; undefined where it takes none. */
  readonly fields: readonly string[] | undefined;
}

interface Schema {
  readonly properties?: Readonly<Record<string, unknown>>;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
}

interface Described {
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema?: Schema }>> };
}

/** Values that are invalid nearly everywhere, as JSON text. */
const EVIL_JSON: readonly string[] = [
  "18446744073709551616",
  "-1",
  "1.5",
  "1e30",
  "1e999",
  '"12GB"',
  "null",
  "true",
  "[]",
  "{}",
  '"\\u0000"',
  '"\\ud800"',
  `"${"x".repeat(5_000)}"`,
  `${"[".repeat(5_000)}${"]".repeat(5_000)}`,
  '{"__proto__":{"isAdmin":true}}',
  '{"constructor":{"prototype":{}}}',
];

/** The same for paths and queries, percent-encoded where needed. */
const EVIL_TEXT: readonly string[] = [
  "",
  "18446744073709551616",
  "-1",
  "1.5",
  "1e30",
  "NaN",
  "12GB",
  "%00",
  "%F0%9F%92%A5",
  "%ff%fe",
  "%EF%BF%BD",
  "..%2f..%2fetc%2fpasswd",
  "__proto__",
  "constructor",
  "%27%20OR%201%3D1--",
  "%0d%0aSet-Cookie:%20a%3Db",
  "x".repeat(2_000),
];

async function operationsOf(console: ConsoleUnderTest): Promise<Operation[]> {
  const { paths } = (await console.ask("/api/openapi.json")).json as {
    paths: Record<string, Record<string, Described>>;
  };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { parameters = [], requestBody }]) => ({
      method: method.toUpperCase(),
      path,
      query: parameters.filter((one) => one.in === "query").map(({ name }) => name),
      fields: requestBody && Object.values(requestBody.content).flatMap(({ schema }) => fieldsOf(schema)),
    })),
  );
}

/** The names of an object's fields, whichever of its forms has them. */
function fieldsOf({ properties = {}, anyOf = [], oneOf = [], allOf = [] }: Schema = {}): string[] {
  const forms = [...anyOf, ...oneOf, ...allOf];
  return [...new Set([...Object.keys(properties), ...forms.flatMap(fieldsOf)])];
}

function checkAnswer(answer: Answer, what: string): void {
  // An unreachable node is no fault of the console.
  const isFault =
    answer.status >= 500 &&
    !["NODE_OFFLINE", "NODE_ERROR", "NODE_TIMEOUT"].includes(answer.problem?.code ?? "");
  assert.equal(isFault, false, `${what}: ${answer.status} ${answer.text}`);
  assert.equal(answer.headers["set-cookie"]?.some((cookie) => cookie.startsWith("a=")) ?? false, false, what);
  if (answer.status < 400) return;
  assert.match(
    answer.headers["content-type"] ?? "",
    /^application\/problem\+json/,
    `${what}: ${answer.text}`,
  );
  assert.equal(answer.problem?.status, answer.status, what);
  assert.ok((answer.problem?.detail.length ?? 0) < 1_000, what);
}

test("every body, path and query that is wrong: a problem document, and the console goes on", async (t) => {
  const console = await startTestConsole(t);
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const headers = { authorization: `Bearer ${await console.signIn()}` };
  const asked = async (method: string, path: string, body?: string): Promise<void> => {
    const answer = await console.ask(path, {
      method,
      headers,
      agent,
      ...(body === undefined ? {} : { body }),
    });
    checkAnswer(answer, `${method} ${path} ${body ?? ""}`.slice(0, 300));
  };
  for (const { method, path, query, fields } of await operationsOf(console)) {
    if (path.startsWith("/api/auth/")) continue;
    const plain = path.replaceAll(/\{[^}]+\}/g, "n1");
    if (plain !== path)
      for (const text of EVIL_TEXT) await asked(method, path.replaceAll(/\{[^}]+\}/g, text), fields && "{}");
    for (const name of query) {
      for (const text of EVIL_TEXT) await asked(method, `${plain}?${name}=${text}`);
      await asked(method, `${plain}?${name}=1&${name}=2`);
      await asked(method, `${plain}?${name}[]=1`);
    }
    await asked(method, `${plain}?__proto__=1&constructor=2&%=3`);
    if (fields === undefined) continue;
    for (const evil of EVIL_JSON) {
      await asked(method, plain, evil);
      for (const field of [...fields, "unknown"]) await asked(method, plain, `{"${field}":${evil}}`);
    }
  }
  assert.equal((await console.ask("/health")).status, 200);
});

test("each wrong body has its own code: not JSON, not UTF-8, not JSON by its type, too large, absent", async (t) => {
  const console = await startTestConsole(t);
  const send = async (body: string | Buffer, type = "application/json"): Promise<string | undefined> =>
    (await console.ask("/api/auth/login", { body, headers: { "content-type": type } })).problem?.code;
  for (const body of ["{", "nonsense", '{"password":"x",}', "[".repeat(30_000)])
    assert.equal(await send(body), "BAD_JSON", body.slice(0, 20));
  assert.equal(await send(Buffer.from([0x22, 0xff, 0x22])), "BAD_JSON");
  assert.equal(await send("password=x", "application/x-www-form-urlencoded"), "UNSUPPORTED_MEDIA_TYPE");
  assert.equal(await send("{}", "application/json; charset=utf-8"), "REQUEST_INVALID");
  const exact = JSON.stringify({ password: "x".repeat(1_024), pad: "" });
  assert.equal(
    await send(exact.replace('"pad":""', `"pad":"${"y".repeat(65_536 - exact.length)}"`)),
    "REQUEST_INVALID",
  );
  assert.equal(
    await send(exact.replace('"pad":""', `"pad":"${"y".repeat(65_537 - exact.length)}"`)),
    "BODY_TOO_LARGE",
  );
  const empty = await console.ask("/api/auth/login", { method: "POST" });
  assert.equal(empty.problem?.code, "REQUEST_INVALID");
  for (const password of ["", 1, null, ["admin"], "x".repeat(1_025)]) {
    const answer = await console.ask("/api/auth/login", { body: { password } });
    assert.deepEqual([answer.status, answer.problem?.errors?.[0]?.pointer], [422, "/password"]);
  }
  const answer = await console.ask("/api/auth/login", { body: { password: "x", also: 1 } });
  assert.deepEqual([answer.status, answer.problem?.errors?.[0]?.pointer], [422, ""]);
});

test("what is no HTTP, or has too much head, is answered with a problem and the end of the connection", async (t) => {
  const { console, ask } = await startTestConsole(t);
  const raw = async (text: string): Promise<string> => {
    const socket = createConnection(console.address.port, "127.0.0.1");
    socket.write(text);
    let answer = "";
    for await (const piece of socket) answer += String(piece);
    return answer;
  };
  assert.match(await raw("nonsense\r\n\r\n"), /^HTTP\/1\.1 400 .*"code":"BAD_REQUEST"/s);
  const head = (size: number): string =>
    `GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Pad: ${"a".repeat(size)}\r\n\r\n`;
  assert.match(await raw(head(16_000)), /^HTTP\/1\.1 200 /);
  assert.match(await raw(head(16_400)), /^HTTP\/1\.1 431 .*"code":"HEADERS_TOO_LARGE"/s);
  assert.match(
    await raw(
      "POST /api/auth/login HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    ),
    /^HTTP\/1\.1 400 /,
  );
  const bad = await ask("/api/users/%zz/quota");
  assert.deepEqual([bad.status, bad.problem?.code], [400, "BAD_REQUEST"]);
});

test("a request names one Host; of a method that nothing knows only that is said; no refusal is kept (RFC 9112, D2, W-14)", async (t) => {
  const { console, ask } = await startTestConsole(t);
  const raw = async (head: string): Promise<string> => {
    const socket = createConnection(console.address.port, "127.0.0.1");
    socket.write(`${head}Connection: close\r\n\r\n`);
    let answer = "";
    for await (const piece of socket) answer += String(piece);
    return answer;
  };
  const refused = /^HTTP\/1\.1 400 .*"code":"BAD_REQUEST"/s;
  assert.match(await raw("GET /api/version HTTP/1.1\r\nHost: a\r\nHost: b\r\n"), refused);
  assert.match(await raw("GET /api/version HTTP/1.1\r\n"), refused);
  assert.match(await raw("GET /api/version HTTP/1.1\r\nHost: a\r\n"), /^HTTP\/1\.1 200 /);
  assert.match(await raw("GET /api/version HTTP/1.0\r\n"), /^HTTP\/1\.1 200 /);
  const query = await ask("/api/version", { method: "QUERY" });
  assert.deepEqual([query.status, query.headers["allow"]], [405, "GET, HEAD"]);
  for (const path of ["/ws/actions", "/nope"]) {
    const answer = await ask(path);
    assert.equal(answer.headers["cache-control"], "no-store", path);
    assert.ok(answer.status >= 400, path);
  }
});
