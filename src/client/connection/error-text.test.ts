// Tests of exit codes and of the two sentences of each refusal (decisions D1, D24).
import assert from "node:assert/strict";
import { test } from "node:test";
import { ERROR_CODES, GroveError } from "#base/errors.ts";
import { NOT_ADMIN_TEXT, QUOTA_EXCEEDED_TEXT } from "#base/refusal-texts.ts";
import { CLIENT_ERROR_CODES, ClientError, localFailure } from "#client/terminal/client-error.ts";
import { EXIT_OF_CLIENT_ERROR, EXIT_OF_REFUSAL, exitCodeOf } from "#client/terminal/exit-codes.ts";
import { errorJson, explain } from "./error-text.ts";

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
    INODE_LIMIT: 5,
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
    const cause = Object.assign(new Error("x"), { name: "StatusError" });
    const { what, todo } = explain(new GroveError(code, "the server said so", { cause }));
    assert.match(what, /^[A-Z].*\.$/s, code);
    assert.match(todo, /^['A-Z]/, code);
  }
});

test("a path with a wildcard that is not there says that none is expanded", () => {
  const local = (path: string): unknown =>
    localFailure(Object.assign(new Error("x"), { code: "ENOENT", syscall: "open" }), path);
  const todo = /^Grove does not expand wildcards/;
  assert.match(explain(new GroveError("NO_SUCH_PATH", "/a*: no such file or directory")).todo, todo);
  assert.match(explain(local("photos/*.jpg")).todo, todo);
  assert.equal(explain(local("photos/a.jpg")).todo, "Check the path.");
});

test("a root that is moving, a server that stops, and maintenance are told apart (D27)", () => {
  const told = (metadata: Record<string, string>): string =>
    explain(new GroveError("NODE_DRAINING", "new users wait", { metadata })).what;
  assert.equal(told({ moving: "true", retry_after_ms: "500" }), "These files are moving to another server.");
  assert.equal(told({}), "The server is being taken out of service.");
  assert.equal(told({ maintenance: "n1" }), "New users wait.");
  assert.equal(told({ new_users: "wait" }), "New users wait.");
});

test("what does not answer is the cluster's directory, or what a FileServer of the shared engine needs", () => {
  const cause = Object.assign(new Error("x"), { name: "StatusError" });
  const told = (message: string): string =>
    explain(new GroveError("STORE_UNAVAILABLE", message, { cause })).what;
  assert.equal(told("the metadata store's database is starting"), "The cluster's directory does not answer.");
  assert.equal(
    told("the metaserver cannot be reached, so that a first sign-in has to wait; try again"),
    "The cluster's directory does not answer.",
  );
  assert.equal(
    told("the object store answered 503 SlowDown to PUT"),
    "The object store answered 503 SlowDown to PUT.",
  );
  assert.equal(
    told("the shared database does not answer; try again"),
    "The shared database does not answer.",
  );
});

const GIB = 2n ** 30n;
const MIB = 2n ** 20n;
const quotaRefusal = (metadata: Record<string, bigint | string>): GroveError =>
  new GroveError("QUOTA_EXCEEDED", QUOTA_EXCEEDED_TEXT, {
    metadata: Object.fromEntries(Object.entries(metadata).map(([name, value]) => [name, String(value)])),
  });

test("a quota refusal names what fills the quota, what is missing, and what would make room (D1)", () => {
  const metadata = {
    quota: 16n * GIB,
    used: 16n * GIB - 100n * MIB,
    requested: 300n * MIB,
    trash_bytes: 4n * GIB,
    root_owner: "alice@example.com",
  };
  const own = explain(quotaRefusal(metadata));
  assert.equal(
    own.what,
    "The quota of alice@example.com is 16 GiB, 11.9 GiB in files, 4 GiB in trash; this needs 200 MiB more: " +
      "storage quota exceeded.",
  );
  assert.equal(own.todo, "'grove trash empty' would free 4 GiB.");
  const small = explain(quotaRefusal({ ...metadata, trash_bytes: 100n * MIB }));
  assert.match(small.todo, /^'grove trash empty' would free 100 MiB, which is not enough: /);
  const busy = explain(quotaRefusal({ ...metadata, reserved: 100n * MIB, staging_bytes: 1n * GIB }));
  assert.match(
    busy.what,
    /10\.9 GiB in files, 4 GiB in trash, 1 GiB in unfinished uploads, 100 MiB promised/,
  );
  assert.match(busy.what, /needs 300 MiB more/);
});

