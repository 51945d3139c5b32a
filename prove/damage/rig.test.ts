// The short form of the rig that damages stored bytes.
import { testShortForm } from "#prove/short-form.ts";
import { damage } from "./rig.ts";

testShortForm(damage);
