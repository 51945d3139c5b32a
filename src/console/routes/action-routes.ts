// The routes below /api/actions: start, follow, cancel and read actions (spec 4.1, 4.7, D7, T13).
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { ACTION_OUTPUT_PAGE_ENTRIES } from "#base/limits.ts";
import { type App, operatorOf, ProblemError, viewerOf } from "#console/http/route.ts";
import { isUnfinished } from "#console/orchestration/action-history.ts";
import type { ActionOperator } from "#console/orchestration/action-job.ts";
import { ActionRefusal, type ActionRefusalReason } from "#console/orchestration/action-refusal.ts";
import type { ActionService } from "#console/services/action-service.ts";
import {
  actionHistoryQuery,
  actionHistoryReply,
  actionNodesReply,
  actionQueued,
  actionRecord,
  outputReply,
  presetsReply,
} from "#wire/webapi/action-record.ts";
import { actionRequest } from "#wire/webapi/action-request.ts";
import type { ProblemCode } from "#wire/webapi/problem.ts";

const TAGS = ["actions"];
const DIGITS = /^\d{1,15}$/;

const actionPath = z.object({ id: z.string().max(64) });
const outputQuery = z.strictObject({
  node: z.string().max(128).optional(),
  after_seq: z.string().regex(DIGITS, "a number").optional(),
  limit: z.string().regex(DIGITS, "a number").optional(),
});

/** Registers the routes. */
export function actionRoutes(app: App, service: ActionService): void {
  addStarts(app, service);
  addLists(app, service);
  addOne(app, service);
}

function addStarts(app: App, service: ActionService): void {
  app.post(
    "/api/actions/execute",
    {
      config: { auth: "operator", invalidBody: "ACTION_INVALID" },
      schema: {
        operationId: "executeAction",
        summary: "Run an action on nodes and wait for its end; 200 also when it failed there",
        tags: TAGS,
        body: actionRequest,
        response: { 200: actionRecord },
      },
    },
    async (request) => {
      const taken = await refusing(service.submit(request.body, operatorFacts(request)));
      return await taken.done;
    },
  );
  app.post(
    "/api/actions/run",
    {
      config: { auth: "operator", invalidBody: "ACTION_INVALID" },
      schema: {
        operationId: "runAction",
        summary: "Begin an action on nodes; its output comes over /ws/actions",
        tags: TAGS,
        body: actionRequest,
        response: { 202: actionQueued },
      },
    },
    async (request, reply) => {
      const { record } = await refusing(service.submit(request.body, operatorFacts(request)));
      return reply.code(202).send({ id: record.id, state: "queued" as const });
    },
  );
}

function addLists(app: App, service: ActionService): void {
  app.get(
    "/api/actions/history",
    {
      config: { auth: "operator" },
      schema: {
        operationId: "getActionHistory",
        summary: "What was run, in the order in which it was begun; with order=newest the newest first",
        tags: TAGS,
        querystring: actionHistoryQuery,
        response: { 200: actionHistoryReply },
      },
    },
    (request) => {
      const newestFirst = service.engine.list();
      const records = request.query.order === "newest" ? newestFirst : newestFirst.toReversed();
      return { records, total: records.length };
    },
  );
  app.get(
    "/api/actions/nodes",
    {
      config: { auth: "operator" },
      schema: {
        operationId: "getActionNodes",
        summary: "Which nodes are enrolled for actions, and how the others are",
        tags: TAGS,
        response: { 200: actionNodesReply },
      },
    },
    () => service.enrolment.list(),
  );
  app.get(
    "/api/actions/presets",
    {
      config: { auth: "operator" },
      schema: {
        operationId: "getActionPresets",
        summary: "Actions that are ready to be run",
        tags: TAGS,
        response: { 200: presetsReply },
      },
    },
    () => [...service.presets],
  );
}

function addOne(app: App, service: ActionService): void {
  const found = (id: string) => {
    const record = service.engine.find(id);
    if (record === undefined) throw new ProblemError("NO_SUCH_ACTION", "no action has this id");
    return record;
  };
  app.get(
    "/api/actions/:id",
    {
      config: { auth: "operator" },
      schema: {
        operationId: "getAction",
        summary: "One action as it is now",
        tags: TAGS,
        params: actionPath,
        response: { 200: actionRecord },
      },
    },
    (request) => found(request.params.id),
  );
  app.get(
    "/api/actions/:id/output",
    {
      config: { auth: "operator" },
      schema: {
        operationId: "getActionOutput",
        summary: "The whole output of an action, page by page",
        tags: TAGS,
        params: actionPath,
        querystring: outputQuery,
        response: { 200: outputReply },
      },
    },
    async (request) => {
      const { node, after_seq: afterSeq, limit } = request.query;
      const { id } = found(request.params.id);
      // Read before the file: output written in between must not look complete.
      const isOver = !isUnfinished(found(id));
      const page = await service.outputs.read(id, Number(afterSeq ?? 0), {
        nodeId: node,
        limit: limit === undefined ? ACTION_OUTPUT_PAGE_ENTRIES : Number(limit),
      });
      return { entries: [...page.entries], next_seq: page.nextSeq, complete: isOver && page.isEnd };
    },
  );
  app.post(
    "/api/actions/:id/cancel",
    {
      config: { auth: "operator" },
      schema: {
        operationId: "cancelAction",
        summary: "End an action on all of its nodes",
        description: "The action is over when its record says so; what is over already stays as it is.",
        tags: TAGS,
        params: actionPath,
        response: { 202: actionRecord },
      },
    },
    async (request, reply) => {
      const { id } = found(request.params.id);
      await service.engine.cancel(id, operatorFacts(request));
      return reply.code(202).send(found(id));
    },
  );
}

/** The operator, in the form of actions' records. */
export function operatorFacts(request: FastifyRequest): ActionOperator {
  return { session: operatorOf(request).id, ip: viewerOf(request).address, requestId: request.id };
}

const CODES: Readonly<Record<ActionRefusalReason, ProblemCode>> = {
  "unknown-node": "NO_SUCH_NODE",
  locked: "NODES_LOCKED",
  invalid: "ACTION_INVALID",
  busy: "RATE_LIMITED",
  unrecorded: "ACTIONS_UNAVAILABLE",
  unavailable: "ACTIONS_UNAVAILABLE",
};

/** Turns a refusal of an action into a problem. */
export async function refusing<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof ActionRefusal)) throw error;
    const locked = error.heldBy.map(({ nodeId, actionId, sinceWallMs }) => ({
      node_id: nodeId,
      action_id: actionId,
      since: Math.trunc(sinceWallMs) / 1_000,
    }));
    throw new ProblemError(CODES[error.reason], error.message, {
      ...(locked.length === 0 ? {} : { locked }),
      ...(error.reason === "busy" ? { retryAfterSeconds: 5 } : {}),
      cause: error,
    });
  }
}
