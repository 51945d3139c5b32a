// Tests of live pages: output resumed after a cut, new rows held under the pointer, markup as text.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Page } from "playwright-core";
import { PAGE_CHROMIUM } from "#testing/chromium.ts";
import { fakeAlert, fakeNode } from "#testing/fake-cluster.ts";
import { openNewPage } from "./browser.ts";
import { FAKE_URL, type FakeConsole, fakeConsole } from "./fake-console.ts";

const skip = PAGE_CHROMIUM === undefined && "Chromium is not installed";
const EVIL = `<img src=x onerror="document.body.dataset.hit='1'"><b>bold</b>`;

async function open(t: TestContext): Promise<{ page: Page; fake: FakeConsole; errors: string[] }> {
  const page = await openNewPage(t);
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  const nodes = [fakeNode(1), fakeNode(2)];
  const fake = await fakeConsole(page, { isOperator: true, nodes, users: [], alerts: [] });
  return { page, fake, errors };
}

const target = (id: string): object => ({
  node_id: id,
  node_name: `fs-${id}`,
  argv: ["echo", "a b"],
  exit_code: null,
  state: "running",
  stdout: "",
  stderr: "",
  truncated: false,
});
const record = (fields: object = {}): object => ({
  id: "x1",
  action: "custom",
  request: { action: "custom", dry_run: false },
  operator: { session: "s", ip: "127.0.0.1" },
  state: "running",
  created_at: 1_790_000_000,
  exit_code: null,
  stdout: "",
  stderr: "",
  targets: [target("n1"), target("n2")],
  ...fields,
});

/** A running action with stored output of a given length; further output comes over the socket. */
function action(fake: FakeConsole): {
  kept: { seq: number; after_seq: number; data: string }[];
  isOver: boolean;
} {
  const self = { kept: [] as { seq: number; after_seq: number; data: string }[], isOver: false };
  fake.replies.set("GET /api/actions/x1", () =>
    record(self.isOver ? { state: "succeeded", finished_at: 1_790_000_009 } : {}),
  );
  fake.replies.set("GET /api/actions/x1/output", () => ({ entries: [], next_seq: 0, complete: self.isOver }));
  return self;
}

const isAsked = (fake: FakeConsole, afterSeq: number): boolean =>
  fake.subscribed.some((requested) => (requested as { after_seq?: number }).after_seq === afterSeq);

test("output comes over the socket without being asked for, only what is in sight is drawn, it is searched, and a cut connection goes on where it was", {
  skip,
}, async (t) => {
  const { page, fake, errors } = await open(t);
  const run = action(fake);
  await page.goto(`${FAKE_URL}/actions/x1`);
  await page.getByText("Nothing was written yet").waitFor();
  await soon(() => isAsked(fake, 0));
  const asked = (): number => fake.asked.filter((path) => path.endsWith("/output")).length;
  await page.waitForTimeout(300);
  const before = asked();
  const say = (seq: number, node: string, data: string): void =>
    fake.tell("action.output", seq, { id: "x1", node_id: node, stream: "stdout", data, after_seq: seq - 1 });
  for (let seq = 1; seq <= 400; seq++) say(seq, seq % 2 === 0 ? "n2" : "n1", `line ${seq}\n`.repeat(25));
  await page.getByText("10,000 lines, more to come").waitFor();
  await page.getByText("line 400").first().waitFor();
  assert.equal(asked(), before, "nothing was polled");
  const drawn = await page.locator(".output-line").count();
  assert.ok(drawn > 5 && drawn < 100, `${drawn} lines are drawn`);
  await page.getByRole("textbox", { name: "Search the output" }).fill("line 123");
  await page.getByText("25 of 10,000 lines, more to come").waitFor();
  await page.getByRole("textbox", { name: "Search the output" }).fill("");

  fake.cutTopics();
  await soon(() => isAsked(fake, 400));
  say(401, "n1", `${EVIL}\n`);
  fake.tell("action.state", 401, {
    id: "x1",
    state: "running",
    targets: [{ node_id: "n1", state: "succeeded", exit_code: 0 }],
  });
  await page.getByText("10,001 lines, more to come").waitFor();
  await page.getByText("exit code 0").waitFor();
  await page.getByText("<img src=x").waitFor();
  run.isOver = true;
  fake.tell("action.done", 401, record({ state: "succeeded", finished_at: 1_790_000_009 }));
  await page.getByText("10,001 lines", { exact: true }).waitFor();
  assert.equal(await page.locator('img[src="x"]').count(), 0);
  assert.equal(await page.evaluate("document.body.dataset.hit ?? ''"), "");
  assert.deepEqual(errors, []);
});

