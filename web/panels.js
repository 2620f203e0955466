// panels.js: everything but the timeline and the live numbers, mostly from the summary of a trace.

// What "view/summary" answered, or null.
let summary = null;
const siteText = (site) =>
  summary && summary.site_texts[site]
    ? shortCode(summary.site_texts[site])
    : !site || site === "0x0"
      ? "unknown"
      : site;
const kMostHops = 60; // of a chain that are shown
const kPartColours = {
  blocked: "part0",
  ring: "part1",
  "global queue": "part2",
  "runnext slot": "part3",
  "with a thief": "part4",
  "off the CPU": "part5",
  running: "part6",
  stopped: "part7",
  "blocking call": "blocking",
  fresh: "fresh",
};
const partColour = (name, index) => `var(--${kPartColours[name] || "part" + ((index + 3) % 8)})`;

const table = (id, heads, rows) =>
  el(
    "table",
    { id },
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        ...heads.map((head) =>
          el("th", { class: head.startsWith("<") ? "left" : "" }, head.replace("<", "")),
        ),
      ),
    ),
    el("tbody", {}, ...rows),
  );
const row = (cells, properties) =>
  el(
    "tr",
    properties || {},
    ...cells.map((cell) =>
      el(
        "td",
        typeof cell === "string" && cell.startsWith("<")
          ? { class: "left site", title: cell.slice(1) }
          : {},
        typeof cell === "string" ? cell.replace(/^</, "") : cell,
      ),
    ),
  );
const goroutineRow = (goroutine, cells) =>
  row(cells, goroutine ? { class: "pick", onclick: () => show(goroutine) } : {});
const box = (title, note, ...content) =>
  el("div", { class: "box wide" }, el("h2", {}, title, el("small", {}, note)), ...content);
const nothing = (text) => el("p", { class: "note" }, text);
const scroll = (...content) => el("div", { class: "scroll" }, ...content);

// A goroutine was picked in a list: select it, and show the timeline if `at` is given.
function show(goroutine, at) {
  timeline.select(goroutine);
  if (at !== undefined) {
    openPanel("timeline");
    timeline.go(at.begin - (at.end - at.begin) * 2, at.end + (at.end - at.begin) * 2);
  }
}
const jumpRow = (goroutine, begin, end, cells) =>
  row(cells, { class: "pick", onclick: () => show(goroutine, { begin, end }) });

// Which P stole from which.
function stealPanel(panel) {
  const cells = summary.steals;
  const most = Math.max(1, ...cells.flat().map((cell) => cell.moved));
  const mean = (sum, count) => (count ? formatNs(sum / count) : "–");
  const body = cells.map((line, thief) =>
    el(
      "tr",
      {},
      el("th", { class: "left" }, "P" + thief),
      ...line.map((cell, victim) => {
        const node = el(
          "td",
          {
            title:
              thief === victim
                ? ""
                : `P${thief} from P${victim}: ${cell.hits + cell.misses} tries, ` +
                  `${cell.hits} steals, ` +
                  `${cell.moved} goroutines, ${cell.from_next_slot} of them from runnext\n` +
                  `until the first ran: ${mean(cell.until_ran_ns, cell.ran)} on average, ` +
                  `${formatNs(cell.longest_ns)} at most\n` +
                  `had waited ${mean(cell.age_ns, cell.ran)} before`,
          },
          thief === victim
            ? "·"
            : cell.hits + cell.misses
              ? [cell.moved, cell.hits, cell.hits + cell.misses].map(formatCount).join(" / ")
              : "",
        );
        if (cell.hits)
          {
            const share = Math.round(12 + 78 * (cell.moved / most));
            node.style.background = `color-mix(in srgb, var(--runnable) ${share}%, transparent)`;
          }
        return node;
      }),
    ),
  );
  const sum = (f) => summary.procs.reduce((all, p) => all + p[f], 0);
  const flat = cells.flat();
  const hits = flat.reduce((all, cell) => all + cell.hits, 0),
    misses = flat.reduce((all, cell) => all + cell.misses, 0);
  panel.append(
    el(
      "div",
      { class: "cards" },
      ...[
        ["steals", formatCount(hits)],
        ["looks in vain", formatCount(misses)],
        ["hits", formatShare(hits / (hits + misses))],
        [
          "goroutines per steal",
          formatCount(flat.reduce((all, cell) => all + cell.moved, 0) / hits),
        ],
        [
          "from stealing to running",
          mean(
            flat.reduce((all, cell) => all + cell.until_ran_ns, 0),
            flat.reduce((all, cell) => all + cell.ran, 0),
          ),
        ],
        ["spilled to the global queue", formatCount(sum("spilled"))],
      ].map(([title, text]) =>
        el("div", { class: "card" }, el("span", {}, title), el("b", {}, text)),
      ),
    ),
    box(
      "Steal matrix",
      "row: thief, column: victim; moved / steals / tries. Point at a cell for its times",
      scroll(
        el(
          "table",
          { class: "matrix", id: "matrix" },
          el(
            "thead",
            {},
            el("tr", {}, el("th", {}, ""), ...cells.map((_, p) => el("th", {}, "P" + p))),
          ),
          el("tbody", {}, ...body),
        ),
      ),
    ),
  );
}

