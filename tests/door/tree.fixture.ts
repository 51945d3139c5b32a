// A FileServer and people at a door before it.
import type { TestContext } from "node:test";
import { systemClock } from "#base/clock.ts";
import { GroveTree } from "#door/tree/grove-tree.ts";
import { makePerson, type SharedRoot } from "#door/tree/person.ts";
import { startTestNode, type TestNode, type TestNodeSettings } from "#fileserver/process/node.fixture.ts";

/** A node with trees of people on it. */
export interface TreeNode {
  readonly node: TestNode;
  /** The tree of a person, with what others share as the test says. */
  tree(username: string, shared?: readonly SharedRoot[]): GroveTree;
}

/** Starts a node that ends with the test. */
export async function startTreeNode(
  t: Pick<TestContext, "after">,
  settings: TestNodeSettings = {},
): Promise<TreeNode> {
  const node = await startTestNode(settings);
  const gone = new AbortController();
  t.after(async () => {
    gone.abort();
    await node.stop();
  });
  return {
    node,
    tree(username, shared = []) {
      const person = makePerson({
        username,
        profile: { metaservers: [], ca: undefined, mock: true, idp: undefined, fileserver: node.address },
        credential: () => Promise.resolve(`mock-jwt.${username}`),
        signal: gone.signal,
      });
      t.after(() => person.cluster.close());
      return new GroveTree({ ...person, sharedRoots: () => Promise.resolve(shared) }, systemClock);
    },
  };
}
