TUNED: dict[tuple[str, str], tuple[str, ...]] = {}
