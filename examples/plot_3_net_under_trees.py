"""
A torch net and trees, in rank space
====================================

The mean of a gradient boosting model and a torch net, ranked by a smoothed distribution of scores: smooth between the
jumps of 100 trees, with a kink at every ReLU and every knot.
"""

# %%
import os

import numpy as np
import torch
import xgboost
from sklearn.datasets import make_friedman1
from torch import nn

import gigrad as gig

X, value = make_friedman1(2_000, 6, random_state=0)
y = (value > np.median(value)).astype(int)
gbm = xgboost.XGBClassifier(n_estimators=100, max_depth=3, random_state=0).fit(X, y)

torch.manual_seed(0)
hidden = [nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU()]
net = nn.Sequential(*hidden, nn.Linear(32, 1), nn.Sigmoid())
optimiser = torch.optim.Adam(net.parameters(), lr=0.01)
inputs = torch.tensor(X, dtype=torch.float32)
target = torch.tensor(y, dtype=torch.float32)[:, None]
for _ in range(100):
    optimiser.zero_grad()
    nn.functional.binary_cross_entropy(net(inputs), target).backward()
    optimiser.step()
net.eval()

# %%
# Average the two, then rank. The rank is steep where scores crowd, so the float32 rounding of the two models' own
# predictions (4e-8) may become a gap of 7e-5; the credits themselves are as good as the error says.

mean = gig.average([gbm, net])
f = mean.then(gig.SmoothedECDF.fit(mean.predict(X)))
size = 8 if os.environ.get("GIGRAD_QUICK") else 50
e = gig.explain(f, X[:size], X[100 : 100 + size])
print(f"largest gap {abs(e.gap).max():.0e}, largest error {e.error.max():.0e}")

# %%
# The way of one row against the reference: the score as it goes, and the credit that each variable has gathered.

gig.plots.path(gig.explain(f, X[:1], X[100:105], paths=1))
