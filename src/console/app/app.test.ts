// Tests the application around the routes: the answers before and beside every handler.
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { operatorOf, viewerOf } from "#console/http/route.ts";
import { securityHeaders } from "#console/http/security-headers.ts";
import { startApp } from "./app.fixture.ts";

test("a route says who may call it; visitors are refused before a handler for operators runs (spec 4.1, 5.8.3)", async () => {
  const { ask, askAsOperator, close, session } = await startApp((app) => {
    app.get("/api/everybody", { config: { auth: "public" } }, (request) => ({
      kind: viewerOf(request).kind,
    }));
    app.get("/api/operators", { config: { auth: "operator" } }, (request) => ({
      id: operatorOf(request).id,
    }));
    app.post(
      "/api/sized",
      {
        config: { auth: "operator", invalidBody: "QUOTA_INVALID" },
        schema: { body: z.object({ size: z.int() }).strict() },
      },
      (request) => ({ twice: BigInt(request.body.size) * 2n ** 60n }),
    );
  });
  try {
    assert.deepEqual((await ask("/api/everybody")).json, { kind: "visitor" });
    assert.deepEqual((await askAsOperator("/api/everybody")).json, { kind: "operator" });
    const refused = await ask("/api/operators");
    assert.equal(refused.status, 401);
    assert.equal(refused.problem?.code, "AUTH_REQUIRED");
    assert.equal(refused.headers["www-authenticate"], 'Bearer realm="svc-admin"');
    assert.deepEqual((await askAsOperator("/api/operators")).json, { id: session.id });
    assert.deepEqual(
      (await askAsOperator("/api/sized", { body: { size: 15 } })).text,
      '{"twice":"17293822569102704640"}',
    );
    const invalid = await askAsOperator("/api/sized", { body: { size: "12GB" } });
    assert.equal(invalid.status, 422);
    assert.equal(invalid.problem?.code, "QUOTA_INVALID");
    assert.equal(invalid.problem?.errors?.[0]?.pointer, "/size");
    assert.equal((await askAsOperator("/api/sized", { body: "{" })).problem?.code, "BAD_JSON");
    assert.equal((await askAsOperator("/api/sized")).problem?.code, "METHOD_NOT_ALLOWED");
    assert.equal((await ask("/api/nowhere")).problem?.code, "NO_SUCH_ROUTE");
    assert.equal((await ask("/api/actions/execute", { body: {} })).problem?.code, "AUTH_REQUIRED");
    assert.equal((await askAsOperator("/api/actions/execute", { body: {} })).problem?.code, "NO_SUCH_ROUTE");
  } finally {
    await close();
  }
});

test("however a path is written, it counts against the limit and is kept by no cache (D17, W-14)", async (t) => {
  const rates = { visitor: { perSecond: 20, burst: 40 }, operator: { perSecond: 50, burst: 100 } };
  const { ask, close } = await startApp(
    (app) => void app.get("/api/everybody", { config: { auth: "public" } }, () => ({})),
    { rates },
  );
  t.after(close);
  for (let at = 0; at < 20; at++) {
    for (const path of ["/api/everybody", "/%61pi/everybody"]) {
      const answer = await ask(path);
      assert.deepEqual([answer.status, answer.headers["cache-control"]], [200, "no-store"], path);
    }
  }
  const refused = await ask("/%61%70i/everybody");
  assert.deepEqual([refused.problem?.code, refused.headers["retry-after"]], ["RATE_LIMITED", "1"]);
});

test("a route that does not say who may call it does not start", async () => {
  await assert.rejects(
    startApp((app) => {
      app.get("/api/forgotten", () => ({}));
    }),
    /does not say who may call it/,
  );
});

test("every answer tells browsers what may be done with it, and over TLS alone that it is to be asked by TLS", async () => {
  const { ask, close } = await startApp((app) => {
    app.get("/api/everybody", { config: { auth: "public" } }, () => ({}));
    app.get("/page", { config: { auth: "public" } }, () => ({}));
  });
  const ofAll = {
    "content-security-policy":
      "default-src 'self';object-src 'none';base-uri 'none';frame-ancestors 'none';form-action 'self'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
  };
  try {
    for (const path of ["/api/everybody", "/api/nowhere"]) {
      assert.partialDeepStrictEqual((await ask(path)).headers, ofAll);
    }
    const { headers } = await ask("/page");
    assert.partialDeepStrictEqual(headers, {
      ...ofAll,
      "cross-origin-opener-policy": "same-origin",
      "origin-agent-cluster": "?1",
      "x-dns-prefetch-control": "off",
      "x-download-options": "noopen",
      "x-permitted-cross-domain-policies": "none",
      "x-xss-protection": "0",
    });
    assert.equal(headers["strict-transport-security"], undefined);
  } finally {
    await close();
  }
  assert.equal(securityHeaders("/api/x", true)["strict-transport-security"], "max-age=31536000");
});
