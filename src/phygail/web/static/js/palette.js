// Colors of the pictures. Subnets differ by color and by shape, lanes by color and by dash: no color stands alone.

// Paul Tol's "bright" scheme, told apart by all common kinds of color blindness, on light and on dark.
const SUBNET_COLORS = {
  light: ["#4477aa", "#ee6677", "#228833", "#aa3377", "#b8a21d", "#2aa5c9"],
  dark: ["#6699dd", "#ff7f8e", "#4cc265", "#d96bab", "#e0cf58", "#66ccee"],
};
const INKS = {
  light: { one: "#00856f", ink: "#16202b", soft: "#6b7784", faint: "#c6ced6", lost: "#9aa5b0", strike: "#c62828", map: "#fbfcfd" },
  dark: { one: "#35c9a5", ink: "#f2f5f8", soft: "#8f9ba7", faint: "#33404c", lost: "#5f6c78", strike: "#ff6b60", map: "#10161e" },
};
const LANE_COLORS = { light: ["#0067a5", "#c4420f", "#6b3fa0", "#3d4a57"], dark: ["#62b0f0", "#ff9d5c", "#c39bf5", "#c5cfd9"] };
const LANE_DASHES = [[], [7, 4], [2, 4], [10, 3, 2, 3]];
const SHAPES = 4;
const TINT = 0.14;

/** Everything with a color, for "light" or "dark". */
export function paletteOf(theme) {
  const colors = SUBNET_COLORS[theme], tints = colors.map((color) => mix(color, INKS[theme].map));
  return {
    ...INKS[theme],
    oneTint: mix(INKS[theme].one, INKS[theme].map),
    /** Color and shape of the subnet of this rank (0: the largest). */
    subnet: (rank) => ({ color: colors[rank % colors.length], tint: tints[rank % colors.length], shape: rank % SHAPES }),
    lane: (place) => ({ color: LANE_COLORS[theme][place % 4], dash: LANE_DASHES[place % 4] }),
  };
}

/** A faint form of a color on the ground of the map: opaque, so that discs that overlap stay one area. */
function mix(color, ground) {
  const part = (text, k) => parseInt(text.slice(1 + 2 * k, 3 + 2 * k), 16);
  const parts = [0, 1, 2].map((k) => Math.round(TINT * part(color, k) + (1 - TINT) * part(ground, k)));
  return `rgb(${parts.join(" ")})`;
}

/** Add a UAV's mark of radius r at (x, y) to a path: disc, square, triangle or diamond, of equal area. */
export function addMark(path, shape, x, y, r) {
  if (shape === 0) {
    path.moveTo(x + r, y);
    path.arc(x, y, r, 0, 2 * Math.PI);
  } else if (shape === 1) {
    path.rect(x - 0.89 * r, y - 0.89 * r, 1.78 * r, 1.78 * r);
  } else {
    const points = shape === 2 ? [[0, -1.45], [1.3, 0.85], [-1.3, 0.85]] : [[0, -1.35], [1.2, 0], [0, 1.35], [-1.2, 0]];
    points.forEach(([px, py], k) => (k ? path.lineTo(x + r * px, y + r * py) : path.moveTo(x + r * px, y + r * py)));
    path.closePath();
  }
}
