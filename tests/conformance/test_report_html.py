"""The HTML report: one file, well formed, safe whatever a server sent, readable without JavaScript."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from harness.made_report import (
    HOSTILE,
    KEY,
    delta,
    every_outcome,
    make_case,
    make_exchange,
    make_report,
    make_result,
    stream,
    whole,
)
from tidegate.conformance.ask import Ask
from tidegate.conformance.reports.builder import build_document
from tidegate.conformance.reports.html import SCRIPT, STYLE, render_html
from tidegate.conformance.reports.html_markup import Markup, prose, tag, text
from tidegate.conformance.reports.html_timeline import find_moments, spell_time
from tidegate.conformance.running.run_report import Result, RunReport
from tidegate.conformance.verdict import Fault, Outcome, Verdict
from tidegate.conformance.wire.exchange import Ending

VOID = {"meta", "input"}


class Page(HTMLParser):
    """A page as a browser takes it: elements with their attributes and texts. Fails on what is not closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        assert len(attrs) == len(dict(attrs)), f"{tag} has an attribute twice"
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self._open[-1] if self._open else "", []).append(data)

    def text(self, name: str) -> str:
        return " ".join(self.texts.get(name, ()))

    def values(self, attribute: str) -> list[str]:
        return [value for _, attributes in self.elements if (value := attributes.get(attribute)) is not None]


def page_of(report: RunReport) -> Page:
    return Page(render_html(build_document(report)))


def page_of_one(*results: Result) -> Page:
    return page_of(make_report(*results))


def test_the_page_is_well_formed_and_its_ids_are_unique() -> None:
    page = page_of(every_outcome())
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    targets = [value[1:] for value in page.values("href")]
    assert set(targets) <= set(ids)
    assert {"chat.object", "chat.stream", "chat.stream-t0", "chat.stream-t0-e13"} <= set(ids)


