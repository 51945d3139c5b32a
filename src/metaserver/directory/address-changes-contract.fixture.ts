// The contract of the metadata store about people whose address changes, for every implementation (D21).
import assert from "node:assert/strict";
import type { Directory } from "./directory.ts";
import { type Contract, MOCK, refused, registration } from "./store-under-test.fixture.ts";
import { WANTED_CHANGE_LIFE_MS, WANTED_CHANGES_MAX } from "./subject.ts";

const ISSUER = "idp.example.com";
const [OLD, NEW, BOB] = ["old@x.de", "new@x.de", "bob@x.de"];
const person = (subject: string) => ({ issuer: ISSUER, subject });

/** A node with the roots of two users who share with each other, who has heard of nothing. */
async function startTwo(
  directory: Directory,
): Promise<{ fsId: string; epoch: number; speaker: typeof MOCK }> {
  await directory.admitSubject(OLD, person("1"));
  await directory.admitSubject(BOB, person("2"));
  const { epoch } = await directory.register(
    registration("a", {
      roots: [
        { owner: OLD, rootId: "R1", version: 1n, grants: [{ path: "/o", user: BOB }] },
        { owner: BOB, rootId: "R2", version: 1n, grants: [{ path: "/b", user: OLD }] },
      ],
    }),
  );
  return { fsId: "a", epoch, speaker: MOCK };
}

