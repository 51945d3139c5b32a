// Users at their command lines: a cluster in mock mode, and alice, bob and carol signed in.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import { groveHere } from "./client-here.ts";
import { type Ended, type Program, startGrove, stopProgram } from "./processes.ts";

/** One user's command line. */
export class Person {
  readonly email: string;
  /** Folder of the client's settings. */
  readonly folder: string;
  readonly #env: Readonly<Record<string, string>>;

  constructor(folder: string, name: string) {
    this.email = `${name}@example.com`;
    this.folder = join(folder, name);
    this.#env = { GROVE_CONFIG_DIR: this.folder };
  }

  /** Runs a command to its end. */
  grove(...words: string[]): Promise<Ended> {
    return groveHere(words, { env: this.#env });
  }

  /** Runs a command with standard input. */
  withInput(input: string, ...words: string[]): Promise<Ended> {
    return groveHere(words, { env: this.#env, input });
  }

  /** Starts a program of its own. */
  start(...words: string[]): Program {
    return startGrove(words, { env: this.#env });
  }

  async ok(...words: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.grove(...words);
    assert.equal(code, 0, `${words.join(" ")}: ${stderr}`);
    return stdout;
  }

  /** Runs a command that must be refused with this exit code; returns its message. */
  async refused(code: number, ...words: string[]): Promise<string> {
    const ended = await this.grove(...words);
    assert.equal(ended.code, code, `${words.join(" ")}: ${ended.stdout}${ended.stderr}`);
    return ended.stderr;
  }
}

/** The setting of the tests. */
export interface People {
  readonly alice: Person;
  readonly bob: Person;
  readonly carol: Person;
  /** For files of this machine. */
  readonly folder: string;
  /** The running cluster's file. */
  readonly clusterFile: string;
  readonly up: Program;
}

/**
 * A cluster of two nodes in mock mode, and all three signed in, alice and bob each with a root on another
 * node.
 */
export async function startPeople(t: TestContext): Promise<People> {
  const folder = scratchFolder("grove-e2e-");
  const data = join(folder, "cluster");
  const clusterFile = join(data, "cluster.json");
  const up = startGrove(["up", "-data", data, "-nodes", "2", "-mock", "-reserve", "1MiB"]);
  t.after(() => stopProgram(up));
  await up.says(/Next, in another terminal/);
  const signedIn = async (name: string): Promise<{ readonly person: Person; readonly home: string }> => {
    const person = new Person(folder, name);
    const said = await person.ok("login", "--cluster", clusterFile, "--mock", person.email);
    const home = /^Your files are on (\S+);/m.exec(said)?.[1];
    assert.ok(home !== undefined, said);
    return { person, home };
  };
  const alice = await signedIn("alice");
  const bob = await withoutNode(clusterFile, alice.home, () => signedIn("bob"));
  assert.notEqual(alice.home, bob.home);
  const carol = await signedIn("carol");
  const people = { alice: alice.person, bob: bob.person, carol: carol.person };
  for (const person of Object.values(people))
    await until(async () => (await person.grove("ls")).code === 0, "ls");
  return { ...people, folder, clusterFile, up };
}

/** Stops a node during an action, after which `up` restarts it: on one shared disk placement is random. */
async function withoutNode<T>(clusterFile: string, address: string, action: () => Promise<T>): Promise<T> {
  const { nodes, pids } = JSON.parse(await readFile(clusterFile, "utf8")) as {
    nodes: { id: string; grpc: string; metrics: string }[];
    pids: Record<string, number>;
  };
  const node = nodes.find(({ grpc }) => grpc === address);
  const [pid, upPid] = [pids[node?.id ?? ""], pids["up"]];
  assert.ok(node !== undefined && pid !== undefined && upPid !== undefined, address);
  process.kill(upPid, "SIGSTOP");
  try {
    process.kill(pid, "SIGTERM");
    await until(() =>
      fetch(`${node.metrics}/ready`).then(
        () => false,
        () => true,
      ),
    );
    return await action();
  } finally {
    process.kill(upPid, "SIGCONT");
  }
}
