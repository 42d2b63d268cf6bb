/** What the arena's report needs besides the styles of the other one. Families differ by shape; their colours only help. */
export const arenaStyles = `
:root{--f-chain:#1d2228;--f-replay:#1f6f8b;--f-tuning:#b0672b;--f-distill:#7a4fa3;--f-merge:#1a7f4b;--f-experts:#c0322b;--f-joint:#5d6772}
@media (prefers-color-scheme:dark){:root{--f-chain:#e6e9ec;--f-replay:#6cc0d8;--f-tuning:#e0a06a;--f-distill:#c3a1ea;--f-merge:#5cc98d;--f-experts:#ff8078;--f-joint:#a3adb7}}
.plane{max-width:980px}
.plane text{font-size:11px;fill:var(--ink)}.plane .tick{font-size:10.5px}.plane .axis{fill:var(--soft)}.plane .end{text-anchor:end}
.plane .whisker{stroke:currentColor;stroke-width:1.2;opacity:.65}.plane .seed{fill:currentColor;opacity:.55}.plane .ray{stroke:currentColor;stroke-width:.7;opacity:.3}
.plane .shape{fill:color-mix(in srgb,currentColor 28%,var(--card));stroke:currentColor;stroke-width:1.7}.plane .hollow .shape{fill:none;stroke-dasharray:3 2}
.plane .leader{stroke:var(--soft);stroke-width:.9;stroke-dasharray:1 3}.plane .ground{fill:var(--card);opacity:.82}.plane .strong{font-weight:700}
${["chain", "replay", "tuning", "distill", "merge", "experts", "joint"].map((family) => `.f-${family}{color:var(--f-${family})}`).join("")}
.legend svg{width:14px;height:14px;vertical-align:-2px;margin-right:5px}.legend .shape{fill:color-mix(in srgb,currentColor 28%,var(--card));stroke:currentColor;stroke-width:1.7}.legend .f-joint .shape{fill:var(--card);stroke-dasharray:3 2}.legend span{white-space:nowrap}.legend svg+b,.legend b{font-weight:400;color:var(--soft)}
.plain td,.plain th{font-variant-numeric:tabular-nums}.plain td small{color:var(--soft);white-space:nowrap}.plain .name{white-space:nowrap;font-weight:600}.plain thead th{vertical-align:bottom}.plain th.num{text-align:right}
.plain .group{border-left:1px solid var(--rule);padding-left:12px}.plain tr.strong>*{background:var(--own)}.plain .thin{white-space:nowrap}.plain th small{display:block;font-weight:400}.dense{font-size:12.5px}.dense small{font-size:11.5px}.dense .name{white-space:normal;min-width:130px}.dense th,.dense td{padding-right:9px}.dense .group{padding-left:9px}
.gain{color:var(--good);font-weight:600}.loss{color:var(--bad);font-weight:600}.unsure{color:var(--soft)}
.dots{width:112px;height:16px;display:block;color:var(--id)}.dots.ood{color:var(--ood)}
.dots .track{stroke:var(--rule);stroke-width:1}.dots .range{stroke:currentColor;stroke-width:4;opacity:.3}.dots .mean{stroke:currentColor;stroke-width:2}.dots .seed{fill:currentColor}
.dots.ood .seed{fill:var(--card);stroke:currentColor}
.sweep{max-width:620px}.sweep .s0{--c:var(--f-replay)}.sweep .s1{--c:var(--f-tuning)}.sweep .s2{--c:var(--f-merge)}.sweep .s3{--c:var(--f-distill)}.sweep .s4{--c:var(--f-experts)}.sweep .s5{--c:var(--f-joint)}
.sweep .line{fill:none;stroke:var(--c);stroke-width:1.8}.sweep .whisker{stroke:var(--c);stroke-width:1;opacity:.6}.sweep .mean{fill:var(--c)}.sweep .seed{fill:var(--c);opacity:.5}.sweep .label{fill:var(--c);font-size:11px;font-weight:600}
.heat{background:color-mix(in srgb,var(--accent) calc(var(--share)*55%),var(--card));text-align:right;min-width:64px}
.routed{margin-top:10px}.heat.right{outline:2px solid var(--accent);outline-offset:-3px}
@media print{.plane{max-width:none}}
`;
