/** What is wrong with files, and where. */
import { Alert, Code, List, Text } from "@mantine/core";
import { IconFileAlert, IconInfoCircle } from "@tabler/icons-react";
import type { Problem } from "./types.js";

const INSTEAD: Readonly<Record<NonNullable<Problem["instead"]>, string>> = {
  last_good: "What it said before the edit is in effect.",
  built_in: "The built-in one is in effect.",
  all_on: "Nothing is switched off.",
};

export function Problems({
  problems,
  without_effect,
}: {
  readonly problems: readonly Problem[];
  readonly without_effect: readonly string[];
}) {
  const files = new Set(problems.map(({ file }) => file)).size;
  return (
    <>
      {problems.length === 0 ? null : (
        <Alert
          color="red"
          icon={<IconFileAlert />}
          title={files === 1 ? "A file cannot be used as it is" : `${files} files cannot be used as they are`}
        >
          <List size="sm" spacing={6} listStyleType="none">
            {problems.map((problem) => (
              <List.Item key={problem.text}>
                <OneProblem problem={problem} />
              </List.Item>
            ))}
          </List>
        </Alert>
      )}
      {without_effect.map((text) => (
        <Alert key={text} color="gray" icon={<IconInfoCircle />}>
          <Text size="sm" className="outside">
            {text}
          </Text>
        </Alert>
      ))}
    </>
  );
}

export function OneProblem({ problem }: { readonly problem: Problem }) {
  const { file, line, column, key, reason, instead } = problem;
  const at = line === null ? "" : column === null ? `:${line}` : `:${line}:${column}`;
  return (
    <>
      <Text size="sm" className="outside">
        <b>{key ?? nameOf(file)}</b>
        {reason.startsWith("the ") ? ": " : " "}
        {reason}.
      </Text>
      <Text size="xs" component="div">
        <Code className="outside">{`${file}${at}`}</Code>{" "}
        {instead === null ? "Nothing of it is in effect." : INSTEAD[instead]}
      </Text>
    </>
  );
}

/** The last part of a path, on any system. */
function nameOf(file: string): string {
  return file.split(/[\\/]/).at(-1) ?? file;
}
