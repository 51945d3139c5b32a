// `grove node add|list`, and their removal by `remove`, on the command line against a real sshd.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { commandHere } from "#client/terminal/command-here.fixture.ts";
import { openDirectory } from "#metaserver/directory/open-directory.ts";
import { freePort } from "#testing/free-ports.ts";
import { GROVE_ENTRY } from "#testing/grove-program.ts";
import { type Outcome, runProgram } from "#testing/run-grove.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { command } from "./node-command.ts";

const TIMEOUT = { timeout: 120_000, skip: missing() };

function missing(): string | false {
  try {
    execFileSync("sh", ["-c", "command -v /usr/sbin/sshd ssh-keyscan ssh-keygen script"]);
    return false;
  } catch {
    return "needs openssh-server, openssh-client and script";
  }
}

const grove = (...words: string[]): Promise<Outcome> => commandHere(command, words);

/** An sshd with a key of its own; its place, and the key in ssh-keygen's form. */
async function startSshd(
  t: TestContext,
): Promise<{ readonly place: string; readonly fingerprint: string; readonly key: string }> {
  const folder = scratchFolder("metaserver-");
  const keyFile = join(folder, "host_key");
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "a comment", "-f", keyFile]);
  const port = await freePort();
  const config = join(folder, "sshd_config");
  writeFileSync(
    config,
    `Port ${port}\nListenAddress 127.0.0.1\nHostKey ${keyFile}\nPidFile none\nUsePAM no\n`,
  );
  mkdirSync("/run/sshd", { recursive: true });
  const child = spawn("/usr/sbin/sshd", ["-D", "-e", "-f", config], { stdio: ["ignore", "ignore", "pipe"] });
  t.after(() => child.kill());
  let said = "";
  for await (const piece of child.stderr) {
    said += String(piece);
    if (said.includes("Server listening")) break;
  }
  assert.match(said, /Server listening/);
  const key = (await readFile(`${keyFile}.pub`, "utf8")).trim();
  const fingerprint =
    execFileSync("ssh-keygen", ["-lf", `${keyFile}.pub`], { encoding: "utf8" }).split(" ")[1] ?? "";
  return { place: `grove@127.0.0.1:${port}`, fingerprint, key };
}

/** A store that a MetaServer has open, as during enrolment. */
async function openStore(t: TestContext): Promise<string> {
  const url = `sqlite:${join(scratchFolder("metaserver-"), "meta.db")}`;
  const directory = await openDirectory(url, { clock: systemClock });
  t.after(() => directory.close());
  return url;
}

test(
  "a host's key is pinned only when somebody vouches for it: without a terminal by its fingerprint alone (D20, E-01)",
  TIMEOUT,
  async (t) => {
    const [url, sshd] = [await openStore(t), await startSshd(t)];
    const unconfirmed = await grove("add", "n1", sshd.place, "-meta", url);
    assert.equal(unconfirmed.code, 1);
    assert.ok(unconfirmed.err.includes(sshd.fingerprint), unconfirmed.err);
    assert.match(unconfirmed.err, /-host_key SHA256/);
    const wrong = await grove("add", "n1", sshd.place, "-meta", url, "-host_key", `SHA256:${"x".repeat(43)}`);
    assert.match(wrong.err, /shows another key/);
    assert.ok(wrong.err.includes(sshd.fingerprint));
    assert.deepEqual(JSON.parse((await grove("list", "-meta", url, "-json")).out), []);

    const added = await grove("add", "n1", sshd.place, "-meta", url, "-host_key", sshd.fingerprint);
    assert.equal(added.code, 0, added.err);
    assert.match(added.err, /no FileServer has registered as n1/);
    const listed = await grove("list", "-meta", url);
    assert.match(listed.out, /^n1 +grove@127\.0\.0\.1:\d+ +SHA256:/);
    assert.ok(listed.out.includes(sshd.fingerprint));
  },
);

test(
  "at a terminal the fingerprint is shown, and yes pins it; another key is told beside the pinned one (D20)",
  TIMEOUT,
  async (t) => {
    const [url, sshd, other] = [await openStore(t), await startSshd(t), await startSshd(t)];
    const add = (words: readonly string[], answer: string): Promise<Outcome> =>
      commandHere(command, ["add", "n1", ...words, "-meta", url], { stdin: `${answer}\n`, isAsked: true });
    const refused = await add([sshd.place], "y");
    assert.match(refused.err, /not confirmed/);
    const added = await runProgram(
      "script",
      ["-qec", `${process.execPath} ${GROVE_ENTRY} node add n1 ${sshd.place} -meta ${url}`, "/dev/null"],
      { input: "yes\n" },
    );
    assert.equal(added.code, 0, added.out);
    const again = await add([other.place], "yes");
    assert.match(again.err, /known already.*-replace/s);
    const changed = await add([other.place, "-replace"], "no");
    assert.match(changed.err, /ANOTHER KEY is pinned/);
    assert.ok(changed.err.includes(sshd.fingerprint) && changed.err.includes(other.fingerprint));
    const [kept] = JSON.parse((await grove("list", "-meta", url, "-json")).out) as { fingerprint: string }[];
    assert.equal(kept?.fingerprint, sshd.fingerprint);
  },
);

