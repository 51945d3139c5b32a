// Tests that links and app passwords at a door work on roots of the shared engine, over a kill and over moves.
import assert from "node:assert/strict";
import { test } from "node:test";
import { enginePlaces } from "#testing/engine-places.ts";
import { freePort } from "#testing/free-ports.ts";
import { until } from "#testing/until.ts";
import { mustBeSound, signIn, startMixedCluster } from "./mixed-cluster.ts";
import type { Person } from "./people.ts";
import { startGrove, stopProgram } from "./processes.ts";

const places = enginePlaces();
const { skip } = places;

/** A link as `grove link` tells it. */
interface Link {
  readonly id: string;
  readonly token: string;
  readonly downloads: number;
  readonly files: number;
}

async function makeLink(person: Person, ...words: string[]): Promise<Link> {
  return JSON.parse(await person.ok("link", "create", ...words, "--json")) as Link;
}

async function linksOf(person: Person): Promise<ReadonlyMap<string, Link>> {
  const { links } = JSON.parse(await person.ok("link", "list", "/", "--json")) as { links: Link[] };
  return new Map(links.map((link) => [link.id, link]));
}

/** A visitor's way to what a link opens, with the cookie of the first look. */
class Visitor {
  readonly #at: string;
  readonly #cookie: string;

  private constructor(at: string, cookie: string) {
    this.#at = at;
    this.#cookie = cookie;
  }

  static async comeIn(door: string, { id, token }: Link): Promise<Visitor> {
    const first = await fetch(`${door}/l/${token}`, { redirect: "manual" });
    assert.equal(first.status, 303);
    return new Visitor(`${door}/l/${id}/`, (first.headers.get("set-cookie") ?? "").split(";", 1)[0] ?? "");
  }

  ask(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { ...(init.headers as Record<string, string> | undefined), cookie: this.#cookie };
    return fetch(`${this.#at}${path}`, { redirect: "manual", ...init, headers });
  }

  /** The body, as soon as the root has a home again. */
  async read(path: string): Promise<string> {
    let text = "";
    await until(async () => {
      const answer = await this.ask(path);
      text = await answer.text();
      return answer.status === 200;
    }, `the link to ${path}`);
    return text;
  }

  async drop(name: string, body: string): Promise<number> {
    const headers = { "sec-fetch-site": "same-origin" };
    const answer = await this.ask(name, { method: "PUT", body, headers });
    await answer.arrayBuffer();
    return answer.status;
  }
}

test("links and app passwords open roots of the engine at a door, over a kill and over moves out and back", {
  skip,
  timeout: 300_000,
}, async (t) => {
  const cluster = await startMixedCluster(t, places);
  const { address, own, engine } = cluster;
  await engine.e1.start();
  await engine.e2.start();
  const alice = await signIn(cluster, "alice");
  const door = `http://127.0.0.1:${await freePort()}`;
  const words = ["door", "-mock", "-listen", new URL(door).host, "-metaserver", address, "-metrics", "off"];
  const process = startGrove(words);
  t.after(() => stopProgram(process, "SIGKILL"));
  await process.says(/files are on (\S+)/u);

  await alice.ok("mkdir", "/pub");
  await alice.ok("mkdir", "/box");
  const { password } = JSON.parse(await alice.ok("app-password", "create", "laptop", "--json")) as {
    password: string;
  };
  const authorization = `Basic ${Buffer.from(`${alice.email}:${password}`).toString("base64")}`;
  const dav = (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`${door}/dav/${path}`, { ...init, headers: { authorization } });
  assert.equal((await dav("pub/a.txt", { method: "PUT", body: "0123456789" })).status, 201);
  assert.equal((await dav("pub/large", { method: "PUT", body: "large ".repeat(1_000_000) })).status, 201);
  assert.equal(await (await dav("pub/a.txt")).text(), "0123456789");

  const [pub, box] = [
    await makeLink(alice, "/pub", "--downloads", "6"),
    await makeLink(alice, "/box", "--drop", "--until", "1d", "--files", "3", "--bytes", "1000"),
  ];
  const visitor = await Visitor.comeIn(door, pub);
  const friend = await Visitor.comeIn(door, box);
  assert.match(await visitor.read(""), /a\.txt" download>a\.txt</u);
  assert.equal(await visitor.read("a.txt"), "0123456789");
  assert.equal((await visitor.read("large")).length, 6_000_000);
  assert.equal(await friend.drop("mine.txt", "theirs"), 201);
  assert.equal(await alice.ok("cat", "/box/mine.txt"), "theirs");
  assert.deepEqual(
    [(await linksOf(alice)).get(pub.id)?.downloads, (await linksOf(alice)).get(box.id)?.files],
    [2, 1],
  );

  const holder = cluster.place(alice.email).home === "e1" ? engine.e1 : engine.e2;
  await holder.end("SIGKILL");
  assert.equal(await visitor.read("a.txt"), "0123456789");
  await until(async () => (await dav("pub/a.txt")).status === 200, "the door finds the other node");
  await until(async () => (await friend.drop("more.txt", "more")) === 201, "a drop at the other node");
  const kept = await linksOf(alice);
  assert.deepEqual([kept.get(pub.id)?.downloads, kept.get(box.id)?.files], [3, 2]);

  await own.start();
  await holder.start();
  for (const to of ["n1", "e1"]) {
    await cluster.operate("root", "move", alice.email, "-to", to, "-wait");
    await cluster.operate("root", "move", alice.email, "-confirm");
    await until(() => cluster.place(alice.email).state === "", "the move has ended");
    assert.equal(await visitor.read("a.txt"), "0123456789");
  }
  const moved = await linksOf(alice);
  assert.deepEqual([moved.get(pub.id)?.downloads, moved.get(box.id)?.files], [5, 2]);
  assert.equal(await visitor.read("a.txt"), "0123456789");
  assert.equal((await visitor.ask("a.txt")).status, 410);

  // A link ends with its folder, by its owner, and for what waits in the trash.
  const { id } = await makeLink(alice, "/pub/a.txt");
  await alice.ok("rm", "/pub/a.txt");
  assert.deepEqual([...(await linksOf(alice)).keys()].toSorted(), [pub.id, box.id].toSorted(), id);
  await alice.ok("link", "revoke", pub.id);
  await until(async () => (await visitor.ask("")).status === 404, "a revoked link opens nothing");
  assert.equal(await cluster.count("link"), 1);
  await alice.ok("app-password", "revoke", "laptop");
  await until(async () => (await dav("pub/large")).status === 401, "a revoked app password");
  await mustBeSound(cluster);
});
