"""What is known of each kind of missed target in `shift.py`: what was tried, and what limits it."""

KNOWLEDGE = """\
Tried: a larger in-domain cost of the prior, which gains it (the curve below: 0.8 lifts classes at the same
fit, but costs regression its log score), 500 to 2000 anchors, other kernels and lengthscales, trees as prior
functions. What limits it at the default: a shift along directions that vary much in the training rows
anyway is small to functions that know distance only."""

CATBOOST = """\
Tried, on the spiral: half the step, leaves of 20 rows, less shrinkage (spiral_catboost.txt), which gains a
part of it; no prior (the rows without), which gains little. What differs from LightGBM is the trees: level
by level to depth 6 instead of leaf by leaf to 31 or 64 leaves, which is where the rest seems to lie."""

ONE_VARIANCE = """\
Tried: no prior, which leaves the gap (the rows without), smaller steps, other leaf sizes. What limits it:
bagged members differ most where the noise is large, so that their spread plus a constant follows it; a
posterior under one noise variance does not. The Normal likelihood models the noise (its rows above)."""

OTHER = """\
Tried: other steps, leaf sizes, shrinkage, temperatures and cycles (spiral.txt). What limits it: members of
a chain at temperature 1 are single draws of the posterior, of which ten or twenty are averaged; more of
them (shorter cycles, several chains) help the log score most. The curve above has the prior's part."""

WINE = """
Wine has 870 training and 272 test rows: its figures move by several per cent from seed to seed."""


def reason(setting: str, row: str, classes: bool, what: str) -> str:
    """Give what is known of a miss.

    Parameters
    ----------
    setting : str
        Title of the setting.
    row : str
        Its row of the regression tasks.
    classes : bool
        Whether the task has classes.
    what : str
        "goal", "peer", "fit" or "log score".

    Returns
    -------
    str
        Text.
    """
    if what in ("goal", "peer"):
        return KNOWLEDGE
    if setting.startswith("CatBoost") and (classes or what == "fit"):
        return CATBOOST
    if not classes and what == "log score" and "normal" not in row:
        return ONE_VARIANCE
    return OTHER
