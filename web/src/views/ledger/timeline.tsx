/** What happened to a notification, line by line, with what the journal has of it. */
import { Badge, Button, CopyButton, Group, Text, Timeline, Tooltip, UnstyledButton } from "@mantine/core";
import {
  IconArrowBackUp,
  IconArrowUpRight,
  IconBan,
  IconBolt,
  IconCircleCheck,
  IconCirclePlus,
  IconCircleX,
  IconEye,
  IconGitMerge,
  IconLock,
  IconMessageOff,
  IconPackage,
  IconPencil,
  IconRefresh,
  IconRobot,
  IconSend,
  IconSpeakerphone,
  IconUserCheck,
  type TablerIcon,
} from "@tabler/icons-react";
import { Fragment, useState } from "react";
import { Link } from "wouter";
import { Verbatim } from "../../parts/json.js";
import type { ThreadName } from "../../parts/known_threads.js";
import { CHANNELS, STATES } from "../../parts/states.js";
import { Time } from "../../parts/time.js";
import { counted, shortId } from "../../parts/words.js";
import { EventPayload } from "./payload.js";
import { type Line, offsetOf, ownerWords, pieces, placeOf, type Said, sentenceOf } from "./story_lines.js";
import classes from "./timeline.module.css";

const LOOKS: Readonly<
  Record<Line["kind"], { readonly icon: TablerIcon; readonly color: string; readonly name: string }>
> = {
  event: { icon: IconBolt, color: "gray", name: "Event" },
  match: { icon: IconCirclePlus, color: "gray", name: "Match" },
  create: { icon: IconCirclePlus, color: "indigo", name: "Made" },
  merge: { icon: IconGitMerge, color: "gray", name: "Merged" },
  flush: { icon: IconPencil, color: "gray", name: "Worded" },
  dispatch: { icon: IconSend, color: "blue", name: "Shown" },
  carrier: { icon: IconPackage, color: "violet", name: "Message to the agent" },
  collect: { icon: IconLock, color: "indigo", name: "Held" },
  settle: { icon: IconCircleCheck, color: "green", name: "Settled" },
  release: { icon: IconArrowBackUp, color: "yellow", name: "Let go" },
  ack: { icon: IconUserCheck, color: "green", name: "Acknowledged" },
  escalate: { icon: IconArrowUpRight, color: "orange", name: "Taken to the user" },
  expire: { icon: IconCircleX, color: "red", name: "Dead letter" },
  suppress: { icon: IconBan, color: "gray", name: "Kept back" },
  observation: { icon: IconEye, color: "gray", name: "Seen by the agent" },
  thread: { icon: IconMessageOff, color: "gray", name: "Conversation closed" },
  redriven: { icon: IconRefresh, color: "indigo", name: "Sent again" },
};

const LEASE = "Its lease epoch: it counts who has had it, and whoever comes with an older number is refused";
const WATCHDOG = "Tidings itself, which looks for what has waited too long";

/** What the agent did itself: settled since it said so, taken to the user by its own act. */
const ACKNOWLEDGED = { icon: IconRobot, color: "green", name: "Acknowledged by the agent" };
const PROMOTED = { icon: IconSpeakerphone, color: "violet", name: "Brought to the user" };

function looksOf({ kind, acknowledged, reason }: Line) {
  if (acknowledged !== undefined) return ACKNOWLEDGED;
  return kind === "escalate" && reason === "promoted" ? PROMOTED : LOOKS[kind];
}

export function StoryTimeline({
  story,
  threadName,
}: {
  readonly story: readonly Line[];
  readonly threadName: ThreadName;
}) {
  const [isWhole, setWhole] = useState(false);
  const before = new Map(story.map((line, index) => [line, story[index - 1]]));
  const shown = pieces(story).flatMap(({ lines, folded }) =>
    folded && !isWhole
      ? [
          <Timeline.Item key={`folded ${lines[0]?.seq}`} bullet={<IconGitMerge size={13} aria-hidden />}>
            <Button size="compact-xs" variant="default" onClick={() => setWhole(true)}>
              Show {counted(lines.length, "line")} like these
            </Button>
          </Timeline.Item>,
        ]
      : lines.map((line) => storyLine(line, before.get(line), threadName)),
  );
  return (
    <Timeline bulletSize={24} lineWidth={2} active={story.length} color="gray" aria-label="Story">
      {shown}
    </Timeline>
  );
}

