// A canvas that is drawn once and used for many pictures: what stands still need not be drawn 60 times a second.
export class StillLayer {
  constructor() {
    this.canvas = document.createElement("canvas");
    this.key = [];
  }

  /** The canvas, of the lane's size; `paint(context)` is asked to fill it only when `key` (a list) has changed. */
  show(key, place, paint) {
    const wanted = [...key, place.side, place.hair];
    if (wanted.length !== this.key.length || wanted.some((part, k) => part !== this.key[k])) {
      this.key = wanted;
      this.canvas.width = this.canvas.height = Math.round(place.side / place.hair);
      const context = this.canvas.getContext("2d");
      context.setTransform(1 / place.hair, 0, 0, 1 / place.hair, 0, 0);
      paint(context);
    }
    return this.canvas;
  }
}