// Per spawn site, where the time of its goroutines went.
function anatomyPanel(panel) {
  const names = summary.parts;
  const bar = (parts) => {
    const whole = parts.reduce((all, ns) => all + ns, 0);
    return el(
      "div",
      { class: "bar" },
      ...parts.map((ns, i) =>
        ns <= 0
          ? null
          : el("div", {
              color: partColour(names[i], i),
              width: (ns / whole) * 100 + "%",
              title: `${names[i]}: ${formatNs(ns)} (${formatShare(ns / whole)})`,
            }),
      ),
    );
  };
  const used = names
    .map((name, i) => [name, partColour(name, i), i])
    .filter(([, , i]) => summary.sites.some((site) => site.total[i] > 0));
  const rows = [];
  for (const site of summary.sites.slice(0, 60)) {
    rows.push(
      row([
        "<" + siteText(site.site),
        formatCount(site.started),
        formatCount(site.alive),
        formatNs(site.total.reduce((a, b) => a + b, 0)),
        bar(site.total),
      ]),
    );
    for (const quantile of site.quantiles) {
      rows.push(
        row([
          "<\u2003a life at " + quantile.name,
          "",
          "",
          formatNs(quantile.whole_ns),
          bar(quantile.parts),
        ]),
      );
    }
  }
  const histogram = el("canvas", {
    role: "img",
    "aria-label": "Histogram of the time from ready to running",
  });
  panel.append(
    el(
      "div",
      { class: "cards" },
      ...summary.latency.quantiles.map(([name, ns]) =>
        el(
          "div",
          { class: "card" },
          el("span", {}, "ready to running, " + name),
          el("b", {}, formatNs(ns)),
        ),
      ),
    ),
    box("From ready to running", "how often which time, all lines", histogram),
    box(
      "By line",
      "",
      table(
        "lines",
        ["<line", "goroutines", "p50", "p99", "longest", "oldest that waited", "at"],
        summary.lines.map((line) =>
          goroutineRow(line.oldest.goroutine, [
            "<" + line.name,
            formatCount(line.count),
            formatNs(line.p50),
            formatNs(line.p99),
            formatNs(line.largest),
            line.oldest.goroutine ? "#" + line.oldest.goroutine : "–",
            line.oldest.goroutine ? formatNs(line.oldest.at_ns) : "–",
          ]),
        ),
      ),
    ),
    box(
      "Anatomy of latency",
      "by spawn site: the parts add up to the whole life",
      legend(used.map(([name, color]) => [name, color])),
      scroll(table("anatomy", ["<spawn site", "started", "alive", "time", "<parts"], rows)),
    ),
  );
  panel.draw = () =>
    drawBars(
      histogram,
      summary.latency.buckets.map(([ns, value]) => ({ name: formatNs(ns), value })),
      { every: Math.max(1, Math.ceil(summary.latency.buckets.length / 12)) },
    );
}

