// Every rig, in the order of docs/proof.md.

import { anonymous } from "./anonymous/rig.ts";
import { doorAttacks } from "./attacks/door-rig.ts";
import { peaks } from "./attacks/peaks-rig.ts";
import { attacks } from "./attacks/rig.ts";
import { siege, unproven } from "./attacks/unproven-rig.ts";
import { authorization, authorizationOverEngine } from "./authorization/rig.ts";
import { canaries } from "./canaries/rig.ts";
import { crashStates } from "./crash-states/rig.ts";
import { damageOverEngine } from "./damage/engine-rig.ts";
import { damage } from "./damage/rig.ts";
import { engineKills } from "./engine-kills/rig.ts";
import { enginePower } from "./engine-power/rig.ts";
import { fairness } from "./fairness/rig.ts";
import { ioFaults } from "./io-faults/rig.ts";
import { kill } from "./kill/rig.ts";
import { leases } from "./leases/rig.ts";
import { model, modelOverEngine } from "./model/rig.ts";
import { moves } from "./moves/rig.ts";
import { mutations } from "./mutations/rig.ts";
import { partitions } from "./partitions/rig.ts";
import { power } from "./power/rig.ts";
import { quota, quotaOverEngine } from "./quota/rig.ts";
import { refusals } from "./refusals/rig.ts";
import type { Rig } from "./rig.ts";
import { sessions } from "./sessions/rig.ts";
import { simulation } from "./simulation/rig.ts";
import { soak } from "./soak/rig.ts";
import { syscalls } from "./syscalls/rig.ts";

/** The rigs by the order of their figures. */
export const rigs: readonly Rig[] = [
  kill,
  syscalls,
  ioFaults,
  power,
  crashStates,
  damage,
  partitions,
  moves,
  engineKills,
  simulation,
  soak,
  sessions,
  anonymous,
  refusals,
  quota,
  model,
  mutations,
  attacks,
  doorAttacks,
  unproven,
  siege,
  peaks,
  fairness,
  canaries,
  authorization,
  modelOverEngine,
  authorizationOverEngine,
  quotaOverEngine,
  damageOverEngine,
  enginePower,
  leases,
];
