// Windows in which what an action does to its nodes is not told: restarts, absences, errors (decisions D7, D11).

/** What opens a window. */
export interface MaintenanceWindow {
  readonly nodeIds: readonly string[];
  /** Its end at the latest, in wall milliseconds: the action's limit. */
  readonly untilWallMs: number;
  /** What it is for, as people read it. */
  readonly reason: string;
}
