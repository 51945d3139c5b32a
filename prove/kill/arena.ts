// One FileServer with its users and their lanes: put to work, killed, restarted and compared.
import { setTimeout as sleep } from "node:timers/promises";
import { type FileServerProcess, freeFileServerAddress, startFileServer } from "#prove/file-server.ts";
import type { SeededRandom } from "#prove/seeded-random.ts";
import { checkStorage } from "#storage/check/check-storage.ts";
import { GrpcChannel } from "#wire/grpc/client.ts";
import { ContentMaker } from "./content.ts";
import { Lane, type LaneEnd, type SignedIn } from "./lane.ts";
import { fileServerClient } from "./lane-steps.ts";

const USERS = ["alice@example.com", "bob@example.com", "carol@example.com"];
const ADMIN = "root@example.com";
const LANES_PER_USER = 3;
const QUOTA_BYTES = 2n ** 40n;
const ACKNOWLEDGEMENTS_MAX = 40;
const STUCK_MS = 20_000;
const START_KILL_WITHIN_MS = 600;
const CALL_MS = 20_000;
/** Errors of a call whose server is gone. */
const GONE = /UNAVAILABLE|CANCELLED|UNKNOWN|INTERNAL|connection|reset|closed|ECONN/i;

/** A note of the check that is no leftover. */
const UNFINISHED = /unfinished uploads that their senders may go on with/;

/** Faults found in a round, in words. */
export type Problems = string[];

/** Parts of an arena. */
export interface ArenaDeps {
  /** A folder to be made. */
  readonly data: string;
  readonly random: SeededRandom;
  /** Environment of its servers. */
  readonly env: Readonly<Record<string, string>>;
}

/** A data directory with one server after the other. */
export class Arena {
  readonly lanes: readonly Lane[];
  readonly #data: string;
  readonly #address: string;
  readonly #random: SeededRandom;
  readonly #env: Readonly<Record<string, string>>;
  readonly #quotas = new Map<string, Set<bigint>>();
  #server: FileServerProcess | undefined;
  #channels: GrpcChannel[] = [];
  #users = new Map<string, SignedIn>();
  #acknowledged = 0;
  #isKilling = false;
  acknowledgedQuotas = 0;

  private constructor({ data, random, env }: ArenaDeps, address: string) {
    this.#data = data;
    this.#address = address;
    this.#random = random;
    this.#env = { ...env, SVC_ADMIN_EMAIL: ADMIN };
    const contents = new ContentMaker(random.fork("contents"));
    this.lanes = USERS.flatMap((user, number) =>
      Array.from({ length: LANES_PER_USER }, (_, index) => {
        const folder = `/w${number}${index}`;
        const others = USERS.filter((other) => other !== user);
        return new Lane({
          folder,
          user,
          others,
          random: random.fork(folder),
          contents: contents.fork(folder),
        });
      }),
    );
  }

  /** Makes an arena without a server. */
  static async make(deps: ArenaDeps): Promise<Arena> {
    return new Arena(deps, await freeFileServerAddress());
  }

  /** Calls acknowledged so far. */
  get acknowledged(): number {
    return this.lanes.reduce((sum, lane) => sum + lane.acknowledged, this.acknowledgedQuotas);
  }

