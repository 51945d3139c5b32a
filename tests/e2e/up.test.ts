// Tests a newcomer's path: grove up, sign-in in a browser, folders in and out, kill, restart, stop.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { CHROMIUM } from "#testing/chromium.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { signInWithChromium, startLogin } from "./browser-sign-in.ts";
import { Dice } from "./busy-folder.ts";
import { checkData } from "./checked-data.ts";
import { groveHere } from "./client-here.ts";
import { type Ended, grove, type Program, startGrove, stopProgram } from "./processes.ts";

interface Cluster {
  readonly metaserver: string;
  readonly nodes: readonly { readonly id: string; readonly data: string; readonly metrics: string }[];
  readonly users: readonly { readonly email: string; readonly password: string }[];
  readonly pids: Readonly<Record<string, number | null>>;
}

/** A tree of files of all sizes, as a map from relative path to content. */
async function makeTree(folder: string, seed: string, count: number): Promise<Map<string, Uint8Array>> {
  const dice = new Dice(seed);
  const files = new Map<string, Uint8Array>();
  for (let index = 0; index < count; index++) {
    const size = index % 200 === 3 ? 4_100_000 : index % 20 === 1 ? 90_000 : dice.below(4_000);
    files.set(join(`d${index % 9}`, `e${index % 4}`, `f ${index} é`), dice.bytes(size));
  }
  for (const [path, content] of files) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
  return files;
}

async function readTree(folder: string): Promise<Map<string, Uint8Array>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = new Map<string, Uint8Array>();
  for (const entry of entries) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    files.set(path.slice(folder.length + 1), await readFile(path));
  }
  return files;
}

/** Asserts that every found file is an expected one with its bytes; returns their number. */
function assertRight(found: Map<string, Uint8Array>, expected: Map<string, Uint8Array>): number {
  for (const [path, content] of found) {
    const wanted = expected.get(path);
    assert.ok(wanted !== undefined && Buffer.compare(content, wanted) === 0, path);
  }
  return found.size;
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};
/** Writing operations of all nodes since each has started. */
async function writesOf(nodes: Cluster["nodes"]): Promise<number> {
  const counts = nodes.map(async ({ metrics }) => {
    const document = (await (await fetch(`${metrics}/metrics`)).json()) as { write_ops_total: number };
    return document.write_ops_total;
  });
  return (await Promise.all(counts)).reduce((sum, one) => sum + one, 0);
}

/** A cluster and one client of it. */
class Newcomer {
  readonly #data: string;
  readonly #env: Readonly<Record<string, string>>;
  readonly clusterFile: string;
  up: Program | undefined;

