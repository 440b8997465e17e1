"""The page's own style and script. Both are allowed by their hashes alone, so the page can have no others."""

from __future__ import annotations

from replaydbg.render.groups.svg_canvas import embedded_style

_COLOURS = """
:root { color-scheme: light; --text: #1c1e21; --back: #ffffff; --soft: #f2f4f6; --line: #d0d5da; --quiet: #57606a;
  --fail: #b3261e; --fail-soft: #fdecea; --link: #0550ae; --value: #6e3b00; --value-soft: #fff4e0;
  --keyword: #6639ba; --string: #0a6b34; --number: #0550ae; --comment: #57606a; --function: #953800; --bar: #4f7cbf;
  --bar-two: #2f8f7f; --call: #cfe0f7; }
"""
_DARK = """
  color-scheme: dark; --text: #e6e8eb; --back: #16181b; --soft: #22262b; --line: #414851; --quiet: #a5adb6;
  --fail: #ff8f86; --fail-soft: #3a2220; --link: #79b8ff; --value: #f0c987; --value-soft: #33291a;
  --keyword: #d2a8ff; --string: #7ee0a1; --number: #79c0ff; --comment: #a5adb6; --function: #ffb77c; --bar: #6fa3ea;
  --bar-two: #56c2ae; --call: #24436b;
"""
_LAYOUT = """
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body { margin: 0 auto; padding: 1rem 1.25rem 3rem; max-width: 78rem; font: 1rem/1.5 system-ui, sans-serif;
  color: var(--text); background: var(--back); overflow-wrap: anywhere; }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: 0; padding: .5rem 1rem; background: var(--back); z-index: 2; }
.aside { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
h1 { margin: .2rem 0; font-size: 1.5rem; line-height: 1.25; color: var(--fail); white-space: pre-wrap; }
.calm h1 { color: var(--text); }
h2 { margin: 2.2rem 0 .6rem; font-size: 1.15rem; border-bottom: 1px solid var(--line); padding-bottom: .2rem; }
p { margin: .4rem 0; }
.kind { margin: 0; color: var(--quiet); font-weight: 600; }
.place-line { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .9rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: .8rem 0; font-size: .9rem; }
dt { color: var(--quiet); } dd { margin: 0; white-space: pre-wrap; }
nav ul { display: flex; flex-wrap: wrap; gap: .3rem 1rem; padding: 0; margin: .8rem 0; list-style: none; }
nav a { display: inline-block; padding: .2rem 0; }
.warning { border-left: 4px solid var(--fail); background: var(--fail-soft); padding: .4rem .8rem; }
.calm .warning { border-color: var(--quiet); background: var(--soft); }
code, pre, samp, var, .source, .output { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: .86rem; }
code, samp, var { font-size: inherit; font-style: normal; }
p code, li > code, td code, td samp, .line { font-size: .86rem; }
pre { margin: .4rem 0; white-space: pre-wrap; }
button { font: inherit; font-size: .85rem; color: var(--text); background: var(--soft); border: 1px solid var(--line);
  border-radius: 5px; padding: .2rem .6rem; cursor: pointer; }
.tools { display: flex; flex-wrap: wrap; gap: .5rem; margin: .5rem 0; }
details { margin: .3rem 0; } summary { cursor: pointer; padding: .2rem 0; }
.source, .output, .frames, .writes, .commands { list-style: none; padding: 0; margin: .5rem 0; }
.source { border: 1px solid var(--line); border-radius: 6px; overflow: hidden; line-height: 1.55; }
.source li { display: grid; grid-template-columns: 1.4rem 3.2rem 3.6rem minmax(0, 1fr); }
.content { display: flex; flex-wrap: wrap; gap: 0 1rem; padding-right: .4rem; position: relative; }
.source code { white-space: pre-wrap; max-width: 100%; }
.source .mark { color: var(--fail); text-align: center; font-size: .7rem; line-height: 2; }
.calm .source .mark { color: var(--link); }
.source .number, .source .hits { color: var(--quiet); text-align: right; padding-right: .8rem; user-select: none; }
.source .here { background: var(--fail-soft); font-weight: 600; }
.calm .source .here { background: var(--soft); }
.source .here .number { color: var(--text); }
.source .never code, .source .never code span { color: var(--quiet); }
.values { flex: 1 1 15rem; display: flex; flex-wrap: wrap; gap: .1rem .6rem; font-weight: normal; }
.value { color: var(--value); background: var(--value-soft); border-radius: 4px; padding: 0 .4rem; }
.keyword { color: var(--keyword); } .string { color: var(--string); }
.number-literal, .decorator { color: var(--number); }
.comment { color: var(--comment); } .function { color: var(--function); }
.frames > li { padding: .15rem 0; } .place, .type { color: var(--quiet); font-size: .88rem; }
.line { color: var(--quiet); }
.writes > li { border-left: 3px solid var(--line); padding: .1rem 0 .3rem .8rem; margin: .6rem 0; }
.depth-1 { margin-left: 1rem !important; } .depth-2 { margin-left: 2rem !important; }
.depth-3 { margin-left: 3rem !important; } .depth-4 { margin-left: 4rem !important; }
.details { color: var(--quiet); }
.moment { font-variant-numeric: tabular-nums; }
.output { border: 1px solid var(--line); border-radius: 6px; padding: .3rem 0; }
.output li { display: grid; grid-template-columns: 7rem minmax(0, 1fr); gap: .6rem; padding: 0 .6rem; }
.output .moment { text-align: right; }
.output samp { white-space: pre-wrap; }
.output .stderr samp { color: var(--fail); } .output .now { color: var(--quiet); background: var(--soft); }
.scroll { overflow-x: auto; margin: .6rem 0; border: 1px solid var(--line); border-radius: 6px; }
.scroll table { overflow-wrap: normal; } .scroll td code { display: inline-block; min-width: 11rem; }
figure { margin: .5rem 0; } figcaption { color: var(--quiet); font-size: .88rem; }
table { border-collapse: collapse; font-size: .88rem; }
th, td { text-align: left; vertical-align: top; padding: .25rem .6rem; border-bottom: 1px solid var(--line);
  min-width: 3rem; }
thead th { background: var(--soft); } tbody th { font-weight: normal; } .shown { background: var(--soft); }
.commands li { display: flex; flex-wrap: wrap; align-items: center; gap: .2rem .8rem; margin: .4rem 0; }
.command { background: var(--soft); border: 1px solid var(--line); border-radius: 5px; padding: .25rem .6rem; }
.commands span { color: var(--quiet); }
footer { margin-top: 3rem; color: var(--quiet); font-size: .88rem; }
"""
_DRAWINGS = """
svg { display: block; overflow: visible; }
.timeline text, .heap text { font: 12px system-ui, sans-serif; fill: var(--text); }
svg .middle { text-anchor: middle; } svg .right { text-anchor: end; }
.timeline .rail { stroke: var(--line); } .timeline .thread rect { fill: var(--bar); }
.timeline .process rect, .heap rect { fill: var(--bar-two); }
.timeline .raised circle { fill: var(--fail); stroke: var(--back); }
.timeline .now line { stroke: var(--fail); stroke-width: 2; } .calm .timeline .now line { stroke: var(--text); }
.timeline .now text { font-weight: 600; }
.calls text { font: 11px system-ui, sans-serif; fill: var(--text); } .calls svg { overflow: hidden; }
.calls rect { fill: var(--call); stroke: var(--bar); stroke-width: .5; }
.calls .library rect { fill: var(--soft); stroke: var(--line); }
.calls .now line { stroke: var(--fail); stroke-width: 2; } .calm .calls .now line { stroke: var(--text); }
.timeline .write line { stroke: var(--value); stroke-dasharray: 3 3; } .timeline .print line { stroke: var(--quiet); }
.timeline .found, .timeline .write text, .timeline .print text { visibility: hidden; }
.timeline :target .found { visibility: visible; stroke: var(--link); stroke-width: 3; stroke-dasharray: none; }
.timeline :target text { visibility: visible; font-weight: 600; }
"""
_NARROW = """
@media (max-width: 44rem) {
  body { padding: .75rem .75rem 2rem; }
  h1 { font-size: 1.2rem; }
  dl { grid-template-columns: 1fr; } dd { margin-bottom: .4rem; }
  .source li { grid-template-columns: 1rem 2.2rem minmax(0, 1fr); }
  .source .hits { display: none; }
  .source .number { padding-right: .5rem; }
  .values { padding-bottom: .2rem; }
  .output li { grid-template-columns: 3.6rem minmax(0, 1fr); gap: .4rem; padding: 0 .4rem; }
  .output .moment, .output samp { font-size: .75rem; }
  .depth-1, .depth-2, .depth-3, .depth-4 { margin-left: .6rem !important; }
  .variables thead { display: none; }
  .variables tr, .variables th, .variables td { display: block; border: 0; padding: .1rem .2rem; }
  .variables tr { border-bottom: 1px solid var(--line); padding: .3rem 0; } .variables th { font-weight: 600; }
}
@media print { .tools, .skip, button { display: none; } }
@media (forced-colors: active) { .source .here { outline: 2px solid; } }
"""


