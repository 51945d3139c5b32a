// People at their command lines: a cluster in mock mode, and alice, bob and carol signed in.
import assert from "node:assert/strict";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type Ended, grove, type Program, scratchFolder, startGrove, stopProgram } from "./processes.ts";

/** One user's command line. */
export class Person {
  readonly email: string;
  readonly #env: Readonly<Record<string, string>>;

  constructor(folder: string, name: string) {
    this.email = `${name}@example.com`;
    this.#env = { GROVE_CONFIG_DIR: join(folder, name) };
  }

  grove(...words: string[]): Promise<Ended> {
    return grove(words, { env: this.#env });
  }

  /** With something on standard input. */
  withInput(input: string, ...words: string[]): Promise<Ended> {
    return grove(words, { env: this.#env, input });
  }

  start(...words: string[]): Program {
    return startGrove(words, { env: this.#env });
  }

  async ok(...words: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.grove(...words);
    assert.equal(code, 0, `${words.join(" ")}: ${stderr}`);
    return stdout;
  }

  /** A command that must be refused with this exit code; answers what it said. */
  async refused(code: number, ...words: string[]): Promise<string> {
    const ended = await this.grove(...words);
    assert.equal(ended.code, code, `${words.join(" ")}: ${ended.stdout}${ended.stderr}`);
    return ended.stderr;
  }
}

/** What the tests start from. */
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

/** A cluster of two nodes in mock mode, and all three signed in, alice and bob each with a root on another node. */
export async function startPeople(t: TestContext): Promise<People> {
  const folder = await scratchFolder(t);
  const data = join(folder, "cluster");
  const up = startGrove(["up", "-data", data, "-nodes", "2", "-mock", "-reserve", "1MiB"]);
  t.after(() => stopProgram(up));
  await up.says(/Next, in another terminal/);
  const people = ["alice", "bob", "carol"].map((name) => new Person(folder, name));
  for (const person of people) {
    await person.ok("login", "--cluster", join(data, "cluster.json"), "--mock", person.email);
    await person.ok("ls");
  }
  const [alice, bob, carol] = people;
  assert.ok(alice !== undefined && bob !== undefined && carol !== undefined);
  return { alice, bob, carol, folder, clusterFile: join(data, "cluster.json"), up };
}
