// Polls of good and malicious nodes over real sockets: a bad node harms only itself (M-05, M-08, D24).
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { after, test } from "node:test";
import { gzipSync } from "node:zlib";
import { type Behaviour, documentText, fakeUsers, send } from "#base/fake-nodes.fixture.ts";
import { NODE_OFFLINE_AFTER_MS, POLL_INTERVAL_MS } from "#base/limits.ts";
import { until } from "#testing/until.ts";
import { POLL_ANSWER_MAX_BYTES } from "./poller.ts";
import { closeAll, fake, round, watched } from "./watched-cluster.fixture.ts";

after(closeAll);

test("each node is polled once every 5 s, with its users and its status (spec 4.4, 8)", async () => {
  const nodes = [await fake("n1"), await fake("n2")];
  const cluster = await watched(nodes);
  assert.equal(cluster.clusterState.isStarting(), true);
  for (let count = 1; count <= 3; count++) {
    await round(cluster);
    for (const node of nodes) {
      assert.equal(node.requests.filter((request) => request === "GET /metrics").length, count);
    }
  }
  assert.equal(cluster.clusterState.isStarting(), false);
  const [one] = cluster.clusterState.nodes();
  assert.equal(one?.status, "online");
  assert.equal(one?.stale, false);
  assert.equal(one?.lastGood?.perUserStorage.get("user2@people.example"), 2_000_006n);
  assert.equal(cluster.poller.counts.missed, 0);
});

test("a node that gives a version is asked for the difference; one that ignores that is read whole, and after a failure asked for all (D25)", async () => {
  const node = await fake("n1");
  const whole: Behaviour = (_, response, text) => send(response.setHeader("etag", '"users-ab-1"'), 200, text);
  node.behaviour = whole;
  const cluster = await watched([node]);
  const asked = async (): Promise<unknown> => {
    const before = node.requests.length;
    await round(cluster);
    const { stale, lastGood } = cluster.clusterState.node("n1") ?? assert.fail();
    return [node.requests[before], stale, lastGood?.perUserStorage.get("user2@people.example")];
  };
  assert.deepEqual(await asked(), ["GET /metrics", false, 2_000_006n]);
  node.users = fakeUsers(3).map((user) => ({ ...user, usedBytes: 5 }));
  assert.deepEqual(await asked(), ["GET /metrics?since=users-ab-1", false, 5n]);
  node.behaviour = (_, response) => send(response, 404, "{}");
  assert.deepEqual(await asked(), ["GET /metrics?since=users-ab-1", true, 5n]);
  node.behaviour = whole;
  assert.deepEqual(await asked(), ["GET /metrics", false, 5n]);
});

