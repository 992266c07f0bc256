import type { Command } from "./command.js";
import { ack } from "./commands/ack.js";
import { audit } from "./commands/audit.js";
import { backup } from "./commands/backup.js";
import { deadList } from "./commands/dead_list.js";
import { deadRedrive } from "./commands/dead_redrive.js";
import { doctor } from "./commands/doctor.js";
import { emit } from "./commands/emit.js";
import { explain } from "./commands/explain.js";
import { inbox } from "./commands/inbox.js";
import { ledger } from "./commands/ledger.js";
import { notify } from "./commands/notify.js";
import { prune } from "./commands/prune.js";
import { restore } from "./commands/restore.js";
import { serve } from "./commands/serve.js";
import { subscribersCheck } from "./commands/subscribers_check.js";
import { subscribersDisable } from "./commands/subscribers_disable.js";
import { subscribersEnable } from "./commands/subscribers_enable.js";
import { subscribersList } from "./commands/subscribers_list.js";
import { subscribersTest } from "./commands/subscribers_test.js";
import { tokenCreate } from "./commands/token_create.js";
import { tokenList } from "./commands/token_list.js";
import { tokenRevoke } from "./commands/token_revoke.js";
import { tour } from "./commands/tour.js";

/** In the order in which the help shows them. */
export const COMMANDS: readonly Command[] = [
  serve,
  tour,
  emit,
  notify,
  inbox,
  ack,
  ledger,
  explain,
  deadList,
  deadRedrive,
  subscribersList,
  subscribersDisable,
  subscribersEnable,
  subscribersCheck,
  subscribersTest,
  tokenCreate,
  tokenList,
  tokenRevoke,
  audit,
  doctor,
  prune,
  backup,
  restore,
];
