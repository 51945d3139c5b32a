// The short form of the rig of honest people who come all at once (F26).
import { testShortForm } from "#prove/short-form.ts";
import { peaks } from "./peaks-rig.ts";

testShortForm(peaks);
