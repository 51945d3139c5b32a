// Tests that people at a door see no failed command while every process of the cluster, doors included, is replaced.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { startProgram } from "#e2e/processes.ts";
import { freePort } from "#testing/free-ports.ts";
import { until } from "#testing/until.ts";
import { PRESENT } from "./releases.ts";
import { answers, Member, startRollingCluster } from "./rolling-cluster.ts";
import { checksumOf, makeSource, SteadyClient } from "./steady-client.ts";

const FILES = 24;
const skip = spawnSync("rclone", ["--version"]).error === undefined ? false : "needs rclone";

test("rclone's copies at a door, up and down, do not fail while all processes are replaced one by one", {
  skip,
  timeout: 600_000,
}, async (t) => {
  const cluster = await startRollingCluster(t, PRESENT);
  const { folder, metaserver } = cluster;
  const port = await freePort();
  const door = new Member(
    "door",
    undefined,
    ["door", "-mock", "-listen", `127.0.0.1:${port}`, "-metaserver", metaserver.address, "-metrics", "off"],
    () => answers(`http://127.0.0.1:${port}/`),
  );
  t.after(() => door.stop("SIGKILL"));
  await door.start(PRESENT);
  const source = join(folder, "source");
  await makeSource(source, FILES);
  const wanted = await checksumOf(source);

  const person = new SteadyClient(PRESENT, folder, "anna");
  await person.call("login", "--metaserver", metaserver.address, "--mock", person.email);
  const made = await person.call("app-password", "create", "rclone", "--json");
  const { password } = JSON.parse(made) as { readonly password: string };
  assert.deepEqual(person.failures, []);
  const pass = execFileSync("rclone", ["obscure", "-"], { input: password, encoding: "utf8" }).trim();
  const url = `http://127.0.0.1:${port}/dav/`;
  const remote = `[grove]\ntype = webdav\nurl = ${url}\nvendor = owncloud\nuser = ${person.email}\npass = ${pass}\n`;
  writeFileSync(join(folder, "rclone.conf"), remote, { mode: 0o600 });

  const failures: string[] = [];
  let [calls, rounds] = [0, 0];
  // Its own retries are for the door alone: while that is away nothing of ours can answer.
  let isDoorAway = false;
  const rclone = async (...words: readonly string[]): Promise<void> => {
    const once = isDoorAway ? [] : ["--retries", "1", "--low-level-retries", "1"];
    const flags = ["--config", join(folder, "rclone.conf"), "--transfers", "16", ...once];
    const { code, stderr } = await startProgram("rclone", [...words, ...flags], { env: { HOME: folder } })
      .ended;
    calls++;
    if (code !== 0) failures.push(`rclone ${words.join(" ")} ended with ${code}: ${stderr}`);
  };
  const end = new AbortController();
  const work = (async () => {
    for (; !end.signal.aborted; rounds++) {
      const back = join(folder, "back");
      await rclone("copy", source, `grove:r${rounds}`);
      await rclone("copy", `grove:r${rounds}`, back);
      await rclone("check", "--download", source, `grove:r${rounds}`);
      if (failures.length > 0) return;
      assert.equal(await checksumOf(back), wanted);
      await rm(back, { recursive: true });
    }
  })();
  for (const member of [...cluster.members, door]) {
    if (member === door) {
      const before = calls;
      isDoorAway = true;
      await until(() => calls > before || failures.length > 0, "the end of the last copy without retries");
    }
    const before = calls;
    await member.stop();
    await member.start(PRESENT);
    await until(() => calls > before || failures.length > 0, "a copy with the new process");
  }
  end.abort();
  await work;
  assert.deepEqual(failures, []);
  assert.ok(rounds > 1, String(rounds));
});
