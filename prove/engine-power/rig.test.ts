// The short form of the rig that cuts the power of the shared engine (F29).
import { testShortForm } from "#prove/short-form.ts";
import { enginePower } from "./rig.ts";

testShortForm(enginePower);
