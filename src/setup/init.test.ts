// `grove init` on the command line: what it refuses, what a second run changes, and what it never overwrites.
import assert from "node:assert/strict";
import { once } from "node:events";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { rootCertificates } from "node:tls";
import { ManualClock } from "#base/clock.ts";
import { commandHere } from "#client/terminal/command-here.fixture.ts";
import { createAuthority } from "#security/authority/authority.ts";
import { ensureDoorCertificate } from "#security/authority/node-certificate-files.ts";
import { signAgain } from "#security/authority/sign-again.ts";
import { startPrivateIssuer } from "#testing/private-issuer.ts";
import { type Outcome, runGrove } from "#testing/run-grove.ts";
import { diskFolder, scratchFolder } from "#testing/scratch-folder.ts";
import { command } from "./command.ts";

/** An address of its own, so that no other process of this machine has its ports. */
const LISTEN = `127.${100 + (process.pid % 100)}.${(process.pid >> 7) % 250}.77`;

const TRIAL = [
  "roles = metaserver fileserver console",
  `listen = ${LISTEN}`,
  "name = localhost",
  "id = n1",
  "provider = mock",
  "reserve = 1MiB",
];

/** Runs `grove init` below a folder with answers in a file there, inside this process. */
function init(folder: string, answers: readonly string[], ...flags: string[]): Promise<Outcome> {
  return commandHere(command, [...answered(folder, answers), ...flags]);
}

/** The flags for answers in a file of the folder. */
function answered(folder: string, answers: readonly string[]): string[] {
  const path = join(folder, "answers");
  writeFileSync(path, answers.join("\n"));
  return ["-answers", path, "-below", folder];
}

test("a second run changes nothing; other answers change their file alone, and the one before is kept", async () => {
  const folder = scratchFolder("grove-init-", diskFolder());
  const first = await init(folder, TRIAL);
  assert.equal(first.code, 0, first.err);
  const authority = readFileSync(join(folder, "data/ca/ca.key"), "utf8");
  const node = readFileSync(join(folder, "data/fileserver/tls/node.crt"), "utf8");
  for (const path of ["etc/fileserver.env", "etc/init.json", "data/admin/first-password", "data/ca/ca.key"]) {
    assert.equal(statSync(join(folder, path)).mode & 0o777, 0o600, path);
  }

  const again = await init(folder, []);
  assert.equal(again.code, 0, again.err);
  assert.match(again.out, /This machine is set up: roles metaserver fileserver console; id n1;/);
  assert.match(again.out, /All is there as the answers say; nothing was changed\./);

  const settings = join(folder, "etc/fileserver.env");
  const before = readFileSync(settings, "utf8");
  const changed = await init(folder, ["reserve = 2MiB"]);
  assert.equal(changed.code, 0, changed.err);
  assert.match(changed.out, /change: reserve: 1MiB -> 2MiB/);
  assert.deepEqual(
    [...changed.out.matchAll(/^(?:wrote|changed): +(.*)$/gm)].map((match) => match[1]),
    [settings],
  );
  assert.match(readFileSync(settings, "utf8"), /SVC_FLAGS=.*-reserve 2MiB/);
  assert.equal(readFileSync(`${settings}.before-init`, "utf8"), before);
  assert.match(changed.out, new RegExp(`mv ${settings}.before-init ${settings}`));
  assert.equal(readFileSync(join(folder, "data/ca/ca.key"), "utf8"), authority);
  assert.equal(readFileSync(join(folder, "data/fileserver/tls/node.crt"), "utf8"), node);
});

test("a damaged record of the run before is named, and nothing is set up anew beside it", async () => {
  const folder = scratchFolder("grove-init-", diskFolder());
  assert.equal((await init(folder, TRIAL)).code, 0);
  writeFileSync(join(folder, "etc/init.json"), "{");
  const why = /etc\/init\.json is damaged, .*put it back from a copy/;
  assert.match((await init(folder, TRIAL)).err, why);
  const words = ["invite", "n2", "n2.example.net", "-below", folder, "-out", join(folder, "n2.answers")];
  assert.match((await commandHere(command, words)).err, why);
});

