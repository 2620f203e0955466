// chart.js: lines over time, bars, and a strip of colours per P, on canvases.

const niceTop = (value) => {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((top) => top >= value);
};

// series: [{name, color, values}], the oldest value first. `span` values fill the width.
function drawLines(canvas, series, span, { top, format = formatCount, stacked = false } = {}) {
  const { context, width, height } = prepare(canvas);
  if (!width) return;
  const left = 46,
    bottom = 12,
    plotWidth = width - left - 4,
    plotHeight = height - bottom - 10;
  const length = Math.max(...series.map((one) => one.values.length), 0);
  let sums = [];
  let largest = 0;
  for (let i = 0; i < length; ++i) {
    let sum = 0;
    for (const one of series) {
      sum = stacked ? sum + (one.values[i] || 0) : Math.max(sum, one.values[i] || 0);
    }
    largest = Math.max(largest, sum);
  }
  const most = top || niceTop(largest);
  const x = (i) => left + plotWidth * (1 - (length - 1 - i) / Math.max(1, span - 1));
  const y = (value) => 8 + plotHeight * (1 - value / most);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.textAlign = "right";
  context.lineWidth = 1;
  for (const share of [0, 0.5, 1]) {
    context.strokeStyle = theme.line;
    context.beginPath();
    context.moveTo(left, Math.round(y(most * share)) + 0.5);
    context.lineTo(width - 4, Math.round(y(most * share)) + 0.5);
    context.stroke();
    context.fillStyle = theme.soft;
    context.fillText(format(most * share), left - 6, y(most * share));
  }
  for (const one of series) {
    if (!one.values.length) continue;
    const base = sums.length ? sums : new Array(length).fill(0);
    const tops = one.values.map((value, i) => (stacked ? base[i] + value : value));
    context.beginPath();
    tops.forEach((value, i) =>
      i ? context.lineTo(x(i), y(value)) : context.moveTo(x(i), y(value)),
    );
    if (stacked) {
      for (let i = length - 1; i >= 0; --i) context.lineTo(x(i), y(base[i]));
      context.fillStyle = one.color;
      context.globalAlpha = 0.85;
      context.fill();
      context.globalAlpha = 1;
      sums = tops;
    } else {
      context.strokeStyle = one.color;
      context.lineWidth = 1.6;
      context.stroke();
    }
  }
}

function drawSpark(canvas, values, span, color) {
  const { context, width, height } = prepare(canvas);
  if (!width || !values.length) return;
  const most = Math.max(...values, 1e-9);
  const x = (i) => width * (1 - (values.length - 1 - i) / Math.max(1, span - 1));
  context.beginPath();
  context.moveTo(x(0), height);
  values.forEach((value, i) => context.lineTo(x(i), height - 1 - (height - 3) * (value / most)));
  context.lineTo(width, height);
  context.fillStyle = color;
  context.globalAlpha = 0.25;
  context.fill();
  context.globalAlpha = 1;
}

// bars: [{name, value, color}]
function drawBars(canvas, bars, { format = formatCount, every = 1 } = {}) {
  const { context, width, height } = prepare(canvas);
  if (!width || !bars.length) return;
  const left = 46,
    bottom = 18,
    plotHeight = height - bottom - 6;
  const most = niceTop(Math.max(...bars.map((bar) => bar.value)));
  const step = (width - left - 4) / bars.length;
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.textAlign = "right";
  context.fillStyle = theme.soft;
  context.fillText(format(most), left - 6, 8);
  context.fillText("0", left - 6, 4 + plotHeight);
  context.strokeStyle = theme.line;
  context.beginPath();
  context.moveTo(left, 4.5 + plotHeight);
  context.lineTo(width, 4.5 + plotHeight);
  context.stroke();
  context.textAlign = "center";
  bars.forEach((bar, i) => {
    const size = plotHeight * (bar.value / most);
    context.fillStyle = bar.color || theme.accent;
    if (bar.value > 0)
      context.fillRect(
        left + i * step + 1,
        4 + plotHeight - Math.max(1, size),
        Math.max(1, step - 2),
        Math.max(1, size),
      );
    if (i % every === 0) {
      context.fillStyle = theme.soft;
      context.fillText(bar.name, left + (i + 0.5) * step, height - 7);
    }
  });
}

// rows: one array of shares (0 to 1, null for nothing) per P.
function drawStrips(canvas, rows, span, color) {
  const { context, width, height } = prepare(canvas);
  if (!width || !rows.length) return;
  const left = 46;
  const lane = Math.min(34, (height - 4) / rows.length);
  const step = (width - left - 4) / span;
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.textAlign = "right";
  const skip = Math.ceil(13 / lane);
  rows.forEach((values, row) => {
    const y = 2 + row * lane;
    const high = Math.max(1, lane - (lane > 6 ? 2 : 0));
    context.fillStyle = theme.idle;
    context.fillRect(left, y, width - left - 4, high);
    context.fillStyle = color;
    values.forEach((share, i) => {
      if (!share) return;
      context.globalAlpha = 0.12 + 0.88 * Math.min(1, share);
      context.fillRect(left + (span - values.length + i) * step, y, step + 0.6, high);
    });
    context.globalAlpha = 1;
    if (row % skip === 0) {
      context.fillStyle = theme.soft;
      context.fillText("P" + row, left - 6, y + lane / 2);
    }
  });
}
