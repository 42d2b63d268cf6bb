/** The whole style of the report: no font, picture or sheet is fetched. Colours are variables, for light, dark and paper. */
export const styles = `
:root{color-scheme:light dark;--bg:#fbfbfa;--card:#fff;--ink:#1d2228;--soft:#5d6772;--faint:#8b949e;--rule:#e3e6e8;--accent:#1f6f8b;--accent-soft:#e2f0f4;
--id:#1f6f8b;--ood:#b0672b;--good:#1a7f4b;--warn:#9a6700;--bad:#c0322b;--weak-bg:#fff0bf;--weak-line:#b88600;--lost-bg:#ffd9d3;--lost-line:#c0322b;--band:rgba(31,111,139,.13);--own:rgba(31,111,139,.07);--code:#f3f4f4;--shadow:0 1px 2px rgba(20,30,40,.06),0 4px 16px rgba(20,30,40,.05)}
@media (prefers-color-scheme:dark){:root{--bg:#15181b;--card:#1d2125;--ink:#e6e9ec;--soft:#a3adb7;--faint:#77828d;--rule:#31373d;--accent:#6cc0d8;--accent-soft:#1d3138;
--id:#6cc0d8;--ood:#e0a06a;--good:#5cc98d;--warn:#e2b340;--bad:#ff8078;--weak-bg:#4a3c10;--weak-line:#e2b340;--lost-bg:#56211e;--lost-line:#ff8078;--band:rgba(108,192,216,.15);--own:rgba(108,192,216,.08);--code:#262b30;--shadow:none}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,"DejaVu Sans",sans-serif;-webkit-font-smoothing:antialiased}
main{max-width:1120px;margin:0 auto;padding:36px 28px 64px}
h1{font-size:27px;line-height:1.2;margin:0 0 4px;letter-spacing:-.01em}
h2{font-size:19px;margin:44px 0 4px;letter-spacing:-.005em}
h3{font-size:15px;margin:0 0 8px}
h3 small,p small,.lead{color:var(--soft);font-weight:400}
small{font-size:12.5px}
.lead{margin:0 0 16px;max-width:76ch}
.muted{color:var(--faint)}
.note{color:var(--soft);font-size:12.5px;margin:6px 2px 0}
code,.mono{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.chain{display:flex;flex-wrap:wrap;gap:6px;align-items:center;margin:16px 0 0;font-size:13.5px}
.chain b{background:var(--accent-soft);color:var(--accent);border-radius:6px;padding:2px 9px;font-weight:600}
.chain span{color:var(--soft)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin:24px 0 0}
.tile,.card,article.film{background:var(--card);border:1px solid var(--rule);border-radius:10px;box-shadow:var(--shadow)}
.tile{padding:12px 16px}
.tile b{display:block;font-size:24px;line-height:1.2;font-weight:650;font-variant-numeric:tabular-nums}
.tile span{color:var(--soft);font-size:13px}
.tile.bad b{color:var(--bad)}.tile.warn b{color:var(--warn)}.tile.good b{color:var(--good)}
.card{padding:14px 18px;overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
.skills{width:100%}
.skills th{font-weight:600;text-align:left;font-size:13px;color:var(--soft);padding:6px 10px;border-bottom:1px solid var(--rule);white-space:nowrap}
.skills thead th b{color:var(--ink);font-size:14px}
.skills thead th{vertical-align:bottom}
.skills tbody th b{color:var(--ink)}
.skills td{padding:3px 4px;border-bottom:1px solid var(--rule)}
.skills tr:last-child td,.skills tr:last-child th{border-bottom:0}
.skills tr.first th,.skills tr.first td{border-top:1px solid var(--rule)}
.cell{border-radius:7px;padding:5px 9px;min-width:104px;position:relative;background:color-mix(in srgb,var(--cell) var(--mix),var(--card))}
.cell b{font-size:15px;font-weight:620}
.cell small{display:block;color:var(--soft);font-size:11.5px;white-space:nowrap}
.cell.own{outline:2px solid var(--accent);outline-offset:-2px}
.cell.stale{opacity:.55}
.mark{font-weight:700}
.cell .mark{position:absolute;top:4px;right:8px;font-size:13px}
.mark.confirmed,.confirmed>.mark{color:var(--bad);fill:var(--bad)}.mark.drifting{color:var(--warn);fill:var(--warn)}.mark.recovered{color:var(--good);fill:var(--good)}.mark.not-measurable{color:var(--faint);fill:var(--faint)}
.legend{display:flex;flex-wrap:wrap;gap:6px 18px;color:var(--soft);font-size:12.5px;margin:10px 2px 0}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(440px,1fr));gap:16px}
.charts .card h3{margin-bottom:2px}
.chart{width:100%;height:auto;display:block}
.chart text{font:10px system-ui,"Segoe UI",Arial,"DejaVu Sans",sans-serif;fill:var(--soft)}
.chart .tick{text-anchor:end;fill:var(--faint);font-variant-numeric:tabular-nums}
.chart .mid,.chart .stage,.chart .mark{text-anchor:middle}
.chart .stage.mine{fill:var(--accent);font-weight:700}
.chart .mark{font-size:11px;cursor:help}
.chart .grid{stroke:var(--rule);stroke-width:1}.chart .zero{stroke:var(--faint);stroke-dasharray:none}
.chart .border{stroke:var(--faint);stroke-width:1;stroke-dasharray:2 3}
.chart .own{fill:var(--own)}.chart .band{fill:var(--band)}
.curve{fill:none;stroke-width:1.9;stroke-linejoin:round}.curve.id{stroke:var(--id)}.curve.ood{stroke:var(--ood);stroke-dasharray:5 3}
.dot.id{fill:var(--id)}.dot.ood{fill:var(--card);stroke:var(--ood);stroke-width:1.4}
.key{display:inline-block;width:22px;height:0;border-top:2.5px solid var(--id);vertical-align:middle;margin-right:6px}.key.ood{border-top:2.5px dashed var(--ood)}
.flags{list-style:none;margin:0;padding:0}
.flags li{display:grid;grid-template-columns:22px 132px 1fr;gap:4px 10px;padding:9px 2px;border-bottom:1px solid var(--rule)}
.flags li:last-child{border-bottom:0}
.flags .at{color:var(--soft);font-size:13px;white-space:nowrap}
.flags b{font-weight:620}
.flags p{margin:2px 0 0;color:var(--soft);font-size:13.5px}
.facts{display:grid;grid-template-columns:max-content 1fr;gap:1px 12px;margin:6px 0 0;font-size:13px;color:var(--soft)}
.facts dt{font-weight:560}
.facts dd{margin:0}
article.film{padding:16px 18px;margin:0 0 16px}
.prompt{margin:0 0 12px;white-space:pre-wrap;overflow-wrap:anywhere;font-size:14px}
.prompt b{color:var(--soft);font-weight:600;margin-right:6px;font-size:12.5px;text-transform:uppercase;letter-spacing:.04em}
.frames{overflow-x:auto}
.strip{margin:0 0 12px}
.strip th,.written th{font-size:12.5px;color:var(--soft);text-align:left;padding:1px 8px 1px 0;font-weight:600;white-space:nowrap}
.strip thead th.segment{padding:0 1px 3px;font-weight:500;font-size:11px}
.strip thead th.segment span{display:block;border-bottom:2px solid var(--rule);color:var(--faint);overflow:hidden;text-overflow:ellipsis;width:0;min-width:100%;padding-left:2px}
.sum{white-space:nowrap;padding:1px 12px 1px 0;font-size:12.5px;color:var(--soft);text-align:right}
.check{font-style:normal;font-weight:700;margin-right:6px;color:var(--faint)}.check.yes{color:var(--good)}.check.no{color:var(--bad)}
.token{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:13px;padding:2px 3px;text-align:center;border:1px solid transparent;border-bottom:2px solid transparent;border-radius:3px;white-space:pre;cursor:default}
.token.weakened{background:var(--weak-bg);border-bottom:2px dashed var(--weak-line)}
.token.lost{background:var(--lost-bg);border-bottom:2px solid var(--lost-line)}
.token:hover,.token:focus{outline:2px solid var(--accent);outline-offset:-1px}
.none{color:var(--faint);font-size:13px}
.written{font-size:13px;margin-top:2px}
.written caption{text-align:left;color:var(--faint);font-size:11.5px;text-transform:uppercase;letter-spacing:.04em;padding:4px 0}
.written td{padding:1px 6px 1px 0;vertical-align:top}
.written code{overflow-wrap:anywhere;white-space:pre-wrap}
.written mark{background:var(--lost-bg);color:inherit;border-bottom:2px solid var(--lost-line);border-radius:2px}
.plain{width:100%;font-size:13.5px}
.plain th{text-align:left;color:var(--soft);font-weight:600;padding:5px 12px 5px 0;border-bottom:1px solid var(--rule);white-space:nowrap;vertical-align:top}
.plain td{padding:5px 12px 5px 0;border-bottom:1px solid var(--rule);vertical-align:top}
.plain tr:last-child>*{border-bottom:0}
.plain .num{text-align:right}
.wrap{overflow-wrap:anywhere}
ul.limits{padding-left:20px;max-width:86ch}
ul.limits li{margin:5px 0}
footer{margin-top:44px;color:var(--faint);font-size:12.5px}
#tip{position:fixed;z-index:9;max-width:340px;background:var(--card);border:1px solid var(--rule);border-radius:9px;box-shadow:0 6px 28px rgba(0,0,0,.22);padding:10px 13px;font-size:12.5px;line-height:1.45;pointer-events:none}
#tip[hidden]{display:none}
#tip b{font-family:ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace}
#tip .bar{display:grid;grid-template-columns:minmax(60px,auto) 1fr 52px;gap:8px;align-items:center}
#tip .bar code{white-space:pre;overflow:hidden;text-overflow:ellipsis}
#tip .bar i{height:7px;border-radius:4px;background:var(--faint);min-width:1px}
#tip .bar.ref i{background:var(--accent)}#tip .bar.ref code{font-weight:700}
#tip .bar span{text-align:right;font-variant-numeric:tabular-nums}
#tip .top{margin-top:6px;padding-top:6px;border-top:1px solid var(--rule)}
@media (max-width:560px){.charts{grid-template-columns:1fr}.flags li{grid-template-columns:22px 1fr}.flags .at{grid-column:2}.flags li>div{grid-column:2}main{padding:20px 14px}}
@media print{:root{--bg:#fff;--shadow:none}body{font-size:11.5px}main{max-width:none;padding:0}h2{margin-top:22px}.card,article.film,.tile{break-inside:avoid}.charts{grid-template-columns:1fr 1fr}*{-webkit-print-color-adjust:exact;print-color-adjust:exact}#tip{display:none}}
@page{margin:14mm}
`;