/** Declares the tests. */
export function testAddressChanges(contract: Contract): void {
  contract(
    "a known person under another address waits for an operator's word, and gets everything with it",
    async (store) => {
      const { directory } = store;
      const node = await startTwo(directory);
      assert.deepEqual(await directory.admitSubject(NEW, person("1")), { knownAs: OLD, isFormer: false });
      const [wanted] = await directory.wantedChanges();
      assert.deepEqual([wanted?.from, wanted?.to, wanted?.subject], [OLD, NEW, "1"]);
      assert.equal(await directory.findSubject(NEW), undefined, "nothing is recorded of the new address");
      await refused("BAD_ARGUMENT", directory.changeAddress(BOB, NEW));

      await directory.changeGroups({
        kind: "create",
        group: { name: "g", createdBy: BOB, createdMs: 1, members: [], claims: [] },
      });
      await directory.changeGroups({
        kind: "add-member",
        name: "g",
        member: { username: OLD, role: "write", setBy: BOB, setAtMs: 1 },
      });
      await directory.setNoticesOff(OLD, true);
      const change = await directory.changeAddress(OLD, NEW);
      const again = await store.reopen();
      assert.deepEqual(await again.wantedChanges(), []);
      assert.equal((await again.findRoot(NEW))?.rootId, "R1");
      assert.equal(await again.findRoot(OLD), undefined);
      assert.deepEqual(
        (await again.rootsSharedWith(NEW)).map(({ owner }) => owner),
        [BOB],
      );
      assert.deepEqual(
        (await again.rootsSharedWith(BOB)).map(({ owner }) => owner),
        [NEW],
      );
      assert.deepEqual(await again.rootsSharedWith(OLD), []);
      assert.deepEqual(
        (await again.groupBook()).groups[0]?.members.map(({ username }) => username),
        [NEW],
      );
      assert.deepEqual([await again.noticesOff(NEW), await again.noticesOff(OLD)], [true, false]);
      const state = (await again.userStates()).find(({ username }) => username === OLD);
      assert.ok((state?.tokensFromMs ?? 0) > 0, "older tokens of that address open nothing");

      // A node that has not heard speaks of the old name, and an older registration brings nothing back.
      await again.setGrant({
        owner: OLD,
        path: "/p",
        user: BOB,
        version: 2n,
        granted: true,
        node,
        namesVersion: 0n,
      });
      assert.deepEqual(
        (await again.rootsSharedWith(BOB)).map(({ path }) => path),
        ["/o", "/p"],
      );
      // One that has carried it out ends nothing of the new name by ending what the old one had.
      const end = { owner: BOB, path: "/b", user: OLD, version: 2n, granted: false, node };
      await again.setGrant({ ...end, namesVersion: change.version });
      assert.deepEqual(
        (await again.rootsSharedWith(NEW)).map(({ path }) => path),
        ["/b"],
      );
      const next = await again.register(
        registration("a", {
          knownEpoch: node.epoch,
          roots: [{ owner: OLD, rootId: "R1", version: 3n, grants: [] }],
        }),
      );
      assert.deepEqual(next.conflicts, []);
      assert.equal(await again.findRoot(OLD), undefined);

      assert.deepEqual(await again.admitSubject(OLD, person("1")), { knownAs: NEW, isFormer: true });
      await refused("STARTING", again.admitSubject(OLD, person("9")));
      await refused("STARTING", again.locateRoot(OLD));
      const heard = { ...node, epoch: next.epoch };
      const [told] = await again.reboundSubjects(heard, { version: 0n, username: "" });
      assert.deepEqual([told?.username, told?.former, told?.version], [NEW, OLD, change.version]);
      assert.deepEqual(
        (await again.changesUnderWay()).map(({ waitsFor }) => waitsFor),
        [["a"]],
      );
      await again.noteChangesHeard("a", change.version);
      assert.deepEqual(await again.changesUnderWay(), []);
      assert.equal(await again.admitSubject(OLD, person("9")), true, "the old address is free");
    },
  );

  contract("an address with a person or files of its own is given to nobody else", async ({ directory }) => {
    await startTwo(directory);
    await directory.admitSubject(NEW, person("1"));
    await directory.admitSubject(NEW, person("7"));
    await refused("BAD_ARGUMENT", directory.changeAddress(OLD, NEW));
    assert.equal((await directory.findRoot(OLD))?.rootId, "R1");
    await directory.admitSubject("other@x.de", person("2"));
    const [state] = await directory.putUserStates([
      {
        username: BOB,
        disabled: true,
        closesShares: false,
        version: 1,
        reason: "",
        setBy: "root@x.de",
        setAtMs: 1,
        tokensFromMs: 0,
        issuer: "",
        subject: "",
      },
    ]);
    assert.equal(state?.disabled, true);
    await refused("BAD_ARGUMENT", directory.changeAddress(BOB, "other@x.de"));
    assert.equal((await directory.findSubject(BOB))?.subject, "2", "a refused change changes nothing");
  });

  contract(
    "a removed user who had the former address stays removed, and one of the new address does not touch its files",
    async ({ directory }) => {
      await startTwo(directory);
      await directory.admitSubject(NEW, person("1"));
      const removal = { dueAtMs: 1_700_000_000_000, isReleased: true };
      const decision = { disabled: false, closesShares: false, version: 1, reason: "", setBy: "root@x.de" };
      const nobody = { setAtMs: 1, tokensFromMs: 0, issuer: "", subject: "" };
      await directory.putUserStates(
        [OLD, NEW].map((username) => ({ username, ...decision, ...nobody, removal })),
      );
      await directory.changeAddress(OLD, NEW);
      const states = await directory.userStates();
      const removalOf = (name: string): unknown => states.find(({ username }) => username === name)?.removal;
      assert.deepEqual([removalOf(OLD), removalOf(NEW)], [removal, undefined]);
    },
  );

  contract("of several words on one new address at once exactly one is done", async ({ directory }) => {
    await startTwo(directory);
    await directory.admitSubject(NEW, person("1"));
    const words = await Promise.allSettled([
      directory.changeAddress(OLD, NEW),
      directory.refuseAddress(OLD, NEW),
      directory.changeAddress(OLD, NEW),
      directory.refuseAddress(OLD, NEW),
    ]);
    const done = words.filter((word) => word.status === "fulfilled" && word.value !== false);
    assert.equal(done.length, 1);
    const isChanged = words.some((word) => word.status === "fulfilled" && typeof word.value === "object");
    assert.equal((await directory.findSubject(isChanged ? NEW : OLD))?.subject, "1");
    assert.equal(await directory.findSubject(isChanged ? OLD : NEW), undefined);
  });

  contract(
    "those who wait are few, are forgotten in time, and can be refused",
    async ({ directory }, clock) => {
      await startTwo(directory);
      await directory.admitSubject(NEW, person("1"));
      assert.equal(await directory.refuseAddress(OLD, "x@x.de"), false);
      assert.equal(await directory.refuseAddress(OLD, NEW), true);
      assert.deepEqual(await directory.wantedChanges(), []);
      await directory.admitSubject(NEW, person("1"));
      await directory.admitSubject("newer@x.de", person("1"));
      assert.deepEqual(
        (await directory.wantedChanges()).map(({ to }) => to),
        ["newer@x.de"],
      );
      clock.advance(WANTED_CHANGE_LIFE_MS);
      assert.deepEqual(await directory.wantedChanges(), []);
      assert.ok(WANTED_CHANGES_MAX >= 1_000);
    },
  );
}
