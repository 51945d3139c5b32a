// Tests that what a door has seen ends in few statements: on PostgreSQL each one is a journey, and time is short.
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import type { Plan } from "#metaserver/sql/sql-plan.ts";
import { addAppPassword, appPasswordsOf, findAppPassword } from "./credential-commands.ts";
import type { AppPasswordRecord, DoorSessionRecord } from "./credential-store.ts";
import { addDoorSession, doorSessionsOf, revokeUsedAtDoor } from "./door-session-commands.ts";

const person = { issuer: "idp.example.com", subject: "7" };
const ownerOf = (at: number): string => `u${at}@example.com`;

function password(at: number, door: string): AppPasswordRecord {
  const facts = { readOnly: false, folderId: "", folderPath: "", createdMs: 1, endsMs: 0, lastUsedMs: 9 };
  const owner = ownerOf(at % 300);
  return { id: `a${at}`, owner, ...person, name: `name ${at}`, hash: "ab", ...facts, doors: { [door]: 9 } };
}

function session(at: number): DoorSessionRecord {
  const facts = { createdMs: 1, endsMs: 1_000, lastUsedMs: 9, doors: { d1: 9 } };
  return { id: `s${at}`, owner: ownerOf(at), ...person, hash: "cd", ...facts };
}

/** A store in memory that counts. */
class Counting {
  statements = 0;
  readonly #database = new DatabaseSync(":memory:");

  constructor() {
    this.#database.exec("CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL)");
  }

  run<Result>(plan: Plan<Result>): Result {
    this.statements = 0;
    let step = plan.next();
    while (step.done !== true) {
      const { sql, values } = step.value;
      this.statements++;
      const statement = this.#database.prepare(sql);
      statement.setReadBigInts(true);
      const rows = statement.all(...values);
      step = plan.next({ rows, changes: rows.length });
    }
    return step.value;
  }
}

test("what was used at a door that was taken over ends in few statements, thousands of credentials too", () => {
  const store = new Counting();
  for (let at = 0; at < 1_200; at++) store.run(addAppPassword(password(at, at % 4 === 3 ? "d2" : "d1")));
  for (let at = 0; at < 300; at++) store.run(addDoorSession(session(at)));
  const ended = store.run(revokeUsedAtDoor("d1", 0, 10));
  assert.ok(store.statements <= 50, String(store.statements));
  assert.equal(ended.length, 900);
  assert.equal(store.run(findAppPassword("a0")), undefined);
  const left = store.run(appPasswordsOf(ownerOf(3))).map(({ id }) => id);
  assert.deepEqual(left, ["a3", "a303", "a603", "a903"]);
  assert.deepEqual(store.run(appPasswordsOf(ownerOf(0))), []);
  assert.deepEqual(store.run(doorSessionsOf(ownerOf(5))), []);
});
