// Names of nodes: one look-up, one checked address, and few threads for look-ups that hang (M-04).
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "#base/clock.ts";
import {
  NODE_LOOKUP_TIMEOUT_MS,
  NODE_LOOKUPS_AT_ONCE,
  NODE_NAME_LIFETIME_MS,
  NodeNames,
} from "./node-names.ts";
import { NodeNetworks } from "./node-networks.ts";

/** A resolver that the test controls. */
function resolver() {
  const asked: string[] = [];
  const answers = new Map<string, readonly string[] | Error>();
  const waiting: (() => void)[] = [];
  let hangs = false;
  const clock = new ManualClock();
  const names = new NodeNames({
    clock,
    networks: new NodeNetworks(),
    lookup: async (name) => {
      asked.push(name);
      if (hangs) await new Promise<void>((resolve) => waiting.push(resolve));
      const answer = answers.get(name) ?? Object.assign(new Error("nowhere"), { code: "ENOTFOUND" });
      if (answer instanceof Error) throw answer;
      return answer;
    },
  });
  return { asked, answers, clock, names, hang: () => (hangs = true), waiting };
}

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

test("an address stands for itself and is checked", () => {
  const { names, asked } = resolver();
  assert.equal(names.addressOf("10.0.0.1"), "10.0.0.1");
  assert.throws(() => names.addressOf("169.254.169.254"), { name: "PollError", message: /metadata service/ });
  assert.deepEqual(asked, []);
});

test("a name is looked up once and leads to the first address that may be a node's, until 30 s are over", async () => {
  const { names, asked, answers, clock } = resolver();
  answers.set("n1.example", ["169.254.169.254", "127.0.0.1", "10.0.0.1", "10.0.0.2"]);
  assert.throws(() => names.addressOf("n1.example"), { message: /being looked up/ });
  await turn();
  assert.equal(names.addressOf("n1.example"), "10.0.0.1");
  answers.set("n1.example", ["169.254.169.254"]);
  clock.advance(NODE_NAME_LIFETIME_MS - 1);
  assert.equal(names.addressOf("n1.example"), "10.0.0.1", "what the name leads to meanwhile is not asked");
  assert.equal(asked.length, 1);
  clock.advance(1);
  names.addressOf("n1.example");
  await turn();
  assert.throws(() => names.addressOf("n1.example"), { message: /leads astray: 169\.254\.169\.254/ });
});

test("a name that is gone leads nowhere; a resolver that is away leaves names where they led", async () => {
  const { names, answers, clock } = resolver();
  answers.set("n1.example", ["10.0.0.1"]);
  for (const host of ["n1.example", "n2.example"]) assert.throws(() => names.addressOf(host));
  await turn();
  assert.throws(() => names.addressOf("n2.example"), { message: "its name leads to no address (ENOTFOUND)" });
  answers.set("n1.example", Object.assign(new Error("away"), { code: "EAI_AGAIN" }));
  clock.advance(NODE_NAME_LIFETIME_MS);
  names.addressOf("n1.example");
  await turn();
  assert.equal(names.addressOf("n1.example"), "10.0.0.1");
  answers.delete("n1.example");
  clock.advance(NODE_NAME_LIFETIME_MS);
  names.addressOf("n1.example");
  await turn();
  assert.throws(() => names.addressOf("n1.example"), { message: /leads to no address/ });
});

test(`however many names hang, ${NODE_LOOKUPS_AT_ONCE} are looked up at once; those that were forgotten not at all`, async () => {
  const { names, asked, hang, waiting } = resolver();
  hang();
  for (let index = 0; index < 50; index++) assert.throws(() => names.addressOf(`n${index}.example`));
  await turn();
  assert.equal(asked.length, NODE_LOOKUPS_AT_ONCE);
  for (let index = 0; index < 50; index++) assert.throws(() => names.addressOf(`n${index}.example`));
  names.keepOnly(new Set(["n7.example"]));
  waiting.splice(0).forEach((go) => go());
  await turn();
  assert.deepEqual(asked, ["n0.example", "n1.example", "n7.example"]);
});

test("names that hang hold up others for 5 s and no longer, and what they lead to late still counts", async () => {
  const { names, asked, answers, clock, hang, waiting } = resolver();
  hang();
  for (const host of ["h0", "h1", "h2"]) answers.set(`${host}.example`, ["10.0.0.1"]);
  for (const host of ["h0", "h1", "h2", "h3"]) assert.throws(() => names.addressOf(`${host}.example`));
  await turn();
  clock.advance(NODE_LOOKUP_TIMEOUT_MS - 1);
  assert.equal(asked.length, 2);
  clock.advance(1);
  assert.deepEqual(asked, ["h0.example", "h1.example", "h2.example"], "one thread is left to others");
  assert.throws(() => names.addressOf("h0.example"), { message: /not looked up within 5 s/ });
  clock.advance(NODE_LOOKUP_TIMEOUT_MS);
  assert.equal(asked.length, 3, "files keep the last thread");
  waiting.splice(0).forEach((go) => go());
  await turn();
  assert.equal(names.addressOf("h0.example"), "10.0.0.1");
  assert.equal(asked.length, 4);
});
