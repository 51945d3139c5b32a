// The short form of the rig of sign-in peaks (F26).
import { testShortForm } from "#prove/short-form.ts";
import { peaks } from "./peaks-rig.ts";

testShortForm(peaks);
