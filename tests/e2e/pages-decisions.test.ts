// Tests of the pages on what a click decides: nothing that was not said, and what is over is shown as over.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Page } from "playwright-core";
import { untilSeconds } from "#base/until-text.ts";
import { PAGE_CHROMIUM } from "#testing/chromium.ts";
import { type FakeCluster, fakeAlert, fakeNode, fakeUser } from "#testing/fake-cluster.ts";
import { openNewPage } from "./browser.ts";
import { FAKE_URL, type FakeConsole, fakeConsole } from "./fake-console.ts";
import { answerMoves } from "./move-answers.ts";

const skip = PAGE_CHROMIUM === undefined && "Chromium is not installed";
const GIB = 2 ** 30;

async function open(
  t: TestContext,
  cluster: Partial<FakeCluster> = {},
): Promise<{ page: Page; fake: FakeConsole }> {
  const page = await openNewPage(t);
  const nodes = [fakeNode(1), fakeNode(2)];
  const fake = await fakeConsole(page, { isOperator: true, nodes, users: [], alerts: [], ...cluster });
  return { page, fake };
}

/** Notes what is sent to a path. */
function notedAt(fake: FakeConsole, path: string, reply: object = {}): unknown[] {
  const sent: unknown[] = [];
  fake.replies.set(path, (body) => {
    sent.push(body);
    return reply;
  });
  return sent;
}

test("the copy of a root that has moved goes after a second click elsewhere, whose button says so", {
  skip,
}, async (t) => {
  const { page, fake } = await open(t);
  answerMoves(fake, Math.floor(Date.now() / 1_000));
  const path = "POST /api/moves/dora%40people.example/confirm";
  const confirmed = notedAt(fake, path);
  await page.goto(`${FAKE_URL}/moves`);
  const row = page.getByRole("row", { name: /dora@people\.example/ });
  const confirm = row.getByRole("button", { name: /^Confirm/ });
  await confirm.dblclick();
  if ((await confirm.count()) > 0) await confirm.click();
  const remove = row.getByRole("button", { name: "Let fs-x86-2 remove its copy of dora@people.example" });
  await remove.waitFor();
  assert.deepEqual(confirmed, []);
  await remove.click();
  await confirm.waitFor();
  assert.equal(confirmed.length, 1);
});

test("what was typed to let two nodes reboot lets no other two, and no other action, run", {
  skip,
}, async (t) => {
  const { page } = await open(t, { nodes: [fakeNode(1), fakeNode(2), fakeNode(3)] });
  const run = page.getByRole("button", { name: "Run on 2 nodes" });
  const word = page.getByLabel("Type “2 nodes” to go on");
  const choose = async (list: string, choice: string): Promise<void> => {
    await page
      .getByRole("combobox", { name: list })
      .or(page.getByLabel(list, { exact: true }))
      .first()
      .click();
    await page.getByRole("option", { name: choice }).click();
  };
  await page.goto(`${FAKE_URL}/actions?do=reboot&node=n1&node=n2`);
  await word.fill("2 nodes");
  assert.equal(await run.isEnabled(), true);
  await choose("Where", "fs-2");
  await choose("Where", "fs-3");
  await run.waitFor();
  assert.deepEqual([await word.inputValue(), await run.isEnabled()], ["", false]);
  await word.fill("2 nodes");
  await choose("What", "Run a command");
  assert.deepEqual([await word.inputValue(), await run.isEnabled()], ["", false]);
});

test("an alert that was resolved under the pointer keeps its place, says so, and is not resolved again", {
  skip,
}, async (t) => {
  const { page, fake } = await open(t);
  const { alerts } = fake.cluster;
  alerts.push(fakeAlert(1), fakeAlert(2), fakeAlert(3));
  const resolved: unknown[] = [];
  fake.replies.set("POST /api/alerts/resolve", (body) => {
    resolved.push(body);
    const { id } = body as { id?: string };
    const at = alerts.findIndex((alert) => alert["id"] === id);
    if (at >= 0) alerts[at] = { ...alerts[at], resolved: true, resolved_at: Math.floor(Date.now() / 1_000) };
    return { resolved: [id], already_resolved: [] };
  });
  await page.goto(`${FAKE_URL}/alerts`);
  await page.getByRole("button", { name: "Resolve Alert 2" }).click();
  const card = page.locator("li.card", { hasText: "What alert 2 says." });
  await card.getByText("No longer open").waitFor();
  assert.equal(await page.getByRole("button", { name: "Resolve Alert 2" }).count(), 0);
  assert.equal(await page.locator("li.card").count(), 3);
  await page.getByRole("button", { name: "Resolve the 2 shown" }).click();
  while (resolved.length < 2) await page.waitForTimeout(20);
  assert.deepEqual(resolved, [{ id: "a2" }, { ids: ["a1", "a3"] }]);
});

test("past alerts are listed however many are open", { skip }, async (t) => {
  const alerts = Array.from({ length: 250 }, (_, at) => fakeAlert(at));
  const past = { resolved: true, resolved_at: Math.floor(Date.now() / 1_000), resolved_by: "auto" };
  const { page } = await open(t, { alerts: [...alerts, fakeAlert(900, past)] });
  await page.goto(`${FAKE_URL}/alerts`);
  await page.getByRole("heading", { name: "250 open alerts" }).waitFor();
  await page.getByRole("row", { name: /Alert 900|What alert 900 says/ }).waitFor();
  assert.equal(await page.getByText("No alert has ended yet.").count(), 0);
});

