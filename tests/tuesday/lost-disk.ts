// A node dies, its disk is lost, and it is restored from its backup.
import assert from "node:assert/strict";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { calm } from "./first-screen.ts";
import type { Job } from "./job.ts";

const TEXT = "what bob has written\n";

/** A kill and the loss of the data folder: the first screen reports it at once. */
export const aNodeDies: Job = {
  title:
    "a node that dies is late on the first screen at once, and its users are told that it does not answer",
  async run(site) {
    const bob = site.person("bob");
    const paper = join(site.folder, "paper");
    await writeFile(paper, TEXT);
    await bob.ok("put", paper, "/paper");
    const node = site.node("n2");
    const backups = join(site.folder, "backups");
    await site.operator("backup", "create", "-data", node.data, "-to", backups, "-copy");
    await site.operator("backup", "verify", backups);
    await site.untilScreen("an answer of n2", (screen) =>
      screen.nodes.some(({ id, stale, unknown }) => id === "n2" && stale === false && unknown !== true),
    );
    await node.stop("SIGKILL");
    await rm(node.data, { recursive: true });
    const { nodes } = await site.untilScreen("a late node", (screen) =>
      screen.nodes.some(({ id, stale }) => id === "n2" && stale === true),
    );
    const said = await calm(nodes);
    assert.doesNotMatch(said.title, /Nothing needs you/);
    assert.match(said.title, /late/);
    assert.match(said.answered, /^\d of \d nodes answered the last poll/);
    const told = await bob.refusedAtOnce(7, "ls");
    assert.ok(told.includes(node.place.address), told);
  },
};

/** After 30 s there is an alert; a restore prints the commands to type, and the files are there again. */
export const aDiskRestored: Job = {
  title:
    "a dead node is an alert that says who cannot reach what, and a restore prints the commands that bring it back",
  async run(site) {
    const node = site.node("n2");
    const alert = await site.alert("node_offline:n2");
    assert.equal(alert.severity, "critical");
    assert.equal(alert.title, "n2 is offline");
    assert.match(alert.message, /has not answered for more than 30 s; its last answer came at .* UTC/);
    const backups = join(site.folder, "backups");
    const told = await site.operator("backup", "restore", backups, "-to", node.data);
    for (const next of [
      `grove fsck -data ${node.data} -deep`,
      "grove node token -ca_dir",
      `grove node join -metaserver localhost:${site.metaserver.place.port} -data ${node.data} -id n2`,
      `grove fileserver -data ${node.data}`,
    ]) {
      assert.ok(told.includes(next), `${next}\nis not in\n${told}`);
    }
    assert.match(await site.operator("fsck", "-data", node.data, "-deep"), /./);
    await site.join("n2", node.data, node.place);
    await node.start(/"event":"registered"/);
    await site.noAlert("node_offline:n2");
    assert.equal(await site.person("bob").ok("cat", "/paper"), TEXT);
  },
};
