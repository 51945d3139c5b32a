// PUT in chunks over HTTP/1.1: what a client expects to send binds it to nothing, and a body that is cut is no file.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { MemoryTree } from "#door/webdav/memory-tree.fixture.ts";
import type { DavResource, WriteWish } from "#door/webdav/resource.ts";
import { until } from "#testing/until.ts";
import { basic, sendRaw, startTestDoor } from "./door.fixture.ts";

/** A tree that keeps what each PUT wished for, and how it ended. */
class WatchedTree extends MemoryTree {
  readonly wishes: WriteWish[] = [];
  readonly ends: string[] = [];

  override async write(...order: Parameters<MemoryTree["write"]>): Promise<DavResource> {
    this.wishes.push(order[2]);
    const writing = super.write(...order);
    writing.then(
      () => this.ends.push("written"),
      () => this.ends.push("refused"),
    );
    return await writing;
  }
}

test("the length that macOS expects is a hint: more, or less, is stored as it came", async (t) => {
  const tree = new WatchedTree();
  const door = await startTestDoor({ tree });
  t.after(() => door.stop());
  for (const expected of ["3", "5", "70000", "what"]) {
    const own = [`Host: ${door.host}`, `Authorization: ${basic()}`, "Connection: close"];
    const body = ["Transfer-Encoding: chunked", `X-Expected-Entity-Length: ${expected}`];
    const head = ["PUT /dav/f HTTP/1.1", ...own, ...body].join("\r\n");
    const answer = await sendRaw(door.port, `${head}\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n`);
    assert.match(answer, /^HTTP\/1\.1 20[14] /u, expected);
    assert.equal((await tree.look(["f"]))?.size, 5, expected);
    const { size, expectedBytes } = tree.wishes.at(-1) ?? assert.fail("nothing was wished for");
    assert.deepEqual([size, expectedBytes], [undefined, expected === "what" ? undefined : Number(expected)]);
  }
});

test("a body whose connection ends before its last chunk is no file, with an expected length or without", async (t) => {
  const tree = new WatchedTree();
  const door = await startTestDoor({ tree });
  t.after(() => door.stop());
  for (const end of ["end", "resetAndDestroy"] as const) {
    for (const sent of ["5\r\nhello\r\n", "5\r\nhel", "5\r\nhello\r\n0\r\n"]) {
      for (const expected of [[], ["X-Expected-Entity-Length: 5"]]) {
        const before = tree.wishes.length;
        const socket = connect(door.port, "127.0.0.1");
        socket.on("error", () => undefined);
        await once(socket, "connect");
        const own = [`Host: ${door.host}`, `Authorization: ${basic()}`, "Transfer-Encoding: chunked"];
        socket.write(`${["PUT /dav/f HTTP/1.1", ...own, ...expected].join("\r\n")}\r\n\r\n${sent}`);
        await until(() => tree.wishes.length > before);
        socket[end]();
        socket.resume();
        await until(() => tree.ends.length > before);
        assert.equal(tree.ends.at(-1), "refused", `${end} ${sent}`);
        socket.destroy();
      }
    }
  }
  assert.equal(await tree.look(["f"]), undefined);
});
