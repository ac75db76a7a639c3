#include "tileweave/trace/timeline_page.h"

namespace tileweave {

// Two canvases: #blocks holds what changes with the view, #marks (above it) what changes with the
// pointer. All text from the trace goes through textContent or canvas text, never through HTML.
std::string_view timeline_script() {
  return R"js(
'use strict';
addEventListener('error', (e) => {
  document.documentElement.dataset.error = e.message;
  const note = document.createElement('p');
  note.className = 'note';
  note.textContent = 'The timeline could not be drawn: ' + e.message;
  document.querySelector('main').prepend(note);
});
(() => {
const data = JSON.parse(document.getElementById('trace-data').textContent);
const {nodes, lanes, tensors, arrows} = data;
const {node: nodeOf, work, lane: laneOf, begin, wait, ready, signal, end} = data.records;
const count = begin.length;
const gaveUp = new Set(data.gave_up);
const $ = (id) => document.getElementById(id);
const stage = $('stage'), base = $('blocks'), marks = $('marks'), tip = $('tip'), detail = $('detail');
const kGutter = 74, kAxis = 30, kRight = 14, kRankHead = 24, kBottom = 6;
const kFewArrows = 48;  // so few are shown without being asked for
const kMaxChips = 12;
const manyRanks = data.ranks.length > 1;

// ---- dependencies: arrow indices by consumer and by producer
function group(offset) {
  const first = new Uint32Array(count + 1);
  for (let a = 0; a < arrows.length; a += 4) first[arrows[a + offset] + 1]++;
  for (let i = 0; i < count; i++) first[i + 1] += first[i];
  const next = first.slice(), list = new Uint32Array(arrows.length / 4);
  for (let a = 0; a < arrows.length; a += 4) list[next[arrows[a + offset]]++] = a;
  return (i) => list.subarray(first[i], first[i + 1]);
}
const arrowsOut = group(0), arrowsIn = group(1);
const orderOut = new Uint32Array(arrows.length / 4), orderIn = new Uint32Array(arrows.length / 4);
for (let i = 0; i < count; i++) {
  arrowsOut(i).forEach((a, k) => { orderOut[a / 4] = k; });
  arrowsIn(i).forEach((a, k) => { orderIn[a / 4] = k; });
}
const showsAll = arrows.length / 4 <= kFewArrows;

// ---- text
function trim(value, digits) { return String(Number(value.toFixed(digits))); }
function scaleOf(t) {
  if (data.unit !== 'ns') return [1, data.unit];
  return t < 1e3 ? [1, 'ns'] : t < 1e6 ? [1e3, 'µs'] : t < 1e9 ? [1e6, 'ms'] : [1e9, 's'];
}
function time(t) {
  const [scale, unit] = scaleOf(Math.abs(t));
  if (data.unit !== 'ns' && Math.round(t) === 1) return '1 ' + unit.replace(/s$/, '');
  return (scale === 1 ? Math.round(t).toLocaleString('en') : trim(t / scale, 3)) + ' ' + unit;
}
const blockName = (i) => nodes[nodeOf[i]].name + ' #' + work[i];
const placeOf = (i) => {
  const lane = lanes[laneOf[i]];
  return (manyRanks ? 'rank ' + lane.rank + ', ' : '') + 'SM ' + lane.sm;
};
function add(parent, tag, text, className) {
  const e = document.createElement(tag);
  if (text !== undefined) e.textContent = text;
  if (className) e.className = className;
  parent.append(e);
  return e;
}

// ---- view
const span = Math.max(data.span, 1);
const view = {t0: 0, t1: span, rowH: 20, y: 0};
let width = 0, height = 0, dpr = 1, rowY = [], contentH = 0, colors = {}, onlyNode = -1;
let hover = -1, selected = -1, colorKey = data.color_by;
const colorOf = (i) => nodes[nodeOf[i]][colorKey];
const x = (t) => kGutter + (t - view.t0) / (view.t1 - view.t0) * (width - kGutter - kRight);
const timeAt = (px) => view.t0 + (px - kGutter) / (width - kGutter - kRight) * (view.t1 - view.t0);
const top = (lane) => kAxis + rowY[lane] - view.y;
const middle = (i) => top(laneOf[i]) + view.rowH / 2;

function layRows() {
  rowY = [];
  let y = 0;
  lanes.forEach((lane, i) => {
    if (manyRanks && (i === 0 || lanes[i - 1].rank !== lane.rank)) y += kRankHead;
    rowY.push(y);
    y += view.rowH;
  });
  contentH = y + kBottom;
}
function clampView() {
  const least = Math.max(span * 1e-7, data.unit === 'ns' ? 5 : 0.5);
  const length = Math.min(Math.max(view.t1 - view.t0, least), span * 1.04);
  const t0 = Math.min(Math.max(view.t0, -span * 0.02), span * 1.02 - length);
  view.t0 = t0; view.t1 = t0 + length;
  view.y = Math.max(0, Math.min(view.y, contentH - (height - kAxis)));
}
function resize() {
  dpr = devicePixelRatio || 1;
  width = stage.clientWidth;
  const heads = manyRanks ? data.ranks.length * kRankHead : 0;
  const room = Math.max(380, Math.min(innerHeight - 250, 900)) - kAxis - kBottom - heads;
  if (!resize.done) view.rowH = Math.max(3, Math.min(46, room / Math.max(lanes.length, 1)));
  resize.done = true;
  layRows();
  height = Math.round(Math.min(contentH + kAxis, Math.max(room, 200) + kAxis + kBottom + heads));
  for (const canvas of [base, marks]) {
    canvas.width = Math.round(width * dpr); canvas.height = Math.round(height * dpr);
    canvas.style.height = height + 'px';
  }
  const style = getComputedStyle(document.documentElement);
  for (const name of ['panel', 'ink', 'soft', 'line', 'band', 'in', 'out', 'veil', 'accent'])
    colors[name] = style.getPropertyValue('--' + name).trim();
  hatches.clear();
  redraw();
}

// ---- drawing
const hatches = new Map();
function hatch(ctx, color) {
  if (!hatches.has(color)) {
    const size = Math.round(7 * dpr), tile = document.createElement('canvas');
    tile.width = tile.height = size;
    const c = tile.getContext('2d');
    c.strokeStyle = color; c.lineWidth = 1.3 * dpr; c.globalAlpha = 0.75;
    for (const shift of [-size, 0, size]) {
      c.beginPath(); c.moveTo(shift - 2, size + 2); c.lineTo(shift + size + 2, -2); c.stroke();
    }
    const pattern = ctx.createPattern(tile, 'repeat');
    pattern.setTransform(new DOMMatrix().scale(1 / dpr));
    hatches.set(color, pattern);
  }
  return hatches.get(color);
}
const font = '12px system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif';
const inkOn = (hex) => {
  const [r, g, b] = [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
  return 0.299 * r + 0.587 * g + 0.114 * b > 138 ? '#10151d' : '#ffffff';
};
function begin2d(canvas) {
  const ctx = canvas.getContext('2d');
  ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
  ctx.clearRect(0, 0, width, height);
  ctx.font = font;
  ctx.textBaseline = 'middle';
  return ctx;
}
function clipPlot(ctx) {
  ctx.save(); ctx.beginPath();
  ctx.rect(kGutter, kAxis, width - kGutter, height - kAxis); ctx.clip();
}
function drawBlock(ctx, i) {
  const color = colorOf(i), gap = view.rowH >= 8 ? 1.5 : view.rowH >= 5 ? 0.75 : 0.25;
  const y = top(laneOf[i]) + gap, h = Math.max(view.rowH - 2 * gap, 0.8);
  const left = x(begin[i]), right = x(end[i]);
  const x0 = Math.max(left, kGutter - 4);
  const x1 = Math.min(Math.max(right - (right - left > 5 ? 1 : 0), left + 0.8), width + 4);
  const radius = h > 12 && x1 - x0 > 10 ? 3.5 : 0;
  ctx.save();
  if (radius) { ctx.beginPath(); ctx.roundRect(x0, y, x1 - x0, h, radius); ctx.clip(); }
  if (ready[i] > wait[i]) {
    const w0 = Math.max(x(wait[i]), x0), w1 = Math.min(x(ready[i]), x1);
    ctx.fillStyle = color;
    if (w0 > x0) ctx.fillRect(x0, y, w0 - x0, h);
    if (x1 > w1) ctx.fillRect(w1, y, x1 - w1, h);
    if (w1 > w0) {
      ctx.globalAlpha = 0.2; ctx.fillRect(w0, y, w1 - w0, h); ctx.globalAlpha = 1;
      ctx.fillStyle = hatch(ctx, color);
      if (w1 - w0 > 2.5 && h > 3.5) ctx.fillRect(w0, y, w1 - w0, h);
    }
  } else {
    ctx.fillStyle = color; ctx.fillRect(x0, y, x1 - x0, h);
  }
  if (h > 9 && x1 - x0 > 14 && signal[i] >= 0) {
    const s = Math.min(x(signal[i]), x1 - 1);
    ctx.fillStyle = inkOn(color); ctx.globalAlpha = 0.85;
    ctx.beginPath(); ctx.moveTo(s - 4.5, y + h); ctx.lineTo(s + 0.5, y + h - 6); ctx.lineTo(s + 0.5, y + h);
    ctx.fill(); ctx.globalAlpha = 1;
  }
  const from = Math.max(ready[i] > wait[i] ? x(ready[i]) : x0, x0) + (showsAll && arrowsIn(i).length ? 12 : 0);
  const room = x1 - from - 14;
  if (h >= 13 && room > 14) {
    const long = blockName(i), short = '#' + work[i];
    const text = ctx.measureText(long).width <= room ? long : ctx.measureText(short).width <= room ? short : '';
    ctx.fillStyle = inkOn(color);
    if (text) ctx.fillText(text, from + 7, y + h / 2 + 0.5);
  }
  ctx.restore();
}
function axisStep() {
  const raw = (view.t1 - view.t0) / Math.max((width - kGutter) / 120, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((m) => m * power >= raw) * power;
  return Math.max(step, 1);
}
function drawAxis(ctx) {
  const step = axisStep(), [scale, unit] = scaleOf(Math.min(view.t1, span));
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / scale) - 1e-9)));
  ctx.fillStyle = colors.panel; ctx.fillRect(0, 0, width, kAxis);
  ctx.fillStyle = colors.soft; ctx.textAlign = 'left';
  ctx.fillText(unit, 12, kAxis / 2);
  ctx.textAlign = 'center';
  for (let t = Math.max(0, Math.ceil(view.t0 / step) * step); t <= Math.min(view.t1, span * 1.02); t += step) {
    const px = x(t);
    if (px < kGutter - 1 || px > width - 4) continue;
    ctx.fillText((t / scale).toLocaleString('en', {minimumFractionDigits: digits, maximumFractionDigits: digits}),
                 px, kAxis / 2);
    ctx.fillRect(px - 0.5, kAxis - 5, 1, 5);
  }
  ctx.textAlign = 'left';
  ctx.fillStyle = colors.line; ctx.fillRect(0, kAxis - 1, width, 1);
}
function drawRows(ctx) {
  // Every SM is one band, however many lanes it has; labels are thinned to what fits.
  const every = [1, 2, 4, 5, 8, 10, 20, 50, 100].find((n) => n * view.rowH >= 14) || 200;
  let lastLabel = -1e9;
  for (let i = 0; i < lanes.length;) {
    let j = i;
    while (j < lanes.length && lanes[j].rank === lanes[i].rank && lanes[j].sm === lanes[i].sm) j++;
    const y = top(i), h = (j - i) * view.rowH;
    if (manyRanks && (i === 0 || lanes[i - 1].rank !== lanes[i].rank)) {
      ctx.fillStyle = colors.ink; ctx.font = '600 ' + font;
      ctx.fillText('rank ' + lanes[i].rank, 12, y - kRankHead / 2 + 1); ctx.font = font;
      lastLabel = -1e9;
    }
    if (y + h > kAxis && y < height) {
      ctx.fillStyle = lanes[i].sm % 2 ? colors.panel : colors.band;
      ctx.fillRect(kGutter, y, width - kGutter, h);
      if (lanes[i].sm % every === 0 && y + h / 2 - lastLabel >= 13.5) {
        ctx.fillStyle = colors.soft; ctx.textAlign = 'right';
        const at = Math.max(y + h / 2, kAxis + 8);
        ctx.fillText('SM ' + lanes[i].sm, kGutter - 10, at);
        ctx.textAlign = 'left';
        lastLabel = at;
      }
    }
    i = j;
  }
}
function drawBase() {
  const ctx = begin2d(base);
  ctx.fillStyle = colors.panel; ctx.fillRect(0, 0, width, height);
  ctx.save(); ctx.beginPath(); ctx.rect(0, kAxis, width, height - kAxis); ctx.clip();
  drawRows(ctx);
  ctx.restore();
  clipPlot(ctx);
  const step = axisStep();
  ctx.fillStyle = colors.line;
  for (let t = Math.max(0, Math.ceil(view.t0 / step) * step); t <= Math.min(view.t1, span * 1.02); t += step)
    ctx.fillRect(x(t) - 0.5, kAxis, 1, height);
  let drawn = 0;
  lanes.forEach((lane, l) => {
    if (top(l) + view.rowH < kAxis || top(l) > height) return;
    let covered = -1e9;
    for (const i of lane.records) {
      const x1 = x(end[i]);
      if (x1 < kGutter || (x1 - x(begin[i]) < 0.6 && x1 < covered + 0.4)) continue;
      if (x(begin[i]) > width) break;
      if (onlyNode >= 0 && nodes[nodeOf[i]].position !== onlyNode) ctx.globalAlpha = 0.13;
      drawBlock(ctx, i);
      ctx.globalAlpha = 1;
      covered = x1; drawn++;
    }
  });
  ctx.restore();
  drawAxis(ctx);
  ctx.fillStyle = colors.line; ctx.fillRect(kGutter - 1, kAxis, 1, height);
  if (contentH > height - kAxis + 1) {
    const track = height - kAxis, size = Math.max(24, track * track / contentH);
    ctx.fillStyle = colors.soft; ctx.globalAlpha = 0.5;
    ctx.beginPath();
    ctx.roundRect(width - 8, kAxis + view.y / (contentH - track) * (track - size), 5, size, 2.5);
    ctx.fill(); ctx.globalAlpha = 1;
  }
  return drawn;
}
// From inside the producer to inside the consumer, so that an arrow of no duration has a shape too;
// arrows that share an end fan out over the height of the block.
function drawArrow(ctx, a, color, alpha, size) {
  const from = arrows[a], to = arrows[a + 1], fan = (order, list) =>
    (order[a / 4] - (list.length - 1) / 2) * Math.min(8, view.rowH * 0.6 / list.length);
  const s = x(signal[from] >= 0 ? signal[from] : end[from]), r = x(ready[to]);
  const x0 = Math.max(s - 12, (x(begin[from]) + s) / 2), y0 = middle(from) + fan(orderOut, arrowsOut(from));
  const x1 = Math.min(r + 11, (x(end[to]) + r) / 2), y1 = middle(to) + fan(orderIn, arrowsIn(to));
  const bend = Math.min(Math.max(14, (x1 - x0) * 0.5), 160);
  ctx.strokeStyle = ctx.fillStyle = color;
  ctx.globalAlpha = alpha; ctx.lineWidth = size > 6 ? 1.75 : 1;
  ctx.beginPath(); ctx.moveTo(x0, y0);
  ctx.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - size + 1, y1); ctx.stroke();
  ctx.globalAlpha = Math.min(1, alpha * 1.5);
  ctx.beginPath(); ctx.moveTo(x1, y1); ctx.lineTo(x1 - size, y1 - size * 0.5); ctx.lineTo(x1 - size, y1 + size * 0.5);
  ctx.fill();
  ctx.beginPath(); ctx.arc(x0, y0, size * 0.34, 0, 7); ctx.fill();
  ctx.globalAlpha = 1;
}
function outline(ctx, i, color, w) {
  const x0 = Math.max(x(begin[i]), kGutter - 6), x1 = Math.min(Math.max(x(end[i]), x0 + 2), width + 6);
  ctx.strokeStyle = color; ctx.lineWidth = w;
  ctx.beginPath(); ctx.roundRect(x0 - 0.5, top(laneOf[i]) + 0.5, x1 - x0, Math.max(view.rowH - 1, 2), 4); ctx.stroke();
}
let pointer = null;
function drawMarks() {
  const ctx = begin2d(marks), focus = hover >= 0 ? hover : selected;
  clipPlot(ctx);
  if (focus >= 0) {
    const ins = arrowsIn(focus), outs = arrowsOut(focus);
    if (focus === selected) {
      ctx.fillStyle = colors.veil; ctx.fillRect(kGutter, kAxis, width, height);
      for (const a of ins) drawBlock(ctx, arrows[a]);
      for (const a of outs) drawBlock(ctx, arrows[a + 1]);
      drawBlock(ctx, focus);
    }
    const drawAll = (edges, color, end) => {
      for (const a of edges) {
        if (view.rowH >= 8 || focus !== selected) outline(ctx, arrows[a + end], color, view.rowH >= 8 ? 1.5 : 1);
      }
      const alpha = Math.max(0.16, Math.min(1, 5 / Math.sqrt(edges.length)));
      for (const a of edges) drawArrow(ctx, a, color, alpha, edges.length > 24 ? 5 : 9);
    };
    drawAll(ins, colors.in, 0);
    drawAll(outs, colors.out, 1);
    outline(ctx, focus, colors.ink, view.rowH >= 8 ? 2.5 : 1.5);
  } else if (showsAll) {
    for (let a = 0; a < arrows.length; a += 4) drawArrow(ctx, a, colors.ink, 0.5, 8);
  }
  ctx.restore();
  if (pointer && pointer.x > kGutter) {
    const text = time(Math.max(0, timeAt(pointer.x))), w = ctx.measureText(text).width + 14;
    ctx.fillStyle = colors.ink; ctx.globalAlpha = 0.35; ctx.fillRect(pointer.x - 0.5, kAxis, 1, height); ctx.globalAlpha = 1;
    const left = Math.min(Math.max(pointer.x - w / 2, 2), width - w - 2);
    ctx.beginPath(); ctx.roundRect(left, 4, w, kAxis - 8, 5); ctx.fill();
    ctx.fillStyle = colors.panel; ctx.fillText(text, left + 7, kAxis / 2 + 0.5);
  }
}
let pending = false;
function redraw() { clampView(); drawBase(); drawMarks(); }
function schedule() {
  if (pending) return;
  pending = true;
  requestAnimationFrame(() => { pending = false; redraw(); });
}

// ---- what a block says about itself
function describe(parent, i) {
  add(parent, 'strong', blockName(i));
  const list = add(parent, 'dl');
  const row = (name, value, cls) => { add(list, 'dt', name); add(list, 'dd', value, cls); };
  row('operator', nodes[nodeOf[i]].op + ', position ' + nodes[nodeOf[i]].position);
  row('ran on', placeOf(i));
  row('time', time(begin[i]) + ' – ' + time(end[i]) + '  (' + time(end[i] - begin[i]) + ')');
  if (ready[i] > wait[i]) row('waited', time(ready[i] - wait[i]) + (gaveUp.has(i) ? ', then gave up' : ', until ' + time(ready[i])));
  if (signal[i] >= 0) row('signalled', 'at ' + time(signal[i]));
  row('waits for', arrowsIn(i).length + ' tile dependenc' + (arrowsIn(i).length === 1 ? 'y' : 'ies'), 'in');
  row('feeds', arrowsOut(i).length + ' tile dependenc' + (arrowsOut(i).length === 1 ? 'y' : 'ies'), 'out');
}
function showTip(i, px, py) {
  tip.textContent = '';
  if (i < 0) { tip.style.display = 'none'; return; }
  describe(tip, i);
  tip.style.display = 'block';
  const w = tip.offsetWidth, h = tip.offsetHeight;
  tip.style.left = (px + 18 + w > width ? Math.max(4, px - w - 14) : px + 18) + 'px';
  tip.style.top = Math.max(4, Math.min(py + 16, height - h - 4)) + 'px';
}
function showDetail() {
  detail.textContent = '';
  if (selected < 0) return;
  const cols = add(detail, 'div', undefined, 'cols');
  describe(add(cols, 'div'), selected);
  const list = (title, cls, edges, end) => {
    const box = add(cols, 'div');
    add(box, 'strong', title, cls);
    const chips = add(box, 'div', undefined, 'chips');
    for (const a of edges.slice(0, kMaxChips)) {
      const other = arrows[a + end];
      const chip = add(chips, 'button', blockName(other) + ' · ' + tensors[arrows[a + 2]] + '[' + arrows[a + 3] + ']');
      chip.onclick = () => select(other, true);
    }
    if (edges.length > kMaxChips) add(chips, 'span', 'and ' + (edges.length - kMaxChips) + ' more');
    if (!edges.length) add(chips, 'span', 'none recorded', 'label');
  };
  list('waits for', 'in', arrowsIn(selected), 0);
  list('feeds', 'out', arrowsOut(selected), 1);
}
function select(i, reveal) {
  selected = i;
  if (i >= 0 && reveal) {
    const length = view.t1 - view.t0;
    if (begin[i] < view.t0 || end[i] > view.t1) { view.t0 = (begin[i] + end[i] - length) / 2; view.t1 = view.t0 + length; }
    const y = rowY[laneOf[i]];
    if (y < view.y || y + view.rowH > view.y + height - kAxis) view.y = y - (height - kAxis) / 2;
  }
  showDetail(); schedule();
}

// ---- pointer, wheel and keys
function hit(px, py) {
  if (px < kGutter || py < kAxis) return -1;
  for (let l = 0; l < lanes.length; l++) {
    if (py < top(l) || py >= top(l) + view.rowH) continue;
    const list = lanes[l].records, slack = 2 * (view.t1 - view.t0) / width, t = timeAt(px);
    let lo = 0, hi = list.length;
    while (lo < hi) { const mid = (lo + hi) >> 1; if (begin[list[mid]] <= t) lo = mid + 1; else hi = mid; }
    for (const k of [lo - 1, lo]) {
      if (k >= 0 && k < list.length && begin[list[k]] - slack <= t && t <= end[list[k]] + slack) return list[k];
    }
  }
  return -1;
}
function zoom(factor, px) {
  const t = timeAt(px === undefined ? (kGutter + width) / 2 : px);
  view.t0 = t - (t - view.t0) * factor; view.t1 = t + (view.t1 - t) * factor;
  schedule();
}
function zoomRows(factor, py) {
  const at = py === undefined ? (height - kAxis) / 2 : py - kAxis, ratio = (view.y + at) / contentH;
  view.rowH = Math.max(2, Math.min(60, view.rowH * factor));
  layRows();
  view.y = ratio * contentH - at;
  schedule();
}
function fit() { view.t0 = 0; view.t1 = span; view.y = 0; resize.done = false; resize(); }
const where = (e) => { const r = stage.getBoundingClientRect(); return {x: e.clientX - r.left, y: e.clientY - r.top}; };
stage.addEventListener('wheel', (e) => {
  e.preventDefault();
  const at = where(e), line = e.deltaMode === 1 ? 20 : 1;
  if (e.shiftKey) view.y += (e.deltaY || e.deltaX) * line;
  else if (e.altKey) zoomRows(Math.exp(-e.deltaY * line * 0.0015), at.y);
  else if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
    const dt = e.deltaX * line / width * (view.t1 - view.t0);
    view.t0 += dt; view.t1 += dt;
  } else zoom(Math.exp(e.deltaY * line * 0.0015), at.x);
  schedule();
}, {passive: false});
let drag = null;
stage.addEventListener('pointerdown', (e) => {
  drag = {...where(e), t0: view.t0, t1: view.t1, vy: view.y, moved: false};
  stage.setPointerCapture(e.pointerId);
});
stage.addEventListener('pointermove', (e) => {
  const at = where(e);
  pointer = at;
  if (drag) {
    const dx = at.x - drag.x, dy = at.y - drag.y;
    if (Math.abs(dx) + Math.abs(dy) > 4) { drag.moved = true; stage.classList.add('drag'); }
    if (drag.moved) {
      const dt = -dx / (width - kGutter - kRight) * (drag.t1 - drag.t0);
      view.t0 = drag.t0 + dt; view.t1 = drag.t1 + dt; view.y = drag.vy - dy;
      hover = -1; showTip(-1);
      schedule();
    }
    return;
  }
  hover = hit(at.x, at.y);
  stage.classList.toggle('over', hover >= 0);
  showTip(hover, at.x, at.y);
  drawMarks();
});
stage.addEventListener('pointerup', (e) => {
  const at = where(e);
  stage.classList.remove('drag');
  if (drag && !drag.moved) select(hit(at.x, at.y), false);
  drag = null;
});
stage.addEventListener('pointerleave', () => { pointer = null; hover = -1; showTip(-1); drawMarks(); });
stage.addEventListener('dblclick', (e) => {
  const at = where(e), i = hit(at.x, at.y);
  if (i < 0) return fit();
  const pad = Math.max(end[i] - begin[i], span * 1e-6) * 2;
  view.t0 = begin[i] - pad; view.t1 = end[i] + pad;
  schedule();
});
base.addEventListener('keydown', (e) => {
  const length = view.t1 - view.t0;
  const neighbour = (step) => {
    if (selected < 0) return count ? lanes.find((lane) => lane.records.length).records[0] : -1;
    const list = lanes[laneOf[selected]].records;
    return list[Math.max(0, Math.min(list.length - 1, list.indexOf(selected) + step))];
  };
  const across = (step) => {
    if (selected < 0) return neighbour(0);
    for (let l = laneOf[selected] + step; l >= 0 && l < lanes.length; l += step) {
      const list = lanes[l].records;
      if (list.length) return list.reduce((a, b) => Math.abs(begin[b] - begin[selected]) < Math.abs(begin[a] - begin[selected]) ? b : a);
    }
    return selected;
  };
  const keys = {
    ArrowLeft: () => select(neighbour(-1), true), ArrowRight: () => select(neighbour(1), true),
    ArrowUp: () => select(across(-1), true), ArrowDown: () => select(across(1), true),
    '+': () => zoom(0.7), '=': () => zoom(0.7), '-': () => zoom(1 / 0.7), '0': fit,
    Escape: () => { onlyNode = -1; markRows(); select(-1); },
    a: () => { view.t0 -= length / 5; view.t1 -= length / 5; schedule(); },
    d: () => { view.t0 += length / 5; view.t1 += length / 5; schedule(); },
  };
  if (!keys[e.key] || e.ctrlKey || e.metaKey) return;
  e.preventDefault();
  keys[e.key]();
});

