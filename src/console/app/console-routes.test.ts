// Tests every route of the specification's table for each kind of caller (spec 4.1, 4.2, 5.8; D2, D3, T12).
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Ask } from "./app.fixture.ts";
import { type ConsoleUnderTest, PASSWORD, startTestConsole, tokenOf, USER } from "./console.fixture.ts";

interface Route {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  /** The status for visitors; 401 ends the row. */
  readonly visitor: number;
  readonly operator: number;
}

const ROUTES: readonly Route[] = [
  { method: "GET", path: "/api/auth/status", visitor: 200, operator: 200 },
  { method: "POST", path: "/api/auth/ws-ticket", visitor: 401, operator: 200 },
  { method: "GET", path: "/api/auth/sessions", visitor: 401, operator: 200 },
  { method: "GET", path: "/api/settings", visitor: 401, operator: 200 },
  { method: "GET", path: "/api/version", visitor: 200, operator: 200 },
  { method: "GET", path: "/api/openapi.json", visitor: 200, operator: 200 },
  { method: "GET", path: "/api/cluster", visitor: 200, operator: 200 },
  { method: "GET", path: "/api/cluster/summary", visitor: 200, operator: 200 },
  { method: "GET", path: "/api/performance", visitor: 200, operator: 200 },
  { method: "GET", path: "/api/performance/export", visitor: 200, operator: 200 },
  { method: "GET", path: "/api/performance/export?node_id=n1", visitor: 200, operator: 200 },
  { method: "GET", path: "/api/performance/export?node_id=nobody", visitor: 404, operator: 404 },
  { method: "GET", path: "/api/history/n1", visitor: 200, operator: 200 },
  { method: "GET", path: "/api/history/cluster", visitor: 200, operator: 200 },
  { method: "GET", path: "/api/history/nobody", visitor: 404, operator: 404 },
  { method: "GET", path: "/api/users", visitor: 401, operator: 200 },
  { method: "GET", path: "/api/users?node=n1", visitor: 401, operator: 200 },
  { method: "GET", path: "/api/users?node=", visitor: 401, operator: 422 },
  {
    method: "PUT",
    path: `/api/users/${USER}/quota`,
    body: { quota_bytes: "12GB" },
    visitor: 401,
    operator: 422,
  },
  {
    method: "POST",
    path: `/api/users/${USER}/quota`,
    body: { quota_bytes: -1 },
    visitor: 401,
    operator: 422,
  },
  {
    method: "PUT",
    path: "/api/users/nobody@example.com/quota",
    body: { quota_bytes: 1 },
    visitor: 401,
    operator: 404,
  },
  { method: "GET", path: "/api/moves", visitor: 401, operator: 200 },
  { method: "POST", path: `/api/moves/${USER}/confirm`, visitor: 401, operator: 404 },
  { method: "POST", path: `/api/moves/${USER}/undo`, visitor: 401, operator: 404 },
  { method: "POST", path: "/api/drains/nobody/plan", visitor: 401, operator: 404 },
  { method: "PUT", path: "/api/drains/nobody", visitor: 401, operator: 404 },
  { method: "DELETE", path: "/api/drains/nobody", visitor: 401, operator: 404 },
  { method: "POST", path: "/api/drains/nobody/confirm", visitor: 401, operator: 404 },
  { method: "POST", path: "/api/rebalance", body: { plan_id: "none" }, visitor: 401, operator: 409 },
  { method: "DELETE", path: "/api/rebalance", visitor: 401, operator: 200 },
  { method: "GET", path: "/api/actions/presets", visitor: 401, operator: 200 },
  { method: "GET", path: "/api/actions/history", visitor: 401, operator: 200 },
  { method: "GET", path: "/api/actions/nodes", visitor: 401, operator: 200 },
  { method: "POST", path: "/api/actions/execute", body: {}, visitor: 401, operator: 422 },
  { method: "POST", path: "/api/actions/run", body: {}, visitor: 401, operator: 422 },
  { method: "POST", path: "/api/actions/anything/at/all", body: {}, visitor: 401, operator: 404 },
  { method: "GET", path: "/api/alerts", visitor: 200, operator: 200 },
  {
    method: "GET",
    path: "/api/alerts?severity=critical&node_id=n1&unresolved=true",
    visitor: 200,
    operator: 200,
  },
  { method: "GET", path: "/api/alerts/summary", visitor: 200, operator: 200 },
  { method: "POST", path: "/api/alerts/resolve", body: { id: "nothing" }, visitor: 401, operator: 404 },
  {
    method: "POST",
    path: "/api/alerts/resolve-all",
    body: { severity: "info" },
    visitor: 401,
    operator: 200,
  },
  { method: "GET", path: "/api/silences", visitor: 401, operator: 200 },
  { method: "GET", path: "/api/maintenance", visitor: 401, operator: 200 },
  { method: "PUT", path: "/api/maintenance/none", body: { duration: "2h" }, visitor: 401, operator: 404 },
  { method: "DELETE", path: "/api/maintenance/n1", visitor: 401, operator: 404 },
  { method: "GET", path: "/api/notices", visitor: 401, operator: 200 },
  { method: "GET", path: "/api/logs/tail?node=n1&service=fileserver&lines=50", visitor: 401, operator: 404 },
  { method: "GET", path: "/ws/actions", visitor: 401, operator: 400 },
  { method: "GET", path: "/api/nothing", visitor: 404, operator: 404 },
  { method: "DELETE", path: "/api/cluster", visitor: 405, operator: 405 },
];

