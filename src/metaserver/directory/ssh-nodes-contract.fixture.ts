// The contract of the metadata store about nodes that are administered over SSH.
import assert from "node:assert/strict";
import type { SshNode } from "#base/ssh-node.ts";
import { type Contract, refused } from "./store-under-test.fixture.ts";

const HOST_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJzQ0fUkmCMLkqvhMVrHzQ1aXKLF0rXMqmUJ0yJIlhYr";

/** A node with defaults for all facts that a test does not set. */
export function sshNode(id: string, facts: Partial<SshNode> = {}): SshNode {
  const place = { host: `${id}.example.com`, port: 22, user: "grove", repository: "grove" };
  return { id, ...place, hostKey: HOST_KEY, services: {}, ...facts };
}

/** Declares the tests. */
export function testSshNodes(contract: Contract): void {
  contract("a node for SSH comes back as it was put, also after a restart (D20)", async (store) => {
    assert.deepEqual(await store.directory.sshNodes(), []);
    const n2 = sshNode("n2", {
      host: "2001:db8::7",
      port: 2222,
      repository: "/srv/the grove",
      services: {
        fileserver: {
          logFile: "/var/log/grove.log",
          argv: ["/usr/bin/node", "grove", "fileserver", "-data", "it's ö; rm $HOME"],
          cwd: "grove",
          env: { LANG: "C.UTF-8" },
          pidFile: "run/fileserver.pid",
        },
        admin: { logFile: "console.log" },
      },
    });
    await store.directory.putSshNode(n2);
    await store.directory.putSshNode(sshNode("n10"));
    assert.deepEqual(await store.directory.sshNodes(), [sshNode("n10"), n2]);
    const again = await store.reopen();
    assert.deepEqual(await again.sshNodes(), [sshNode("n10"), n2]);
  });

  contract("the same id again replaces the node; a removed one is gone (D20)", async ({ directory }) => {
    await directory.putSshNode(sshNode("a"));
    await directory.putSshNode(sshNode("b"));
    const moved = sshNode("a", { host: "10.0.0.9", services: { metaserver: { logFile: "m.log" } } });
    await directory.putSshNode(moved);
    assert.deepEqual(await directory.sshNodes(), [moved, sshNode("b")]);
    assert.equal(await directory.removeSshNode("a"), true);
    assert.equal(await directory.removeSshNode("a"), false);
    assert.deepEqual(await directory.sshNodes(), [sshNode("b")]);
  });

  contract(
    "a node that could be taken for something else is refused, and nothing of it kept (E-02)",
    async ({ directory }) => {
      await refused("BAD_ARGUMENT", directory.putSshNode(sshNode("a", { host: "-oProxyCommand=x" })));
      await refused("BAD_ARGUMENT", directory.putSshNode(sshNode("a", { user: "root -x" })));
      assert.deepEqual(await directory.sshNodes(), []);
    },
  );
}
