// Session tokens that must be refused at every call that needs a session (spec 3.4, 5.3), and wrong
// administrator's passwords (spec 5.5).
import { hash } from "node:crypto";
import { ManualClock } from "#base/clock.ts";
import { SESSION_IDLE_TIMEOUT_MS, SESSION_LIFETIME_MS, SESSIONS_PER_USER } from "#base/limits.ts";
import { startTestNode, type TestNode } from "#fileserver/process/node.fixture.ts";
import { channelFrom } from "#fileserver/process/other-address.fixture.ts";
import type { Campaign } from "#prove/campaign.ts";
import { adminPasswordHash } from "#security/identity/admin-password.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { type Door, mustBeAccepted, mustBeRefused, outcomeOf } from "./credential.ts";

const PASSWORD = "a password of the rig";
const ELSEWHERE = "127.0.0.2";
/** Calls with credentials of another kind. */
const EXEMPT: readonly string[] = ["registerClient", "setQuota"];
const REFUSALS = ["SESSION_MISSING", "SESSION_UNKNOWN"];

/** Number of credentials that this part tries. */
export const SESSIONS_AND_PASSWORDS = 20;

type Call = (request: unknown, options: object) => unknown;

/** Tries them all. */
export async function trySessions(campaign: Campaign): Promise<void> {
  const clock = new ManualClock();
  const [node, other] = await Promise.all([startNode(campaign, clock), startNode(campaign, clock)]);
  const doorsOf = (authorization: string | undefined): Readonly<Record<string, Door>> =>
    callsOf(node, authorization);
  const { token } = await node.signIn("u@example.com");
  const { listSessions } = doorsOf(`Bearer ${token}`);
  if (listSessions === undefined) throw new Error("the service has no ListSessions");
  const alive: Door = listSessions;
  await mustBeAccepted(campaign, "session token", { alive });
  const changed = `${token.slice(0, 20)}${token[20] === "A" ? "B" : "A"}${token.slice(21)}`;
  const { registered, token: foreign } = await other.signIn("u@example.com");
  const never: readonly (readonly [string, string | undefined])[] = [
    ["none", undefined],
    ["unknown", `Bearer sst_${"A".repeat(43)}`],
    ["with one letter changed", `Bearer ${changed}`],
    ["cut short", `Bearer ${token.slice(0, -1)}`],
    ["with a letter more", `Bearer ${token}A`],
    ["in small letters", `Bearer ${token.toLowerCase()}`],
    ["its hash", `Bearer ${hash("sha256", token, "base64url")}`],
    ["by another scheme", `Basic ${token}`],
    ["without a scheme", token],
    ["the session's public name", `Bearer sst_${registered.rootId}`],
    ["of another node", `Bearer ${foreign}`],
    ["an ID token", "Bearer mock-jwt.u@example.com"],
  ];
  for (const [what, authorization] of never)
    await mustBeRefused(campaign, `session token: ${what}`, doorsOf(authorization), REFUSALS);
  await tryElsewhere(campaign, node, token);
  await tryEnded(campaign, { node, clock, doorsOf, alive });
  await tryPasswords(campaign, node);
}

async function tryElsewhere(campaign: Campaign, node: TestNode, token: string): Promise<void> {
  const elsewhere = await channelFrom(ELSEWHERE, node.address);
  campaign.atEnd(() => elsewhere.close());
  const doors = { getAttr: () => outcomeOf(elsewhere.getAttr("/", token)) };
  await mustBeRefused(campaign, "session token from another address", doors, ["IP_MISMATCH"]);
}

interface Ended {
  readonly node: TestNode;
  readonly clock: ManualClock;
  readonly doorsOf: (authorization: string) => Readonly<Record<string, Door>>;
  /** Uses the session that must outlive all but its own twelve hours. */
  readonly alive: Door;
}

