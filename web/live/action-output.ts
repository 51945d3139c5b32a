// The output of an action: reads what exists, follows by the socket, and reads missed parts again.
import { useEffect, useState } from "react";
import type { z } from "zod";
import type { ActionRecord, outputReply } from "#wire/webapi/action-record.ts";
import type { OutputEntry } from "./actions.ts";
import { ApiProblem, call } from "./api.ts";
import { type OutputLine, OutputLines } from "./output-lines.ts";
import { queryClient } from "./query-client.ts";
import { followTopic, type TopicMessage } from "./topic-socket.ts";

const PAGE = 500;
/** Interval in which pieces are collected before they are drawn. */
const GATHER_MS = 100;
const RETRY_MS = 3_000;

/** The shown part of an action's output. */
export interface ShownOutput {
  readonly lines: readonly OutputLine[];
  /** Lines dropped at the front. */
  readonly dropped: number;
  readonly isComplete: boolean;
  readonly error: string | undefined;
}

const NOTHING: ShownOutput = { lines: [], dropped: 0, isComplete: false, error: undefined };

/** Follows an action's output to its end; another action needs a new mount. */
export function useOutput(id: string): ShownOutput {
  const [shown, setShown] = useState(NOTHING);
  useEffect(() => {
    const follower = new OutputFollower(id, setShown);
    return () => follower.stop();
  }, [id]);
  return shown;
}

type StateChange = Pick<ActionRecord, "id" | "state"> & {
  readonly targets: readonly Pick<ActionRecord["targets"][number], "node_id" | "state" | "exit_code">[];
};

/** One action's output: every piece once and in order. */
class OutputFollower {
  readonly #id: string;
  readonly #show: (shown: ShownOutput) => void;
  readonly #lines = new OutputLines();
  readonly #leave: () => void;
  readonly #stopping = new AbortController();
  #pending: OutputEntry[] = [];
  #lastSeq = 0;
  #isReading = false;
  #isAskedAgain = false;
  #isComplete = false;
  #error: string | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(id: string, show: (shown: ShownOutput) => void) {
    this.#id = id;
    this.#show = show;
    this.#leave = followTopic({
      request: () => ({ type: "subscribe", action_id: id, after_seq: this.#lastSeq }),
      onMessage: (message) => this.#take(message),
      onOpen: () => void this.#read(),
      onLost: () => void this.#read(),
    });
  }

  stop(): void {
    this.#stopping.abort();
    clearTimeout(this.#timer);
    this.#leave();
  }

  #take({ type, seq, data }: TopicMessage): void {
    if (type === "action.state") return changeRecord(data as StateChange);
    if (type === "action.done") {
      queryClient.setQueryData(["action", this.#id], data);
      return void this.#read();
    }
    if (type !== "action.output" || seq <= this.#lastSeq) return;
    const entry = data as Omit<OutputEntry, "seq" | "ts">;
    // A gap before this entry is read from the file.
    if (entry.after_seq !== this.#lastSeq) return void this.#read();
    this.#add([{ ...entry, seq, ts: 0 }]);
  }

  #add(entries: readonly OutputEntry[]): void {
    const fresh = entries.filter(({ seq }) => seq > this.#lastSeq);
    this.#lastSeq = fresh.at(-1)?.seq ?? this.#lastSeq;
    for (const entry of fresh) this.#pending.push(entry);
    this.#timer ??= setTimeout(() => this.#flush(), GATHER_MS);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#lines.append(this.#pending);
    this.#pending = [];
    this.#show({
      lines: this.#lines.lines,
      dropped: this.#lines.dropped,
      isComplete: this.#isComplete,
      error: this.#error,
    });
  }

  /** Reads from the last piece to the current end. */
  async #read(): Promise<void> {
    if (this.#isReading) {
      this.#isAskedAgain = true;
      return;
    }
    this.#isReading = true;
    const { signal } = this.#stopping;
    while (!signal.aborted && !this.#isComplete) {
      this.#isAskedAgain = false;
      try {
        const hadSome = await this.#readPage(signal);
        this.#error = undefined;
        if (!hadSome && !this.#isAskedAgain) break;
      } catch (error) {
        if (signal.aborted) break;
        const isRefused = error instanceof ApiProblem && error.status >= 400 && error.status < 500;
        this.#isComplete = isRefused;
        this.#error = isRefused ? error.message : "The console does not answer; trying again.";
        this.#flush();
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
    this.#isReading = false;
    if (signal.aborted) return;
    this.#flush();
    if (this.#isComplete) this.#leave();
  }

  async #readPage(signal: AbortSignal): Promise<boolean> {
    const search = `after_seq=${this.#lastSeq}&limit=${PAGE}`;
    const page = await call<z.infer<typeof outputReply>>(
      `/api/actions/${encodeURIComponent(this.#id)}/output?${search}`,
      { signal },
    );
    this.#add(page.entries);
    this.#isComplete = page.complete;
    return page.entries.length > 0;
  }
}

/** Applies a message's states to the cached record. */
function changeRecord(change: StateChange): void {
  queryClient.setQueryData<ActionRecord>(["action", change.id], (known) => {
    if (known === undefined) return known;
    const byNode = new Map(change.targets.map((target) => [target.node_id, target]));
    return {
      ...known,
      state: change.state,
      targets: known.targets.map((target) => ({ ...target, ...byNode.get(target.node_id) })),
    };
  });
}
