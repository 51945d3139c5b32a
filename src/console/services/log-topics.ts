// Followed logs on /ws/actions: one program on a node per log, ended with its last follower (D8, D10).
import type { Clock } from "#base/clock.ts";
import { ProblemError } from "#console/http/route.ts";
import type { Hub } from "#console/live/hub.ts";
import type { Subscription, TopicSource } from "#console/live/live-requests.ts";
import { ActionRefusal } from "#console/orchestration/action-refusal.ts";
import type { LogReader } from "#console/orchestration/log-reader.ts";
import { SERVICES, type Service } from "#wire/webapi/action-request.ts";
import type { LogLine } from "#wire/webapi/log-tail.ts";

/** Interval between two messages of one log. */
const LOG_EVENT_INTERVAL_MS = 100;
/** Pending lines of a followed log; beyond them the oldest are dropped and counted. */
const LOG_PENDING_LINES = 1_000;

/** Dependencies of the topics. */
export interface LogTopicsDeps {
  readonly clock: Clock;
  readonly hub: Pick<Hub, "publish">;
  readonly reader: Pick<LogReader, "follow">;
}

interface Follow {
  lines: LogLine[];
  dropped: number;
  seq: number;
  stop: () => void;
  isOver: boolean;
}

/** The topics of all logs. */
export class LogTopics implements TopicSource {
  readonly #deps: LogTopicsDeps;
  readonly #follows = new Map<string, Follow>();

  constructor(deps: LogTopicsDeps) {
    this.#deps = deps;
  }

  open(request: Subscription): ReturnType<TopicSource["open"]> {
    if (!("node" in request)) return undefined;
    const { node, service } = request;
    const known = SERVICES.find((each) => each === service);
    if (known === undefined)
      throw new ProblemError("REQUEST_INVALID", `a service is one of ${SERVICES.join(", ")}`);
    const topic = `log:${node}:${known}`;
    return {
      topic,
      backlog: () => {
        if (!this.#follows.has(topic)) void this.#begin(topic, node, known);
        return [];
      },
    };
  }

  idle(topic: string): void {
    this.#end(topic);
  }

  async #begin(topic: string, nodeId: string, service: Service): Promise<void> {
    const { clock, hub, reader } = this.#deps;
    const about = { node_id: nodeId, service };
    const follow: Follow = { lines: [], dropped: 0, seq: 0, stop: () => undefined, isOver: false };
    this.#follows.set(topic, follow);
    const publish = (data: object): void =>
      hub.publish(topic, { type: "log.lines", seq: ++follow.seq, data });
    const flush = (): void => {
      if (follow.lines.length === 0) return;
      const { lines, dropped } = follow;
      [follow.lines, follow.dropped] = [[], 0];
      publish({ ...about, lines, dropped });
    };
    const over = (why: string | undefined): void => {
      flush();
      if (why !== undefined) publish({ ...about, lines: [], dropped: 0, ended: why });
      this.#end(topic, follow);
    };
    try {
      const stopReading = await reader.follow(nodeId, service, {
        onLines: (lines) => {
          follow.lines.push(...lines);
          const tooMany = follow.lines.length - LOG_PENDING_LINES;
          if (tooMany > 0) follow.dropped += follow.lines.splice(0, tooMany).length;
        },
        onEnd: over,
      });
      if (follow.isOver) return stopReading();
      const stopTicking = clock.every(LOG_EVENT_INTERVAL_MS, flush);
      follow.stop = () => {
        stopTicking();
        stopReading();
      };
    } catch (error) {
      over(error instanceof ActionRefusal ? error.message : "the metadata store does not answer");
    }
  }

  #end(topic: string, only?: Follow): void {
    const follow = this.#follows.get(topic);
    if (follow === undefined || (only !== undefined && follow !== only)) return;
    this.#follows.delete(topic);
    follow.isOver = true;
    follow.stop();
  }
}
