"""What a robots.txt allows: groups, agents and delays by RFC 9309, the matching of paths by Protego.

From: the body of robots.txt, after content coding (fetch.pool). To: the coordinator, which asks once per URL.
`parse` runs in the fetch thread; the rules are read in the main thread. Pure, never raises, linear in the body.

Protego matches paths best of what there is, but reads groups by its own rules. So the lines are read here, and Protego
gets the rules of the one group that applies, the first time an agent asks.
"""

from __future__ import annotations

import codecs
import itertools
import math
import re
from collections.abc import Iterator

from protego import Protego

from crawlr.records import FetchedPage, FetchFailure, Outcome

__all__ = ["MAX_BYTES", "RobotsRules", "outcome", "parse"]

MAX_BYTES = 500 * 1024
"""RFC 9309 §2.5: "at least 500 kibibytes"; what is behind is not read."""
_MAX_LINE = 16_664
"""A longer line is cut, as by Google's parser: eight times the longest URL that browsers took (2,083)."""
_MAX_PLAIN = 10_000
_MAX_WILDCARDS = 2_000
"""Rules of one agent that are used, without and with an asterisk. Those with one are tried one by one for each URL, in
the main thread: 3 ms a URL at the limit."""

_MAX_SHOWN = 200
"""Characters of a rule that are quoted."""

_ALLOW, _DISALLOW, _AGENT, _DELAY, _SITEMAP = range(5)
_FIELDS = {
    "allow": _ALLOW,
    "disallow": _DISALLOW,
    # Spellings seen in the wild, as in Protego and in Google's parser
    "dissallow": _DISALLOW,
    "dissalow": _DISALLOW,
    "disalow": _DISALLOW,
    "diasllow": _DISALLOW,
    "disallaw": _DISALLOW,
    "user-agent": _AGENT,
    "useragent": _AGENT,
    "user agent": _AGENT,
    "crawl-delay": _DELAY,
    "crawl delay": _DELAY,
    "crawldelay": _DELAY,
    "sitemap": _SITEMAP,
    "sitemaps": _SITEMAP,
    "site-map": _SITEMAP,
}
_Rules = list[tuple[bool, str, str]]
"""True for Allow, the pattern, and what was written."""
_LINE_END = re.compile(r"\r\n|\n|\r")
_TOKEN = re.compile(r"[^\s/;,(*]+")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")
_BARE_URL = re.compile(r"https?://\S+", re.IGNORECASE)
_HIGH_ESCAPES = re.compile(r"(?:%[89A-Fa-f][0-9A-Fa-f])+")
_UNSAFE = re.compile(rb"[^\x21-\x7e]")


class RobotsRules:
    """The rules of one robots.txt. Made by `parse`, read by the coordinator (one thread)."""

    __slots__ = ("_delays", "_groups", "_matchers", "_refusals", "sitemaps")

    def __init__(self, *, groups: dict[str, list[_Rules]], delays: dict[str, float], sitemaps: tuple[str, ...]) -> None:
        self._groups = groups
        self._delays = delays
        self._matchers: dict[str, Protego | None] = {}
        self._refusals: dict[str, _Refusals] = {}
        self.sitemaps = sitemaps
        """Values of the Sitemap lines as written, in order, each once; a relative one is for the caller to resolve."""

    def allows(self, url: str, agent: str) -> bool:
        """True when the agent may request that absolute URL (RFC 9309 §2.2.2; /robots.txt itself always).

        `agent` is the product token ("crawlr"); of a longer text the part before `/` or a blank counts.
        """
        try:
            matcher = self._matchers[agent]
        except KeyError:
            matcher = self._matchers[agent] = self._matcher(agent)
        if matcher is None:
            return True
        if "%" in url:
            url = _keep_foreign_escapes(url)
        return bool(matcher.can_fetch(url, "*"))

    def refusal(self, url: str, agent: str) -> str | None:
        """The rule by which `allows` says no, as it was written, with the agent of its group: "Disallow: /private for
        *". None when it says yes. RFC 9309 §2.2.2: of all rules that match it is the longest.
        """
        if self.allows(url, agent):
            return None
        group = self._group_of(agent)
        refusals = self._refusals.get(group)
        if refusals is None:
            refusals = self._refusals[group] = _Refusals(self._rules_of(group))
        return f"Disallow: {refusals.rule(url)} for {group}"

    def crawl_delay(self, agent: str) -> float | None:
        """Seconds of the Crawl-delay in the agent's group; None when there is none or it is no number."""
        return self._delays.get(self._group_of(agent))

    def group(self, agent: str) -> str:
        """The rules for the agent as a robots.txt of their own; "" when there are none."""
        name = self._group_of(agent)
        lines = [f"User-agent: {name}"]
        lines += [
            f"{'Allow' if is_allowed else 'Disallow'}: {written}" for is_allowed, _, written in self._rules_of(name)
        ]
        return "\n".join(lines) if len(lines) > 1 else ""

    def count(self, agent: str) -> int:
        """How many rules are for the agent, those that allow included."""
        return len(self._rules_of(self._group_of(agent)))

    def _group_of(self, agent: str) -> str:
        token = _token(agent)
        return token if token in self._groups else "*"

    def _matcher(self, agent: str) -> Protego | None:
        """Protego over the rules of the agent's group; None when nothing is disallowed."""
        rules = self._rules_of(self._group_of(agent))
        return None if all(is_allowed for is_allowed, _, _ in rules) else _protego(rules)

    def _rules_of(self, group: str) -> _Rules:
        rules = list(itertools.chain.from_iterable(self._groups.get(group, [])))
        if len(rules) > _MAX_WILDCARDS:
            wild = [rule for rule in rules if "*" in rule[1]]
            plain = [rule for rule in rules if "*" not in rule[1]]
            rules = plain[:_MAX_PLAIN] + wild[:_MAX_WILDCARDS]  # their order means nothing: the longest wins
        return rules


