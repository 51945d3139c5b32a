// The short form of the rig that holds the table of sessions against a list (F11).
import { testShortForm } from "#prove/short-form.ts";
import { sessions } from "./rig.ts";

testShortForm(sessions);
