// Bare Fastify that answers every request with the same bytes from memory.
import type { AddressInfo } from "node:net";
import fastify from "fastify";
import { serveTasks } from "#bench/tasks.ts";

const app = fastify();

serveTasks(
  {
    // Answers the port.
    serve: async (body) => {
      const bytes = Buffer.from(String(body));
      app.get("/", (_request, reply) => reply.type("application/json; charset=utf-8").send(bytes));
      await app.listen({ host: "127.0.0.1", port: 0 });
      return (app.server.address() as AddressInfo).port;
    },
  },
  () => app.close(),
);
