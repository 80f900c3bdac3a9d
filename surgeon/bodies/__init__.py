"""Bodies of If and Loop, calls of functions, and lists: brought into graphs without them."""
