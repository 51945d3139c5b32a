// The short form of the soak.
import { testShortForm } from "#prove/short-form.ts";
import { soak } from "./rig.ts";

testShortForm(soak);
