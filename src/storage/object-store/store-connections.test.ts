// Tests the connection to a real store: its certificate, an authority of one's own, a bucket named by the host.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { silentLogger } from "#base/log.ts";
import { startStore, withoutStore } from "#testing/object-stores.ts";
import { temporaryDirectory } from "#testing/temporary-folder.ts";
import { S3Client } from "./s3-client.ts";
import { clientOf, content } from "./store.fixture.ts";
import { CredentialsFile } from "./store-credentials.ts";
import { isStoreProblem } from "./store-error.ts";
import { storeSettings } from "./store-settings.ts";

const PATIENCE = { connectMs: 20_000, silenceMs: 20_000, bytesPerSecond: 1e9 };

test("TLS is verified, and an authority of one's own is trusted", {
  skip: withoutStore("versitygw"),
}, async (context) => {
  const folder = temporaryDirectory(context);
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const subject = ["-subj", "/CN=store", "-addext", "subjectAltName=IP:127.0.0.1"];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  execFileSync("openssl", ["req", "-x509", ...kind, ...subject, "-keyout", key, "-out", cert], {
    stdio: "ignore",
  });
  const store = await startStore("versitygw", (end) => context.after(end), { tls: { cert, key } });
  const endpoint = `https://127.0.0.1:${store.port}`;
  const trusting = clientOf(store, endpoint, PATIENCE, readFileSync(cert, "utf8"));
  context.after(() => trusting.close());
  const { body, crc } = content(100_000);
  await trusting.put("here/secret", body, crc, true);
  const { length, crc32 } = await trusting.head("here/secret");
  assert.deepEqual([length, crc32], [100_000, crc]);
  const stranger = clientOf(store, endpoint, PATIENCE);
  context.after(() => stranger.close());
  await assert.rejects(stranger.head("here/secret"), (error) => isStoreProblem(error, "unreachable"));
  const wrongName = clientOf(store, `https://localhost:${store.port}`, PATIENCE, readFileSync(cert, "utf8"));
  context.after(() => wrongName.close());
  await assert.rejects(wrongName.head("here/secret"), (error) => isStoreProblem(error, "unreachable"));
});

test("a bucket is named by the host where the store wants that", {
  skip: withoutStore("versitygw"),
}, async (context) => {
  const store = await startStore("versitygw", (end) => context.after(end), { domain: "s3.test" });
  const endpoint = `http://s3.test:${store.port}`;
  const query = new URLSearchParams({
    endpoint,
    credentials: store.credentialsFile,
    addressing: "virtual-host",
    insecure_http: "1",
  });
  const settings = storeSettings(`s3://${store.bucket}/here?${query.toString()}`);
  const credentials = new CredentialsFile({
    path: settings.credentialsFile,
    clock: systemClock,
    logger: silentLogger,
  });
  const asked: string[] = [];
  const client = new S3Client({
    settings,
    credentials,
    ca: undefined,
    clock: systemClock,
    lookup: (host, options, answer) => {
      asked.push(host);
      if (options.all === true) answer(null, [{ address: "127.0.0.1", family: 4 }]);
      else answer(null, "127.0.0.1", 4);
    },
  });
  context.after(() => client.close());
  const { body, crc } = content(100_000);
  await client.put("here/object", body, crc, true);
  const { length, crc32 } = await client.head("here/object");
  assert.deepEqual([length, crc32], [100_000, crc]);
  const listed = (await client.list("here/", "")).objects;
  assert.deepEqual(
    listed.map((object) => [object.key, object.length]),
    [["here/object", 100_000]],
  );
  assert.equal((await client.deleteMany(["here/object"])).size, 0);
  assert.ok(asked.every((host) => host === "chunks.s3.test"));
  assert.notEqual(asked.length, 0);
});
