// Tests actions through the API on real sshds: runs, output, history, cancels (spec 4.1, 4.7, D7, D8, T13).
import assert from "node:assert/strict";
import { appendFileSync, chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";
import { systemClock } from "#base/clock.ts";
import type { ConsoleOptions } from "#console/services/console-options.ts";
import { openNodeStore } from "#metaserver/directory/open-directory.ts";
import { type SshServer, SshServers, withoutSshServer } from "#testing/ssh-server.ts";
import { until } from "#testing/until.ts";
import type { ActionRecord } from "#wire/webapi/action-record.ts";
import type { LogTail } from "#wire/webapi/log-tail.ts";
import type { Answer } from "./app.fixture.ts";
import { type ConsoleUnderTest, startTestConsole } from "./console.fixture.ts";

const skip = withoutSshServer();

let servers: SshServers;
let nodes: readonly SshServer[];

before(async () => {
  if (skip !== false) return;
  servers = new SshServers();
  nodes = [await servers.start(), await servers.start()];
});

after(async () => {
  await servers?.stop();
});

interface TestConsole extends ConsoleUnderTest {
  /** A request as an operator; a body makes it a POST. */
  act(path: string, body?: object): Promise<Answer>;
  readonly token: string;
}

/** A console whose nodes n1 and n2 are the sshds. */
async function startService(t: TestContext, more: Partial<ConsoleOptions> = {}): Promise<TestConsole> {
  const console = await startTestConsole(t, { ssh: { keyFile: servers.keyFile }, ...more });
  const store = await openNodeStore(`sqlite:${join(console.dataFolder, "metadata.db")}`, {
    clock: systemClock,
  });
  t.after(() => store.close());
  for (const [at, { host, port, user, hostKey, home }] of nodes.entries()) {
    await store.putSshNode({
      id: `n${at + 1}`,
      host,
      port,
      user,
      hostKey,
      repository: home,
      services: { fileserver: { logFile: join(home, "service.log") } },
    });
  }
  const token = await console.signIn();
  return {
    ...console,
    token,
    act: (path, body) =>
      console.ask(path, {
        headers: { authorization: `Bearer ${token}` },
        ...(body === undefined ? {} : { method: "POST", body }),
      }),
  };
}

const custom = (command: string, more: object = {}): object => ({
  action: "custom",
  nodes: ["n1"],
  command,
  ...more,
});
const recordOf = (answer: Answer): ActionRecord => {
  assert.equal(answer.status < 300, true, answer.text);
  return answer.json as ActionRecord;
};

test("execute answers 200 with the record, also when the command fails there; it is in the history and on disk (spec 4.1, T13)", {
  skip,
}, async (t) => {
  const admin = await startService(t);
  const record = recordOf(
    await admin.act(
      "/api/actions/execute",
      custom("echo out; echo err >&2; exit 3", { nodes: ["n2", "n1"] }),
    ),
  );
  assert.equal(record.state, "failed");
  assert.equal(record.exit_code, 3);
  assert.deepEqual(
    record.targets.map(({ node_id, state, stdout, stderr }) => [node_id, state, stdout, stderr]),
    [
      ["n1", "failed", "out\n", "err\n"],
      ["n2", "failed", "out\n", "err\n"],
    ],
  );
  assert.equal(record.stdout, "== n1 ==\nout\n\n== n2 ==\nout\n");
  const kept = (await admin.act(`/api/actions/${record.id}`)).json as ActionRecord;
  assert.deepEqual(kept, record);
  const file = JSON.parse(readFileSync(join(admin.dataFolder, "command_history.json"), "utf8")) as {
    records: ActionRecord[];
  };
  assert.deepEqual(file.records, [record]);
  const output = (await admin.act(`/api/actions/${record.id}/output?node=n1`)).json as {
    entries: { data: string; stream: string }[];
    complete: boolean;
  };
  assert.deepEqual(
    output.entries.map(({ stream, data }) => `${stream}: ${data}`).sort((a, b) => (a < b ? -1 : 1)),
    ["stderr: err\n", "stdout: out\n"],
  );
  assert.equal(output.complete, true);
  const folder = join(admin.dataFolder, "audit");
  const audit = readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), "utf8"))
    .join("");
  assert.match(audit, /action\.start/);
});

