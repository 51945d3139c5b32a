// GET /api/cluster and /api/cluster/summary: one handler, two views (spec 4.1, 5.8.4, decision D4).
import { z } from "zod";
import type { ClusterViews } from "#console/cluster/cluster-views.ts";
import { sendAnswer, sendReady } from "#console/http/response-cache.ts";
import type { App } from "#console/http/route.ts";
import { operatorCluster, publicCluster } from "#wire/webapi/cluster.ts";

/** Dependencies of the routes. */
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
        // Operators' views have users too, which may still be loading.
        if (sendReady(request, reply, ({ kind }) => (kind === "visitor" ? views.public() : undefined)))
          return;
        void views.operator().then(
          (view) => sendAnswer(request, reply, view),
          (error: unknown) => reply.send(error as never),
        );
      },
    );
  }
}
