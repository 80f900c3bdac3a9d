"""The witness's operators, a family in each module; `table` has them all by name."""