test("the file with the provider's authority may go once a run has copied it", async () => {
  const folder = scratchFolder("grove-init-", diskFolder());
  const brought = join(folder, "issuer.pem");
  const [authority = ""] = rootCertificates;
  writeFileSync(brought, `${authority}\n`);
  assert.equal((await init(folder, [...TRIAL, `provider_ca = ${brought}`])).code, 0);
  rmSync(brought);
  const again = await init(folder, ["reserve = 2MiB"]);
  assert.equal(again.code, 0, again.err);
  assert.equal(readFileSync(join(folder, "data/provider-ca.crt"), "utf8"), `${authority}\n`);
  const flags = ["-below", folder, "-out", join(folder, "n2.answers")];
  const invited = await commandHere(command, ["invite", "n2", "n2.example.net", ...flags]);
  assert.equal(invited.code, 0, invited.err);
  const line =
    /^provider_ca = base64:(.*)$/m.exec(readFileSync(join(folder, "n2.answers"), "utf8"))?.[1] ?? "";
  assert.equal(Buffer.from(line, "base64").toString(), `${authority}\n`);
  const wrong = await init(folder, [`provider_ca = ${brought}.other`]);
  assert.match(wrong.err, /answers:1: provider_ca: cannot read \S+issuer\.pem\.other \(ENOENT\)/);
});

test("the console's password is what its file says: another answer is told as not taken, and invitations have the present one", async () => {
  const folder = scratchFolder("grove-init-", diskFolder());
  assert.equal((await init(folder, TRIAL)).code, 0);
  const password = join(folder, "data/admin/password");
  const first = readFileSync(password, "utf8").trim();
  const ignored = await init(folder, [`password_hash = ${"a".repeat(64)}`]);
  assert.equal(ignored.code, 0, ignored.err);
  assert.match(ignored.out, /password_hash: this is not taken, .*'grove admin password rotate' changes that/);
  assert.doesNotMatch(ignored.out, /change: /);
  assert.equal(readFileSync(password, "utf8").trim(), first);
  // As 'grove admin password rotate' leaves it.
  const rotated = "b".repeat(64);
  writeFileSync(password, `${rotated}\n`, { mode: 0o600 });
  const flags = ["-below", folder, "-out", join(folder, "n2.answers")];
  const invited = await commandHere(command, ["invite", "n2", "n2.example.net", ...flags]);
  assert.equal(invited.code, 0, invited.err);
  assert.match(readFileSync(join(folder, "n2.answers"), "utf8"), /^password_hash = b{64}$/m);
  const along = await init(folder, []);
  assert.match(along.out, /change: password_hash/);
  assert.match(readFileSync(join(folder, "etc/fileserver.env"), "utf8"), /^ADMIN_PASSWORD_HASH=b{64}$/m);
});

test("a folder of another node is not taken over, though its service was left out meanwhile", async () => {
  const folder = scratchFolder("grove-init-", diskFolder());
  assert.equal((await init(folder, TRIAL)).code, 0);
  const node = join(folder, "data/fileserver/node.json");
  const before = readFileSync(node, "utf8");
  assert.equal((await init(folder, ["roles = metaserver console"])).code, 0);
  const other = await init(folder, [TRIAL[0] ?? "", "id = n7", "reserve = 2MiB"]);
  assert.equal(other.code, 1);
  assert.match(other.err, /answers: data: .*fileserver is that of the node n1, .* say id = n1$/m);
  assert.equal(readFileSync(node, "utf8"), before);
  // What an earlier run has written for the service is not taken for a change by hand.
  const back = await init(folder, [TRIAL[0] ?? "", "id = n1", "reserve = 2MiB"]);
  assert.equal(back.code, 0, back.err);
});

test("a cluster.json that somebody else has put there is not replaced unasked, also before there is an authority", async () => {
  const folder = scratchFolder("grove-init-", diskFolder());
  mkdirSync(join(folder, "data"));
  const path = join(folder, "data/cluster.json");
  writeFileSync(path, '{"metaserver":"meta.example.net:50050"}\n');
  const refused = await init(folder, TRIAL);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /cluster\.json is there \(changed by hand, .* nothing was written/);
  assert.equal(existsSync(join(folder, "data/ca")), false);
});

