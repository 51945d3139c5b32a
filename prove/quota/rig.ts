// Two hundred streams at once against one quota, most of them broken off, while the quota is raised and
// lowered (F10).
//
// A round starts 200 streams of one root's owner, or of the five members of a group, and of a user with whom
// all of it is shared. They are uploads of known and unknown size, overwrites, creates, copies, appending writes and removals. Two thirds
// are uploads that end at a random byte, in seven ways. The quota has room for less than half of them.
//
// Meanwhile a reader beside the server looks at the database every few milliseconds. In every committed state
// the counters must be the sums of the rows, and the used bytes must not be above the highest quota since the
// round began. After a lowered quota no later stream may have got room that was not there.
//
// When all is quiet, listings and counters must agree with the rig's own account. Then an upload of exactly
// the rest must fit (nothing stays reserved). One byte more, a further byte, an empty file or a folder must
// not. At the end the data folder is checked offline, every byte of it.
//
// It cannot see states between two looks, what a crash leaves (the kill and crash-state rigs), quotas above a
// few megabytes or near 2^64, resumable uploads, and the physical reserve.
import { setTimeout as pause } from "node:timers/promises";
import type { Campaign } from "#prove/campaign.ts";
import type { Rig } from "#prove/rig.ts";
import { overEngine } from "#prove/rig-engine.ts";
import { type ServedNode, serveNode } from "#prove/served-node.ts";
import { checkStorage } from "#storage/check/check-storage.ts";
import { Account, type Step } from "./account.ts";
import { type CommittedState, driftOf, EngineState, FolderState } from "./committed-state.ts";
import { makeCrew } from "./crew.ts";

const OWNERS = 2;
const STREAMS = 200;
const STEPS_PER_STREAM = 2;
const CONNECTIONS = 4;
/** About the size of all complete steps of a round. */
const ROUND_BYTES = 4_000_000;
const LOOK_EVERY_MS = 4;
const CHANGES_PER_ROUND = 4;
const CHANGE_EVERY_MS = 25;
const EMPTY_ABOVE_BYTES = 60_000_000;
const PATIENCE_MS = 5_000;
const LARGEST_BYTES = 5_000_000;
const SETTLED: ReadonlySet<string> = new Set(["ok", "QUOTA_EXCEEDED"]);

type RoundKind = "steady" | "raised" | "lowered";
const KINDS: readonly RoundKind[] = ["steady", "raised", "lowered"];

class Arena {
  readonly #campaign: Campaign;
  readonly #node: ServedNode;
  readonly #state: CommittedState;

  constructor(campaign: Campaign, node: ServedNode, state: CommittedState) {
    this.#campaign = campaign;
    this.#node = node;
    this.#state = state;
  }

  /** One burst of streams on one account. */
  async round(account: Account, kind: RoundKind): Promise<void> {
    const watch = new Watch(this.#campaign, this.#state, account.root, account.usedBytes);
    const room = this.#campaign.random.between(ROUND_BYTES / 10, ROUND_BYTES / 2);
    await this.#change(account, watch, account.usedBytes + room);
    watch.start();
    const streams = Array.from({ length: STREAMS }, () => this.#stream(account, watch, kind));
    const changes = kind === "steady" ? Promise.resolve() : this.#changes(account, watch, kind);
    await Promise.all([...streams, changes]);
    await this.#compare(account, `after a ${kind} round`);
    await watch.stop();
    await this.#probe(account);
    if (account.usedBytes > EMPTY_ABOVE_BYTES) {
      await account.empty();
      await this.#compare(account, "when everything is removed");
    }
  }

  async #stream(account: Account, watch: Watch, kind: RoundKind): Promise<void> {
    for (let count = 0; count < STEPS_PER_STREAM && !this.#campaign.isOver(); count++) {
      const begun = { usedBytes: watch.usedBytes, quotaBytes: watch.loweredTo };
      const step = await account.step(kind === "lowered" ? "only growing" : "with removals");
      this.#judge(step, begun);
    }
  }

  #judge({ what, answer, addsBytes }: Step, begun: { usedBytes: number; quotaBytes: number }): void {
    const campaign = this.#campaign;
    const isAbort = what.startsWith("an upload that was");
    campaign.count(isAbort ? "aborts refused or broken" : `whole steps: ${answer}`);
    if (isAbort) {
      if (answer === "ok") campaign.violation(`${what} was accepted`);
    } else if (!SETTLED.has(answer)) {
      campaign.violation(`${what} was answered ${answer}`);
    } else if (answer === "ok" && addsBytes !== undefined && begun.quotaBytes < begun.usedBytes + addsBytes) {
      const { usedBytes, quotaBytes } = begun;
      const text = `${what} of ${addsBytes} bytes was accepted although ${usedBytes} of ${quotaBytes} were used when it began`;
      campaign.violation(text);
    }
  }

