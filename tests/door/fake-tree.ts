// A door's tree over a FileServer that a test plays, for one person.
import { systemClock } from "#base/clock.ts";
import { type FakeHandlers, startFakeServer } from "#client/commands/fake-server.fixture.ts";
import { GroveTree } from "#door/tree/grove-tree.ts";
import { makePerson } from "#door/tree/person.ts";
import { serveTree } from "#door/webdav/litmus.fixture.ts";

/** Serves it until the test ends; the address of its top. */
export async function serveFakeTree(
  t: Parameters<typeof serveTree>[0],
  handlers: FakeHandlers,
): Promise<string> {
  const server = await startFakeServer(handlers);
  t.after(() => server.stop());
  const gone = new AbortController();
  const person = makePerson({
    username: "alice@example.com",
    profile: { metaservers: [], ca: undefined, mock: true, idp: undefined, fileserver: server.address },
    credential: () => Promise.resolve("mock-jwt.alice@example.com"),
    signal: gone.signal,
  });
  t.after(() => {
    gone.abort();
    person.cluster.close();
  });
  return await serveTree(t, new GroveTree(person, systemClock));
}
