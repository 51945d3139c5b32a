// What a door's key and a person's credential are worth in other hands, and after their end.
import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "#testing/until.ts";
import { StatusError } from "#wire/framing/status.ts";
import type { CallOptions } from "#wire/grpc/client-call.ts";
import { FileServer } from "#wire/proto/gen/grove/v1/file_server_pb.ts";
import { MetaServer } from "#wire/proto/gen/grove/v1/meta_server_pb.ts";
import { type DoorsUnderTest, FROM, reasonOf, session, startDoors, type TestDoor } from "./doors.fixture.ts";

const TIMEOUT = { timeout: 120_000 };
const ALICE = "alice@example.com";
const BOB = "bob@example.com";
const DATA = Buffer.from("text");
const LOCKS = "svc-lock-tokens";

/** A person at a door by an app password of their own. */
async function visit(doors: DoorsUnderTest, door: TestDoor, email: string, wish: object) {
  const person = await door.person(await doors.password(email, wish));
  const files = door.files();
  const opened = await files.registerClient({ ticket: await person.ticketFor("n1") }, { metadata: FROM });
  const mine = session(opened.sessionToken);
  const authorization = `Bearer ${opened.sessionToken}`;
  return {
    person,
    files,
    mine,
    showing: (token: string): CallOptions => ({ metadata: { ...FROM, authorization, [LOCKS]: token } }),
  };
}

/** A person without a door. */
async function signIn(doors: DoorsUnderTest, email: string) {
  const files = doors.files({ ca: doors.cluster.authority.certificatePem });
  const { sessionToken } = await files.registerClient({}, doors.signedIn(email));
  return { files, mine: { metadata: { authorization: `Bearer ${sessionToken}` } } };
}

type Calls = Record<string, (request: object, options?: CallOptions) => unknown>;

/** Asks every call of a service without a credential of a person; returns those that were answered. */
async function answeredTo(client: object, service: { readonly method: object }): Promise<string[]> {
  const answered: string[] = [];
  for (const [name, { methodKind }] of Object.entries(service.method) as [string, { methodKind: string }][]) {
    const call = (client as Calls)[name];
    assert.ok(call, name);
    const asked = async (): Promise<unknown> => {
      const request = methodKind === "client_streaming" ? (async function* () {})() : {};
      const answer = call(request, { metadata: FROM });
      if (methodKind !== "server_streaming") return await answer;
      for await (const _message of answer as AsyncIterable<unknown>);
      return undefined;
    };
    const said = await asked().catch((error: unknown) => {
      assert.ok(error instanceof StatusError, String(error));
    });
    // An operator's call says no in its answer (spec 5.5).
    if (said !== undefined && (said as { success?: boolean }).success !== false) answered.push(name);
  }
  return answered;
}

test(
  "a door's key alone opens nothing, here or at a MetaServer, and registers as no node",
  TIMEOUT,
  async (t) => {
    const doors = await startDoors(t);
    const { directory } = doors.cluster;
    const owner = await signIn(doors, ALICE);
    await owner.files.createFile({ path: "/f", data: DATA }, owner.mine);
    const [roots, nodes] = [
      await directory.findRoot(ALICE),
      (await directory.nodes()).map(({ fsId }) => fsId),
    ];
    const stolen = await doors.door("d1");
    assert.deepEqual(await answeredTo(stolen.files(), FileServer), []);
    // It may renew itself until it is revoked, as its owner does.
    assert.deepEqual(await answeredTo(stolen.meta, MetaServer), ["renewCertificate"]);
    for (const fsId of ["d1", "n1", "d1.door"]) {
      const register = stolen.meta.registerFileServer({ fsId, grpcAddr: "evil.example.net:50051" });
      assert.equal(await reasonOf(register), "CLIENT_CERT_REQUIRED", fsId);
    }
    assert.deepEqual(
      (await directory.nodes()).map(({ fsId }) => fsId),
      nodes,
    );
    assert.deepEqual(await directory.findRoot(ALICE), roots);
  },
);

