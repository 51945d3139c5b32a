// A console that gathers the audit logs of fake nodes.
import assert from "node:assert/strict";
import { cp } from "node:fs/promises";
import type { AuditAct } from "#base/audit-act.ts";
import { silentLogger } from "#base/log.ts";
import type { Occurrence } from "#console/alerts/condition.ts";
import { nodeReading, testCluster } from "#console/cluster/cluster-state.fixture.ts";
import { PollError } from "#console/cluster/poll-error.ts";
import { auditRoutes } from "#console/routes/audit-routes.ts";
import { AUDIT_GATHER_INTERVAL_MS, AuditGathering } from "#console/services/audit-gathering.ts";
import type { FoundRestore } from "#console/services/restored-node.ts";
import { AuditCopies } from "#security/audit/audit-copies.ts";
import { CHAIN_START, type ChainHead, lineAfter } from "#security/audit/audit-line.ts";
import { AuditLog } from "#security/audit/audit-log.ts";
import { restoreAct } from "#security/audit/restore-line.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import type { AuditEntry } from "#wire/webapi/audit.ts";
import { type AppUnderTest, startApp } from "./app.fixture.ts";

/** Time of the restored backup. */
export const TAKEN_MS: number = Date.UTC(2026, 10, 22, 20, 28);

/** A fake node's log that answers like a FileServer's listener. */
export class FakeLog {
  lines: string[] = [];
  #head: ChainHead = CHAIN_START;

  add(act: AuditAct["act"], subject: string, actor = "bob@example.com"): void {
    const line = lineAfter(
      this.#head,
      { act, actor, subject, detail: { bytes: 5n } },
      Date.UTC(2026, 8, 21) + this.lines.length * 1_000,
    );
    this.lines.push(line.text);
    this.#head = line.head;
  }

  /** The log after the restore of a backup made now. */
  restored(by: { backup: string; upTo?: number }): FakeLog {
    const other = new FakeLog();
    other.lines = [...this.lines];
    other.#head = this.#head;
    const act = restoreAct(
      { backup: by.backup, takenAtMs: TAKEN_MS, upTo: by.upTo ?? this.lines.length },
      "root",
    );
    const line = lineAfter(this.#head, act, TAKEN_MS + 3_600_000);
    other.lines.push(line.text);
    other.#head = line.head;
    return other;
  }

  /** Skips line numbers, as a power cut may. */
  skip(count: number): number {
    this.#head = { ...this.#head, seq: this.#head.seq + count };
    return this.#head.seq;
  }

  answer(after: number, limit = 3): string {
    const seqOf = (line: string): number => (JSON.parse(line) as { seq: number }).seq;
    const entries = this.lines.filter((line) => seqOf(line) > after).slice(0, limit);
    const next = entries.map(seqOf).at(-1) ?? after;
    const last = this.lines.map(seqOf).at(-1) ?? 0;
    return `{"entries":[${entries.join(",\n")}],"next_after":${next},"head_seq":${last},"complete":${next >= last}}`;
  }
}

/** Gathering under test, with its routes. */
export interface GatheringUnderTest extends AppUnderTest {
  readonly dataFolder: string;
  readonly own: AuditLog;
  readonly copies: AuditCopies;
  readonly gathering: AuditGathering;
  /** By node; tests may replace a log. */
  readonly logs: Map<string, FakeLog>;
  readonly raised: Occurrence[];
  readonly restored: FoundRestore[];
  readonly asked: string[];
  /** By node: an answer in place of its log. */
  readonly lies: Map<string, string | PollError>;
  readonly clusterState: ReturnType<typeof testCluster>["clusterState"];
  /** Polls every node and waits until the lines are on disk. */
  round(): Promise<void>;
  list(query?: string): Promise<{ entries: AuditEntry[]; next_cursor: string | null }>;
}

/** Starts it over nodes of these ids; `ends` receives its cleanup. */
export async function startGathering(
  ends: (() => Promise<unknown>)[],
  ...ids: readonly string[]
): Promise<GatheringUnderTest> {
  return await startGatheringIn(scratchFolder("grove-gather-"), ends, ...ids);
}

/** The next console, with the files that a kill now would leave; the previous one keeps its own. */
export async function startAfterKill(
  { dataFolder, copies }: GatheringUnderTest,
  ends: (() => Promise<unknown>)[],
  ...ids: readonly string[]
): Promise<GatheringUnderTest> {
  await copies.flush();
  const left = scratchFolder("grove-gather-");
  await cp(dataFolder, left, { recursive: true });
  return await startGatheringIn(left, ends, ...ids);
}

async function startGatheringIn(
  dataFolder: string,
  ends: (() => Promise<unknown>)[],
  ...ids: readonly string[]
): Promise<GatheringUnderTest> {
  const { clusterState, clock } = testCluster(...ids);
  const own = await AuditLog.open({ dataFolder, clock, log: silentLogger });
  const copies = await AuditCopies.open({ dataFolder, clock, log: silentLogger });
  const logs = new Map(ids.map((id) => [id, new FakeLog()]));
  const raised: Occurrence[] = [];
  const restored: FoundRestore[] = [];
  const asked: string[] = [];
  /** By node: an answer in place of its log. */
  const lies = new Map<string, string | PollError>();
  const gathering = new AuditGathering({
    copies,
    own,
    cluster: clusterState,
    addresses: { target: (id) => ({ ip: id, port: 1, host: id }) },
    http: {
      async get({ host }, { path }) {
        asked.push(`${host} ${path}`);
        const lie = lies.get(host);
        if (lie instanceof PollError) throw lie;
        const log = logs.get(host) ?? new FakeLog();
        const body = Buffer.from(lie ?? log.answer(Number(/after=(\d+)/.exec(path)?.[1])));
        return { body, etag: undefined };
      },
    },
    audit: (act) => own.append(act),
    onBroken: (occurrence) => raised.push(occurrence),
    onRestored: (found) => restored.push(found),
    clock,
    log: silentLogger,
  });
  const app = await startApp((plugged) => auditRoutes(plugged, { copies, gathering }));
  ends.push(async () => {
    clusterState.close();
    gathering.close();
    await app.close();
    await copies.close();
    await own.close();
  });
  return {
    ...app,
    dataFolder,
    own,
    copies,
    gathering,
    logs,
    raised,
    restored,
    asked,
    lies,
    clock,
    clusterState,
    /** Polls every node and waits until the lines are on disk. */
    async round() {
      clock.advance(AUDIT_GATHER_INTERVAL_MS);
      for (const id of ids) clusterState.answered(id, nodeReading());
      for (let i = 0; i < 200; i++) await new Promise(setImmediate);
      await copies.flush();
    },
    async list(query = ""): Promise<{ entries: AuditEntry[]; next_cursor: string | null }> {
      const { status, json, text } = await app.askAsOperator(`/api/audit${query}`);
      assert.equal(status, 200, text);
      return json as { entries: AuditEntry[]; next_cursor: string | null };
    },
  };
}
