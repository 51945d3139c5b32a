// Other people's WebDAV programs at a door of a whole cluster, over HTTP and HTTPS.
//
// GROVE_SYNC_FILES=10000 has rclone sync as many files as promised.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { startGrove, startProgram, stopProgram } from "#e2e/processes.ts";
import { freePort } from "#testing/free-ports.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import type { DoorSite } from "./door-site.ts";
import { oneDoor } from "./one-door.ts";

const SYNC_FILES = Number(process.env["GROVE_SYNC_FILES"] ?? 120);
/** For six passes over the files and their start. */
const SYNC_LIMIT_MS = 150_000 + SYNC_FILES * 100;

/** The reason to skip a test whose program this machine lacks. */
function without(program: string): { readonly skip: false | string } {
  return { skip: spawnSync(program, ["--version"]).error === undefined ? false : `needs ${program}` };
}

/** The same for gvfs, which is a session's service and no program. */
function withoutGvfs(): { readonly skip: false | string } {
  const needs = ["/usr/bin/dbus-run-session", "/usr/bin/gio", "/usr/share/gvfs/mounts/dav.mount"];
  const missing = needs.find((path) => !existsSync(path));
  return { skip: missing === undefined ? false : `needs ${missing}` };
}

const WHO = "programs@example.com";

let site: DoorSite;
before(async () => {
  site = await oneDoor(WHO);
});

/** Runs all of litmus: every test has to pass but those that it never runs there, which are named. */
async function passLitmus(url: string, neverRun: readonly string[] = []): Promise<void> {
  const words = ["-k", url, WHO, site.password];
  const { stdout } = await startProgram("litmus", words, { cwd: scratchFolder("litmus-") }).ended;
  const passed = [...stdout.matchAll(/: of (\d+) tests run: (\d+) passed, 0 failed/gu)];
  assert.equal(
    passed.reduce((sum, [, , count]) => sum + Number(count), 0),
    104 - neverRun.length,
    stdout,
  );
  const skipped = [...stdout.matchAll(/(\w+)\.* SKIPPED/gu)].map(([, name]) => name);
  assert.deepEqual(skipped, neverRun);
  assert.doesNotMatch(stdout, /WARNING/u);
}

/** What curl tells of an upload that waits for leave to send its body. */
async function putWaiting(url: string, version: string): Promise<string> {
  const words = ["-kv", version, "-u", `${WHO}:${site.password}`, "-H", "Expect: 100-continue"];
  const { code, stderr } = await startProgram("curl", [...words, "-T", "-", url], { input: "body" }).ended;
  assert.equal(code, 0, stderr);
  return stderr;
}

/** A certificate for this machine that signs itself. */
function makeCertificate(folder: string, name: string): { readonly cert: string; readonly key: string } {
  const [cert, key] = [join(folder, "public.crt"), join(folder, "public.key")];
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  const subject = ["-subj", `/CN=${name}`, "-addext", "subjectAltName=IP:127.0.0.1"];
  execFileSync("openssl", ["req", "-x509", ...kind, ...subject, "-keyout", key, "-out", cert], {
    stdio: "ignore",
  });
  return { cert, key };
}

test("all 104 tests of litmus pass over HTTP", without("litmus"), async () => {
  await passLitmus(`${site.door}/dav/`);
});

test(
  "litmus passes over HTTPS, 100-continue does in both versions, and a new certificate is taken without a restart",
  without("litmus"),
  async (t) => {
    const folder = scratchFolder("grove-door-");
    const { cert, key } = makeCertificate(folder, "first");
    const port = await freePort();
    const door = startGrove([
      "door",
      "-mock",
      "-listen",
      `127.0.0.1:${port}`,
      "-metaserver",
      site.metaserver,
      "-metrics",
      "off",
      "-public_cert",
      cert,
      "-public_key",
      key,
    ]);
    t.after(() => stopProgram(door, "SIGTERM"));
    await door.says(/files are on (\S+)/u, 60_000);
    // litmus itself never tries that one over TLS ("skipping for SSL server"), so curl does.
    await passLitmus(`https://127.0.0.1:${port}/dav/`, ["expect100"]);
    for (const version of ["--http1.1", "--http2"]) {
      assert.match(await putWaiting(`https://127.0.0.1:${port}/dav/expect`, version), /< HTTP\/[12.]+ 100/u);
    }
    makeCertificate(folder, "second");
    const hello = ["s_client", "-connect", `127.0.0.1:${port}`, "-alpn", "h2,http/1.1"];
    door.child.kill("SIGHUP");
    await until(async () => {
      const { stdout } = await startProgram("openssl", hello, { input: "" }).ended;
      assert.match(stdout, /ALPN protocol: h2/u);
      return stdout.includes("CN = second") || stdout.includes("CN=second");
    });
  },
);

