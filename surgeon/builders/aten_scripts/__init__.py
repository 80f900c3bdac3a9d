"""Builders of the recipe `aten-scripts`: what scripted modules compute with numbers and lists."""

from collections.abc import Callable, Mapping
from typing import Any

from surgeon.builders.aten_scripts.changes import changed_list, known_list, numbers_with_one_set
from surgeon.builders.aten_scripts.dictionaries import dictionary_entry, dictionary_value
from surgeon.builders.aten_scripts.functions import number_function, number_pair
from surgeon.builders.aten_scripts.lists import made_list, read_list, same_list, typed_list
from surgeon.builders.aten_scripts.scalars import script_scalar, uninitialized
from surgeon.builders.aten_scripts.sizes import (
    numbers_of_list,
    numbers_together,
    numbers_with_one_less,
    numbers_with_one_more,
)
from surgeon.builders.aten_scripts.stacked import part_of_list, stacked_read

TABLE: Mapping[str, Callable[..., Any]] = {
    "changed_list": changed_list,
    "dictionary_entry": dictionary_entry,
    "dictionary_value": dictionary_value,
    "known_list": known_list,
    "made_list": made_list,
    "number_function": number_function,
    "number_pair": number_pair,
    "part_of_list": part_of_list,
    "numbers_of_list": numbers_of_list,
    "numbers_together": numbers_together,
    "numbers_with_one_less": numbers_with_one_less,
    "numbers_with_one_more": numbers_with_one_more,
    "numbers_with_one_set": numbers_with_one_set,
    "read_list": read_list,
    "same_list": same_list,
    "script_scalar": script_scalar,
    "stacked_read": stacked_read,
    "typed_list": typed_list,
    "uninitialized": uninitialized,
}
