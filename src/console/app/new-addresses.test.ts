// Tests that operators see who waits with a new address, and decide once, each decision with an audit line.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { AuditEntry } from "#wire/webapi/audit.ts";
import type { NewAddressList } from "#wire/webapi/new-address.ts";
import type { Problem } from "#wire/webapi/problem.ts";
import type { Answer } from "./app.fixture.ts";
import {
  type FilledStore,
  type OperatedConsole,
  operatedConsole,
  testConsoleOptions,
  USER,
} from "./console.fixture.ts";

const TIMEOUT = { timeout: 120_000 };
const ISSUER = "idp.example.com";
/** An address with all that an address may have. */
const NEW = "o'brien+a.b&c=d%2f@example.com";

interface Bench extends OperatedConsole {
  readonly store: FilledStore["store"];
  decide(decision: "confirm" | "refuse", from?: string, to?: string): Promise<Answer>;
  list(): Promise<NewAddressList>;
  /** Acts and subjects of the audit log about addresses. */
  acts(): Promise<string[]>;
}

/** A console whose store knows Alice under another address than the one she has come with. */
async function startWaiting(t: TestContext): Promise<Bench> {
  const { options, ends, filled } = await testConsoleOptions(t);
  const { store } = filled;
  assert.equal(await store.admitSubject(USER, { issuer: ISSUER, subject: "a1" }), true);
  await store.admitSubject(NEW, { issuer: ISSUER, subject: "a1" });
  const { ask, visit } = await operatedConsole(options, ends);
  return {
    store,
    ask,
    visit,
    decide: (decision, from = USER, to = NEW) =>
      ask(`/api/new-addresses/${decision}`, { method: "POST", body: { from, to } }),
    list: async () => (await ask("/api/new-addresses")).json as NewAddressList,
    acts: async () =>
      ((await ask("/api/audit?act=user.*")).json as { entries: AuditEntry[] }).entries.map(
        ({ act, subject }) => `${act} ${subject}`,
      ),
  };
}

test(
  "who waits with a new address is shown to operators alone, and a confirmed change until nodes have heard",
  TIMEOUT,
  async (t) => {
    const { store, list, visit, decide, acts } = await startWaiting(t);
    for (const [path, method] of [
      ["/api/new-addresses", "GET"],
      ["/api/new-addresses/confirm", "POST"],
      ["/api/new-addresses/refuse", "POST"],
    ] as const) {
      const answer = await visit(path, method === "POST" ? { method, body: { from: USER, to: NEW } } : {});
      assert.equal(answer.status, 401);
      assert.ok(!answer.text.includes("brien"));
    }
    const [waiting] = (await list()).waiting;
    assert.deepEqual(
      [waiting?.from, waiting?.to, waiting?.issuer, waiting?.subject],
      [USER, NEW, ISSUER, "a1"],
    );
    const wrong = await decide("confirm", "bob@example.com");
    assert.deepEqual([wrong.status, (wrong.json as Problem).code], [404, "NO_SUCH_USER"]);
    assert.deepEqual(await acts(), [], "what changes nothing has no line");
    const confirmed = await decide("confirm");
    assert.equal(confirmed.status, 200, confirmed.text);
    assert.deepEqual(confirmed.json, {
      waiting: [],
      changing: [{ from: USER, to: NEW, waits_for: ["n1"] }],
    });
    assert.equal((await store.findSubject(NEW))?.subject, "a1");
    assert.deepEqual(await acts(), [`user.rename_confirm ${USER}`]);
  },
);

test("a refused address has an audit line, and the person may come again", TIMEOUT, async (t) => {
  const { store, list, decide, acts } = await startWaiting(t);
  assert.equal((await decide("refuse")).status, 200);
  assert.deepEqual((await list()).waiting, []);
  assert.equal((await store.findSubject(USER))?.subject, "a1");
  assert.deepEqual(await acts(), [`user.rename_refuse ${USER}`]);
  await store.admitSubject(NEW, { issuer: ISSUER, subject: "a1" });
  assert.equal((await list()).waiting.length, 1);
});

test("an address that became another person's meanwhile is refused with the reason", TIMEOUT, async (t) => {
  const { store, decide, list } = await startWaiting(t);
  await store.admitSubject(NEW, { issuer: ISSUER, subject: "b2" });
  const refused = await decide("confirm");
  assert.deepEqual([refused.status, (refused.json as Problem).code], [409, "ADDRESS_REFUSED"]);
  assert.match((refused.json as Problem).detail ?? "", /is another person's already; nothing was changed/);
  assert.equal((await list()).waiting.length, 1);
});

test(
  "of two operators who decide at once one does, and the other hears that it was decided",
  TIMEOUT,
  async (t) => {
    const { store, decide } = await startWaiting(t);
    const answers = await Promise.all([
      decide("confirm"),
      decide("refuse"),
      decide("confirm"),
      decide("refuse"),
    ]);
    const done = answers.filter(({ status }) => status === 200);
    assert.equal(done.length, 1, answers.map(({ text }) => text).join("\n"));
    for (const { status } of answers) assert.ok([200, 404, 409].includes(status));
    const isConfirmed = answers.findIndex(({ status }) => status === 200) % 2 === 0;
    assert.equal((await store.findSubject(isConfirmed ? NEW : USER))?.subject, "a1");
    assert.equal(await store.findSubject(isConfirmed ? USER : NEW), undefined);
  },
);