class _Refusals:
    """Finds the rule that refuses a URL. Protego says only whether one does, so it is asked about some rules at a time,
    the longest first, and then about each of these: that costs nothing for URLs that are allowed.
    """

    __slots__ = ("_matchers", "_rules")

    _SOME = 64

    def __init__(self, rules: _Rules) -> None:
        self._rules = sorted((rule for rule in rules if not rule[0]), key=lambda rule: -len(rule[1]))
        self._matchers: dict[tuple[int, int], Protego] = {}  # by the slice of the rules

    def rule(self, url: str) -> str:
        """The longest pattern that matches, as it was written. One does."""
        if "%" in url:
            url = _keep_foreign_escapes(url)
        begin, end = self._first(url, 0, len(self._rules), self._SOME)
        found, _ = self._first(url, begin, end, 1)
        return _shown(self._rules[found][2])

    def _first(self, url: str, begin: int, end: int, step: int) -> tuple[int, int]:
        """The first slice of so many rules of which one matches."""
        for first in range(begin, end, step):
            after = min(first + step, end)
            matcher = self._matchers.get((first, after))
            if matcher is None:
                matcher = self._matchers[first, after] = _protego(self._rules[first:after])
            if not matcher.can_fetch(url, "*"):
                return first, after
        raise AssertionError(f"no rule refuses {url}")


def _protego(rules: _Rules) -> Protego:
    lines = [f"{'Allow' if is_allowed else 'Disallow'}: {pattern}" for is_allowed, pattern, _ in rules]
    return Protego.parse("\n".join(["User-agent: *", *lines]))


def _shown(value: str) -> str:
    """A pattern for a person: not endless, and without the surrogates that stand for bytes that are no UTF-8."""
    if len(value) > _MAX_SHOWN:
        value = value[: _MAX_SHOWN - 1] + "…"
    return value if value.isascii() else value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def parse(body: bytes) -> RobotsRules:
    """The rules in a robots.txt, whatever the bytes are: HTML and rubbish give no rules. Never raises.

    RFC 9309 §2.2: groups of one agent are merged; a version behind the agent's name does not count; the whole
    name must match, in any case; unknown lines do not end a group. A Crawl-delay holds for the agents named before it.
    """
    groups: dict[str, list[_Rules]] = {}
    delays: dict[str, float] = {}
    sitemaps: dict[str, None] = {}
    rules: _Rules = []  # of this group; shared by its agents, so that many agents with many rules cost their sum
    agents: set[str] = set()  # of this group
    undelayed: set[str] = set()  # those of them named since its last Crawl-delay
    has_rules = False  # an agent line after a rule begins a new group
    for field, value in _lines(_text(body)):
        if field == _AGENT:
            if has_rules:
                rules, agents, undelayed, has_rules = [], set(), set(), False
            token = _token(value)
            if token and token not in agents:
                groups.setdefault(token, []).append(rules)
                agents.add(token)
                undelayed.add(token)
        elif field == _SITEMAP:
            if value:
                sitemaps[value] = None
        elif field == _DELAY:
            delay = _seconds(value)
            if delay is not None:
                for token in undelayed:
                    delays.setdefault(token, delay)
                undelayed = set()
        else:
            has_rules = True
            if value and agents:  # an empty Disallow forbids nothing; a rule before any agent is for nobody
                rules.append((field == _ALLOW, _pattern(value), value))
    return RobotsRules(groups=groups, delays=delays, sitemaps=tuple(sitemaps))


