"""A comparison as one HTML file: differences by meaning, old and new side by side, light and dark."""

from collections.abc import Iterator
from html import escape

from tidegate.conformance.diff.comparison import Comparison
from tidegate.conformance.diff.declared import show
from tidegate.conformance.diff.difference import Difference, Meaning
from tidegate.conformance.diff.report_lines import ORDER, place_of, sentence_of
from tidegate.conformance.visible_text import visible

MAX_VALUE = 4000
"""Characters of a value; a text longer than that is cut, and says so."""

_STYLE = """
:root{color-scheme:light dark;--bg:#fff;--ink:#1c1f24;--soft:#5b6470;--line:#d8dde3;--card:#f6f8fa;--bad:#b42318;
--intended:#7a5af8;--good:#067647;--plain:#475467;--old:#fff1f0;--new:#ecfdf3}
@media (prefers-color-scheme:dark){:root{--bg:#14171b;--ink:#e6e9ed;--soft:#9aa4b0;--line:#303740;--card:#1b2026;
--bad:#f97066;--intended:#a48afb;--good:#47cd89;--plain:#98a2b3;--old:#2d1b1b;--new:#16261d}}
*{box-sizing:border-box}body{margin:0 auto;max-width:70rem;padding:2rem 1rem 4rem;background:var(--bg);color:var(--ink);
font:16px/1.5 system-ui,sans-serif}h1{font-size:1.6rem;margin:0 0 .25rem}p{margin:.25rem 0}.soft{color:var(--soft)}
.sides{display:grid;grid-template-columns:auto 1fr;gap:.1rem 1rem;margin:1rem 0}.sides code{overflow-wrap:anywhere}
.counts{display:flex;flex-wrap:wrap;gap:.5rem;padding:0;margin:1rem 0;list-style:none}
.counts li{border:1px solid var(--line);border-left:.4rem solid var(--c);border-radius:.4rem;padding:.4rem .8rem;
background:var(--card)}.counts b{font-size:1.3rem}
details{border:1px solid var(--line);border-radius:.5rem;margin:1rem 0;background:var(--card)}
summary{cursor:pointer;padding:.6rem 1rem;font-weight:600}summary span{color:var(--c)}
article{border-top:1px solid var(--line);padding:.8rem 1rem}article h3{font-size:1rem;margin:0}
.pair{display:grid;grid-template-columns:1fr 1fr;gap:.5rem;margin-top:.5rem}
@media (max-width:45rem){.pair{grid-template-columns:1fr}}
pre{margin:0;padding:.5rem;border-radius:.3rem;white-space:pre-wrap;overflow-wrap:anywhere;font:13px/1.4 ui-monospace,
monospace;max-height:20rem;overflow:auto}.old{background:var(--old)}.new{background:var(--new)}
.regression{--c:var(--bad)}.intended{--c:var(--intended)}.improvement,.addition{--c:var(--good)}.variation{--c:var(--plain)}
"""

_CLASS = {
    Meaning.REGRESSION: "regression",
    Meaning.INTENDED: "intended",
    Meaning.IMPROVEMENT: "improvement",
    Meaning.ADDITION: "addition",
    Meaning.VARIATION: "variation",
}


def render_html(comparison: Comparison) -> str:
    """Returns the document. Nothing in it is loaded from elsewhere; all text of servers is escaped."""
    return "".join(_parts(comparison))


def _parts(comparison: Comparison) -> Iterator[str]:
    title = "Regressions found" if comparison.has_regressions else "No regressions"
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{title} · tidegate diff</title><style>{_STYLE}</style></head><body>"
    yield f"<h1>{title}</h1><p class=soft>{escape(sentence_of(comparison))}</p>"
    yield f"<div class=sides><span>old</span><code>{escape(comparison.old.name)}</code>"
    yield f"<span>new</span><code>{escape(comparison.new.name)}</code></div><ul class=counts>"
    for meaning in ORDER:
        yield f"<li class={_CLASS[meaning]}><b>{comparison.counts[meaning]}</b> {escape(meaning.value)}</li>"
    yield "</ul>"
    for meaning in ORDER:
        yield from _section(meaning, comparison.of(meaning))
    yield from _notes(comparison)
    yield "</body></html>\n"


def _section(meaning: Meaning, found: list[Difference]) -> Iterator[str]:
    if not found:
        return
    is_open = " open" if meaning in (Meaning.REGRESSION, Meaning.INTENDED) else ""
    heading = f"{escape(meaning.value)} ({len(found)})"
    yield f"<details class={_CLASS[meaning]}{is_open}><summary><span>■</span> {heading}</summary>"
    for difference in found:
        yield f"<article><h3>{escape(place_of(difference))}</h3>"
        yield f"<p class=soft>{escape(visible(difference.because))}</p>"
        yield f"<div class=pair><pre class=old>{_value(difference.old)}</pre>"
        yield f"<pre class=new>{_value(difference.new)}</pre></div></article>"
    yield "</details>"


def _value(value: object) -> str:
    text = show(value)
    cut = len(text) - MAX_VALUE
    if cut > 0:
        text = f"{text[:MAX_VALUE]}\n({cut} more characters)"
    return escape(visible(text, keeps="\n\t"))


def _notes(comparison: Comparison) -> Iterator[str]:
    for name, case_ids in (("old", comparison.only_old), ("new", comparison.only_new)):
        if case_ids:
            yield f"<p class=soft>Not compared, only the {name} side has them: {escape(', '.join(case_ids))}</p>"
    for change in comparison.unseen:
        yield f"<p class=soft>Declared and not seen: {escape(change.case)} ({escape(visible(change.reason))})</p>"
