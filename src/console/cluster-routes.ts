// GET /api/cluster and /api/cluster/summary: one handler, two views (spec 4.1, 5.8.4, decision D4).
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { operatorCluster, publicCluster } from "#webapi/cluster.ts";
import type { ClusterViews, View } from "./cluster-views.ts";
import { type App, sendJson, viewerOf } from "./route.ts";

/** What the routes need. */
export interface ClusterRoutesDeps {
  readonly views: Pick<ClusterViews, "public" | "operator">;
}

/** Registers the routes. */
export function clusterRoutes(app: App, { views }: ClusterRoutesDeps): void {
  for (const [url, operationId] of [
    ["/api/cluster", "getCluster"],
    ["/api/cluster/summary", "getClusterSummary"],
  ] as const) {
    app.get(
      url,
      {
        config: { auth: "public" },
        schema: {
          operationId,
          summary: "All nodes with their figures; for operators also users and quotas",
          tags: ["cluster"],
          response: { 200: z.union([operatorCluster, publicCluster]) },
        },
      },
      (request, reply) => {
        if (viewerOf(request).kind === "visitor") return sendView(request, reply, views.public());
        void views.operator().then(
          (view) => sendView(request, reply, view),
          (error: unknown) => reply.send(error as never),
        );
      },
    );
  }
}

/** Sends a view, or nothing to whoever shows that he has it. */
function sendView(request: FastifyRequest, reply: FastifyReply, { body, etag }: View): void {
  reply.header("etag", etag);
  const known = request.headers["if-none-match"];
  if (known !== undefined && hasTag(known, etag)) {
    reply.code(304).send();
    return;
  }
  sendJson(reply, body);
}

function hasTag(known: string, etag: string): boolean {
  return known.split(",").some((tag) => tag.trim() === "*" || tag.trim().replace(/^W\//, "") === etag);
}
