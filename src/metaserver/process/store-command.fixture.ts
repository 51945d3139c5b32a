// A metadata store with nodes of a test, and `grove` commands on it beside the MetaServer that has it open.
import { join } from "node:path";
import type { TestContext } from "node:test";
import { ManualClock } from "#base/clock.ts";
import { commandHere } from "#client/terminal/command-here.fixture.ts";
import type { Directory, HeldRoot, NodeRegistration } from "#metaserver/directory/directory.ts";
import { openDirectory } from "#metaserver/directory/open-directory.ts";
import type { MoveStep, RootMove, RootSize } from "#metaserver/directory/root-move.ts";
import { type Outcome, runGrove } from "#testing/run-grove.ts";
import { scratchFolder } from "#testing/scratch-folder.ts";
import { command as nodeCommand } from "./node-command.ts";
import { command as rebalanceCommand } from "./rebalance-command.ts";
import { command as rootCommand } from "./root-move-command.ts";

export const GIB: bigint = 1n << 30n;
/** Commands on a store. */
const COMMANDS: Readonly<Record<string, typeof nodeCommand>> = {
  node: nodeCommand,
  rebalance: rebalanceCommand,
  root: rootCommand,
};
const SPEAKER = { kind: "mock" } as const;

/** The store and the commands. */
export interface StoreUnderCommands {
  readonly directory: Directory;
  readonly clock: ManualClock;
  /** Registers a node with the roots of these owners, so that its lease runs. */
  register(fsId: string, owners?: readonly string[], facts?: Partial<NodeRegistration>): Promise<void>;
  /** Takes steps of a node in a move. */
  step(move: RootMove, ...steps: readonly MoveStep[]): Promise<RootMove>;
  /** Moves a root by the steps of its two nodes, up to the switch. */
  switchOver(owner: string): Promise<void>;
  /** Ends a decided move on both sides. */
  end(owner: string): Promise<void>;
  /**
   * Answers for the nodes: tells sizes when they are asked for, and decides what moves, one after another: it
   * switches, is undone, or waits.
   */
  actAsNodes(
    sizes: Readonly<Record<string, readonly RootSize[]>>,
    decision?: "switch" | "undo" | "wait",
  ): void;
  /** Runs a command of `grove` on the store, inside this process. */
  grove(words: readonly string[], input?: string): Promise<Outcome>;
  /** The same by a start of the program. */
  started(words: readonly string[], input?: string): Promise<Outcome>;
}

/** Opens a new store. */
export async function openStoreUnderCommands(t: TestContext): Promise<StoreUnderCommands> {
  const url = `sqlite:${join(scratchFolder("metaserver-"), "metadata.db")}`;
  const clock = new ManualClock(Date.now());
  const directory = await openDirectory(url, { clock });
  t.after(() => directory.close());
  const epochs = new Map<string, number>();
  const step = async (move: RootMove, ...steps: readonly MoveStep[]): Promise<RootMove> => {
    let last = move;
    for (const one of steps) {
      const fsId = one.step === "thaw" ? move.source : move.target;
      const caller = { fsId, epoch: epochs.get(fsId) ?? 0, speaker: SPEAKER };
      last = await directory.advanceMove(caller, move.moveId, one);
    }
    return last;
  };
  const switchMove = async (move: RootMove): Promise<void> => {
    const { attempt } = await step(move, { step: "freeze" });
    await step(move, { step: "switch", attempt });
  };
  return {
    directory,
    clock,
    async register(fsId, owners = [], facts = {}) {
      const roots = owners.map(
        (owner): HeldRoot => ({ owner, rootId: `root of ${owner}`, version: 1n, grants: [] }),
      );
      const { epoch } = await directory.register({ ...registrationOf(fsId), roots, ...facts });
      epochs.set(fsId, epoch);
    },
    step,
    async switchOver(owner) {
      const move = (await directory.rootMoves()).find((one) => one.owner === owner);
      if (move === undefined) throw new Error(`no move of ${owner}`);
      await switchMove(move);
    },
    async end(owner) {
      const move = (await directory.rootMoves()).find((one) => one.owner === owner);
      for (const fsId of [move?.source ?? "", move?.target ?? ""]) {
        const caller = { fsId, epoch: epochs.get(fsId) ?? 0, speaker: SPEAKER };
        await directory.advanceMove(caller, move?.moveId ?? "", { step: "end" });
      }
    },
    actAsNodes(sizes, decision = "switch") {
      let told = 0;
      const timer = setInterval(() => {
        void (async () => {
          const question = await directory.sizesWanted();
          if (question > told) {
            told = question;
            for (const [fsId, list] of Object.entries(sizes)) {
              const caller = { fsId, epoch: epochs.get(fsId) ?? 0, speaker: SPEAKER };
              await directory.noteRootSizes(caller, { question, page: 0, isLast: true, sizes: list });
            }
          }
          const move = (await directory.rootMoves()).find(({ state }) => state === "copying");
          if (move === undefined || decision === "wait") return;
          if (decision === "switch") await switchMove(move);
          else await directory.decideMove(move.owner, decision);
        })().catch(() => undefined);
      }, 100);
      t.after(() => clearInterval(timer));
    },
    grove: ([name = "", ...words], input = "") => {
      const command = COMMANDS[name];
      if (command === undefined) throw new Error(`no command ${name} on a store`);
      return commandHere(command, [...words, "-meta", url], { stdin: input });
    },
    started: (words, input = "") => runGrove([...words, "-meta", url], { input }),
  };
}

function registrationOf(fsId: string): NodeRegistration {
  return {
    fsId,
    name: fsId,
    address: `${fsId}.example.com:50051`,
    softwareVersion: "0.1.0",
    clusterId: "",
    instanceId: `instance of ${fsId}`,
    dataId: `data of ${fsId}`,
    diskTotalBytes: 1_000n * GIB,
    diskFreeBytes: 500n * GIB,
    diskReserveBytes: 20n * GIB,
    roots: [],
    speaker: SPEAKER,
  };
}
