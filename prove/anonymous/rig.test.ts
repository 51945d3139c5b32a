// The short form of the rig of anonymous visitors (F14).
import { testShortForm } from "#prove/short-form.ts";
import { anonymous } from "./rig.ts";

testShortForm(anonymous);