test("visitors may not; unknown nodes, wrong requests, -no_custom and a missing key are refused before anything runs", {
  skip,
}, async (t) => {
  const admin = await startService(t);
  const mark = join(nodes[0]?.home ?? "", "mark");
  assert.equal(
    (await admin.ask("/api/actions/execute", { method: "POST", body: custom(`touch ${mark}`) })).status,
    401,
  );
  assert.equal(
    (await admin.act("/api/actions/execute", custom(`touch ${mark}`, { nodes: ["n1", "n9"] }))).problem?.code,
    "NO_SUCH_NODE",
  );
  assert.equal(
    (await admin.act("/api/actions/execute", { action: "pull", nodes: ["n1"], branch: "--x" })).problem?.code,
    "ACTION_INVALID",
  );
  assert.equal(
    (await admin.act("/api/actions/execute", { action: "restart", nodes: ["n1"], target_service: "admin" }))
      .problem?.code,
    "ACTION_INVALID",
  );
  assert.equal((await admin.act("/api/actions/01JD0000000000000000000000")).status, 404);
  const without = await startService(t, {
    ssh: { keyFile: join(admin.dataFolder, "none"), allowsCustom: false },
  });
  const refused = await without.act("/api/actions/execute", { action: "build", nodes: ["n1"] });
  assert.equal(refused.problem?.code, "ACTIONS_UNAVAILABLE");
  assert.match(refused.problem?.detail ?? "", /ssh-keygen/);
  const noCustom = await startService(t, { ssh: { keyFile: servers.keyFile, allowsCustom: false } });
  assert.equal(
    (await noCustom.act("/api/actions/execute", custom(`touch ${mark}`))).problem?.code,
    "ACTION_INVALID",
  );
  assert.equal(existsSync(mark), false);
});

test("a dry run shows the words of every node and runs nothing; a key repeated is the same action", {
  skip,
}, async (t) => {
  const admin = await startService(t);
  const dry = recordOf(
    await admin.act("/api/actions/execute", { action: "pull", nodes: "all", branch: "main", dry_run: true }),
  );
  assert.deepEqual(
    dry.targets.map(({ node_id, state, argv }) => [node_id, state, argv.join(" ")]),
    ["n1", "n2"].map((id) => [id, "skipped", "git pull --ff-only --end-of-options origin main"]),
  );
  const body = custom("echo x >>count; cat count", { idempotency_key: "once" });
  const [one, two] = await Promise.all([
    admin.act("/api/actions/execute", body),
    admin.act("/api/actions/execute", body),
  ]);
  const three = await admin.act("/api/actions/execute", body);
  assert.deepEqual(
    [recordOf(one).stdout, recordOf(two).id, recordOf(three).id],
    ["x\n", recordOf(one).id, recordOf(one).id],
  );
  assert.equal(
    (await admin.act("/api/actions/execute", custom("other", { idempotency_key: "once" }))).problem?.code,
    "ACTION_INVALID",
  );
});

