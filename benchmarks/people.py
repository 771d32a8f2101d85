"""A made table of people with the shape of UCI's Census-Income (KDD): 33 categories, of which many change together.

Most people have no job, no union, no previous state: one answer ("not in universe") for whole blocks of columns, given
by few facts about a person. Shares of the answers are close to those that the census publishes; names are left out.
"""

from __future__ import annotations

import numpy as np
import pandas as pd


def _falling(levels: int, power: float = 1.0) -> np.ndarray:
    """Shares of levels that fall as those of a list by size do."""
    share = 1.0 / np.arange(1, levels + 1) ** power
    return share / share.sum()


def people(rows: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """33 categories and 7 numbers, and whether the income is high (some 10 %)."""
    rng, effect = np.random.default_rng(seed), np.random.default_rng(1)
    child = rng.random(rows) < 0.24
    age = np.where(child, rng.integers(0, 15, rows), np.minimum(15 + rng.gamma(2.2, 14, rows), 90).astype(int))
    works = ~child & (age < 68) & (rng.random(rows) < 0.72)
    abroad = rng.random(rows) < 0.11  # born there
    this_year = rng.random(rows) < 0.5  # the year that asks nobody where they lived before
    moved = ~this_year & (rng.random(rows) < 0.16)
    married = ~child & (rng.random(rows) < np.clip((age - 18) / 25, 0, 0.68))
    table: dict[str, np.ndarray] = {}

    def of(name: str, where: np.ndarray, levels: int, power: float = 1.0) -> np.ndarray:
        """One of some levels where people have the fact, 0 elsewhere."""
        code = np.where(where, 1 + rng.choice(levels, rows, p=_falling(levels, power)), 0)
        table[name] = code
        return code

    of("class_of_worker", works, 8, 1.6)
    industry = of("industry", works, 51, 0.7)
    occupation = of("occupation", works, 46, 0.6)
    table["major_industry"] = np.where(works, 1 + industry % 23, 0)
    table["major_occupation"] = np.where(works, 1 + occupation % 14, 0)
    of("union", works & (rng.random(rows) < 0.2), 2)
    of("unemployment_reason", ~works & ~child & (rng.random(rows) < 0.07), 5)
    table["full_or_part_time"] = np.where(child, 0, 1 + np.where(works, rng.choice(4, rows, p=_falling(4, 2)), 4))
    of("own_business", works & (rng.random(rows) < 0.2), 2)
    schooling = np.clip(rng.normal(8.0, 2.6, rows) + 0.1 * (occupation % 14), 1, 16).astype(int)
    table["education"] = np.where(child, 0, schooling)
    of("enrolled", (age > 14) & (age < 25) & (rng.random(rows) < 0.5), 2)
    apart = np.where(married, 1, 2 + rng.choice(5, rows, p=_falling(5, 1.2)))
    table["marital_status"] = np.where(age < 18, 0, np.where(~married & (rng.random(rows) < 0.55), 0, apart))
    table["race"] = rng.choice(5, rows, p=[0.84, 0.10, 0.03, 0.02, 0.01])
    of("hispanic", rng.random(rows) < np.where(abroad, 0.5, 0.09), 9, 1.5)
    table["sex"] = rng.integers(0, 2, rows)
    table["tax_filer"] = np.where(child, 0, np.where(married, 1, np.where(works, 2, rng.choice(6, rows))))
    away = moved & (rng.random(rows) < 0.5)
    of("region_before", away, 5)
    of("state_before", away, 50, 0.5)
    place = np.where(child, 0, np.where(married, 1 + table["sex"], 3 + rng.choice(30, rows, p=_falling(30, 1.1))))
    table["household"] = place
    table["household_summary"] = np.minimum(place, 7)
    for name, levels in {"move_msa": 8, "move_region": 7, "move_within_region": 8, "move_sunbelt": 2}.items():
        steps = 2 + rng.choice(levels, rows, p=_falling(levels, 1.3))
        table[name] = np.where(this_year, 0, np.where(moved, steps, 1))
    table["same_house"] = np.where(this_year, 0, np.where(moved, 1, 2))
    of("parents_present", child, 4, 1.5)
    country = 1 + rng.choice(42, rows, p=_falling(42, 0.8))
    for name, chance in {"father": 0.1, "mother": 0.1, "self": 0.0}.items():
        table[f"country_{name}"] = np.where(abroad | (rng.random(rows) < chance), country, 0)
    table["citizenship"] = np.where(abroad, 1 + rng.choice(2, rows, p=[0.6, 0.4]), 0)
    of("veteran_questions", rng.random(rows) < 0.01, 2)
    table["veteran_benefits"] = np.where(child, 0, 1 + (rng.random(rows) < 0.01))
    table["year"] = this_year.astype(int)
    score = np.where(works, -2.5, -5.0) + 0.35 * (table["education"] - 8) + 0.9 * table["sex"] + 0.7 * married
    matters = (
        "class_of_worker",
        "major_industry",
        "major_occupation",
        "tax_filer",
        "household_summary",
        "own_business",
    )
    for name in matters:
        score += 0.5 * effect.normal(size=60)[table[name]]
    frame = {name: pd.Categorical(code, range(int(code.max()) + 1)) for name, code in table.items()}
    weeks = np.where(works, rng.choice([52, 40, 26, 12], rows, p=[0.7, 0.12, 0.1, 0.08]), 0)
    gains = np.where(rng.random(rows) < 0.04, np.round(rng.lognormal(8, 1, rows)), 0)
    numbers = {
        "age": age,
        "weeks": weeks,
        "wage": np.where(works & (rng.random(rows) < 0.12), rng.integers(400, 2500, rows), 0),
        "gains": gains,
        "losses": np.where(rng.random(rows) < 0.02, rng.integers(1000, 2500, rows), 0),
        "dividends": np.where(rng.random(rows) < 0.1, np.round(rng.lognormal(6, 1.5, rows)), 0),
        "employees": np.where(works, rng.integers(1, 7, rows), 0),
    }
    score += 0.03 * (weeks - 40) + 0.02 * np.minimum(age - 40, 20) + (gains > 5000) * 2.0
    frame |= {name: x.astype(float) for name, x in numbers.items()}
    return pd.DataFrame(frame), (score + rng.logistic(size=rows) > 0).astype(int)
