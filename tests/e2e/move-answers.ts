// Made-up answers about roots that move: a node that is out of service, plans that fit and one that does not.
import type { DrainPlanView, MoveList, RebalancePlanView, RootMoveView } from "#wire/webapi/root-move.ts";
import type { FakeConsole } from "./fake-console.ts";
import { BOB } from "./full-cluster.ts";

const GIB = 2 ** 30;
const LONG = "a.very.long.name.of.somebody@department.university.example";
const NAMES: Readonly<Record<string, string>> = {
  n1: "fs-x86-1",
  n2: "fs-x86-2",
  n4: "fs-a-node-with-a-rather-long-name-in-the-cellar",
};

function way(from: string, to: string): Pick<RootMoveView, "from" | "from_name" | "to" | "to_name"> {
  return { from, from_name: NAMES[from] ?? from, to, to_name: NAMES[to] ?? to };
}

function moves(now: number): RootMoveView[] {
  const move = (
    owner: string,
    state: RootMoveView["state"],
    more: Partial<RootMoveView> = {},
  ): RootMoveView => ({
    owner,
    ...way("n2", "n1"),
    state,
    percent: null,
    remaining_seconds: null,
    copied_bytes: 0,
    total_bytes: null,
    problem: null,
    started_at: now - 372,
    changed_at: now - 2,
    ...more,
  });
  const sizes = { copied_bytes: 7.4 * GIB, total_bytes: 15.6 * GIB };
  return [
    move("alice@people.example", "frozen", { percent: 99, remaining_seconds: 0 }),
    move(BOB, "copying", { percent: 47, remaining_seconds: 412, ...sizes }),
    move(LONG, "copying", {
      ...way("n2", "n4"),
      percent: 12,
      copied_bytes: GIB,
      total_bytes: 8 * GIB,
      problem: "there is no room here for 8 GiB above the reserve",
    }),
    move("dora@people.example", "switched"),
    move("emil@people.example", "undone", way("n1", "n4")),
  ].map((one) => ({
    ...one,
    copied_bytes: Math.trunc(one.copied_bytes),
    total_bytes: whole(one.total_bytes),
  }));
}

function whole(bytes: number | null): number | null {
  return bytes === null ? null : Math.trunc(bytes);
}

/** Answers everything about moves. */
export function answerMoves(fake: FakeConsole, now: number): void {
  const say = (path: string, reply: object): void => void fake.replies.set(path, reply);
  const list: MoveList = {
    moves: moves(now),
    moves_total: 5,
    drains: [
      {
        node_id: "n2",
        node_name: "fs-x86-2",
        driven: true,
        roots_left: 1_201,
        under_way: 3,
        kept_copies: 1,
        removing_copies: 0,
        to_engine: false,
        remove_command: "grove node remove n2 -meta sqlite:/srv/grove-meta/metadata.db",
        problem: `no node has room for ${LONG}`,
      },
      {
        node_id: "n3",
        node_name: "fs-pi4",
        driven: false,
        roots_left: 0,
        under_way: 0,
        kept_copies: 0,
        removing_copies: 0,
        to_engine: false,
        remove_command: "grove node remove n3 -meta sqlite:/srv/grove-meta/metadata.db",
        problem: null,
      },
    ],
    rebalance: { waiting: 12, problem: "bob@people.example: n4 does not run" },
  };
  say("GET /api/moves", list);
  const planned = [
    { owner: LONG, bytes: 8 * GIB, ...way("n1", "n4") },
    { owner: "finn@people.example", bytes: 3 * GIB, ...way("n1", "n2") },
  ];
  const plan: DrainPlanView = {
    node_id: "n1",
    node_name: "fs-x86-1",
    sizes_known: true,
    moves: planned,
    moves_total: 31,
    bytes_total: 90 * GIB,
    under_way: 0,
    to_engine: false,
    on_engine: false,
    engine_nodes: 2,
    without_room: [],
    without_room_total: 0,
    blocked_by: [],
  };
  // The other way as soon as it is asked for.
  const toEngine = planned.map((move) => ({ ...move, to: "e1", to_name: "fs-engine-1" }));
  fake.replies.set("POST /api/drains/n1/plan", (body) =>
    (body as { to_engine: boolean }).to_engine ? { ...plan, moves: toEngine, to_engine: true } : plan,
  );
  say("POST /api/drains/n4/plan", {
    ...plan,
    node_id: "n4",
    node_name: NAMES["n4"],
    without_room: [{ owner: LONG, bytes: 800 * GIB, missing_bytes: 460 * GIB }],
    without_room_total: 1,
    blocked_by: [`Roots are on their way to ${NAMES["n4"]} (${LONG}): undo these moves first, or wait`],
  });
  const balance: RebalancePlanView = {
    plan_id: "0123456789abcdef",
    moves: planned,
    bytes_total: 11 * GIB,
    silent_nodes: ["fs-pi4"],
  };
  say("POST /api/rebalance/plan", balance);
}
