// Tests the snippet of node addresses: HTTPS, pinned keys, and unused while the store answers (D20).
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { GroveError } from "#base/errors.ts";
import { silentLogger } from "#base/log.ts";
import type { SshNode } from "#base/ssh-node.ts";
import { createAuthorityFetch } from "#os/authority-fetch.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { NodeSource, snippetUrl } from "./node-source.ts";

const KEY_BYTES = Buffer.concat([
  Buffer.from([0, 0, 0, 11]),
  Buffer.from("ssh-ed25519"),
  Buffer.alloc(36, 7),
]);

function node(id: string, host: string): SshNode {
  const hostKey = `ssh-ed25519 ${KEY_BYTES.toString("base64")}`;
  return { id, host, port: 22, user: "svc", hostKey, repository: "/opt/grove", services: { fileserver: {} } };
}

interface Scene {
  readonly source: NodeSource;
  /** The store's answer; undefined: none. */
  store: readonly SshNode[] | undefined;
  /** The snippet's body, and its status. */
  snippet: unknown;
  status: number;
  asked: number;
}

async function start(t: TestContext): Promise<Scene> {
  const folder = scratchFolder("snippet-");
  const [key, cert] = [join(folder, "key"), join(folder, "cert")];
  const kind = [
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
    "-days",
    "2",
    "-subj",
    "/CN=x",
  ];
  const names = ["-addext", "subjectAltName=IP:127.0.0.1"];
  execFileSync("openssl", ["req", "-x509", ...kind, ...names, "-keyout", key, "-out", cert], {
    stdio: "ignore",
  });
  const scene = { store: undefined, snippet: {}, status: 200, asked: 0 } as unknown as {
    -readonly [K in keyof Scene]: Scene[K];
  };
  const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_request, response) => {
    scene.asked++;
    response.writeHead(scene.status, { location: "/" }).end(JSON.stringify(scene.snippet));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => new Promise((resolve) => server.close(resolve).closeAllConnections()));
  const { port } = server.address() as AddressInfo;
  scene.source = new NodeSource({
    folder,
    log: silentLogger,
    store: () =>
      scene.store === undefined
        ? Promise.reject(new GroveError("STORE_UNAVAILABLE", "the store does not answer"))
        : Promise.resolve(scene.store),
    snippet: {
      url: snippetUrl(`https://127.0.0.1:${port}/nodes.json`),
      fetch: createAuthorityFetch(readFileSync(cert, "utf8")),
    },
  });
  return scene;
}

test("a store that answers is believed alone; while it does not, the snippet says where nodes are whose keys were pinned", async (t) => {
  const scene = await start(t);
  scene.snippet = {
    nodes: [
      { id: "n1", host: "192.0.2.7", port: 2222 },
      { id: "stranger", host: "192.0.2.8" },
    ],
  };
  await assert.rejects(scene.source.nodes(), /the store does not answer/, "nothing was pinned yet");
  scene.asked = 0;
  scene.store = [node("n1", "10.0.0.1"), node("n2", "10.0.0.2")];
  assert.deepEqual(await scene.source.nodes(), scene.store);
  assert.equal(scene.asked, 0);
  scene.store = undefined;
  assert.deepEqual(await scene.source.nodes(), [{ ...node("n1", "192.0.2.7"), port: 2222 }]);
});

test("a snippet that is redirected, wrong, too long or names a host that is none changes nothing", async (t) => {
  const scene = await start(t);
  scene.store = [node("n1", "10.0.0.1")];
  await scene.source.nodes();
  scene.store = undefined;
  const good = { nodes: [{ id: "n1", host: "192.0.2.7" }] };
  for (const [status, said] of [
    [302, good],
    [500, good],
    [200, { nodes: [{ id: "n1", host: "-oProxyCommand=x" }] }],
    [200, { nodes: [{ id: "n1", host: "192.0.2.7", port: 0 }] }],
    [200, { nodes: "all" }],
    [200, { ...good, filler: "x".repeat(300_000) }],
  ] as const) {
    [scene.status, scene.snippet] = [status, said];
    await assert.rejects(
      scene.source.nodes(),
      /the store does not answer/,
      JSON.stringify(said).slice(0, 80),
    );
  }
  [scene.status, scene.snippet] = [200, good];
  assert.equal((await scene.source.nodes())[0]?.host, "192.0.2.7");
});

test("its address is HTTPS and holds no password", () => {
  for (const text of [
    "http://example.org/n.json",
    "file:///etc/passwd",
    "https://u:p@example.org/",
    "nodes.json",
  ]) {
    assert.throws(() => snippetUrl(text), /https:/, text);
  }
});
