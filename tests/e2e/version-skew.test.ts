// Versions side by side: neighbours work together in every role, others are refused in words (D18).
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { VERSION } from "#base/version.ts";
import { type Ended, freePlace, type Program, startProgram, stopProgram } from "#e2e/processes.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";

const ENTRY = fileURLToPath(new URL("../../src/bin/grove.ts", import.meta.url));
const PRELOADED = new URL("pretended-version.ts", import.meta.url).href;

const [major = 0, minor = 0] = VERSION.split(".").map(Number);
/** A version so many minor ones after this. */
const after = (count: number): string => `${major}.${minor + count}.0`;

/** Starts the sources as a program of another version. */
function startAs(version: string, words: readonly string[], env: Record<string, string> = {}): Program {
  return startProgram(process.execPath, ["--import", PRELOADED, ENTRY, ...words], {
    env: { ...env, TEST_PRETENDED_VERSION: version },
  });
}

test("a version before and one after share a cluster; two apart are refused, with what to upgrade", {
  timeout: 240_000,
}, async (t) => {
  const folder = scratchFolder("grove-skew-");
  const start = (version: string, words: readonly string[]): Program => {
    const program = startAs(version, words, { SVC_AUTH_MOCK: "1" });
    t.after(() => stopProgram(program, "SIGKILL"));
    return program;
  };
  // The MetaServer is the newer one, as an upgrade brings it; the other way comes with the second node.
  const meta = await freePlace();
  const server = start(after(1), [
    "metaserver",
    "-mock",
    "-listen",
    meta.address,
    "-data",
    join(folder, "meta"),
    "-metrics",
    "off",
  ]);
  await server.says(/"serving"/);
  const addNode = async (id: string, version: string): Promise<Program & { readonly address: string }> => {
    const place = await freePlace();
    const flags = ["-listen", place.address, "-id", id, "-metaserver", meta.address, "-reserve", "1MiB"];
    const node = start(version, ["fileserver", "-mock", "-data", join(folder, id), ...flags]);
    return { ...node, address: place.address };
  };
  const older = await addNode("n1", VERSION);
  await older.says(/"registered"/);
  const newer = await addNode("n2", after(2));
  await newer.says(/"registered"/);

  const tooNew = await addNode("n3", after(3));
  const told = await tooNew.says(/"reason":"VERSION_MISMATCH".*/);
  const text = `FileServer n3 has version ${after(3)} and this MetaServer ${after(1)}, and versions work together`;
  assert.ok(told[0].includes(text), told[0]);
  assert.ok(told[0].includes(`upgrade this MetaServer to ${after(2).replace(/\.0$/, "")} or newer`), told[0]);

  const client = (version: string, ...words: string[]): Promise<Ended> =>
    startAs(version, words, { XDG_CONFIG_HOME: join(folder, "config"), SVC_AUTH_MOCK: "1" }).ended;
  const signIn = (version: string, address: string): Promise<Ended> =>
    client(version, "login", "--fileserver", address, "--mock", "alice@example.com");
  const file = join(folder, "sent");
  writeFileSync(file, "across versions");
  for (const version of [VERSION, after(1)]) {
    const entered = await client(
      version,
      "login",
      "--metaserver",
      meta.address,
      "--mock",
      "alice@example.com",
    );
    // Whichever node has the root, one of these clients may be two versions from it, and says so.
    if (entered.code !== 0) {
      assert.match(entered.stderr, /versions work together that are at most one minor version apart/);
      continue;
    }
    assert.equal((await client(version, "put", file, `from ${version}`)).code, 0);
    assert.equal((await client(version, "get", `from ${version}`, `${file} back`)).code, 0);
    assert.equal(readFileSync(`${file} back`, "utf8"), "across versions");
  }
  const refused = await signIn(after(2), older.address);
  assert.equal(refused.code, 1, refused.stdout);
  assert.match(
    refused.stderr,
    new RegExp(
      `the client has version ${after(2)} and this FileServer ${VERSION}.*: upgrade this FileServer to`,
      "i",
    ),
  );
  const old = await signIn(VERSION, newer.address);
  assert.equal(old.code, 1, old.stdout);
  assert.match(old.stderr, /upgrade the client to .* or newer/);
});
