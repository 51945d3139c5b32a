// The files of a deleted group: nobody reaches them, neither by a role nor by what members have shared.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { GROUPS_FILE } from "#security/identity/known-groups.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { visit } from "./links.fixture.ts";
import { refusal, startTestNode } from "./node.fixture.ts";

const OWNER = "atlas@group";
const [ALICE, CAROL] = ["alice@example.com", "carol@example.com"];

function keepGroups(dataFolder: string, ...names: string[]): void {
  const manager = { username: ALICE, role: "manage", setBy: "administrator", setAtMs: 1, untilMs: 0 };
  const groups = names.map((name) => ({ name, roles: [manager] }));
  const content = { schema: 1, confirmedMs: Date.now(), groups };
  writeFileSync(join(dataFolder, GROUPS_FILE), JSON.stringify(content), { mode: 0o600 });
}

test("when a group is deleted, shares and links of its files end with its roles, and come back with it", async () => {
  const dataFolder = scratchFolder("deleted-group-");
  let token = "";
  const start = async (...groups: string[]) => {
    keepGroups(dataFolder, ...groups);
    const node = await startTestNode({ dataFolder });
    const [alice, carol] = [await node.signIn(ALICE), await node.signIn(CAROL)];
    const looks = (user: typeof alice) => user.call.getAttr({ root: OWNER, path: "/d" });
    return { node, alice, carol, looks };
  };
  const first = await start("atlas", "other");
  await first.node.node.storage.createRoot({ owner: OWNER, rootId: "01J00000000000000000000000" });
  await first.alice.call.createDirectory({ root: OWNER, path: "/d" });
  await first.alice.call.share({ root: OWNER, path: "/d", user: CAROL });
  ({ token } = await first.alice.call.createLink({ root: OWNER, path: "/d" }));
  assert.equal((await first.looks(first.carol)).path, "/d");
  await visit(first.node, { token });
  await first.node.node.stop();

  const without = await start("other");
  for (const user of [without.alice, without.carol]) {
    assert.equal((await refusal(without.looks(user))).reason, "NOT_SHARED");
  }
  assert.equal((await refusal(visit(without.node, { token }))).reason, "TOKEN_REJECTED");
  await without.node.node.stop();

  const again = await start("atlas");
  for (const user of [again.alice, again.carol]) assert.equal((await again.looks(user)).path, "/d");
  await visit(again.node, { token });
  await again.node.stop();
});

test("a lock that a member has taken stands in nobody's way once the role is lost, and opens nothing to its holder", async () => {
  const dataFolder = scratchFolder("lost-role-");
  const roles = (...writers: string[]): void => {
    const granted = [ALICE, ...writers].map((username) => ({
      username,
      role: "write",
      setBy: "administrator",
      setAtMs: 1,
      untilMs: 0,
    }));
    const content = { schema: 1, confirmedMs: Date.now(), groups: [{ name: "atlas", roles: granted }] };
    writeFileSync(join(dataFolder, GROUPS_FILE), JSON.stringify(content), { mode: 0o600 });
  };
  const start = async () => {
    const node = await startTestNode({ dataFolder });
    return { node, alice: await node.signIn(ALICE), carol: await node.signIn(CAROL) };
  };
  const at = { root: OWNER, path: "/f" };
  const data = Buffer.from("1");
  roles(CAROL);
  const first = await start();
  await first.node.node.storage.createRoot({ owner: OWNER, rootId: "01J00000000000000000000000" });
  await first.alice.call.createFile({ ...at, data });
  const { token } = await first.carol.call.lock(at);
  assert.equal((await refusal(first.alice.call.writeFile({ ...at, data }))).reason, "LOCKED");
  await first.node.node.stop();

  roles();
  const second = await start();
  for (const act of [
    () => second.carol.call.refreshLock({ ...at, token }),
    () => second.carol.call.writeFile({ ...at, data }),
    () => second.carol.call.listLocks(at),
  ]) {
    assert.equal((await refusal(act())).reason, "NOT_SHARED");
  }
  assert.deepEqual((await second.alice.call.listLocks(at)).locks, []);
  await second.alice.call.writeFile({ ...at, data });
  await second.node.stop();
});
