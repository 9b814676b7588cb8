"""Why a URL is in a crawl as it is: where it was found, what became of it and by which rule; for a URL that was never
seen, which rule would decide about it.

From: a view with the head of sitemap.json (crawlr.export.open_crawl), and a URL as a person writes it. To: cli, as
one JSON object, and why_lines. Main thread; asks no server anything.

What a file of a crawl cannot say is not guessed: it holds no filter and no key of a Python caller, and what robots.txt
says to the crawl's agent of a hundred origins at most.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, to_builtins

from crawlr import option_values
from crawlr import scope as scope_rules
from crawlr.errors import OptionsError
from crawlr.fetch import robots
from crawlr.known import Flag
from crawlr.lookup import Lookup, Row
from crawlr.parse import urls
from crawlr.parse.links import KINDS
from crawlr.records import SkipReason, UnvisitedReason
from crawlr.scope import Scope
from crawlr.view import CrawlView

__all__ = ["Answer", "Referring", "Step", "Verdict", "document", "explain", "plural"]


class Verdict(Struct, frozen=True, kw_only=True):
    """The rule that decides, by a name, and what it says, as the rest of a sentence about the URL."""

    rule: str
    says: str


class Step(Struct, frozen=True, kw_only=True):
    """One URL on a way. `by`: seed, sitemap, link or redirect."""

    url: str
    by: str
    depth: int | None = None
    status: int | None = None
    outcome: str | None = None


class Referring(Struct, frozen=True, kw_only=True):
    """A page that leads to the URL. `kind`, `nofollow` and `text` are None where the crawl did not keep them."""

    url: str
    by: str
    """link or redirect"""
    kind: str | None = None
    nofollow: bool | None = None
    text: str | None = None


class Answer(Struct, frozen=True, kw_only=True):
    """All that is known. The fields of a page are None for what is none."""

    url: str
    """As it was asked about, by the URL standard."""
    state: str
    """page, skipped, unvisited, external (known, out of scope) or unknown (never seen)."""
    listed_as: str | None = None
    """The spelling that the crawl lists; None when it was never seen."""
    merged_because: tuple[str, ...] = ()
    """Why `url` and `listed_as` are one page, when they differ."""
    verdict: Verdict | None = None
    """None for a page: no rule kept it from being requested."""
    depth: int | None = None
    status: int | None = None
    outcome: str | None = None
    error: str | None = None
    links: int | None = None
    millis: int | None = None
    title: str | None = None
    canonical: str | None = None
    robots: tuple[str, ...] = ()
    external_class: str | None = None
    """What --check-external found of a URL out of scope; None: it did not ask."""
    tries: int = 0
    way: tuple[Step, ...] = ()
    """From a seed or sitemap URL to this one, both included."""
    redirects: tuple[Step, ...] = ()
    """From this URL, included, to where its redirects end; empty when it does not redirect."""
    referrers: tuple[Referring, ...] = ()


def explain(view: CrawlView, head: Mapping[str, object], given: str) -> Answer:
    """The answer about the URL that `given` means: with a scheme, without one, or a path on the first seed's host.

    OptionsError when it is no address of an http or https page.
    """
    return _Explanation(view, head).of(given)


def document(answer: Answer) -> dict[str, object]:
    """The answer as plain values, for JSON."""
    found: dict[str, object] = to_builtins(answer)
    found["robots"], found["merged_because"] = list(answer.robots), list(answer.merged_because)
    return found


class _Explanation:
    def __init__(self, view: CrawlView, head: Mapping[str, object]) -> None:
        self._view = view
        options = head.get("options")
        self._options: Mapping[str, object] = options if isinstance(options, dict) else {}
        self._stop_reason = str(head.get("stop_reason"))
        robots_txt = head.get("robots_txt")
        self._robots: Mapping[str, object] = robots_txt if isinstance(robots_txt, dict) else {}
        keep_params = self._options.get("keep_params") is True
        self._ignored = self._texts("ignore_param")
        self._lookup = Lookup(view, urls.make_identity(keep_params=keep_params, ignore=self._ignored))
        seeds = head.get("seeds")
        resolved = (
            [urls.resolve(each, each) for each in seeds if isinstance(each, str)] if isinstance(seeds, list) else []
        )
        self._seeds = [urls.without_userinfo(url) for url in resolved if url is not None]

    def of(self, given: str) -> Answer:
        spellings = self._read(given)
        url, row = spellings[0], None
        for spelling in spellings:
            row = self._lookup.find(spelling)
            if row is not None:
                url = spelling
                break
        if row is None:
            return Answer(url=url, state="unknown", verdict=self._rule_for(url))
        return self._known(url, row)

    def _read(self, given: str) -> list[str]:
        """What is meant, by the URL standard; without a scheme it may be either, the likelier first."""
        text = given.strip()
        if text.startswith("/") and not text.startswith("//") and self._seeds:
            text = urls.resolve(self._seeds[0], text) or text  # as page lines show it
        try:
            typed = option_values.seed(text)
        except ValueError as error:
            raise OptionsError(
                f"why: {given!r} is not accepted{f' ({error})' if str(error) else ''}; accepted: the address of an"
                " http or https page, or a path on the first seed's host"
            ) from error
        candidates = [typed]
        if typed != text:  # it had no scheme
            candidates.append(re.sub(r"^https?", "http" if typed.startswith("https") else "https", typed))
        found = [urls.resolve(each, each) for each in candidates]
        spellings = [urls.without_userinfo(each) for each in found if each is not None]
        if not spellings:
            raise OptionsError(f"why: {given!r} is not an address of an http or https page")
        return spellings

    # ------------------------------------------------------------------ seen

    def _known(self, url: str, row: Row) -> Answer:
        if row.is_page:
            state, verdict = "page", None
        elif not row.in_scope:
            state, verdict = "external", self._outside(row.url)
        else:
            state, verdict = self._unasked(row)
        path, end = self._lookup.redirects_of(row)
        redirects = [_step(each, "redirect") for each in path]
        if end is not None:
            redirects.append(Step(url=end, by="redirect"))
        if redirects:
            redirects.insert(0, _step(row, "link"))
        checked = self._lookup.external(row.id)
        names = _kind_names()
        referrers = []
        for each in self._lookup.referrers(row.id):
            kind, nofollow = (None, None) if each.kind is None else names[each.kind]
            by = "redirect" if each.is_redirect else "link"
            referrers.append(
                Referring(url=self._lookup.row(each.id).url, by=by, kind=kind, nofollow=nofollow, text=each.text)
            )
        return Answer(
            url=url,
            state=state,
            listed_as=row.url,
            merged_because=tuple(self._why_one(url, row.url)),
            verdict=verdict,
            depth=row.depth if row.in_scope else None,
            status=row.status if checked is None else checked[0],
            outcome=row.outcome if checked is None else checked[1],
            error=checked[3] if checked is not None else row.error if row.is_page else row.skip_error,
            external_class=None if checked is None else checked[2],
            links=row.links,
            millis=row.millis,
            title=row.title,
            canonical=row.canonical,
            robots=tuple((row.robots or "").split()),
            tries=row.attempts or row.tries or 0,
            way=tuple(self._way(row)),
            redirects=tuple(redirects),
            referrers=tuple(referrers),
        )

    def _way(self, row: Row) -> Iterator[Step]:
        way = self._lookup.way_to(row)
        if not row.in_scope and row.parent is None:  # sitemap.json lists it without a place
            first = min(self._lookup.referrers(row.id), key=lambda each: self._lookup.row(each.id).depth, default=None)
            if first is not None:
                before = self._lookup.row(first.id)
                yield from self._way(before)
                yield Step(url=row.url, by="redirect" if first.is_redirect else "link")
                return
        for place, each in enumerate(way):
            if place:
                by = "link" if each.depth > way[place - 1].depth else "redirect"
            else:
                is_seed = each.flags & Flag.SEED or self._is_seed(each.url)
                by = "seed" if is_seed else "sitemap"
            yield _step(each, by)

    def _is_seed(self, url: str) -> bool:
        identity = self._lookup.identity
        return identity(url) in {identity(seed) for seed in self._seeds}

    def _why_one(self, url: str, listed: str) -> Iterator[str]:
        """Why two spellings are one page."""
        if url == listed:
            return
        differing = _Parameters(self._lookup.identity)
        dropped = [*differing.dropped(url), *(name for name in differing.dropped(listed))]
        ours = [name for name in dict.fromkeys(dropped) if name in self._ignored]
        tracking = [name for name in dict.fromkeys(dropped) if name not in self._ignored]
        if tracking:
            yield f"tracking parameters do not tell pages apart: {', '.join(tracking)}"
        if ours:
            yield f"--ignore-param: {', '.join(ours)}"
        if differing.rest(url) != differing.rest(listed):
            standard = urls.make_identity(keep_params=True, ignore=())
            if standard(differing.rest(url)) == standard(differing.rest(listed)):
                yield "percent-encoding is spelled in several ways (RFC 3986 §6.2.2)"
            else:
                yield "a rule of the program that ran the crawl says so (canonicalise=)"

    # ------------------------------------------------------------------ known, and not requested

    def _unasked(self, row: Row) -> tuple[str, Verdict]:
        for skipped in self._view.skipped():
            if skipped.id == row.id:
                return "skipped", Verdict(rule=skipped.reason, says=self._skipped_because(row, skipped.reason))
        for unvisited in self._view.unvisited():
            if unvisited.id == row.id:
                return "unvisited", Verdict(rule=unvisited.reason, says=self._left_because(row, unvisited.reason))
        raise AssertionError(f"{row.url} is in no list")

    def _skipped_because(self, row: Row, reason: SkipReason) -> str:
        host = scope_rules.host_key(scope_rules.origin_of(row.url))
        why = f" ({row.skip_error})" if row.skip_error else ""
        match reason:
            case SkipReason.ROBOTS_DISALLOWED:
                return self._robots_refuse(host, why)
            case SkipReason.ROBOTS_UNREACHABLE:
                return f"robots.txt of {host} could not be had, so nothing is requested there{why}"
            case SkipReason.NOFOLLOW:
                how = self._options.get("nofollow") or "page"
                return f"only links that may not be followed lead to it (--nofollow {how})"
            case SkipReason.BLOCKED_ADDRESS:
                return f"the address of {host} may not be connected to{why}"
        trapped = "only pages of a trap (one body under many addresses, or an endless chain) lead to it"
        return scope_rules.rule_against(row.url) or trapped

    def _robots_refuse(self, host: str, why: str) -> str:
        return f"robots.txt of {host} does not allow {self._agent()} to request it{why}"

    def _left_because(self, row: Row, reason: UnvisitedReason) -> str:
        match reason:
            case UnvisitedReason.DEPTH_LIMIT:
                return f"it is {plural(row.depth, 'link')} away, and --depth is {self._options.get('depth')}"
            case UnvisitedReason.PAGE_BUDGET:
                return f"--max-pages{self._value('max_pages')} was reached before its turn came"
            case UnvisitedReason.TIME_BUDGET:
                return f"--max-time{self._value('max_time')} was over before its turn came"
        return "the crawl was ended before its turn came"

    # ------------------------------------------------------------------ never seen

    def _rule_for(self, url: str) -> Verdict:
        """What would be decided about a URL when a link led there, by the first rule that speaks (as in the ledger)."""
        outside = None if self._is_seed(url) else self._outside(url)
        if outside is not None and outside.rule != "unknown":
            return outside
        if scope_rules.is_too_long(url) or scope_rules.is_trap(url):
            rule = SkipReason.URL_TOO_LONG if scope_rules.is_too_long(url) else SkipReason.TRAP
            return Verdict(rule=rule, says=scope_rules.rule_against(url) or "")
        origin = scope_rules.origin_of(url)
        trouble = self._lookup.origin_trouble(origin)
        if trouble is not None:
            reason, error = trouble
            why = f": {error}" if error else ""
            return Verdict(rule=reason, says=f"nothing was requested of {scope_rules.host_key(origin)}{why}")
        rules = self._robots.get(origin)
        refusal = robots.parse(rules.encode()).refusal(url, self._agent()) if isinstance(rules, str) else None
        if refusal is not None:
            says = self._robots_refuse(scope_rules.host_key(origin), f" ({refusal})")
            return Verdict(rule=SkipReason.ROBOTS_DISALLOWED, says=says)
        says = "no rule keeps it out: no page that was read links or redirects to it"
        if self._stop_reason != "finished":
            says += f", and the crawl did not finish ({self._stop_reason.replace('_', ' ')})"
        else:
            limit = self._options.get("depth")
            if limit is not None:
                says += f", and nothing farther than {plural(limit, 'link')} away was read (--depth)"
        if self._options.get("sitemaps") is not True:
            says += "; sitemaps were not asked (--sitemaps)"
        if self._obeys_robots() and rules is None:
            says += f"; whether robots.txt allows it to {self._agent()} is not kept"
        return Verdict(rule="not_linked", says=says)

    def _outside(self, url: str) -> Verdict:
        """Which rule puts it out of scope; "unknown" when none that the file tells of."""
        kind = str(self._options.get("scope") or "host")
        include, exclude = self._texts("include"), self._texts("exclude")
        try:
            scope = Scope(kind, include=include, exclude=exclude)
            place = self._join_seeds(scope)
            if not scope.has_place(url):
                host = scope_rules.host_key(scope_rules.origin_of(url))
                where = f"the folder of {host}" if scope.has_host(url) else host
                return Verdict(rule="scope", says=f"{where} is out of scope (--scope {kind}: {place})")
            for pattern in exclude:
                if re.search(pattern, url):
                    return Verdict(rule="exclude", says=f"--exclude {pattern!r} matches it")
            if include and not any(re.search(pattern, url) for pattern in include):
                return Verdict(rule="include", says=f"no --include matches it: {', '.join(map(repr, include))}")
        except re.error as error:
            raise OptionsError(f"why: a pattern of the crawl cannot be used: {error}") from error
        return Verdict(rule="unknown", says="a filter of the program that ran the crawl refuses it")

    def _join_seeds(self, scope: Scope) -> str:
        """Put the seeds into the scope, and where they moved to, as the crawl did; says which hosts these are."""
        hosts: dict[str, None] = {}
        for seed in self._seeds:
            scope.join(seed)
            hosts[scope_rules.host_key(scope_rules.origin_of(seed))] = None
        for seed in self._seeds:
            row = self._lookup.find(seed)
            if row is None or row.redirect_to is None:
                continue
            path, _ = self._lookup.redirects_of(row)
            end = path[-1]
            if end.is_page and end.redirect_url is None and not scope.has_place(end.url):
                scope.join(end.url)
                hosts[scope_rules.host_key(scope_rules.origin_of(end.url))] = None
        names = list(hosts)
        more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""
        return ", ".join(names[:3]) + more

    # ------------------------------------------------------------------ options of the crawl

    def _texts(self, name: str) -> tuple[str, ...]:
        found = self._options.get(name)
        return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()

    def _value(self, name: str) -> str:
        found = self._options.get(name)
        return "" if found is None else f" {found:g}" if isinstance(found, (int, float)) else f" {found}"

    def _agent(self) -> str:
        return re.split(r"[/\s]", str(self._options.get("user_agent") or "crawlr"), maxsplit=1)[0]

    def _obeys_robots(self) -> bool:
        return self._options.get("robots", True) is not False and self._options.get("no_robots") is not True


class _Parameters:
    """Which parts of a query an identity leaves out."""

    def __init__(self, identity: Callable[[str], str]) -> None:
        self._identity = identity

    def dropped(self, url: str) -> list[str]:
        return [part.partition("=")[0] for part in url.partition("?")[2].split("&") if part and self._drops(url, part)]

    def rest(self, url: str) -> str:
        """The URL without them."""
        address, mark, query = url.partition("?")
        kept = "&".join(part for part in query.split("&") if not self._drops(url, part))
        return f"{address}?{kept}" if kept or (mark and not query) else address

    def _drops(self, url: str, part: str) -> bool:
        address = url.partition("?")[0]
        return bool(part) and self._identity(f"{address}?{part}") == self._identity(address)


def _step(row: Row, by: str) -> Step:
    return Step(url=row.url, by=by, depth=row.depth if row.in_scope else None, status=row.status, outcome=row.outcome)


def _kind_names() -> list[tuple[str, bool]]:
    """(kind, nofollow) by the byte that the journal keeps of a link."""
    return [(KINDS[byte >> 1] if byte >> 1 < len(KINDS) else "", not byte & 1) for byte in range(64)]


def plural(count: object, one: str) -> str:
    """The number with its noun: "1 link", "2 links"."""
    return f"{count:,} {one}{'' if count == 1 else 's'}" if isinstance(count, int) else f"{count} {one}s"
