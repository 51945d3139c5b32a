// Tests builds with USE_IDP_AUTH=0: no code of identity providers, and a program that says so (spec 5.9,
// D24).
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** Texts that only code of or for an identity provider has. */
const TRACES = /oauth4webapi|oidc-provider|code_challenge|jwks_uri|searchParams\.set\("id_token"/;
const VALUES = ["1", "0"] as const;
let folder: string;

before(() => {
  mkdirSync(join(ROOT, ".cache"), { recursive: true });
  // In the repository, so that the build finds its packages.
  folder = mkdtempSync(join(ROOT, ".cache/build-"));
  for (const value of VALUES) {
    const { status, stderr } = run(["tools/build.ts", join(folder, value)], { USE_IDP_AUTH: value });
    assert.equal(status, 0, stderr);
  }
});
after(() => rmSync(folder, { recursive: true }));

function run(words: readonly string[], env: NodeJS.ProcessEnv = {}) {
  return spawnSync(process.execPath, words, {
    cwd: ROOT,
    env: { ...process.env, ...env },
    encoding: "utf8",
  });
}

const grove = (value: string, ...words: string[]) => run([join(folder, value, "bin/grove.js"), ...words]);

function withTraces(value: string): string[] {
  const built = join(folder, value);
  return readdirSync(built, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".js") && TRACES.test(readFileSync(join(built, path), "utf8")))
    .toSorted();
}

test("a usual build has the code that asks a provider, and one with USE_IDP_AUTH=0 has none", () => {
  assert.deepEqual(withTraces("1"), [
    "client/signin/code-exchange.js",
    "devcluster/provider-library.js",
    "doctor/provider-checks.js",
    "security/identity/code-flow.js",
    "security/identity/issuer-keys.js",
    "security/identity/provider-discovery.js",
    "security/identity/tokeninfo.js",
  ]);
  assert.deepEqual(withTraces("0"), []);
});

test("a program without it says so: its version, its servers, its sign-in, its demonstration", () => {
  assert.match(grove("1", "--version").stdout, /^grove \S+ \(Node \S+\)\n$/);
  assert.match(grove("0", "--version").stdout, /built without sign-in by an identity provider\)\n$/);
  const built = /this program was built with USE_IDP_AUTH=0/;
  const data = join(folder, "data");
  const server = grove("0", "fileserver", "-data", data, "-id", "n1", "-listen", "127.0.0.1:50951");
  assert.notEqual(server.status, 0);
  assert.match(server.stderr, built);
  const up = grove("0", "up", "-data", data);
  assert.notEqual(up.status, 0);
  assert.match(up.stderr, built);
  const doctor = grove("0", "doctor", "--data", data);
  assert.match(doctor.stdout, built);
});