test("cadaver puts, lists, moves, gets and deletes", without("cadaver"), async () => {
  const home = scratchFolder("cadaver-");
  const { hostname } = new URL(site.door);
  writeFileSync(join(home, ".netrc"), `machine ${hostname}\nlogin ${WHO}\npassword ${site.password}\n`, {
    mode: 0o600,
  });
  writeFileSync(join(home, "letter.txt"), "Dear Bob,\n");
  const script = [
    "mkcol c",
    "cd c",
    "put letter.txt",
    "move letter.txt to-bob.txt",
    "ls",
    "get to-bob.txt back.txt",
    "delete to-bob.txt",
    "ls",
    "quit",
  ];
  const { stdout } = await startProgram("cadaver", [`${site.door}/dav/`], {
    cwd: home,
    env: { HOME: home },
    input: `${script.join("\n")}\n`,
  }).ended;
  assert.match(stdout, /to-bob\.txt/u, stdout);
  assert.doesNotMatch(stdout, /failed/u, stdout);
  assert.equal(readFileSync(join(home, "back.txt"), "utf8"), "Dear Bob,\n");
});

test("GNOME's gvfs mounts, lists, copies, reads, moves and deletes", withoutGvfs(), async () => {
  const home = scratchFolder("gvfs-");
  writeFileSync(join(home, "letter.txt"), "Dear Bob,\n");
  const root = `${site.door.replace("http:", "dav:")}/dav/`;
  const script = [
    `printf '%s\\n' "$WHO" "$PASSWORD" | gio mount ${root}`,
    `gio copy letter.txt ${root}gvfs.txt`,
    `gio list ${root}`,
    `gio cat ${root}gvfs.txt`,
    `gio move ${root}gvfs.txt ${root}moved.txt`,
    `gio copy ${root}moved.txt back.txt`,
    `gio remove ${root}moved.txt`,
  ];
  const ended = await startProgram("dbus-run-session", ["--", "sh", "-ec", script.join("\n")], {
    cwd: home,
    env: { HOME: home, XDG_RUNTIME_DIR: home, WHO: WHO, PASSWORD: site.password },
  }).ended;
  assert.match(ended.stdout, /^gvfs\.txt$[^]*^Dear Bob,$/mu, ended.stdout + ended.stderr);
  assert.equal(readFileSync(join(home, "back.txt"), "utf8"), "Dear Bob,\n");
  for (const name of ["gvfs.txt", "moved.txt"]) assert.equal((await site.dav(name)).status, 404);
});

test("rclone syncs files both ways and finds no difference", {
  ...without("rclone"),
  timeout: SYNC_LIMIT_MS,
}, async () => {
  const home = scratchFolder("rclone-");
  const obscured = execFileSync("rclone", ["obscure", "-"], { input: site.password, encoding: "utf8" });
  writeFileSync(
    join(home, "rclone.conf"),
    `[grove]\ntype = webdav\nurl = ${site.door}/dav/\nvendor = owncloud\nuser = ${WHO}\npass = ${obscured}`,
    { mode: 0o600 },
  );
  const rclone = async (...words: readonly string[]): Promise<void> => {
    const flags = ["--config", join(home, "rclone.conf"), "--transfers", "16", "--checkers", "8"];
    const ended = await startProgram("rclone", [...words, ...flags], { cwd: home, env: { HOME: home } })
      .ended;
    assert.equal(ended.code, 0, ended.stderr);
  };
  const source = join(home, "source");
  for (let index = 0; index < SYNC_FILES; index++) {
    const folder = join(source, `d${index % 20}`, index % 7 === 0 ? "über & <co>" : "e");
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `f ${index} #%é`), `${index} `.repeat(index % 100));
  }
  writeFileSync(join(source, "large"), Buffer.alloc(9_000_000, 7));
  await rclone("sync", "source", "grove:synced");
  await rclone("check", "--download", "source", "grove:synced");
  await rclone("sync", "grove:synced", "back");
  await rclone("check", "source", "back");
  cpSync(join(source, "d1"), join(source, "d-new"), { recursive: true });
  await rclone("sync", "source", "grove:synced");
  await rclone("check", "source", "grove:synced");
});
