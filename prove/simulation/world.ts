// One seed: a cluster of a MetaServer, three FileServers and four users, up to two simulated hours and twenty faults.
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { NODE_LEASE_MS } from "#base/limits.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import {
  checkData,
  checkHolders,
  checkSums,
  LeaseWatch,
  type Looked,
  ownersOn,
  unconverged,
} from "./checks.ts";
import { befall, FAULTS, type FaultKind } from "./faults.ts";
import { startNetwork } from "./network.ts";
import { Person } from "./person.ts";
import { type Scheduler, simulation, startSimulation } from "./scheduler.ts";
import { ADMIN, SimulatedFileServer, SimulatedMetaServer } from "./servers.ts";
import { SessionsWatch } from "./sessions-watch.ts";
import type { Victims } from "./victims.ts";

const META_HOST = "10.0.0.1";
const NODES = 3;
const PEOPLE = 4;
/**
 * After a fault users work on for this time, and then less until the next one: work without a fault costs as
 * much.
 */
const BUSY_AFTERWARDS_MS = 30_000;
const LOOK_EVERY_MS = 7_000;
const CONVERGED_WITHIN_MS: number = 2 * NODE_LEASE_MS;
const QUOTA_BYTES = 600_000n;
const END_LIMIT_MS = 300_000;
/** Time in which sessions are opened that a jump must not end. */
const BEFORE_A_JUMP_MS = 2_000;

/** What comes on top of another fault: a move waits for its end by itself. */
const SECOND_FAULTS = FAULTS.filter((kind) => kind !== "root move");

/** Result of one seed. */
export interface SeedResult {
  readonly seed: number;
  readonly traceHash: string;
  readonly violations: readonly string[];
  readonly counts: Readonly<Record<string, number>>;
}

/** How much befalls a cluster. */
export interface SeedLength {
  readonly faults: number;
  /** Least time from one fault to the next; users' work after it takes half a minute more. */
  readonly slotMs: number;
}