/** Not a component: the timeline gives its items their places. */
function storyLine(line: Line, before: Line | undefined, threadName: ThreadName) {
  const { icon: Icon, color, name } = looksOf(line);
  const { path = [], owner, lease_epoch, operation, carrier, reason, channel, seq, kind, text } = line;
  const offset = offsetOf(line, before);
  return (
    <Timeline.Item
      key={`${seq} ${kind} ${text}`}
      bullet={<Icon size={14} aria-hidden />}
      color={color}
      data-kind={kind}
    >
      <Group gap="xs" wrap="nowrap" align="baseline">
        <Text span size="sm" fw={600}>
          {name}
        </Text>
        {offset === null ? null : (
          <Tooltip label="After the line before">
            <Text span size="xs" c="dimmed" ml="auto" className={classes["offset"] ?? ""}>
              {offset}
            </Text>
          </Tooltip>
        )}
        <Time at={line.at} {...(offset === null ? { ml: "auto" } : {})} />
      </Group>
      <Group gap={6} my={4} className={classes["facts"] ?? ""}>
        {path.map((state, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a path never changes
          <Badge key={`${state} ${index}`} size="sm" variant="light" color={STATES[state].color} tt="none">
            {STATES[state].word}
          </Badge>
        ))}
        {channel === undefined ? null : <Fact name="channel" value={channel} about={CHANNELS[channel].about} />}
        {owner === undefined || owner === null ? null : (
          <Fact name="held by" value={ownerWords(owner)} icon={IconRobot} about="Nobody else has it meanwhile" />
        )}
        {lease_epoch === undefined ? null : <Fact name="lease" value={String(lease_epoch)} about={LEASE} />}
        {reason === undefined ? null : <Fact name="reason" value={reason.replaceAll("_", " ")} />}
        {operation === "watchdog" ? <Fact name="by" value="the watchdog" about={WATCHDOG} /> : null}
      </Group>
      <Text size="sm" c="dimmed" className="outside" component="div">
        {sentenceOf(line).map((said, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a sentence never changes
          <Fragment key={index}>{shownAs(said)}</Fragment>
        ))}
      </Text>
      {line.kind === "event" && line.event_id !== undefined ? <EventPayload event_id={line.event_id} /> : null}
      {line.notification_id === undefined || line.kind === "match" ? null : (
        <Button component={Link} href={`/ledger/${line.notification_id}`} size="compact-xs" variant="light" mt={4}>
          {line.kind === "redriven" ? "The one that it was sent again as" : "The dead letter that it sends again"}
        </Button>
      )}
      {carrier?.block === undefined || carrier.block === null ? null : (
        <Group mt={6} gap={4} display="block">
          <Verbatim name={`What the model was told, exactly (as ${carrier.block.form})`} text={carrier.block.text} />
          {carrier.thread_id === null ? null : (
            <Text size="xs" c="dimmed" mt={4} className="outside">
              {placeOf(carrier.point)}, in <bdi>{threadName(carrier.thread_id)}</bdi>
              {carrier.turn_id === null ? "" : `, turn ${shortId(carrier.turn_id)}`}
            </Text>
          )}
        </Group>
      )}
    </Timeline.Item>
  );
}

function shownAs(said: Said) {
  if ("at" in said) return <Time at={said.at} span size="sm" c="inherit" />;
  return "id" in said ? <ShortId id={said.id} /> : said.text;
}

function ShortId({ id }: { readonly id: string }) {
  return (
    <CopyButton value={id}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? "Copied" : `${id}, click to copy`}>
          <UnstyledButton
            className={classes["id"] ?? ""}
            onClick={copy}
            aria-label={`${shortId(id)}: copy the id ${id}`}
          >
            {shortId(id)}
          </UnstyledButton>
        </Tooltip>
      )}
    </CopyButton>
  );
}

function Fact({
  name,
  value,
  icon: Icon,
  about,
}: {
  readonly name: string;
  readonly value: string;
  readonly icon?: TablerIcon;
  /** What that means. */
  readonly about?: string;
}) {
  const fact = (
    <Badge
      size="sm"
      variant="default"
      tt="none"
      fw={400}
      maw={260}
      leftSection={Icon === undefined ? null : <Icon size={12} aria-hidden />}
    >
      {name}: <bdi>{value}</bdi>
    </Badge>
  );
  if (about === undefined) return fact;
  return (
    <Tooltip label={about} multiline maw={280} events={{ hover: true, focus: true, touch: true }}>
      {fact}
    </Tooltip>
  );
}
