/** Where one can go, in the order in which it is offered. */
import {
  IconActivity,
  IconAdjustments,
  IconInbox,
  IconMessages,
  IconPlayerPlay,
  IconTimeline,
  type TablerIcon,
} from "@tabler/icons-react";
import type { LoadView } from "./parts/view.js";

export interface Place {
  /** The first part of the address. */
  readonly path: string;
  readonly label: string;
  readonly icon: TablerIcon;
  readonly load: LoadView;
}

export const PLACES: readonly Place[] = [
  {
    path: "/threads",
    label: "Conversations",
    icon: IconMessages,
    load: () => import("./views/conversation/index.js"),
  },
  { path: "/inbox", label: "Inbox", icon: IconInbox, load: () => import("./views/inbox/index.js") },
  { path: "/ledger", label: "Ledger", icon: IconTimeline, load: () => import("./views/ledger/index.js") },
  {
    path: "/subscribers",
    label: "Subscribers",
    icon: IconAdjustments,
    load: () => import("./views/subscribers/index.js"),
  },
  { path: "/overview", label: "Overview", icon: IconActivity, load: () => import("./views/overview/index.js") },
  { path: "/try", label: "Try it", icon: IconPlayerPlay, load: () => import("./views/try/index.js") },
];
