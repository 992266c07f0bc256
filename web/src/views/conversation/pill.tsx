/** What is in a conversation and is no message: a line with an icon and a word, more of it below. */
import { ActionIcon, Badge, Text, Tooltip, UnstyledButton } from "@mantine/core";
import { IconChevronRight, IconTimeline, type TablerIcon } from "@tabler/icons-react";
import { type ReactNode, useId } from "react";
import { Link } from "wouter";
import { Time } from "../../parts/time.js";
import style from "./conversation.module.css";
import { useUnfolded } from "./unfolded.js";

interface PillProps {
  readonly icon: TablerIcon;
  readonly color: string;
  readonly word: string;
  /** Beside the word, on its line. */
  readonly more?: ReactNode;
  readonly at: string;
  /** What else can be done, at the end of the line. */
  readonly actions?: ReactNode;
  readonly children?: ReactNode;
  readonly tone?: "quiet";
}

function Head({ icon: Icon, color, word, more }: Pick<PillProps, "icon" | "color" | "word" | "more">) {
  return (
    <>
      <Icon size={17} stroke={1.8} color={`var(--mantine-color-${color}-text)`} aria-hidden style={{ flexShrink: 0 }} />
      <Text size="sm" fw={600} style={{ whiteSpace: "nowrap" }}>
        {word}
      </Text>
      {more}
    </>
  );
}

/** Shown whole. */
export function Pill({ at, actions, children, tone, ...head }: PillProps) {
  return (
    <article className={style["pill"]} data-tone={tone} aria-label={head.word}>
      <div className={style["pillhead"]}>
        <Head {...head} />
        <div className={style["pillend"]}>
          <Time at={at} />
          {actions}
        </div>
      </div>
      {children === undefined ? null : <div className={style["pillbody"]}>{children}</div>}
    </article>
  );
}

/** Folded, until it is asked for. */
export function FoldedPill({ at, actions, children, tone, ...head }: PillProps & { readonly children: ReactNode }) {
  const [isOpen, toggle] = useUnfolded("pill");
  const body = useId();
  return (
    <article className={style["pill"]} data-tone={tone} aria-label={head.word}>
      <div className={style["pillhead"]}>
        <UnstyledButton className={style["fold"]} aria-expanded={isOpen} aria-controls={body} onClick={toggle}>
          <Head {...head} />
          <IconChevronRight size={14} className={style["chevron"]} data-open={isOpen || undefined} aria-hidden />
        </UnstyledButton>
        <div className={style["pillend"]}>
          <Time at={at} />
          {actions}
        </div>
      </div>
      <div id={body} className={isOpen ? style["pillbody"] : undefined} hidden={!isOpen}>
        {isOpen ? children : null}
      </div>
    </article>
  );
}

/** A shape in its colour, and a word. */
export function Word({
  icon: Icon,
  color,
  word,
}: {
  readonly icon: TablerIcon;
  readonly color: string;
  readonly word: string;
}) {
  return (
    <Badge
      size="sm"
      variant="default"
      tt="none"
      fw={500}
      style={{ flexShrink: 0 }}
      leftSection={<Icon size={12} stroke={2} color={`var(--mantine-color-${color}-text)`} aria-hidden />}
    >
      {word}
    </Badge>
  );
}

/** To the whole story of a notification. */
export function LedgerLink({ id, onClick }: { readonly id: string; readonly onClick?: () => void }) {
  return (
    <Tooltip label="Its story, in the ledger">
      <ActionIcon
        component={Link}
        href={`/ledger/${encodeURIComponent(id)}`}
        variant="subtle"
        color="gray"
        size="md"
        aria-label="Its story, in the ledger"
        {...(onClick === undefined ? {} : { onClick })}
      >
        <IconTimeline size={16} stroke={1.7} />
      </ActionIcon>
    </Tooltip>
  );
}
