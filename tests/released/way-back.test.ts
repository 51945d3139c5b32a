// Tests that an upgrade of a node's data says where its copy is, that both ways back to a release work, and that
// its backups restore.
import assert from "node:assert/strict";
import { exec } from "node:child_process";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { checkData } from "#e2e/checked-data.ts";
import { freePlace, grove, type Place, type Program, stopProgram } from "#e2e/processes.ts";
import { commandToPutBack } from "#os/schema-copy.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { KEPT, PRESENT, type Release, released, run } from "./releases.ts";

/** One node without a MetaServer, served by one release after the other, and a person's command line. */
class OneNode {
  readonly folder = scratchFolder("grove-way-back-");
  readonly data: string = join(this.folder, "data");
  readonly #place: Place;
  #program: Program | undefined;

  constructor(place: Place) {
    this.#place = place;
  }

  async start(release: Release): Promise<Program> {
    const words = ["fileserver", "-data", this.data, "-id", "n1", "-listen", this.#place.address];
    const program = release.start([...words, "-reserve", "1MiB"], { env: { SVC_AUTH_MOCK: "1" } });
    this.#program = program;
    await program.says(/: serves .* on /);
    return program;
  }

  /** The last words of a release that does not serve the data. */
  async refusal(release: Release): Promise<string> {
    const words = ["fileserver", "-data", this.data, "-id", "n1", "-listen", this.#place.address, "-mock"];
    const { code, stderr } = await run(release, words);
    assert.notEqual(code, 0, stderr);
    return stderr;
  }

  async stop(): Promise<void> {
    if (this.#program !== undefined) await stopProgram(this.#program);
    this.#program = undefined;
  }

  async ok(release: Release, ...words: string[]): Promise<string> {
    const env = { GROVE_CONFIG_DIR: join(this.folder, "config") };
    const { code, stdout, stderr } = await run(release, words, { env });
    assert.equal(code, 0, `${words.join(" ")}: ${stderr}`);
    return stdout;
  }

  async put(release: Release, name: string, content: string | Uint8Array): Promise<void> {
    await writeFile(join(this.folder, name), content);
    await this.ok(release, "put", "-q", join(this.folder, name), "/");
  }

  signIn(release: Release): Promise<string> {
    return this.ok(release, "login", "--fileserver", this.#place.address, "--mock", "anna@example.com");
  }
}

for (const version of KEPT) {
  test(`data of ${version} has its copy told at the upgrade, and goes back with all that came since, or to the copy`, {
    timeout: 180_000,
  }, async (t: TestContext) => {
    const old = released(version);
    const node = new OneNode(await freePlace());
    t.after(() => node.stop());
    await node.start(old);
    await node.signIn(old);
    await node.put(old, "before", Buffer.alloc(9_000_000, "before "));
    await node.put(old, "small", "small");
    await node.stop();

    const upgraded = await node.start(PRESENT);
    const [, copy = ""] = await upgraded.says(/"copy":"([^"]+)","event":"storage.upgraded"/);
    await node.put(PRESENT, "since", Buffer.alloc(5_000_000, "since "));
    await node.ok(PRESENT, "rm", "/small");
    await node.stop();
    assert.match(await node.refusal(old), /newer/);

    const back = await grove(["downgrade", "-data", node.data, "-to", version]);
    assert.deepEqual([back.code, back.stderr], [0, ""]);
    assert.match(back.stdout, /start the older Grove on it\.\n$/);
    await node.start(old);
    assert.equal(await node.ok(old, "ls", "/"), "before\nsince\n");
    assert.equal(await node.ok(old, "cat", "/since"), "since ".repeat(1_000_000).slice(0, 5_000_000));
    assert.match(await node.ok(old, "trash", "ls"), /small/);
    await node.stop();

    const again = await node.start(PRESENT);
    assert.equal((await again.says(/"copy":"([^"]+)"/))[1], copy);
    await node.put(PRESENT, "lost", "written after the copy");
    await node.stop();
    await checkData(node.data);
    await promisify(exec)(commandToPutBack(join(node.data, "inodes.db"), copy));
    await node.start(old);
    assert.equal(await node.ok(old, "ls", "/"), "before\nsince\n");
    assert.equal(await node.ok(old, "cat", "/before"), "before ".repeat(2_000_000).slice(0, 9_000_000));
    await node.stop();
  });
}

for (const version of KEPT) {
  test(`a backup that ${version} made restores with the present Grove, which serves it`, async (t) => {
    const old = released(version);
    const node = new OneNode(await freePlace());
    t.after(() => node.stop());
    await node.start(old);
    await node.signIn(old);
    await node.put(old, "large", Buffer.alloc(5_000_000, "large "));
    const backups = join(node.folder, "backups");
    await node.ok(old, "backup", "create", "-data", node.data, "-to", backups);
    await node.stop();
    await rm(node.data, { recursive: true });

    assert.match(await node.ok(PRESENT, "backup", "verify", backups), /0 problems/);
    await node.ok(PRESENT, "backup", "restore", backups, "-to", node.data);
    await checkData(node.data);
    await node.start(PRESENT);
    await node.signIn(PRESENT);
    assert.equal(await node.ok(PRESENT, "cat", "/large"), "large ".repeat(1_000_000).slice(0, 5_000_000));
  });
}

test("data of a newer Grove is refused with the command that takes it back, and with the copy that this one can open", async (t) => {
  const node = new OneNode(await freePlace());
  t.after(() => node.stop());
  await node.start(PRESENT);
  await node.stop();
  const path = join(node.data, "inodes.db");
  const database = new DatabaseSync(path);
  const schema = Number(database.prepare("PRAGMA user_version").get()?.["user_version"]);
  database.prepare("VACUUM INTO ?").run(`${path}.schema-${schema}`);
  database.exec("PRAGMA user_version = 9999");
  database.close();
  const said = await node.refusal(PRESENT);
  assert.ok(said.includes(`grove downgrade -data ${node.data} -schema ${schema}`), said);
  assert.ok(said.includes(commandToPutBack(path, `${path}.schema-${schema}`)), said);
  await promisify(exec)(commandToPutBack(path, `${path}.schema-${schema}`));
  await node.start(PRESENT);
});