test("a batch that overlaps another gets 409 at once, with who holds what; cancel ends the remote processes; then the nodes are free", {
  skip,
}, async (t) => {
  const admin = await startService(t);
  const marker = `1000.${process.pid}`;
  const run = await admin.act(
    "/api/actions/run",
    custom(`sleep ${marker} & sleep ${marker}; true`, { nodes: ["n1", "n2"], timeout_seconds: 600 }),
  );
  assert.equal(run.status, 202);
  const { id } = run.json as { id: string };
  const busy = await admin.act("/api/actions/execute", custom("echo never", { nodes: ["n2"] }));
  assert.equal(busy.status, 409);
  assert.deepEqual(
    busy.problem?.locked?.map((lock) => [lock.node_id, lock.action_id]),
    [["n2", id]],
  );
  await until(async () =>
    recordOf(await admin.act(`/api/actions/${id}`)).targets.every(({ state }) => state === "running") &&
    running(marker)
      ? true
      : undefined,
  );
  assert.equal((await admin.act(`/api/actions/${id}/cancel`, {})).status, 202);
  const ended = await until(async () => {
    const record = recordOf(await admin.act(`/api/actions/${id}`));
    return record.finished_at === undefined ? undefined : record;
  });
  assert.deepEqual(
    [ended.state, ...ended.targets.map(({ state }) => state)],
    ["cancelled", "cancelled", "cancelled"],
  );
  assert.equal(running(marker), false);
  assert.equal(recordOf(await admin.act("/api/actions/execute", custom("true"))).state, "succeeded");
  const statesOf = async (query: string): Promise<string[]> =>
    ((await admin.act(`/api/actions/history${query}`)).json as { records: ActionRecord[] }).records.map(
      ({ state }) => state,
    );
  const begun = ["cancelled", "rejected", "succeeded"];
  for (const query of ["", "?order=chronological"]) assert.deepEqual(await statesOf(query), begun);
  assert.deepEqual(await statesOf("?order=newest"), begun.toReversed());
  assert.equal((await admin.act("/api/actions/history?order=up")).status, 422);
});

/** Whether a process with this argument runs on this machine. */
function running(argument: string): boolean {
  return pids().some((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "latin1").split("\0").includes(argument);
    } catch {
      return false;
    }
  });
}

function pids(): string[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
}

test("a socket that drops again and again has every byte once, in order, with the pages of output (D8)", {
  skip,
}, async (t) => {
  const admin = await startService(t);
  const lines = 60_000;
  const run = await admin.act("/api/actions/run", custom(`seq 1 ${lines}; sleep 0.5; seq 1 ${lines}`));
  const { id } = run.json as { id: string };
  let [text, last, drops] = ["", 0, 0];
  const end = { isReached: false };
  const page = async (): Promise<void> => {
    const { entries } = (await admin.act(`/api/actions/${id}/output?after_seq=${last}&limit=3`)).json as {
      entries: { seq: number; data: string }[];
    };
    for (const { seq, data } of entries) [last, text] = [seq, text + data];
  };
  while (!end.isReached) {
    const socket = new WebSocket(`${admin.console.url.replace("http", "ws")}/ws/actions`, {
      headers: { authorization: `Bearer ${admin.token}` },
    });
    let isMissing = false;
    socket.on("open", () =>
      socket.send(JSON.stringify({ type: "subscribe", action_id: id, after_seq: last })),
    );
    socket.on("error", () => undefined);
    socket.on("message", (raw: Buffer) => {
      const { type, seq, data } = JSON.parse(raw.toString()) as {
        type: string;
        seq: number;
        data: { data: string; after_seq: number };
      };
      if (type === "action.output" && seq > last && !isMissing) {
        if (data.after_seq === last) [last, text] = [seq, text + data.data];
        else isMissing = true;
      }
      if (type === "action.done") end.isReached = true;
    });
    await sleep(200);
    socket.terminate();
    drops++;
    if (isMissing) await page();
  }
  for (let before = -1; before !== last; ) {
    before = last;
    await page();
  }
  const once = Array.from({ length: lines }, (_, at) => `${at + 1}\n`).join("");
  assert.equal(text.length, 2 * once.length);
  assert.equal(text, once + once);
  assert.ok(drops > 2);
});

test("a history that cannot be written, and a key that others may read, are refusals with a sentence (E-06, E-07)", {
  skip,
}, async (t) => {
  const admin = await startService(t);
  chmodSync(servers.keyFile, 0o644);
  const unsafe = recordOf(await admin.act("/api/actions/execute", custom("true")));
  chmodSync(servers.keyFile, 0o600);
  assert.deepEqual([unsafe.targets[0]?.state, unsafe.targets[0]?.reason], ["unreachable", "KEY_FILE_UNSAFE"]);
  assert.match(unsafe.targets[0]?.message ?? "", /chmod 600/);
});

