/** The sign of the product. */
export function Mark({ size = 24 }: { readonly size?: number }) {
  return <img src="/icon.svg" width={size} height={size} alt="" />;
}
