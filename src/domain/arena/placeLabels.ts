/** A rectangle of the picture. */
export interface Box {
  left: number;
  top: number;
  width: number;
  height: number;
}

/** A mark with the size of its label. */
export interface Labelled {
  x: number;
  y: number;
  radius: number;
  width: number;
  height: number;
}

/** Where a label stands; `far`: so far from its mark that a line must lead to it. */
export interface PlacedLabel extends Box {
  far: boolean;
}

/** Directions in the order in which they are tried: right first, as one reads. */
const directions = [0, 180, -45, 45, -135, 135, -90, 90, -20, 20, -160, 160, -68, 68, -112, 112].map((degrees) => (degrees * Math.PI) / 180);
const rings = [3, 10, 20, 32, 46, 62, 80, 100, 122, 146, 172, 200];

/**
 * Places every label inside `area`, beside its mark where there is room, else further away, so that no label covers another
 * one or a mark. The crowded ones come first: the lonely have room anyway. A label for which there is none at all is put
 * where it covers least.
 */
export function placeLabels(marks: readonly Labelled[], area: Box): PlacedLabel[] {
  const boxes = marks.map(({ x, y, radius }): Box => ({ left: x - radius, top: y - radius, width: 2 * radius, height: 2 * radius }));
  const near = (mark: Labelled): number => marks.filter(({ x, y }) => Math.abs(x - mark.x) < 80 && Math.abs(y - mark.y) < 30).length;
  const order = marks.map((_, index) => index).sort((a, b) => near(marks[b] as Labelled) - near(marks[a] as Labelled) || a - b);
  const placed = new Map<number, PlacedLabel>();
  for (const index of order) {
    const mark = marks[index] as Labelled;
    let best: { cost: number; label: PlacedLabel } | null = null;
    search: for (const [ring, distance] of rings.entries()) {
      for (const angle of directions) {
        const label = { ...beside(mark, angle, distance), far: ring > 1 };
        const taken = [...placed.values()].reduce((sum, other) => sum + shared(label, other, 2), 0);
        const hidden = boxes.reduce((sum, box) => sum + shared(label, box, 0), 0);
        const cost = outside(label, area) * 1e6 + taken * 100 + hidden * 10 + distance;
        if (best === null || cost < best.cost) best = { cost, label };
        if (cost === distance) break search;
      }
    }
    if (best !== null) placed.set(index, inside(best.label, area));
  }
  return marks.map((_, index) => placed.get(index) as PlacedLabel);
}

function beside({ x, y, radius, width, height }: Labelled, angle: number, distance: number): Box {
  const [dx, dy] = [Math.cos(angle), Math.sin(angle)];
  const [at, down] = [x + dx * (radius + distance), y + dy * (radius + distance)];
  // The nearest point of the label is where the direction ends.
  return { left: at - (width * (1 - dx)) / 2, top: down - (height * (1 - dy)) / 2, width, height };
}

/** Area that two rectangles share, with `gap` kept free around. */
function shared(a: Box, b: Box, gap: number): number {
  const wide = Math.min(a.left + a.width, b.left + b.width) - Math.max(a.left, b.left) + gap;
  const high = Math.min(a.top + a.height, b.top + b.height) - Math.max(a.top, b.top) + gap / 2;
  return wide > 0 && high > 0 ? wide * high : 0;
}

function outside({ left, top, width, height }: Box, area: Box): number {
  return Math.max(0, area.left - left) + Math.max(0, area.top - top) + Math.max(0, left + width - area.left - area.width) + Math.max(0, top + height - area.top - area.height);
}

function inside(label: PlacedLabel, area: Box): PlacedLabel {
  const left = Math.max(area.left, Math.min(label.left, area.left + area.width - label.width));
  const top = Math.max(area.top, Math.min(label.top, area.top + area.height - label.height));
  return { ...label, left, top };
}

/** The point of a label that is nearest to its mark: where the line to it ends. */
export function nearestPoint({ left, top, width, height }: Box, x: number, y: number): { x: number; y: number } {
  return { x: Math.max(left, Math.min(x, left + width)), y: Math.max(top, Math.min(y, top + height)) };
}
