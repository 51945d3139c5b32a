// The short form of the rig that rebuilds crash states.
import { testShortForm } from "#prove/short-form.ts";
import { crashStates } from "./rig.ts";

testShortForm(crashStates);