test("a piece that does not follow on the last one is not shown before what lies between was read", {
  skip,
}, async (t) => {
  const { page, fake } = await open(t);
  action(fake);
  await page.goto(`${FAKE_URL}/actions/x1`);
  await soon(() => isAsked(fake, 0));
  await page.waitForTimeout(300);
  const entry = (seq: number): object => ({
    seq,
    after_seq: seq - 10,
    ts: 0,
    node_id: "n1",
    stream: "stdout",
    data: `at ${seq}\n`,
  });
  let reads = 0;
  fake.replies.set("GET /api/actions/x1/output", () => ({
    entries: reads++ === 0 ? [entry(10), entry(20), entry(30)] : [],
    next_seq: 30,
    complete: false,
  }));
  fake.tell("action.output", 30, { id: "x1", ...entry(30) });
  await page.getByText("at 30").waitFor();
  const lines = await page.locator(".output-line").allInnerTexts();
  assert.deepEqual(lines, ["at 10", "at 20", "at 30"]);
});

test("a line of a log with markup is text, whether it was read or came while it was followed", {
  skip,
}, async (t) => {
  const { page, fake, errors } = await open(t);
  const lines = [
    { ts: 1_790_000_000, priority: 3, message: EVIL },
    {
      ts: null,
      priority: null,
      message: `{"level":"warn","time":"2026-11-21T20:00:00Z","event":"x","user":${JSON.stringify(EVIL)}}`,
    },
  ];
  fake.replies.set("GET /api/logs/tail", () => ({
    node_id: "n1",
    service: "fileserver",
    unit: "svc-fileserver",
    source: "journal",
    lines,
    text: "",
    truncated: false,
  }));
  await page.goto(`${FAKE_URL}/logs?node=n1&follow=1`);
  await page.getByText("<img src=x").first().waitFor();
  await soon(() => fake.subscribed.length > 0);
  fake.tell("log.lines", 1, {
    node_id: "n1",
    service: "fileserver",
    lines: [{ ts: null, priority: null, message: `later ${EVIL}` }],
    dropped: 0,
  });
  await page.getByText("later <img src=x").waitFor();
  assert.equal(await page.locator(".log-line").count(), 3);
  assert.equal(await page.locator('.log-line img, .log-line b:has-text("bold")').count(), 0);
  assert.equal(await page.evaluate("document.body.dataset.hit ?? ''"), "");
  assert.deepEqual(errors, []);
});

test("a new alert waits behind “1 new” while the pointer is on the others, and nothing moves under it", {
  skip,
}, async (t) => {
  const { page, fake } = await open(t);
  fake.cluster.alerts.push(fakeAlert(1), fakeAlert(2));
  await page.goto(`${FAKE_URL}/alerts`);
  const resolve = page.getByRole("button", { name: "Resolve Alert 1" });
  await resolve.hover();
  const place = await resolve.boundingBox();
  fake.cluster.alerts.unshift(fakeAlert(3));
  fake.say("alert.raised", fake.cluster.alerts[0]);
  const waiting = page.getByRole("button", { name: "1 new" });
  await waiting.waitFor();
  assert.equal(await page.getByText("What alert 3 says.").count(), 0);
  assert.deepEqual(await resolve.boundingBox(), place);
  await waiting.click();
  await page.getByText("What alert 3 says.").waitFor();
  // Once the pointer has left, new rows appear at once.
  await page.getByRole("heading", { level: 1 }).hover();
  fake.cluster.alerts.unshift(fakeAlert(4));
  fake.say("alert.raised", fake.cluster.alerts[0]);
  await page.getByText("What alert 4 says.").waitFor();
});

async function soon(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 50));
}
