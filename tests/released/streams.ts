// Tests that many streams go on while a cluster is upgraded from a release and taken back.
import assert from "node:assert/strict";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { until } from "#testing/until.ts";
import { KEPT, PRESENT, released, run } from "./releases.ts";
import { startRollingCluster } from "./rolling-cluster.ts";
import { goBack, upgrade } from "./rolling-walk.ts";
import { checksumOf, SteadyClient } from "./steady-client.ts";

/** Streams at once: half of them uploads, half downloads. */
const STREAMS = Number(process.env["GROVE_UPGRADE_STREAMS"] ?? 64);
/** Files of a folder, which a command sends or fetches side by side. */
const FILES = 4;
/** A file that is sent in one call, and one that is gone on with. */
const sizeOf = (index: number): number => (index % 2 === 0 ? 6_000_001 : 17_000_001);

/** Somebody who sends a folder again and again, and fetches another one beside it. */
class BusyPerson {
  readonly steady: SteadyClient;
  readonly #source: string;
  readonly #wanted: string;
  readonly #back: string;

  constructor(steady: SteadyClient, source: string, wanted: string, back: string) {
    this.steady = steady;
    this.#source = source;
    this.#wanted = wanted;
    this.#back = back;
  }

  async signIn(metaserver: string): Promise<void> {
    await this.steady.call("login", "--metaserver", metaserver, "--mock", this.steady.email);
    for (const there of ["/first", "/sent"]) {
      await this.steady.call("mkdir", there);
      await this.steady.call("put", "-q", "-r", this.#source, there);
    }
  }

  /** Commands of both directions, each begun anew when it has ended. */
  async work(signal: AbortSignal): Promise<void> {
    const again = async (part: () => Promise<unknown>): Promise<void> => {
      while (!signal.aborted && this.steady.failures.length === 0) await part();
    };
    await Promise.all([
      again(() => this.steady.call("put", "-q", "-r", this.#source, "/sent")),
      again(() => this.fetch("/first/source")),
    ]);
  }

  /** Fetches a folder; what came other than it was sent is noted. */
  async fetch(there: string): Promise<void> {
    await rm(this.#back, { recursive: true, force: true });
    await this.steady.call("get", "-q", "-r", there, this.#back);
    if ((await checksumOf(this.#back).catch(String)) !== this.#wanted)
      this.steady.failures.push(`${this.steady.email}: ${there} is not as it was sent`);
  }
}

async function makeFiles(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (let index = 0; index < FILES; index++) {
    const bytes = Buffer.alloc(sizeOf(index), `${index} of ${FILES}, `);
    bytes.writeUInt32BE(index, 1_000_000);
    await writeFile(join(folder, `f${index}`), bytes);
  }
}

for (const version of KEPT) {
  test(`a cluster of ${version} is upgraded under ${STREAMS} streams, and taken back: no call fails`, {
    timeout: 3_600_000,
  }, async (t: TestContext) => {
    const old = released(version);
    const cluster = await startRollingCluster(t, old);
    const source = join(cluster.folder, "source");
    await makeFiles(source);
    const wanted = await checksumOf(source);
    const people = Array.from({ length: STREAMS / FILES / 2 }, (_, index) => {
      const steady = new SteadyClient(index % 2 === 0 ? old : PRESENT, cluster.folder, `person${index}`);
      return new BusyPerson(steady, source, wanted, join(cluster.folder, `back${index}`));
    });
    for (const person of people) await person.signIn(cluster.metaserver.address);
    const failures = (): string[] => people.flatMap(({ steady }) => steady.failures);
    assert.deepEqual(failures(), []);

    const calls = (): number => people.reduce((sum, { steady }) => sum + steady.calls, 0);
    /** Everybody ends a command in each direction with the new mixture. */
    const worked = async (): Promise<void> => {
      const before = people.map(({ steady }) => steady.calls);
      const hasWorked = (): boolean =>
        people.every(({ steady }, index) => steady.calls >= (before[index] ?? 0) + 2);
      await until(() => hasWorked() || failures().length > 0, "the work of all");
    };
    const end = new AbortController();
    const work = people.map((person) => person.work(end.signal));
    await worked();
    const step = async (replace: () => Promise<void>): Promise<void> => {
      await replace();
      await worked();
    };
    await upgrade(cluster, step);
    await goBack(cluster, old, step);
    end.abort();
    await Promise.all(work);
    for (const person of people) await person.fetch("/sent/source");
    t.diagnostic(`${calls()} commands`);
    assert.deepEqual(failures(), []);
    for (const node of cluster.nodes) {
      await node.stop();
      const { code, stdout } = await run(old, ["fsck", "-data", node.data, "-deep"]);
      assert.equal(code, 0, stdout);
    }
  });
}