test(
  "another key of a host that was set up anew leaves its folder and services as they were, unless others are given",
  TIMEOUT,
  async (t) => {
    const url = await openStore(t);
    const [first, second] = [`ssh-ed25519 ${KEY}`, `ssh-ed25519 ${KEY.replace(/.$/, "A")}`];
    const add = async (hostKey: string, ...words: string[]): Promise<unknown> => {
      const login = ["n1", "svc@127.0.0.1", "-meta", url, "-host_key", hostKey, "-json"];
      const { code, out, err } = await grove("add", ...login, ...words);
      assert.equal(code, 0, err);
      const { repository, services } = JSON.parse(out) as { repository: string; services: object };
      return [repository, Object.keys(services)];
    };
    const given = ["-repository", "/opt/grove", "-service", "fileserver", "-service", "metaserver"];
    assert.deepEqual(await add(first, ...given), ["/opt/grove", ["fileserver", "metaserver"]]);
    assert.deepEqual(await add(second, "-replace"), ["/opt/grove", ["fileserver", "metaserver"]]);
    assert.deepEqual(await add(second, "-replace", "-service", "fileserver"), ["/opt/grove", ["fileserver"]]);
  },
);

test(
  "the id that stands for all nodes is refused where nodes are brought in, and says so (spec 4.1)",
  TIMEOUT,
  async () => {
    const folder = scratchFolder("metaserver-");
    for (const words of [
      ["add", "cluster", "grove@127.0.0.1", "-meta", `sqlite:${join(folder, "m.db")}`],
      ["token", "-ca_dir", folder, "-id", "cluster", "-metaserver", "127.0.0.1:50050"],
      ["join", "-id", "cluster", "-token", "x", "-data", folder],
    ]) {
      const { code, err } = await grove(...words);
      assert.notEqual(code, 0);
      assert.match(err, /no node can have the id "cluster"/, words.join(" "));
    }
  },
);

test(
  "what a service is started with comes from a file, and comes back; a removed node is gone (2.9)",
  TIMEOUT,
  async (t) => {
    const [url, folder] = [await openStore(t), scratchFolder("metaserver-")];
    const [key, services] = [`ssh-ed25519 ${KEY}`, join(folder, "services.json")];
    const document = {
      fileserver: {
        log_file: "logs/fileserver.log",
        argv: ["./grove", "fileserver", "-data", "/srv/the data"],
        cwd: "grove",
        env: { LANG: "C.UTF-8" },
        pid_file: "run/fileserver.pid",
      },
    };
    const add = (content: unknown, ...words: string[]): Promise<Outcome> => {
      writeFileSync(services, JSON.stringify(content));
      return grove(
        "add",
        "n1",
        "grove@[2001:db8::1]:2222",
        "-meta",
        url,
        "-host_key",
        `${key} root@n1`,
        "-services",
        services,
        ...words,
      );
    };
    const secret = await add({ fileserver: { ...document.fileserver, env: { ADMIN_PASSWORD: "hunter2" } } });
    assert.match(secret.err, /ADMIN_PASSWORD is a secret/);
    assert.ok(!secret.err.includes("hunter2"));
    assert.match((await add({ fileserver: { argv: ["x"] } })).err, /argv and pidFile go together/);
    assert.match((await add({ fileserver: { shell: "x" } })).err, /services\.json: fileserver/);
    assert.equal((await add(document, "-repository", "/opt/grove", "-service", "admin")).code, 0);
    const [node] = JSON.parse((await grove("list", "-meta", url, "-json")).out) as Record<string, unknown>[];
    const { fingerprint: _, ...rest } = node ?? {};
    assert.deepEqual(rest, {
      id: "n1",
      host: "2001:db8::1",
      port: 2222,
      user: "grove",
      host_key: key,
      repository: "/opt/grove",
      services: { admin: {}, ...document },
    });
    assert.equal((await grove("remove", "n1", "-meta", url)).code, 0);
    assert.match((await grove("remove", "n1", "-meta", url)).err, /not known/);
    assert.match((await grove("add", "n1", "-oProxyCommand=x@h", "-meta", url)).err, /unknown option|user/);
  },
);

const KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIJzQ0fUkmCMLkqvhMVrHzQ1aXKLF0rXMqmUJ0yJIlhYr";
