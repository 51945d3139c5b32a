// Tests of the finding for each variable of spec 5.9, and that no value is ever shown.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import fc from "fast-check";
import type { Environment } from "#security/identity/sign-in-variables.ts";
import { environmentFindings } from "./environment-checks.ts";

const HASH = createHash("sha256").update("a long one").digest("hex");
const GOOD = { IDP_CLIENT_ID: "grove", IDP_ISSUER: "https://id.example.com", ADMIN_PASSWORD_HASH: HASH };
const stateOf = (name: string, env: Environment): string =>
  environmentFindings(env).find((finding) => finding.name === name)?.state ?? "none";

test("a sound environment has nothing but ok", () => {
  assert.deepEqual(new Set(environmentFindings(GOOD).map(({ state }) => state)), new Set(["ok"]));
});

test("each variable's wrong values are found (spec 5.9)", () => {
  const cases: readonly (readonly [string, string | undefined, string])[] = [
    ["IDP_CLIENT_ID", undefined, "failed"],
    ["IDP_CLIENT_ID", "grove ", "failed"],
    ["IDP_ISSUER", undefined, "failed"],
    ["IDP_ISSUER", "ftp://x", "failed"],
    ["IDP_ISSUER", "http://id.example.com", "warning"],
    ["IDP_TOKENINFO_URL", "not a url", "failed"],
    ["IDP_REDIRECT_URI", "https://elsewhere.example.com/", "warning"],
    ["IDP_REDIRECT_URI", "http://127.0.0.1:9/cb", "ok"],
    ["IDP_ALLOW_AUD_LIST", "yes", "warning"],
    ["IDP_ALLOW_AUD_LIST", "1", "ok"],
    ["IDP_AUTH_URL", "not a url", "failed"],
    ["IDP_AUTH_URL", "https://id.example.com/auth", "ok"],
    ["IDP_TOKEN_URL", "http://id.example.com/token", "warning"],
    ["IDP_DOOR_CLIENT_ID", undefined, "ok"],
    ["IDP_DOOR_CLIENT_ID", "grove", "failed"],
    ["IDP_DOOR_CLIENT_ID", "grove-doors", "ok"],
    ["SVC_METRICS_TOKEN", "secret", "ok"],
    ["SVC_AUTH_MOCK", "1", "warning"],
    ["SVC_AUTH_MOCK", "yes", "warning"],
    ["SVC_AUTH_MOCK", "0", "ok"],
    ["SVC_ADMIN_EMAIL", "nobody", "failed"],
    ["SVC_ADMIN_EMAIL", "Root@Example.com", "ok"],
    ["ADMIN_PASSWORD_HASH", undefined, "warning"],
    ["ADMIN_PASSWORD_HASH", createHash("sha256").update("admin").digest("hex"), "warning"],
    ["ADMIN_PASSWORD_HASH", "abc", "failed"],
    ["ADMIN_PASSWORD", "x", "warning"],
    ["USE_IDP_AUTH", "0", "failed"],
    ["USE_IDP_AUTH", "no", "warning"],
    ["USE_IDP_AUTH", "1", "ok"],
  ];
  for (const [name, value, state] of cases) {
    assert.equal(stateOf(name, { ...GOOD, [name]: value }), state, `${name}=${value}`);
  }
  // With mock sign-in no provider is needed.
  assert.equal(stateOf("IDP_CLIENT_ID", { SVC_AUTH_MOCK: "true" }), "ok");
  assert.equal(stateOf("USE_IDP_AUTH", { ...GOOD, SVC_AUTH_MOCK: "1", USE_IDP_AUTH: "0" }), "warning");
  assert.equal(
    stateOf("IDP_ISSUER", { ...GOOD, IDP_ISSUER: undefined, IDP_TOKENINFO_URL: "https://x/t" }),
    "ok",
  );
  assert.equal(
    stateOf("ADMIN_PASSWORD_HASH", { ...GOOD, ADMIN_PASSWORD_HASH: undefined, ADMIN_PASSWORD: "x" }),
    "ok",
  );
});

test("whatever is set, no value is shown, and every finding that is not ok says what to do", () => {
  const secret = fc.string({ minLength: 12, maxLength: 40 }).map((text) => `S3cret${text}`);
  const names = [
    "IDP_CLIENT_ID",
    "IDP_CLIENT_SECRET",
    "ADMIN_PASSWORD",
    "ADMIN_PASSWORD_HASH",
    "SVC_ADMIN_EMAIL",
    "SVC_AUTH_MOCK",
    "SVC_METRICS_TOKEN",
    "IDP_AUTH_URL",
    "IDP_DOOR_CLIENT_ID",
    "IDP_ISSUER",
    "USE_IDP_AUTH",
  ];
  fc.assert(
    fc.property(fc.constantFrom(...names), secret, (name, value) => {
      for (const finding of environmentFindings({ ...GOOD, [name]: value })) {
        assert.doesNotMatch(`${finding.what} ${finding.todo}`, /S3cret/);
        if (finding.state !== "ok") assert.notEqual(finding.todo, "");
      }
    }),
  );
});
