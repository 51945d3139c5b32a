// The contract of the metadata store about groups, for every implementation.
import assert from "node:assert/strict";
import { GROUP_CLAIMS_MAX, type Group } from "#security/policy/group.ts";
import { type Contract, refused } from "./store-under-test.fixture.ts";

const made = { setBy: "root@x.de", setAtMs: 5 };
const group = (name: string): Group => ({
  name,
  createdBy: "root@x.de",
  createdMs: 1,
  members: [],
  claims: [],
});

/** Declares the tests. */
export function testGroups(contract: Contract): void {
  contract(
    "groups and their members survive restarts, and the mark changes with each change",
    async (store) => {
      const { directory } = store;
      assert.deepEqual(await directory.groupBook(), { mark: "", groups: [], people: [] });
      await directory.changeGroups({ kind: "create", group: group("b") });
      await directory.changeGroups({ kind: "create", group: group("a") });
      const first = await directory.groupsMark();
      const member = { username: "dave@x.de", role: "read" as const, ...made };
      await directory.changeGroups({ kind: "add-member", name: "a", member });
      await directory.changeGroups({ kind: "add-member", name: "a", member: { ...member, role: "write" } });
      await directory.changeGroups({
        kind: "add-claim",
        name: "a",
        claim: { value: "eng", role: "manage", ...made },
      });
      assert.notEqual(await directory.groupsMark(), first);
      const again = await store.reopen();
      const { groups, mark } = await again.groupBook();
      assert.equal(mark, await again.groupsMark());
      assert.deepEqual(
        groups.map(({ name, members, claims }) => [
          name,
          members.map(({ username, role }) => [username, role]),
          claims.map(({ value, role }) => [value, role]),
        ]),
        [
          ["a", [["dave@x.de", "write"]], [["eng", "manage"]]],
          ["b", [], []],
        ],
      );
      await again.changeGroups({ kind: "remove-member", name: "a", username: "dave@x.de" });
      const before = await again.changeGroups({ kind: "remove-claim", name: "a", value: "eng" });
      assert.equal(before?.claims.length, 1);
      await again.changeGroups({ kind: "delete", name: "a" });
      assert.deepEqual(
        (await again.groupBook()).groups.map(({ name }) => name),
        ["b"],
      );
    },
  );

  contract("a group exists once, and what is not there is not removed", async ({ directory }) => {
    await directory.changeGroups({ kind: "create", group: group("a") });
    await refused("BAD_ARGUMENT", directory.changeGroups({ kind: "create", group: group("a") }));
    await refused("BAD_ARGUMENT", directory.changeGroups({ kind: "delete", name: "x" }));
    await refused(
      "BAD_ARGUMENT",
      directory.changeGroups({ kind: "remove-member", name: "a", username: "dave@x.de" }),
    );
    await refused("BAD_ARGUMENT", directory.changeGroups({ kind: "remove-claim", name: "a", value: "eng" }));
    for (let count = 0; count < GROUP_CLAIMS_MAX; count++) {
      const claim = { value: `v${count}`, role: "read" as const, ...made };
      await directory.changeGroups({ kind: "add-claim", name: "a", claim });
    }
    const beyond = { value: "more", role: "read" as const, ...made };
    await refused("OVERLOADED", directory.changeGroups({ kind: "add-claim", name: "a", claim: beyond }));
  });

  contract("of two tokens of one person the one issued later counts", async ({ directory }) => {
    const record = { username: "dave@x.de", issuedMs: 10, seenMs: 11, values: ["eng"] };
    await directory.changeGroups({ kind: "person", record });
    await directory.changeGroups({ kind: "person", record: { ...record, issuedMs: 9, values: ["ops"] } });
    assert.deepEqual((await directory.groupBook()).people, [record]);
    await directory.changeGroups({ kind: "person", record: { ...record, issuedMs: 12, values: [] } });
    assert.deepEqual((await directory.groupBook()).people[0]?.values, []);
  });

  contract(
    "a later token that says the same is remembered, and changes nothing for readers",
    async (store) => {
      const { directory } = store;
      const hear = async (issuedMs: number, values: readonly string[], seenMs = 11): Promise<void> => {
        const record = { username: "dave@x.de", issuedMs, seenMs, values };
        await directory.changeGroups({ kind: "person", record });
      };
      await hear(10, []);
      const mark = await directory.groupsMark();
      await hear(30, []);
      await hear(20, ["eng"]);
      assert.equal(await directory.groupsMark(), mark);
      await hear(40, ["eng"]);
      const later = await directory.groupsMark();
      assert.notEqual(later, mark);
      await hear(60, ["eng"]);
      assert.equal(await directory.groupsMark(), later);
      const again = await store.reopen();
      await again.changeGroups({
        kind: "person",
        record: { username: "dave@x.de", issuedMs: 50, seenMs: 11, values: [] },
      });
      const [dave] = (await again.groupBook()).people;
      assert.deepEqual([dave?.issuedMs, dave?.values], [60, ["eng"]]);
      // The day on which a role was confirmed last is news: the role lasts from then on.
      await again.changeGroups({
        kind: "person",
        record: { username: "dave@x.de", issuedMs: 70, seenMs: 12, values: ["eng"] },
      });
      assert.notEqual(await again.groupsMark(), later);
    },
  );
}
