// The list of all planted bugs: what each rig must be able to find.

import { anonymousBugs } from "./anonymous/planted.ts";
import { attackBugs } from "./attacks/planted.ts";
import { authorizationBugs } from "./authorization/planted.ts";
import { canaryBugs } from "./canaries/planted.ts";
import { crashStatesBugs } from "./crash-states/planted.ts";
import { damageBugs } from "./damage/planted.ts";
import { engineKillBugs } from "./engine-kills/planted.ts";
import { enginePowerBugs } from "./engine-power/planted.ts";
import { fairnessBugs } from "./fairness/planted.ts";
import { ioFaultBugs } from "./io-faults/planted.ts";
import { killBugs } from "./kill/planted.ts";
import { leaseBugs } from "./leases/planted.ts";
import { modelBugs } from "./model/planted.ts";
import { moveBugs } from "./moves/planted.ts";
import { mutationBugs } from "./mutations/planted.ts";
import { partitionBugs } from "./partitions/planted.ts";
import { powerBugs } from "./power/planted.ts";
import { quotaBugs } from "./quota/planted.ts";
import { refusalBugs } from "./refusals/planted.ts";
import type { PlantedBug } from "./rig.ts";
import { sessionBugs } from "./sessions/planted.ts";
import { simulationBugs } from "./simulation/planted.ts";
import { soakBugs } from "./soak/planted.ts";
import { syscallBugs } from "./syscalls/planted.ts";

/** The planted bugs of all rigs. */
export const plantedBugs: readonly PlantedBug[] = [
  ...killBugs,
  ...syscallBugs,
  ...ioFaultBugs,
  ...powerBugs,
  ...crashStatesBugs,
  ...damageBugs,
  ...partitionBugs,
  ...moveBugs,
  ...engineKillBugs,
  ...enginePowerBugs,
  ...simulationBugs,
  ...soakBugs,
  ...sessionBugs,
  ...anonymousBugs,
  ...refusalBugs,
  ...quotaBugs,
  ...modelBugs,
  ...leaseBugs,
  ...mutationBugs,
  ...attackBugs,
  ...fairnessBugs,
  ...canaryBugs,
  ...authorizationBugs,
];
