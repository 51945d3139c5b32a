// A whole console for tests: a real store, polls of fake nodes, a listener, and a movable clock.
import { join } from "node:path";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type Clock, systemClock } from "#base/clock.ts";
import { type FakeNode, startFakeNode } from "#base/fake-nodes.fixture.ts";
import { silentLogger } from "#base/log.ts";
import { systemRandom } from "#base/random.ts";
import { OperatorPassword } from "#console/operators/operator-password.ts";
import type { ConsoleOptions } from "#console/services/console-options.ts";
import type { Directory } from "#metaserver/directory/directory.ts";
import {
  openDirectory,
  openDirectoryReader,
  pausePlacement,
  withNodeStore,
} from "#metaserver/directory/open-directory.ts";
import { adminPasswordHash } from "#security/identity/admin-password.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { type Answer, type Ask, askHttp } from "./app.fixture.ts";
import { type RunningConsole, startConsole } from "./console.ts";

/** The operator's password of test consoles. */
export const PASSWORD = "a password of the tests";

/** A user on the only node. */
export const USER = "alice@example.com";

/** A console under test. */
export interface ConsoleUnderTest {
  readonly console: RunningConsole;
  readonly node: FakeNode;
  readonly dataFolder: string;
  /** Moves the console's clocks; timers are unaffected. */
  readonly moveTime: (ms: number) => void;
  ask(path: string, ask?: Ask): Promise<Answer>;
  /** Signs in and returns the token. */
  signIn(): Promise<string>;
}

/** Starts a console with one fake node, `n1`, with Alice's root; resolves after its first poll. */
export async function startTestConsole(
  t: TestContext,
  overrides: Partial<ConsoleOptions> = {},
): Promise<ConsoleUnderTest> {
  const { options, node, moveTime, ends } = await testConsoleOptions(t);
  const console = await startConsole({ ...options, ...overrides });
  ends.push(() => console.stop());
  const ask = (path: string, what?: Ask): Promise<Answer> => askHttp(`${console.url}${path}`, what);
  while ((await ask("/ready")).status !== 200) await sleep(20);
  return {
    console,
    node,
    dataFolder: options.dataFolder,
    moveTime,
    ask,
    async signIn() {
      return tokenOf(await ask("/api/auth/login", { body: { password: PASSWORD } }));
    },
  };
}

/** A console as an operator and a visitor ask it. */
export interface OperatedConsole {
  /** Asks as an operator. */
  ask(path: string, what?: Ask): Promise<Answer>;
  /** Asks as a visitor. */
  visit(path: string, what?: Ask): Promise<Answer>;
}

/** Starts a console with these options, and signs an operator in; `ends` receives the cleanup. */
export async function operatedConsole(options: ConsoleOptions, ends: Ends): Promise<OperatedConsole> {
  const console = await startConsole(options);
  ends.push(() => console.stop());
  const visit = (path: string, what?: Ask): Promise<Answer> => askHttp(`${console.url}${path}`, what);
  while ((await visit("/ready")).status !== 200) await sleep(20);
  const token = tokenOf(await visit("/api/auth/login", { body: { password: PASSWORD } }));
  const ask = (path: string, what: Ask = {}): Promise<Answer> =>
    visit(path, { ...what, headers: { authorization: `Bearer ${token}` } });
  return { ask, visit };
}

/** Cleanup of a test, run in reverse order. */
type Ends = (() => unknown)[];

/** Options of a test console and its node; the store also lists `others`. `ends` receives the cleanup. */
export async function testConsoleOptions(
  t: TestContext,
  others: readonly Pick<FakeNode, "id" | "address">[] = [],
): Promise<{
  options: ConsoleOptions;
  node: FakeNode;
  moveTime: (ms: number) => void;
  ends: Ends;
  filled: FilledStore;
}> {
  const ends: Ends = [];
  // Test hooks run in order of registration: the folder's removal would precede the console's last writes.
  t.after(async () => {
    for (const end of ends.toReversed()) await end();
  });
  const dataFolder = scratchFolder("console-");
  const node = await startFakeNode("n1", [{ name: USER, usedBytes: 1_000 }]);
  ends.push(() => node.close());
  const url = `sqlite:${join(dataFolder, "metadata.db")}`;
  const filled = await fillStore(ends, url, [node, ...others]);
  const { clock, moveTime } = movableClock();
  const boundless = { perSecond: 1e6, burst: 1e6 };
  const options: ConsoleOptions = {
    listen: { host: "127.0.0.1", port: 0 },
    dataFolder,
    directory: await openDirectoryReader(url, { clock }),
    pausePlacement: (fsId, untilWallMs) => pausePlacement(url, { clock, fsId, untilWallMs }),
    withNodeStore: (work) => withNodeStore(url, { clock }, work),
    password: await OperatorPassword.open({
      env: { ADMIN_PASSWORD_HASH: adminPasswordHash(PASSWORD) },
      file: undefined,
    }),
    loginFailureDelayMs: 0,
    allowNodes: ["127.0.0.1"],
    rates: { visitor: boundless, operator: boundless },
    clock,
    random: systemRandom,
    log: silentLogger,
    checkReplies: true,
  };
  return { options, node, moveTime, ends, filled };
}

/** The token in an answer's cookie; empty without one. */
export function tokenOf(answer: Answer): string {
  return /^svc_admin_token=([0-9a-f]{64});/.exec(answer.headers["set-cookie"]?.[0] ?? "")?.[1] ?? "";
}

/** The store of a test console as its nodes use it, with their epochs. */
export interface FilledStore {
  readonly store: Directory;
  readonly epochs: ReadonlyMap<string, number>;
  /** Lets a node register anew as one of the shared engine. */
  joinEngine(id: string): Promise<void>;
}

/** Fills the store as a MetaServer does: registered nodes, and Alice's root on the first. */
async function fillStore(
  ends: Ends,
  url: string,
  nodes: readonly Pick<FakeNode, "id" | "address">[],
): Promise<FilledStore> {
  const store = await openDirectory(url, { clock: systemClock });
  ends.push(() => store.close());
  const epochs = new Map<string, number>();
  const register = async (id: string, more: { readonly onEngine?: true }): Promise<void> => {
    const at = nodes.findIndex((node) => node.id === id);
    const { epoch } = await store.register({
      fsId: id,
      name: `Node ${at + 1}`,
      address: nodes[at]?.address ?? "",
      softwareVersion: "0.1.0",
      clusterId: "",
      instanceId: `instance ${at}`,
      dataId: `data ${at}`,
      diskTotalBytes: 1_000_000_000_000n,
      diskFreeBytes: 600_000_000_000n,
      diskReserveBytes: 0n,
      roots: at === 0 ? [{ owner: USER, rootId: "01JD0000000000000000000000", version: 1n, grants: [] }] : [],
      speaker: { kind: "mock" },
      knownEpoch: epochs.get(id),
      ...more,
    });
    epochs.set(id, epoch);
  };
  for (const { id } of nodes) await register(id, {});
  return { store, epochs, joinEngine: (id) => register(id, { onEngine: true }) };
}

function movableClock(): { clock: Clock; moveTime: (ms: number) => void } {
  let movedMs = 0;
  const clock: Clock = {
    wallMs: () => systemClock.wallMs() + movedMs,
    steadyMs: () => systemClock.steadyMs() + movedMs,
    after: (delayMs, callback) => systemClock.after(delayMs, callback),
    every: (intervalMs, callback) => systemClock.every(intervalMs, callback),
  };
  return {
    clock,
    moveTime: (ms) => {
      movedMs += ms;
    },
  };
}
