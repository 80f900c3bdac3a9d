"""The table of builders says where each is, and leaves none out."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

from surgeon.builders import BUILDERS
from surgeon.builders.rooms import FAMILIES


def test_every_builder_is_where_the_table_says() -> None:
    for name, build in BUILDERS.items():
        assert callable(build), name


def test_no_family_has_a_builder_that_the_table_leaves_out() -> None:
    for family, names in FAMILIES.items():
        assert sorted(import_module(f"surgeon.builders.{family}").TABLE) == sorted(names)


def test_a_room_is_imported_when_it_is_asked_for() -> None:
    families = ("surgeon.builders.aten_math", "surgeon.builders.aten_shape")
    code = (
        "import sys; from surgeon.recipe import Recipe; Recipe.load('dymn'); "
        f"sys.exit(any(m.startswith({families!r}) for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
