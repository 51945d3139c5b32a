// The short form of the simulation of leases (F21).
import { testShortForm } from "#prove/short-form.ts";
import { leases } from "./rig.ts";

testShortForm(leases);
