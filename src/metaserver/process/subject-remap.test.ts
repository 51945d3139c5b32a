// Users who are remapped to another identity provider: pairs, domains, administrators, disabled users.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isGroveError } from "#base/errors.ts";
import type { SubjectRecord } from "#metaserver/directory/subject.ts";
import { parseDomains, parsePairs, planRemap, type RemapRequest } from "./subject-remap.ts";

const user = (username: string, subject = `old-${username}`): SubjectRecord => ({
  username,
  issuer: "old.example",
  subject,
  version: 0n,
});

const USERS = ["bob@example.com", "eve@gmail.com", "root@example.com", "gone@example.com"].map((name) =>
  user(name),
);
const WISH: Omit<RemapRequest, "how"> = {
  toIssuer: "https://new.example",
  administrators: new Set(["root@example.com"]),
  disabled: new Set(["gone@example.com"]),
};

test("by e-mail only addresses of the provider's own domains go over, and no administrator or disabled user", () => {
  const { matched, left } = planRemap(USERS, {
    ...WISH,
    how: { by: "email", domains: parseDomains("Example.com") },
  });
  assert.deepEqual(matched, [
    {
      username: "bob@example.com",
      from: { issuer: "old.example", subject: "old-bob@example.com" },
      to: { issuer: "new.example", subject: "" },
    },
  ]);
  assert.deepEqual(left, [
    { username: "eve@gmail.com", why: "gmail.com is not declared the provider's" },
    { username: "root@example.com", why: "an administrator: grove user rebind root@example.com" },
    { username: "gone@example.com", why: "disabled" },
  ]);
});

test("a domain is the whole of what is behind the @, and not its end", () => {
  const users = ["a@notexample.com", "b@sub.example.com", "c@example.com"].map((name) => user(name));
  const { matched } = planRemap(users, { ...WISH, how: { by: "email", domains: new Set(["example.com"]) } });
  assert.deepEqual(
    matched.map(({ username }) => username),
    ["c@example.com"],
  );
});

test("by pairs each goes over to the subject that was confirmed, and who has none stays", () => {
  const subjects = parsePairs("# from both lists\nold-bob@example.com, 8f3a\r\n\nold-root@example.com,1\n");
  const { matched, left } = planRemap(USERS, { ...WISH, how: { by: "pairs", subjects } });
  assert.deepEqual(
    matched.map(({ username, to }) => [username, to.subject]),
    [["bob@example.com", "8f3a"]],
  );
  assert.equal(left[0]?.why, "no pair has its subject");
});

test("pairs and domains that are none are refused with their place", () => {
  for (const [text, said] of [
    ["a", /line 1 is not OLD_SUBJECT,NEW_SUBJECT/],
    ["a,b\nc,", /line 2 is not/],
    ["a,b,c", /line 1 is not/],
    ["a,b\na,c", /line 2 has an old subject that an earlier line has/],
    ["a,b\nc,b", /line 2 has a new subject that an earlier line has: two users would be one person/],
    [`a,${"x".repeat(256)}`, /line 1 is not/],
  ] as const) {
    assert.throws(
      () => parsePairs(text),
      (error) => isGroveError(error, "BAD_ARGUMENT") && said.test(error.message),
    );
  }
  for (const text of ["", "example", "@example.com", "a.de,,b.de"]) {
    assert.throws(
      () => parseDomains(text),
      (error) => isGroveError(error, "BAD_ARGUMENT"),
    );
  }
});