// P time in which a P idled beside a goroutine that could run.
function workPanel(panel) {
  const { causes, violations, worst } = summary.work;
  const total = causes.reduce((all, cause) => all + cause.ns, 0);
  const whole = summary.duration_ns * Math.max(1, summary.procs.length);
  panel.append(
    el(
      "div",
      { class: "cards" },
      ...[
        ["P time wasted", formatNs(total)],
        ["of all P time", formatShare(total / whole)],
        ["nobody was woken", formatNs((causes.find((cause) => cause.fault) || { ns: 0 }).ns)],
        ["violations", formatCount(violations)],
      ].map(([title, text]) =>
        el(
          "div",
          { class: "card" },
          el("span", {}, title),
          el("b", { class: title === "violations" && violations ? "warn" : "" }, text),
        ),
      ),
    ),
    box(
      "Why Ps idled beside goroutines that could run",
      "P time",
      scroll(
        table(
          "causes",
          ["<cause", "P time", "share", "<"],
          causes.map((cause) =>
            row([
              "<" + cause.name,
              formatNs(cause.ns),
              total ? formatShare(cause.ns / total) : "–",
              el(
                "div",
                { class: "bar" },
                el("div", {
                  color: cause.fault ? "var(--warn)" : "var(--runnable)",
                  width: (total ? (cause.ns / total) * 100 : 0) + "%",
                }),
              ),
            ]),
          ),
        ),
      ),
    ),
    box(
      "Violations",
      "a goroutine could run, a P idled, and nobody was woken; click to see",
      worst.length
        ? scroll(
            table(
              "violations",
              ["<goroutine", "<spawn site", "idle P", "<line", "at", "for"],
              worst.map((one) =>
                jumpRow(one.goroutine, one.begin_ns, one.end_ns, [
                  "<#" + one.goroutine,
                  "<" + siteText(one.site),
                  "P" + one.proc,
                  "<" + one.place,
                  formatNs(one.begin_ns),
                  formatNs(one.end_ns - one.begin_ns),
                ]),
              ),
            ),
          )
        : nothing("None: whenever a goroutine could run and a P idled, a thread was on its way."),
    ),
  );
}

// Who woke whom.
function chainPanel(panel) {
  const shownHops = (one) => Math.min(one.last.length, kMostHops);
  const chain = (title, note, one) =>
    box(
      title,
      note,
      one.last.length
        ? el(
            "div",
            {},
            nothing(
              `${formatCount(one.hops)} ${one.hops === 1 ? "hop" : "hops"}, ` +
                `${formatNs(one.end_ns - one.begin_ns)} ` +
                `from ${formatNs(one.begin_ns)} to ${formatNs(one.end_ns)}` +
                (shownHops(one) < one.hops
                  ? `, of which the last ${shownHops(one)} are shown`
                  : "") +
                ". The latest is on top.",
            ),
            ...one.last.slice(0, kMostHops).map((hop) =>
              el(
                "div",
                { class: "chain" },
                el(
                  "a",
                  {
                    href: "#",
                    onclick: (event) => {
                      event.preventDefault();
                      show(hop.goroutine, {
                        begin: hop.ready_ns,
                        end: hop.ready_ns + hop.running_ns + hop.queued_ns + hop.other_ns,
                      });
                    },
                  },
                  "#" + hop.goroutine,
                ),
                ` ${siteText(hop.site)}: queued ${formatNs(hop.queued_ns)}, ` +
                  `ran ${formatNs(hop.running_ns)}` +
                  (hop.other_ns > 0 ? `, otherwise ${formatNs(hop.other_ns)}` : "") +
                  `; made ready by ${hop.source} at ${formatNs(hop.ready_ns)}`,
              ),
            ),
          )
        : nothing("The trace has none."),
    );
  panel.append(
    el(
      "div",
      { class: "grid" },
      chain("Critical path", "back from the goroutine that ended last", summary.critical_path),
      chain("Longest chain of wake-ups", "by hops", summary.longest_chain),
    ),
    box(
      "Who keeps whom waiting",
      "by spawn sites",
      scroll(
        table(
          "blockers",
          ["<waits", "<until woken by", "<reason", "times", "all", "longest"],
          summary.blockers
            .slice(0, 100)
            .map((edge) =>
              row([
                "<" + siteText(edge.waiter_site),
                "<" + (edge.source === "goroutine" ? siteText(edge.waker_site) : edge.source),
                "<" + edge.reason,
                formatCount(edge.count),
                formatNs(edge.sum_ns),
                formatNs(edge.longest_ns),
              ]),
            ),
        ),
      ),
    ),
  );
}