  async #changes(account: Account, watch: Watch, kind: RoundKind): Promise<void> {
    const { random } = this.#campaign;
    for (let count = 0; count < CHANGES_PER_ROUND; count++) {
      await pause(CHANGE_EVERY_MS);
      if (kind === "raised")
        await this.#change(account, watch, watch.quotaBytes + random.below(ROUND_BYTES / 8));
      // In the last step also below the used bytes.
      else await this.#change(account, watch, random.between(watch.usedBytes * 0.9, watch.quotaBytes));
    }
  }

  async #change(account: Account, watch: Watch, quotaBytes: number): Promise<void> {
    const bytes = Math.max(1, Math.floor(quotaBytes));
    watch.quotaIsComing(bytes);
    await this.#node.setQuota(account.root, BigInt(bytes));
    watch.quotaIs(bytes);
    this.#campaign.count("quota changes");
  }

  /** Compares the account with the root; the server may still be busy with clients that went away. */
  async #compare(account: Account, when: string): Promise<void> {
    const deadline = performance.now() + PATIENCE_MS;
    for (;;) {
      const wrong = await account.differences();
      if (wrong.length === 0) break;
      if (performance.now() > deadline) {
        this.#campaign.violation(`${account.root} ${when}: ${wrong.slice(0, 5).join("; ")}`);
        return;
      }
      await pause(LOOK_EVERY_MS);
    }
    const drift = driftOf(await this.#state.look(account.root));
    if (drift !== undefined) this.#campaign.violation(`drift ${when}: ${drift}`);
  }

  /** Tries both sides of the limit, which also shows that nothing is still reserved. */
  async #probe(account: Account): Promise<void> {
    const { random } = this.#campaign;
    const room = random.between(1, 5_000);
    const sizeKnown = random.chance(0.5);
    await this.#node.setQuota(account.root, BigInt(account.usedBytes + room));
    await this.#expect("one byte too much", "QUOTA_EXCEEDED", () => answer(account, room + 1, sizeKnown));
    await this.#expect("exactly what is left", "ok", () => answer(account, room, sizeKnown));
    await this.#expect("a byte into a full root", "QUOTA_EXCEEDED", () => answer(account, 1, !sizeKnown));
    await this.#expect("an empty file in a full root", "QUOTA_EXCEEDED", () => account.createEmpty());
    await this.#expect("a folder in a full root", "QUOTA_EXCEEDED", () => account.createFolder());
    await this.#compare(account, "at its limit");
  }

  async #expect(what: string, expected: string, act: () => Promise<string>): Promise<void> {
    this.#campaign.count("probes of the limit");
    const deadline = performance.now() + PATIENCE_MS;
    for (;;) {
      const said = await act();
      if (said === expected) return;
      // Reservations of clients that went away may take a moment to end; a wrong acceptance cannot become
      // right.
      if (said !== "QUOTA_EXCEEDED" || performance.now() > deadline) {
        this.#campaign.violation(`${what}: ${said} instead of ${expected}`);
        return;
      }
      await pause(LOOK_EVERY_MS);
    }
  }
}

/** Looks at one root all the time. */
class Watch {
  readonly #campaign: Campaign;
  readonly #state: CommittedState;
  readonly #owner: string;
  #looking: Promise<void> = Promise.resolve();
  #isOver = false;
  #highestBytes: number;
  /** Used bytes at the last look. */
  usedBytes: number;
  quotaBytes = 0;
  /** The lowest quota since the round began; no bound before. */
  loweredTo: number = Number.POSITIVE_INFINITY;

