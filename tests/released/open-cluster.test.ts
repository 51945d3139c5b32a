// Opens what released versions have left behind: a whole cluster, its authority and a client's settings.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { zstdDecompressSync } from "node:zlib";
import { groveOk } from "#e2e/certificate-cluster.ts";
import { checkData } from "#e2e/checked-data.ts";
import { groveHere } from "#e2e/client-here.ts";
import { type Ended, type Program, startGrove, stopProgram } from "#e2e/processes.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";

const HERE = import.meta.dirname;
const RELEASED = readdirSync(HERE).flatMap((name) => /^cluster-(.*)\.tar\.zst$/.exec(name)?.[1] ?? []);
const HOUR_MS = 3_600_000;

interface Cluster {
  readonly console: string;
  readonly admin_password: string;
  readonly nodes: readonly { readonly id: string; readonly data: string }[];
}

/** Line n of a file with seed s is "s:n", n with ten digits. */
function pattern(size: number, seed: number): string {
  const lines = Array.from(
    { length: Math.floor(size / 12) + 2 },
    (_, n) => `${seed}:${String(n).padStart(10, "0")}\n`,
  );
  return lines.join("").slice(0, size);
}

/** Unpacks a version's folders, with trash and a begun upload as young as when they were packed. */
function unpacked(version: string): string {
  const folder = scratchFolder(`grove-${version}-`);
  const archive = zstdDecompressSync(readFileSync(join(HERE, `cluster-${version}.tar.zst`)));
  execFileSync("tar", ["-xf", "-", "-C", folder, "--no-same-owner"], { input: archive });
  for (const node of ["node-1", "node-2"]) {
    const database = new DatabaseSync(join(folder, "cluster", node, "inodes.db"));
    database.prepare("UPDATE trash SET trashed_at_ms = ?").run(Date.now() - HOUR_MS);
    database.prepare("UPDATE upload SET touched_at_ms = ?").run(Date.now() - HOUR_MS);
    database.close();
  }
  return folder;
}

/** A cluster of a release, opened by this version. */
class OpenedCluster {
  readonly folder: string;
  readonly data: string;
  #up: Program | undefined;

  constructor(folder: string) {
    this.folder = folder;
    this.data = join(folder, "cluster");
  }

  async start(): Promise<Cluster> {
    this.#up = startGrove(["up", "-mock", "-data", this.data]);
    await this.#up.says(/Next, in another terminal/);
    return JSON.parse(await readFile(join(this.data, "cluster.json"), "utf8")) as Cluster;
  }

  async stop(): Promise<void> {
    if (this.#up !== undefined) await stopProgram(this.#up, "SIGINT");
    this.#up = undefined;
  }

  /** Runs a command as a user; alice has the settings that the release has left. */
  as(user: string, words: readonly string[]): Promise<Ended> {
    const config = user === "alice" ? "client-of-alice" : user;
    return groveHere(words, {
      env: { GROVE_CONFIG_DIR: join(this.folder, config), GROVE_RETRY_SECONDS: "15" },
    });
  }

  async ok(user: string, ...words: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.as(user, words);
    assert.equal(code, 0, `${words.join(" ")}: ${stderr}`);
    return stdout;
  }

  signIn(user: string): Promise<string> {
    return this.ok(
      user,
      "login",
      "--cluster",
      join(this.data, "cluster.json"),
      "--mock",
      `${user}@example.com`,
    );
  }
}

for (const version of RELEASED) {
  test(`a cluster of ${version} opens with all that it holds`, {
    timeout: 120_000,
  }, async (t: TestContext) => {
    const cluster = new OpenedCluster(unpacked(version));
    t.after(() => cluster.stop());
    const { nodes, console: consoleUrl, admin_password: password } = await cluster.start();
    await cluster.signIn("alice");
    const back = join(cluster.folder, "back");

    await t.test("files and folders, to the byte", async () => {
      assert.equal(await cluster.ok("alice", "ls", "/"), "large.bin\nshared/\ntree/\n");
      await cluster.ok("alice", "get", "-r", "/tree", back);
      for (let seed = 0; seed < 40; seed++) {
        assert.equal(await readFile(join(back, `file ${seed}.txt`), "utf8"), pattern(seed * 997, seed));
      }
      await cluster.ok("alice", "get", "/large.bin", join(cluster.folder, "large"));
      assert.equal(await readFile(join(cluster.folder, "large"), "utf8"), pattern(9_000_001, 7));
    });

    await t.test("quota, its setting, and an upload that was begun", async () => {
      const quota = JSON.parse(await cluster.ok("alice", "quota", "--json")) as Record<string, unknown>;
      assert.equal(quota["quota_bytes"], 5 * 2 ** 30);
      assert.equal(quota["staging_bytes"], 8_000_000);
      assert.equal(quota["used_bytes"], 27_077_679);
    });

    await t.test("the trash gives back what was in it", async () => {
      await cluster.ok("alice", "trash", "restore", "tree/deep");
      assert.equal(await cluster.ok("alice", "cat", "/tree/deep/er/Zürich – 東京.txt"), "Grüezi\n");
      assert.equal(await cluster.ok("alice", "cat", "/tree/deep/chunk.bin"), pattern(300_000, 3));
    });

    await t.test("a share goes on", async () => {
      await cluster.signIn("bob");
      assert.equal(await cluster.ok("bob", "cat", "alice@example.com:/shared/bob.txt"), "from bob\n");
      const { code, stderr } = await cluster.as("bob", ["cat", "alice@example.com:/large.bin"]);
      assert.notEqual(code, 0, stderr);
      await cluster.signIn("carol");
      assert.notEqual((await cluster.as("carol", ["ls", "alice@example.com:/shared"])).code, 0);
    });

    await t.test("the console knows its alerts and its password", async () => {
      const signedIn = await fetch(`${consoleUrl}/api/auth/login`, {
        method: "POST",
        headers: { "content-type": "application/json", origin: consoleUrl },
        body: JSON.stringify({ password }),
      });
      const { token } = (await signedIn.json()) as { token?: string };
      assert.equal(signedIn.status, 200);
      const headers = { authorization: `Bearer ${token ?? ""}` };
      const answer = await fetch(`${consoleUrl}/api/alerts?limit=100`, { headers });
      assert.match(await answer.text(), /node-1 has not answered for more than 30 s/);
    });

    await t.test("it works on, and every node's data is in order", async () => {
      await writeFile(join(cluster.folder, "new.txt"), "new");
      await cluster.ok("alice", "put", join(cluster.folder, "new.txt"), "/shared");
      await cluster.ok("alice", "rm", "/large.bin");
      await cluster.stop();
      for (const { data } of nodes) await checkData(data);
      await cluster.start();
      assert.equal(await cluster.ok("bob", "cat", "alice@example.com:/shared/new.txt"), "new");
    });

    await t.test("its authority signs on", async () => {
      const ca = join(cluster.folder, "ca");
      assert.match(await groveOk(["ca", "list", "-ca_dir", ca]), /n1/);
      const [host, out] = ["n2.example.net", join(cluster.folder, "n2")];
      await groveOk(["ca", "issue", "n2", "-ca_dir", ca, "-host", host, "-out", out]);
    });
  });
}
