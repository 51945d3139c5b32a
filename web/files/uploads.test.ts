// The queue of uploads over a played door: folders that go away, refusals of one file, and giving up.
import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "#testing/until.ts";
import { type Place, Refusal } from "./api.ts";
import { keyOfUpload } from "./cut-uploads.ts";
import type { sendFile } from "./send-file.ts";
import { Uploads } from "./uploads.ts";
import { folderOf } from "./words.ts";

const HERE = { root: "", path: "/" };
const refused = (status: number, error: string): Refusal => new Refusal(status, { error, message: error });
const dropped = (path: string): { path: string; file: File } => ({
  path,
  file: new File(["x"], path, { lastModified: 1 }),
});

/** A door with folders and files, of which each may be deleted by others. */
class PlayedDoor {
  readonly folders = new Set(["/"]);
  readonly files = new Set<string>();
  readonly made: string[] = [];
  readonly ended: string[] = [];
  readonly waits: number[] = [];
  /** Ends every wait. */
  waited: Promise<void> = Promise.resolve();
  sent = 0;
  /** Called before a file is taken; its refusal is the answer. */
  onSend: (sending: Parameters<typeof sendFile>[0]) => Promise<void> = async () => undefined;
  readonly uploads = new Uploads({
    send: async (sending) => {
      this.sent++;
      const { path } = sending.place;
      await this.onSend(sending);
      if (this.files.has(folderOf(path))) throw refused(409, "NOT_DIRECTORY");
      if (!this.folders.has(folderOf(path))) throw refused(404, "NO_SUCH_PATH");
      this.files.add(path);
    },
    makeFolder: async ({ path }: Place) => {
      this.made.push(path);
      if (this.folders.has(path) || this.files.has(path)) throw refused(409, "PATH_EXISTS");
      if (this.files.has(folderOf(path))) throw refused(409, "NOT_DIRECTORY");
      if (!this.folders.has(folderOf(path))) throw refused(404, "NO_SUCH_PATH");
      this.folders.add(path);
    },
    isFolder: async ({ path }) => this.folders.has(path),
    isThere: async ({ path }) => this.files.has(path),
    end: (keys) => this.ended.push(...keys),
    wait: async (ms) => {
      this.waits.push(ms);
      await this.waited;
    },
  });

  /** Waits until all that was just added has the state. */
  async all(state: string): Promise<void> {
    const before = this.uploads.view();
    await until(() => {
      const view = this.uploads.view();
      const { items } = view;
      return view !== before && items.length > 0 && items.every((item) => item.state === state);
    }, state);
  }
}

test("a folder that was deleted between two drops, and one during a drop, are made again", async () => {
  const door = new PlayedDoor();
  door.uploads.add(HERE, [dropped("a/b/one"), dropped("a/b/two")], []);
  await door.all("done");
  door.folders.delete("/a");
  door.folders.delete("/a/b");
  door.made.length = 0;
  door.uploads.add(HERE, [dropped("a/b/three")], []);
  await door.all("done");
  assert.deepEqual(door.made, ["/a/b", "/a", "/a/b"]);
  assert.equal(door.sent, 3, "no file is sent in vain");

  let gone = false;
  door.onSend = async ({ place }) => {
    if (gone || place.path !== "/a/b/five") return;
    gone = true;
    door.folders.delete("/a");
    door.folders.delete("/a/b");
  };
  door.uploads.add(HERE, [dropped("a/b/four"), dropped("a/b/five")], []);
  await door.all("done");
  assert.ok(door.folders.has("/a/b") && door.files.has("/a/b/five"));
  assert.deepEqual(door.waits, []);
});

test("a folder that cannot be made again fails its files with the door's sentence", async () => {
  const door = new PlayedDoor();
  door.onSend = async () => {
    throw refused(404, "NO_SUCH_PATH");
  };
  door.uploads.add(HERE, [dropped("a/one")], []);
  await door.all("failed");
  assert.equal(door.sent, 2);
  assert.equal(door.uploads.view().items[0]?.problem, "NO_SUCH_PATH");
});

test("a full space is named as whose it is, and only one's own trash is offered", async () => {
  for (const [root, words, isFull] of [
    ["", /^Your space is full.* Empty the trash/u, true],
    ["ada@example.com", /^The space of ada@example\.com is full.* Ask for room there/u, false],
  ] as const) {
    const door = new PlayedDoor();
    door.onSend = () => Promise.reject(refused(507, "QUOTA_EXCEEDED"));
    door.uploads.add({ root, path: "/" }, [dropped("one")], []);
    await door.all("failed");
    const { stopped } = door.uploads.view();
    assert.match(stopped?.text ?? "", words);
    assert.equal(stopped?.isFull, isFull);
  }
});