// What the scheduler itself costs.
function costPanel(panel) {
  const sum = (f) => summary.procs.reduce((all, p) => all + p[f], 0);
  const runs = sum("runs"),
    whole = summary.duration_ns * Math.max(1, summary.procs.length);
  panel.append(
    el(
      "div",
      { class: "cards" },
      ...[
        ["scheduler per switch", runs ? formatNs(sum("scheduler_ns") / runs) : "–"],
        ["in the scheduler", formatShare(sum("scheduler_ns") / whole)],
        ["searching", formatShare(sum("searching_ns") / whole)],
        ["searches that found work", formatShare(sum("found") / Math.max(1, sum("searches")))],
        ["threads woken for nothing", formatCount(summary.wakes_for_nothing)],
        ["polls that found nothing", formatShare(sum("empty_polls") / Math.max(1, sum("polls")))],
        ["hands to and fro by runnext", formatCount(sum("next_slot_returns"))],
        ["threads that ran", formatCount(summary.threads)],
        ["the process was off the CPU", formatNs(summary.silent_ns)],
      ].map(([title, text]) =>
        el("div", { class: "card" }, el("span", {}, title), el("b", {}, text)),
      ),
    ),
    box(
      "Each P",
      "",
      legend([
        ["running", "var(--running)"],
        ["scheduler", "var(--accent)"],
        ["searching", "var(--searching)"],
        ["handed over", "var(--blocking)"],
        ["idle", "var(--idle)"],
      ]),
      scroll(
        table(
          "cost",
          [
            "<P",
            "<time",
            "runs",
            "scheduler",
            "searching",
            "searches",
            "found",
            "polls",
            "empty",
            "wakes",
            "parks",
          ],
          summary.procs.map((p, i) =>
            row([
              "<P" + i,
              el(
                "div",
                { class: "bar" },
                ...[
                  ["running", "running_ns"],
                  ["accent", "scheduler_ns"],
                  ["searching", "searching_ns"],
                  ["blocking", "handed_over_ns"],
                ].map(([color, f]) =>
                  el("div", {
                    color: `var(--${color})`,
                    width: (p[f] / summary.duration_ns) * 100 + "%",
                    title: f + " " + formatNs(p[f]),
                  }),
                ),
              ),
              formatCount(p.runs),
              formatNs(p.scheduler_ns),
              formatNs(p.searching_ns),
              formatCount(p.searches),
              formatCount(p.found),
              formatCount(p.polls),
              formatCount(p.empty_polls),
              formatCount(p.wakes),
              formatCount(p.parks),
            ]),
          ),
        ),
      ),
    ),
    box(
      "Longest runs",
      "without a call into the runtime; click to see",
      scroll(
        table(
          "runs",
          ["<goroutine", "<spawn site", "P", "at", "for"],
          summary.longest_runs.map((run) =>
            jumpRow(run.goroutine, run.begin_ns, run.begin_ns + run.duration_ns, [
              "<#" + run.goroutine,
              "<" + siteText(run.site),
              "P" + run.proc,
              formatNs(run.begin_ns),
              formatNs(run.duration_ns),
            ]),
          ),
        ),
      ),
    ),
  );
}

