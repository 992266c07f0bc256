/** The life of a delivery as a picture: every state and move there is, and the way that this one took. */
import type { State } from "../../live/rows.js";
import { useIsNarrow } from "../../parts/panes.js";
import { STATES } from "../../parts/states.js";
import classes from "./machine.module.css";

interface Point {
  readonly x: number;
  readonly y: number;
}

interface Layout {
  readonly width: number;
  readonly height: number;
  readonly places: Readonly<Record<State, Point>>;
  /** Where the moves between PENDING and LOCKED bend to: there, and back. */
  readonly bends: readonly [Point, Point];
}

const BOX = { width: 104, height: 34 };

const WIDE: Layout = {
  width: 512,
  height: 184,
  places: {
    PENDING: { x: 54, y: 62 },
    DISPATCHED: { x: 189, y: 62 },
    LOCKED: { x: 324, y: 62 },
    DELIVERED: { x: 458, y: 62 },
    SUPPRESSED: { x: 54, y: 156 },
    FAILED: { x: 189, y: 156 },
    ESCALATED: { x: 324, y: 156 },
  },
  bends: [
    { x: 189, y: 6 },
    { x: 189, y: -14 },
  ],
};

const NARROW: Layout = {
  width: 340,
  height: 292,
  places: {
    PENDING: { x: 104, y: 24 },
    DISPATCHED: { x: 104, y: 104 },
    LOCKED: { x: 104, y: 184 },
    DELIVERED: { x: 104, y: 264 },
    SUPPRESSED: { x: 280, y: 24 },
    FAILED: { x: 280, y: 104 },
    ESCALATED: { x: 280, y: 184 },
  },
  bends: [
    { x: -10, y: 104 },
    { x: -50, y: 104 },
  ],
};

const MOVES: readonly (readonly [State, State])[] = [
  ["PENDING", "DISPATCHED"],
  ["DISPATCHED", "LOCKED"],
  ["LOCKED", "DELIVERED"],
  ["LOCKED", "ESCALATED"],
  ["ESCALATED", "DELIVERED"],
  ["ESCALATED", "FAILED"],
  ["DISPATCHED", "FAILED"],
  ["PENDING", "FAILED"],
  ["PENDING", "SUPPRESSED"],
  ["PENDING", "LOCKED"],
  ["LOCKED", "PENDING"],
];

export function Machine({ states, now }: { readonly states: readonly State[]; readonly now: State }) {
  const layout = useIsNarrow() ? NARROW : WIDE;
  const taken = new Set(states.slice(1).map((state, index) => `${states[index]} ${state}`));
  const visits = (state: State) => states.filter((one) => one === state).length;
  const words = states.map((state) => STATES[state].word).join(", ");
  return (
    <svg
      className={classes["machine"]}
      viewBox={`0 0 ${layout.width} ${layout.height}`}
      style={{ maxWidth: layout.width }}
      role="img"
      aria-label={`The way that it took: ${words}`}
    >
      <defs>
        {["there", "taken"].map((name) => (
          <marker
            key={name}
            id={`arrow-${name}`}
            viewBox="0 0 8 8"
            refX={7}
            refY={4}
            markerWidth={7}
            markerHeight={7}
            orient="auto"
          >
            <path d="M0 0 L8 4 L0 8 z" className={classes[name]} />
          </marker>
        ))}
      </defs>
      {/* Those that were taken lie over the others. */}
      {MOVES.toSorted((one, other) => Number(taken.has(one.join(" "))) - Number(taken.has(other.join(" ")))).map(
        ([from, to]) => {
          const name = taken.has(`${from} ${to}`) ? "taken" : "there";
          return (
            <path
              key={`${from} ${to}`}
              d={line(layout, from, to)}
              className={classes[`${name}Line`]}
              markerEnd={`url(#arrow-${name})`}
            />
          );
        },
      )}
      {(Object.keys(layout.places) as State[]).map((state) => {
        const { x, y } = layout.places[state];
        const count = visits(state);
        const kind = state === now ? "now" : count > 0 ? "visited" : "unvisited";
        const { color } = STATES[state];
        return (
          <g
            key={state}
            className={classes[kind]}
            style={
              {
                "--state": `var(--mantine-color-${color}-filled)`,
                "--state-light": `var(--mantine-color-${color}-light)`,
              } as React.CSSProperties
            }
          >
            <rect
              x={x - BOX.width / 2}
              y={y - BOX.height / 2}
              width={BOX.width}
              height={BOX.height}
              rx={8}
              className={classes["back"]}
            />
            <rect
              x={x - BOX.width / 2}
              y={y - BOX.height / 2}
              width={BOX.width}
              height={BOX.height}
              rx={8}
              className={classes["box"]}
            />
            <text x={x} y={y + 4} textAnchor="middle">
              {STATES[state].word}
              {count > 1 ? ` ×${count}` : ""}
            </text>
          </g>
        );
      })}
    </svg>
  );
}

/** From the edge of one box to the edge of the other. */
function line({ places, bends }: Layout, from: State, to: State): string {
  const [a, b] = [places[from], places[to]];
  const bend =
    from === "PENDING" && to === "LOCKED" ? bends[0] : from === "LOCKED" && to === "PENDING" ? bends[1] : null;
  if (bend === null) {
    const [start, end] = [edge(a, b), edge(b, a)];
    return `M${start.x} ${start.y} L${end.x} ${end.y}`;
  }
  const [start, end] = [edge(a, bend), edge(b, bend)];
  return `M${start.x} ${start.y} Q${bend.x} ${bend.y} ${end.x} ${end.y}`;
}

function edge(center: Point, towards: Point): Point {
  const [dx, dy] = [towards.x - center.x, towards.y - center.y];
  const scale = Math.min(
    dx === 0 ? Number.POSITIVE_INFINITY : (BOX.width / 2 + 2) / Math.abs(dx),
    dy === 0 ? Number.POSITIVE_INFINITY : (BOX.height / 2 + 2) / Math.abs(dy),
  );
  return { x: Math.round(center.x + dx * scale), y: Math.round(center.y + dy * scale) };
}
