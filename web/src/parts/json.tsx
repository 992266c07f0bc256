/** A value as it came, whole; as text. */
import { Button, Code, CopyButton, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Fold } from "./fold.js";
import classes from "./json.module.css";

export function Json({
  name,
  value,
  folded = false,
}: {
  readonly name: string;
  readonly value: unknown;
  readonly folded?: boolean;
}) {
  return <Verbatim name={name} text={JSON.stringify(value, null, 2)} folded={folded} />;
}

/** As many lines as are shown at first, as the styles have it; what is a little longer is shown whole. */
const LINES = 12;
const SLACK = 4;
const LINE_CHARS = 52;

/** A text that may be long and comes from elsewhere; it can be folded and copied. */
export function Verbatim({
  name,
  text,
  folded = false,
}: {
  readonly name: string;
  readonly text: string;
  readonly folded?: boolean;
}) {
  const [isWhole, whole] = useDisclosure(linesOf(text) <= LINES + SLACK);
  const copy = (
    <CopyButton value={text}>
      {({ copied, copy }) => (
        <UnstyledButton onClick={copy} fz="xs" c="dimmed" aria-label={`Copy ${name}`}>
          {copied ? "Copied" : "Copy"}
        </UnstyledButton>
      )}
    </CopyButton>
  );
  return (
    <Fold name={name} folded={folded} actions={copy}>
      <Code
        block
        className={`outside ${classes["text"]}`}
        data-cut={!isWhole || undefined}
        tabIndex={0}
        role="region"
        aria-label={name}
      >
        {text}
      </Code>
      {isWhole ? null : (
        <Button size="compact-xs" variant="subtle" mt={4} onClick={whole.open}>
          Show all
        </Button>
      )}
    </Fold>
  );
}

/** About as many as it has where it is shown. */
function linesOf(text: string): number {
  return text.split("\n").reduce((sum, { length }) => sum + Math.max(1, Math.ceil(length / LINE_CHARS)), 0);
}
