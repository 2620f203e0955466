// timeline.js: who ran where and when, over a trace of any length.
//
// The server gives tiles. A tile of level L covers 512 cells of 2^L ns; what is shorter than a cell
// comes merged. So a screen needs a handful of tiles at any zoom, and what they cost does not
// depend on the number of events. While a tile is on its way, a coarser one is drawn in its place.

const kCells = 512;
const kKeep = 240; // tiles

class TileCache {
  constructor(onArrival) {
    this.tiles = new Map(); // "level/index" -> tile, "pending" or "failed", oldest use first
    this.names = {}; // of goroutines that were seen
    this.sites = {}; // the same: where they were started
    this.onArrival = onArrival;
    this.asked = 0;
    this.pending = 0;
  }
  static width(level) {
    return kCells * 2 ** level;
  }
  peek(level, index) {
    const tile = this.tiles.get(level + "/" + index);
    return tile && tile.procs ? tile : null;
  }
  // The tile, or null; asks the server for it if nobody has.
  get(level, index) {
    const key = level + "/" + index;
    const tile = this.tiles.get(key);
    if (tile !== undefined) {
      if (!tile.procs) return null;
      this.tiles.delete(key);
      this.tiles.set(key, tile);
      if (tile.stale_at < performance.now() && this.pending < 6) this.fetch(key, level, index);
      return tile;
    }
    if (this.pending >= 6) return null;
    this.tiles.set(key, {});
    this.fetch(key, level, index);
    return null;
  }
  async fetch(key, level, index) {
    const before = this.tiles.get(key);
    before.stale_at = Infinity;
    ++this.pending;
    ++this.asked;
    try {
      const tile = await ask("view/tile", { level, index });
      Object.assign(this.names, tile.names);
      Object.assign(this.sites, tile.sites);
      // While the server still reads the file, a tile may be half empty: it is asked for again.
      tile.stale_at = tile.complete ? Infinity : performance.now() + 500;
      if (this.tiles.get(key) === before) this.tiles.set(key, tile);
    } catch (error) {
      this.tiles.delete(key);
    }
    --this.pending;
    while (this.tiles.size > kKeep) this.tiles.delete(this.tiles.keys().next().value);
    this.onArrival();
  }
  clear() {
    this.tiles.clear();
    this.names = {};
    this.sites = {};
  }
}

// A span of a tile: begin, end, goroutine (0: several), how many, ns busy, state.
const kSpan = 6;
const kSpanStates = ["running", "blocking", "searching", "waiting"];
// An arrow: kind, at, P it starts at, goroutine that acts, goroutine that it is about, when that
// runs, on which P, how many.
const kArrow = 8;

