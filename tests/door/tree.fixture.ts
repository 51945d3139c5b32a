// A FileServer and people at a door before it.
import type { TestContext } from "node:test";
import { systemClock } from "#base/clock.ts";
import type { Cluster } from "#client/connection/cluster.ts";
import { GroveTree } from "#door/tree/grove-tree.ts";
import { makePerson, type SharedRoot } from "#door/tree/person.ts";
import { startTestNode, type TestNode, type TestNodeSettings } from "#fileserver/process/node.fixture.ts";

/** A node with trees of people on it. */
export interface TreeNode {
  readonly node: TestNode;
  /** The tree of a person, with what others share as the test says. `beforeChange` runs before each change. */
  tree(username: string, shared?: readonly SharedRoot[], beforeChange?: () => Promise<void>): GroveTree;
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
    tree(username, shared = [], beforeChange) {
      const person = makePerson({
        username,
        profile: { metaservers: [], ca: undefined, mock: true, idp: undefined, fileserver: node.address },
        credential: () => Promise.resolve(`mock-jwt.${username}`),
        signal: gone.signal,
      });
      t.after(() => person.cluster.close());
      const cluster = beforeChange === undefined ? person.cluster : slipping(person.cluster, beforeChange);
      return new GroveTree({ ...person, cluster, sharedRoots: () => Promise.resolve(shared) }, systemClock);
    },
  };
}

/** A cluster before whose calls that change something another thing happens. */
function slipping(cluster: Cluster, slip: () => Promise<void>): Cluster {
  const runAt: Cluster["runAt"] = async (place, policy, operation) => {
    if (!policy.isRepeatable) await slip();
    return await cluster.runAt(place, policy, operation);
  };
  return new Proxy(cluster, {
    get(target, key) {
      const part: unknown = key === "runAt" ? runAt : Reflect.get(target, key, target);
      return typeof part === "function" ? (part.bind(target) as unknown) : part;
    },
  });
}
