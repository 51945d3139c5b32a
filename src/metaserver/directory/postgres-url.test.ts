// URLs of the PostgreSQL store: their meaning, their refusals, and the sources of a missing password.
import assert from "node:assert/strict";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import { isGroveError } from "#base/errors.ts";
import { findPassword, hasPassword, parsePostgresUrl } from "#os/postgres-url.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { storePassword } from "./open-directory.ts";

const parse = (url: string, env: Record<string, string> = {}): ReturnType<typeof parsePostgresUrl> =>
  parsePostgresUrl(url, env);

test("a URL names user, hosts, database and how far the certificate is believed", () => {
  assert.deepEqual(parse("postgres://u%40x:p%3Aw@db1,[::2]:6000/d%20b?sslrootcert=/ca.pem"), {
    hosts: [
      { host: "db1", port: 5432 },
      { host: "::2", port: 6000 },
    ],
    user: "u@x",
    database: "d b",
    password: "p:w",
    sslMode: "verify-full",
    sslFiles: { ca: "/ca.pem" },
  });
  assert.deepEqual(parse("postgresql:///d?host=/run/pg&port=5433&user=u").hosts, [
    { host: "/run/pg", port: 5433 },
  ]);
  const env = { PGHOST: "h1,h2", PGPORT: "1,2", PGUSER: "me", PGDATABASE: "db", PGSSLMODE: "require" };
  const { hosts, user, database, sslMode } = parse("postgres://", env);
  assert.deepEqual(
    [hosts, user, database, sslMode],
    [
      [
        { host: "h1", port: 1 },
        { host: "h2", port: 2 },
      ],
      "me",
      "db",
      "require",
    ],
  );
});

test("what leaves the machine is encrypted and checked unless the URL says otherwise", () => {
  for (const [url, mode] of [
    ["postgres://u@localhost/d", "disable"],
    ["postgres://u@127.0.0.1,[::1]/d", "disable"],
    ["postgres://u@%2Frun%2Fpostgresql/d", "disable"],
    ["postgres://u@127.0.0.1,db/d", "verify-full"],
    ["postgres://u@db/d", "verify-full"],
    ["postgres://u@db/d?sslmode=disable", "disable"],
  ] as const) {
    assert.equal(parse(url).sslMode, mode, url);
  }
});

test("what is not understood is refused, and nothing of the URL is told", () => {
  for (const url of [
    "postgres:s3cret",
    "postgres://u:s3cret%@h/d",
    "postgres://u:s3cret@h:0/d",
    "postgres://u:s3cret@h:99999/d",
    "postgres://u:s3cret@h/d?sslmode=prefer",
    "postgres://u:s3cret@h/d?s3cret%20option=1",
    "postgres://u:s3cret@h/d/e",
    "postgres://u:s3@cret@h/d",
  ]) {
    assert.throws(
      () => parse(url),
      (error) => isGroveError(error, "BAD_ARGUMENT") && !/s3|cret/.test(error.message),
      url,
    );
  }
});

test("a password in a URL is seen wherever it may stand", () => {
  for (const url of ["postgres://u:p@h/d", "postgres://u@h/d?password=p", "postgres://:p@h/d"]) {
    assert.equal(hasPassword(url), true, url);
    assert.equal(storePassword(url, { PGUSER: "u" }), "p", url);
  }
  for (const url of [
    "postgres://u@h:5432/d",
    "postgres://h:1,i:2/d",
    "sqlite:a:b@c",
    "postgres:///d?host=/a:b",
  ]) {
    assert.equal(hasPassword(url), false, url);
  }
  for (const url of ["postgres://u@h:5432/d", "sqlite:a:b@c"])
    assert.equal(storePassword(url, {}), undefined);
});

test("any text is a URL or is refused with BAD_ARGUMENT", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...Array.from("au@:/?&=%2[],.5 \\")) }), (rest) => {
      try {
        parse(`postgres://${rest}`, { USER: "me" });
      } catch (error) {
        assert.ok(isGroveError(error, "BAD_ARGUMENT"), String(error));
      }
    }),
  );
});

test("without a password in the URL it comes from PGPASSWORD, or from the line of PGPASSFILE that fits", async () => {
  const folder = scratchFolder("pgpass-");
  const path = join(folder, "pgpass");
  await writeFile(path, "# all\nh:1:d:u:first\n*:2:*:u:a\\:b\\\\c\nlocalhost:*:*:*:socket\n", {
    mode: 0o600,
  });
  const env = { PGPASSFILE: path };
  const find = (url: string, more: Record<string, string> = {}): Promise<string> => {
    const settings = parse(url);
    return findPassword(settings, settings.hosts[0], { ...env, ...more });
  };
  assert.equal(await find("postgres://u:own@h:1/d"), "own");
  assert.equal(await find("postgres://u@h:1/d", { PGPASSWORD: "environment" }), "environment");
  assert.equal(await find("postgres://u@h:1/d"), "first");
  assert.equal(await find("postgres://u@other:2/e"), "a:b\\c");
  assert.equal(await find("postgres://v@%2Frun:9/e"), "socket");
  const nothing = (error: unknown): boolean => isGroveError(error, "BAD_ARGUMENT");
  await assert.rejects(find("postgres://v@other:2/e"), nothing);
  await assert.rejects(find("postgres://u@h:1/d", { PGPASSFILE: join(folder, "none") }), nothing);
  await chmod(path, 0o640);
  await assert.rejects(find("postgres://u@h:1/d"), /others may read .*chmod 600/);
});