async function tryEnded(campaign: Campaign, { node, clock, doorsOf, alive }: Ended): Promise<void> {
  const left = await node.signIn("left@example.com");
  await left.call.endSession({});
  await mustBeRefused(campaign, "session that was ended", doorsOf(`Bearer ${left.token}`), REFUSALS);
  const evicted = await node.signIn("many@example.com");
  for (let count = 0; count < SESSIONS_PER_USER; count++) await node.signIn("many@example.com");
  await mustBeRefused(campaign, "session that had to go", doorsOf(`Bearer ${evicted.token}`), [
    "SESSION_EVICTED",
  ]);
  const idle = await node.signIn("idle@example.com");
  let passedMs = 0;
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms);
    passedMs += ms;
    await mustBeAccepted(campaign, "session in use", { alive });
  };
  const stepMs = SESSION_IDLE_TIMEOUT_MS - 1_000;
  await pass(stepMs);
  await pass(1_000);
  await mustBeRefused(campaign, "session that was idle", doorsOf(`Bearer ${idle.token}`), ["SESSION_IDLE"]);
  const old = await node.signIn("old@example.com");
  const usage = { old: doorsOf(`Bearer ${old.token}`)["listSessions"] ?? alive };
  for (let ageMs = 0; ageMs < SESSION_LIFETIME_MS; ageMs += stepMs) {
    await mustBeAccepted(campaign, "session in use", usage);
    clock.advance(Math.min(stepMs, SESSION_LIFETIME_MS - ageMs));
  }
  await mustBeRefused(campaign, "session past its twelve hours", doorsOf(`Bearer ${old.token}`), [
    "SESSION_EXPIRED",
  ]);
}

async function tryPasswords(campaign: Campaign, node: TestNode): Promise<void> {
  const right = adminPasswordHash(PASSWORD);
  await node.signIn("owner@example.com");
  const doors = (candidate: string): Readonly<Record<string, Door>> => ({
    setQuota: async () => {
      const reply = await node.anonymous.setQuota(
        { username: "owner@example.com", quotaBytes: 1n << 40n },
        { metadata: { "x-admin-password-hash": candidate } },
      );
      return reply.success ? undefined : "NOT_ADMIN";
    },
  });
  await mustBeAccepted(campaign, "hash of the administrator's password", doors(right));
  for (const [what, candidate] of [
    ["the password itself", PASSWORD],
    ["the hash without its last letter", right.slice(0, -1)],
    ["the hash of the hash", adminPasswordHash(right)],
  ] as const)
    await mustBeRefused(campaign, `administrator's password: ${what}`, doors(candidate), ["NOT_ADMIN"]);
}

async function startNode(campaign: Campaign, clock: ManualClock): Promise<TestNode> {
  const node = await startTestNode({ clock, env: { ADMIN_PASSWORD_HASH: adminPasswordHash(PASSWORD) } });
  campaign.atEnd(() => node.stop());
  return node;
}

/**
 * Every method of the service that needs a session, with an empty request: a missing session is refused
 * before anything else.
 */
function callsOf(node: TestNode, authorization: string | undefined): Readonly<Record<string, Door>> {
  const options = { metadata: authorization === undefined ? {} : { authorization } };
  const calls = node.anonymous as unknown as Readonly<Record<string, Call>>;
  const doors: Record<string, Door> = {};
  for (const { localName, methodKind } of FileServer.methods) {
    const call = calls[localName];
    if (call === undefined || EXEMPT.includes(localName)) continue;
    doors[localName] = () =>
      outcomeOf(
        methodKind === "server_streaming"
          ? drained(call({}, options) as AsyncIterable<unknown>)
          : (call(methodKind === "client_streaming" ? nothing() : {}, options) as Promise<unknown>),
      );
  }
  return doors;
}

async function drained(replies: AsyncIterable<unknown>): Promise<void> {
  for await (const _reply of replies);
}

async function* nothing(): AsyncGenerator<object> {}
