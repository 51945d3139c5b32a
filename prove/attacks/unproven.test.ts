// The short form of the rig of unproven callers (F26).
import { testShortForm } from "#prove/short-form.ts";
import { unproven } from "./unproven-rig.ts";

testShortForm(unproven);