def page_style() -> str:
    """Return the style sheet."""
    drawing = embedded_style(
        {
            "page": "var(--back)",
            "ink": "var(--text)",
            "dim": "var(--quiet)",
            "faint": "var(--line)",
            "flying": "var(--function)",
        }
    )
    return (
        f"{_COLOURS.strip()}\n:root[data-theme=dark] {{{_DARK}}}\n"
        f"@media (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{{_DARK}}} }}\n"
        f"{_LAYOUT.strip()}\n{_DRAWINGS.strip()}\n{drawing}\n{_NARROW.strip()}\n"
    )


PAGE_SCRIPT = """
"use strict";
(() => {
  const button = (text, press) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.addEventListener("click", () => press(made));
    return made;
  };
  for (const each of document.querySelectorAll(".command")) {
    each.after(button("Copy", async (made) => {
      try {
        await navigator.clipboard.writeText(each.textContent);
        made.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(each);
        made.textContent = "Selected";
      }
    }));
  }
  const tools = document.createElement("div");
  tools.className = "tools";
  const root = document.documentElement;
  tools.append(button("Dark or light", () => {
    const isDark = getComputedStyle(root).colorScheme === "dark";
    root.dataset.theme = isDark ? "light" : "dark";
  }));
  if (document.querySelector("main details")) {
    tools.append(button("Open all", (made) => {
      const opens = made.textContent === "Open all";
      for (const each of document.querySelectorAll("main details")) each.open = opens;
      made.textContent = opens ? "Close all" : "Open all";
    }));
  }
  document.querySelector("nav").after(tools);
})();
"""
"""What the page offers besides reading: without it nothing is missing but buttons."""
