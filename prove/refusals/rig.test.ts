// The short form of the rig of credentials that must be refused (F20).
import { testShortForm } from "#prove/short-form.ts";
import { refusals } from "./rig.ts";

testShortForm(refusals);
