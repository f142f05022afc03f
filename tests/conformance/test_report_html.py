"""The HTML report: one file, well formed, safe whatever a server sent, readable without JavaScript."""

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
from tidegate.conformance.reports.html import render_html
from tidegate.conformance.reports.html_timeline import find_moments
from tidegate.conformance.reports.page_room import (
    MAX_EXCHANGE_BYTES,
    MAX_EXCHANGES,
    MAX_PAGE_BYTES,
    MAX_PASSED_BYTES,
    MAX_UNTOLD_BYTES,
    MAX_UNTOLD_EXCHANGES,
    MIN_EXCHANGE_BYTES,
)
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
    assert not re.search(r"@import|url\(", page.text("style"))
    assert not re.search(r"fetch|XMLHttp|import\(|innerHTML|eval", page.text("script"))


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
    verdict = Verdict("a.b", Outcome.FAIL, (Fault("wrong", event=4990, ask="it", copy=1),))
    raw = render_html(build_document(make_report(make_result(make_case("a.b"), verdict, {"it": exchanges}))))
    assert len(raw.encode()) < 6 * MAX_EXCHANGE_BYTES
    page = Page(raw)
    assert "events are left out here" in page.text("td")
    assert "a.b-t1-e4990" in page.values("id")
    assert max(drawing.count("M") for drawing in page.values("d")) <= 251
    assert {value[1:] for value in page.values("href")} <= set(page.values("id"))


def failing(number: int, num_copies: int = 1) -> Result:
    """Returns a case that fails, with a long answer in each of its exchanges."""
    name = f"a.case_{number}"
    copies = [make_exchange(whole(b"y" * 40_000), copy=copy) for copy in range(num_copies)]
    return make_result(
        make_case(name), Verdict(name, Outcome.FAIL, (Fault("wrong", ask="it", copy=9),)), {"it": copies}
    )


