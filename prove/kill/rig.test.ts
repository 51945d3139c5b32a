// The short form of the rig that kills a FileServer under load.
import { testShortForm } from "#prove/short-form.ts";
import { kill } from "./rig.ts";

testShortForm(kill);
