/** Text from outside as it is; of a very long one the beginning, until all of it is asked for. */
import { Anchor } from "@mantine/core";
import { useUnfolded } from "./unfolded.js";

const LONG = 4_000;
const count = new Intl.NumberFormat("en");

export function LongText({
  text,
  part = "text",
  name,
  long = LONG,
}: {
  readonly text: string;
  /** Which it is, where several stand in one line. */
  readonly part?: string;
  /** What it is known by, if not by its place. */
  readonly name?: string;
  /** More characters than so many are too many; then half of them are shown. */
  readonly long?: number;
}) {
  const [isWhole, toggle] = useUnfolded(part, name);
  if (text.length <= long) return text;
  return (
    <>
      {isWhole ? text : `${text.slice(0, long / 2)}…`}{" "}
      <Anchor component="button" type="button" size="xs" onClick={toggle}>
        {isWhole ? "Show less" : `Show all ${count.format(text.length)} characters`}
      </Anchor>
    </>
  );
}
