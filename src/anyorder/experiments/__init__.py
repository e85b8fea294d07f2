"""Every row of every table as a recipe, by name."""

from __future__ import annotations

from anyorder.experiments.chains import recipes as chains
from anyorder.experiments.hyperedges import recipes as hyperedges
from anyorder.experiments.hypergraphs import recipes as hypergraphs
from anyorder.experiments.molecules import recipes as molecules
from anyorder.experiments.set_to_graph import delaunay_recipes as delaunay
from anyorder.experiments.set_to_graph import jet_recipes as jets
from anyorder.training.config import nearest
from anyorder.training.run import Recipe
from anyorder.training.tables import Table

_MODULES = (chains, molecules, delaunay, jets, hypergraphs, hyperedges)
RECIPES: dict[str, Recipe] = {recipe.name: recipe for module in _MODULES for recipe in module.RECIPES}
TABLES: dict[str, Table] = {module.TABLE.name: module.TABLE for module in _MODULES}


def find(name: str) -> Recipe:
    """The recipe of a name."""
    if name not in RECIPES:
        raise ValueError(f"unknown recipe {name!r}{nearest(name, RECIPES)}")
    return RECIPES[name]


def find_table(name: str) -> Table:
    """The table of a name."""
    if name not in TABLES:
        raise ValueError(f"unknown table {name!r}{nearest(name, TABLES)}")
    return TABLES[name]


def below(name: str) -> list[Recipe]:
    """The recipes of a table, or of a dataset of it."""
    found = [recipe for key, recipe in RECIPES.items() if key == name or key.startswith(name.rstrip("/") + "/")]
    if not found:
        raise ValueError(f"unknown recipe or table {name!r}{nearest(name, [*TABLES, *RECIPES])}")
    return found


__all__ = ["RECIPES", "TABLES", "Recipe", "Table", "below", "find", "find_table"]
