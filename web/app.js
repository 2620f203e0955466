// app.js: which panel is shown, the keys, search, theme, recording. Runs last.

const kPanels = [
  ["live", "Live"],
  ["timeline", "Timeline"],
  ["goroutines", "Goroutines"],
  ["steals", "Stealing"],
  ["latency", "Latency"],
  ["work", "Work conservation"],
  ["chains", "Wake chains"],
  ["cost", "Scheduler cost"],
  ["waits", "Waits"],
];
const kOfTrace = {
  steals: stealPanel,
  latency: anatomyPanel,
  work: workPanel,
  chains: chainPanel,
  cost: costPanel,
};

let info = { live: false };
let current = "";
const panels = {}; // name -> its element

function setStatus(text, kind) {
  const node = byId("status");
  node.textContent = text;
  node.className = kind || "";
}

// For those that need a trace, while there is none.
function needsTrace(panel, text) {
  panel.replaceChildren(
    el(
      "div",
      { class: "empty" },
      el("div", {}, text),
      info.can_record ? el("button", { onclick: record }, "Record 1 s") : null,
    ),
  );
}

function buildPanels() {
  for (const [index, [name, title]] of kPanels.entries()) {
    const panel = el("section", { id: "panel-" + name, role: "tabpanel", hidden: true });
    panels[name] = panel;
    byId("panels").append(panel);
    byId("tabs").append(
      el(
        "button",
        {
          role: "tab",
          id: "tab-" + name,
          title: `${title} (${index + 1})`,
          onclick: () => openPanel(name),
        },
        title,
      ),
    );
  }
  livePanel.build(panels.live);
  timeline.build(panels.timeline);
  listPanel.build(panels.goroutines);
}

function openPanel(name) {
  if (!panels[name]) return;
  current = name;
  for (const [other] of kPanels) {
    panels[other].hidden = other !== name;
    byId("tab-" + other).setAttribute("aria-selected", other === name);
  }
  history.replaceState(null, "", location.pathname + location.search + "#" + name);
  redraw();
  if (name === "goroutines") listPanel.load();
  if (name === "waits") loadWaits();
}

function redraw() {
  if (current === "live") livePanel.draw();
  if (current === "timeline") timeline.dirty();
  if (panels[current] && panels[current].draw) panels[current].draw();
}

async function loadWaits() {
  try {
    const waits = await ask(timeline.info ? "view/waits" : "waits");
    panels.waits.replaceChildren();
    waitPanel(panels.waits, waits);
  } catch (error) {
    needsTrace(panels.waits, String(error.message || error));
  }
}

function fillTracePanels() {
  for (const [name, fill] of Object.entries(kOfTrace)) {
    panels[name].replaceChildren();
    panels[name].draw = null;
    if (summary) fill(panels[name]);
    else if (timeline.info)
      panels[name].append(el("div", { class: "empty" }, "The server still reads the trace …"));
    else needsTrace(panels[name], "This needs an execution trace.");
  }
  const lanes = byId("timeline");
  lanes.hidden = !timeline.info;
  for (const note of panels.timeline.querySelectorAll(".empty")) note.remove();
  if (!timeline.info) {
    panels.timeline.append(
      el(
        "div",
        { class: "empty" },
        el(
          "div",
          {},
          "The timeline needs an execution trace. The panel Live shows the Ps without one.",
        ),
        info.can_record ? el("button", { onclick: record }, "Record 1 s") : null,
      ),
    );
  }
}

// Shows the timeline at once. What is about the whole trace follows when the server has read it.
async function openTrace() {
  summary = null;
  timeline.open(await ask("view/info"));
  fillTracePanels();
  redraw();
  loadSummary();
}
async function loadSummary() {
  const trace = timeline.info;
  try {
    if (!trace.complete) setStatus("reading the trace …", "live");
    const all = await ask("view/summary");
    const complete = await ask("view/info");
    if (timeline.info !== trace) return; // another was recorded meanwhile
    summary = all;
    Object.assign(trace, complete);
    if (!info.live)
      setStatus(
        `${formatCount(trace.events)} events` +
          (trace.lost ? `, ${formatCount(trace.lost)} lost` : "") +
          (trace.whole ? "" : ", the file is cut off or damaged"),
        trace.lost || !trace.whole ? "bad" : "",
      );
    fillTracePanels();
    redraw();
  } catch (error) {
    setStatus(String(error.message || error), "bad");
  }
}