def outcome(result: FetchedPage | FetchFailure, rules: RobotsRules | None, agent: str) -> str:
    """What came of asking for a robots.txt, for a person. `rules`: None when there are none."""
    if isinstance(result, FetchFailure):
        return f"not had: {result.error or result.outcome}"
    if result.status >= 500 or result.status == 429:
        return f"not had: status {result.status}"
    if not 200 <= result.status < 300:
        return f"none (status {result.status})"
    if result.fault not in (None, Outcome.TOO_LARGE):
        return f"not had: {result.error or result.fault}"
    count = 0 if rules is None else rules.count(agent)
    words = "no rule applies" if not count else "1 rule applies" if count == 1 else f"{count:,} rules apply"
    return f"read, {words} to {agent}"


def _text(body: bytes) -> str:
    """The file as text, without byte order mark; bytes that are no UTF-8 stay as lone surrogates."""
    if len(body) > MAX_BYTES:
        body = body[:MAX_BYTES]
        # Half a line would be another rule ("Disallow: /" of "Disallow: /private").
        body = body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return body.decode("utf-16", "replace")
    # A whole or a broken mark: Google's parser takes its first bytes alone, too.
    for mark in (codecs.BOM_UTF8, codecs.BOM_UTF8[:2], codecs.BOM_UTF8[:1]):
        if body.startswith(mark):
            body = body[len(mark) :]
            break
    return body.decode("utf-8", "surrogateescape")


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Field and value of each line that has a known field; the value has no comment and no blanks around it."""
    for raw in _LINE_END.split(text):
        line = raw[:_MAX_LINE].partition("#")[0].replace("\0", "").strip()
        if not line:
            continue
        name, colon, value = line.partition(":")
        field = _FIELDS.get(name.strip().lower()) if colon else None
        if field is not None:
            yield field, value.strip()
            continue
        if _BARE_URL.fullmatch(line) and "sitemap" in line.lower():
            yield _SITEMAP, line  # a Sitemap line whose author forgot the field
            continue
        # "Disallow /path", "User agent foo": Google's parser takes a blank for the colon.
        words = line.split(None, 2)
        for count in (1, 2):
            field = _FIELDS.get(" ".join(words[:count]).lower())
            if field is not None:
                yield field, " ".join(words[count:])
                break


def _token(agent: str) -> str:
    """The product token of an agent's name: lower case, without version, asterisk and what comes after a blank."""
    agent = agent.strip()
    if agent.startswith("*"):
        # "*" alone is everybody; "*bot" is a name with a wildcard that the standard does not know.
        rest = agent.lstrip("*")
        if not rest or rest[0].isspace():
            return "*"
        agent = rest
    match = _TOKEN.match(agent)
    return match[0].lower() if match else ""


def _seconds(value: str) -> float | None:
    """A delay, or None: negative, infinite and broken ones say nothing."""
    match = _NUMBER.match(value)
    if match is None or value[match.end() :].strip().lower() not in ("", "s", "sec", "second", "seconds"):
        return None
    delay = float(match[0])
    return delay if math.isfinite(delay) else None


def _pattern(value: str) -> str:
    """A path pattern in ASCII: RFC 9309 §2.2.2 compares bytes outside ASCII by their percent-encoding."""
    if not value.isascii() or not value.isprintable() or " " in value:
        encoded = value.encode("utf-8", "surrogateescape")
        value = _UNSAFE.sub(lambda m: b"%%%02X" % m[0][0], encoded).decode("ascii")
    return _keep_foreign_escapes(value) if "%" in value else value


def _keep_foreign_escapes(text: str) -> str:
    """The same text with escapes that are no UTF-8 escaped once more: Protego would make all of them one character."""

    def keep(match: re.Match[str]) -> str:
        escapes = match[0]
        try:
            bytes.fromhex(escapes.replace("%", "")).decode("utf-8")
        except UnicodeDecodeError:
            return escapes.upper().replace("%", "%25")
        return escapes

    return _HIGH_ESCAPES.sub(keep, text)
