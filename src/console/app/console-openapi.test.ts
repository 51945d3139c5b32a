// Tests the OpenAPI 3.1 document: valid for other tools, and sufficient for a generated client.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import type { AxiosResponse } from "axios";
import { OpenAPIClientAxios } from "openapi-client-axios";
import { startTestConsole, USER } from "./console.fixture.ts";

interface Described {
  readonly openapi: string;
  readonly paths: Record<
    string,
    Record<string, { operationId?: string; parameters?: { name: string; in: string }[] }>
  >;
}

test("the description passes a linter that is not ours", async (t) => {
  const { ask } = await startTestConsole(t);
  const { text } = await ask("/api/openapi.json");
  const config = await createConfig({ extends: ["recommended-strict"] });
  const problems = await lintFromString({ source: text, absoluteRef: "openapi.json", config });
  assert.deepEqual(
    problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} (${location[0]?.pointer})`),
    [],
  );
});

/** Routes of resources that a fresh console lacks. */
const NEEDS_AN_ACTION: ReadonlySet<string> = new Set([
  "getAction",
  "getActionOutput",
  "getLogTail",
  "getRollout",
]);

test("a client made from the description reads every route, as a visitor and as an operator", async (t) => {
  const { ask, console, signIn } = await startTestConsole(t);
  const document = (await ask("/api/openapi.json")).json as Described;
  const token = await signIn();
  const values: Readonly<Record<string, string>> = { fsID: "n1", username: USER };
  const read: string[] = [];
  for (const bearer of [undefined, token]) {
    const client = await new OpenAPIClientAxios({
      definition: document as never,
      axiosConfigDefaults: {
        baseURL: console.url,
        validateStatus: () => true,
        ...(bearer === undefined ? {} : { headers: { Authorization: `Bearer ${bearer}` } }),
      },
    }).init();
    for (const [path, operations] of Object.entries(document.paths)) {
      const operation = operations["get"];
      if (operation === undefined || NEEDS_AN_ACTION.has(operation.operationId ?? "")) continue;
      const id = operation.operationId ?? `no id for ${path}`;
      const parameters = Object.fromEntries(
        (operation.parameters ?? [])
          .filter((one) => one.in === "path")
          .map(({ name }) => [name, values[name]]),
      );
      const call = client[id];
      assert.ok(call !== undefined, id);
      const answer = await (call as (parameters: object) => Promise<AxiosResponse>)(parameters);
      const isRefused = bearer === undefined && answer.status === 401;
      assert.ok(isRefused || answer.status === 200, `${id}: ${answer.status} ${JSON.stringify(answer.data)}`);
      if (answer.status === 200) read.push(id);
    }
  }
  for (const id of [
    "getCluster",
    "getClusterSummary",
    "getPerformance",
    "getHistory",
    "listNotices",
    "listUsers",
    "getAlerts",
    "getVersion",
  ]) {
    assert.ok(read.includes(id), id);
  }
});
