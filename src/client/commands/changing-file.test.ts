// Tests of uploads of changing files: no mixture of two states is stored, and a refusal leaves nothing.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { makeTestClient, type TestClient } from "./client.fixture.ts";
import { refusal, startFakeServer } from "./fake-server.fixture.ts";
import type { ServerProcess } from "./server-processes.fixture.ts";
import { signedInClient } from "./signed-in-client.fixture.ts";

let client: TestClient;
let server: ServerProcess;

before(async () => {
  ({ client, server } = await signedInClient());
});

after(async () => {
  await server.kill("SIGKILL");
  await client.stop();
});

/** A program that refills a file, each round with the next letter; resolves when it has begun. */
async function startWriter(path: string, bytes: number): Promise<ChildProcess> {
  const program = `
    const { openSync, writeSync } = require("node:fs");
    const file = openSync(${JSON.stringify(path)}, "r+");
    for (let round = 0; ; round++) {
      const piece = Buffer.alloc(${Math.min(bytes, 100_000)}, 97 + (round % 26));
      for (let at = 0; at < ${bytes}; at += piece.length) writeSync(file, piece, 0, Math.min(piece.length, ${bytes} - at), at);
      if (round === 1) writeSync(1, "begun");
    }`;
  const writer = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  await once(writer.stdout, "data");
  return writer;
}

/** True for one letter, or for one round partly written over the round before. */
function isOfOneMoment(content: string): boolean {
  const [newer = "", older] = content.match(/(.)\1*/g) ?? [];
  if (newer.length + (older?.length ?? 0) < content.length) return false;
  return older === undefined || (newer.charCodeAt(0) - older.charCodeAt(0) + 26) % 26 === 1;
}

async function stored(path: string): Promise<string | undefined> {
  const { code, out } = await client.run(import("./cat-command.ts"), [path]);
  return code === 0 ? out : undefined;
}

for (const bytes of [60_000, 262_144, 300_000, 2_000_000, 8_000_000, 17_000_000]) {
  test(`a file of ${bytes} bytes that is written to all the time is refused and leaves nothing on the server, or is stored as it was at one moment`, async () => {
    const folder = join(client.folder, `busy-${bytes}`);
    mkdirSync(folder);
    const path = join(folder, "busy");
    writeFileSync(path, Buffer.alloc(bytes, "a"));
    writeFileSync(join(folder, "calm"), "calm");
    const writer = await startWriter(path, bytes);
    try {
      for (let round = 0; round < 3; round++) {
        const { code, err } = await client.run(import("./put-command.ts"), [
          "-r",
          folder,
          `/busy-${bytes}-${round}`,
        ]);
        const content = await stored(`/busy-${bytes}-${round}/busy`);
        if (content === undefined) {
          assert.equal(code, 1, err);
          assert.match(err, /busy: changed while it was read\. Send it again when nobody writes to it\./);
          assert.match(err, /uploaded 1 file, 4 B .*, 1 failed/);
        } else {
          // On a busy machine the upload may fall between two writes.
          assert.equal(code, 0, err);
          assert.equal(content.length, bytes);
          assert.ok(isOfOneMoment(content), "a mixture is stored");
        }
        assert.equal(await stored(`/busy-${bytes}-${round}/calm`), "calm");
      }
    } finally {
      writer.kill("SIGKILL");
    }
    const quota = await client.run(import("./quota-command.ts"), ["--json"]);
    assert.equal((JSON.parse(quota.out) as { staging_bytes: number }).staging_bytes, 0);
  });
}

test("a file that changes once its upload has begun is refused, and its upload is cut before it is whole", async () => {
  const path = join(client.folder, "changes");
  const bytes = 9_000_000;
  writeFileSync(path, Buffer.alloc(bytes, "a"));
  utimesSync(path, 1_000_000_000, 1_000_000_000);
  let arrivedBytes = 0;
  const fake = await startFakeServer({
    getAttr: () => {
      throw refusal(5, "NO_SUCH_PATH");
    },
    uploadFile: async (requests) => {
      for await (const { part } of requests) {
        if (part.case !== "chunk") continue;
        if (arrivedBytes === 0) writeFileSync(path, "b", { flag: "r+" });
        arrivedBytes += part.value.data.length;
      }
      return {};
    },
  });
  try {
    const other = await makeTestClient();
    const login = ["--mock", "a@b.c", "--fileserver", fake.address];
    assert.equal((await other.run(import("./login-command.ts"), login)).code, 0);
    const { code, err } = await other.run(import("./put-command.ts"), [path, "/changes"]);
    assert.equal(code, 1, err);
    assert.match(err, /changes: changed while it was read/);
    assert.ok(arrivedBytes > 0 && arrivedBytes < bytes, `${arrivedBytes} bytes arrived`);
    await other.stop();
  } finally {
    await fake.stop();
  }
});
