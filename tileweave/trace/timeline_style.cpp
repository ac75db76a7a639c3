#include "tileweave/trace/timeline_page.h"

namespace tileweave {

std::string_view timeline_style() {
  return R"css(
:root {
  --page: #f5f6f8; --panel: #ffffff; --ink: #1b2330; --soft: #5b6678; --line: #dfe3ea;
  --band: #f3f5f9; --in: #1f5fd0; --out: #c2410c; --accent: #2f5fd0; --veil: rgba(255,255,255,.74);
  --warn-page: #fff1d6; --warn-ink: #7a4a00; --good-page: #dff3ea; --good-ink: #0d5c3d;
  --shadow: 0 1px 2px rgba(20,30,50,.06), 0 6px 20px rgba(20,30,50,.05);
  color-scheme: light;
}
@media (prefers-color-scheme: dark) {
  :root:not([data-theme="light"]) {
    --page: #11151c; --panel: #191f29; --ink: #e8ecf3; --soft: #9aa6b8; --line: #2c3543;
    --band: #1e2531; --in: #7fb0ff; --out: #ffa25e; --accent: #7fa8ff; --veil: rgba(25,31,41,.78);
    --warn-page: #4a3510; --warn-ink: #ffd591; --good-page: #143b2c; --good-ink: #8fe0bd;
    --shadow: 0 1px 2px rgba(0,0,0,.4);
    color-scheme: dark;
  }
}
:root[data-theme="dark"] {
  --page: #11151c; --panel: #191f29; --ink: #e8ecf3; --soft: #9aa6b8; --line: #2c3543;
  --band: #1e2531; --in: #7fb0ff; --out: #ffa25e; --accent: #7fa8ff; --veil: rgba(25,31,41,.78);
  --warn-page: #4a3510; --warn-ink: #ffd591; --good-page: #143b2c; --good-ink: #8fe0bd;
  --shadow: 0 1px 2px rgba(0,0,0,.4);
  color-scheme: dark;
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 14px/1.5 system-ui, -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; }
main { max-width: 1680px; margin: 0 auto; padding: 24px 28px 48px; }
header { display: flex; gap: 24px; align-items: flex-start; justify-content: space-between;
  margin-bottom: 18px; }
h1 { font-size: 24px; line-height: 1.25; margin: 0; font-weight: 650; letter-spacing: -.01em;
  overflow-wrap: anywhere; }
h2 { font-size: 15px; margin: 0; font-weight: 650; }
h3 { font-size: 13px; margin: 18px 0 6px; color: var(--soft); font-weight: 600; }
.facts { color: var(--soft); margin: 4px 0 0; }
.badge { display: inline-block; vertical-align: 3px; font-size: 12px; font-weight: 650;
  line-height: 1; padding: 5px 9px; border-radius: 99px; margin-left: 8px; letter-spacing: 0; }
.badge.modelled { background: var(--warn-page); color: var(--warn-ink); }
.badge.measured { background: var(--good-page); color: var(--good-ink); }
.note { background: var(--warn-page); color: var(--warn-ink); border-radius: 8px;
  padding: 9px 14px; margin: 0 0 14px; }
.cards { display: grid; gap: 14px; margin-bottom: 14px; grid-template-columns: 1fr 2fr; }
.panel { background: var(--panel); border: 1px solid var(--line); border-radius: 12px;
  box-shadow: var(--shadow); padding: 16px 18px; margin-bottom: 14px; min-width: 0; }
.cards .panel { margin: 0; }
.panel > p:first-child, .label { margin: 0; color: var(--soft); font-size: 13px; }
.big { font-size: 30px; font-weight: 680; letter-spacing: -.02em; line-height: 1.25; margin: 0; }
.bar { display: flex; height: 26px; border-radius: 7px; overflow: hidden; background: var(--band);
  margin: 8px 0 8px; gap: 1px; }
.bar > span { min-width: 0; overflow: hidden; white-space: nowrap; text-overflow: ellipsis;
  font-size: 12px; line-height: 26px; padding: 0; text-align: center; color: #fff; font-weight: 600;
  flex-basis: 0; text-shadow: 0 1px 2px rgba(0,0,0,.45); }
.bar.exposed { height: 34px; } .bar.exposed > span { line-height: 34px; }
.bar.sm > .c { background: var(--accent); }
.bar.sm > .w { background: repeating-linear-gradient(135deg, var(--accent) 0 2px, transparent 2px 6px); }
.keys { display: flex; flex-wrap: wrap; gap: 4px 18px; color: var(--soft); font-size: 13px; margin: 0;
  padding: 0; list-style: none; }
.keys b { color: var(--ink); font-weight: 650; font-variant-numeric: tabular-nums; }
.swatch { display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 7px;
  vertical-align: -1px; }
.swatch.wait { background: repeating-linear-gradient(135deg, var(--soft) 0 1.5px, transparent 1.5px 4px);
  border: 1px solid var(--soft); }
.swatch.idle { background: var(--band); border: 1px solid var(--line); }
.tools { display: flex; flex-wrap: wrap; gap: 8px 10px; align-items: center; margin-bottom: 10px; }
.tools h2 { margin-right: auto; }
button, select { font: inherit; font-size: 13px; color: var(--ink); background: var(--panel);
  border: 1px solid var(--line); border-radius: 7px; padding: 3px 10px; min-height: 30px; cursor: pointer; }
button:hover, select:hover { border-color: var(--soft); }
button:focus-visible, select:focus-visible, canvas:focus-visible, tr:focus-visible {
  outline: 2px solid var(--accent); outline-offset: 2px; }
.stage { position: relative; border: 1px solid var(--line); border-radius: 8px; overflow: hidden;
  touch-action: none; cursor: grab; user-select: none; -webkit-user-select: none; }
.stage.drag { cursor: grabbing; } .stage.over { cursor: pointer; }
.stage canvas { display: block; width: 100%; } #marks { position: absolute; inset: 0; pointer-events: none; }
#tip { position: absolute; z-index: 2; pointer-events: none; background: var(--panel); color: var(--ink);
  border: 1px solid var(--line); border-radius: 9px; padding: 9px 12px; font-size: 13px; line-height: 1.45;
  box-shadow: 0 6px 24px rgba(0,0,0,.22); max-width: 380px; display: none; }
#tip strong, #detail strong { overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 14px; margin: 4px 0 0; }
dt { color: var(--soft); } dd { margin: 0; font-variant-numeric: tabular-nums; }
.in { color: var(--in); } .out { color: var(--out); }
.hint { color: var(--soft); font-size: 12.5px; margin: 9px 0 0; display: flex; flex-wrap: wrap; gap: 3px 13px; }
kbd { font: inherit; font-size: 12px; border: 1px solid var(--line); border-bottom-width: 2px;
  border-radius: 5px; padding: 0 5px; color: var(--ink); }
#detail { margin-top: 12px; border-top: 1px solid var(--line); padding-top: 12px; }
#detail:empty { display: none; }
#detail .cols { display: grid; grid-template-columns: minmax(240px, 1fr) 2fr 2fr; gap: 20px; }
.chips { display: flex; flex-wrap: wrap; gap: 6px; margin-top: 6px; }
.chips > span { align-self: center; color: var(--soft); }
.chips button { overflow-wrap: anywhere; text-align: left; padding: 1px 9px; min-height: 26px; }
.tables { display: grid; grid-template-columns: minmax(0, 5fr) minmax(0, 7fr); gap: 14px; align-items: start; }
.scroll { overflow: auto; max-height: 560px; margin-top: 8px; }
table { border-collapse: separate; border-spacing: 0; width: 100%; font-variant-numeric: tabular-nums; }
th { font-weight: 600; color: var(--soft); font-size: 12.5px; position: sticky; top: 0;
  background: var(--panel); white-space: nowrap; }
th, td { text-align: right; padding: 5px 6px; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere;
  min-width: 84px; padding-left: 4px; }
tbody tr:last-child td { border-bottom: 0; }
tfoot td { font-weight: 650; border-top: 1px solid var(--soft); border-bottom: 0; }
tr[data-node] { cursor: pointer; } tr[data-node]:hover td, tr.on td { background: var(--band); }
td .track { display: inline-block; width: 56px; height: 8px; border-radius: 4px; background: var(--band);
  margin-right: 8px; vertical-align: 1px; overflow: hidden; text-align: left; }
td .track i { display: block; height: 100%; }
footer { color: var(--soft); font-size: 13px; margin-top: 18px; max-width: 100ch; }
@media (max-width: 1100px) { .cards, .tables, #detail .cols { grid-template-columns: minmax(0, 1fr); }
  main { padding: 16px; } }
@media print { .tools button, .tools select, .hint { display: none; } body { background: #fff; } }
)css";
}

}  // namespace tileweave
