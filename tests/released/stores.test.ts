// Tests that metadata stores of a release are upgraded with a copy, and that the copy serves the release again.
import assert from "node:assert/strict";
import { exec } from "node:child_process";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { groveHere } from "#e2e/client-here.ts";
import { freePlace, type Place, type Program, stopProgram } from "#e2e/processes.ts";
import { type PostgresServer, startPostgres, withoutPostgres } from "#testing/postgres-server.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { KEPT, PRESENT, type Release, released, run } from "./releases.ts";

/** A MetaServer and one node, run by one release after the other. */
class Pair {
  readonly folder = scratchFolder("grove-stores-");
  readonly meta: Place;
  readonly node: Place;
  readonly #store: readonly string[];
  readonly #running: Program[] = [];

  constructor(meta: Place, node: Place, store: readonly string[]) {
    this.meta = meta;
    this.node = node;
    this.#store = store;
  }

  async startMeta(release: Release): Promise<Program> {
    const data = join(this.folder, "meta");
    const program = this.#start(
      release,
      "metaserver",
      "-listen",
      this.meta.address,
      "-data",
      data,
      ...this.#store,
    );
    await program.says(/"event":"serving"/);
    return program;
  }

  async startNode(release: Release): Promise<void> {
    const words = ["-id", "n1", "-listen", this.node.address, "-metaserver", this.meta.address];
    const program = this.#start(
      release,
      "fileserver",
      "-data",
      join(this.folder, "n1"),
      ...words,
      "-reserve",
      "1MiB",
    );
    await program.says(/: serves .* on /);
  }

  async stop(): Promise<void> {
    for (const program of this.#running.splice(0).toReversed()) await stopProgram(program);
  }

  /** What a release says that does not serve the store. */
  async refusal(release: Release): Promise<string> {
    const words = ["metaserver", "-listen", this.meta.address, "-data", join(this.folder, "meta"), "-mock"];
    const { code, stderr } = await run(release, [...words, ...this.#store]);
    assert.notEqual(code, 0, stderr);
    return stderr;
  }

  /** Signs a person in, and writes and reads a file at the node where the store has the root. */
  async use(name: string, content: string): Promise<void> {
    const env = { GROVE_CONFIG_DIR: join(this.folder, name) };
    const login = ["login", "--metaserver", this.meta.address, "--mock", `${name}@example.com`];
    for (const [words, input] of [[login], [["write", "/f"], content]] as const) {
      const { code, stderr } = await groveHere(words, { env, ...(input === undefined ? {} : { input }) });
      assert.equal(code, 0, stderr);
    }
    assert.equal(await this.read(name), content);
  }

  /** What is in the person's file. */
  async read(name: string): Promise<string> {
    const { stdout, stderr } = await groveHere(["cat", "/f"], {
      env: { GROVE_CONFIG_DIR: join(this.folder, name) },
    });
    return stdout + stderr;
  }

  #start(release: Release, ...words: string[]): Program {
    const program = release.start(words, { env: { SVC_AUTH_MOCK: "1" } });
    this.#running.push(program);
    return program;
  }
}

/** Upgrades the store of a release with users in it, and puts the copy back. */
async function thereAndBack(
  t: TestContext,
  old: Release,
  store: readonly string[],
  putBack: (pair: Pair, copy: string) => Promise<void>,
): Promise<void> {
  const pair = new Pair(await freePlace(), await freePlace(), store);
  t.after(() => pair.stop());
  await pair.startMeta(old);
  await pair.startNode(old);
  await pair.use("anna", "from before");
  await pair.stop();

  const upgraded = await pair.startMeta(PRESENT);
  const [, copy = ""] = await upgraded.says(/"copy":"([^"]+)","event":"store_upgraded"/);
  await pair.startNode(PRESENT);
  assert.equal(await pair.read("anna"), "from before");
  await pair.use("berta", "from after it");
  await pair.stop();
  assert.match(await pair.refusal(old), /newer/);

  await putBack(pair, copy);
  await pair.startMeta(old);
  // The node tells the store what has come since.
  await pair.startNode(PRESENT);
  assert.equal(await pair.read("anna"), "from before");
  assert.equal(await pair.read("berta"), "from after it");
  await pair.use("carl", "from the older one again");
}

for (const version of KEPT) {
  test(`a metadata store of ${version} in SQLite is upgraded with a copy, which serves ${version} again`, {
    timeout: 180_000,
  }, async (t) => {
    await thereAndBack(t, released(version), [], async ({ folder }, copy) => {
      const path = join(folder, "meta", "metadata.db");
      assert.equal(copy, `${path}.schema-3`);
      await promisify(exec)(`rm -f ${path}-wal ${path}-shm && cp ${copy} ${path}`);
    });
  });

  test(`a metadata store of ${version} in PostgreSQL is upgraded with a copy, which serves ${version} again`, {
    skip: withoutPostgres(),
    timeout: 180_000,
  }, async (t) => {
    const server: PostgresServer = await startPostgres((end) => t.after(end));
    const database = await server.createDatabase();
    await thereAndBack(t, released(version), ["-meta", server.url(database)], async (pair, copy) => {
      const sql = `DROP SCHEMA grove CASCADE; ALTER SCHEMA ${copy} RENAME TO grove;`;
      await server.sql(database, sql);
      // The copy is as good as the original: it is upgraded once more, and goes back once more.
      const again = await pair.startMeta(PRESENT);
      await again.says(new RegExp(`"copy":"${copy}"`));
      await pair.stop();
      await server.sql(database, sql);
    });
  });
}
