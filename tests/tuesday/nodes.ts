// Certificates, a fourth node, and its removal.
import assert from "node:assert/strict";
import { join } from "node:path";
import type { Job } from "./job.ts";

/** The fourth node joins by a single-use token. */
export const aFourthNode: Job = {
  title: "certificates are listed with their days, a fourth node joins by a token, and a token is good once",
  async run(site) {
    const issued = await site.operator("ca", "list", "-ca_dir", site.caDir);
    for (const id of ["n1", "n2", "n3", "metaserver", "console"]) {
      assert.match(issued, new RegExp(`\\b${id}\\b.*\\b(?:89|90)\\b`), issued);
    }
    const token = ["-token_file", join(site.folder, "n1.token"), "-metaserver"];
    const place = ["-data", join(site.folder, "thief"), "-id", "n1", "-advertise", "127.0.0.1:64000"];
    const meta = `localhost:${site.metaserver.place.port}`;
    const used = await site.operatorRefused("node", "join", ...token, meta, ...place);
    assert.match(used, /token .*used|used .*token/);
    await site.addNode("n4", join(site.folder, "n4"), ["-reserve", "1GiB"]);
    const running = await site.operatorRefused("node", "remove", "n4", "-meta", site.store);
    assert.match(running, /stop/, running);
  },
};

/** It shows on the first screen, and is stopped for good. */
export const theFourthIsSeen: Job = {
  title: "the fourth node is on the first screen",
  async run(site) {
    const { nodes } = await site.untilScreen("a fourth node", (screen) =>
      screen.nodes.some(({ id, status }) => id === "n4" && status === "online"),
    );
    assert.deepEqual(new Set(nodes.map(({ id }) => id)), new Set(["n1", "n2", "n3", "n4"]));
    assert.equal(await site.node("n4").stop(), 0);
  },
};

/** Removing a node with roots is refused; one without is forgotten, and its certificate is revoked. */
export const oneRemoved: Job = {
  title:
    "a node that holds a root is not removed, with whose it is; an empty one is forgotten and comes back no more",
  async run(site) {
    const store = ["-meta", site.store];
    const refused = await site.operatorRefused("node", "remove", "n2", ...store);
    assert.match(refused, /bob@example\.com/);
    assert.match(refused, /backup/);
    assert.match(await site.operator("node", "remove", "n4", ...store), /lets it register no more/);
    const node = site.node("n4");
    await node.start(/n4 was taken out of this cluster, .*: join it anew/);
    await node.stop();
    assert.match(await site.operator("ca", "revoke", "n4", "-ca_dir", site.caDir), /n4/);
    await site.untilScreen("three nodes", ({ nodes }) => nodes.every(({ id }) => id !== "n4"));
    const again = await node.start(/"event":"(?:serving|metaserver_refuses[^"]*)"/);
    await again.says(/CLIENT_CERT_REQUIRED|revoked/);
    await node.stop();
    site.nodes.delete("n4");
  },
};
