// Reads and follows the logs of services on nodes (spec 4.1, decision D10).
import type { Clock } from "#base/clock.ts";
import { LOG_LINES_MAX, LOG_LINES_MIN } from "#base/limits.ts";
import type { Random } from "#base/random.ts";
import type { SshNode } from "#base/ssh-node.ts";
import { ulid } from "#base/ulid.ts";
import { actionRequest, type Service } from "#wire/webapi/action-request.ts";
import type { LogLine, LogTail } from "#wire/webapi/log-tail.ts";
import { followedLog, planFor } from "./action-arguments.ts";
import { ActionRefusal } from "./action-refusal.ts";
import type { TargetRunner } from "./action-run.ts";
import { LOG_FOLLOW_MAX_MS, LOG_TAIL_MAX_BYTES, type LocalLogs, problemOf } from "./local-logs.ts";
import { LogLines, type LogSource } from "./log-lines.ts";
import type { RunStep } from "./remote-step.ts";
import type { TargetResult } from "./target-run.ts";

/** Time limit for the last lines of a log (decision D10). */
const LOG_TAIL_LIMIT_MS = 10_000;
/** Concurrent reads of last lines. */
const LOG_TAILS_MAX = 10;
/** Concurrently followed logs. */
const LOG_FOLLOWS_MAX = 10;

/** Dependencies of the reader. */
export interface LogReaderDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly runner: TargetRunner;
  /** Files of this machine, read without asking a node. */
  readonly local: LocalLogs;
  /** The target of a node's id. Throws ActionRefusal for one that cannot be reached. */
  readonly nodeOf: (nodeId: string) => Promise<SshNode>;
}

/** Lines of a log, and the result of reading them. */
export interface ReadLog {
  readonly tail: LogTail;
  readonly result: Pick<TargetResult, "state" | "message">;
}

/** All log reading of a console. */
export class LogReader {
  readonly #deps: LogReaderDeps;
  readonly #follows = new Set<AbortController>();
  readonly #closed = new AbortController();
  #tails = 0;

  constructor(deps: LogReaderDeps) {
    this.#deps = deps;
  }