  constructor(campaign: Campaign, state: CommittedState, owner: string, usedBytes: number) {
    this.#campaign = campaign;
    this.#state = state;
    this.#owner = owner;
    this.#highestBytes = usedBytes;
    this.usedBytes = usedBytes;
  }

  start(): void {
    this.#looking = this.#goOn();
    this.#looking.catch(() => undefined);
  }

  /** After one more look. Throws what a look has thrown. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#looking;
    await this.#look();
  }

  quotaIsComing(bytes: number): void {
    this.#highestBytes = Math.max(this.#highestBytes, bytes);
  }

  quotaIs(bytes: number): void {
    if (bytes < this.quotaBytes) this.loweredTo = bytes;
    this.quotaBytes = bytes;
  }

  async #goOn(): Promise<void> {
    while (!this.#isOver) {
      await this.#look();
      await pause(LOOK_EVERY_MS);
    }
  }

  async #look(): Promise<void> {
    const root = await this.#state.look(this.#owner);
    this.usedBytes = root.liveBytes + root.trashBytes + root.stagingBytes;
    this.#campaign.count("committed states read");
    const drift = driftOf(root);
    if (drift !== undefined) this.#campaign.violation(`drift in a committed state: ${drift}`);
    const heldBytes = root.fileBytes + root.trashedBytes + root.stagingBytes;
    const overBytes = heldBytes - this.#highestBytes;
    if (overBytes > 0)
      this.#campaign.violation(
        `${overBytes} bytes above the quota: ${JSON.stringify(root)}, highest quota ${this.#highestBytes}`,
      );
  }
}

async function answer(account: Account, bytes: number, sizeKnown: boolean): Promise<string> {
  return (await account.uploadBytes(bytes, sizeKnown)).answer;
}

async function run(campaign: Campaign): Promise<void> {
  const node = await serveNode(campaign, "disk", []);
  const pool = campaign.random.fork("bytes").bytes(LARGEST_BYTES);
  const accounts: Account[] = [];
  for (let number = 0; number < OWNERS; number++) {
    const owner = await node.signIn(`owner${number}@example.com`, CONNECTIONS);
    const sharee = await node.signIn(`sharee${number}@example.com`, CONNECTIONS);
    accounts.push(new Account({ root: owner.email, keepers: [owner], sharee }, node.address, campaign, pool));
  }
  const { root, members } = await makeCrew(campaign, node, CONNECTIONS);
  const guest = await node.signIn("guest@example.com", CONNECTIONS);
  accounts.push(new Account({ root, keepers: members, sharee: guest }, node.address, campaign, pool));
  for (const account of accounts) await account.share();
  const { engine, dataFolder } = node;
  const state = engine === undefined ? new FolderState(dataFolder) : await EngineState.open(engine.address);
  campaign.atEnd(() => state.close());
  const arena = new Arena(campaign, node, state);
  for (let round = 0; campaign.shouldGoOn(); round++) {
    const account = accounts[round % accounts.length];
    if (account !== undefined)
      await arena.round(account, KINDS[Math.floor(round / accounts.length) % KINDS.length] ?? "steady");
  }
  if (!node.process.isRunning()) campaign.violation(`the server ended: ${node.process.log()}`);
  await node.process.end("SIGTERM");
  const differences =
    (await engine?.check()) ?? checkStorage(dataFolder, { repair: false, deep: true }).differences;
  for (const difference of differences) campaign.violation(`the offline check: ${difference}`);
}

/** See the head of this file. */
export const quota: Rig = {
  name: "quota",
  figure: "F10",
  proves:
    "No byte is ever above a quota and no counter drifts, with 200 streams at once and most of them broken off",
  unit: "aborted uploads",
  goal: 20_000,
  shortGoal: 700,
  run,
};

/** F10 on the shared engine. */
export const quotaOverEngine: Rig = overEngine(quota, { goal: 5_000, shortGoal: 200, plantedGoal: 700 });
