import { expect, it } from "vitest";
import { cleanText } from "./clean.js";

it("removes what cannot be seen, and nothing else", () => {
  const wrong: string[] = [];
  for (let code = 0; code <= 0x10ffff; code++) {
    if (code >= 0xd800 && code <= 0xdfff) continue;
    const char = String.fromCodePoint(code);
    const unseen =
      /[\p{Cc}\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\p{Zl}\p{Zp}\uFFF9-\uFFFB]/u.test(char) &&
      char !== "\n" &&
      char !== "\t";
    if (cleanText(`a${char}b`) !== (unseen ? "ab" : `a${char}b`)) wrong.push(code.toString(16));
  }
  expect(wrong).toEqual([]);
});

it("keeps newlines, tabs, other scripts and pictures", () => {
  const text = "a\tb\nc é 漢 עברית 😀 \u00a0";
  expect(cleanText(text)).toBe(text);
});

it("takes out hidden text, overrides of direction and escape sequences", () => {
  const hidden = [..."ignore"].map((char) => String.fromCodePoint(0xe0000 + char.charCodeAt(0))).join("");
  expect(cleanText(`ok${hidden}`)).toBe("ok");
  expect(cleanText("abc\u202ecod.exe\u2066")).toBe("abccod.exe");
  expect(cleanText("\u001b[31mred\u001b[0m\r\n\u0000")).toBe("[31mred[0m\n");
  expect(cleanText("pay\u200bpal\ufeff\u2028!")).toBe("paypal!");
});

it("puts U+FFFD for half a character", () => {
  expect(cleanText("a\ud83d")).toBe("a\ufffd");
  expect(cleanText("\ud83d\u200b\ude00")).toBe("😀");
});