  /**
   * The last lines of a service on a node, 10 to 1000 of them; `logTailQuery` clamps. Throws ActionRefusal for
   * too many concurrent reads; failures of the node are in the result.
   */
  async tail(nodeId: string, service: Service, lines: number): Promise<ReadLog> {
    if (this.#tails >= LOG_TAILS_MAX)
      throw new ActionRefusal("busy", `${LOG_TAILS_MAX} logs are being read already`);
    this.#tails++;
    try {
      if (this.#deps.local.has(nodeId, service)) return await this.#tailHere(nodeId, service, lines);
      return await this.#tailThere(await this.#deps.nodeOf(nodeId), service, lines);
    } finally {
      this.#tails--;
    }
  }

  /**
   * Sends new lines until the returned function is called, for at most an hour. Throws ActionRefusal for too
   * many followed logs or an unreachable node. `onEnd` is called once, with a sentence unless the caller
   * ended it.
   */
  async follow(nodeId: string, service: Service, to: LogFollower): Promise<() => void> {
    if (this.#follows.size >= LOG_FOLLOWS_MAX)
      throw new ActionRefusal("busy", `${LOG_FOLLOWS_MAX} logs are followed already`);
    const abort = new AbortController();
    this.#follows.add(abort);
    const onEnd = (why: string | undefined): void => {
      this.#follows.delete(abort);
      to.onEnd(why);
    };
    try {
      if (this.#deps.local.has(nodeId, service)) {
        const stop = this.#deps.local.follow(nodeId, service, { ...to, onEnd });
        abort.signal.addEventListener("abort", stop, { once: true });
      } else
        await this.#followThere(await this.#deps.nodeOf(nodeId), service, abort.signal, { ...to, onEnd });
    } catch (error) {
      this.#follows.delete(abort);
      throw error;
    }
    return () => abort.abort();
  }

  /** Ends all reads. */
  close(): void {
    this.#closed.abort();
    for (const abort of this.#follows) abort.abort();
  }

  async #tailHere(nodeId: string, service: Service, lines: number): Promise<ReadLog> {
    try {
      const { lines: kept, truncated } = await this.#deps.local.tail(nodeId, service, lines);
      return {
        tail: tailOf({ nodeId, service, source: "file", lines: kept, isCut: truncated }),
        result: { state: "succeeded" },
      };
    } catch (error) {
      return {
        tail: tailOf({ nodeId, service, source: "file", lines: [], isCut: false }),
        result: { state: "failed", message: problemOf(error) },
      };
    }
  }

  /** Lines of the journal, or of the file where the journal is missing or has none of this service. */
  async #tailThere(node: SshNode, service: Service, lines: number): Promise<ReadLog> {
    const [first, ...others] = sourcesOf(node, service);
    let read = await this.#read(node, service, { lines, source: first });
    for (const source of others) {
      if (!isEmpty(read)) return read;
      const next = await this.#read(node, service, { lines, source });
      if (next.result.state === "succeeded" || read.result.state !== "succeeded") read = next;
    }
    if (first === "file" || others.length > 0 || !isEmpty(read) || read.result.state === "succeeded")
      return read;
    const { message = "the journal could not be read" } = read.result;
    const hint = `where there is no journal, the log file is named with grove node add -replace ${node.id} … -services FILE`;
    return { ...read, result: { ...read.result, message: `${message}; ${hint}` } };
  }

  async #followThere(node: SshNode, service: Service, signal: AbortSignal, to: LogFollower): Promise<void> {
    const sources = sourcesOf(node, service);
    let source = sources[0];
    if (sources.length > 1 && isEmpty(await this.#read(node, service, { lines: LOG_LINES_MIN, source })))
      source = "file";
    const step = stepOf(node, service, LOG_LINES_MIN, source);
    const cutter = new LogLines(source);
    void this.#run(
      node,
      { ...step, argv: followedLog(step.argv) },
      {
        timeoutMs: LOG_FOLLOW_MAX_MS,
        signal,
        onOutput: (stream, piece) => {
          if (stream === "stdout" && !signal.aborted) to.onLines(cutter.push(piece));
        },
      },
    )
      .then(
        ({ message, state }) => (signal.aborted ? undefined : (message ?? state.replaceAll("_", " "))),
        () => "an error of the console",
      )
      .then(to.onEnd);
  }

  async #read(
    node: SshNode,
    service: Service,
    { lines, source }: { readonly lines: number; readonly source: LogSource },
  ): Promise<ReadLog> {
    const cutter = new LogLines(source);
    const kept: LogLine[] = [];
    let [bytes, isCut, complaint] = [0, false, ""];
    const keep = (line: LogLine): void => {
      kept.push(line);
      bytes += Buffer.byteLength(line.message) + 1;
      while (bytes > LOG_TAIL_MAX_BYTES || kept.length > LOG_LINES_MAX) {
        bytes -= Buffer.byteLength(kept.shift()?.message ?? "") + 1;
        isCut = true;
      }
    };
    const result = await this.#run(node, stepOf(node, service, lines, source), {
      timeoutMs: LOG_TAIL_LIMIT_MS,
      signal: this.#closed.signal,
      onOutput: (stream, piece) => {
        if (stream === "stderr") complaint = (complaint + piece.toString("utf8")).slice(-1_000);
        else for (const line of cutter.push(piece)) keep(line);
      },
    });
    for (const line of cutter.end()) keep(line);
    const said = complaint.trim();
    return {
      tail: tailOf({ nodeId: node.id, service, source, lines: kept, isCut }),
      result: said === "" || result.message !== undefined ? result : { ...result, message: said },
    };
  }

  #run(
    node: SshNode,
    step: RunStep,
    options: Omit<Parameters<TargetRunner["run"]>[2], "actionId">,
  ): Promise<TargetResult> {
    const { clock, random, runner } = this.#deps;
    return runner.run(node, [step], { actionId: `log-${ulid(clock, random)}`, ...options });
  }
}

/** Receiver of new lines. */
export interface LogFollower {
  readonly onLines: (lines: readonly LogLine[]) => void;
  readonly onEnd: (why: string | undefined) => void;
}

function tailOf(log: {
  readonly nodeId: string;
  readonly service: Service;
  readonly source: LogSource;
  readonly lines: LogLine[];
  readonly isCut: boolean;
}): LogTail {
  const { nodeId, service, source, lines, isCut } = log;
  const text = lines.map(({ message }) => `${message}\n`).join("");
  return { node_id: nodeId, service, unit: `svc-${service}`, source, lines, text, truncated: isCut };
}

/** True when the node has answered without lines: another source may have some. */
function isEmpty({ tail, result }: ReadLog): boolean {
  return tail.lines.length === 0 && (result.state === "succeeded" || result.state === "failed");
}

/** Sources of a service's lines, the likelier first; only a service manager writes to the journal. */
function sourcesOf(node: SshNode, service: Service): readonly [LogSource, ...LogSource[]] {
  const { logFile, argv } = node.services[service] ?? {};
  if (logFile === undefined) return ["journal"];
  return argv === undefined ? ["journal", "file"] : ["file"];
}

/** The step of the action `logs`, used by both. */
function stepOf(node: SshNode, service: Service, lines: number, source: LogSource): RunStep {
  const request = actionRequest.parse({ action: "logs", nodes: [node.id], service, lines });
  const target = source === "file" ? node : { ...node, services: {} };
  const [step] = planFor(request, target).steps;
  if (step === undefined || step.kind === "daemon")
    throw new TypeError("a log is read by a program that ends");
  return step;
}
