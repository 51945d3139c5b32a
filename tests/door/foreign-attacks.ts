// Other people's attack programs and libraries at a door of a whole cluster.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { request } from "node:http";
import { join } from "node:path";
import { before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { startProgram } from "#e2e/processes.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import type { DoorSite } from "./door-site.ts";
import { oneDoor } from "./one-door.ts";

const PYTHON = process.env["GROVE_TEST_PYTHON"] ?? "python3";

const hasAttacker = spawnSync("slowhttptest", ["-h"], { stdio: "ignore" }).error === undefined;
const hasLibrary = spawnSync(PYTHON, ["-c", "import webdav3.client"], { stdio: "ignore" }).status === 0;

const WHO = "attacks@example.com";

let site: DoorSite;
before(async () => {
  site = await oneDoor(WHO);
});

/** What somebody on another network than the attacker's is answered. */
function askFromElsewhere(): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const asked = request(`${site.door}/dav/`, {
    method: "PROPFIND",
    headers: { depth: "0", authorization: site.authorization },
    localAddress: "127.0.0.2",
    agent: false,
    timeout: 20_000,
  });
  asked.once("response", (answer) => {
    answer.resume();
    resolve(answer.statusCode ?? 0);
  });
  asked.once("timeout", () => asked.destroy(new Error("no answer came in 20 s")));
  asked.once("error", reject);
  asked.end();
  return promise;
}

/** Between two questions, whose answers cost the processor more than all slow connections. */
const ASK_PAUSE_MS = 100;

const SLOW: readonly (readonly [string, readonly string[]])[] = [
  ["headers", ["-H", "-i", "2", "-x", "24"]],
  ["bodies", ["-B", "-i", "2", "-s", "8192", "-x", "24"]],
  ["readers", ["-X", "-w", "512", "-y", "1024", "-n", "2", "-z", "32", "-k", "3"]],
];

for (const [what, words] of SLOW) {
  test(`slowhttptest with 600 connections of slow ${what} keeps nobody elsewhere from a door`, {
    skip: hasAttacker ? false : "needs slowhttptest",
  }, async () => {
    const rest = ["-c", "600", "-r", "300", "-l", "6", "-p", "2", "-u", `${site.door}/dav/`];
    const attack = startProgram("slowhttptest", [...words, ...rest]);
    const over = new AbortController();
    const ended = attack.ended.finally(() => over.abort());
    for (let asked = 0; asked < 5 || !over.signal.aborted; asked++) {
      assert.equal(await askFromElsewhere(), 207);
      await sleep(ASK_PAUSE_MS);
    }
    const { stdout } = await ended;
    assert.match(stdout, /connected:[^\d]*\d+/u);
  });
}

test("webdavclient3 sends a tree, gets the same one, copies, moves, sets properties and deletes", {
  skip: hasLibrary ? false : "needs Python's webdavclient3",
}, async () => {
  const script = join(import.meta.dirname, "webdavclient3.py");
  const home = scratchFolder("webdavclient3-");
  const words = [script, site.door, WHO, site.password, home];
  const { code, stdout, stderr } = await startProgram(PYTHON, words).ended;
  assert.equal(code, 0, stderr);
  assert.match(stdout, /all as it should be 21/u);
});