const timeline = {
  info: null,
  from: 0,
  to: 1,
  target: null,
  selected: 0,
  matching: null,
  runs: null,
  showWakes: true,
  showSteals: true,
  bySite: false,
  frames: 0,

  build(panel) {
    this.canvas = el("canvas", {
      id: "lanes",
      tabIndex: 0,
      role: "img",
      "aria-label": "Timeline: goroutines on Ps",
    });
    this.where = el("span", { class: "note", id: "where" });
    const check = (name, text) =>
      el(
        "label",
        {},
        el("input", {
          type: "checkbox",
          checked: this[name],
          id: name,
          onchange: (event) => {
            this[name] = event.target.checked;
            this.dirty();
          },
        }),
        " " + text,
      );
    panel.append(
      el(
        "div",
        { id: "timeline" },
        el(
          "div",
          { class: "tools" },
          el("button", { title: "All of the trace (0)", onclick: () => this.fit() }, "All"),
          el("button", { title: "Zoom in (+)", onclick: () => this.zoom(0.5) }, "+"),
          el("button", { title: "Zoom out (−)", onclick: () => this.zoom(2) }, "−"),
          check("showWakes", "wake-ups"),
          check("showSteals", "steals"),
          check("bySite", "colours by spawn site"),
          legend([
            ["utilisation", "var(--running)"],
            ["runnable", "var(--runnable)"],
            ["idle P beside a runnable", "var(--warn)"],
            ["searching", "var(--searching)"],
            ["blocking", "var(--blocking)"],
            ["length of a ring", "var(--accent)"],
          ]),
          this.where,
        ),
        this.canvas,
      ),
    );
    this.cache = new TileCache(() => this.dirty());
    this.listen();
  },

  open(info) {
    this.info = info;
    this.cache.clear();
    this.from = 0;
    this.to = Math.max(1000, info.duration_ns);
    this.target = null;
    this.select(0);
    this.dirty();
  },
  dirty() {
    if (this.asked || !this.canvas) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.draw();
    });
  },
  fit() {
    this.go(0, this.info.duration_ns);
  },
  go(from, to) {
    const all = Math.max(1000, this.info.duration_ns);
    const size = Math.min(Math.max(to - from, 50), all * 1.1);
    from = Math.min(Math.max(from, -0.05 * all), 1.05 * all - size);
    this.target = { from, to: from + size };
    this.dirty();
  },
  zoom(factor, at) {
    const { from, to } = this.target || this;
    const middle = at === undefined ? (from + to) / 2 : at;
    this.go(middle - (middle - from) * factor, middle + (to - middle) * factor);
  },
  pan(share) {
    const { from, to } = this.target || this;
    this.go(from + (to - from) * share, to + (to - from) * share);
  },

  // Geometry, in CSS pixels.
  layout() {
    const height = this.canvas.clientHeight,
      width = this.canvas.clientWidth;
    const procs = this.info ? this.info.procs : 1;
    const left = 52,
      map = 34,
      axis = 20,
      counters = Math.max(72, Math.min(120, height / 7)),
      own = this.selected ? 26 : 0;
    const top = map + axis + counters + own + 8;
    const lane = Math.max(6, Math.min(84, (height - top - 6) / procs));
    return {
      width,
      height,
      left,
      map,
      axis,
      counters,
      own,
      top,
      lane,
      procs,
      plot: width - left - 8,
    };
  },
  x(time) {
    return this.l.left + ((time - this.from) / (this.to - this.from)) * this.l.plot;
  },
  time(x) {
    return this.from + ((x - this.l.left) / this.l.plot) * (this.to - this.from);
  },
  level() {
    const cell = (this.to - this.from) / Math.max(1, this.l.plot);
    return Math.max(0, Math.floor(Math.log2(Math.max(1, cell))));
  },
  topLevel() {
    return Math.max(0, Math.ceil(Math.log2(Math.max(1, this.info.duration_ns / kCells))));
  },

  // Tiles that cover the screen: those of this level, and coarser ones for what is not there yet.
  visible() {
    const level = Math.min(this.level(), this.topLevel());
    const width = TileCache.width(level);
    const out = [];
    const first = Math.max(0, Math.floor(this.from / width));
    const last = Math.floor(Math.min(this.to, this.info.duration_ns) / width);
    for (let index = first; index <= last; ++index) {
      const clip = [Math.max(this.from, index * width), Math.min(this.to, (index + 1) * width)];
      let tile = this.cache.get(level, index);
      for (let up = 1; !tile && level + up <= this.topLevel(); ++up) {
        tile = this.cache.peek(level + up, Math.floor(index / 2 ** up));
      }
      if (tile) out.push({ tile, clip });
    }
    this.cache.get(this.topLevel(), 0); // always there, as the coarsest
    return out;
  },

  animate() {
    if (!this.target) return;
    const near =
      Math.abs(this.target.from - this.from) + Math.abs(this.target.to - this.to) <
      (this.to - this.from) * 0.002;
    const share = near || matchMedia("(prefers-reduced-motion: reduce)").matches ? 1 : 0.35;
    this.from += (this.target.from - this.from) * share;
    this.to += (this.target.to - this.to) * share;
    if (share === 1) this.target = null;
    this.dirty();
  },

  draw() {
    if (!this.info || !this.canvas.clientWidth) return;
    this.animate();
    const { context } = prepare(this.canvas);
    this.context = context;
    this.l = this.layout();
    ++this.frames;
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    const shown = this.visible();
    this.drawMap();
    this.drawAxis();
    this.drawLanes();
    for (const { tile, clip } of shown) {
      this.drawTile(tile, clip);
      this.drawUnread(tile, clip);
    }
    this.drawOwn();
    // All of them or none: arrows in a part of the picture would look like all that there are.
    const hidden = shown.reduce((sum, { tile }) => sum + (tile.arrows_hidden || 0), 0);
    let arrows = 0;
    if (!hidden) for (const { tile, clip } of shown) arrows += this.drawArrows(tile, clip);
    this.drawMark();
    const span = this.to - this.from;
    this.where.textContent =
      formatTime(this.from, span) +
      ` – ${formatTime(this.to, span)} (${formatNs(span)})` +
      (hidden ? ", zoom in for arrows" : "") +
      (this.info.lost ? `, ${formatCount(this.info.lost)} events lost` : "") +
      (this.info.whole ? "" : ", parts of the file are missing");
    this.where.classList.toggle("warn", !!this.info.lost || !this.info.whole);
    this.drawnArrows = arrows;
    if (shown.length === 0 || !this.info.complete) setTimeout(() => this.dirty(), 200);
  },

  drawMap() {
    const { context, l } = this;
    const all = this.info.duration_ns;
    const x = (time) => l.left + (time / all) * l.plot;
    context.fillStyle = theme.idle;
    context.fillRect(l.left, 2, l.plot, l.map - 6);
    const tile = this.cache.peek(this.topLevel(), 0);
    if (tile) {
      context.fillStyle = theme.running;
      tile.busy.forEach((busy, i) => {
        const height = (l.map - 6) * Math.min(1, busy / Math.max(1, this.info.procs));
        const begin = x(i * tile.step),
          end = Math.min(l.left + l.plot, x((i + 1) * tile.step));
        if (end > begin)
          context.fillRect(begin, 2 + (l.map - 6) - height, Math.max(1, end - begin + 0.5), height);
      });
    }
    const from = Math.max(l.left, x(this.from)),
      to = Math.min(l.left + l.plot, x(this.to));
    context.fillStyle = theme.mark;
    context.fillRect(from, 0, Math.max(2, to - from), l.map - 2);
    context.strokeStyle = theme.accent;
    context.strokeRect(from + 0.5, 0.5, Math.max(2, to - from), l.map - 3);
    context.fillStyle = theme.soft;
    context.textAlign = "right";
    context.fillText("all", l.left - 6, l.map / 2 - 1);
  },
  drawAxis() {
    const { context, l } = this;
    const span = this.to - this.from;
    const rough = (span / l.plot) * 120;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
    context.textAlign = "left";
    for (let time = Math.ceil(this.from / step) * step; time < this.to; time += step) {
      const x = Math.round(this.x(time)) + 0.5;
      context.strokeStyle = theme.line;
      context.beginPath();
      context.moveTo(x, l.map);
      context.lineTo(x, l.height);
      context.stroke();
      const text = formatTime(time, span);
      if (x + 3 + context.measureText(text).width > l.width) continue; // it would be cut off
      context.fillStyle = theme.soft;
      context.fillText(text, x + 3, l.map + l.axis / 2);
    }
  },
  drawLanes() {
    const { context, l } = this;
    context.textAlign = "right";
    const skip = Math.ceil(13 / l.lane);
    const end = Math.min(l.left + l.plot, this.x(this.info.duration_ns));
    const begin = Math.max(l.left, this.x(0));
    for (let p = 0; p < l.procs; ++p) {
      const y = l.top + p * l.lane;
      context.fillStyle = theme.idle;
      context.fillRect(begin, y, Math.max(0, end - begin), l.lane - 3);
      if (p % skip === 0) {
        context.fillStyle = theme.soft;
        context.fillText("P" + p, l.left - 6, y + l.lane / 2 - 1);
      }
    }
    context.fillStyle = theme.soft;
    const middle = l.map + l.axis + l.counters / 2;
    context.fillText("ready", l.left - 6, middle - 8);
    context.fillText("busy", l.left - 6, middle + 8);
  },
  // A tile is painted once, into a picture of its own. Every frame stretches that to its place.
  drawTile(tile, [from, to]) {
    const { context, l } = this;
    const picture = this.pictureOf(tile);
    const left = Math.floor(Math.max(l.left, this.x(from))); // whole pixels: no seams between tiles
    const right = Math.ceil(Math.min(this.x(to), l.left + l.plot));
    const scale = picture.width / (tile.step * tile.busy.length);
    const first = (this.time(left) - tile.begin) * scale,
      last = (this.time(right) - tile.begin) * scale;
    if (right <= left || last <= first) return;
    context.imageSmoothingEnabled = false;
    const top = l.map + l.axis;
    context.drawImage(
      picture,
      first,
      0,
      last - first,
      picture.height,
      left,
      top,
      right - left,
      l.height - top,
    );
    tile.procs.forEach((spans, p) => this.drawLabels(spans, l.top + p * l.lane, from, to));
  },
  // What the server had not read yet when it made the tile: nothing is known of it.
  drawUnread(tile, [from, to]) {
    if (tile.complete || tile.read_until >= to) return;
    const { context, l } = this;
    const left = Math.max(l.left, this.x(Math.max(from, tile.read_until)));
    const right = Math.min(this.x(to), l.left + l.plot);
    if (right <= left) return;
    const top = l.map + l.axis;
    context.fillStyle = theme.ground;
    context.fillRect(left, top, right - left, l.height - top);
    if (right - left < 120) return;
    context.fillStyle = theme.soft;
    context.textAlign = "center";
    context.fillText("not read yet …", (left + right) / 2, (top + l.height) / 2);
  },
  pictureOf(tile) {
    const { l } = this;
    const scale = devicePixelRatio || 1;
    const key = [
      isDark(),
      this.selected,
      this.matching ? this.matching.turn : 0,
      this.bySite,
      l.height,
      l.top,
      l.lane,
      scale,
    ].join();
    if (tile.picture && tile.key === key) return tile.picture;
    const top = l.map + l.axis;
    const picture = new OffscreenCanvas(
      2 * kCells,
      Math.max(1, Math.round((l.height - top) * scale)),
    );
    const context = picture.getContext("2d");
    context.setTransform(1, 0, 0, scale, 0, -top * scale);
    const length = tile.step * tile.busy.length;
    const x = (time) => ((time - tile.begin) / length) * picture.width;
    this.paintCounters(context, x, tile);
    tile.procs.forEach((spans, p) => this.paintSpans(context, x, spans, l.top + p * l.lane));
    if (l.lane > 20)
      tile.rings.forEach((lengths, p) =>
        this.paintRing(context, x, tile, lengths, l.top + (p + 1) * l.lane - 3),
      );
    tile.picture = picture;
    tile.key = key;
    return picture;
  },
  // Runnable goroutines upwards, utilisation as a band below, and what was wasted on top of it.
  paintCounters(context, x, tile) {
    const { l } = this;
    const bottom = l.map + l.axis + l.counters,
      half = l.counters / 2 - 4;
    const most = Math.max(1, this.info.most_runnable || 1);
    const width = x(tile.begin + tile.step) - x(tile.begin) + 0.5;
    tile.busy.forEach((busy, i) => {
      const at = x(tile.begin + i * tile.step);
      const share = Math.min(1, busy / this.info.procs);
      context.fillStyle = theme.running;
      context.fillRect(at, bottom - half * share, width, half * share);
      const wasted = Math.min(1, tile.wasted[i] / this.info.procs);
      if (wasted > 0) {
        const high = Math.max(2, half * wasted);
        context.fillStyle = theme.warn;
        context.fillRect(at, bottom - half * share - high, width, high);
      }
      const ready = Math.log1p(tile.runnable[i]) / Math.log1p(most);
      if (ready > 0) {
        context.fillStyle = theme.runnable;
        context.fillRect(at, bottom - l.counters / 2 - half * ready, width, half * ready);
      }
    });
  },
  // How long the ring of a P was, on a logarithmic scale up to its 256 slots.
  paintRing(context, x, tile, lengths, bottom) {
    const width = x(tile.begin + tile.step) - x(tile.begin) + 0.5;
    context.fillStyle = theme.accent;
    lengths.forEach((length, i) => {
      if (!length) return;
      context.fillRect(
        x(tile.begin + i * tile.step),
        bottom - 1 - (this.l.lane / 3) * Math.min(1, Math.log1p(length) / Math.log1p(256)),
        width,
        2,
      );
    });
  },
  isWanted(goroutine) {
    return this.selected
      ? goroutine === this.selected
      : !this.matching || this.matching.has(goroutine);
  },
  paintSpans(context, x, spans, y) {
    const high = this.l.lane - 3;
    for (let i = 0; i < spans.length; i += kSpan) {
      const begin = x(spans[i]),
        width = Math.max(0.7, x(spans[i + 1]) - begin);
      const goroutine = spans[i + 2],
        state = spans[i + 5];
      if (goroutine === 0) {
        const share = Math.min(1, spans[i + 4] / Math.max(1, spans[i + 1] - spans[i]));
        context.globalAlpha = this.matching || this.selected ? 0.25 : 0.35 + 0.5 * share;
        context.fillStyle = theme[kSpanStates[state]];
      } else {
        context.globalAlpha = this.isWanted(goroutine) ? 1 : 0.22;
        context.fillStyle =
          state === 0 ? colourOf(this.keyOf(goroutine)) : theme[kSpanStates[state]];
      }
      context.fillRect(begin, y, width, high);
    }
    context.globalAlpha = 1;
  },
  drawLabels(spans, y, from, to) {
    const { context, l } = this;
    const high = l.lane - 3;
    const narrowest = (44 * (this.to - this.from)) / l.plot;
    if (high <= 12) return;
    context.textAlign = "left";
    for (let i = 0; i < spans.length; i += kSpan) {
      if (
        spans[i + 1] - spans[i] < narrowest ||
        spans[i + 1] < from ||
        spans[i] > to ||
        spans[i + 2] === 0
      )
        continue;
      const start = Math.max(this.x(Math.max(spans[i], from)), l.left) + 4;
      const room = this.x(Math.min(spans[i + 1], to)) - start - 4;
      if (room < 30) continue;
      const text = this.labelOf(spans[i + 2]);
      context.globalAlpha = this.isWanted(spans[i + 2]) ? 1 : 0.4;
      context.fillStyle = spans[i + 5] === 0 ? "#fff" : theme.ink;
      context.fillText(
        text.length * 7 > room ? text.slice(0, Math.max(3, Math.floor(room / 7))) : text,
        start,
        y + high / 2,
      );
    }
    context.globalAlpha = 1;
  },
  // Goroutines that were started at the same place have the same colour.
  keyOf(goroutine) {
    const site = this.cache.sites[goroutine];
    return this.bySite && site && site !== "0x0" ? site : goroutine;
  },
  labelOf(goroutine) {
    const name = this.cache.names[goroutine];
    return name ? name + " #" + goroutine : "#" + goroutine;
  },
  // The selected goroutine's own lane: all its states.
  drawOwn() {
    const { context, l } = this;
    if (!this.selected || !this.runs) return;
    const y = l.map + l.axis + l.counters + 4;
    for (const run of this.runs) {
      if (run.end < this.from || run.begin > this.to) continue;
      const begin = Math.max(l.left, this.x(run.begin)),
        end = Math.min(l.left + l.plot, this.x(run.end));
      context.fillStyle = theme[stateColour(run.state)] || theme.waiting;
      context.fillRect(begin, y, Math.max(1, end - begin), l.own - 6);
    }
    context.fillStyle = theme.ink;
    context.textAlign = "right";
    context.fillText("#" + this.selected, l.left - 6, y + (l.own - 6) / 2);
  },
  drawArrows(tile, [from, to]) {
    const { context, l } = this;
    const list = tile.arrows || [];
    let drawn = 0;
    for (let i = 0; i < list.length; i += kArrow) {
      const [kind, at, fromProc, actor, goroutine, until, toProc, count] = list.slice(
        i,
        i + kArrow,
      );
      if (at < from || at >= to) continue;
      const isSteal = kind === 1;
      if (isSteal ? !this.showSteals : !this.showWakes) continue;
      if (fromProc < 0 || toProc < 0) continue;
      if (this.selected && goroutine !== this.selected && actor !== this.selected) continue;
      const x1 = this.x(at),
        y1 = l.top + (fromProc + 0.5) * l.lane - 1;
      const x2 = Math.min(this.x(until), l.left + l.plot + 50),
        y2 = l.top + (toProc + 0.5) * l.lane - 1;
      context.strokeStyle = isSteal ? theme.blocking : theme.ink;
      context.fillStyle = context.strokeStyle;
      context.globalAlpha = this.selected ? 0.9 : 0.45;
      context.lineWidth = isSteal ? Math.min(4, 1 + Math.log2(count || 1) / 2) : 1;
      context.setLineDash(isSteal ? [5, 3] : []);
      context.beginPath();
      context.moveTo(x1, y1);
      context.lineTo(x2, y2);
      context.stroke();
      context.setLineDash([]);
      const angle = Math.atan2(y2 - y1, x2 - x1);
      context.beginPath();
      context.moveTo(x2, y2);
      context.lineTo(x2 - 7 * Math.cos(angle - 0.4), y2 - 7 * Math.sin(angle - 0.4));
      context.lineTo(x2 - 7 * Math.cos(angle + 0.4), y2 - 7 * Math.sin(angle + 0.4));
      context.fill();
      context.globalAlpha = 1;
      context.lineWidth = 1;
      ++drawn;
    }
    return drawn;
  },
  drawMark() {
    if (!this.mark) return;
    const { context, l } = this;
    const [a, b] = [this.x(this.mark.from), this.x(this.mark.to)];
    context.fillStyle = theme.mark;
    context.fillRect(Math.min(a, b), l.map, Math.abs(b - a), l.height - l.map);
  },

  // What lies under a point: {proc, begin, end, goroutine, ...}, or null.
  at(x, y) {
    if (!this.l) return null;
    const proc = Math.floor((y - this.l.top) / this.l.lane);
    if (proc < 0 || proc >= this.l.procs || x < this.l.left) return null;
    const time = this.time(x);
    const slack = ((this.to - this.from) / this.l.plot) * 1.5;
    let best = null;
    for (const { tile, clip } of this.visible()) {
      if (time < clip[0] || time > clip[1]) continue;
      const spans = tile.procs[proc] || [];
      for (let i = 0; i < spans.length; i += kSpan) {
        if (time < spans[i] - slack || time > spans[i + 1] + slack) continue;
        const distance = Math.max(0, spans[i] - time, time - spans[i + 1]);
        if (!best || distance < best.distance) {
          best = {
            proc,
            begin: spans[i],
            end: spans[i + 1],
            goroutine: spans[i + 2],
            count: spans[i + 3],
            busy: spans[i + 4],
            state: spans[i + 5],
            distance,
          };
        }
      }
    }
    return best;
  },
  async select(goroutine) {
    this.selected = goroutine;
    this.runs = null;
    this.dirty();
    if (this.onSelect) await this.onSelect(goroutine);
  },
  // To the next (1) or previous (-1) run of the selected goroutine.
  step(direction) {
    if (!this.runs) return;
    const middle = (this.from + this.to) / 2;
    const ran = this.runs.filter((run) => run.state === "running");
    const next =
      direction > 0
        ? ran.find((run) => (run.begin + run.end) / 2 > middle + 1)
        : ran.reverse().find((run) => (run.begin + run.end) / 2 < middle - 1);
    if (!next) return;
    const size = Math.max(this.to - this.from, 50);
    const center = (next.begin + next.end) / 2;
    this.go(center - size / 2, center + size / 2);
  },

  listen() {
    const canvas = this.canvas;
    let drag = null;
    const place = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    const jump = (x) => {
      const time = ((x - this.l.left) / this.l.plot) * this.info.duration_ns;
      const half = (this.to - this.from) / 2;
      this.go(time - half, time + half);
    };
    canvas.addEventListener(
      "wheel",
      (event) => {
        if (!this.info || !this.l) return;
        event.preventDefault();
        const [x] = place(event);
        if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(event.deltaX / 600);
        else this.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), this.time(x));
      },
      { passive: false },
    );
    canvas.addEventListener("pointerdown", (event) => {
      if (!this.info || !this.l) return;
      const [x, y] = place(event);
      canvas.setPointerCapture(event.pointerId);
      if (y < this.l.map) {
        drag = { kind: "map" };
        jump(x);
        return;
      }
      drag = {
        kind: event.shiftKey ? "mark" : "pan",
        x,
        y,
        from: this.from,
        to: this.to,
        moved: false,
      };
      if (drag.kind === "mark") this.mark = { from: this.time(x), to: this.time(x) };
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.info || !this.l) return;
      const [x, y] = place(event);
      if (!drag) return this.hover(x, y, event);
      if (drag.kind === "map") return jump(x);
      if (Math.abs(x - drag.x) > 3) drag.moved = true;
      if (drag.kind === "mark") this.mark.to = this.time(x);
      else if (drag.moved) {
        const by = ((drag.x - x) / this.l.plot) * (drag.to - drag.from);
        this.go(drag.from + by, drag.to + by);
        this.from = this.target.from;
        this.to = this.target.to;
        this.target = null;
      }
      this.dirty();
    });
    canvas.addEventListener("pointerup", (event) => {
      const [x, y] = place(event);
      const was = drag;
      drag = null;
      if (!was || was.kind === "map") return;
      if (was.kind === "mark") {
        const mark = this.mark;
        this.mark = null;
        if (Math.abs(mark.to - mark.from) > 50)
          this.go(Math.min(mark.from, mark.to), Math.max(mark.from, mark.to));
        this.dirty();
      } else if (!was.moved) {
        const hit = this.at(x, y);
        this.select(hit ? hit.goroutine : 0);
      }
    });
    canvas.addEventListener("pointerleave", () => tip.hide());
    new ResizeObserver(() => this.dirty()).observe(canvas);
  },
  hover(x, y, event) {
    const hit = this.at(x, y);
    if (!hit) return tip.hide();
    const title = hit.goroutine
      ? this.labelOf(hit.goroutine)
      : `${hit.count} runs, ${formatNs(hit.busy)} busy`;
    const site = hit.goroutine ? "\n" + siteText(this.cache.sites[hit.goroutine]) : "";
    tip.show(
      `${title} on P${hit.proc}${hit.state ? " (" + kSpanStates[hit.state] + ")" : ""}\n` +
        `${formatNs(hit.end - hit.begin)}, at ${formatTime(hit.begin, this.to - this.from)}${site}`,
      event.clientX,
      event.clientY,
    );
  },
};

const stateColour = (state) =>
  ({ "without P": "blocking", without_p: "blocking", fresh: "fresh", ended: "idle" })[state] ||
  state;
