/** A call of a tool: its name and how it stands; what went in and came out when it is unfolded. */
import { Text } from "@mantine/core";
import { IconCheck, IconLoader, IconTool, IconX, type TablerIcon } from "@tabler/icons-react";
import style from "./conversation.module.css";
import { LongText } from "./long_text.js";
import { FoldedPill, Word } from "./pill.js";
import type { ToolCallItem } from "./rows.js";

const LOOKS: Readonly<
  Record<ToolCallItem["status"], { readonly icon: TablerIcon; readonly color: string; readonly word: string }>
> = {
  pending: { icon: IconLoader, color: "blue", word: "running" },
  completed: { icon: IconCheck, color: "green", word: "done" },
  failed: { icon: IconX, color: "red", word: "failed" },
};
const NAME = 200;

export function ToolCall({ item }: { readonly item: ToolCallItem }) {
  const { name, input, output } = item.content;
  const { icon: Icon, color, word } = LOOKS[item.status];
  return (
    <FoldedPill
      icon={IconTool}
      color="gray"
      word="Tool"
      at={item.timestamp}
      more={
        <>
          <Text size="sm" ff="monospace" className={style["title"]} style={{ flex: "0 1 auto" }}>
            {name.slice(0, NAME)}
          </Text>
          <Word icon={Icon} color={color} word={word} />
        </>
      }
    >
      <Part label="Input" text={JSON.stringify(input, null, 2)} />
      {output === null ? (
        <Text size="xs" c="dimmed" mt={6}>
          It has not answered yet.
        </Text>
      ) : (
        <Part label={item.status === "failed" ? "Error" : "Output"} text={output === "" ? "(nothing)" : output} />
      )}
    </FoldedPill>
  );
}

function Part({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    <>
      <Text size="xs" fw={600} mt={6}>
        {label}
      </Text>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be reached by keyboard */}
      <pre className={`outside ${style["code"]}`} tabIndex={0}>
        <LongText text={text} part={label} />
      </pre>
    </>
  );
}
