// Tests `grove admin password` against FileServers with the current, the previous and a different password.
import assert from "node:assert/strict";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { systemClock } from "#base/clock.ts";
import { NOT_ADMIN_TEXT } from "#base/refusal-texts.ts";
import { passwordHashes } from "#console/operators/hash-password.ts";
import { openDirectory } from "#metaserver/directory/open-directory.ts";
import { adminPasswordHash } from "#security/identity/admin-password.ts";
import { type Outcome, runGrove } from "#testing/run-grove.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { GrpcServer } from "#wire/grpc/server.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";

const TIMEOUT = { timeout: 120_000 };
const PRESENT = "the password until today";
const NEXT = "the password from now on";

interface Bench {
  readonly file: string;
  /** Wrong passwords that nodes received. */
  readonly wrong: string[];
  password(verb: string, lines: readonly string[], ...words: string[]): Promise<Outcome>;
}

/** A store with a node per password; each answers SetQuota like a FileServer. */
async function bench(t: TestContext, passwords: Readonly<Record<string, string>>): Promise<Bench> {
  const folder = scratchFolder("console-password-");
  const url = `sqlite:${join(folder, "metadata.db")}`;
  const directory = await openDirectory(url, { clock: systemClock });
  t.after(() => directory.close());
  const wrong: string[] = [];
  for (const [id, password] of Object.entries(passwords)) {
    const server = new GrpcServer();
    server.addService(FileServer, {
      setQuota: (_request, context) => {
        const isRight = context.metadata.get("x-admin-password-hash") === adminPasswordHash(password);
        if (!isRight) wrong.push(id);
        return { success: false, error: isRight ? "no such user on this fileserver" : NOT_ADMIN_TEXT };
      },
    });
    const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
    t.after(() => server.close());
    await directory.register({
      fsId: id,
      name: id,
      address: `127.0.0.1:${port}`,
      softwareVersion: "0.1.0",
      clusterId: "",
      instanceId: `i-${id}`,
      dataId: `d-${id}`,
      diskTotalBytes: 1n,
      diskFreeBytes: 1n,
      diskReserveBytes: 0n,
      roots: [],
      speaker: { kind: "mock" },
    });
  }
  const file = join(folder, "admin-password");
  await writeFile(file, `${passwordHashes(PRESENT).argon2}\n`, { mode: 0o600 });
  return {
    file,
    wrong,
    async password(verb, lines, ...words) {
      const flags = ["-password_file", file, "-meta", url, ...words];
      const input = lines.map((line) => `${line}\n`).join("");
      return await runGrove(["admin", "password", verb, ...flags], { input });
    },
  };
}

test(
  "rotate puts the new password into the file, and tells node by node what is left",
  TIMEOUT,
  async (t) => {
    const { file, wrong, password } = await bench(t, { n1: PRESENT, n2: "of another cluster's", n3: NEXT });
    const done = await password("rotate", [PRESENT, NEXT]);
    assert.equal(done.code, 0, done.err);
    assert.match(done.out, /has the new password\. Send the console SIGHUP/);
    assert.match(done.out, /\n {2}n1: has the password before still\n/);
    assert.match(done.out, /\n {2}n2: another password than this console's, or -no_password_path\n/);
    assert.match(done.out, /\n {2}n3: has it\n2 of 3 nodes are left: /);
    assert.ok(!wrong.includes("n1"), "a node that has the password before counts no wrong one");
    const text = await readFile(file, "utf8");
    assert.match(text, /^\$argon2id\$/, "in the form that it had");
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    for (const secret of [PRESENT, NEXT, adminPasswordHash(NEXT), text.trim()]) {
      assert.ok(!(done.out + done.err).includes(secret), "no secret is told");
    }
    const checked = await password("check", [NEXT], "-json");
    assert.equal(checked.code, 0, checked.err);
    assert.deepEqual(JSON.parse(checked.out), {
      rotated: false,
      nodes: [
        { id: "n1", state: "another" },
        { id: "n2", state: "another" },
        { id: "n3", state: "same" },
      ],
    });
  },
);

test(
  "whoever does not know the present password changes nothing, and neither does a short new one",
  TIMEOUT,
  async (t) => {
    const { file, wrong, password } = await bench(t, { n1: PRESENT });
    const before = await readFile(file, "utf8");
    for (const [lines, said] of [
      [["a guess of somebody's", NEXT], /that is not the password of .*; nothing was changed/],
      [[PRESENT, "short"], /at least 15 characters/],
      [[PRESENT, PRESENT], /that is the present password; nothing was changed/],
      [[PRESENT, NEXT, "mistyped it then"], /two different passwords; nothing was changed/],
    ] as const) {
      const refused = await password("rotate", lines);
      assert.equal(refused.code, 1);
      assert.match(refused.err, said);
    }
    assert.equal(await readFile(file, "utf8"), before);
    assert.deepEqual(wrong, []);
    const fine = await password("check", [PRESENT]);
    assert.equal(fine.out, "  n1: has it\nAll nodes have it.\n", fine.err);
  },
);