test("a file that was changed by hand is replaced after -replace or a yes alone, and nothing is written before", async () => {
  const folder = scratchFolder("grove-init-", diskFolder());
  assert.equal((await init(folder, TRIAL)).code, 0);
  const settings = join(folder, "etc/metaserver.env");
  writeFileSync(settings, "SVC_FLAGS=-log_level debug\n");
  const refused = await init(folder, ["operator = ops@example.net"]);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /metaserver\.env is there \(changed by hand/);
  assert.doesNotMatch(readFileSync(join(folder, "etc/fileserver.env"), "utf8"), /ops@example\.net/);
  const replaced = await init(folder, ["operator = ops@example.net"], "-replace");
  assert.equal(replaced.code, 0, replaced.err);
  assert.match(readFileSync(settings, "utf8"), /SVC_ADMIN_EMAIL=ops@example\.net/);
  assert.equal(readFileSync(`${settings}.before-init`, "utf8"), "SVC_FLAGS=-log_level debug\n");
});

test("a copy that an earlier run has kept is never written over: the next one has a number", async () => {
  const folder = scratchFolder("grove-init-", diskFolder());
  assert.equal((await init(folder, TRIAL)).code, 0);
  const settings = join(folder, "etc/metaserver.env");
  const written = ["SVC_FLAGS=-log_level debug\n", "SVC_FLAGS=-log_level error\n"];
  writeFileSync(settings, written[0] ?? "");
  assert.equal((await init(folder, ["operator = ops@example.net"], "-replace")).code, 0);
  writeFileSync(settings, written[1] ?? "");
  const refused = await init(folder, ["operator = other@example.net"]);
  assert.match(refused.err, /the present one is kept as \S+metaserver\.env\.before-init-2$/m);
  const second = await init(folder, ["operator = other@example.net"], "-replace");
  assert.match(second.out, new RegExp(`mv ${settings}.before-init-2 ${settings}$`, "m"));
  assert.equal((await init(folder, ["operator = ops@example.net"])).code, 0);
  const kept = ["", "-2", "-3"].map((end) => readFileSync(`${settings}.before-init${end}`, "utf8"));
  assert.deepEqual(kept.slice(0, 2), written);
  assert.match(kept[2] ?? "", /SVC_ADMIN_EMAIL=other@example\.net/);
});

test("how a run is undone names what it has made, and never an authority or a store that was there before", async () => {
  const folder = scratchFolder("grove-init-", diskFolder());
  const data = join(folder, "data");
  // As the package leaves it.
  mkdirSync(join(data, "ca"), { recursive: true, mode: 0o700 });
  const first = await init(folder, TRIAL);
  const removed = ({ out }: Outcome): string | undefined => /^ {2}rm -r (.*)$/m.exec(out)?.[1];
  const [ca, store, console_] = ["ca", "metaserver", "admin"].map((name) => join(data, name));
  const node = [join(data, "fileserver/node.json"), join(data, "fileserver/tls")];
  assert.deepEqual(removed(first)?.split(" "), [store, ca, ...node, console_]);
  // A cluster that was set up by hand, or whose record was lost.
  writeFileSync(join(data, "metaserver/metadata.db"), "");
  rmSync(join(folder, "etc"), { recursive: true });
  rmSync(join(data, "fileserver/node.json"));
  const second = await init(folder, TRIAL, "-replace");
  assert.equal(second.code, 0, second.err);
  assert.match(second.out, /To undo this run:/);
  assert.equal(removed(second), node[0]);
});

test("data that is to lie elsewhere is moved first: no second authority is made beside the one that is there", async () => {
  const folder = scratchFolder("grove-init-", diskFolder());
  assert.equal((await init(folder, TRIAL)).code, 0);
  const elsewhere = join(folder, "elsewhere");
  const refused = await init(folder, [`data = ${elsewhere}`]);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /answers:1: data: the data lies in .*data, and .*ca\.key is not there/);
  assert.equal(existsSync(elsewhere), false);
  renameSync(join(folder, "data"), elsewhere);
  const moved = await init(folder, [`data = ${elsewhere}`]);
  assert.equal(moved.code, 0, moved.err);
  assert.match(readFileSync(join(folder, "etc/admin.env"), "utf8"), /elsewhere\/ca\/ca\.crt/);
});