test("the last lines of a log come from a file or the journal, as JSON and as text; lines are clamped (spec 4.1, D10)", {
  skip,
}, async (t) => {
  const admin = await startService(t);
  const log = join(nodes[0]?.home ?? "", "service.log");
  writeFileSync(log, Array.from({ length: 2_000 }, (_, at) => `line ${at + 1}\n`).join(""));
  const tail = (await admin.act("/api/logs/tail?node=n1&service=fileserver&lines=99999999999"))
    .json as LogTail;
  assert.deepEqual(
    [tail.source, tail.unit, tail.lines.length, tail.lines.at(-1)?.message],
    ["file", "svc-fileserver", 1_000, "line 2000"],
  );
  const text = await admin.ask("/api/logs/tail?node=n1&service=fileserver&lines=-3", {
    headers: { accept: "text/plain", authorization: `Bearer ${admin.token}` },
  });
  assert.equal(text.text, Array.from({ length: 10 }, (_, at) => `line ${at + 1_991}\n`).join(""));
  nodes[1]?.addProgram(
    "sudo",
    `echo '{"__REALTIME_TIMESTAMP":"1790000000500000","PRIORITY":"4","MESSAGE":"'"$*"'"}'; echo '{"MESSAGE":[104,105]}'`,
  );
  const journal = (await admin.act("/api/logs/tail?node=n2&service=metaserver")).json as LogTail;
  assert.deepEqual(journal.lines, [
    {
      ts: 1_790_000_000.5,
      priority: 4,
      message: "-n journalctl -u svc-metaserver -n 200 --no-pager -o json",
    },
    { ts: null, priority: null, message: "hi" },
  ]);
  assert.equal((await admin.act("/api/logs/tail?node=n9&service=metaserver")).status, 404);
  assert.equal((await admin.act("/api/logs/tail?node=n1&service=sshd")).status, 422);
});

test("a log falls back to the file where there is no journal; without either the answer says what would help (spec 4.1)", {
  skip,
}, async (t) => {
  const admin = await startService(t);
  const log = join(nodes[1]?.home ?? "", "service.log");
  writeFileSync(log, "from the file\n");
  const read = async (service: string): Promise<Answer> =>
    admin.act(`/api/logs/tail?node=n2&service=${service}`);
  nodes[1]?.addProgram("sudo", `echo '{"MESSAGE":"from the journal"}'`);
  const journal = (await read("fileserver")).json as LogTail;
  assert.deepEqual([journal.source, journal.text], ["journal", "from the journal\n"]);
  nodes[1]?.addProgram("sudo", "echo 'No journal files were found.' >&2; exit 1");
  const file = (await read("fileserver")).json as LogTail;
  assert.deepEqual([file.source, file.text], ["file", "from the file\n"]);
  const neither = await read("metaserver");
  assert.equal(neither.status, 502);
  assert.match(
    neither.problem?.detail ?? "",
    /No journal files.*grove node add -replace n2 .* -services FILE/,
  );
});

test("a log is followed live, by one program for all who do, which ends with the last of them (D8, D10)", {
  skip,
}, async (t) => {
  const admin = await startService(t);
  const log = join(nodes[0]?.home ?? "", "service.log");
  writeFileSync(log, "old\n");
  const heard: string[] = [];
  const socket = new WebSocket(`${admin.console.url.replace("http", "ws")}/ws/actions`, {
    headers: { authorization: `Bearer ${admin.token}` },
  });
  socket.on("open", () =>
    socket.send(JSON.stringify({ type: "subscribe", node: "n1", service: "fileserver" })),
  );
  socket.on("message", (raw: Buffer) => {
    const { type, data } = JSON.parse(raw.toString()) as {
      type: string;
      data: { lines: { message: string }[] };
    };
    if (type === "log.lines") heard.push(...data.lines.map(({ message }) => message));
  });
  await until(() => (heard.includes("old") ? true : undefined));
  appendFileSync(log, "new\nnewer\n");
  await until(() => (heard.includes("newer") ? true : undefined));
  assert.deepEqual(heard, ["old", "new", "newer"]);
  assert.equal(running(log), true);
  socket.terminate();
  await until(() => (running(log) ? undefined : true));
});
