// live.js: live numbers. Asks for stats a few times a second, keeps the last minute, and draws it.

const kSamples = 240; // that are kept
const kInterval = 250; // ms between questions
const kRates = [
  // counters that are shown as rates: name in stats, title
  ["switches", "switches"],
  ["goroutines_started", "started"],
  ["steals_succeeded", "steals"],
  ["goroutines_stolen", "goroutines stolen"],
  ["goroutines_spilled", "spilled"],
  ["parks", "parks"],
  ["wakes", "wakes"],
  ["preemptions", "preemptions"],
  ["handoffs", "hand-offs"],
  ["timers_fired", "timers"],
  ["polled", "readied by network"],
];

const live = {
  samples: [], // {stats, seconds since the one before}
  polls: 0, // answers so far; tests wait for it
  paused: false,
  listeners: [],
  failed: 0,

  start() {
    this.poll();
  },
  async poll() {
    const begun = performance.now();
    if (!this.paused && !document.hidden) {
      try {
        this.add(await ask("stats"));
        this.failed = 0;
      } catch (error) {
        ++this.failed;
      }
      for (const listener of this.listeners) listener();
    }
    // After a failure less often: the program may have ended.
    const wait = this.failed ? Math.min(5000, 500 * this.failed) : kInterval;
    setTimeout(() => this.poll(), Math.max(50, wait - (performance.now() - begun)));
  },
  add(stats) {
    const before = this.samples.length ? this.samples[this.samples.length - 1].stats : null;
    let seconds = before ? (stats.time_ns - before.time_ns) / 1e9 : 0;
    // Another process, or another run(): counters begin again.
    if (before && (seconds <= 0 || stats.total.switches < before.total.switches)) {
      this.samples = [];
      seconds = 0;
    }
    this.samples.push({ stats, seconds });
    if (this.samples.length > kSamples) this.samples.shift();
    ++this.polls;
  },
  // How many samples wide charts are: they fill up before they scroll.
  get span() {
    return Math.max(60, this.samples.length);
  },
  get last() {
    return this.samples.length ? this.samples[this.samples.length - 1].stats : null;
  },

  values(f) {
    return this.samples.map((sample) => f(sample.stats));
  },
  // Per second, between each two samples.
  rates(f) {
    const out = [];
    for (let i = 1; i < this.samples.length; ++i) {
      const { stats, seconds } = this.samples[i];
      out.push(seconds > 0 ? Math.max(0, f(stats) - f(this.samples[i - 1].stats)) / seconds : 0);
    }
    return out;
  },
  // Per second over the last two seconds, which is steadier to read than the last rate.
  rate(f) {
    if (this.samples.length < 2) return 0;
    const first = this.samples[Math.max(0, this.samples.length - 9)];
    const seconds = (this.last.time_ns - first.stats.time_ns) / 1e9;
    return seconds > 0 ? Math.max(0, f(this.last) - f(first.stats)) / seconds : 0;
  },
  // What was added to the histogram of lateness since the oldest sample that is kept.
  lateness() {
    if (!this.last) return null;
    const now = this.last.wakeup_lateness;
    const before = this.samples[0].stats.wakeup_lateness;
    const counts = now.counts.map((count, i) => Math.max(0, count - before.counts[i]));
    const total = counts.reduce((sum, count) => sum + count, 0);
    const quantile = (share) => {
      let seen = 0;
      for (let i = 0; i < counts.length; ++i) {
        seen += counts[i];
        if (total && seen >= share * total)
          return i < now.bounds_ns.length ? now.bounds_ns[i] : now.max_ns;
      }
      return NaN;
    };
    return { bounds: now.bounds_ns, counts, total, quantile };
  },
  // Looks that saw an idle P and a goroutine that could have run on it.
  idleBesideRunnable() {
    const seen = this.samples.filter(
      ({ stats }) => stats.idle_procs > 0 && stats.runnable + stats.fresh > 0,
    );
    return this.samples.length ? seen.length / this.samples.length : 0;
  },
};

const shortBound = (ns) => (ns < 1e6 ? ns / 1e3 + "µ" : ns < 1e9 ? ns / 1e6 + "m" : ns / 1e9 + "s");

