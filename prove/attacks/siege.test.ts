// The short form of the rig of all that callers without any proof can do at once (F26).
import { testShortForm } from "#prove/short-form.ts";
import { siege } from "./unproven-rig.ts";

testShortForm(siege);
