// The short form of the rig that cuts the power.
import { testShortForm } from "#prove/short-form.ts";
import { power } from "./rig.ts";

testShortForm(power);