test("a door's certificate that was renewed since is not replaced by the one that was brought, which may be gone", async (t) => {
  const folder = scratchFolder("grove-init-", diskFolder());
  const brought = join(folder, "brought");
  const clock = new ManualClock(Date.now());
  const authority = await createAuthority(join(folder, "authority"), { clock });
  await ensureDoorCertificate(authority, brought, "door", clock);
  copyFileSync(authority.certificatePath, join(brought, "ca.crt"));
  const metaserver = createServer().listen(0, "127.0.0.1");
  await once(metaserver, "listening");
  t.after(() => metaserver.close());
  const { port } = metaserver.address() as AddressInfo;
  const door = [
    "roles = door",
    `listen = ${LISTEN}`,
    "name = localhost",
    `metaserver = 127.0.0.1:${port}`,
    "door_url = http://localhost",
    `certificates = ${brought}`,
  ];
  const first = await init(folder, door);
  assert.equal(first.code, 0, first.err);
  const path = join(folder, "data/door/door.crt");
  assert.equal(readFileSync(path, "utf8"), readFileSync(join(brought, "door.crt"), "utf8"));
  clock.jumpWall(3_600_000);
  const renewed = await signAgain(authority, readFileSync(path));
  writeFileSync(path, renewed);
  assert.equal((await init(folder, ["door_proxy = 127.0.0.2"])).code, 0);
  assert.equal(readFileSync(path, "utf8"), renewed);
  rmSync(brought, { recursive: true });
  const last = await init(folder, ["door_proxy = 127.0.0.1"]);
  assert.equal(last.code, 0, last.err);
  assert.equal(readFileSync(path, "utf8"), renewed);
  // Files of another key are meant to replace it.
  await ensureDoorCertificate(authority, brought, "door", clock);
  copyFileSync(authority.certificatePath, join(brought, "ca.crt"));
  assert.equal((await init(folder, [])).code, 0);
  assert.equal(readFileSync(path, "utf8"), readFileSync(join(brought, "door.crt"), "utf8"));
});

