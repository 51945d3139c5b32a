// The short form of the rig of attacks on a door (F30).
import { testShortForm } from "#prove/short-form.ts";
import { doorAttacks } from "./door-rig.ts";

testShortForm(doorAttacks);