// The list of goroutines: of the trace, or of the running program.
const listPanel = {
  sort: "running_ns",
  rows: [],
  total: 0,
  build(panel) {
    this.note = el("p", { class: "note" });
    this.body = el("div", { class: "scroll" });
    this.panel = panel;
    panel.append(this.note, this.body);
  },
  async load() {
    if (!this.body) return;
    const text = byId("search").value.trim();
    const turn = (this.turn = (this.turn || 0) + 1);
    try {
      if (timeline.info) {
        const answer = await ask("view/goroutines", { text, sort: this.sort, limit: 500 });
        if (turn !== this.turn) return;
        this.showTrace(answer);
      } else {
        const answer = await ask("goroutines", { format: "json", text });
        if (turn !== this.turn) return;
        this.showLive(answer);
      }
    } catch (error) {
      this.note.textContent = String(error.message || error);
    }
  },
  showTrace(answer) {
    this.total = answer.total;
    this.rows = answer.rows;
    timeline.matching = byId("search").value.trim()
      ? new Set(answer.matching || answer.rows.map((one) => one.id))
      : null;
    if (timeline.matching) timeline.matching.turn = this.turn;
    timeline.dirty();
    this.note.textContent =
      `${formatCount(answer.total)} goroutines` +
      (answer.rows.length < answer.total ? `, the first ${answer.rows.length} of them` : "") +
      "; click a column to sort";
    const columns = [
      ["id", "number"],
      ["site", "spawn site"],
      ["state", "state"],
      ["running_ns", "ran"],
      ["runnable_ns", "queued"],
      ["waiting_ns", "waited"],
      ["blocking_ns", "blocked"],
      ["runs", "runs"],
      ["born_ns", "began"],
      ["ended_ns", "ended"],
    ];
    const head = el(
      "tr",
      {},
      ...columns.map(([key, title], i) =>
        el(
          "th",
          {
            class: i < 3 ? "left" : "",
            "data-sort": key,
            ...(this.sort === key ? { "aria-sort": "descending" } : {}),
            onclick: () => {
              this.sort = key;
              this.load();
            },
          },
          title,
        ),
      ),
    );
    const rows = answer.rows.map((one) =>
      el(
        "tr",
        {
          class: "pick" + (one.id === timeline.selected ? " selected" : ""),
          "data-id": one.id,
          onclick: () => show(one.id),
        },
        el("td", { class: "left" }, (one.name ? one.name + " " : "") + "#" + one.id),
        el("td", { class: "left site", title: one.site_text }, shortCode(one.site_text)),
        el(
          "td",
          { class: "left" },
          el("span", { class: "states", color: `var(--${stateColour(one.state)})` }),
          one.state + (one.reason ? ": " + one.reason : ""),
        ),
        ...[one.running_ns, one.runnable_ns, one.waiting_ns, one.blocking_ns].map((ns) =>
          el("td", {}, formatNs(ns)),
        ),
        el("td", {}, formatCount(one.runs)),
        el("td", {}, formatNs(one.born_ns)),
        el("td", {}, one.ended_ns < 0 ? "lives" : formatNs(one.ended_ns)),
      ),
    );
    this.body.replaceChildren(
      el("table", { id: "goroutines" }, el("thead", {}, head), el("tbody", {}, ...rows)),
    );
  },
  // Goroutines with equal stacks come as one group.
  showLive(answer) {
    this.total = answer.total;
    this.rows = answer.groups;
    this.note.textContent =
      `${formatCount(answer.total)} goroutines in ${answer.groups.length} groups of equal stacks` +
      (answer.left_out ? `, ${formatCount(answer.left_out)} left out` : "");
    this.body.replaceChildren(
      ...answer.groups.map((group) =>
        el(
          "details",
          { class: "group" },
          el(
            "summary",
            {},
            el("span", { class: "states", color: `var(--${stateColour(group.state)})` }),
            `${formatCount(group.count)} × ${group.name || group.state}` +
              (group.reason ? ", " + group.reason : "") +
              (group.longest_ns > 0 ? `, for up to ${formatNs(group.longest_ns)}` : ""),
          ),
          el(
            "dl",
            {},
            el("dt", {}, "numbers"),
            el(
              "dd",
              {},
              group.ids.map((id) => "#" + id).join(" ") +
                (group.ids.length < group.count ? " …" : ""),
            ),
            group.site ? el("dt", {}, "started at") : null,
            group.site ? el("dd", {}, group.site) : null,
            group.object ? el("dt", {}, "waits for") : null,
            group.object ? el("dd", {}, group.object) : null,
          ),
          el("pre", {}, group.stack.join("\n") || "no stack: it has not begun, or runs"),
        ),
      ),
    );
  },
};

// Who waits for what: a graph of goroutines and the things that they wait for, cycles first.
function waitPanel(panel, waits) {
  const edge = (one) =>
    `#${one.goroutine}` +
    ` waits for ${one.reason}` +
    (one.object && one.object !== "0x0" ? ` ${one.object}` : "") +
    (one.owner ? `, held by #${one.owner}` : "");
  panel.append(
    box(
      "Cycles",
      "goroutines that wait for each other for ever",
      waits.cycles.length
        ? el(
            "div",
            { class: "warn", id: "cycles" },
            ...waits.cycles.map((cycle) => el("pre", {}, cycle.map(edge).join("\n"))),
          )
        : nothing(
            waits.owners_known
              ? "None among the goroutines and locks whose owners are known."
              : "None found. A trace does not tell who owns a lock; the running program does.",
          ),
    ),
    box(
      "Waits",
      "by what they wait for: many goroutines at one thing are a queue, or a leak",
      scroll(
        table(
          "waits",
          ["<what", "<reason", "goroutines", "longest", "<held by", "<spawn site"],
          waits.objects.map((one) =>
            goroutineRow(one.first, [
              "<" + one.object,
              "<" + one.reason,
              formatCount(one.count),
              formatNs(one.longest_ns),
              "<" + (one.owner ? "#" + one.owner : ""),
              "<" + one.site,
            ]),
          ),
        ),
      ),
    ),
    box(
      "Leak suspects",
      "spawn sites whose waiting goroutines grow",
      waits.suspects.length
        ? scroll(
            table(
              "suspects",
              ["<spawn site", "waiting", "longest"],
              waits.suspects.map((one) =>
                row(["<" + one.site, formatCount(one.count), formatNs(one.longest_ns)]),
              ),
            ),
          )
        : nothing("None yet."),
    ),
  );
}
