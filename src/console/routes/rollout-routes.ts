// The routes below /api/rollouts: start, follow, cancel and revert rollouts (spec 4.7, decision D7).
import { z } from "zod";
import { type App, ProblemError } from "#console/http/route.ts";
import type { ActionService } from "#console/services/action-service.ts";
import {
  type RolloutRecord,
  rolloutBackRequest,
  rolloutRecord,
  rolloutRequest,
  rolloutsReply,
} from "#wire/webapi/rollout.ts";
import { operatorFacts, refusing } from "./action-routes.ts";

const TAGS = ["actions"];

const rolloutPath = z.object({ id: z.string().max(64) });

/** Registers the routes. */
export function rolloutRoutes(app: App, service: ActionService): void {
  addStart(app, service);
  addReads(app, service);
  addEnds(app, service);
}

function addStart(app: App, service: ActionService): void {
  app.post(
    "/api/rollouts",
    {
      config: { auth: "operator", invalidBody: "ACTION_INVALID" },
      schema: {
        operationId: "startRollout",
        summary: "Pull, build and restart on nodes, one first and then the rest in steps",
        description:
          "Each step is watched before the next begins, and the rollout stops by itself at the first thing that is not well. With " +
          "dry_run the answer shows what would run on each node (200); nothing is kept then.",
        tags: TAGS,
        body: rolloutRequest,
        response: { 200: rolloutRecord, 202: rolloutRecord },
      },
    },
    async (request, reply) => {
      const record = await refusing(service.startRollout(request.body, operatorFacts(request)));
      return reply.code(record.state === "planned" ? 200 : 202).send(record);
    },
  );
}

function addReads(app: App, service: ActionService): void {
  app.get(
    "/api/rollouts",
    {
      config: { auth: "operator" },
      schema: {
        operationId: "getRollouts",
        summary: "All rollouts, the newest first",
        tags: TAGS,
        response: { 200: rolloutsReply },
      },
    },
    () => {
      const rollouts = service.rollouts.list();
      return { rollouts, total: rollouts.length };
    },
  );
  app.get(
    "/api/rollouts/:id",
    {
      config: { auth: "operator" },
      schema: {
        operationId: "getRollout",
        summary: "One rollout as it is now",
        tags: TAGS,
        params: rolloutPath,
        response: { 200: rolloutRecord },
      },
    },
    (request) => found(service, request.params.id),
  );
}

function addEnds(app: App, service: ActionService): void {
  app.post(
    "/api/rollouts/:id/cancel",
    {
      config: { auth: "operator" },
      schema: {
        operationId: "cancelRollout",
        summary: "End a rollout: what it runs on nodes is ended, and nothing else of it begins",
        description: "It is over when its record says so; what is over already stays as it is.",
        tags: TAGS,
        params: rolloutPath,
        response: { 202: rolloutRecord },
      },
    },
    async (request, reply) => {
      const { id } = found(service, request.params.id);
      await service.rollouts.cancel(id, operatorFacts(request));
      return reply.code(202).send(found(service, id));
    },
  );
  app.post(
    "/api/rollouts/:id/back",
    {
      config: { auth: "operator", invalidBody: "ACTION_INVALID" },
      schema: {
        operationId: "goBackFromRollout",
        summary: "Bring the nodes that a rollout has changed to the commit that each had before",
        description:
          "A rollout of its own, in the same order: reset to the commit, build, restart, and the same gates. A node on which it fails " +
          "does not keep the others from going back. The body may be missing.",
        tags: TAGS,
        params: rolloutPath,
        body: rolloutBackRequest,
        response: { 200: rolloutRecord, 202: rolloutRecord },
      },
    },
    async (request, reply) => {
      const before = found(service, request.params.id);
      const requested = request.body ?? { dry_run: false };
      const record = await refusing(service.goBack(before, requested, operatorFacts(request)));
      return reply.code(record.state === "planned" ? 200 : 202).send(record);
    },
  );
}

function found(service: ActionService, id: string): RolloutRecord {
  const record = service.rollouts.find(id);
  if (record === undefined) throw new ProblemError("NO_SUCH_ROLLOUT", "no rollout has this id");
  return record;
}
