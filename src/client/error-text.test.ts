// Tests of exit codes and of the two sentences of each refusal (decisions D1, D24).
import assert from "node:assert/strict";
import { test } from "node:test";
import { ERROR_CODES, GroveError, NOT_ADMIN_TEXT, QUOTA_EXCEEDED_TEXT } from "#base/errors.ts";
import { CLIENT_ERROR_CODES, ClientError, localFailure } from "./client-error.ts";
import { errorJson, explain } from "./error-text.ts";
import { EXIT_OF_CLIENT_ERROR, EXIT_OF_REFUSAL, exitCodeOf } from "./exit-codes.ts";

test("exit codes are those of D24", () => {
  const expected = {
    PATH_EXISTS: 1,
    BAD_ARGUMENT: 1,
    SESSION_EXPIRED: 2,
    TOKEN_REJECTED: 2,
    NO_SUCH_PATH: 3,
    NOT_OWNER: 4,
    NOT_SHARED: 4,
    NOT_ADMIN: 4,
    QUOTA_EXCEEDED: 5,
    DISK_RESERVE: 6,
    NODE_DRAINING: 7,
  } as const;
  for (const [code, exit] of Object.entries(expected)) {
    assert.equal(exitCodeOf(new GroveError(code as keyof typeof expected, "x")), exit, code);
  }
  assert.equal(exitCodeOf(new ClientError("NETWORK", "x")), 7);
  assert.equal(exitCodeOf(new ClientError("SIGN_IN_NEEDED", "x")), 2);
  assert.equal(exitCodeOf(new ClientError("USAGE", "x")), 1);
  assert.equal(exitCodeOf(new Error("x")), 1);
});

test("no refusal and no failure ends with 0", () => {
  for (const code of ERROR_CODES) assert.ok(EXIT_OF_REFUSAL[code] > 0, code);
  for (const code of CLIENT_ERROR_CODES) assert.ok(EXIT_OF_CLIENT_ERROR[code] > 0, code);
});

test("every refusal says in one sentence what happened and in another what to do (D1)", () => {
  for (const code of ERROR_CODES) {
    const { what, todo } = explain(new GroveError(code, "the server said so"));
    assert.match(what, /^[A-Z].*\.$/s, code);
    assert.match(todo, /^['A-Z]/, code);
  }
});

test("a quota refusal names the numbers behind it (D1)", () => {
  const gib = 2n ** 30n;
  const { what, todo } = explain(
    new GroveError("QUOTA_EXCEEDED", "storage quota exceeded", {
      metadata: {
        quota: String(16n * gib),
        used: String(16n * gib - 100n * 2n ** 20n),
        requested: String(300n * 2n ** 20n),
        trash_bytes: String(4n * gib),
        root_owner: "alice@example.com",
      },
    }),
  );
  assert.equal(
    what,
    "The quota of alice@example.com is 16 GiB, 15.9 GiB are used, 4 GiB of them in the trash; " +
      "this needs 300 MiB, which is 200 MiB more than is left: storage quota exceeded.",
  );
  assert.match(todo, /^Empty the trash, which frees 4 GiB/);
});

test("the texts that the specification fixes reach people to the letter, also its small first letter (spec 7)", () => {
  const reserve =
    "fileserver storage limit reached: cannot write 10 bytes (usable free space: 0 bytes, 20 GiB reserved for system safety)";
  const texts = [
    ["QUOTA_EXCEEDED", QUOTA_EXCEEDED_TEXT, {}],
    ["QUOTA_EXCEEDED", QUOTA_EXCEEDED_TEXT, { quota: "10", used: "10", requested: "1" }],
    ["DISK_RESERVE", reserve, {}],
    ["NOT_ADMIN", NOT_ADMIN_TEXT, {}],
  ] as const;
  for (const [code, text, metadata] of texts) {
    const error = new GroveError(code, text, { metadata });
    assert.ok(explain(error).what.includes(text), code);
    assert.ok(errorJson(error).error.message.includes(text), code);
  }
});

test("quota numbers of any size, wrong ones too, never break the sentence", () => {
  for (const metadata of [
    {},
    { quota: "x", used: "1" },
    { quota: "18446744073709551615", used: "0" },
    { quota: "-1" },
  ]) {
    assert.ok(
      explain(new GroveError("QUOTA_EXCEEDED", "storage quota exceeded", { metadata })).what.length > 10,
    );
  }
});

test("errors for programs carry code, message and metadata (D24)", () => {
  const error = new GroveError("NO_SUCH_PATH", "/x: no such file or directory", { metadata: { path: "/x" } });
  const { error: json } = errorJson(error);
  assert.equal(json.code, "NO_SUCH_PATH");
  assert.deepEqual(json.metadata, { path: "/x" });
  assert.match(json.message, /^\/x: no such file/);
});

test("failures of this machine's files name the path and have their exit codes", () => {
  const fail = (code: string): Error => Object.assign(new Error("x"), { code, syscall: "open" });
  assert.equal(exitCodeOf(localFailure(fail("ENOENT"), "a.txt")), 3);
  assert.equal(exitCodeOf(localFailure(fail("EACCES"), "a.txt")), 4);
  assert.equal(exitCodeOf(localFailure(fail("EIO"), "a.txt")), 1);
  assert.match(explain(localFailure(fail("ENOSPC"), "a.txt")).what, /^a\.txt: no space/);
  const other = new TypeError("x");
  assert.equal(localFailure(other, "a.txt"), other);
});
