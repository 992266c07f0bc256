/** Properties draw the same values in every run, unless a test or `TIDINGS_SEED` says otherwise. */
import fc from "fast-check";

const asked = Number(process.env["TIDINGS_SEED"]);

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number.isInteger(asked) && asked !== 0 ? asked : 20_260_103 });
