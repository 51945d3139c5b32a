// The short form of the rig of what visitors can tell (F14).
import { testShortForm } from "#prove/short-form.ts";
import { anonymous } from "./rig.ts";

testShortForm(anonymous);
