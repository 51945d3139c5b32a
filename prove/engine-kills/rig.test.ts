// The short form of the rig that kills all parts of a shared engine.
import { testShortForm } from "#prove/short-form.ts";
import { engineKills } from "./rig.ts";

testShortForm(engineKills);