// The panel "Live".
const livePanel = {
  build(panel) {
    const box = (title, note, key, wide) => {
      const canvas = el("canvas", { role: "img", "aria-label": title });
      this[key] = canvas;
      return el(
        "div",
        { class: "box" + (wide ? " wide" : "") },
        el("h2", {}, title, el("small", {}, note)),
        canvas,
      );
    };
    this.cards = {};
    const cards = el("div", { class: "cards", id: "cards" });
    const card = (key, title) => {
      const number = el("b", {}, "–"),
        canvas = el("canvas", { "aria-hidden": "true" });
      this.cards[key] = { number, canvas };
      cards.append(
        el("div", { class: "card", "data-key": key }, el("span", {}, title), number, canvas),
      );
    };
    card("utilisation", "utilisation of the Ps");
    card("goroutines", "goroutines");
    card("runnable", "runnable");
    card("late50", "runs late by, p50");
    card("late99", "runs late by, p99");
    for (const [name, title] of kRates) card(name, title + " per s");
    card("idle", "looks with an idle P beside a runnable");
    const stateLegend = legend([
      ["running", "var(--running)"],
      ["runnable", "var(--runnable)"],
      ["fresh", "var(--fresh)"],
    ]);
    const states = box(
      "Goroutines that want a P",
      "by state; those that wait are not drawn",
      "states",
    );
    states.append(stateLegend);
    const queues = box("Queues", "goroutines", "queues");
    queues.append(
      legend([
        ["longest ring", "var(--accent)"],
        ["all rings", "var(--runnable)"],
        ["global queue", "var(--blocking)"],
      ]),
    );
    const cost = box("What the scheduler does for it", "per s", "cost");
    cost.append(
      legend([
        ["searches", "var(--searching)"],
        ["polls that found nothing", "var(--blocking)"],
        ["parks", "var(--stopped)"],
      ]),
    );
    this.table = el("tbody");
    panel.append(
      cards,
      el(
        "div",
        { class: "grid" },
        box("Ps", "how busy each was: a column is a look, the newest at the right", "strips", true),
        states,
        queues,
        box(
          "How late goroutines run",
          "a sleeper's delay after its time, seen this minute",
          "late",
        ),
        cost,
      ),
      el(
        "div",
        { class: "box" },
        el("h2", {}, "Each P"),
        el(
          "div",
          { class: "scroll" },
          el(
            "table",
            { id: "procs" },
            el(
              "thead",
              {},
              el(
                "tr",
                {},
                ...[
                  "P",
                  "state",
                  "busy",
                  "queue",
                  "switches/s",
                  "steals/s",
                  "tried/s",
                  "stolen/s",
                  "spilled/s",
                  "parks/s",
                  "hand-offs/s",
                  "preemptions/s",
                ].map((title, i) => el("th", i < 2 ? { class: "left" } : {}, title)),
              ),
            ),
            this.table,
          ),
        ),
      ),
    );
  },
  draw() {
    const last = live.last;
    if (!last) return;
    const busy = live
      .rates((stats) => stats.total.busy_ns / 1e9)
      .map((value, i) => value / Math.max(1, live.samples[i + 1].stats.procs.length));
    const set = (key, text, values, color) => {
      this.cards[key].number.textContent = text;
      if (values) drawSpark(this.cards[key].canvas, values, live.span, color || theme.accent);
    };
    set(
      "utilisation",
      formatShare(live.rate((stats) => stats.total.busy_ns / 1e9) / Math.max(1, last.procs.length)),
      busy,
      theme.running,
    );
    set(
      "goroutines",
      formatCount(last.goroutines),
      live.values((stats) => stats.goroutines),
    );
    set(
      "runnable",
      formatCount(last.runnable + last.fresh),
      live.values((stats) => stats.runnable + stats.fresh),
      theme.runnable,
    );
    const late = live.lateness();
    set("late50", "≤ " + formatNs(late.quantile(0.5)));
    set("late99", "≤ " + formatNs(late.quantile(0.99)));
    set(
      "idle",
      formatShare(live.idleBesideRunnable()),
      live.values((stats) => (stats.idle_procs > 0 && stats.runnable + stats.fresh > 0 ? 1 : 0)),
      theme.blocking,
    );
    for (const [name] of kRates) {
      set(
        name,
        formatCount(live.rate((stats) => stats.total[name])),
        live.rates((stats) => stats.total[name]),
      );
    }
    const count = last.procs.length;
    const strips = Array.from({ length: count }, (_, p) =>
      live.rates((stats) => (stats.procs[p] ? stats.procs[p].busy_ns / 1e9 : 0)),
    );
    this.strips.style.height = Math.max(60, Math.min(420, count * 26)) + "px";
    drawStrips(this.strips, strips, live.span - 1, theme.running);
    drawLines(
      this.states,
      [
        { color: theme.running, values: live.values((stats) => stats.running) },
        { color: theme.runnable, values: live.values((stats) => stats.runnable) },
        { color: theme.fresh, values: live.values((stats) => stats.fresh) },
      ],
      live.span,
      { stacked: true },
    );
    drawLines(
      this.queues,
      [
        {
          color: theme.accent,
          values: live.values((stats) => Math.max(0, ...stats.procs.map((p) => p.queue_length))),
        },
        {
          color: theme.runnable,
          values: live.values((stats) => stats.procs.reduce((sum, p) => sum + p.queue_length, 0)),
        },
        { color: theme.blocking, values: live.values((stats) => stats.global_queue_length) },
      ],
      live.span,
    );
    drawLines(
      this.cost,
      [
        { color: theme.searching, values: live.rates((stats) => stats.total.searches) },
        {
          color: theme.blocking,
          values: live.rates((stats) => Math.max(0, stats.total.polls - stats.total.polled)),
        },
        { color: theme.stopped, values: live.rates((stats) => stats.total.parks) },
      ],
      live.span,
    );
    drawBars(
      this.late,
      late.counts.map((value, i) => ({
        name: i < late.bounds.length ? shortBound(late.bounds[i]) : "more",
        value,
      })),
      { every: 2 },
    );
    this.drawTable(last);
  },
  drawTable(last) {
    while (this.table.rows.length > last.procs.length) this.table.deleteRow(-1);
    last.procs.forEach((p, i) => {
      const of = (name) => live.rate((stats) => (stats.procs[i] ? stats.procs[i][name] : 0));
      const cells = [
        "P" + p.id,
        p.idle ? "idle" : "held",
        formatShare(of("busy_ns") / 1e9),
        p.queue_length + (p.has_runnext ? " + 1" : ""),
        formatCount(of("switches")),
        formatCount(of("steals_succeeded")),
        formatCount(of("steals_tried")),
        formatCount(of("goroutines_stolen")),
        formatCount(of("goroutines_spilled")),
        formatCount(of("parks")),
        formatCount(of("handoffs")),
        formatCount(of("preemptions")),
      ];
      const row = this.table.rows[i] || this.table.insertRow();
      cells.forEach((text, column) => {
        const cell = row.cells[column] || row.insertCell();
        if (column < 2) cell.className = "left";
        if (cell.textContent !== text) cell.textContent = text;
      });
    });
  },
};
