"""Markup and pages: escaped by construction, and a policy that allows only what a page was made with."""

import base64
import hashlib
from html import unescape

from tidegate.reporting.markup import Markup, prose, tag, text
from tidegate.reporting.page import facts, header, render_page, table


def test_attributes_and_texts_are_escaped_by_construction() -> None:
    assert (
        tag("a", "<b>", Markup("<i></i>"), href='"><x', hidden=False)
        == '<a href="&quot;&gt;&lt;x">&lt;b&gt;<i></i></a>'
    )
    assert tag("rect", x=1.25, y=3, tabindex="0", viewBox="0 0 1 1") == (
        '<rect x="1.2" y="3" tabindex="0" viewBox="0 0 1 1"></rect>'
    )
    assert text("a\0<") == "a<i>\\u0000</i>&lt;"
    assert prose("says `a<b` so") == "says <code>a&lt;b</code> so"
    assert prose("one ` alone") == "one ` alone"


def test_elements_that_hold_only_text_get_no_element_for_an_escape() -> None:
    for name in ("title", "option", "text"):
        assert tag(name, "a\u202e<") == f"<{name}>a\\u202e&lt;</{name}>"


def test_the_policy_allows_the_style_and_the_script_of_the_page_alone() -> None:
    page = unescape(render_page("A page", header("kind", "Heading"), style=".a{}", script="f();"))
    assert "default-src 'none'; " in page
    for name, end in (("style", ".a{}"), ("script", "f();")):
        content = page.partition(f"<{name}>")[2].partition(f"</{name}>")[0]
        assert content.endswith(end)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in page


def test_what_has_no_value_is_no_fact_and_a_table_has_the_heads_that_it_is_given() -> None:
    assert facts((("Model", "tiny"), ("Seed", ""))) == '<dl class="facts"><div><dt>Model</dt><dd>tiny</dd></div></dl>'
    row = tag("tr", tag("td", "1"))
    assert table(("n", None), [row], class_="t") == (
        '<div class="scroll"><table class="t"><thead><tr><th scope="col">n</th><td></td></tr></thead>'
        "<tbody><tr><td>1</td></tr></tbody></table></div>"
    )
    assert "<thead>" not in table((), [row])
