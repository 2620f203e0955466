// base.js: small things that all other scripts use.

// All text of the program that is shown goes through textContent: nothing is ever parsed as HTML.
function el(tag, properties, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "color") node.style.background = value;
    else if (name === "width") node.style.width = value;
    else if (name in node) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}
const byId = (id) => document.getElementById(id);

const token = new URLSearchParams(location.search).get("token");

async function ask(what, parameters) {
  const query = new URLSearchParams(parameters || {}).toString();
  const answer = await fetch(what + (query ? "?" + query : ""), {
    headers: token ? { Authorization: "Bearer " + token } : {},
    cache: "no-store",
  });
  if (!answer.ok) throw new Error(what + ": " + answer.status + " " + (await answer.text()).trim());
  return answer.json();
}

function formatNs(ns) {
  if (ns === null || ns === undefined || !isFinite(ns)) return "–";
  const size = Math.abs(ns);
  const digits = (value) => (Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3));
  if (size < 1) return "0";
  if (size < 1e3) return digits(ns) + " ns";
  if (size < 1e6) return digits(ns / 1e3) + " µs";
  if (size < 1e9) return digits(ns / 1e6) + " ms";
  return digits(ns / 1e9) + " s";
}
// A point in time, with as many digits as the length of what is shown needs.
function formatTime(ns, span) {
  const [unit, size] =
    span < 2e4 ? ["µs", 1e3] : span < 2e7 ? ["µs", 1e3] : span < 2e10 ? ["ms", 1e6] : ["s", 1e9];
  const digits = Math.max(0, Math.min(3, Math.ceil(-Math.log10(span / size / 50))));
  return (ns / size).toFixed(digits).replace(/\B(?=(\d{3})+(?!\d)(?=\.|$))/g, " ") + " " + unit;
}
function formatCount(n) {
  if (n === null || n === undefined || !isFinite(n)) return "–";
  if (n >= 1e9) return (n / 1e9).toPrecision(3) + " G";
  if (n >= 1e6) return (n / 1e6).toPrecision(3) + " M";
  if (n >= 1e4) return (n / 1e3).toPrecision(3) + " k";
  return Number.isInteger(n) ? String(n) : n >= 100 ? n.toFixed(0) : n.toPrecision(2);
}
const formatShare = (share) =>
  isFinite(share) ? (share * 100).toFixed(share < 0.1 ? 1 : 0) + " %" : "–";

// "f(int)::{lambda()#1} (file.cc:7)" without what makes it long: "f::{lambda#1} (file.cc:7)".
function shortCode(text) {
  const place = (/ \([^()]*:\d+\)$/.exec(text) || [""])[0];
  let name = text.slice(0, text.length - place.length).replaceAll("(anonymous namespace)::", "");
  for (let before = ""; before !== name; ) {
    before = name;
    name = name.replace(/\([^()]*\)( const)?/g, "").replace(/(?<!operator)<[^<>]*>/g, "");
  }
  return (name || text) + place;
}

// Colours of the theme, for canvases. Read again when the theme changes.
let theme = {};
function readTheme() {
  const style = getComputedStyle(document.documentElement);
  colours.clear();
  theme = new Proxy(
    {},
    {
      get(known, name) {
        if (!(name in known)) known[name] = style.getPropertyValue("--" + name).trim();
        return known[name];
      },
    },
  );
}
const isDark = () => document.documentElement.dataset.theme === "dark";

// Equal texts and numbers get equal colours.
const colours = new Map();
function colourOf(key) {
  const known = colours.get(key);
  if (known) return known;
  let hash = 2166136261;
  const text = String(key);
  for (let i = 0; i < text.length; ++i) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  const hue = (((hash >>> 0) * 0.61803398875) % 1) * 360;
  const colour = `hsl(${hue.toFixed(0)} ${isDark() ? "45% 52%" : "52% 58%"})`;
  if (colours.size > 20000) colours.clear();
  colours.set(key, colour);
  return colour;
}

function legend(entries) {
  return el(
    "div",
    { class: "legend" },
    ...entries.map(([name, color]) => el("span", {}, el("i", { color }), name)),
  );
}

const tip = {
  show(text, x, y) {
    const node = byId("tip");
    node.textContent = text;
    node.hidden = false;
    const box = node.getBoundingClientRect();
    node.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
    node.style.top = (y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18) + "px";
  },
  hide() {
    byId("tip").hidden = true;
  },
};

// A canvas with its real number of pixels; returns its context, in CSS pixels.
function prepare(canvas) {
  const scale = devicePixelRatio || 1;
  const width = canvas.clientWidth,
    height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  return { context, width, height };
}
