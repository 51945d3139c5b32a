// Live state of rollouts on /ws/actions: the whole record at each change, with its change count (D8).

import { ProblemError } from "#console/http/route.ts";
import type { Hub } from "#console/live/hub.ts";
import type { Subscription, TopicSource } from "#console/live/live-requests.ts";
import type { TopicMessage } from "#console/live/live-stream.ts";
import type { RolloutRecord } from "#wire/webapi/rollout.ts";

/** Dependencies of the topics. */
export interface RolloutTopicsDeps {
  readonly hub: Pick<Hub, "publish">;
  readonly find: (id: string) => RolloutRecord | undefined;
}

/** The topics of all rollouts. */
export class RolloutTopics implements TopicSource {
  readonly #deps: RolloutTopicsDeps;

  constructor(deps: RolloutTopicsDeps) {
    this.#deps = deps;
  }

  open(request: Subscription): ReturnType<TopicSource["open"]> {
    if (!("rollout_id" in request)) return undefined;
    const { rollout_id: id } = request;
    const { find } = this.#deps;
    if (find(id) === undefined) throw new ProblemError("NO_SUCH_ROLLOUT", "no rollout has this id");
    return {
      topic: topicOf(id),
      backlog: () => {
        const record = find(id);
        return record === undefined ? [] : [stateOf(record)];
      },
    };
  }

  /** Sends a changed record. */
  state(record: RolloutRecord): void {
    this.#deps.hub.publish(topicOf(record.id), stateOf(record));
  }
}

function topicOf(id: string): string {
  return `rollout:${id}`;
}

function stateOf(record: RolloutRecord): TopicMessage {
  return { type: "rollout.state", seq: record.seq, data: record };
}
