// Live output of actions on /ws/actions, with a replay of missed output for clients that reconnect (D8).

import { ProblemError } from "#console/http/route.ts";
import type { Hub } from "#console/live/hub.ts";
import type { Subscription, TopicSource } from "#console/live/live-requests.ts";
import type { TopicMessage } from "#console/live/live-stream.ts";
import { isUnfinished } from "#console/orchestration/action-history.ts";
import type { ActionOutput, OutputEntry } from "#console/orchestration/action-output.ts";
import type { ActionRecord } from "#wire/webapi/action-record.ts";

/** Dependencies of the topics. */
export interface ActionTopicsDeps {
  readonly hub: Pick<Hub, "publish">;
  readonly find: (id: string) => ActionRecord | undefined;
  readonly outputOf: (id: string) => ActionOutput | undefined;
}

/**
 * The topics of all actions. Messages carry the number of the newest entry before them; a client that has
 * missed more than memory holds reads GET /api/actions/{id}/output.
 */
export class ActionTopics implements TopicSource {
  readonly #deps: ActionTopicsDeps;

  constructor(deps: ActionTopicsDeps) {
    this.#deps = deps;
  }

  open(request: Subscription): ReturnType<TopicSource["open"]> {
    if (!("action_id" in request)) return undefined;
    const { action_id: id, after_seq: afterSeq } = request;
    if (this.#deps.find(id) === undefined) throw new ProblemError("NO_SUCH_ACTION", "no action has this id");
    return { topic: topicOf(id), backlog: () => this.#backlog(id, afterSeq ?? 0) };
  }

  /** Sends a changed state of an action or of one of its nodes. */
  state(record: ActionRecord, seq: number): void {
    this.#deps.hub.publish(topicOf(record.id), { type: "action.state", seq, data: stateOf(record) });
  }

  /** Sends an entry of output. */
  output(id: string, entry: OutputEntry): void {
    this.#deps.hub.publish(topicOf(id), { type: "action.output", seq: entry.seq, data: outputOf(id, entry) });
  }

  /** Sends the end of the output. */
  done(record: ActionRecord, seq: number): void {
    this.#deps.hub.publish(topicOf(record.id), { type: "action.done", seq, data: withoutOutput(record) });
  }

  #backlog(id: string, afterSeq: number): TopicMessage[] {
    const record = this.#deps.find(id);
    if (record === undefined) return [];
    const output = this.#deps.outputOf(id);
    const { entries, from } = output?.recent(afterSeq) ?? { entries: [], from: undefined };
    const seq = output?.newest ?? afterSeq;
    const state = { ...stateOf(record), ...(from === undefined ? {} : { resume_from_seq: from }) };
    return [
      { type: "action.state", seq: Math.min(afterSeq, seq), data: state },
      ...entries.map((entry) => ({ type: "action.output", seq: entry.seq, data: outputOf(id, entry) })),
      ...(output === undefined && !isUnfinished(record)
        ? [{ type: "action.done", seq, data: withoutOutput(record) }]
        : []),
    ];
  }
}

function topicOf(id: string): string {
  return `action:${id}`;
}

function stateOf({ id, state, targets }: ActionRecord): object {
  return {
    id,
    state,
    targets: targets.map((target) => ({
      node_id: target.node_id,
      state: target.state,
      exit_code: target.exit_code,
    })),
  };
}

function outputOf(id: string, { node_id, stream, data, after_seq }: OutputEntry): object {
  return { id, node_id, stream, data, after_seq };
}

function withoutOutput(record: ActionRecord): ActionRecord {
  const targets = record.targets.map((target) => ({ ...target, stdout: "", stderr: "" }));
  return { ...record, stdout: "", stderr: "", targets };
}
