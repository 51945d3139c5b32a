// The word that names a source: what ssh gets of it, and what is refused before anything is asked.
import assert from "node:assert/strict";
import { test } from "node:test";
import { typedSource } from "./typed-source.ts";

test("of an SFTP address ssh gets a host, a user and a path, and nothing that it takes for an option", () => {
  assert.deepEqual(typedSource("sftp://alice@old.example.org:2222/a%20b"), {
    kind: "sftp",
    place: { host: "old.example.org", port: 2222, user: "alice", path: "/a b" },
  });
  assert.deepEqual(typedSource("sftp://old.example.org/~/docs"), {
    kind: "sftp",
    place: { host: "old.example.org", port: undefined, user: undefined, path: "docs" },
  });
  for (const word of [
    "sftp://-oProxyCommand=id/",
    "sftp://a@-oProxyCommand=id/",
    "sftp://-oProxyCommand=id@host/",
    "sftp://a%20b@host/",
    "sftp://a%0ab@host/",
    "sftp://%ff@host/",
    "sftp://a@host/%ff",
    "sftp://a:secret@host/",
    "sftp:///path",
    "",
  ]) {
    assert.throws(() => typedSource(word), { code: "USAGE" }, word);
  }
});