  /** Starts the server, signs all users in, and compares all listings and all changed content. */
  async begin(): Promise<Problems> {
    const flags = ["--register-per-minute", "100000", "--streams-per-user", "64", "--log-level", "error"];
    this.#server = startFileServer({ data: this.#data, address: this.#address, flags, env: this.#env });
    await this.#server.serves;
    this.#isKilling = false;
    this.#channels = [...USERS, ADMIN].map(() => new GrpcChannel({ addresses: [this.#address] }));
    const signedIn = await Promise.all(
      [...USERS, ADMIN].map(async (user, index) => {
        const client = fileServerClient(this.#channels[index] as GrpcChannel);
        const settings = {
          metadata: { authorization: `Bearer mock-jwt.${user}` },
          waitForReady: true,
          timeoutMs: CALL_MS,
        };
        const { sessionToken } = await client.registerClient({ clientId: "kill" }, settings);
        return [user, { client, metadata: { authorization: `Bearer ${sessionToken}` } }] as const;
      }),
    );
    this.#users = new Map(signedIn);
    const found = await Promise.all(this.lanes.map((lane) => lane.settle(this.#user(lane.user))));
    const counted = await Promise.all(USERS.map((user) => this.#compareCounters(user)));
    return [...found, ...counted].filter((problem) => problem !== undefined);
  }

  /** Lets all lanes work for a while, then kills the server in the middle of it. */
  async workAndKill(): Promise<Problems> {
    const server = this.#server;
    if (server === undefined) throw new Error("nothing runs");
    const wanted = this.#acknowledged + 1 + this.#random.below(ACKNOWLEDGEMENTS_MAX);
    const enough = Promise.withResolvers<void>();
    const onAcknowledged = (): void => {
      if (++this.#acknowledged >= wanted) enough.resolve();
    };
    const ends = this.lanes.map((lane) => lane.work(this.#user(lane.user), onAcknowledged));
    const quotas = this.#changeQuotas(onAcknowledged);
    const all = Promise.all([...ends, quotas]);
    const stuck = sleep(STUCK_MS, undefined, { ref: false }).then(() => "stuck");
    const how = await Promise.race([enough.promise, all.then(() => "ended"), stuck]);
    // Not always right after an acknowledgement.
    await sleep(this.#random.below(8));
    this.#isKilling = true;
    server.child.kill("SIGKILL");
    await server.ended;
    const problems = (await all).flatMap((end) => this.#wrongEnd(end));
    for (const channel of this.#channels) channel.close();
    if (how === "stuck") problems.push(`no call was acknowledged for ${STUCK_MS} ms`);
    return problems;
  }

  /** Starts a server and kills it before, or right after, it serves. */
  async killStart(): Promise<void> {
    const server = startFileServer({ data: this.#data, address: this.#address, env: this.#env });
    server.serves.catch(() => undefined);
    await Promise.race([
      server.serves.catch(() => undefined),
      sleep(this.#random.below(START_KILL_WITHIN_MS)),
    ]);
    server.child.kill("SIGKILL");
    await server.ended;
  }

  /** Returns the findings of the check of the data directory, while no server runs. */
  check(deep: boolean): Problems {
    return [...checkStorage(this.#data, { repair: false, deep }).differences];
  }

  /** After begin: reads everything again, stops in good order, and checks every byte on the disk. */
  async end(): Promise<Problems> {
    const problems: Problems = [];
    for (const lane of this.lanes) {
      const wrong = await lane.readAll(this.#user(lane.user));
      if (wrong !== undefined) problems.push(wrong);
    }
    for (const channel of this.#channels) channel.close();
    this.#server?.child.kill("SIGTERM");
    const code = await this.#server?.ended;
    if (code !== 0) problems.push(`it ended with ${String(code)}: ${this.#server?.log() ?? ""}`);
    const report = checkStorage(this.#data, { repair: false, deep: true });
    const notes = report.notes.filter((note) => !UNFINISHED.test(note));
    return [...problems, ...report.differences, ...notes];
  }

  /** Ends the server, if one runs. */
  async drop(): Promise<void> {
    for (const channel of this.#channels) channel.close();
    this.#server?.child.kill("SIGKILL");
    await this.#server?.ended;
  }

  #user(name: string): SignedIn {
    const user = this.#users.get(name);
    if (user === undefined) throw new Error(`${name} is not signed in`);
    return user;
  }

  /** Sets one quota after the other as the administrator, so large that no upload is refused. */
  async #changeQuotas(onAcknowledged: () => void): Promise<LaneEnd> {
    const { client, metadata } = this.#user(ADMIN);
    for (;;) {
      const username = this.#random.pick(USERS);
      const quotaBytes = QUOTA_BYTES + BigInt(this.#random.below(2 ** 31));
      this.#quotas.set(username, new Set(this.#quotas.get(username)).add(quotaBytes));
      try {
        const { success, error } = await client.setQuota({ username, quotaBytes }, { metadata });
        if (!success) return { kind: "set quota", error: new Error(error) };
      } catch (error) {
        return { kind: "set quota", error };
      }
      this.#quotas.set(username, new Set([quotaBytes]));
      this.acknowledgedQuotas++;
      onAcknowledged();
      await sleep(this.#random.below(20));
    }
  }

  /** Compares the user's counters and quota with those of the lanes. */
  async #compareCounters(user: string): Promise<string | undefined> {
    const { client, metadata } = this.#user(user);
    const { liveBytes, trashBytes, stagingBytes, usedBytes, quotaBytes } = await client.getQuota(
      {},
      { metadata },
    );
    const sums = { live: 0n, trash: 0n, staging: 0n };
    for (const { bytes } of this.lanes.filter((lane) => lane.user === user)) {
      sums.live += bytes.live;
      sums.trash += bytes.trash;
      sums.staging += bytes.staging;
    }
    const found = [liveBytes, trashBytes, stagingBytes, usedBytes].join(" ");
    const expected = [sums.live, sums.trash, sums.staging, sums.live + sums.trash + sums.staging].join(" ");
    if (found !== expected)
      return `${user}: live, trash, staging, used are counted as ${found} instead of ${expected}`;
    const quotas = this.#quotas.get(user);
    this.#quotas.set(user, new Set([quotaBytes]));
    if (quotas === undefined || quotas.has(quotaBytes)) return undefined;
    return `${user}: the quota is ${quotaBytes} instead of ${[...quotas].join(" or ")}`;
  }

  /** A call may fail because its server is gone, and for no other reason. */
  #wrongEnd({ kind, error }: LaneEnd): string[] {
    const text = String(error);
    return this.#isKilling && GONE.test(text) ? [] : [`${kind} failed: ${text}`];
  }
}