type Place = (
  token: string,
  path: string,
) => { readonly path: string; readonly headers: Record<string, string> };

/** The three places of a token, by precedence. */
const PLACES: Readonly<Record<string, Place>> = {
  header: (token, path) => ({ path, headers: { authorization: `Bearer ${token}` } }),
  cookie: (token, path) => ({
    path,
    headers: { cookie: `svc_admin_token=${token}`, "sec-fetch-site": "same-origin" },
  }),
  query: (token, path) => ({ path: `${path}${path.includes("?") ? "&" : "?"}token=${token}`, headers: {} }),
};

async function checkAll(
  console: ConsoleUnderTest,
  who: string,
  as: "visitor" | "operator",
  place?: (path: string) => ReturnType<Place>,
): Promise<void> {
  for (const route of ROUTES) {
    const { path, headers } = place?.(route.path) ?? { path: route.path, headers: {} };
    const ask: Ask = {
      method: route.method,
      headers,
      ...(route.body === undefined ? {} : { body: route.body }),
    };
    const answer = await console.ask(path, ask);
    const what = `${who}: ${route.method} ${route.path}`;
    assert.equal(answer.status, route[as], `${what} ${answer.text}`);
    assert.match(String(answer.headers["x-request-id"]), /^[\w.:-]{8,64}$/, what);
    assert.equal(answer.headers["x-svc-version"], "0.1.0", what);
    assert.equal(answer.headers["referrer-policy"], "no-referrer", what);
    if (route.path.startsWith("/api/")) {
      assert.equal(answer.headers["cache-control"], "no-store", what);
      assert.match(String(answer.headers.vary), /Cookie, Authorization/, what);
    }
    if (answer.status < 400) continue;
    assert.equal(answer.problem?.status, answer.status, what);
    assert.equal(answer.problem?.instance, `urn:svc:request:${String(answer.headers["x-request-id"])}`, what);
    assert.equal(
      answer.headers["www-authenticate"],
      answer.status === 401 ? 'Bearer realm="svc-admin"' : undefined,
      what,
    );
  }
}

test("every route × visitor, operator by header, cookie and query, signed out, expired: as the table says", async (t) => {
  const console = await startTestConsole(t);
  await checkAll(console, "visitor", "visitor");
  const token = await console.signIn();
  for (const [place, put] of Object.entries(PLACES)) {
    await checkAll(console, `operator by ${place}`, "operator", (path) => put(token, path));
    await checkAll(console, `a token of nobody by ${place}`, "visitor", (path) => put("0".repeat(64), path));
  }
  const out = await console.ask("/api/auth/logout", {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
  });
  assert.deepEqual([out.status, out.json], [200, { authenticated: false }]);
  assert.match(out.headers["set-cookie"]?.[0] ?? "", /^svc_admin_token=; Max-Age=0; Path=\/;/);
  for (const [place, put] of Object.entries(PLACES)) {
    await checkAll(console, `signed out by ${place}`, "visitor", (path) => put(token, path));
  }
  const again = await console.ask("/api/auth/logout", { method: "POST" });
  assert.deepEqual([again.status, again.json], [200, { authenticated: false }]);

  const late = await console.signIn();
  console.moveTime(12 * 3_600_000);
  for (const [place, put] of Object.entries(PLACES)) {
    await checkAll(console, `expired by ${place}`, "visitor", (path) => put(late, path));
  }
});

test("the first of header, cookie and query that is there decides, even when it is wrong (T12)", async (t) => {
  const { ask, signIn } = await startTestConsole(t);
  const good = await signIn();
  const bad = "f".repeat(64);
  const status = async (headers: Record<string, string>, query = ""): Promise<unknown> =>
    ((await ask(`/api/auth/status${query}`, { headers })).json as { mode: string }).mode;
  const header = (token: string): Record<string, string> => ({ authorization: `Bearer ${token}` });
  const cookie = (token: string): Record<string, string> => ({ cookie: `other=1; svc_admin_token=${token}` });
  assert.equal(await status({ ...header(good), ...cookie(bad) }, `?token=${bad}`), "operator");
  assert.equal(await status({ ...header(bad), ...cookie(good) }, `?token=${good}`), "public");
  assert.equal(await status({ authorization: "Bearer", ...cookie(good) }), "public");
  assert.equal(
    await status({ authorization: "Basic YTpi", ...cookie(good) }),
    "operator",
    "another scheme is no bearer",
  );
  assert.equal(await status({ authorization: `bEARER   ${good} ` }), "operator");
  assert.equal(await status(cookie(bad), `?token=${good}`), "public");
  assert.equal(await status({ cookie: "svc_admin_token=" }, `?token=${good}`), "public");
  assert.equal(await status({}, `?token=${good}`), "operator");
  assert.equal(await status({}, `?token=${good}&token=${good}`), "public");
  assert.equal(
    await status({}, `?token=${good.toUpperCase()}`),
    good === good.toUpperCase() ? "operator" : "public",
  );
});

