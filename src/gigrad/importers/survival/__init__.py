"""Survival models: the score is the probability to survive up to the time `target`, the margin the log hazard.

hazards.py     survival under proportional hazards, from the log of the partial hazard and a baseline
lifelines.py   lifelines' CoxPHFitter
sksurv.py      scikit-survival: Cox models, survival trees and forests, gradient boosting
"""