/** Runs one seed, on files below `under`, best kept in memory. */
export async function runSeed(
  seed: number,
  under: string,
  { faults, slotMs }: SeedLength,
): Promise<SeedResult> {
  const folder = mkdtempSync(join(under, "grove-simulation-"));
  const scheduler = startSimulation(seed);
  const network = startNetwork(scheduler.random.fork("network"));
  const violations: string[] = [];
  const violation = (text: string): void => {
    scheduler.trace("VIOLATION", text);
    violations.push(`seed ${seed}, ${Math.round(scheduler.nowMs / 1_000)} s: ${text}`);
  };
  const meta = new SimulatedMetaServer(META_HOST, join(folder, "meta"));
  const nodes = Array.from(
    { length: NODES },
    (_, at) => new SimulatedFileServer(`n${at}`, `10.0.0.${10 + at}`, join(folder, `n${at}`), meta.address),
  );
  const people = Array.from(
    { length: PEOPLE },
    (_, at) =>
      new Person(`user${at}@example.com`, `10.0.1.${10 + at}`, { folder, meta: meta.address, violation }),
  );
  network.onStorm = violation;
  const random = scheduler.random.fork("faults");
  const counts = new Map<string, number>();
  const count = (what: string): void => void counts.set(what, (counts.get(what) ?? 0) + 1);
  const world = new World({ meta, nodes, people, network, random, violation, count });
  try {
    await world.begin();
    for (const kind of drawFaults(scheduler.random.fork("kinds"), faults)) await world.slot(kind, slotMs);
    await world.finish();
  } catch (error) {
    violation(
      `the run broke off: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    );
  } finally {
    world.bury();
    rmSync(folder, { recursive: true, force: true });
  }
  return {
    seed,
    traceHash: scheduler.traceHash(),
    violations,
    counts: { ...world.counts(), ...Object.fromEntries(counts) },
  };
}

/** Each kind once, as far as they go, and the rest drawn, in any order. */
function drawFaults(random: Victims["random"], count: number): FaultKind[] {
  const kinds = random.shuffled(FAULTS).slice(0, count);
  while (kinds.length < count) kinds.push(random.pick(FAULTS));
  return random.shuffled(kinds);
}

class World {
  readonly #victims: Victims;
  readonly #looked: Looked;
  readonly #sessions: readonly SessionsWatch[];
  readonly #leases = new LeaseWatch();
  readonly #scheduler: Scheduler = simulation();
  readonly #violation: (text: string) => void;
  #faults = 0;
  #converged = 0;
  #slowestMs = 0;

  constructor(victims: Victims) {
    const { violation } = victims;
    this.#victims = victims;
    this.#violation = violation;
    this.#looked = victims;
    this.#sessions = victims.nodes.map((node, at) => new SessionsWatch(node, `10.0.2.${10 + at}`, violation));
  }

  async begin(): Promise<void> {
    const { meta, nodes, people } = this.#victims;
    await meta.start();
    for (const node of nodes) await node.start();
    for (const person of people) {
      await this.#scheduler.runUntil(person.makeFolder("/shared"), END_LIMIT_MS);
      await this.#setQuota(person.email);
      person.begin();
    }
  }

  async #setQuota(username: string): Promise<void> {
    for (const node of this.#victims.nodes) {
      if (!ownersOn(node).includes(username)) continue;
      const channel = new GrpcChannel({ addresses: [node.address] });
      const client = createClient(FileServer, channel);
      const signIn = { metadata: { authorization: `Bearer mock-jwt.${ADMIN}` } };
      const { success, error } = await this.#scheduler.runUntil(
        client
          .registerClient({ clientId: "rig" }, signIn)
          .then(({ sessionToken }) =>
            client.setQuota(
              { username, quotaBytes: QUOTA_BYTES },
              { metadata: { authorization: `Bearer ${sessionToken}` } },
            ),
          ),
        END_LIMIT_MS,
      );
      channel.close();
      if (!success) throw new Error(`the quota cannot be set: ${error}`);
    }
  }

  /**
   * Some minutes with one fault, at times a second one with it, and then a quiet time until all has converged.
   */
  async slot(kind: FaultKind, slotMs: number): Promise<void> {
    const { random } = this.#victims;
    const endMs = this.#scheduler.nowMs + slotMs;
    this.#setCalm(false);
    await this.#live(random.next() * 40_000);
    const heals = [await this.#befall(kind)];
    await this.#live(Math.exp(random.next() * Math.log(60)) * 1_000);
    // A store that is lost with a move in it needs an operator, whom the simulation does not have.
    const isMove = kind === "root move";
    if (!isMove && random.chance(0.25)) heals.push(await this.#befall(random.pick(SECOND_FAULTS)));
    await this.#live(Math.exp(random.next() * Math.log(120)) * 1_000);
    for (const heal of heals.toReversed()) await heal();
    this.#scheduler.trace("healed", kind);
    await this.#converge(kind);
    this.#burnZombies();
    const leftMs = (): number => Math.max(0, endMs - this.#scheduler.nowMs);
    await this.#live(BUSY_AFTERWARDS_MS);
    this.#setCalm(true);
    await this.#live(leftMs());
  }

  #setCalm(isCalm: boolean): void {
    for (const person of this.#victims.people) person.isCalm = isCalm;
  }

  async #befall(kind: FaultKind): Promise<() => Promise<void> | void> {
    this.#faults++;
    this.#scheduler.trace("fault", kind);
    // A server that is down cannot fail once more.
    const { meta, nodes } = this.#victims;
    const isWhole = meta.isUp && nodes.every((node) => node.isUp);
    if (!isWhole && /crash|restart|split|move/.test(kind)) return () => undefined;
    if (kind !== "clock jump") return befall(kind, this.#victims);
    // Neither leases nor sessions may end by a jump of the wall clock.
    for (const watch of this.#sessions) void watch.look();
    await this.#scheduler.run(BEFORE_A_JUMP_MS);
    const heal = await befall(kind, this.#victims);
    for (const watch of this.#sessions) void watch.look({ all: true });
    await this.#leases.look(this.#looked);
    return heal;
  }

  /** Lets time pass, and checks the invariants of every moment. */
  async #live(forMs: number): Promise<void> {
    const endMs = this.#scheduler.nowMs + forMs;
    const { random, people } = this.#victims;
    for (;;) {
      const restMs = endMs - this.#scheduler.nowMs;
      if (restMs <= 0) return;
      await this.#scheduler.run(Math.min(LOOK_EVERY_MS, restMs));
      checkHolders(this.#looked);
      await this.#leases.look(this.#looked);
      for (const watch of this.#sessions) if (random.chance(0.02)) void watch.look();
      if (!random.chance(0.08)) continue;
      const [owner, other] = [random.pick(people), random.pick(people)];
      if (owner === other) continue;
      if (random.chance(0.5)) void owner.share("/shared", other.email);
      else void owner.unshare("/shared", other.email);
    }
  }

  async #converge(kind: FaultKind): Promise<void> {
    const healedAtMs = this.#scheduler.nowMs;
    for (;;) {
      const open = await unconverged(this.#looked);
      const tookMs = this.#scheduler.nowMs - healedAtMs;
      if (open.length === 0) {
        this.#slowestMs = Math.max(this.#slowestMs, tookMs);
        this.#converged++;
        return;
      }
      if (tookMs > CONVERGED_WITHIN_MS) {
        this.#violation(`after ${kind}, two leases after its end: ${open.slice(0, 4).join("; ")}`);
        return;
      }
      await this.#scheduler.run(1_000);
    }
  }

  #burnZombies(): void {
    for (const node of this.#victims.nodes) node.buryZombies();
  }

  /**
   * Ends the users' work, reads all acknowledged files, compares sums, stops the servers and recounts their
   * data.
   */
  async finish(): Promise<void> {
    const { meta, nodes, people } = this.#victims;
    for (const person of people) await this.#scheduler.runUntil(person.end(), END_LIMIT_MS);
    await this.#scheduler.run(120_000);
    for (const person of people) await this.#scheduler.runUntil(person.verifyAll(), END_LIMIT_MS);
    await checkSums(this.#looked);
    await this.#checkShares();
    for (const person of people) person.close();
    for (const node of nodes) await node.stop();
    checkData(this.#looked);
    meta.kill(false);
  }

  /** Checks that sharees can list a shared folder, and that other users cannot. */
  async #checkShares(): Promise<void> {
    const { people } = this.#victims;
    for (const owner of people) {
      for (const other of people) {
        if (owner === other) continue;
        const isShared = this.#victims.nodes.some((node) =>
          node.look(({ storage }) =>
            storage.shares.pathsOf(owner.email, other.email).granted.includes("/shared"),
          ),
        );
        const can = await this.#scheduler.runUntil(other.canList(owner.email, "/shared"), END_LIMIT_MS);
        if (can !== isShared)
          this.#violation(
            `${other.email} ${can ? "sees" : "does not see"} what ${owner.email} ${isShared ? "shares" : "does not share"}`,
          );
      }
    }
  }

  bury(): void {
    const { meta, nodes, people } = this.#victims;
    this.#burnZombies();
    for (const server of [meta, ...nodes]) server.kill(false);
    for (const person of people) person.process.isAlive = false;
  }

  counts(): Record<string, number> {
    const { people } = this.#victims;
    const sum = (of: (person: Person) => number): number => people.reduce((all, one) => all + of(one), 0);
    return {
      faults: this.#faults,
      "converged heals": this.#converged,
      "slowest convergence s": Math.round(this.#slowestMs / 1_000),
      "acknowledged changes": sum((person) => person.acknowledged),
      "changes of unknown outcome": sum((person) => person.unknown),
      "changes refused by quota": sum((person) => person.refused),
      "verified reads": sum((person) => person.reads),
      "sessions tried": this.#sessions.reduce((all, watch) => all + watch.tried, 0),
      events: this.#scheduler.eventCount,
    };
  }
}