async function record() {
  if (!info.can_record || byId("record").disabled) return;
  byId("record").disabled = true;
  setStatus("recording …", "live");
  try {
    await ask("view/record", { seconds: 1 });
    await openTrace();
    openPanel(current === "live" ? "timeline" : current);
    setStatus("recorded", "live");
  } catch (error) {
    setStatus(String(error.message || error), "bad");
  }
  byId("record").disabled = false;
}

// The selected goroutine, at the right.
timeline.onSelect = async (goroutine) => {
  const aside = byId("detail");
  aside.hidden = !goroutine;
  for (const line of document.querySelectorAll("#goroutines tr[data-id]"))
    line.classList.toggle("selected", Number(line.dataset.id) === goroutine);
  if (!goroutine || !timeline.info) return;
  aside.replaceChildren(el("h2", {}, "Goroutine " + goroutine));
  try {
    const one = await ask("view/goroutine", { id: goroutine });
    if (timeline.selected !== goroutine) return;
    timeline.runs = one.segments;
    const entry = (name, value) =>
      value === "" || value === undefined || value === null
        ? []
        : [el("dt", {}, name), el("dd", {}, value)];
    const link = (id) =>
      id
        ? el(
            "a",
            {
              href: "#",
              onclick: (event) => {
                event.preventDefault();
                show(id);
              },
            },
            "#" + id,
          )
        : "";
    aside.replaceChildren(
      el("h2", {}, (one.name || "Goroutine") + " #" + goroutine),
      el(
        "dl",
        {},
        ...entry("state", one.state + (one.reason ? ": " + one.reason : "")),
        ...entry("started by", link(one.creator)),
        ...entry("body", one.site_text),
        ...entry("began", formatNs(one.born_ns)),
        ...entry("ended", one.ended_ns < 0 ? "lives" : formatNs(one.ended_ns)),
        ...entry("runs", formatCount(one.runs)),
      ),
      el(
        "div",
        { class: "bar" },
        ...["running", "runnable", "waiting", "blocking", "stopped"].map((state) =>
          el("div", {
            color: `var(--${state})`,
            width: (one[state + "_ns"] / Math.max(1, one.whole_ns)) * 100 + "%",
            title: state + ": " + formatNs(one[state + "_ns"]),
          }),
        ),
      ),
      legend([
        ["running " + formatNs(one.running_ns), "var(--running)"],
        ["queued " + formatNs(one.runnable_ns), "var(--runnable)"],
        ["waited " + formatNs(one.waiting_ns), "var(--waiting)"],
        ["blocked " + formatNs(one.blocking_ns), "var(--blocking)"],
        ["stopped " + formatNs(one.stopped_ns), "var(--stopped)"],
      ]),
      el(
        "h2",
        {},
        "States",
        el(
          "small",
          {},
          one.segments.length < one.all_segments
            ? `the first ${one.segments.length} of ${formatCount(one.all_segments)}`
            : "",
        ),
      ),
      table(
        "segments",
        ["<state", "at", "for"],
        one.segments
          .slice(0, 300)
          .map((run) =>
            row(
              [
                "<" +
                  run.state +
                  (run.state === "running"
                    ? " on P" + run.proc
                    : run.reason
                      ? ": " + run.reason
                      : run.place
                        ? ": " + run.place
                        : "") +
                  (run.waker ? `, woken by #${run.waker}` : ""),
                formatNs(run.begin),
                formatNs(run.end - run.begin),
              ],
              { class: "pick", onclick: () => show(goroutine, run) },
            ),
          ),
      ),
    );
    timeline.dirty();
  } catch (error) {
    aside.append(nothing(String(error.message || error)));
  }
};

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  try {
    localStorage.setItem("magpie-theme", name);
  } catch (error) {
    /* not kept then */
  }
  readTheme();
  redraw();
}
function firstTheme() {
  let kept = null;
  try {
    kept = localStorage.getItem("magpie-theme");
  } catch (error) {
    /* none kept */
  }
  return kept || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

function togglePause() {
  live.paused = !live.paused;
  byId("pause").textContent = live.paused ? "Go on" : "Pause";
  showLiveStatus();
}
function showLiveStatus() {
  if (live.paused) setStatus("paused");
  else if (live.failed) setStatus("no answer", "bad");
  else setStatus("live", "live");
}

function onKey(event) {
  const inField =
    /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox";
  if (event.key === "Escape") {
    byId("search").value = "";
    byId("search").blur();
    search();
    if (timeline.selected) timeline.select(0);
    return;
  }
  if (inField || event.ctrlKey || event.metaKey || event.altKey) return;
  const zoomable = current === "timeline" && timeline.info;
  const actions = {
    "/": () => byId("search").focus(),
    t: () => setTheme(isDark() ? "light" : "dark"),
    "?": () => byId("keys").showModal(),
    r: record,
    ...(info.live ? { " ": togglePause } : {}),
    ...(zoomable
      ? {
          "+": () => timeline.zoom(0.5),
          "=": () => timeline.zoom(0.5),
          "-": () => timeline.zoom(2),
          0: () => timeline.fit(),
          w: () => timeline.zoom(0.6),
          s: () => timeline.zoom(1.6),
          ArrowUp: () => timeline.zoom(0.6),
          ArrowDown: () => timeline.zoom(1.6),
          ArrowLeft: () => timeline.pan(-0.2),
          ArrowRight: () => timeline.pan(0.2),
          a: () => timeline.pan(-0.2),
          d: () => timeline.pan(0.2),
          n: () => timeline.step(1),
          p: () => timeline.step(-1),
        }
      : {}),
  };
  const panel = /^[1-9]$/.test(event.key) ? kPanels[Number(event.key) - 1] : null;
  const action = panel ? () => openPanel(panel[0]) : actions[event.key];
  if (!action || (event.key === " " && event.target.tagName === "BUTTON")) return;
  event.preventDefault();
  action();
}

let searchTimer = 0;
function search() {
  clearTimeout(searchTimer);
  searchTimer = setTimeout(() => {
    if (!byId("search").value.trim()) {
      timeline.matching = null;
      timeline.dirty();
    }
    listPanel.load();
  }, 150);
}

async function boot() {
  setTheme(firstTheme());
  buildPanels();
  byId("theme").onclick = () => setTheme(isDark() ? "light" : "dark");
  byId("help").onclick = () => byId("keys").showModal();
  byId("record").onclick = record;
  byId("pause").onclick = togglePause;
  byId("search").oninput = search;
  byId("search").onkeydown = (event) => {
    if (event.key === "Enter") openPanel("goroutines");
  };
  addEventListener("keydown", onKey);
  addEventListener("resize", redraw);
  try {
    info = await ask("info");
  } catch (error) {
    setStatus(String(error.message || error), "bad");
    return;
  }
  byId("program").textContent = info.program + (info.pid ? ` (${info.pid})` : "");
  document.title = info.program + " – Magpie";
  byId("record").hidden = !info.can_record;
  byId("pause").hidden = !info.live;
  byId("tab-live").hidden = !info.live;
  fillTracePanels();
  if (info.live) {
    live.listeners.push(() => {
      showLiveStatus();
      if (current === "live") livePanel.draw();
    });
    live.start();
  }
  if (info.trace) await openTrace();
  const wanted = location.hash.slice(1);
  openPanel(
    panels[wanted] && (wanted !== "live" || info.live) ? wanted : info.live ? "live" : "timeline",
  );
  window.magpieView.ready = true;
}

// For those who drive the page from outside: tests, and the console.
window.magpieView = { ready: false, timeline, live, listPanel, openPanel, show };
boot();
