// What a door promises of files: quotas to the byte, nothing from cut uploads, locks against all, kills survived.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { PERSON_ADDRESS_HEADER } from "#base/door-call.ts";
import { DOOR_FAILURES_PER_NETWORK } from "#door/http/door-limits.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { textsOfFiles } from "#testing/texts-of-files.ts";
import { until } from "#testing/until.ts";
import { createClient, GrpcChannel } from "#wire/grpc/client.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { type DoorSite, openDoorSite } from "./door-site.ts";

const QUOTA = 1_000_000;
const NO_QUOTA = 100_000_000;

const ends: (() => Promise<void>)[] = [];
let site: DoorSite;
before(async () => {
  site = await openDoorSite({ after: (hook) => ends.push(hook) });
  await site.signIn();
});
after(async () => {
  for (const end of ends.toReversed()) await end();
});

async function put(path: string, body: Uint8Array<ArrayBuffer> | string): Promise<number> {
  const answer = await site.dav(path, { method: "PUT", body });
  await answer.body?.cancel();
  return answer.status;
}

async function used(): Promise<number> {
  const answer = await site.dav("", {
    method: "PROPFIND",
    headers: { depth: "0" },
    body: '<propfind xmlns="DAV:"><prop><quota-used-bytes/></prop></propfind>',
  });
  return Number(/quota-used-bytes>(\d+)</u.exec(await answer.text())?.[1]);
}

test("one byte beyond the quota is 507 with the old file whole, and 200 PUTs at once fill it to the byte", async () => {
  assert.equal(await put("old", "x".repeat(1_000)), 201);
  await site.setQuota(QUOTA);
  const before = await used();
  assert.equal(await put("old", "y".repeat(QUOTA - before + 1_000 + 1)), 507);
  assert.equal(await (await site.dav("old")).text(), "x".repeat(1_000));
  // Of 200 as large as a hundredth of what is free, exactly a hundred fit.
  const each = Math.floor((QUOTA - before) / 100);
  const rest = QUOTA - before - 100 * each;
  if (rest > 0) assert.equal(await put("rest", "r".repeat(rest)), 201);
  const statuses = await Promise.all(
    Array.from({ length: 200 }, (_, index) => put(`p${index}`, "z".repeat(each))),
  );
  assert.deepEqual(
    [201, 507].map((code) => statuses.filter((status) => status === code).length),
    [100, 100],
  );
  assert.equal(await used(), QUOTA);
  await site.setQuota(NO_QUOTA);
});

test("a cut PUT leaves nothing, with a known length or without", async () => {
  const before = await used();
  for (const headers of [{ "content-length": "3000000" }, { "transfer-encoding": "chunked" }]) {
    const sent = request(`${site.door}/dav/cut`, {
      method: "PUT",
      headers: { ...headers, authorization: site.authorization },
    });
    sent.on("error", () => undefined);
    await new Promise<void>((done) => sent.write(Buffer.alloc(1_000_000), () => done()));
    sent.destroy();
  }
  await until(async () => (await used()) === before);
  assert.equal((await site.dav("cut")).status, 404);
});

test("a lock at the door holds against the CLI until it is given back", async () => {
  assert.equal(await put("locked", "mine"), 201);
  const answer = await site.dav("locked", {
    method: "LOCK",
    headers: { timeout: "Second-60" },
    body: '<lockinfo xmlns="DAV:"><lockscope><exclusive/></lockscope><locktype><write/></locktype></lockinfo>',
  });
  assert.equal(answer.status, 200);
  const token = answer.headers.get("lock-token") ?? "";
  const file = join(scratchFolder("door-"), "locked");
  writeFileSync(file, "theirs");
  const refused = await site.grove("put", file, "/locked");
  assert.notEqual(refused.code, 0);
  assert.match(refused.stderr, /lock/iu);
  assert.equal(await put("locked", "no token"), 423);
  assert.equal(await (await site.dav("locked")).text(), "mine");
  assert.equal(
    (await site.dav("locked", { method: "UNLOCK", headers: { "lock-token": token } })).status,
    204,
  );
  const { code, stderr } = await site.grove("put", file, "/locked");
  assert.equal(code, 0, stderr);
  assert.equal(await (await site.dav("locked")).text(), "theirs");
});

test("a person's own lock is ended in a terminal when the program that took it is gone", async () => {
  assert.equal(await put("left", "mine"), 201);
  const answer = await site.dav("left", {
    method: "LOCK",
    body: '<lockinfo xmlns="DAV:"><lockscope><exclusive/></lockscope><locktype><write/></locktype></lockinfo>',
  });
  assert.equal(answer.status, 200);
  const { code, stderr } = await site.grove("unlock", "/left");
  assert.equal(code, 0, stderr);
  assert.equal(await put("left", "no token"), 204);
});

