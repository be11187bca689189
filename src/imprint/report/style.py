"""The look of every page: light and dark, wide and narrow."""

ICON = (
    "<link rel=\"icon\" href=\"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E"
    "%3Crect width='32' height='32' rx='8' fill='%233b4cca'/%3E"
    "%3Cpath fill='none' stroke='%23fff' stroke-linecap='round' stroke-width='2.4' "
    "d='M8 21c0-9 3-13 8-13s8 4 8 10M12.2 24c-.4-7-.2-11.5 3.8-11.5s4.3 4 3.9 9M16 17.5c0 3 0 5-.4 7.5'/%3E"
    '%3C/svg%3E">'
)
"""The icon of every page, in the page itself."""

STYLE = """
:root { color-scheme: light dark; --ink: #1f2933; --pale: #5b6670; --line: #e4e8ec; --blue: #0072b2; --back: #f6f7f9;
  --card: #ffffff; --clear: #ffffff00; --shade: #00000033; --good: #00664a; --bad: #a63d00 }
* { box-sizing: border-box }
body { margin: 0; background: var(--back); color: var(--ink); font: 16px/1.55 system-ui, sans-serif }
main { max-width: 1200px; margin: 0 auto; padding: 2.5rem 1.25rem 3rem }
h1 { font-size: clamp(1.6rem, 4vw, 2.2rem); line-height: 1.2; margin: 0 0 .5rem; overflow-wrap: anywhere }
h2 { font-size: 1.15rem; margin: 0 0 .35rem }
h3 { font-size: 1rem; margin: 1.5rem 0 .35rem; padding-top: 1rem; border-top: 1px solid var(--line) }
h2 + h3, p + h3 { border: 0; padding: 0; margin-top: .5rem }
h2 small, h3 small { font-weight: normal; color: var(--pale); margin-left: .5rem }
p { margin: 0 0 .75rem; max-width: 50rem }
a { color: var(--blue) }
nav { columns: 16rem; font-size: .9rem; margin: 1rem 0 }
nav a { display: block; text-decoration: none }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1.25rem 1.4rem;
  margin-top: 1.25rem; min-width: 0 }
.two { display: grid; gap: 1.25rem; margin-top: 1.25rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)) }
.two section { margin: 0 }
.facts { display: flex; flex-wrap: wrap; gap: .75rem 2.5rem; margin: 1.25rem 0 0; padding: 0; list-style: none }
.facts b { display: block; font-size: 1.5rem; line-height: 1.2; font-variant-numeric: tabular-nums }
.facts span, .pale, small, figcaption { color: var(--pale) }
.facts span, figcaption, small { font-size: .85rem }
.wide { overflow-x: auto; margin: .5rem 0;
  background: linear-gradient(to right, var(--card) 40%, var(--clear)) 0 0 / 48px 100% local,
  linear-gradient(to left, var(--card) 40%, var(--clear)) 100% 0 / 48px 100% local,
  radial-gradient(farthest-side at 0 50%, var(--shade), #0000) 0 0 / 12px 100% scroll,
  radial-gradient(farthest-side at 100% 50%, var(--shade), #0000) 100% 0 / 12px 100% scroll;
  background-repeat: no-repeat }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums }
th, td { padding: .35rem .6rem; text-align: left; border-bottom: 1px solid var(--line); white-space: nowrap }
th { color: var(--pale); font-weight: 600; vertical-align: bottom }
tbody th { color: var(--ink); vertical-align: top }
thead th { white-space: normal } tbody th { white-space: normal; min-width: 8rem; overflow-wrap: anywhere }
tbody th small { display: block; font-weight: normal }
.n { text-align: right } .best { font-weight: 700; color: var(--blue) } .whole { width: 100% }
.claims { table-layout: fixed; width: 100%; min-width: 44rem }
.claims td { white-space: normal; vertical-align: top; overflow-wrap: anywhere }
.holds { color: var(--good); font-weight: 600 } .fails { color: var(--bad); font-weight: 600 }
.none { color: var(--pale) }
figure { margin: .75rem 0 }
figure svg { max-width: 100%; height: auto; display: block; mix-blend-mode: multiply }
.ranks svg { margin: 0 auto } .on-narrow { display: none }
pre { background: var(--back); border-radius: 6px; padding: .8rem 1rem; overflow-x: auto; font-size: .875rem }
footer { margin-top: 1.5rem; font-size: .85rem }
@media (max-width: 640px) {
  main { padding: 1.5rem .8rem 2rem } section { padding: .9rem }
  th, td { padding: .3rem .4rem } td small { display: none }
  tbody th { position: sticky; left: 0; background: var(--card) }
  .claims { min-width: 0 }
  .claims, .claims tbody, .claims tr, .claims td { display: block; border: 0; padding: .1rem 0; width: 100% }
  .claims thead { display: none } .claims tr { border-bottom: 1px solid var(--line); padding: .6rem 0 }
  .claims tr > td:first-child { font-weight: 600 }
  .claims td[data-of]::before { content: attr(data-of) ": "; color: var(--pale) }
  figure svg { max-width: none } figure.small svg, .ranks svg { max-width: 100% }
  .on-wide { display: none } .on-narrow { display: block } }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3e8ed; --pale: #9aa7b3; --line: #323b44; --blue: #7db5dc; --back: #14181c;
    --card: #1c2229; --clear: #1c222900; --shade: #000000aa; --good: #5fc9a2; --bad: #f0935a }
  figure svg { filter: invert(.91) hue-rotate(180deg); mix-blend-mode: lighten } }
"""


def scrolling(content: str, label: str) -> str:
    """Content that scrolls sideways where there is no room; the keyboard reaches it."""
    return f'<div class="wide" tabindex="0" role="group" aria-label="{label}">{content}</div>'
