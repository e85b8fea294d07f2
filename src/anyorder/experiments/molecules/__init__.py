"""Properties of molecules (Table 2), and people's own molecules."""
