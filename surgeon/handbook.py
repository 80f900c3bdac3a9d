"""Pages for readers, made of recipes and code: recipes, ATen operators, words of the language.

`surgeon recipes pages docs/` writes them; a test holds what is kept in docs/ against them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from surgeon import answers, language, schemas
from surgeon.cases.reading import Case, read_cases
from surgeon.recipe import Recipe, bundled
from surgeon.recipe.rules import BuilderCall
from surgeon.schemas.aliases import ALIASES

_READ = "<!-- Made from surgeon's code by `surgeon recipes pages docs/`; change that. -->"
_MADE = "<!-- Made from recipes/ by `surgeon recipes pages docs/`; change those. -->"
# Their lists are opened by `prim-list` and `list-element`.
_LISTS = frozenset({"split", "split_with_sizes", "chunk", "unbind"})
_EXACT = {
    "bit": "moves data, or computes the same to the last bit",
    "rounding": "equal in real arithmetic; the two differ by rounding",
    "approximate": "neither; needs `--allow approximate`",
}


def pages() -> dict[str, str]:
    """The text of each page by the name of its file."""
    found = {name: Recipe.load(path) for name, path in sorted(bundled().items())}
    return {
        "recipes.md": _recipes(found),
        "operators.md": _operators(found["aten"]),
        "reference.md": _reference(),
        "json.md": f"{_READ}\n\n{answers.page()}",
    }


def _cases_of(recipe: Recipe) -> tuple[Case, ...]:
    path = Path(recipe.source)
    beside = path.with_name(f"{path.stem}.cases.yaml")
    return (
        read_cases(beside, [rule.id for rule in (*recipe.rules, *recipe.changes)])
        if beside.is_file()
        else ()
    )


def _refusals(recipe: Recipe) -> Mapping[str, list[str]]:
    """What the cases show a rule to refuse, by rule."""
    found: dict[str, list[str]] = {}
    for case in _cases_of(recipe):
        if case.refuses is not None:
            reasons = found.setdefault(case.refuses.rule, [])
            if case.refuses.because not in reasons:
                reasons.append(case.refuses.because)
    return found


def _recipes(found: Mapping[str, Recipe]) -> str:
    lines = [_MADE, "", "# Recipes", ""]
    lines += ["`surgeon apply NAME in.onnx out.onnx`. How exact a rule is:", ""]
    lines += [f"- **{name}**: {meaning}." for name, meaning in _EXACT.items()]
    lines += ["", "| recipe | what it is for |", "|---|---|"]
    lines += [f"| [`{name}`](#{name}) | {_line(recipe.about)} |" for name, recipe in found.items()]
    for name, recipe in found.items():
        file = f"[recipes/{name}.yaml](../recipes/{name}.yaml)"
        lines += ["", f"## {name}", "", f"{_line(recipe.about)} {file}"]
        if recipe.allow:
            lines += ["", f"Allows: {', '.join(sorted(recipe.allow))}."]
        for change in recipe.changes:
            lines += ["", f"Changes, as asked for: `{change.id}`. {_line(change.why)}"]
        for extension in recipe.extensions:
            place = extension.place.replace("-", " ").capitalize()
            lines += ["", f"{place}:", "", "```", extension.shown, "```"]
        if used := sorted({rule.recipe for rule in recipe.rules} - {name}):
            lines += ["", f"Uses {', '.join(f'[`{other}`](#{other})' for other in used)}."]
        lines += list(_rules(recipe))
    return "\n".join(lines) + "\n"


def _rules(recipe: Recipe) -> Iterator[str]:
    refusals = _refusals(recipe)
    for rule in recipe.rules:
        if rule.recipe != recipe.name:
            continue
        yield from ("", f"### {rule.id}", "", f"{_line(rule.why)} ({rule.exact})")
        if isinstance(rule.replace, BuilderCall):
            yield from ("", f"What it puts is computed (`{rule.replace.name}`).")
        if rule.since_opset:
            yield from ("", f"From opset {rule.since_opset}.")
        if rule.contract:
            yield from ("", f"Contract: {_line(rule.contract)}")
        if reasons := refusals.get(rule.id):
            yield from ("", "Refuses, among others:", "", *(f"- {_line(r)}" for r in reasons))


def _operators(aten: Recipe) -> str:
    rows: dict[str, list[str]] = {}
    for rule in aten.rules:
        root = rule.match.nodes[-1]
        if root.domain != "aten" or rule.only_refuses:
            continue
        for operator in root.operators:
            place = f"[`{rule.id}`](recipes.md#{rule.id})"
            opset = f", from opset {rule.since_opset}" if rule.since_opset else ""
            rows.setdefault(operator, []).append(f"{place} ({rule.exact}{opset})")
    for name, other in ALIASES.items():
        if other in rows or other in _LISTS:
            rows.setdefault(name, [f"as `{other}`"])
    lines = [_MADE, "", "# ATen operators", ""]
    lines += [
        f"What `surgeon apply aten` has a rule for: {len(rows)} operators of PyTorch, at opset 9",
        "and newer, in every spelling that exporters gave them. A rule that cannot replace a node",
        "says why, and names the opset that would do where the model's has no way. What a rule",
        "refuses stands with the rule. Rules are tried in the order given. What writes into",
        "its input (`add_`) is taken for what does not, where nothing else reads that input.",
        "",
        "| operator | overloads | rules |",
        "|---|---|---|",
    ]
    for operator, rules in sorted(rows.items()):
        overloads = [f"`{s.overload or 'default'}`" for s in schemas.overloads(operator)]
        shown = ", ".join(dict.fromkeys(overloads)) or "of older releases"
        lines.append(f"| `{operator}` | {shown} | {', '.join(rules)} |")
    refused = (o for r in aten.rules if r.only_refuses for o in r.match.nodes[-1].operators)
    lines += ["", "## Refused by name", "", "They stay, and the report says why and what to do."]
    lines += ["", ", ".join(f"`{o}`" for o in sorted(set(refused))) + "."]
    return "\n".join(lines) + "\n"


def _reference() -> str:
    """Every key, property, function and builder of the language of recipes."""
    lines = [_READ, "", "# The language of recipes, word by word", ""]
    lines += ["What they are for, with examples that run: [language.md](language.md)."]
    lines += ["", "## Keys"]
    for title, words in language.keys().items():
        lines += ["", f"### {title}", "", "| key | means |", "|---|---|"]
        lines += [f"| `{word.name}` | {_cell(word.about)} |" for word in words]
    lines += ["", "## Properties", "", "Of a value of the graph, in `where` and `let`."]
    lines += ["", "| property | means | as in |", "|---|---|---|"]
    for word in language.properties():
        lines.append(f"| `{word.name}` | {_cell(word.about)} | `{word.example}` |")
    lines += ["", "## Functions", ""]
    lines += ["Of `where` and `let`. Here `x` is a value, float16[2, t], and `t` a dynamic size."]
    lines += ["", "| function | gives | as in | is |", "|---|---|---|---|"]
    for word in language.functions():
        example = f"`{word.example}` | {word.gives and _cell(word.gives)}"
        lines.append(f"| `{word.name}` | {_cell(word.about)} | {example} |")
    lines += ["", "## Builders", ""]
    lines += ["Of `replace: {build: NAME, ...}`, with the arguments that stand beside `build`."]
    lines += ["What each asks of the nodes it is given, the recipes that use it show."]
    lines += ["", "| builder | writes | as in |", "|---|---|---|"]
    used = _users()
    for word in language.builders():
        lines.append(
            f"| `{word.name}` | {_cell(word.about)} | {used.get(word.name.partition('(')[0], '')} |"
        )
    return "\n".join(lines) + "\n"


def _users() -> dict[str, str]:
    """For each builder the first rule that names it, as a link."""
    found: dict[str, str] = {}
    for path in bundled().values():
        for rule in Recipe.load(path).rules:
            if isinstance(rule.replace, BuilderCall):
                found.setdefault(rule.replace.name, f"[`{rule.id}`](recipes.md#{rule.id})")
    return dict(sorted(found.items()))


def _cell(text: str) -> str:
    return _line(text).replace("|", "\\|")


def _line(text: str) -> str:
    return " ".join(text.split())
