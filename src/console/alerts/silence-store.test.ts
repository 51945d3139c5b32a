// Silences: when they are active, what they match, what is refused, and restarts (decision D11).
import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { isGroveError } from "#base/errors.ts";
import { silentLogger } from "#base/log.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { type SilenceMatcher, type SilenceRequest, silence } from "#wire/webapi/notification.ts";
import { SILENCE_KEPT_MS, SilenceStore } from "./silence-store.ts";
import { SILENCE_LONGEST_MS } from "./silence-times.ts";

let folder = "";
let clock = new ManualClock();
beforeEach(async () => {
  folder = scratchFolder("grove-silences-");
  clock = new ManualClock();
});

const open = (): Promise<SilenceStore> => SilenceStore.open({ dataFolder: folder, clock, log: silentLogger });
const now = (): number => Math.trunc(clock.wallMs() / 1_000);
const is = (name: SilenceMatcher["name"], value: string): SilenceMatcher => ({
  name,
  value,
  is_regex: false,
});
const like = (name: SilenceMatcher["name"], value: string): SilenceMatcher => ({
  name,
  value,
  is_regex: true,
});
const request = (more: Partial<SilenceRequest> = {}): SilenceRequest => ({
  matchers: [is("node_id", "n1")],
  ends_at: now() + 3_600,
  comment: "a new disk",
  ...more,
});
const refused = async (asked: Promise<unknown>, pointer?: string): Promise<void> => {
  await assert.rejects(asked, (error) => {
    assert.ok(isGroveError(error, "BAD_ARGUMENT"));
    if (pointer !== undefined) assert.equal(error.metadata["pointer"], pointer);
    return true;
  });
};

test("a silence is pending, active and expired by the wall clock, and holds only while it is active", async () => {
  const store = await open();
  await store.add(request({ starts_at: now() + 60, ends_at: now() + 120 }), "operator:1");
  const states: unknown[] = [];
  for (const seconds of [59, 1, 59, 1]) {
    clock.advance(seconds * 1_000);
    states.push([store.list()[0]?.state, store.isSilenced({ node_id: "n1" })]);
  }
  assert.deepEqual(states, [
    ["pending", false],
    ["active", true],
    ["active", true],
    ["expired", false],
  ]);
});

test("a silence takes for how long, or until when, in words, by the clock of whoever asks (D11)", async () => {
  const store = await open();
  const { ends_at: _end, ...rest } = request();
  const span = await store.add({ ...rest, duration: "2h" }, "o");
  assert.equal(span.ends_at, now() + 7_200);
  const later = await store.add({ ...rest, starts_at: now() + 60, duration: "2h" }, "o");
  assert.equal(later.ends_at, now() + 7_260);
  const morning = await store.add({ ...rest, duration: "until tomorrow 08:00", time_zone: "UTC" }, "o");
  assert.match(new Date(morning.ends_at * 1_000).toISOString(), /T08:00:00/);
  assert.ok(morning.ends_at - now() <= 32 * 3_600);
  for (const wrong of ["soon", "0h", "400d"])
    await refused(store.add({ ...rest, duration: wrong }, "o"), "/duration");
  await refused(store.add(rest, "o"), "/duration");
  await refused(store.add(request({ duration: "2h" }), "o"), "/duration");
});

test("all matchers must hold, a pattern for the whole value, and what is absent is empty", async () => {
  const store = await open();
  await store.add(request({ matchers: [like("node_id", "rack1-.*"), is("severity", "warning")] }), "o");
  assert.equal(store.isSilenced({ node_id: "rack1-7", severity: "warning" }), true);
  assert.equal(store.isSilenced({ node_id: "rack1-7", severity: "critical" }), false);
  assert.equal(store.isSilenced({ node_id: "xrack1-7", severity: "warning" }), false);
  assert.equal(store.isSilenced({ severity: "warning" }), false);
  await store.add(request({ matchers: [is("type", "temp_warning"), is("username", "")] }), "o");
  assert.equal(store.isSilenced({ type: "temp_warning" }), true);
  assert.equal(store.isSilenced({ type: "temp_warning", username: "a@b.c" }), false);
});

test("what would silence everything, has ended, or lasts longer than a year is refused with its place", async () => {
  const store = await open();
  await refused(store.add(request({ matchers: [like("node_id", ".*")] }), "o"), "/matchers");
  await refused(store.add(request({ matchers: [is("username", ""), like("type", "a*")] }), "o"), "/matchers");
  await refused(
    store.add(request({ matchers: [is("type", "x"), like("type", "(a")] }), "o"),
    "/matchers/1/value",
  );
  await refused(store.add(request({ ends_at: now() }), "o"), "/ends_at");
  await refused(store.add(request({ starts_at: now() + 50, ends_at: now() + 50 }), "o"), "/ends_at");
  const longest = SILENCE_LONGEST_MS / 1_000;
  await refused(store.add(request({ ends_at: now() + longest + 1 }), "o"), "/ends_at");
  await store.add(request({ ends_at: now() + longest }), "o");
  assert.equal(store.list().length, 1);
});

test("a silence that is ended is over at once and stays listed for five days; an unknown one is none", async () => {
  const store = await open();
  const { id } = await store.add(request({ starts_at: now() + 100 }), "operator:1");
  assert.equal((await store.end(id))?.state, "expired");
  assert.equal((await store.end(id))?.state, "expired");
  assert.equal(await store.end("nothing"), undefined);
  assert.equal(store.list()[0]?.starts_at, now());
  clock.advance(SILENCE_KEPT_MS);
  await store.add(request(), "o");
  assert.equal(store.list().length, 2);
  clock.advance(1_000);
  await store.add(request(), "o");
  assert.deepEqual(
    store.list().map(({ state }) => state),
    ["active", "active"],
  );
});

test("a restart keeps silences; those that came at the same time too; a pattern that is none any more matches nothing", async () => {
  const store = await open();
  await Promise.all(
    Array.from({ length: 20 }, (_, at) => store.add(request({ matchers: [is("node_id", `n${at}`)] }), "o")),
  );
  const again = await open();
  assert.deepEqual(again.list(), store.list());
  for (const each of again.list()) silence.parse(each);
  assert.equal(again.isSilenced({ node_id: "n19" }), true);
  const path = join(folder, "silences.json");
  await writeFile(
    path,
    (await readFile(path, "utf8")).replace('"value":"n3","is_regex":false', '"value":"(","is_regex":true'),
  );
  const edited = await open();
  assert.equal(edited.list().length, 19);
  assert.equal(edited.isSilenced({ node_id: "n3" }), false);
});

test("a silence that cannot be written is not in force", async () => {
  const store = await open();
  await rm(folder, { recursive: true });
  await assert.rejects(store.add(request(), "o"), (error) => isGroveError(error, "STORAGE_FAILED"));
  assert.equal(store.isSilenced({ node_id: "n1" }), false);
  assert.deepEqual(store.list(), []);
});

test("who made it is the operator, or who is named", async () => {
  const store = await open();
  assert.equal((await store.add(request(), "operator:1")).created_by, "operator:1");
  assert.equal((await store.add(request({ created_by: "Ann" }), "operator:1")).created_by, "Ann");
});
