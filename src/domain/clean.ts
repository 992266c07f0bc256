/**
 * What `cleanText` removes. A reader cannot see these characters, or they change how the text around them looks:
 *
 * - control characters: U+0000 to U+0008, U+000B to U+001F, U+007F to U+009F (newline and tab stay);
 * - separators that some show as a new line: U+2028, U+2029;
 * - bidi controls: U+061C, U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069;
 * - zero-width and other characters that Unicode says to show as nothing (Default_Ignorable_Code_Point): U+00AD, U+034F,
 *   U+115F, U+1160, U+17B4, U+17B5, U+180B to U+180F, U+200B to U+200D, U+2060 to U+2065, U+206A to U+206F, U+3164,
 *   U+FE00 to U+FE0F (variation selectors), U+FEFF, U+FFA0, U+FFF0 to U+FFF8, U+1BCA0 to U+1BCA3, U+1D173 to U+1D17A,
 *   U+E0000 to U+E0FFF (tags and further variation selectors, in which text can be hidden from people);
 * - interlinear annotation: U+FFF9 to U+FFFB.
 */
const REMOVED = new RegExp(
  "[\\u{0}-\\u{8}\\u{B}-\\u{1F}\\u{7F}-\\u{9F}\\u{AD}\\u{34F}\\u{61C}\\u{115F}\\u{1160}\\u{17B4}\\u{17B5}" +
    "\\u{180B}-\\u{180F}\\u{200B}-\\u{200F}\\u{2028}-\\u{202E}\\u{2060}-\\u{206F}\\u{3164}\\u{FE00}-\\u{FE0F}\\u{FEFF}" +
    "\\u{FFA0}\\u{FFF0}-\\u{FFFB}\\u{1BCA0}-\\u{1BCA3}\\u{1D173}-\\u{1D17A}\\u{E0000}-\\u{E0FFF}]+",
  "gu",
);

/** Most texts: nothing in them can be removed. */
const PLAIN = /^[\t\n\x20-\x7e]*$/;

/** Text from outside, as it may be shown: without the characters above; half a surrogate pair becomes U+FFFD. */
export function cleanText(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.replace(REMOVED, "").toWellFormed();
}
