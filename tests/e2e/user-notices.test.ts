// Notices to users in a whole cluster: a quota, old trash, a sign-in, a group's root, by mail and webhook, and the switch.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { MailServer, WebhookReceiver } from "#console/alerts/receivers.fixture.ts";
import { until } from "#testing/until.ts";
import { type MovingCluster, startMovingCluster } from "./moving-cluster.ts";
import { freePlace, type Program, startGrove, stopProgram } from "./processes.ts";

async function startConsole(t: TestContext, cluster: MovingCluster, notices: unknown): Promise<Program> {
  const file = join(cluster.folder, "notices.json");
  await writeFile(file, JSON.stringify(notices));
  const { address } = await freePlace();
  const store = `sqlite:${join(cluster.meta.data, "metadata.db")}`;
  const words = ["admin", "-data", join(cluster.folder, "admin"), "-listen", address, "-meta", store];
  const program = startGrove([...words, "-allow_nodes", "127.0.0.0/8", "-notices", file]);
  t.after(() => stopProgram(program, "SIGKILL"));
  await program.says(/the console is on/);
  return program;
}

test("users hear of a full quota, old trash and a sign-in by mail and webhook, and who has turned it off does not", {
  timeout: 300_000,
}, async (t: TestContext) => {
  const [mails, hook] = [new MailServer(), new WebhookReceiver()];
  t.after(() => mails.close());
  t.after(() => hook.close());
  const mail = { host: "127.0.0.1", port: await mails.listen(), security: "none", from: "grove@example.net" };
  const settings = {
    receivers: [
      { name: "mail", min_severity: "none", email: { ...mail, to: ["ops@example.net"] } },
      { name: "hook", min_severity: "none", webhook: { url: `http://127.0.0.1:${await hook.listen()}/` } },
    ],
    user_notices: { receivers: ["mail", "hook"], page_url: "https://files.example.net/" },
  };
  const cluster = await startMovingCluster(t, {
    env: { SVC_ADMIN_EMAIL: "alice@example.com" },
    nodeWords: ["-trash_retention", "2d"],
  });
  const [alice, bob] = [await cluster.signIn("alice"), await cluster.signIn("bob")];
  const bobs = async (): Promise<unknown> => JSON.parse(await bob.ok("notices", "show", "--json"));
  assert.deepEqual(await bobs(), { notices: "on" });
  assert.match(await bob.ok("notices", "off"), /^Notices are off/);
  assert.deepEqual(await bobs(), { notices: "off" });
  await alice.ok("group", "create", "atlas", "--quota", "1000");
  await alice.ok("group", "add", "atlas", bob.email, "--role", "write");
  await until(async () => (await bob.grove("ls", "atlas@group:/")).code === 0, "the role");
  for (const person of [alice, bob]) {
    // Either node may have the root.
    const roots = JSON.parse(await person.ok("roots", "--json")) as { owner: string; address: string }[];
    const home = roots.find(({ owner }) => owner === person.email)?.address ?? assert.fail("no root");
    await alice.ok("quota", "set", person.email, "1000", "--fileserver", home);
    await person.withInput("x".repeat(150), "write", "/old");
    await person.ok("rm", "/old");
    await person.withInput("x".repeat(650), "write", "/kept");
  }
  await bob.withInput("x".repeat(1_000), "write", "atlas@group:/plan");

  await startConsole(t, cluster, settings);
  const subjects = (): string[] =>
    mails.mails
      .map(({ to, data }) => `${to.join()}: ${/^Subject: (.*)$/m.exec(data)?.[1]?.trim() ?? ""}`)
      .toSorted();
  const expected = [
    `${alice.email}: [grove] 80 % of your storage is used`,
    `${alice.email}: [grove] A sign-in from a new place`,
    `${alice.email}: [grove] Your trash will lose its oldest items soon`,
  ];
  await until(() => subjects().length >= expected.length, "the mails");
  // Nobody manages the group by a role, bob wants nothing, and alice hears of each once.
  assert.deepEqual(subjects(), expected);
  const [used] = mails.mails.filter(({ data }) => data.includes("80 %"));
  assert.match(used?.data ?? "", /800 B of 1000 B are used \(80 %\), of which 150 B are in the trash/);
  await until(() => hook.calls.length >= expected.length, "the webhook");
  assert.deepEqual(
    hook.calls.map(({ payload }) => payload.alerts[0]?.labels["username"]),
    [alice.email, alice.email, alice.email],
  );

  await bob.ok("notices", "on");
  await bob.withInput("x".repeat(200), "write", "/more");
  await alice.ok("group", "add", "atlas", bob.email, "--role", "manage");
  await until(() => subjects().some((line) => line.startsWith(bob.email)), "a mail to bob");
  assert.deepEqual(
    subjects().filter((line) => line.startsWith(bob.email)),
    [`${bob.email}: [grove] Your storage is full`],
  );
});
