// Answers browsers' requests over a WebSocket: missed events, topics to follow, else an error (decision D8).
import type { z } from "zod";
import { problemDocument } from "#console/http/problem-reply.ts";
import { type OperatorSession, ProblemError } from "#console/http/route.ts";
import { liveRequest } from "#wire/webapi/live.ts";
import type { LiveClient } from "./live-client.ts";
import type { TopicMessage } from "./live-stream.ts";

/** Topics that one WebSocket follows at once; a topic is the output of one action, for example. */
export const LIVE_TOPICS_PER_SOCKET = 16;

/** A request to follow a topic or to stop following it. */
export type Subscription = Extract<z.infer<typeof liveRequest>, { type: "subscribe" | "unsubscribe" }>;

/** A source of topics for operators on `/ws/actions`: the output of an action, the lines of a log. */
export interface TopicSource {
  /**
   * Opens the topic that a request names; undefined for topics of other sources. `backlog` returns the kept
   * messages after the request's `after_seq`, in order. Throws ProblemError when the topic does not exist.
   */
  open(
    request: Subscription,
    session: OperatorSession,
  ): { readonly topic: string; readonly backlog: () => Iterable<TopicMessage> } | undefined;
  /** Called when no socket follows the topic any more. */
  idle?(topic: string): void;
}

/** What answering needs of the hub. */
export interface RequestDeps {
  readonly sources: readonly TopicSource[];
  readonly follow: (topic: string) => void;
  readonly unfollow: (topic: string) => void;
}

/** Answers one message of a browser. Never throws: every error becomes an error message to that socket. */
export function answerRequest(client: LiveClient, text: string, deps: RequestDeps): void {
  try {
    answer(client, text, deps);
  } catch (error) {
    const problem =
      error instanceof ProblemError ? error : new ProblemError("INTERNAL", "something went wrong here");
    client.sendEvent(client.visit.stream.beside("error", problemDocument(problem, "live")));
  }
}

function answer(client: LiveClient, text: string, deps: RequestDeps): void {
  const request = parsed(text);
  switch (request.type) {
    case "pong":
      return;
    case "resume":
      return resume(client, request.after_seq);
    case "subscribe":
    case "unsubscribe":
      return subscribe(client, request, deps);
  }
}

function parsed(text: string): z.infer<typeof liveRequest> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new ProblemError("BAD_JSON", "a message is a JSON object");
  }
  const { success, data } = liveRequest.safeParse(json);
  if (success) return data;
  throw new ProblemError("REQUEST_INVALID", "a message is one of subscribe, unsubscribe, resume and pong");
}

/** Sends only events from before the socket joined; it gets later ones anyway, so none comes twice. */
function resume(client: LiveClient, afterSeq: number): void {
  if (client.hasResumed) throw new ProblemError("REQUEST_INVALID", "a socket resumes once");
  client.hasResumed = true;
  const { stream } = client.visit;
  for (const message of stream.between(afterSeq, client.joinedAtSeq)) client.sendEvent(message);
}

function subscribe(client: LiveClient, request: Subscription, deps: RequestDeps): void {
  const { session } = client.visit;
  if (session === undefined) throw new ProblemError("AUTH_REQUIRED", "sign in as an operator first");
  const opened = open(request, session, deps.sources);
  if (opened === undefined) throw unknownTopic(request);
  const { topic, backlog } = opened;
  if (request.type === "unsubscribe") return deps.unfollow(topic);
  if (client.topics.has(topic)) return;
  if (client.topics.size >= LIVE_TOPICS_PER_SOCKET) {
    throw new ProblemError(
      "RATE_LIMITED",
      `a socket follows at most ${LIVE_TOPICS_PER_SOCKET} things at once`,
    );
  }
  deps.follow(topic);
  for (const message of backlog()) client.sendEvent(client.visit.stream.ofTopic(message));
}

function open(
  request: Subscription,
  session: OperatorSession,
  sources: readonly TopicSource[],
): ReturnType<TopicSource["open"]> {
  for (const source of sources) {
    const opened = source.open(request, session);
    if (opened !== undefined) return opened;
  }
  return undefined;
}

function unknownTopic(request: Subscription): ProblemError {
  if ("rollout_id" in request) return new ProblemError("NO_SUCH_ROLLOUT", "no rollout has this id");
  return "action_id" in request
    ? new ProblemError("NO_SUCH_ACTION", "no action has this id")
    : new ProblemError("NO_SUCH_NODE", "no log of this node can be followed");
}
