/** What a tool has answered, as text: what is none is shown as JSON. Throws where that cannot be. */
export function answerText(answer: unknown): string {
  if (typeof answer === "string") return answer;
  if (answer === undefined) return "";
  if (typeof answer !== "object") return String(answer);
  let text: string | undefined;
  try {
    text = JSON.stringify(answer);
  } catch {
    // It is round, or holds what is no JSON.
  }
  if (text === undefined) throw new Error("it answered something that is neither text nor JSON");
  return text;
}