test("a quota that no text of its size tells exactly is changed by what is typed alone", {
  skip,
}, async (t) => {
  const quota = 10 * 2 ** 30 + 12_345_678;
  const user = fakeUser(1, { quota_limit: quota, quota_source: "explicit" });
  const { page } = await open(t, { users: [user] });
  const username = String(user["username"]);
  await page.goto(`${FAKE_URL}/users?user=${encodeURIComponent(username)}`);
  const set = page.getByRole("button", { name: "Set quota" });
  await set.waitFor();
  assert.equal(await set.isDisabled(), true);
  await page.getByRole("textbox", { name: "New quota" }).fill("11 GiB");
  await page.getByText(/→ 11 GiB\./).waitFor();
  assert.equal(await set.isDisabled(), false);
});

test("a limit of files takes no quota back that another operator has set meanwhile", { skip }, async (t) => {
  const user = fakeUser(1, { quota_limit: 16 * GIB, quota_source: "explicit", inode_limit: 1_000_000 });
  const { page, fake } = await open(t, { users: [user] });
  const username = encodeURIComponent(String(user["username"]));
  const sent = notedAt(fake, `PUT /api/users/${username}/quota`, { ...user, inode_limit: 2_000_000 });
  await page.goto(`${FAKE_URL}/users?user=${username}`);
  await page.getByLabel("Files and folders at most").fill("2000000");
  fake.cluster.users[0] = { ...user, quota_limit: 40 * GIB };
  await page.getByLabel("Files and folders at most").press("Enter");
  while (sent.length === 0) await page.waitForTimeout(20);
  assert.deepEqual(sent, [{ quota_bytes: 40 * GIB, inode_limit: 2_000_000 }]);
});

test("a user's panel finds the user among thousands whose names end alike", { skip }, async (t) => {
  const named = (username: string, index: number) => fakeUser(index, { username });
  const others = Array.from({ length: 300 }, (_, at) => named(`a${String(at).padStart(3, "0")}.z@x.de`, at));
  const { page } = await open(t, { users: [...others, named("z@x.de", 400)] });
  await page.goto(`${FAKE_URL}/users?user=z%40x.de`);
  await page.getByRole("complementary", { name: "z@x.de" }).getByText("New quota").waitFor();
});

test("after a lost connection a followed log is followed anew, whether or not its own socket says it is lost", {
  skip,
}, async (t) => {
  const { page, fake } = await open(t);
  const about = { node_id: "n1", service: "fileserver", unit: "svc-fileserver", source: "file" };
  fake.replies.set("GET /api/logs/tail", { ...about, lines: [], text: "", truncated: false });
  await page.goto(`${FAKE_URL}/logs?node=n1&follow=1`);
  const followed = async (times: number): Promise<void> => {
    while (fake.subscribed.length < times) await page.waitForTimeout(20);
  };
  await followed(1);
  // As after a sleep: the page notices by the snapshots that do not come, and no socket is closed.
  fake.hangUp(1012);
  await followed(2);
  fake.tell("log.lines", 1, {
    ...about,
    lines: [{ ts: null, priority: null, message: "later" }],
    dropped: 0,
  });
  await page.getByText("later").waitFor();
});

test("a node's page does not say that no root moves where it was not told of all", { skip }, async (t) => {
  const { page, fake } = await open(t);
  answerMoves(fake, Math.floor(Date.now() / 1_000));
  const { moves } = fake.replies.get("GET /api/moves") as { moves: object[] };
  fake.replies.set("GET /api/moves", { moves, moves_total: 600, drains: [], rebalance: null });
  fake.cluster.nodes.push(fakeNode(77));
  const id = String(fake.cluster.nodes.at(-1)?.["id"]);
  await page.goto(`${FAKE_URL}/nodes/${id}/service`);
  await page
    .getByText("There are 600 moves in the cluster. Looked through for this node: 5 of them")
    .waitFor();
  assert.equal(await page.getByText("No root moves to this node").count(), 0);
});

test("who changes the reason of a maintenance keeps its end", { skip }, async (t) => {
  const endsAt = Math.floor(Date.now() / 60_000) * 60 + 8 * 86_400;
  const maintenance = {
    node_id: "n1",
    starts_at: endsAt - 9 * 86_400,
    ends_at: endsAt,
    created_by: "ab12",
    comment: "a new disk",
    placement_paused: true,
  };
  const node = fakeNode(1, { maintenance, maintenance_until: endsAt });
  const { page, fake } = await open(t, { nodes: [node] });
  const id = String(node["id"]);
  const asked = notedAt(fake, `PUT /api/maintenance/${id}`, maintenance);
  await page.goto(`${FAKE_URL}/nodes/${id}`);
  await page.getByRole("button", { name: "Change maintenance …" }).click();
  await page.getByLabel("Because").fill("two new disks");
  await page.getByRole("button", { name: "Change maintenance", exact: true }).click();
  while (asked.length === 0) await page.waitForTimeout(20);
  const { duration, time_zone: timeZone, comment } = asked[0] as Record<string, string>;
  assert.equal(comment, "two new disks");
  assert.equal(untilSeconds(duration ?? "", { nowMs: Date.now(), timeZone: timeZone ?? "" }), endsAt);
});
