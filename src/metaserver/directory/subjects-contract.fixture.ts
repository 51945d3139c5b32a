// The contract of the metadata store about the persons behind addresses, for every implementation (D21).
import assert from "node:assert/strict";
import { SUBJECTS_LISTED_MAX } from "#base/limits.ts";
import type { HeldRoot } from "./directory.ts";
import { beat, type Contract, MOCK, refused, registration } from "./store-under-test.fixture.ts";
import type { Rebinding, Subject } from "./subject.ts";

const OLD = "old.example.com";
const NEW = "new.example.com";
const person = (issuer: string, subject: string): Subject => ({ issuer, subject });
const goesOver = (username: string, from: Subject, to: Subject): Rebinding => ({ username, from, to });
const rootOf = (owner: string, subject: Subject): HeldRoot => ({
  owner,
  rootId: `ROOT-${owner}`,
  version: 1n,
  grants: [],
  subject,
});

/** Declares the tests. */
export function testSubjects(contract: Contract): void {
  contract("an operator's word puts another person behind an address, all of them or none", async (store) => {
    const { directory } = store;
    for (const user of ["a@x.de", "b@x.de"]) await directory.admitSubject(user, person(OLD, user));
    const both = [
      goesOver("a@x.de", person(OLD, "a@x.de"), person(NEW, "1")),
      goesOver("b@x.de", person(OLD, "another"), person(NEW, "2")),
    ];
    await refused("BAD_ARGUMENT", directory.rebindSubjects(both));
    assert.equal(await directory.admitSubject("a@x.de", person(OLD, "a@x.de")), true);
    const version = await directory.rebindSubjects(both.slice(0, 1));
    const again = await store.reopen();
    assert.equal(await again.admitSubject("a@x.de", person(OLD, "a@x.de")), false);
    assert.equal(await again.admitSubject("a@x.de", person(NEW, "1")), true);
    assert.deepEqual(await again.findSubject("a@x.de"), {
      username: "a@x.de",
      issuer: NEW,
      subject: "1",
      version,
    });
    assert.equal(await again.findSubject("nobody@x.de"), undefined);
    assert.deepEqual(
      (await again.subjectsOf(OLD)).map(({ username }) => username),
      ["b@x.de"],
    );
  });

  contract(
    "an address that waits for a provider's word is the first one's who comes from there",
    async ({ directory }) => {
      await directory.admitSubject("a@x.de", person(OLD, "1"));
      await directory.rebindSubjects([goesOver("a@x.de", person(OLD, "1"), person(NEW, ""))]);
      assert.equal(await directory.admitSubject("a@x.de", person(OLD, "1")), false);
      assert.equal(await directory.admitSubject("a@x.de", person("third.example.com", "1")), false);
      assert.equal(await directory.admitSubject("a@x.de", person(NEW, "7")), true);
      assert.equal(await directory.admitSubject("a@x.de", person(NEW, "8")), false);
      assert.equal(await directory.admitSubject("a@x.de", person(NEW, "7")), true);
    },
  );

  contract(
    "a node that comes back with what was before does not undo it, and one that has heard brings it back",
    async (store) => {
      const { directory } = store;
      const before = person(OLD, "1");
      await directory.register(registration("a", { roots: [rootOf("a@x.de", before)] }));
      const version = await directory.rebindSubjects([goesOver("a@x.de", before, person(NEW, "2"))]);
      await directory.register(registration("a", { roots: [rootOf("a@x.de", before)] }));
      assert.equal((await directory.findSubject("a@x.de"))?.subject, "2");
      // A store restored from before learns it from the node.
      const later = { ...person(NEW, "3"), version: version + 1n };
      await directory.register(registration("a", { roots: [rootOf("a@x.de", later)] }));
      assert.deepEqual(await directory.findSubject("a@x.de"), { username: "a@x.de", ...later });
      const older = { ...person(OLD, "1"), version };
      await directory.register(registration("a", { roots: [rootOf("a@x.de", older)] }));
      assert.equal((await directory.findSubject("a@x.de"))?.subject, "3");
    },
  );

  contract(
    "nodes hear of it with a heartbeat, and list it in pages however many went over at once",
    async ({ directory }) => {
      const { epoch } = await directory.register(registration("a"));
      assert.equal((await directory.heartbeat(beat("a", epoch))).subjectsVersion, undefined);
      const node = { fsId: "a", epoch, speaker: MOCK };
      const count = SUBJECTS_LISTED_MAX + 50;
      const users = Array.from({ length: count }, (_, at) => `u${String(at).padStart(5, "0")}@x.de`);
      await directory.register(
        registration("b", { roots: users.map((user) => rootOf(user, person(OLD, user))) }),
      );
      assert.deepEqual(await directory.reboundSubjects(node, { version: 0n, username: "" }), []);
      const first = await directory.rebindSubjects(
        users.map((user) => goesOver(user, person(OLD, user), person(NEW, user))),
      );
      const second = await directory.rebindSubjects([
        goesOver("u00000@x.de", person(NEW, "u00000@x.de"), person(NEW, "0")),
      ]);
      assert.ok(second > first, "each word is newer than the one before");
      // Where one of many is somebody else's, the others stay as they are, in whatever statement they were.
      const third = users.map((user) => goesOver(user, person(NEW, user), person("third.example.com", user)));
      await assert.rejects(directory.rebindSubjects(third.toReversed()), /^.*u00000@x.de is somebody/u);
      assert.deepEqual(await directory.subjectsOf("third.example.com"), []);
      assert.equal((await directory.heartbeat(beat("a", epoch))).subjectsVersion, second);
      const page = await directory.reboundSubjects(node, { version: 0n, username: "" });
      const last = page.at(-1);
      assert.equal(page.length, SUBJECTS_LISTED_MAX);
      assert.ok(last !== undefined);
      const rest = await directory.reboundSubjects(node, last);
      assert.deepEqual(
        [...page, ...rest].map(({ username }) => username),
        [...users.slice(1), "u00000@x.de"],
      );
      assert.deepEqual(
        await directory.reboundSubjects(node, { version: second, username: "u00000@x.de" }),
        [],
      );
      await refused("FENCED", directory.reboundSubjects({ ...node, epoch: epoch - 1 }, last));
    },
  );
}
