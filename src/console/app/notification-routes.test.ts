// Tests the routes of the notification layer: operators only, exact answers, problem documents (D11, D2).
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { AuditAct } from "#base/audit-act.ts";
import { silentLogger } from "#base/log.ts";
import { systemRandom } from "#base/random.ts";
import { Notifier } from "#console/alerts/notifier.ts";
import { notificationRoutes } from "#console/routes/notification-routes.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { noticesReply, type Silence, silence, silenceList } from "#wire/webapi/notification.ts";
import { type AppUnderTest, startApp } from "./app.fixture.ts";

let folder = "";
let under: AppUnderTest;
let notifier: Notifier;
const acts: AuditAct[] = [];
/** Acts on stable storage by the last answer. */
let flushed = 0;

before(async () => {
  folder = scratchFolder("grove-notice-routes-");
  under = await startApp(async (app, { clock }) => {
    const settings = undefined;
    notifier = await Notifier.open({
      dataFolder: folder,
      clock,
      log: silentLogger,
      random: systemRandom,
      settings,
    });
    notificationRoutes(app, {
      notifier,
      audit: (act) => acts.push(act),
      flushAudit: async () => {
        flushed = acts.length;
      },
    });
  });
});
after(async () => {
  await under.close();
  await notifier.close();
});

const now = (): number => Math.trunc(under.clock.wallMs() / 1_000);
const silenceRequest = (more: object = {}): object => ({
  matchers: [{ name: "node_id", value: "n1" }],
  ends_at: now() + 3_600,
  comment: "a new disk",
  ...more,
});

test("visitors get 401 from every route, before anything of the request is looked at", async () => {
  for (const [method, path] of [
    ["GET", "/api/notices"],
    ["GET", "/api/silences"],
    ["POST", "/api/silences"],
    ["DELETE", "/api/silences/x"],
  ] as const) {
    const answer = await under.ask(path, { method, ...(method === "POST" ? { body: "{" } : {}) });
    assert.equal(answer.status, 401, `${method} ${path}`);
    assert.equal(answer.problem?.code, "AUTH_REQUIRED");
  }
  assert.deepEqual(notifier.silences.list(), []);
});

test("a silence is made, listed and ended, each act with a line for the audit log (D24)", async () => {
  const made = await under.askAsOperator("/api/silences", { body: silenceRequest() });
  assert.equal(made.status, 201);
  const added = silence.parse(made.json);
  assert.equal(added.state, "active");
  assert.deepEqual(added.matchers, [{ name: "node_id", value: "n1", is_regex: false }]);
  assert.equal(added.created_by, `operator:${under.session.id}`);
  assert.deepEqual(
    [flushed, acts.at(-1)?.actor],
    [acts.length, under.session.id],
    "written before the answer",
  );
  const listed = await under.askAsOperator("/api/silences");
  assert.deepEqual(silenceList.parse(listed.json).silences, [added]);
  const ended = await under.askAsOperator(`/api/silences/${added.id}`, { method: "DELETE" });
  assert.equal(ended.status, 200);
  assert.equal((ended.json as Silence).state, "expired");
  assert.deepEqual(
    acts.map(({ act, subject }) => [act, subject]),
    [
      ["silence.add", added.id],
      ["silence.end", added.id],
    ],
  );
});

test("a silence that cannot be is a 422 that names the place, and nothing is made of it", async () => {
  const before = notifier.silences.list().length;
  for (const [body, place] of [
    [silenceRequest({ ends_at: now() - 1 }), "/ends_at"],
    [silenceRequest({ ends_at: 1.5 }), "/ends_at"],
    [silenceRequest({ ends_at: "tomorrow" }), "/ends_at"],
    [silenceRequest({ ends_at: 2 ** 60 }), "/ends_at"],
    [silenceRequest({ ends_at: -1 }), "/ends_at"],
    [silenceRequest({ starts_at: 1e30 }), "/starts_at"],
    [silenceRequest({ matchers: [] }), "/matchers"],
    [silenceRequest({ matchers: [{ name: "password", value: "x" }] }), "/matchers/0/name"],
    [
      silenceRequest({ matchers: [{ name: "type", value: "(a+)+(?=b)", is_regex: true }] }),
      "/matchers/0/value",
    ],
    [silenceRequest({ matchers: [{ name: "type", value: "x".repeat(257) }] }), "/matchers/0/value"],
    [silenceRequest({ matchers: [{ name: "type", value: ".*", is_regex: true }] }), "/matchers"],
    [silenceRequest({ comment: "x".repeat(1_025) }), "/comment"],
    [silenceRequest({ state: "active" }), ""],
    [[], ""],
    ["null", ""],
  ] as const) {
    const answer = await under.askAsOperator("/api/silences", { body });
    assert.equal(answer.status, 422, JSON.stringify(body));
    assert.equal(answer.problem?.code, "SILENCE_INVALID");
    assert.equal(answer.problem?.errors?.[0]?.pointer ?? "", place, answer.text);
  }
  assert.equal((await under.askAsOperator("/api/silences", { body: "{" })).problem?.code, "BAD_JSON");
  assert.equal(notifier.silences.list().length, before);
});

test("a silence that is unknown is a 404, whatever its id looks like", async () => {
  for (const id of ["x", "%00", "__proto__", "..%2f..", "1".repeat(90)]) {
    const answer = await under.askAsOperator(`/api/silences/${id}`, { method: "DELETE" });
    assert.equal(answer.status, 404, id);
  }
});

test("what was told and waits is shown as its schema says, and that nothing is told by default (spec 6)", async () => {
  const answer = await under.askAsOperator("/api/notices");
  assert.equal(answer.status, 200);
  assert.equal(noticesReply.parse(answer.json).enabled, false);
  assert.match(answer.headers["cache-control"] ?? "", /no-store/);
});
