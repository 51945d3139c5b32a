// People at their command lines: a cluster in mock mode, and alice, bob and carol signed in.
import assert from "node:assert/strict";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { type Ended, grove, type Program, startGrove, stopProgram } from "./processes.ts";

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

/** Clusters that are started until two roots lie apart: both nodes' disk is one, and which has more room is chance. */
const STARTS_MAX = 8;

/** A cluster of two nodes in mock mode, and all three signed in, alice and bob each with a root on another node. */
export async function startPeople(t: TestContext): Promise<People> {
  const folder = scratchFolder("grove-e2e-");
  for (let start = 1; ; start++) {
    const place = join(folder, String(start));
    const data = join(place, "cluster");
    const clusterFile = join(data, "cluster.json");
    const up = startGrove(["up", "-data", data, "-nodes", "2", "-mock", "-reserve", "1MiB"]);
    t.after(() => stopProgram(up));
    await up.says(/Next, in another terminal/);
    const people = ["alice", "bob", "carol"].map((name) => new Person(place, name));
    const homes: (string | undefined)[] = [];
    for (const person of people) {
      const said = await person.ok("login", "--cluster", clusterFile, "--mock", person.email);
      homes.push(/^Your files are on (\S+);/m.exec(said)?.[1]);
      await person.ok("ls");
    }
    const [alice, bob, carol] = people;
    assert.ok(alice !== undefined && bob !== undefined && carol !== undefined);
    assert.ok(homes[0] !== undefined);
    if (homes[0] !== homes[1]) return { alice, bob, carol, folder, clusterFile, up };
    assert.ok(start < STARTS_MAX, "both roots always came to one node");
    await stopProgram(up);
  }
}
