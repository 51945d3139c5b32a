// The short form of the rig of all unproven callers' attacks at once (F26).
import { testShortForm } from "#prove/short-form.ts";
import { siege } from "./unproven-rig.ts";

testShortForm(siege);