  constructor(folder: string) {
    this.#data = join(folder, "cluster");
    this.#env = { GROVE_CONFIG_DIR: join(folder, "config"), GROVE_RETRY_SECONDS: "60" };
    this.clusterFile = join(this.#data, "cluster.json");
  }

  /** Starts the cluster, and waits for the summary. */
  async start(): Promise<void> {
    this.up = startGrove(["up", "-data", this.#data, "-nodes", "2"]);
    await this.up.says(/Next, in another terminal/);
  }

  async cluster(): Promise<Cluster> {
    return JSON.parse(await readFile(this.clusterFile, "utf8")) as Cluster;
  }

  async pids(): Promise<number[]> {
    return Object.values((await this.cluster()).pids).filter((pid) => pid !== null);
  }

  grove(...words: string[]): Promise<Ended> {
    return grove(words, { env: this.#env });
  }

  /** Runs a command that tries no server again. */
  groveOnce(...words: string[]): Promise<Ended> {
    return groveHere(words, { env: { ...this.#env, GROVE_RETRY_SECONDS: "0" } });
  }

  /** Runs a command that must succeed; answers its output. */
  async ok(...words: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.grove(...words);
    assert.equal(code, 0, `${words.join(" ")}: ${stderr}`);
    return stdout;
  }

  startGrove(...words: string[]): Program {
    return startGrove(words, { env: this.#env });
  }

  login() {
    return startLogin(this.clusterFile, this.#env);
  }
}

test("a newcomer's day: up, sign-in in Chromium, put, ls, get, kill -9 of everything, up again, Ctrl-C", {
  timeout: 300_000,
  skip: CHROMIUM === undefined ? "needs Chromium" : false,
}, async (t: TestContext) => {
  const scratch = scratchFolder("grove-e2e-");
  const me = new Newcomer(scratch);
  t.after(async () => {
    if (me.up !== undefined) await stopProgram(me.up);
  });
  await me.start();
  const alice = (await me.cluster()).users.find(({ email }) => email === "alice@example.com");
  assert.ok(alice !== undefined);

  await t.test("sign-in at the provider's pages (spec 5.1)", async () => {
    const { page, ended } = await signInWithChromium(await me.login(), alice);
    assert.match(page, /signed in as alice@example\.com/i);
    assert.equal(ended.code, 0, ended.stderr);
    assert.match(ended.stdout, /Signed in as alice@example\.com/);
    assert.match(await me.ok("whoami"), /^alice@example\.com/);
  });

  await t.test(
    "another state than the one sent is refused, and who was signed in stays so (spec 5.1.4)",
    async () => {
      const { program, consentUrl } = await me.login();
      const back = new URL(consentUrl.searchParams.get("redirect_uri") ?? "");
      back.search = `?code=stolen&state=${"x".repeat(43)}`;
      const answer = await fetch(back);
      assert.equal(answer.status, 400);
      assert.match(await answer.text(), /refused/);
      const { code, stderr } = await program.ended;
      assert.equal(code, 2, stderr);
      assert.match(stderr, /state/);
      assert.match(await me.ok("whoami"), /^alice@example\.com/);
    },
  );

  const first = join(scratch, "first");
  const firstFiles = await makeTree(first, "first", 400);
  await t.test("a folder goes up and comes back the same", async () => {
    await me.ok("put", "-r", first);
    assert.match(await me.ok("ls", "-l", "/first"), /d0\/\n/);
    await me.ok("get", "-r", "/first", join(scratch, "back"));
    const back = await readTree(join(scratch, "back"));
    assert.equal(assertRight(back, firstFiles), firstFiles.size);
  });

  await t.test(
    "a node that dies is started again; until then commands say that it does not answer (D24)",
    async () => {
      const before = await me.cluster();
      const root = JSON.parse(await me.ok("roots", "--json")) as unknown;
      const id = before.nodes.find((node) => JSON.stringify(root).includes(`"${node.id}"`))?.id ?? "";
      const pid = before.pids[id] ?? 0;
      assert.ok(pid > 1, JSON.stringify(root));
      process.kill(pid, "SIGKILL");
      await until(async () => {
        const { code, stdout, stderr } = await me.groveOnce("ls", "/");
        assert.ok(code === 0 || code === 7, stderr);
        return code === 0 && stdout === "first/\n";
      }, "the node answers");
      await until(async () => {
        const now = (await me.cluster().catch(() => undefined))?.pids[id];
        return now !== undefined && now !== null && now !== pid && isAlive(now);
      }, "the cluster file names the new process");
    },
  );

  const second = join(scratch, "second");
  const secondFiles = await makeTree(second, "second", 900);
  await t.test(
    "kill -9 of every process in the middle of an upload loses nothing that was there",
    async () => {
      const pids = await me.pids();
      assert.equal(pids.length, 7);
      const { nodes } = await me.cluster();
      const before = await writesOf(nodes);
      const put = me.startGrove("put", "-r", second);
      await until(async () => (await writesOf(nodes)) > before + 100, "the upload is under way");
      for (const pid of [put.child.pid ?? 0, ...pids]) process.kill(pid, "SIGKILL");
      await put.ended;
      await me.up?.ended;
      await until(() => !pids.some(isAlive), "all are gone");

      await me.start();
      await me.ok("get", "-r", "/first", join(scratch, "first again"));
      const again = await readTree(join(scratch, "first again"));
      assert.equal(assertRight(again, firstFiles), firstFiles.size);
      await me.ok("get", "-r", "/second", join(scratch, "part"));
      const count = assertRight(await readTree(join(scratch, "part")), secondFiles);
      t.diagnostic(`${count} of ${secondFiles.size} files were there`);
      assert.ok(count > 0 && count < secondFiles.size, `${count} files`);
      await me.ok("put", "-r", second);
      await me.ok("get", "-r", "/second", join(scratch, "whole"));
      assert.equal(assertRight(await readTree(join(scratch, "whole")), secondFiles), secondFiles.size);
      const sum = [...firstFiles.values(), ...secondFiles.values()].reduce((all, one) => all + one.length, 0);
      const quota = JSON.parse(await me.ok("quota", "--json")) as { used_bytes: number };
      assert.equal(quota.used_bytes, sum);
    },
  );

  await t.test("Ctrl-C stops everything, and every node's data is in order", async () => {
    const { nodes } = await me.cluster();
    const pids = await me.pids();
    assert.ok(me.up !== undefined);
    const { code, stdout, stderr } = await stopProgram(me.up, "SIGINT");
    assert.equal(code, 0, stdout + stderr);
    assert.deepEqual(pids.filter(isAlive), []);
    assert.equal(existsSync(me.clusterFile), false);
    for (const { data } of nodes) assert.deepEqual((await checkData(data)).notes, []);
    const { code: late, stderr: told } = await me.groveOnce("ls", "/");
    assert.equal(late, 7, told);
  });
});
