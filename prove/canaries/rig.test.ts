// The short form of the rig of secrets (F15).
import { testShortForm } from "#prove/short-form.ts";
import { canaries } from "./rig.ts";

testShortForm(canaries);
