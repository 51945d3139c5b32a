// The short form of the rig of mutated requests (F12).
import { testShortForm } from "#prove/short-form.ts";
import { mutations } from "./rig.ts";

testShortForm(mutations);
