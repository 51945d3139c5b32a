// Moves of roots, nodes taken out of service, rebalancing; operators only (D27).
import type { FastifyRequest } from "fastify";
import { z } from "zod";
import { type App, operatorOf } from "#console/http/route.ts";
import type { MoveActor, RootMoveService } from "#console/services/root-move-service.ts";
import {
  decided,
  drain,
  drainPlan,
  drainRequest,
  moveList,
  rebalancePlan,
  rebalanceRequest,
  rootMove,
} from "#wire/webapi/root-move.ts";
import { usernameOf } from "./user-routes.ts";

const tags = ["moves"];
const config = { auth: "operator" } as const;
const nodeParams = z.object({ fsID: z.string() });
const userParams = z.object({ username: z.string() });

/** Registers the routes. */
export function moveRoutes(app: App, { service }: { readonly service: RootMoveService }): void {
  app.get(
    "/api/moves",
    {
      config,
      schema: {
        operationId: "listMoves",
        summary: "Roots that move between nodes, nodes that are taken out of service, and the rebalancing",
        tags,
        response: { 200: moveList },
      },
    },
    () => service.list(),
  );
  for (const [decision, operationId, summary] of [
    ["confirm", "confirmMove", "Let the former node remove its copy of a root that has moved"],
    ["undo", "undoMove", "Give up a move that has not switched: the root stays where it was"],
  ] as const) {
    app.post(
      `/api/moves/:username/${decision}`,
      { config, schema: { operationId, summary, tags, params: userParams, response: { 200: rootMove } } },
      (request) => service.decide(usernameOf(request.params.username), decision, actorOf(request)),
    );
  }
  drainRoutes(app, service);
  rebalanceRoutes(app, service);
}

function drainRoutes(app: App, service: RootMoveService): void {
  app.post(
    "/api/drains/:fsID/plan",
    {
      config,
      schema: {
        operationId: "planDrain",
        summary: "What would go where if this node were taken out of service; nothing begins",
        tags,
        params: nodeParams,
        body: drainRequest,
        response: { 200: drainPlan },
      },
    },
    (request) => service.planDrain(request.params.fsID, request.body?.to_engine),
  );
  app.put(
    "/api/drains/:fsID",
    {
      config,
      schema: {
        operationId: "beginDrain",
        summary: "Take a node out of service: it gets no new roots, and all of its own move to the others",
        tags,
        params: nodeParams,
        body: drainRequest,
        response: { 200: drain },
      },
    },
    (request) => service.drain(request.params.fsID, actorOf(request), request.body?.to_engine),
  );
  app.delete(
    "/api/drains/:fsID",
    {
      config,
      schema: {
        operationId: "endDrain",
        summary: "Bring a node back into service: no further root leaves it, those on their way arrive",
        tags,
        params: nodeParams,
        response: { 200: drain },
      },
    },
    (request) => service.bringBack(request.params.fsID, actorOf(request)),
  );
  app.post(
    "/api/drains/:fsID/confirm",
    {
      config,
      schema: {
        operationId: "confirmDrain",
        summary: "Let a node remove its copies of all roots that have moved away from it",
        tags,
        params: nodeParams,
        response: { 200: decided },
      },
    },
    async (request) => ({ decided: await service.confirmOf(request.params.fsID, actorOf(request)) }),
  );
}

function rebalanceRoutes(app: App, service: RootMoveService): void {
  app.post(
    "/api/rebalance/plan",
    {
      config,
      schema: {
        operationId: "planRebalance",
        summary: "Which roots would bring the nodes into balance; nothing begins",
        tags,
        response: { 200: rebalancePlan },
      },
    },
    () => service.planRebalance(),
  );
  app.post(
    "/api/rebalance",
    {
      config,
      schema: {
        operationId: "beginRebalance",
        summary: "Move the roots of the last plan that was shown",
        tags,
        body: rebalanceRequest,
        response: { 200: decided },
      },
    },
    async (request) => ({ decided: await service.rebalance(request.body.plan_id, actorOf(request)) }),
  );
  app.delete(
    "/api/rebalance",
    {
      config,
      schema: {
        operationId: "endRebalance",
        summary: "Begin no further move of a rebalancing; those on their way arrive",
        tags,
        response: { 200: decided },
      },
    },
    async (request) => ({ decided: await service.stopRebalance(actorOf(request)) }),
  );
}

function actorOf(request: FastifyRequest): MoveActor {
  return { id: operatorOf(request).id, requestId: request.id };
}
