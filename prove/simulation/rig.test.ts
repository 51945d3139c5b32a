// The short form of the simulation: one seed twice, whose traces must be the same.
import { testShortForm } from "#prove/short-form.ts";
import { simulation } from "./rig.ts";

testShortForm(simulation);