@pytest.mark.parametrize(
    ("number", "room"), [(1, MAX_EXCHANGE_BYTES), (300, MAX_PAGE_BYTES // 300), (2000, MIN_EXCHANGE_BYTES)]
)
def test_however_much_fails_all_exchanges_share_the_room_of_the_page(number: int, room: int) -> None:
    page = page_of(make_report(*map(failing, range(number))))
    told = page.text("p")
    assert f"exchanges, {room:,} bytes of each" in told
    assert page.text("pre").count("y") <= number * room * 3 // 4
    assert page.text("pre").count("y") >= number * (room // 2 - 300)


def test_the_exchanges_that_faults_name_are_shown_before_others() -> None:
    page = page_of_one(failing(0, num_copies=20))
    shown = [value for value in page.values("id") if value.startswith("a.case_0-t")]
    assert len(shown) == MAX_EXCHANGES
    assert "it, copy 9, status 200" in page.text("summary")
    assert f"{20 - MAX_EXCHANGES} of 20 exchanges are left out" in page.text("p")


@pytest.mark.parametrize("outcome", [Outcome.UNSUPPORTED, Outcome.INCONCLUSIVE], ids=str)
def test_of_a_case_that_told_nothing_little_is_shown(outcome: Outcome) -> None:
    copies = [make_exchange(whole(b"y" * 5000), copy=copy) for copy in range(5)]
    page = page_of_one(make_result(make_case("a.b"), Verdict("a.b", outcome, reason="so"), {"it": copies}))
    assert len([value for value in page.values("id") if value.startswith("a.b-t")]) == MAX_UNTOLD_EXCHANGES
    assert page.text("pre").count("y") <= MAX_UNTOLD_EXCHANGES * MAX_UNTOLD_BYTES * 3 // 4


def test_of_a_case_that_passed_the_beginning_of_one_answer_is_shown() -> None:
    copies = [make_exchange(whole(b"y" * 5000), {"text": "z" * 500}, copy=copy) for copy in range(2)]
    page = page_of_one(make_result(make_case("a.b"), Verdict("a.b", Outcome.PASS), {"it": copies}))
    answer = page.texts["pre"][-2:]
    assert sum(map(len, answer)) <= MAX_PASSED_BYTES
    assert "1 more exchanges" in page.text("p")
    assert "Request as sent" not in page.text("summary")


def test_line_ends_of_a_head_are_marked_only_where_they_are_not_those_of_http() -> None:
    right, wrong = (
        make_exchange([(0.01, b"HTTP/1.1 200 OK" + end + b"A: b" + end * 2 + b"{}\r\n")]) for end in (b"\r\n", b"\n")
    )
    for exchange, shown in ((right, "OK\nA: b\n\n{}<i>\\r</i>\n"), (wrong, "OK<i>\\n</i>\nA: b<i>\\n</i>\n")):
        case = make_result(make_case("a.b"), Verdict("a.b", Outcome.PASS), {"it": [exchange]})
        assert shown in render_html(build_document(make_report(case)))


def test_bytes_that_are_no_text_are_dumped() -> None:
    exchange = make_exchange([(0.01, b"\x00\xffSSH-2.0\r\n")], ending=Ending.NOT_HTTP)
    page = page_of_one(make_result(make_case("a.b"), Verdict("a.b", Outcome.PASS), {"it": [exchange]}))
    assert "000000  00 ff 53 53 48 2d 32 2e 30 0d 0a" in page.text("pre")
    assert "..SSH-2.0.." in page.text("pre")


def test_a_report_of_nothing_is_a_page() -> None:
    assert page_of(make_report()).text("h1") == "No case was run"


def test_whole_answers_draw_their_reads() -> None:
    exchange = make_exchange(whole(b"{}"))
    page = page_of_one(make_result(make_case("a.b"), Verdict("a.b", Outcome.FAIL), {"it": [exchange]}))
    assert [kind for kind in page.values("class") if kind.startswith("mark")] == ["mark read"]
    assert HOSTILE not in page.text("pre")


def test_all_requests_of_a_case_are_drawn_on_one_axis() -> None:
    asks = (Ask(name="first"), Ask(name="gone", wave=1, copies=2))
    first = make_exchange(whole(b"{}"), ask="first", duration_s=0.25)
    gone = [
        make_exchange(whole(b"{}"), ask="gone", copy=copy, sent_at_s=0.2, duration_s=0.2, ending=Ending.LEFT)
        for copy in range(2)
    ]
    verdict = Verdict("a.b", Outcome.FAIL, (Fault("it is wrong", ask="gone", copy=1),))
    case = make_case("a.b", asks=asks, expects=())
    raw = render_html(build_document(make_report(make_result(case, verdict, {"first": [first], "gone": gone}))))
    picture = raw[raw.index("<figure>") : raw.index("</figure>")]
    for wanted in ("first: 200", "gone, 2 copies: 200", "✕ gone, copy 1: 200", "we leave", 'class="wave"'):
        assert wanted in picture
    bars = {kind: drawing.count("M") for drawing, kind in re.findall(r'<path d="([^"]*)" class="([^"]*)"', picture)}
    assert bars == {"wave": 1, "wait": 2, "flow": 2, "wait bad": 1, "flow bad": 1, "left": 2, "axis": bars["axis"]}


def test_exchanges_one_after_the_other_need_no_picture() -> None:
    exchanges = [
        make_exchange(whole(b"{}"), ask=name, sent_at_s=at_s, duration_s=0.1) for name, at_s in (("a", 0.0), ("b", 0.2))
    ]
    case = make_case("a.b", asks=(Ask(name="a"), Ask(name="b", wave=1)), expects=())
    evidence = {exchange.ask: [exchange] for exchange in exchanges}
    raw = render_html(build_document(make_report(make_result(case, Verdict("a.b", Outcome.PASS), evidence))))
    assert "<figure>" not in raw
