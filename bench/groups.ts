// The benchmark's groups in the order of the table; a new group is one module and one line here.
import type { Group } from "./row.ts";
import { actions } from "./rows/actions.ts";
import { bounds } from "./rows/bounds.ts";
import { care } from "./rows/care.ts";
import { cli } from "./rows/cli.ts";
import { console } from "./rows/console.ts";
import { cost, loops } from "./rows/cost.ts";
import { doors } from "./rows/doors.ts";
import { encrypted } from "./rows/encrypted.ts";
import { engineRows } from "./rows/engine.ts";
import { files } from "./rows/files.ts";
import { grpc } from "./rows/grpc.ts";
import { memory } from "./rows/memory.ts";
import { pages } from "./rows/pages.ts";
import { project } from "./rows/project.ts";
import { scale } from "./rows/scale.ts";
import { sessions } from "./rows/sessions.ts";
import { share } from "./rows/share.ts";
import { transfer } from "./rows/transfer.ts";
import { trash } from "./rows/trash.ts";
import { trees } from "./rows/trees.ts";

export const groups: readonly Group[] = [
  grpc,
  transfer,
  encrypted,
  doors,
  files,
  cost,
  loops,
  bounds,
  engineRows,
  trees,
  project,
  scale,
  care,
  trash,
  share,
  sessions,
  memory,
  console,
  actions,
  pages,
  cli,
];
