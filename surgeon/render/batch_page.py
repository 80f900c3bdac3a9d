"""A batch as one HTML page: sortable, filtered by outcome, without a request to anywhere.

Everything that comes from a model is escaped, and the page's own policy lets no script run but
the one whose hash it names.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections import Counter
from collections.abc import Sequence

from surgeon.batch import OUTCOMES, Row, grouped
from surgeon.render import words

_STYLE = """
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem; color: #1c1e21; background: #fff; }
h1 { font-size: 1.4rem; margin: 0 0 .3rem; } h2 { font-size: 1.1rem; margin: 1.6rem 0 .5rem; }
p { margin: .3rem 0; color: #57606a; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; }
th, td { border-bottom: 1px solid #e3e6ea; overflow-wrap: anywhere; }
#files th { cursor: pointer; position: sticky; top: 0; background: #f5f7f9; white-space: nowrap; }
th[aria-sort=ascending]::after { content: " \\25B2"; }
th[aria-sort=descending]::after { content: " \\25BC"; }
td.number, th.number { text-align: right; white-space: nowrap; }
td.quiet { color: #57606a; } .mend { color: #0b5394; }
.outcome { border-radius: 3px; padding: .05rem .4rem; background: #fde8d0; white-space: nowrap; }
.repaired { background: #d5f0dc; } .unchanged { background: #e8eaed; }
.broken, .crashed, .failed { background: #f9d6d5; }
.text { max-height: 7.5em; overflow-y: auto; }
#files { table-layout: fixed; min-width: 70rem; }
button { font: inherit; margin: 0 .3rem .3rem 0; padding: .2rem .6rem; cursor: pointer;
  border: 1px solid #c8cdd3; border-radius: 4px; background: #fff; }
button[aria-pressed=true] { background: #1c1e21; color: #fff; }
"""
_SCRIPT = """
const body = document.querySelector('#files tbody');
const buttons = [...document.querySelectorAll('button')];
for (const button of buttons) button.addEventListener('click', () => {
  for (const each of buttons) each.setAttribute('aria-pressed', String(each === button));
  const wanted = button.dataset.outcome;
  for (const row of body.rows) row.hidden = wanted !== '' && row.dataset.outcome !== wanted;
});
const heads = [...document.querySelectorAll('#files th')];
heads.forEach((head, column) => head.addEventListener('click', () => {
  const down = head.getAttribute('aria-sort') === 'ascending';
  for (const each of heads) each.removeAttribute('aria-sort');
  head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
  const value = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
  const numbers = head.classList.contains('number');
  const order = numbers
    ? (a, b) => Number(value(a)) - Number(value(b))
    : (a, b) => value(a).localeCompare(value(b));
  const rows = [...body.rows].sort(down ? (a, b) => order(b, a) : order);
  body.append(...rows);
}));
"""
_COLUMNS = (  # name, whether it holds numbers, share of the width in percent
    *(("file", False, 23), ("outcome", False, 8), ("nodes", True, 5), ("after", True, 5)),
    *(("rules", False, 13), ("checked", False, 16), ("size", True, 6), ("seconds", True, 6)),
    ("reason", False, 18),
)


def batch_page(rows: Sequence[Row], *, title: str) -> str:
    """The page.

    Args:
        rows: One a file.
        title: What the batch was, in a line.
    """
    counts = Counter(row.outcome for row in rows)
    policy = f"default-src 'none'; script-src {_digest(_SCRIPT)}; style-src {_digest(_STYLE)}"
    heads = "".join(
        f'<th scope="col"{" class=number" if number else ""}>{name}</th>'
        for name, number, _ in _COLUMNS
    )
    widths = "".join(f'<col width="{width}%">' for *_, width in _COLUMNS)
    ordered = sorted(rows, key=lambda row: row.name)
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            f"<title>surgeon batch</title><style>{_STYLE}</style></head><body>",
            f"<h1>surgeon batch</h1><p>{_safe(title)}</p>",
            f"<p>{words.count(len(rows), 'file')}</p>",
            _reasons(rows),
            f"<h2>Files</h2><div>{_buttons(counts, len(rows))}</div>",
            f'<table id="files"><colgroup>{widths}</colgroup>',
            f"<thead><tr>{heads}</tr></thead><tbody>",
            *map(_row, ordered),
            f"</tbody></table><script>{_SCRIPT}</script></body></html>\n",
        ]
    )


def _safe(text: object) -> str:
    """Text of a stranger: visible, of bounded length, and escaped."""
    return html.escape(words.clean(text), quote=True)


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _buttons(counts: Counter[str], total: int) -> str:
    buttons = [f'<button data-outcome="" aria-pressed="true">all {total:,}</button>']
    buttons.extend(
        f'<button data-outcome="{outcome}" aria-pressed="false" title="{meaning}">'
        f"{outcome} {counts[outcome]:,}</button>"
        for outcome, meaning in OUTCOMES.items()
        if counts[outcome]
    )
    return "".join(buttons)


def _reasons(rows: Sequence[Row]) -> str:
    groups = grouped(rows)
    if not groups:
        return ""
    lines = "".join(
        f"<tr><td class=number>{words.count(len(same), 'file')}</td><td>{_badge(outcome)}</td>"
        f"<td>{_text(reason, same[0].mend)}</td></tr>"
        for outcome, reason, same in groups
    )
    return f"<h2>Reasons</h2><table><tbody>{lines}</tbody></table>"


def _text(text: object, mend: str = "") -> str:
    """Text of any length: what is too long for its place is scrolled there."""
    more = f"<div class=mend>{_safe(mend)}</div>" if mend else ""
    return f"<div class=text>{_safe(text)}{more}</div>"


def _badge(outcome: str) -> str:
    safe = html.escape(outcome, quote=True)
    return f'<span class="outcome {safe}">{safe}</span>'


def _row(row: Row) -> str:
    before, after = row.nodes if row.nodes is not None else (None, None)
    rules = ", ".join(f"{times:,} x {name}" for name, times in row.rules.items())
    checked = ": ".join(row.verdict) if row.verdict is not None else ""
    if row.same_as is not None:
        checked = f"the same as {row.same_as}; {checked}" if checked else f"as {row.same_as}"
    cells = (
        f"<td>{_text(row.name)}</td>",
        f"<td>{_badge(row.outcome)}</td>",
        _number(before),
        _number(after),
        f"<td class=quiet>{_text(rules)}</td>",
        f"<td class=quiet>{_text(checked)}</td>",
        f"<td class=number data-value={row.size}>{words.size(row.size)}</td>",
        f"<td class=number data-value={row.seconds:.4f}>{row.seconds:.2f}</td>",
        f"<td>{_text(row.reason, row.mend)}</td>",
    )
    return f'<tr data-outcome="{html.escape(row.outcome, quote=True)}">{"".join(cells)}</tr>'


def _number(number: int | None) -> str:
    value = -1 if number is None else number
    shown = "" if number is None else f"{number:,}"
    return f"<td class=number data-value={value}>{shown}</td>"