test("files of a folder whose name a file has fail at once", async () => {
  const door = new PlayedDoor();
  door.files.add("/taken");
  door.uploads.add(HERE, [dropped("taken/one"), dropped("taken/in/two")], ["taken/empty"]);
  await door.all("failed");
  assert.deepEqual(
    door.uploads.view().items.map(({ problem }) => problem),
    ["NOT_DIRECTORY", "NOT_DIRECTORY"],
  );
  assert.equal(door.sent, 1);
  assert.deepEqual(door.waits, []);
});

test("a dropped folder without files that cannot be made is told, and made once it can be", async () => {
  const door = new PlayedDoor();
  door.files.add("/taken");
  door.folders.add("/there");
  door.uploads.add(HERE, [], ["taken", "taken/in", "there", "new"]);
  const unmade = (): object =>
    Object.fromEntries(door.uploads.view().unmade.map(({ place, problem }) => [place.path, problem]));
  await until(() => Object.keys(unmade()).length === 2, "what could not be made");
  assert.deepEqual(unmade(), { "/taken": "a file has this name", "/taken/in": "NOT_DIRECTORY" });
  assert.ok(door.folders.has("/new"));
  door.files.delete("/taken");
  door.uploads.retry();
  await until(() => Object.keys(unmade()).length === 0 && door.folders.has("/taken/in"), "the second try");
});

test("an upload that moves on between failures is never given up", async () => {
  const door = new PlayedDoor();
  let safe = 0;
  door.onSend = async ({ onSafe }) => {
    if (safe === 200) return;
    onSafe(safe++);
    throw refused(503, "AWAY");
  };
  door.uploads.add(HERE, [dropped("one")], []);
  await door.all("done");
  assert.equal(door.sent, 201);
  assert.ok(Math.max(...door.waits) <= 1_000, "waits begin anew");
});

test("giving up ends what has begun at the server, and what was on its way", async () => {
  const door = new PlayedDoor();
  door.onSend = ({ signal }) =>
    new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(refused(0, "NETWORK")));
    });
  const drop = ["one", "two", "three", "four", "five"].map(dropped);
  door.uploads.add(HERE, drop, []);
  await until(() => door.sent === 4, "four at once");
  door.uploads.cancel();
  assert.deepEqual(
    door.ended,
    drop.map(({ path, file }) => keyOfUpload("", `/${path}`, file)),
  );
  await until(() => door.uploads.view().items.length === 0, "an empty queue");
  assert.deepEqual([door.sent, door.files.size], [4, 0]);
});

test("nothing is made for a file that waited for its next try when all was given up", async () => {
  const door = new PlayedDoor();
  let endWait = (): void => undefined;
  door.waited = new Promise((resolve) => {
    endWait = resolve;
  });
  door.onSend = async () => {
    throw refused(503, "AWAY");
  };
  door.uploads.add(HERE, [dropped("a/one")], []);
  await until(() => door.waits.length === 1, "the wait");
  door.uploads.cancel();
  endWait();
  door.onSend = async () => undefined;
  door.uploads.add(HERE, [dropped("b/two")], []);
  await door.all("done");
  assert.deepEqual([door.made, [...door.files], door.sent], [["/a", "/b"], ["/b/two"], 2]);
});

test("a file that keeps both names, or is skipped, ends what had begun under the first", async () => {
  const door = new PlayedDoor();
  door.onSend = async ({ place }) => {
    if (place.path === "/one") throw refused(409, "PATH_EXISTS");
  };
  const one = dropped("one");
  door.uploads.add(HERE, [one], []);
  await door.all("taken");
  door.uploads.answer(door.uploads.view().items, "both");
  await door.all("done");
  assert.deepEqual([...door.files], ["/one (2)"]);
  assert.deepEqual(door.ended, [keyOfUpload("", "/one", one.file)]);
});

test("a file that is kept beside another takes the next number that is free, and asks once", async () => {
  const door = new PlayedDoor();
  const taken = ["/a.txt", "/a (2).txt", "/a (3).txt"];
  for (const path of taken) door.files.add(path);
  door.onSend = async ({ place }) => {
    if (door.files.has(place.path)) throw refused(409, "PATH_EXISTS");
  };
  door.uploads.add(HERE, [dropped("a.txt")], []);
  await door.all("taken");
  door.uploads.answer(door.uploads.view().items, "both");
  await door.all("done");
  assert.ok(door.files.has("/a (4).txt"));
  assert.equal(door.sent, 2, "no file is sent in vain");
});