test("a token in a query never reaches the log, and -allow_query_token=false leaves it without effect (T12, W-08)", async (t) => {
  const lines: string[] = [];
  const log = {
    debug: (...words: unknown[]) => void lines.push(JSON.stringify(words)),
    info: (...words: unknown[]) => void lines.push(JSON.stringify(words)),
    warn: (...words: unknown[]) => void lines.push(JSON.stringify(words)),
    error: (...words: unknown[]) => void lines.push(JSON.stringify(words)),
    child: () => log,
  };
  const open = await startTestConsole(t, { log });
  const token = await open.signIn();
  for (const path of ["/api/users", "/api/nothing", "/api/alerts?severity=wrong", "/api/%zz", "/health"]) {
    await open.ask(`${path}${path.includes("?") ? "&" : "?"}token=${token}`);
  }
  await open.ask(`/api/auth/login?token=${token}`, { body: { password: "wrong" } });
  assert.ok(lines.some((line) => line.includes("query_token")));
  for (const secret of [token, PASSWORD, "wrong"]) assert.equal(lines.join("\n").includes(secret), false);

  const shut = await startTestConsole(t, { allowQueryToken: false });
  const other = await shut.signIn();
  assert.equal((await shut.ask(`/api/users?token=${other}`)).status, 401);
  assert.equal((await shut.ask("/api/users", { headers: { authorization: `Bearer ${other}` } })).status, 200);
});

test("a cookie speaks for requests of our own pages alone; a bearer token for all (D2, W-06)", async (t) => {
  const { ask, signIn, console } = await startTestConsole(t);
  const token = await signIn();
  const cookie = { cookie: `svc_admin_token=${token}` };
  const change = async (headers: Record<string, string>): Promise<string | number> => {
    const answer = await ask("/api/alerts/resolve-all", { body: {}, headers });
    return answer.problem?.code ?? answer.status;
  };
  assert.equal(await change({ ...cookie, "sec-fetch-site": "same-origin" }), 200);
  assert.equal(await change({ ...cookie, "sec-fetch-site": "none" }), 200);
  assert.equal(await change({ ...cookie, origin: console.url }), 200);
  assert.equal(await change(cookie), "ORIGIN_REJECTED");
  assert.equal(await change({ ...cookie, "sec-fetch-site": "same-site" }), "ORIGIN_REJECTED");
  assert.equal(
    await change({ ...cookie, "sec-fetch-site": "cross-site", origin: console.url }),
    "ORIGIN_REJECTED",
  );
  assert.equal(await change({ ...cookie, origin: "null" }), "ORIGIN_REJECTED");
  assert.equal(await change({ ...cookie, origin: "https://evil.example" }), "ORIGIN_REJECTED");
  assert.equal(await change({ authorization: `Bearer ${token}`, origin: "https://evil.example" }), 200);
  assert.equal(
    (await ask("/api/users", { headers: { ...cookie, "sec-fetch-site": "cross-site" } })).status,
    200,
    "reading changes nothing",
  );
  const foreign = { ...cookie, origin: "https://evil.example" };
  assert.equal(
    (await ask("/api/auth/logout", { method: "POST", headers: foreign })).problem?.code,
    "ORIGIN_REJECTED",
  );
  assert.equal(
    (await ask("/api/auth/login", { body: { password: PASSWORD }, headers: foreign })).problem?.code,
    "ORIGIN_REJECTED",
  );
  for (const type of ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x"]) {
    const headers = { ...cookie, "sec-fetch-site": "same-origin", "content-type": type };
    assert.equal((await ask("/api/alerts/resolve-all", { body: "{}", headers })).status, 415, type);
  }
  assert.equal(
    (await ask("/api/users", { headers: cookie })).headers["access-control-allow-origin"],
    undefined,
  );
});

test("signing in sets a cookie for 12 hours that no script can read, another one each time (spec 2.4, W-05)", async (t) => {
  const { ask } = await startTestConsole(t);
  const answer = await ask("/api/auth/login", { body: { password: PASSWORD } });
  assert.equal(answer.status, 200);
  assert.match(
    answer.headers["set-cookie"]?.[0] ?? "",
    /^svc_admin_token=[0-9a-f]{64}; Max-Age=43200; Path=\/; HttpOnly; SameSite=Lax$/,
  );
  const { expires_at: expiresAt } = answer.json as { expires_at: number };
  const restS = expiresAt - Date.now() / 1_000;
  assert.ok(restS > 43_100 && restS <= 43_200);
  assert.notEqual(tokenOf(answer), tokenOf(await ask("/api/auth/login", { body: { password: PASSWORD } })));
  const wrong = await ask("/api/auth/login", { body: { password: `${PASSWORD} ` } });
  assert.equal(wrong.problem?.code, "BAD_PASSWORD");
  assert.equal(wrong.headers["set-cookie"], undefined);
});
