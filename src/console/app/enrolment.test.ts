// Tests the console's answers about nodes without SSH: enrolment command, local logs (spec 4.1, 4.7).
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { until } from "#testing/until.ts";
import type { ActionNodesReply } from "#wire/webapi/action-record.ts";
import type { LogTail } from "#wire/webapi/log-tail.ts";
import type { Answer } from "./app.fixture.ts";
import { startTestConsole } from "./console.fixture.ts";

const custom = (more: object = {}): object => ({ action: "custom", nodes: ["n1"], command: "true", ...more });

test("a log that -local_log names is read on this machine, without SSH and without a node (spec 4.1)", async (t) => {
  const folder = scratchFolder("grove-local-log-");
  const path = join(folder, "n7.log");
  writeFileSync(path, "one\ntwo\n");
  const console = await startTestConsole(t, {
    ssh: {
      keyFile: join(folder, "none"),
      localLogs: [{ nodeId: "n7", service: "fileserver", path }],
    },
  });
  const headers = { authorization: `Bearer ${await console.signIn()}` };
  const tail = await console.ask("/api/logs/tail?node=n7&service=fileserver", { headers });
  assert.equal(tail.status, 200, tail.text);
  assert.deepEqual([(tail.json as LogTail).source, (tail.json as LogTail).text], ["file", "one\ntwo\n"]);
  assert.equal((await console.ask("/api/logs/tail?node=n7&service=fileserver")).status, 401);
  assert.equal((await console.ask("/api/logs/tail?node=n7&service=admin", { headers })).status, 404);
  rmSync(path);
  const gone = await console.ask("/api/logs/tail?node=n7&service=fileserver", { headers });
  assert.equal(gone.status, 502);
  assert.match(gone.problem?.detail ?? "", /-local_log names is not there/);
});

test("a node that is registered and not enrolled says in every answer how it is enrolled (spec 4.7)", async (t) => {
  const folder = scratchFolder("grove-not-enrolled-");
  const keyFile = join(folder, "key");
  writeFileSync(keyFile, "", { mode: 0o600 });
  const store = { kind: "sqlite", place: "/srv/meta.db" } as const;
  const console = await startTestConsole(t, { ssh: { keyFile }, store });
  const headers = { authorization: `Bearer ${await console.signIn()}` };
  const ask = (path: string, body?: object): Promise<Answer> =>
    console.ask(path, { headers, ...(body === undefined ? {} : { method: "POST", body }) });
  const { nodes: known } = await until(async () => {
    const reply = (await ask("/api/actions/nodes")).json as ActionNodesReply;
    return reply.nodes.length > 0 ? reply : undefined;
  });
  const command = "grove node add n1 USER@127.0.0.1 -meta sqlite:/srv/meta.db";
  assert.deepEqual(
    known.map(({ node_id, enrolled, enrol_command }) => [node_id, enrolled, enrol_command]),
    [["n1", false, command]],
  );
  for (const answer of [
    await ask("/api/actions/run", custom()),
    await ask("/api/actions/execute", custom({ dry_run: true })),
    await ask("/api/logs/tail?node=n1&service=fileserver"),
    await ask("/api/rollouts", {
      target_service: "fileserver",
      nodes: ["n1"],
      branch: "main",
      dry_run: true,
    }),
  ]) {
    assert.ok(
      answer.problem?.detail?.includes(
        `not enrolled for actions. Where the metadata store can be reached, run: ${command}`,
      ),
      answer.text,
    );
    assert.equal(answer.status, 404);
  }
  const stranger = await ask("/api/actions/run", custom({ nodes: ["n9"] }));
  assert.match(stranger.problem?.detail ?? "", /no node "n9" is enrolled/);
  assert.equal((await console.ask("/api/actions/nodes")).status, 401);
});
