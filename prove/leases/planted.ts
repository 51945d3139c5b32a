// Planted bugs of leases, and of moves to, from and within the shared engine.
import type { PlantedBug } from "#prove/rig.ts";

const HOLDER = "src/storage/shared/lease-holder.ts";
const WATCH = "src/storage/shared/lease-watch.ts";
const HELD = "src/storage/engine/held-roots.ts";
const TARGET = "src/fileserver/moves/move-target.ts";
const ARRIVALS = "src/storage/engine/arrivals.ts";
const DEPARTURES = "src/storage/engine/departures.ts";
const RECEIPTS = "src/storage/metadata/move-receipts.ts";
const SOURCE = "src/fileserver/moves/move-source.ts";
const MOVER = "src/fileserver/moves/root-mover.ts";
const MOVE_ROWS = "src/metaserver/directory/root-move-rows.ts";
const STEPS = "src/metaserver/directory/root-move-commands.ts";

const ofLeases: readonly PlantedBug[] = [
  {
    name: "lease-forgets-sleep",
    is: "a machine's sleep does not count against its lease",
    rigs: ["leases"],
    edits: [
      {
        file: HOLDER,
        from: "return Math.max(steadyMs - this.#renewedAt.steadyMs, bootMs - this.#renewedAt.bootMs);",
        to: "void bootMs;\n    return steadyMs - this.#renewedAt.steadyMs;",
      },
    ],
  },
  {
    name: "taken-over-too-soon",
    is: "roots are taken from a process before its lease has ended",
    rigs: ["leases"],
    edits: [{ file: WATCH, from: "?? askedAtMs) >= leaseMs,", to: "?? askedAtMs) >= leaseMs / 2," }],
  },
  {
    name: "served-before-it-is-fetched",
    is: "a root that was taken over is served before what serving needs has come",
    rigs: ["leases"],
    edits: [
      {
        file: HELD,
        from: "    await taking(roots);\n",
        to: "    void taking(roots).catch(() => undefined);\n",
      },
    ],
  },
];

const ofMoves: readonly PlantedBug[] = [
  {
    name: "served-before-the-switch",
    is: "a root that has come, to a disk or to the engine, is served before its switch is in the store",
    rigs: ["leases"],
    edits: [
      {
        file: TARGET,
        from: "    await known.take({ moveId, step: MoveStep.SWITCH, attempt });\n    const local",
        to: "    void known.take({ moveId, step: MoveStep.SWITCH, attempt }).catch(() => undefined);\n    const local",
      },
    ],
  },
  {
    name: "take-over-thaws",
    is: "a process of the engine that takes over a frozen root, on its way to a disk or within, serves it",
    rigs: ["leases"],
    edits: [
      {
        file: DEPARTURES,
        from: "    for (const move of moves) await this.#keep(move);\n",
        to: '    for (const move of moves) if (move.state !== "frozen") await this.#keep(move);\n',
      },
    ],
  },
  {
    name: "receipts-skip-changes",
    is: "a receipt counts for changes of its bucket that came after it was read, which are never sent",
    rigs: ["leases"],
    edits: [
      {
        file: RECEIPTS,
        from: "UPDATE move_bucket SET sent = ?1,",
        to: "UPDATE move_bucket SET sent = changes,",
      },
    ],
  },
  {
    name: "handed-over-root-stays",
    is: "the holder of before serves a root on that it has handed over within the engine",
    rigs: ["leases"],
    edits: [
      {
        file: DEPARTURES,
        from: "there === undefined && root !== undefined && (await commits.isHeld(root));",
        to: "there === undefined && root !== undefined;",
      },
    ],
  },
  {
    name: "undone-arrival-half-removed",
    is: "of a move to the engine that is undone one slice is removed, and the rest stays for ever",
    rigs: ["leases"],
    edits: [
      {
        file: ARRIVALS,
        from: '    while (dropped === "more") dropped = await this.#deps.commits.dropSlice(arrival.held);\n',
        to: '    if (dropped === "more") dropped = "done";\n',
      },
    ],
  },
  {
    name: "adopted-without-its-source",
    is: "who takes the place of a target that had the root asks the source of before for ever",
    rigs: ["leases"],
    edits: [{ file: STEPS, from: "return root?.fs_id === target ? target : source;", to: "return source;" }],
  },
  {
    name: "second-take-over-not-followed",
    is: "who takes a root over from the target of its move does not become the move's source",
    rigs: ["leases"],
    edits: [
      {
        file: MOVE_ROWS,
        from: "const places = isUnderWay(move) ? [source, target] : [source];",
        to: "const places = [source];",
      },
    ],
  },
  {
    name: "ended-move-kept-in-mind",
    is: "a process that had no news of a hand-over's end never serves the root again, should it come back",
    rigs: ["leases"],
    edits: [
      {
        file: MOVER,
        from: "      await moves.takeOver(moveId);\n      const local = moves.list().find((one) => one.moveId === moveId);\n      if (local === undefined) continue;\n",
        to: "      const local = moves.list().find((one) => one.moveId === moveId);\n      if (local === undefined) continue;\n",
      },
    ],
  },
  {
    name: "freeze-outlives-its-move",
    is: "a process that froze a root, and lost it frozen, never serves it again, should it come back",
    rigs: ["leases"],
    edits: [
      {
        file: SOURCE,
        from: "return frozenBy !== undefined && moves.list().some(({ moveId }) => moveId === frozenBy);",
        to: "return frozenBy !== undefined;",
      },
    ],
  },
];

/** What the rig must find. */
export const leaseBugs: readonly PlantedBug[] = [...ofLeases, ...ofMoves];