test("errors in a file of answers name its line, and never what stands there", async () => {
  const cases: [string, readonly string[], RegExp][] = [
    ["no line", ["roles = fileserver", "gjt_secret"], /answers:2: a line is name = value$/m],
    ["no name", ["role = fileserver"], /answers:1: there is no answer of that name; they are roles, /],
    ["twice", ["id = n1", "# more", "id = n2"], /answers:3: id is given at .*answers:1 already/],
    ["no service", ["roles = filserver"], /answers:1: roles: "filserver" is no service/],
    [
      "console alone",
      ["roles = console fileserver"],
      /answers:1: roles: the console reads the MetaServer's store/,
    ],
    [
      "no address",
      ["roles = fileserver", "listen = 192.0.2.1"],
      /answers:2: listen: 192\.0\.2\.1 is no address of this/,
    ],
    [
      "no name in DNS",
      [...TRIAL.slice(0, 2), "name = nowhere.invalid"],
      /answers:3: name: nowhere\.invalid does not resolve/,
    ],
    [
      "mock apart",
      [...TRIAL.slice(0, 2), "name = 192.0.2.1", "id = n1", "provider = mock"],
      /answers:5: provider: with mock/,
    ],
    [
      "plain provider",
      [...TRIAL.slice(0, 4), "provider = http://192.0.2.1"],
      /answers:5: provider: a provider without https/,
    ],
    ["missing", TRIAL.slice(0, 4), /answers: provider is missing\. The identity provider's issuer\?/],
    ["bad id", [...TRIAL.slice(0, 3), "id = N 1"], /answers:4: id: a node id has/],
    [
      "no room",
      [...TRIAL.slice(0, 5), "reserve = 900TiB"],
      /answers: data: .* free, and Grove leaves 900 TiB/,
    ],
    ["tmpfs", [...TRIAL, "data = /dev/shm/grove"], /answers:7: data: .*lie on tmpfs, whose files are lost/],
    [
      "database",
      [...TRIAL, "store = postgres://grove@127.0.0.1:1/grove"],
      /answers:7: store: the database does not answer: .*127\.0\.0\.1:1/,
    ],
    [
      "password",
      [...TRIAL, "store = postgres://grove:secret@127.0.0.1/grove"],
      /answers:7: store: a password in -meta/,
    ],
    [
      "no token",
      ["roles = fileserver", `listen = ${LISTEN}`, "name = localhost", "id = n2", "metaserver = 127.0.0.1:1"],
      /answers:5: metaserver: 127\.0\.0\.1:1 cannot be reached/,
    ],
  ];
  for (const [what, answers, expected] of cases) {
    const folder = scratchFolder("grove-init-", diskFolder());
    const { code, out, err } = await init(folder, answers);
    assert.equal(code, 1, what + out);
    assert.match(err, expected, what);
    assert.doesNotMatch(err, /secret/, what);
    assert.ok(!existsSync(join(folder, "etc")) && !existsSync(join(folder, "data")), what);
  }
});

test("a port that another process has is named, with the service that needs it", async () => {
  const server = createServer().listen(50_051, LISTEN);
  await once(server, "listening");
  try {
    const flags = answered(scratchFolder("grove-init-", diskFolder()), TRIAL);
    const { code, err } = await runGrove(["init", ...flags]);
    assert.equal(code, 1);
    assert.match(
      err,
      /answers:2: listen: port 50051, which the fileserver needs, is taken by another process/,
    );
  } finally {
    server.close();
  }
});

test("a provider has to be trusted, to be the issuer that was named, and to publish keys", async (t) => {
  const issuer = await startPrivateIssuer();
  t.after(() => issuer.stop());
  const start = TRIAL.slice(0, 4);
  const tell = async (...answers: string[]): Promise<string> =>
    (await init(scratchFolder("grove-init-", diskFolder()), [...start, ...answers])).err;
  const trusted = `provider_ca = ${issuer.caFile}`;
  assert.match(
    await tell(`provider = ${issuer.issuer}`),
    /answers:5: provider: .*authority that is not known here/,
  );
  assert.match(await tell(trusted, `provider = ${issuer.issuer}/other`), /answers:6: provider: .*discovery/);
  assert.match(
    await tell(trusted, `provider = ${issuer.issuer}`),
    /answers:6: provider: the identity provider publishes no keys/,
  );
  assert.match(
    await tell("provider_ca = /dev/null"),
    /answers:5: provider_ca: provider_ca holds no certificate/,
  );
});

test("a person is asked again after a wrong answer, and Enter takes what is proposed", async () => {
  const folder = scratchFolder("grove-init-", diskFolder());
  // A listening address is no question, so an earlier run has given it.
  assert.equal((await init(folder, TRIAL)).code, 0);
  // The services; a wrong name and a good one; Enter for the rest, and for the last question.
  const lines = ["", "no name!", "localhost", "", "", "", "", "", "", "", ""];
  const asked = await commandHere(command, ["-below", folder], { stdin: `${lines.join("\n")}\n` });
  assert.equal(asked.code, 0, asked.err);
  assert.match(asked.out, /no: that is no name of a machine/);
  assert.match(asked.err, /Which services does this machine have\?.* \[metaserver fileserver console\]/);
  assert.match(asked.out, /nothing was changed/);
  const ended = await commandHere(command, ["-below", folder], { stdin: "\n" });
  assert.equal(ended.code, 1);
  assert.match(ended.err, /the input ended before the last answer, and nothing was written/);
});

test("an invitation has a token in a file of mode 0600, from the MetaServer's machine alone", async () => {
  const folder = scratchFolder("grove-init-", diskFolder());
  const invite = (out: string): Promise<Outcome> =>
    commandHere(command, ["invite", "n2", "n2.example.net", "-below", folder, "-out", join(folder, out)]);
  assert.match((await invite("early")).err, /not the MetaServer's machine, or 'grove init' has not run here/);
  assert.equal((await init(folder, TRIAL)).code, 0);
  const made = await invite("n2.answers");
  assert.equal(made.code, 0, made.err);
  const text = readFileSync(join(folder, "n2.answers"), "utf8");
  assert.match(text, /^token = gjt_/m);
  assert.doesNotMatch(made.out + made.err, /gjt_/);
  assert.equal(statSync(join(folder, "n2.answers")).mode & 0o777, 0o600);
  assert.match((await invite("n2.answers")).err, /is there already and is not replaced/);
});
