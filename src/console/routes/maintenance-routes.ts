// GET /api/maintenance, and PUT and DELETE of one node's maintenance; operators only (decision D11).
import { z } from "zod";
import { isGroveError } from "#base/errors.ts";
import type { ClusterState } from "#console/cluster/cluster-state.ts";
import { type App, operatorOf, ProblemError } from "#console/http/route.ts";
import type { MaintenanceService } from "#console/services/maintenance-service.ts";
import { maintenanceList, maintenanceRequest, nodeMaintenance } from "#wire/webapi/maintenance.ts";

/** Dependencies of the routes. */
export interface MaintenanceRoutesDeps {
  readonly service: MaintenanceService;
  readonly cluster: Pick<ClusterState, "node">;
}

const tags = ["nodes"];
const params = z.object({ fsID: z.string() });

/** Registers the routes. */
export function maintenanceRoutes(app: App, { service, cluster }: MaintenanceRoutesDeps): void {
  app.get(
    "/api/maintenance",
    {
      config: { auth: "operator" },
      schema: {
        operationId: "listMaintenance",
        summary: "The nodes that are in maintenance",
        tags,
        response: { 200: maintenanceList },
      },
    },
    () => ({ maintenance: service.list() }),
  );

  app.put(
    "/api/maintenance/:fsID",
    {
      config: { auth: "operator", invalidBody: "MAINTENANCE_INVALID" },
      schema: {
        operationId: "beginMaintenance",
        summary:
          "Put a node into maintenance: nobody is told of it and no new user's root is placed on it, until it ends",
        tags,
        params,
        body: maintenanceRequest,
        response: { 200: nodeMaintenance },
      },
    },
    (request) => {
      const { fsID } = request.params;
      if (cluster.node(fsID) === undefined) throw new ProblemError("NO_SUCH_NODE", "no node has this id");
      const actor = { id: operatorOf(request).id, requestId: request.id };
      return service.begin(fsID, request.body, actor).catch(refuse);
    },
  );

  app.delete(
    "/api/maintenance/:fsID",
    {
      config: { auth: "operator" },
      schema: {
        operationId: "endMaintenance",
        summary: "End a node's maintenance now",
        tags,
        params,
        response: { 200: nodeMaintenance },
      },
    },
    async (request) => {
      const actor = { id: operatorOf(request).id, requestId: request.id };
      const ended = await service.end(request.params.fsID, actor);
      if (ended === undefined) throw new ProblemError("NO_SUCH_NODE", "no node of this id is in maintenance");
      return ended;
    },
  );
}

function refuse(error: unknown): never {
  if (!isGroveError(error, "BAD_ARGUMENT")) throw error;
  const pointer = error.metadata["pointer"] ?? "";
  const errors = [{ pointer, code: "not_possible", detail: error.message }];
  throw new ProblemError("MAINTENANCE_INVALID", error.message, pointer === "" ? {} : { errors });
}