// ---- controls and legend
const legend = [...document.querySelectorAll('tr[data-node]')];
function markRows() {
  for (const tr of legend) tr.classList.toggle('on', nodes[tr.dataset.node].position === onlyNode);
}
for (const tr of legend) {
  const toggle = () => {
    const position = nodes[tr.dataset.node].position;
    onlyNode = onlyNode === position ? -1 : position;
    markRows(); schedule();
  };
  tr.onclick = toggle;
  tr.onkeydown = (e) => { if (e.key === 'Enter' || e.key === ' ') { e.preventDefault(); toggle(); } };
}
function paintLegend() {
  for (const tr of legend) {
    for (const e of tr.querySelectorAll('.swatch, .track i')) e.style.background = nodes[tr.dataset.node][colorKey];
  }
}
$('fit').onclick = fit;
$('in').onclick = () => zoom(0.6);
$('out').onclick = () => zoom(1 / 0.6);
$('taller').onclick = () => zoomRows(1.35);
$('flatter').onclick = () => zoomRows(1 / 1.35);
$('color').value = colorKey;
$('color').onchange = () => { colorKey = $('color').value; paintLegend(); schedule(); };
$('theme').onclick = () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  root.dataset.theme = isDark ? 'light' : 'dark';
  resize();
};
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', resize);
new ResizeObserver(() => { if (stage.clientWidth !== width) resize(); }).observe(stage);

// "#block=12&from=0&to=500&theme=dark" opens the page at a block and a span of time.
const wish = new URLSearchParams(location.hash.slice(1));
if (['dark', 'light'].includes(wish.get('theme'))) document.documentElement.dataset.theme = wish.get('theme');
paintLegend();
resize();
if (Number(wish.get('to')) > 0) { view.t0 = Number(wish.get('from')) || 0; view.t1 = Number(wish.get('to')); redraw(); }
const wanted = wish.has('block') ? Number(wish.get('block')) : -1;
if (Number.isInteger(wanted) && wanted >= 0 && wanted < count) { select(wanted, true); redraw(); }
document.documentElement.dataset.rendered = String(count);
})();
)js";
}

}  // namespace tileweave