/** Shows the details of the token under the pointer or the focus. All texts go in as text, never as markup. */
export const script = `
(() => {
  const data = JSON.parse(document.getElementById("details").textContent);
  const tip = document.getElementById("tip");
  const add = (parent, tag, text, name) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  };
  const show = (cell) => {
    const detail = data[Number(cell.dataset.d)];
    if (!detail) return;
    tip.textContent = "";
    const head = add(tip, "div");
    add(head, "b", detail.token);
    add(head, "span", "  under " + detail.frame + (detail.segment ? ", " + detail.segment : ""));
    for (const line of detail.lines) add(tip, "div", line);
    const top = add(tip, "div", undefined, "top");
    for (const one of detail.top) {
      const bar = add(top, "div", undefined, one.reference ? "bar ref" : "bar");
      add(bar, "code", one.token);
      add(add(bar, "div"), "i").style.cssText = "display:block;width:" + Math.max(1, one.share * 100) + "%";
      add(bar, "span", one.percent);
    }
    tip.hidden = false;
    const box = cell.getBoundingClientRect();
    const { width, height } = tip.getBoundingClientRect();
    const below = box.bottom + 8 + height < innerHeight;
    tip.style.left = Math.max(8, Math.min(box.left, innerWidth - width - 8)) + "px";
    tip.style.top = (below ? box.bottom + 8 : Math.max(8, box.top - height - 8)) + "px";
  };
  const hide = () => { tip.hidden = true; };
  for (const [begin, end] of [["mouseover", "mouseout"], ["focusin", "focusout"]]) {
    document.addEventListener(begin, (event) => { const cell = event.target.closest && event.target.closest("[data-d]"); if (cell) show(cell); });
    document.addEventListener(end, hide);
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  addEventListener("scroll", hide, { passive: true });
})();
`;