test("a FileServer that is killed and comes back costs no acknowledged file, and the door goes on", async () => {
  const killed = await site.pid("node-1");
  const acknowledged: string[] = [];
  const over = new AbortController();
  const writing = (async () => {
    for (let index = 0; !over.signal.aborted; index++) {
      const status = await put(`killed-${index}`, `content ${index}`).catch(() => 0);
      assert.ok([201, 204, 503, 0].includes(status), `${status}`);
      if (status === 201) acknowledged.push(`killed-${index}`);
    }
  })();
  await until(() => acknowledged.length > 5);
  process.kill(killed, "SIGKILL");
  const before = acknowledged.length;
  await until(() => acknowledged.length > before + 5);
  over.abort();
  await writing;
  for (const name of acknowledged) {
    assert.equal(await (await site.dav(name)).text(), `content ${name.slice(7)}`);
  }
});

test("no log, metric, audit line or database of the cluster has an app password, a ticket or a session", async () => {
  const { node, metaserver, metricsToken } = site;
  const channels = [metaserver, node.grpc].map((address) => new GrpcChannel({ addresses: [address] }));
  const [toMeta, toNode] = channels;
  assert.ok(toMeta && toNode);
  after(() => {
    for (const channel of channels) channel.close();
  });
  const metadata = { [PERSON_ADDRESS_HEADER]: "198.51.100.7" };
  const meta = createClient(MetaServer, toMeta);
  const asked = { appPassword: site.password, fsId: node.id };
  const { ticket } = await meta.issueTicket(asked, { metadata });
  const server = createClient(FileServer, toNode);
  const { sessionToken } = await server.registerClient({ ticket }, { metadata });
  // Each where it is refused, too, and where it does not belong.
  const cut = site.password.slice(0, -1);
  const refused = [
    meta.issueTicket({ appPassword: cut, fsId: node.id }, { metadata }),
    meta.issueTicket({ appPassword: ticket, fsId: node.id }, { metadata }),
    meta.listAppPasswords({}, { metadata: { authorization: `Bearer ${ticket}` } }),
    server.registerClient({ ticket: site.password }, { metadata }),
    server.registerClient({ ticket: `${ticket}x` }, { metadata }),
    server.registerClient({ ticket, renewedSessionToken: `${sessionToken}x` }, { metadata }),
    server.getAttr({ path: `/${ticket.slice(0, 200)}` }, { metadata: { authorization: `Bearer ${ticket}` } }),
  ];
  for (const call of await Promise.allSettled(refused)) assert.equal(call.status, "rejected");
  for (const path of [`?password=${site.password}`, site.password]) {
    assert.ok([200, 403, 404].includes((await site.dav(path)).status), path.slice(0, 9));
  }
  // Halves, so that none is found in part.
  const secrets = [site.password.slice(17, 40), site.authorization.slice(40), sessionToken.slice(4, 30)];
  secrets.push(...[0.25, 0.5, 0.75].map((part) => ticket.slice(part * ticket.length).slice(0, 40)));
  const found = (text: string, where: string): void => {
    for (const secret of secrets) assert.ok(!text.includes(secret), where);
  };
  for (const page of ["/metrics", "/health", "/security-events", "/audit?after=0"]) {
    const answer = await fetch(node.metrics + page, { headers: { authorization: `Bearer ${metricsToken}` } });
    found(await answer.text(), page);
  }
  const files = await textsOfFiles(site.folder);
  assert.ok(
    files.some(({ path }) => path.includes("logs")) && files.some(({ path }) => path.includes("audit")),
  );
  for (const { path, text } of files) found(text, path);
});

test("an app password is let in under its person's name alone; none and others are guesses", async () => {
  const [name = "", password = ""] = Buffer.from(site.authorization.slice(6), "base64").toString().split(":");
  const statusFor = async (username: string): Promise<number> => {
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
    const answer = await fetch(`${site.door}/dav/`, {
      method: "PROPFIND",
      headers: { authorization, depth: "0" },
    });
    await answer.body?.cancel();
    return answer.status;
  };
  assert.equal(await statusFor(name.toUpperCase()), 207);
  assert.equal(await statusFor("bob@example.com"), 401);
  let guesses = 1;
  while ((await statusFor("")) === 401 && guesses < 100) guesses++;
  assert.equal(guesses, DOOR_FAILURES_PER_NETWORK);
  assert.equal(await statusFor(name), 207);
});