def test_nothing_is_loaded_and_only_its_own_script_and_style_may_run() -> None:
    raw = render_html(build_document(every_outcome()))
    page = Page(raw)
    names = [name for name, _ in page.elements]
    assert names.count("script") == names.count("style") == 1
    assert not {"link", "img", "iframe", "object", "embed", "base"} & set(names)
    assert page.values("src") == []
    assert page.values("style") == []
    assert all(value.startswith("#") for value in page.values("href"))
    assert not [key for _, attributes in page.elements for key in attributes if key.startswith("on")]
    policy = next(value for value in page.values("content") if "default-src" in value)
    for source, content in (("script", SCRIPT), ("style", STYLE)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{source}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert not re.search(r"@import|url\(|</", STYLE)
    assert not re.search(r"fetch|XMLHttp|import\(|innerHTML|eval|</", SCRIPT)


def test_what_a_hostile_server_sent_is_text_and_nothing_of_it_is_hidden() -> None:
    raw = render_html(build_document(every_outcome()))
    assert "alert(1)" in raw
    assert "<script>alert" not in raw
    assert not [character for character in ("\u202e", "\x1b", "\0", "\r", "\ud800") if character in raw]
    assert "<i>\\u202e</i>desrever" in raw
    assert KEY not in raw
    raw.encode("utf-8")


def test_the_verdict_stands_in_a_sentence_and_each_outcome_in_sign_and_word() -> None:
    page = page_of(every_outcome())
    assert page.text("h1") == "1 of 2 cases fails"
    spans = page.text("span")
    assert all(f"{sign}   {word}" in spans or f"{sign} {word}" in spans for sign, word in SIGNED)
    assert page.text("title").startswith("Conformance of tiny at http://server:8000/v1")


SIGNED = (("✓", "pass"), ("✕", "fail"), ("–", "unsupported"), ("?", "inconclusive"))


def test_a_case_shows_why_clause_faults_curl_and_bytes() -> None:
    raw = render_html(build_document(every_outcome()))
    case = raw[raw.index('id="chat.stream"') : raw.index('id="area-tools"')]
    for wanted in ("Clients rely on it.", "Broken clause", "it, event 13", "curl -sSiN", "Request as sent", "word3"):
        assert wanted in case
    assert 'href="#chat.stream-t0-e13"' in case


def test_the_timeline_marks_the_first_token_pauses_the_fault_and_the_end() -> None:
    document = build_document(every_outcome())
    transcript = document.cases[1].transcripts[0]
    moments = find_moments(transcript)
    assert moments.first_byte_s == 0.008
    assert moments.first_token == 1
    assert [(pause.from_s, pause.to_s) for pause in moments.pauses] == [(0.14, 0.6)]
    raw = render_html(document)
    for wanted in ("nothing for 460 ms", "first token</text>", "✕ here</text>", "end</text>"):
        assert wanted in raw


@pytest.mark.parametrize("ending", Ending, ids=lambda ending: ending.name)
def test_every_ending_is_drawn(ending: Ending) -> None:
    exchange = make_exchange([], ending=ending, duration_s=0.0)
    page = page_of_one(make_result(make_case("a.b"), Verdict("a.b", Outcome.FAIL), {"it": [exchange]}))
    assert ending.value in page.text("title")


def test_thousands_of_events_and_megabytes_stay_a_page_of_bounded_size() -> None:
    events = [(0.0001 * number, delta(content="x" * 1000)) for number in range(5000)]
    exchanges = [make_exchange(stream(events), copy=copy) for copy in range(3)]
    verdict = Verdict("a.b", Outcome.FAIL, (Fault("wrong", event=2500, ask="it", copy=1),))
    raw = render_html(build_document(make_report(make_result(make_case("a.b"), verdict, {"it": exchanges}))))
    assert len(raw.encode()) < 2_000_000
    page = Page(raw)
    assert "events are left out here" in page.text("td")
    rects = [
        attributes for name, attributes in page.elements if name == "rect" and "mark" in (attributes["class"] or "")
    ]
    assert len(rects) <= 3 * 251
    assert {value[1:] for value in page.values("href")} <= set(page.values("id"))


def test_bytes_that_are_no_text_are_dumped() -> None:
    exchange = make_exchange([(0.01, b"\x00\xffSSH-2.0\r\n")], ending=Ending.NOT_HTTP)
    page = page_of_one(make_result(make_case("a.b"), Verdict("a.b", Outcome.PASS), {"it": [exchange]}))
    assert "000000  00 ff 53 53 48 2d 32 2e 30 0d 0a" in page.text("pre")
    assert "..SSH-2.0.." in page.text("pre")


def test_a_report_of_nothing_is_a_page() -> None:
    assert page_of(make_report()).text("h1") == "No case was run"


def test_attributes_and_texts_are_escaped_by_construction() -> None:
    assert (
        tag("a", "<b>", Markup("<i></i>"), href='"><x', hidden=False)
        == '<a href="&quot;&gt;&lt;x">&lt;b&gt;<i></i></a>'
    )
    assert text("a\0<") == "a<i>\\u0000</i>&lt;"
    assert prose("says `a<b` so") == "says <code>a&lt;b</code> so"
    assert prose("one ` alone") == "one ` alone"


TIMES = {0.0004: "0.4 ms", 0.0351: "35 ms", 1.254: "1.25 s", 61.0: "61.00 s"}


@pytest.mark.parametrize("seconds", TIMES)
def test_times_are_spelled_as_people_say_them(seconds: float) -> None:
    assert spell_time(seconds) == TIMES[seconds]


def test_whole_answers_draw_their_reads() -> None:
    exchange = make_exchange(whole(b"{}"))
    page = page_of_one(make_result(make_case("a.b"), Verdict("a.b", Outcome.FAIL), {"it": [exchange]}))
    assert "bytes read at 12 ms" in page.text("title")
    assert HOSTILE not in page.text("pre")


def test_all_requests_of_a_case_are_drawn_on_one_axis() -> None:
    asks = (Ask(name="first"), Ask(name="gone", wave=1, copies=2))
    first = make_exchange(whole(b"{}"), ask="first", duration_s=0.1)
    gone = [
        make_exchange(whole(b"{}"), ask="gone", copy=copy, sent_at_s=0.2, duration_s=0.2, ending=Ending.LEFT)
        for copy in range(2)
    ]
    verdict = Verdict("a.b", Outcome.FAIL, (Fault("it is wrong", ask="gone", copy=1),))
    case = make_case("a.b", asks=asks, expects=())
    raw = render_html(build_document(make_report(make_result(case, verdict, {"first": [first], "gone": gone}))))
    picture = raw[raw.index("<figure>") : raw.index("</figure>")]
    for wanted in ("first: 200", "gone, 2 copies: 200", "✕ gone, copy 1: 200", "◁</text>", 'class="wave"', "next wave"):
        assert wanted in picture
    assert picture.count("<rect") == 6