const LIARS: Readonly<Record<string, Behaviour>> = {
  "answers 500": (_, response) => send(response, 500, '{"error":"x"}'),
  "answers 503 with a document": (_, response, text) => send(response, 503, text),
  "answers 206 with a document": (_, response, text) => send(response, 206, text),
  redirects: (_, response) => response.writeHead(302, { location: "http://127.0.0.1:1/metrics" }).end(),
  "redirects to itself": (_, response) => response.writeHead(307, { location: "/metrics" }).end(),
  "answers HTML": (_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<html>"),
  "says nothing of the form": (_, response, text) => response.writeHead(200).end(text),
  "answers with a gzip bomb": (_, response) =>
    response
      .writeHead(200, { "content-type": "application/json", "content-encoding": "gzip" })
      .end(gzipSync(Buffer.alloc(50_000_000, 32))),
  "answers nothing": (_, response) => send(response, 200, ""),
  "answers invalid UTF-8": (_, response) => send(response, 200, Buffer.from([0x7b, 0xff, 0xfe, 0x7d])),
  "answers NaN": (_, response, text) => send(response, 200, text.replace(":40,", ":NaN,")),
  "announces more than it may": (_, response) =>
    response
      .writeHead(200, { "content-type": "application/json", "content-length": POLL_ANSWER_MAX_BYTES + 1 })
      .write(" "),
  "sends more than it announced": (request, response, text) => {
    response.shouldKeepAlive = false;
    request.socket.end(
      `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5\r\n\r\n${text}`,
    );
  },
  "sends less than it announced": (request, _, text) => {
    request.socket.end(
      `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length + 9}\r\n\r\n${text}`,
    );
  },
  "closes without a word": (request) => request.socket.destroy(),
  "speaks no HTTP": (request) => request.socket.end("SSH-2.0-OpenSSH_9.7\r\n"),
  "switches protocols": (request) =>
    request.socket.write("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
  "announces answers without end": (request) => {
    const announce = (): void => {
      if (!request.socket.destroyed)
        request.socket.write("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100), announce);
    };
    announce();
  },
  "sends heads without end": (request) => {
    request.socket.write("HTTP/1.1 200 OK\r\n");
    const more = (): void => {
      if (!request.socket.destroyed) request.socket.write(`x-${"y".repeat(1_000)}: z\r\n`.repeat(10), more);
    };
    more();
  },
  "sends crumbs": (_, response, text) => {
    response.writeHead(200, { "content-type": "application/json" });
    for (const letter of text.repeat(3).slice(0, 9_000)) response.write(letter);
    response.end();
  },
  "sends without end": endless,
};

for (const [name, behaviour] of Object.entries(LIARS)) {
  test(`a node that ${name} counts as no answer, the other is graded in the same round (D24, M-05)`, async () => {
    const [liar, honest] = [await fake("liar"), await fake("honest")];
    liar.behaviour = behaviour;
    const cluster = await watched([liar, honest]);
    await round(cluster);
    const state = cluster.clusterState.node("liar");
    assert.equal(state?.stale, true);
    assert.equal(state?.lastGood, undefined);
    assert.match(state?.pollError ?? "", /^[a-z][\w ,.:'()-]+$/, "the reason is ours, not the node's");
    assert.equal(cluster.clusterState.node("honest")?.stale, false);
    assert.equal(liar.requests.filter((request) => request !== "GET /metrics").length, 0);
    cluster.close();
  });
}

const SLOW: Readonly<Record<string, Behaviour>> = {
  "never answers": () => undefined,
  drips: (_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const timer = setInterval(() => response.write(" "), 20);
    response.once("close", () => clearInterval(timer));
  },
  "stops in the middle": (_, response, text) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": text.length });
    response.write(text.slice(0, 500));
  },
};

for (const [name, behaviour] of Object.entries(SLOW)) {
  test(`a node that ${name} is given up after 3 s while the others are polled, and is offline after 30 s (M-08)`, async () => {
    const [slow, honest] = [await fake("slow"), await fake("honest")];
    const cluster = await watched([slow, honest]);
    await round(cluster);
    assert.equal(cluster.clusterState.node("slow")?.status, "online");
    slow.behaviour = behaviour;
    await round(cluster, { hanging: "slow" });
    assert.deepEqual(
      [cluster.clusterState.node("slow")?.stale, cluster.clusterState.node("slow")?.status],
      [true, "online"],
    );
    await round(cluster, { hanging: "slow", ms: NODE_OFFLINE_AFTER_MS });
    assert.equal(cluster.clusterState.node("slow")?.status, "offline");
    assert.match(cluster.clusterState.node("slow")?.pollError ?? "", /within 3 s/);
    assert.equal(cluster.clusterState.node("honest")?.status, "online");
    cluster.close();
  });
}

test("a node is polled one poll at a time: what comes due meanwhile is left out and counted", async () => {
  const slow = await fake("slow");
  let open: ServerResponse | undefined;
  slow.behaviour = (_, response) => {
    open = response;
  };
  const cluster = await watched([slow]);
  cluster.clock.advance(200);
  await until(() => open !== undefined);
  assert.equal(slow.requests.length, 1);
  const steadyMs = cluster.clock.steadyMs.bind(cluster.clock);
  // The steady clock leaps as if the process had been stopped: due timers fire once.
  let leapMs = 0;
  cluster.clock.steadyMs = () => steadyMs() + leapMs;
  leapMs = 21_000;
  cluster.clock.advance(POLL_INTERVAL_MS);
  assert.ok(cluster.poller.counts.missed >= 4, `${cluster.poller.counts.missed} missed`);
  cluster.close();
});

test("1 GB costs no more than the bound: the connection is closed there (M-05)", async () => {
  const liar = await fake("liar");
  let sent = 0;
  liar.behaviour = (_, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    const piece = Buffer.alloc(1_048_576, 32);
    const more = (): void => {
      while (!response.destroyed && sent < 2 ** 30) {
        sent += piece.length;
        if (!response.write(piece)) return void response.once("drain", more);
      }
    };
    more();
  };
  const cluster = await watched([liar]);
  await round(cluster);
  assert.match(cluster.clusterState.node("liar")?.pollError ?? "", /more than \d+ bytes/);
  assert.ok(sent < 2 * POLL_ANSWER_MAX_BYTES, `${sent} bytes were taken`);
});

test("a kept connection that the node has closed meanwhile costs no poll", async () => {
  const node = await fake("n1");
  const cluster = await watched([node]);
  await round(cluster);
  let tries = 0;
  node.behaviour = (request, response, text) => {
    tries++;
    if (tries === 1) request.socket.destroy();
    else send(response, 200, text);
  };
  await round(cluster);
  assert.equal(tries, 2);
  assert.equal(cluster.clusterState.node("n1")?.stale, false);
  node.behaviour = (request) => {
    tries++;
    request.socket.destroy();
  };
  await round(cluster);
  assert.equal(tries, 4, "once more on a new connection, and then no more");
  assert.equal(cluster.clusterState.node("n1")?.stale, true);
});

test("where a token guards the users they are known with it, and withheld without it (T8)", async () => {
  const node = await fake("n1");
  node.token = "a-token";
  node.events = [event("01J9ZAAAAAAAAAAAAAAAAAAAAA", 1)];
  const withToken = await watched([node], { metricsToken: "a-token" });
  await round(withToken);
  assert.equal(withToken.clusterState.node("n1")?.lastGood?.perUserStorage.size, 3);
  assert.equal(withToken.outcomes[0]?.securityEvents.length, 1);
  const without = await watched([node]);
  await round(without);
  assert.equal(without.clusterState.node("n1")?.stale, false);
  assert.equal(without.clusterState.node("n1")?.lastGood?.usersWithheld, true);
  assert.equal(without.outcomes[0]?.securityEvents.length, 0);
});

test("security events come with the poll: each once, and again when it counts up (D22)", async () => {
  const node = await fake("n1");
  const [a, b] = ["01J9ZAAAAAAAAAAAAAAAAAAAAA", "01J9ZBBBBBBBBBBBBBBBBBBBBB"];
  node.events = [event(a, 1), { id: b, type: "unheard_of" }, null, 7, event("<script>", 1)];
  const cluster = await watched([node]);
  const news = async (): Promise<unknown> => {
    await round(cluster);
    return cluster.outcomes.at(-1)?.securityEvents.map(({ id, count, username }) => [id, count, username]);
  };
  assert.deepEqual(await news(), [[a, 1, "alice@example.com"]]);
  assert.deepEqual(await news(), []);
  node.events = [event(a, 3), event(b, 1)];
  assert.deepEqual(await news(), [
    [a, 3, "alice@example.com"],
    [b, 1, "alice@example.com"],
  ]);
  node.events = Array.from({ length: 101 }, (_, index) => event(`id-${index}`, 1));
  assert.deepEqual(await news(), [], "a list that is too long is none, and the poll is good all the same");
  assert.equal(cluster.clusterState.node("n1")?.stale, false);
});

test("a node that counts its security events is asked for them when there are new ones, after a restart, and until it has answered (D22)", async () => {
  const node = await fake("n1");
  const [a, b] = ["01J9ZAAAAAAAAAAAAAAAAAAAAA", "01J9ZBBBBBBBBBBBBBBBBBBBBB"];
  [node.events, node.eventsTotal] = [[event(a, 1)], 1];
  const cluster = await watched([node]);
  const asked = async (): Promise<unknown> => {
    const before = node.requests.length;
    await round(cluster);
    const requests = node.requests.slice(before);
    return [requests.includes("GET /security-events"), cluster.outcomes.at(-1)?.securityEvents.length];
  };
  assert.deepEqual(await asked(), [true, 1]);
  assert.deepEqual(await asked(), [false, 0], "nothing is new");
  [node.events, node.eventsTotal] = [[event(a, 2), event(b, 1)], 3];
  assert.deepEqual(await asked(), [true, 2]);
  assert.deepEqual(await asked(), [false, 0]);
  node.fields = { last_restart_unix: 1_789_999_999 };
  assert.deepEqual(await asked(), [true, 0], "another life counts anew");
  node.eventsTotal = 4;
  node.events = Array.from({ length: 101 }, (_, index) => event(`id-${index}`, 1));
  assert.deepEqual(await asked(), [true, 0], "what it answered is no list");
  node.events = [event(b, 2)];
  assert.deepEqual(await asked(), [true, 1], "so it is asked again");
  assert.deepEqual(await asked(), [false, 0]);
  node.eventsTotal = undefined;
  assert.deepEqual(await asked(), [true, 0], "who does not count is asked with every poll");
  assert.deepEqual(await asked(), [true, 0]);
});

test("a node that hangs with its security events is graded all the same, within its own interval (D22, M-08)", async () => {
  const node = await fake("n1");
  const cluster = await watched([node]);
  await round(cluster);
  node.fields = { disk_usage_percent: 91 };
  node.hangsOnEvents = true;
  const requests = node.requests.length;
  cluster.clock.advance(200);
  await until(() => node.requests.length === requests + 2);
  cluster.clock.advance(1_500);
  await until(() => cluster.poller.underWay().length === 0);
  assert.equal(cluster.clusterState.node("n1")?.status, "degraded");
  assert.equal(cluster.poller.counts.missed, 0);
});

test("what an honest node sends is what documentText says", () => {
  assert.doesNotThrow(() => JSON.parse(documentText({ users: fakeUsers(2) })) as unknown);
});

function event(id: string, count: number): unknown {
  return {
    id,
    ts: 1_790_000_000,
    type: "ip_mismatch",
    fatal: false,
    username: "alice@example.com",
    ip_bound: "192.0.2.1",
    ip_seen: "192.0.2.2",
    count,
  };
}

function endless(_: unknown, response: ServerResponse): void {
  response.writeHead(200, { "content-type": "application/json" });
  const piece = Buffer.alloc(262_144, 0x5b);
  const more = (): void => {
    while (!response.destroyed) if (!response.write(piece)) return void response.once("drain", more);
  };
  more();
}
