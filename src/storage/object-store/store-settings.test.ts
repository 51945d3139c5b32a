// Tests where the store's settings and key come from, and that no secret shows.
import assert from "node:assert/strict";
import { chmodSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { CredentialsFile } from "./store-credentials.ts";
import { refusedBy } from "./store-error.ts";
import { storeSettings } from "./store-settings.ts";
import { childText, xmlRoot } from "./xml-answer.ts";

const GOOD = "s3://chunks/a/b?endpoint=https://s3.example:9000&credentials=/etc/grove/store";

test("a store is one URL, with files for what is secret", () => {
  assert.deepEqual(storeSettings(GOOD), {
    endpoint: "https://s3.example:9000",
    bucket: "chunks",
    prefix: "a/b/",
    region: "us-east-1",
    addressing: "path",
    credentialsFile: "/etc/grove/store",
    caFile: undefined,
  });
  const other = storeSettings(
    `${GOOD}&region=garage&addressing=virtual-host&ca=/etc/ca.pem`.replace("/a/b", ""),
  );
  assert.deepEqual(
    [other.region, other.addressing, other.caFile, other.prefix],
    ["garage", "virtual-host", "/etc/ca.pem", ""],
  );
});

test("plain HTTP is for this machine, unless a setting says otherwise", () => {
  const at = (endpoint: string): string => GOOD.replace("https://s3.example:9000", endpoint);
  for (const own of ["http://127.0.0.1:9000", "http://[::1]:9000", "http://localhost:9000"]) {
    assert.equal(storeSettings(at(own)).endpoint, own);
  }
  for (const away of ["http://s3.example", "http://127.0.0.1.example", "ftp://127.0.0.1"]) {
    assert.throws(() => storeSettings(at(away)), /endpoint/);
  }
  assert.equal(storeSettings(`${at("http://nas.lan")}&insecure_http=1`).endpoint, "http://nas.lan");
});

test("a secret in the URL is refused, and not repeated", () => {
  for (const text of [
    "s3://id:hunter2@chunks?endpoint=https://s3.example&credentials=/f",
    `${GOOD}&secret_access_key=hunter2`,
    GOOD.replace("https://", "https://id:hunter2@"),
    "hunter2",
  ]) {
    assert.throws(
      () => storeSettings(text),
      (error: Error) => !error.message.includes("hunter2"),
    );
  }
});

test("a changed file of credentials is read again, a broken one keeps the last key", async (context) => {
  const path = join(temporaryDirectory(context), "key");
  const clock = new ManualClock();
  const file = new CredentialsFile({ path, clock, logger: silentLogger });
  const write = (text: string): void => writeFileSync(path, text, { mode: 0o600 });
  await assert.rejects(file.current(), /cannot be read: ENOENT/);
  write("[default]\naws_access_key_id = one\naws_secret_access_key = hunter2\n");
  assert.deepEqual(await file.current(), { accessKeyId: "one", secretAccessKey: "hunter2" });
  write("access_key_id = two\nsecret_access_key = other secret\n");
  clock.advance(1_000);
  assert.equal((await file.current()).accessKeyId, "one", "a value with a space is no key");
  write("access_key_id = two\nsecret_access_key = hunter3\nsession_token = t\n");
  assert.equal((await file.current()).accessKeyId, "one", "within a second");
  file.doubt();
  assert.deepEqual(await file.current(), {
    accessKeyId: "two",
    secretAccessKey: "hunter3",
    sessionToken: "t",
  });
  rmSync(path);
  clock.advance(1_000);
  assert.equal((await file.current()).accessKeyId, "two");
  write("access_key_id = x\nsecret_access_key = hunter4\n");
  chmodSync(path, 0o644);
  const another = new CredentialsFile({ path, clock, logger: silentLogger });
  await assert.rejects(
    another.current(),
    (error: Error) => /others/.test(error.message) && !/hunter/.test(error.message),
  );
});

test("answers become problems by code and status, with words of the store's own kind only", () => {
  const problem = (status: number, code = ""): string => refusedBy("PUT", status, code).problem;
  assert.equal(problem(503, "SlowDown"), "busy");
  assert.equal(problem(500), "busy");
  assert.equal(problem(409, "ConditionalRequestConflict"), "busy");
  assert.equal(problem(501), "refused");
  assert.equal(problem(404, "NoSuchKey"), "missing");
  assert.equal(problem(404, "NoSuchBucket"), "refused");
  assert.equal(problem(404), "busy", "a proxy that has lost its store");
  assert.equal(problem(412), "taken");
  assert.equal(problem(400, "BadDigest"), "damaged");
  assert.equal(problem(400, "InvalidDigest"), "damaged");
  assert.equal(problem(403, "SignatureDoesNotMatch"), "denied");
  const hostile = refusedBy("PUT", 400, "<b>hunter2</b>");
  assert.equal(hostile.message, "the object store answered 400 to PUT");
});

test("answers are read within bounds, and without a document's own entities", () => {
  assert.equal(childText(xmlRoot("<a:E xmlns:a='u'><a:Code>X&amp;Y</a:Code></a:E>"), "Code"), "X&Y");
  const bomb = '<!DOCTYPE l [<!ENTITY a "b">]><l>&a;</l>';
  for (const text of ["", "no xml", "<a><b></a>", bomb, "<l>&a;</l>", "<a>".repeat(20) + "</a>".repeat(20)]) {
    assert.equal(xmlRoot(text), undefined);
  }
});