test(
  "a download ends in mid-stream when its app password is revoked, and an upload leaves nothing",
  TIMEOUT,
  async (t) => {
    const doors = await startDoors(t);
    const { clock, cluster } = doors;
    const owner = await signIn(doors, ALICE);
    const size = 40_000_000;
    await owner.files.uploadFile(
      (async function* () {
        yield { part: { case: "header", value: { path: "/large" } } } as const;
        for (let at = 0; at < size; at += 4_000_000) {
          yield {
            part: { case: "chunk", value: { offset: BigInt(at), data: Buffer.alloc(4_000_000) } },
          } as const;
        }
      })(),
      owner.mine,
    );
    const { files, mine } = await visit(doors, await doors.door("d1"), ALICE, { name: "lost" });
    let received = 0;
    const revoked = Promise.withResolvers<undefined>();
    const download = (async () => {
      for await (const { part } of files.downloadFile({ path: "/large" }, mine)) {
        if (part.case !== "chunk") continue;
        received += part.value.data.length;
        await revoked.promise;
      }
    })();
    const upload = files.uploadFile(
      (async function* () {
        yield { part: { case: "header", value: { path: "/new" } } } as const;
        yield { part: { case: "chunk", value: { offset: 0n, data: DATA } } } as const;
        await revoked.promise;
        yield { part: { case: "chunk", value: { offset: BigInt(DATA.length), data: DATA } } } as const;
      })(),
      mine,
    );
    const ends = Promise.allSettled([download, upload]);
    await until(() => received > 0);
    await cluster.directory.revokeAppPassword(ALICE, "lost", clock.wallMs());
    await until(() => {
      clock.advance(500);
      return doors.n1.node.service.callers.doors.table.openCount === 0;
    });
    revoked.resolve(undefined);
    const [down, up] = await ends;
    assert.equal(down.status, "rejected");
    assert.equal(up.status, "rejected");
    assert.ok(received < size, `${received} bytes came`);
    assert.equal(await reasonOf(owner.files.getAttr({ path: "/new" }, owner.mine)), "NO_SUCH_PATH");
  },
);

test(
  "a lock serves the credential that took it, and ends with it, with its folder and with the share",
  TIMEOUT,
  async (t) => {
    const doors = await startDoors(t);
    const door = await doors.door("d1");
    const owner = await signIn(doors, ALICE);
    for (const path of ["/work", "/work/in"]) await owner.files.createDirectory({ path }, owner.mine);
    const { id: folderId } = await owner.files.getAttr({ path: "/work" }, owner.mine);
    const write = (who: { files: typeof owner.files }, options: CallOptions, path: string) =>
      reasonOf(who.files.writeFile({ root: ALICE, path, data: DATA }, options));
    for (const path of ["/work/f", "/work/in/g"])
      await owner.files.createFile({ path, data: DATA }, owner.mine);

    const laptop = await visit(doors, door, ALICE, { name: "laptop" });
    const phone = await visit(doors, door, ALICE, { name: "phone" });
    const narrow = await visit(doors, door, ALICE, { name: "narrow", folderId });
    const { token } = await laptop.files.lock({ path: "/work/f" }, laptop.mine);
    assert.equal(await write(laptop, laptop.showing(token), "/work/f"), "OK");
    assert.equal(await write(phone, phone.showing(token), "/work/f"), "LOCKED");
    assert.equal(
      await reasonOf(phone.files.refreshLock({ path: "/work/f", token }, phone.mine)),
      "NO_SUCH_LOCK",
    );
    assert.equal(await reasonOf(phone.files.unlock({ path: "/work/f", token }, phone.mine)), "NO_SUCH_LOCK");
    const { locks } = await phone.files.listLocks({ path: "/work/f" }, phone.mine);
    assert.deepEqual(
      locks.map((lock) => [lock.username, lock.token]),
      [[ALICE, ""]],
    );
    // A lost laptop shuts nobody out.
    await doors.cluster.directory.revokeAppPassword(ALICE, "laptop", doors.clock.wallMs());
    await until(async () => {
      doors.clock.advance(500);
      return (await write(phone, phone.mine, "/work/f")) === "OK";
    });

    // The one of a folder ends where its file has left it.
    const held = await narrow.files.lock({ path: "/work/in/g" }, narrow.mine);
    assert.equal(await write(owner, owner.mine, "/work/in/g"), "LOCKED");
    assert.equal(await write(narrow, narrow.showing(held.token), "/work/in/g"), "OK");
    await owner.files.unlock({ path: "/work/in/g", breakLocks: true }, owner.mine);
    const again = await narrow.files.lock({ path: "/work/in/g" }, narrow.mine);
    const moved = { path: "/work/in/g", targetPath: "/work/h" };
    assert.equal(await reasonOf(owner.files.rename(moved, owner.mine)), "LOCKED");
    assert.equal((await owner.files.unlock({ path: "/work/in/g", token: again.token }, owner.mine)).ended, 1);

    // A sharee's ends with the share.
    await owner.files.share({ path: "/work", user: BOB }, owner.mine);
    const bob = await visit(doors, door, BOB, { name: "tablet" });
    await bob.files.lock({ root: ALICE, path: "/work/f" }, bob.mine);
    assert.equal(await write(owner, owner.mine, "/work/f"), "LOCKED");
    await owner.files.unshare({ path: "/work", user: BOB }, owner.mine);
    assert.equal(await write(owner, owner.mine, "/work/f"), "OK");
  },
);
