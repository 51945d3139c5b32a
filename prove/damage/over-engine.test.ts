// The short form of the rig that damages what a shared engine has stored (F24).
import { testShortForm } from "#prove/short-form.ts";
import { damageOverEngine } from "./engine-rig.ts";

testShortForm(damageOverEngine);
