// Tests of verbs with several names: which failures end a verb, and which are told before the next name.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ErrorCode, GroveError } from "#base/errors.ts";
import { ClientError, type ClientErrorCode } from "#client/terminal/client-error.ts";
import type { ClientContext } from "./client-context.ts";
import { forEachNamed } from "./each-named.ts";

/** The steps that a verb with two names takes where the first one fails, and what was told. */
async function after(failure: Error): Promise<{ readonly steps: number; readonly told: string }> {
  let steps = 0;
  let told = "";
  const write = (text: string): boolean => {
    told += text;
    return true;
  };
  const context = {
    signal: new AbortController().signal,
    flags: {},
    terminal: { env: {}, error: { write } },
  };
  const step = async (name: string): Promise<void> => {
    steps++;
    if (name === "a") throw failure;
  };
  await forEachNamed(context as unknown as ClientContext, "stat", ["a", "b"], step).catch((error: unknown) =>
    assert.equal(error, failure),
  );
  return { steps, told };
}

test("a failure that comes from the sign-in, the session or the server's certificate ends the verb, untold", async () => {
  const refusals: readonly ErrorCode[] = [
    "SESSION_EXPIRED",
    "TOKEN_REJECTED",
    "USER_DISABLED",
    "IDP_UNAVAILABLE",
    "SESSION_TABLE_FULL",
    "VERSION_MISMATCH",
  ];
  const own: readonly ClientErrorCode[] = ["CANCELLED", "NETWORK", "SIGN_IN_NEEDED", "SERVER_UNTRUSTED"];
  for (const failure of [
    ...refusals.map((code) => new GroveError(code, "no")),
    ...own.map((code) => new ClientError(code, "no")),
  ])
    assert.deepEqual(await after(failure), { steps: 1, told: "" }, failure.code);
});

test("a failure of one name is told, and the next one has its turn", async () => {
  for (const code of ["NO_SUCH_PATH", "NOT_SHARED", "QUOTA_EXCEEDED", "RATE_LIMITED"] as const) {
    const { steps, told } = await after(new GroveError(code, "no"));
    assert.equal(steps, 2, code);
    assert.match(told, /^grove stat: .*\n$/);
  }
});