test("an empty file at the quota needs nothing and is told so; no trash, no advice to empty it", () => {
  const { what, todo } = explain(quotaRefusal({ quota: GIB, used: GIB, requested: 0n, trash_bytes: 0n }));
  assert.equal(what, "The quota is 1 GiB, 1 GiB in files; nothing of it is left: storage quota exceeded.");
  assert.match(todo, /^Delete what is not needed/);
});

test("who writes into another user's root is not told to empty a trash that is not theirs", () => {
  for (const [owner, who] of [
    ["alice@example.com", "alice@example.com"],
    ["atlas@group", "a member who manages it"],
  ] as const) {
    const { todo } = explain(
      quotaRefusal({
        quota: GIB,
        used: GIB,
        requested: 1n,
        trash_bytes: GIB,
        root_owner: owner,
        path: `${owner}:/docs/a`,
      }),
    );
    assert.equal(todo, `Ask ${who} to delete something, or to empty the trash, which would free 1 GiB.`);
  }
});

test("a rate limit says how long to wait", () => {
  const limited = (retry_after_ms: string) =>
    explain(new GroveError("RATE_LIMITED", "too many", { metadata: { retry_after_ms } })).todo;
  assert.equal(limited("41200"), "Wait 42 s and try again.");
  for (const wrong of ["", "x", "-1", "1e99"]) assert.equal(limited(wrong), "Wait a minute and try again.");
});

test("a disk of this machine that fails is neither a server's nor the network's fault (D24)", () => {
  const here = new GroveError("STORAGE_FAILED", "flushing /x to stable storage failed");
  assert.equal(exitCodeOf(here), 1);
  assert.match(explain(here).what, /^Flushing \/x/);
  assert.equal(errorJson(here).error.reason, null);
  const status = Object.assign(new Error("x"), { name: "StatusError" });
  const there = new GroveError("STORAGE_FAILED", "x", {
    cause: new GroveError("STORAGE_FAILED", "x", { cause: status }),
  });
  assert.equal(exitCodeOf(there), 7);
  assert.match(explain(there).what, /^The server's disk has failed/);
  assert.equal(errorJson(there).error.reason, "STORAGE_FAILED");
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
    assert.equal(errorJson(error).error.hint, explain(error).todo);
  }
});

test("a refusal for the number of files names what is there and what would make room (D1)", () => {
  const tell = (metadata: Record<string, string>): string => {
    const { what, todo } = explain(new GroveError("INODE_LIMIT", "inode limit reached", { metadata }));
    return `${what} ${todo}`;
  };
  const full = { inodes: "10000000", inode_limit: "10000000", requested: "1", root_owner: "a@x" };
  assert.equal(
    tell({ ...full, trash_inodes: "1234" }),
    "The root of a@x holds 10,000,000 files and folders, 1,234 of them in the trash; it may hold 10,000,000. " +
      "'grove trash empty' would make room for 1,234; or ask an administrator for a higher limit.",
  );
  assert.equal(
    tell({ ...full, inodes: "9999990", reserved: "2", requested: "12", trash_inodes: "0" }),
    "The root of a@x holds 9,999,990 files and folders, and 2 are being made; it may hold 10,000,000; this would make 12 more. " +
      "Delete what is not needed (grove rm, then grove trash empty), or ask an administrator for a higher limit.",
  );
  assert.match(tell({ ...full, path: "a@x:/docs/f" }), /Ask a@x to delete something\.$/);
  for (const metadata of [{}, { inodes: "x", inode_limit: "1" }, { inodes: "-1" }]) {
    assert.match(tell(metadata), /no more files and folders fit into this root/);
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
  assert.equal(json.reason, "NO_SUCH_PATH");
  assert.match(json.hint, /grove ls/);
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
