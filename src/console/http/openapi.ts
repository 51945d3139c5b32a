// The OpenAPI 3.1 description of the console's HTTP interface, generated from the schemas of its routes.
import swagger from "@fastify/swagger";
import { jsonSchemaTransform } from "fastify-type-provider-zod";
import { z } from "zod";
import { VERSION } from "#base/version.ts";
import { problem } from "#wire/webapi/problem.ts";
import type { App } from "./route.ts";
import { COOKIE_NAME } from "./session-cookie.ts";

/** The three places of a token in order of precedence (spec 4.2). */
const OPERATOR = [{ bearer: [] }, { cookie: [] }, { query: [] }] as const;

/** Collects the schemas of routes; must be registered before them. */
export async function addOpenApi(app: App): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Grove console",
        version: VERSION,
        summary: "State of the cluster, history, alerts, users and quotas.",
        description:
          "Counts of bytes are numbers up to 2^53 - 1 and decimal strings above. Visitors get redacted answers where a route allows " +
          "them. Every answer that is no success is a problem document (RFC 9457).",
        license: { name: "Apache 2.0", identifier: "Apache-2.0" },
      },
      servers: [{ url: "/" }],
      tags: [
        { name: "auth", description: "Signing in and out" },
        { name: "cluster", description: "Nodes and their figures" },
        { name: "history", description: "The last hour, rates, export" },
        { name: "alerts", description: "What is wrong, and who was told" },
        { name: "users", description: "Users and their quotas" },
        { name: "actions", description: "What is run on nodes, and rollouts" },
        { name: "logs", description: "Logs of services on nodes" },
        { name: "audit", description: "Who did what" },
        { name: "about", description: "The console itself" },
      ],
      components: {
        securitySchemes: {
          bearer: { type: "http", scheme: "bearer" },
          cookie: { type: "apiKey", in: "cookie", name: COOKIE_NAME },
          query: { type: "apiKey", in: "query", name: "token" },
        },
      },
    },
    transform: (document) => {
      const isHidden = !document.url.startsWith("/api/");
      const { schema, url } = jsonSchemaTransform(document);
      const isForOperators = document.route.config?.auth === "operator";
      return {
        schema: {
          ...schema,
          hide: isHidden || schema.hide === true,
          security: isForOperators ? OPERATOR : [{}, ...OPERATOR],
        },
        url,
      };
    },
  });
}

/** The whole description, once all routes are registered. */
export function openApiDocument(app: App): object {
  const document = app.swagger() as unknown as {
    paths: Record<string, Record<string, { responses: Record<string, unknown> }>>;
    components: Record<string, unknown>;
  };
  const { $schema: _dialect, ...problemSchema } = z.toJSONSchema(problem, { target: "draft-2020-12" });
  const answer = {
    description: "A problem (RFC 9457)",
    content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
  };
  const paths = Object.entries(document.paths).map(([path, operations]) => [
    path,
    Object.fromEntries(
      Object.entries(operations).map(([method, operation]) => [
        method,
        { ...operation, responses: { ...operation.responses, "4XX": answer, "5XX": answer } },
      ]),
    ),
  ]);
  return {
    ...document,
    paths: Object.fromEntries(paths),
    components: { ...document.components, schemas: { Problem: problemSchema } },
  };
}
