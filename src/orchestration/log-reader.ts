// Reads the logs of services on nodes: their last lines, and lines as they are written (spec 4.1, decision D10).
import type { Clock } from "#base/clock.ts";
import {
  LOG_FOLLOW_MAX_MS,
  LOG_FOLLOWS_MAX,
  LOG_LINES_MAX,
  LOG_LINES_MIN,
  LOG_TAIL_LIMIT_MS,
  LOG_TAIL_MAX_BYTES,
  LOG_TAILS_MAX,
} from "#base/limits.ts";
import type { Random } from "#base/random.ts";
import type { SshNode } from "#base/ssh-node.ts";
import { ulid } from "#base/ulid.ts";
import { actionRequest, type Service } from "#webapi/action-request.ts";
import type { LogLine, LogTail } from "#webapi/log-tail.ts";
import { planFor } from "./action-arguments.ts";
import { ActionRefusal } from "./action-refusal.ts";
import type { TargetRunner } from "./action-run.ts";
import { LogLines, type LogSource } from "./log-lines.ts";
import type { RunStep } from "./remote-step.ts";
import type { TargetResult } from "./target-run.ts";

/** What reading needs. */
export interface LogReaderDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly runner: TargetRunner;
}

/** All reading of logs of a console. */
export class LogReader {
  readonly #deps: LogReaderDeps;
  readonly #follows = new Set<AbortController>();
  readonly #closed = new AbortController();
  #tails = 0;

  constructor(deps: LogReaderDeps) {
    this.#deps = deps;
  }

  /** The last lines of a service on a node; `lines` is clamped to 10 to 1000. Throws ActionRefusal when too many read already; what the node does is in the result. */
  async tail(
    node: SshNode,
    service: Service,
    lines: number,
  ): Promise<{ readonly tail: LogTail; readonly result: TargetResult }> {
    if (this.#tails >= LOG_TAILS_MAX)
      throw new ActionRefusal("busy", `${LOG_TAILS_MAX} logs are being read already`);
    this.#tails++;
    try {
      const { step, source } = logStep(
        node,
        service,
        Math.min(Math.max(lines, LOG_LINES_MIN), LOG_LINES_MAX),
      );
      const cutter = new LogLines(source);
      const kept: LogLine[] = [];
      let [bytes, isCut, complaint] = [0, false, ""];
      const result = await this.#run(node, step, {
        timeoutMs: LOG_TAIL_LIMIT_MS,
        signal: this.#closed.signal,
        onOutput: (stream, piece) => {
          if (stream === "stderr") complaint = (complaint + piece.toString("utf8")).slice(-1_000);
          else for (const line of cutter.push(piece)) keep(line);
        },
      });
      for (const line of cutter.end()) keep(line);
      function keep(line: LogLine): void {
        kept.push(line);
        bytes += Buffer.byteLength(line.message) + 1;
        while (bytes > LOG_TAIL_MAX_BYTES || kept.length > LOG_LINES_MAX) {
          bytes -= Buffer.byteLength(kept.shift()?.message ?? "") + 1;
          isCut = true;
        }
      }
      const text = kept.map(({ message }) => `${message}\n`).join("");
      const tail = {
        node_id: node.id,
        service,
        unit: `svc-${service}`,
        source,
        lines: kept,
        text,
        truncated: isCut,
      };
      const said = complaint.trim();
      return {
        tail,
        result: said === "" || result.message !== undefined ? result : { ...result, message: said },
      };
    } finally {
      this.#tails--;
    }
  }

  /**
   * Tells lines as they are written until the answer is called, for an hour at most. Throws ActionRefusal when too many are followed;
   * `onEnd` is called once, with a sentence when it was not asked for.
   */
  follow(
    node: SshNode,
    service: Service,
    to: {
      readonly onLines: (lines: readonly LogLine[]) => void;
      readonly onEnd: (why: string | undefined) => void;
    },
  ): () => void {
    if (this.#follows.size >= LOG_FOLLOWS_MAX)
      throw new ActionRefusal("busy", `${LOG_FOLLOWS_MAX} logs are followed already`);
    const { step, source } = logStep(node, service, LOG_LINES_MIN);
    const abort = new AbortController();
    this.#follows.add(abort);
    const cutter = new LogLines(source);
    const followed = { ...step, argv: following(step.argv, source) };
    void this.#run(node, followed, {
      timeoutMs: LOG_FOLLOW_MAX_MS,
      signal: abort.signal,
      onOutput: (stream, piece) => {
        if (stream === "stdout" && !abort.signal.aborted) to.onLines(cutter.push(piece));
      },
    })
      .then(
        ({ message, state }) => (abort.signal.aborted ? undefined : (message ?? state.replaceAll("_", " "))),
        () => "an error of the console",
      )
      .then((why) => {
        this.#follows.delete(abort);
        to.onEnd(why);
      });
    return () => abort.abort();
  }

  /** Ends all that are read and followed. */
  close(): void {
    this.#closed.abort();
    for (const abort of this.#follows) abort.abort();
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

/** The step of the action `logs`, so that both read the same. */
function logStep(
  node: SshNode,
  service: Service,
  lines: number,
): { readonly step: RunStep; readonly source: LogSource } {
  const request = actionRequest.parse({ action: "logs", nodes: [node.id], service, lines });
  const [step] = planFor(request, node).steps;
  if (step === undefined || step.kind === "daemon")
    throw new TypeError("a log is read by a program that ends");
  return { step, source: step.argv[0] === "tail" ? "file" : "journal" };
}

function following(argv: readonly string[], source: LogSource): readonly string[] {
  // A file may be replaced by its rotation.
  return source === "file" ? ["tail", "-F", ...argv.slice(1)] : [...argv, "-f"];
}
